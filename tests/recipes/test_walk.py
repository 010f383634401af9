"""Every key of a recipe does something, or says that it changes nothing learned.

A key acts if another value gives other weights or metrics, other prompts, or other verdicts. What
needs a network or a file of a special kind is shown by the test that is named here.
"""

from __future__ import annotations

import ast
import copy
import hashlib
import inspect
import json
import sys
import warnings
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, cast

import pytest
from pydantic import BaseModel

from hacrl.agents.learning.algorithm import recipe_algorithm
from hacrl.algorithm.capability import CapabilityTracker
from hacrl.config import recipe_from_dict
from hacrl.config.tasks import Task
from hacrl.console.observer import Silent
from hacrl.errors import UserError
from hacrl.fleet.local import LocalFleet
from hacrl.records import Prompt, Verdict
from hacrl.tasks import PromptStream, load_prompts, load_task
from hacrl.training.loop import by_learner, joint_set
from hacrl.training.train import fitting_prompts
from hacrl.verify import Verifier, VerifierPool, make_verifiers
from hacrl.verify.rollouts import verify_rollouts
from tests.recipes.keys import Key, all_keys, with_value

Raw = dict[str, Any]
PHRASE = "changes nothing learned"
ROOT = Path(__file__).parents[2]


def keys_that_hold_values() -> list[Key]:
    """Neither sections nor the type of one, which decides which other keys there are."""
    paths = [key.path for key in all_keys()]
    return [
        key
        for key in all_keys()
        if "const" not in key.node
        if not any(p != key.path and p[: len(key.path)] == key.path for p in paths)
    ]


@cache
def described(model: type[BaseModel]) -> Mapping[str, str]:
    """What is written below each key of a model, and, as ``, what is said of all of them."""
    found: dict[str, str] = {}
    for kind in reversed(model.__mro__):
        if not kind.__module__.startswith("hacrl.config"):
            continue
        (node,) = ast.parse(inspect.getsource(kind)).body
        body = cast("ast.ClassDef", node).body
        found[""] = f"{found.get('', '')} {inspect.cleandoc(kind.__doc__ or '')}"
        for i in range(len(body) - 1):
            here, below = body[i], body[i + 1]
            if isinstance(here, ast.AnnAssign) and isinstance(here.target, ast.Name):
                text = below.value if isinstance(below, ast.Expr) else None
                value = text.value if isinstance(text, ast.Constant) else ""
                found[here.target.id] = str(value)
    return {key: " ".join(text.split()).lower() for key, text in found.items()}


@cache
def models() -> Mapping[str, type[BaseModel]]:
    return {
        kind.__name__: kind
        for name, module in list(sys.modules.items())
        if name.startswith("hacrl.config")
        for kind in vars(module).values()
        if isinstance(kind, type) and issubclass(kind, BaseModel)
    }


def says_so(key: Key) -> bool:
    """Whether the documentation of a key, or of its section, says that it changes nothing."""
    texts = described(models()[key.owner])
    return any(PHRASE in texts.get(name, "") for name in ("", key.path[-1]))


# --- weights and metrics ------------------------------------------------------------------------

LEARNED: dict[str, tuple[Any, Mapping[str, Any]]] = {
    # key: another value, and what else the recipe says on both sides
    "Recipe.seed": (1, {}),
    "Recipe.steps": (3, {}),
    "Recipe.prompts_per_step": (3, {}),
    "Recipe.method": ("naive", {}),
    "Recipe.sharing": ("nobody", {}),
    "AgentSpec.model": ("LLAMA", {}),
    "AgentSpec.learns": (False, {}),
    "RecordingSpec.path": ("ANOTHER", {"agents.kim": "RECORDING"}),
    "RecordingSpec.agent": ("lee", {"agents.kim": "RECORDING"}),
    "AgentSpec.gguf": ("none.gguf", {}),
    "AgentSpec.dtype": ("bfloat16", {}),
    "AgentSpec.chat_template": ("TEMPLATE", {}),
    "AgentSpec.template_args": ({"twice": True}, {"agents.kim.chat_template": "TEMPLATE"}),
    "AgentSpec.stop": (["+"], {}),
    "AgentSpec.learning_rate": (1e-2, {}),
    "Lora.rank": (3, {}),
    "Lora.alpha": (1.0, {}),
    "Lora.target_modules": (["q_proj"], {}),
    "Task.weight": (9.0, {"tasks.more": "MORE"}),
    "Prompts.max_tokens": (5, {}),
    "Prompts.too_long": ("refuse", {"prompts.max_tokens": 5}),
    "Sampling.group_size": (5, {}),
    "Sampling.multiplier": (2, {}),
    "Sampling.temperature": (2.0, {}),
    "Sampling.max_new_tokens": (5, {}),
    "Capability.metric": ("positive_rate", {"tasks.bits.verifier.function": "LENGTH"}),
    "Capability.window": (1, {}),
    "Capability.max_ratio": (1.0, {}),
    "Advantage.capability_aware": (False, {}),
    "Advantage.discrepancy": (False, {}),
    "Advantage.cross_baseline": ("learner", {}),
    "Advantage.guard": (False, {"tasks.more": "MORE", "tasks.more.verifier.function": "NARROW"}),
    "Advantage.epsilon": (0.5, {}),
    "Ratio.level": ("token", {"sharing": "nobody", "update.mini_batches": 2}),
    "Ratio.length": ("own", {}),
    "Ratio.alpha": (0.0, {}),
    "Clip.own_low": (0.5, {"update.mini_batches": 4, "optimizer.learning_rate": 0.1}),
    "Clip.own_high": (0.5, {"update.mini_batches": 4, "optimizer.learning_rate": 0.1}),
    "Clip.cross": ("none", {}),
    "Clip.delta": (0.0, {}),
    "Clip.delta_step": (0.2, {"update.mini_batches": 4}),
    "Update.mini_batches": (2, {}),
    "Update.order": ("mixed", {"update.mini_batches": 2}),
    "Update.kl": (1.0, {}),
    "Update.old_logprobs": ("sampler", {"update.autocast": "bfloat16"}),
    "Update.autocast": ("bfloat16", {}),
    "Optimizer.learning_rate": (1e-2, {}),
    "Optimizer.betas": ([0.5, 0.5], {}),
    "Optimizer.epsilon": (1e-2, {}),
    "Optimizer.weight_decay": (1.0, {}),
    "Optimizer.max_grad_norm": (1e-6, {"optimizer.epsilon": 1e-6}),
    "Optimizer.schedule": ("linear", {}),
    "Optimizer.warmup_updates": (4, {"optimizer.schedule": "linear"}),
}


class InThisProcess(VerifierPool):
    """Judges without workers."""

    def verify(self, pairs: Sequence[tuple[Prompt, str]]) -> list[Verdict]:
        return [self.verifiers[prompt.task](prompt, response) for prompt, response in pairs]


def learned(raw: Raw) -> str:
    """What a recipe comes to: prompts, responses, metrics and weights, or its refusal."""
    digest = hashlib.sha256()
    try:
        recipe = recipe_from_dict(raw)
        fleet = LocalFleet.from_recipe(recipe)
        prompts = fitting_prompts(recipe, fleet, load_prompts(recipe.tasks), Silent())
    except UserError as error:
        return str(error)
    weights = {name: task.weight for name, task in recipe.tasks.items()}
    stream = PromptStream(prompts, recipe.prompts_per_step, recipe.seed, weights)
    capability = CapabilityTracker(
        fleet.agents,
        recipe.capability.window,
        recipe.capability.metric,
        recipe.capability.max_ratio,
    )
    pool = InThisProcess(make_verifiers(recipe.tasks))
    algorithm = recipe_algorithm(recipe)
    sharing = {name: recipe.sources(name) for name in recipe.learners}
    for step in range(recipe.steps):
        batch = stream.batch(step)
        rollouts = fleet.sample(batch, recipe.group_size, occasion=f"step {step}")
        judged = verify_rollouts(step, batch, recipe.group_size, rollouts, pool)
        capability.observe(judged.rewards(), judged.agents)
        joint = joint_set(judged, capability.ratios(), sharing)
        judgement = algorithm.judge(joint)
        reports = fleet.learn(judged, by_learner(judgement, judged.agents, sharing))
        digest.update(
            repr((batch, judged.rows, judgement.metrics, [r.metrics for r in reports])).encode()
        )
    for agent in fleet._learners.values():
        for tensor in agent._policy.model.state_dict().values():
            digest.update(tensor.float().numpy().tobytes())
    return digest.hexdigest()


@pytest.fixture(scope="module")
def small(
    base: Raw,
    llama_folder: Path,
    sections: Mapping[str, Any],
    tmp_path_factory: pytest.TempPathFactory,
) -> Raw:
    """Rewards differ between responses, and between the two agents."""
    template = tmp_path_factory.mktemp("templates") / "plain.jinja"
    template.write_text(
        "{% for m in messages %}{{ m.content }}0{% endfor %}{% if twice %}+0={% endif %}"
    )
    raw = copy.deepcopy(base)
    raw["tasks"]["bits"]["verifier"] = {"type": "python", "function": "tests.recipes.rewards:score"}
    more = copy.deepcopy(raw["tasks"]["bits"])
    return raw | {
        "words": {
            "LLAMA": str(llama_folder),
            "RECORDING": sections["agents/recording"],
            "ANOTHER": sections["another recording"],
            "TEMPLATE": str(template),
            "LENGTH": "tests.recipes.rewards:length",
            "NARROW": "tests.recipes.rewards:narrow",
            "MORE": more,
        }
    }


def spelt(value: Any, words: Mapping[str, Any]) -> Any:
    return words.get(value, value) if isinstance(value, str) else value


@pytest.mark.parametrize("name", LEARNED)
def test_a_key_changes_what_is_learned(
    name: str, small: Raw, sections: Mapping[str, Any], known: dict[str, str]
) -> None:
    value, context = LEARNED[name]
    raw = copy.deepcopy(small)
    words = raw.pop("words")
    for dotted, setting in context.items():
        *parents, last = dotted.split(".")
        node = raw
        for parent in parents:
            node = node.setdefault(parent, {})
        node[last] = spelt(setting, words)
    (key,) = (key for key in all_keys() if key.name == name)
    if key.owner == "Lora":
        raw["agents"]["kim"]["lora"] = sections["lora"]
    outcomes = []
    with warnings.catch_warnings(action="ignore"):
        for one in (raw, with_value(raw, sections, key, spelt(value, words))):
            text = json.dumps(one)
            if text not in known:
                known[text] = learned(one)
            outcomes.append(known[text])
    assert outcomes[0] != outcomes[1]
    assert len(outcomes[0]) == 64, "the recipe without the key must train"


@pytest.fixture(scope="module")
def known() -> dict[str, str]:
    """Outcomes by recipe; most keys are compared with the same one."""
    return {}


# --- prompts ------------------------------------------------------------------------------------

ROWS = [
    {"question": "1+1?", "answer": ["2", "two"], "other": "3+3?", "gold": "6", "level": 1},
    {"question": "2+2?", "answer": ["4", "four"], "other": "4+4?", "gold": "8", "level": 2},
]
FLAT = [row | {"answer": cast("list[str]", row["answer"])[0]} for row in ROWS]
OF_FIELDS = {
    "limit": 1,
    "question": "{other}!",
    "answer": "gold",
    "metadata": ["level"],
}
PROMPTS: dict[str, tuple[Any, Mapping[str, Any]]] = {
    "Task.instruction": ("{question}!", {}),
    "Task.system": ("Be brief.", {}),
    **{
        f"{kind}Source.{key}": (value, {})
        for kind in ("Jsonl", "Json", "Csv", "Parquet")
        for key, value in OF_FIELDS.items()
    },
    **{f"{kind}Source.path": ("OTHER", {}) for kind in ("Jsonl", "Json", "Csv", "Parquet")},
    **{
        f"{kind}Source.answers": ("any", {"answer": "list"})
        for kind in ("Jsonl", "Json", "Parquet")
    },
    "JsonSource.key": ("rows", {}),
    "CsvSource.delimiter": (";", {}),
    "BenchmarkSource.limit": (1, {}),
    "BenchmarkSource.path": ("OTHER", {}),
    "ReasoningGymSource.size": (3, {}),
    "ReasoningGymSource.seed": (1, {}),
    "ReasoningGymSource.name": ("gcd", {"name": "chain_sum", "generators": {}}),
    "ReasoningGymSource.difficulty": (2, {"name": "chain_sum", "generators": {}}),
    "ReasoningGymSource.config": (
        {"min_terms": 6, "max_terms": 6},
        {"name": "chain_sum", "generators": {}},
    ),
    "GeneratorSpec.weight": (9.0, {"generators": {"chain_sum": {}, "gcd": {}}, "size": 20}),
    "GeneratorSpec.difficulty": (2, {}),
    "GeneratorSpec.config": ({"min_terms": 6, "max_terms": 6}, {}),
}


def prompts_of(raw: Raw) -> str:
    try:
        return repr(load_task("bits", recipe_from_dict(raw).tasks["bits"]))
    except UserError as error:
        return f"refused: {error}"


@pytest.mark.parametrize("name", PROMPTS)
def test_a_key_changes_the_prompts(
    name: str, base: Raw, sections: Mapping[str, Any], tmp_path: Path
) -> None:
    value, context = PROMPTS[name]
    (key,) = (key for key in all_keys() if key.name == name)
    kind = next((p.removeprefix("type=") for p in key.path if p.startswith("type=")), "jsonl")
    source = copy.deepcopy(sections[f"source/{kind}"])
    words = {}
    if "path" in source:
        source["path"] = str(_written(tmp_path / "rows", kind, FLAT))
        words["OTHER"] = str(_written(tmp_path / "others", kind, FLAT[1:]))
    if key.path[-1] == "answers":
        source["path"] = str(_written(tmp_path / "lists", kind, ROWS))
    source |= {k: v for k, v in context.items() if k != "answer"}
    raw = with_value(base, sections, Key("Task", ("tasks", "*", "source"), {}), source)
    before = prompts_of(raw)
    own = dict(sections) | {f"source/{kind}": source}
    after = prompts_of(with_value(raw, own, key, spelt(value, words)))
    assert before != after
    assert not before.startswith("refused") or key.path[-1] == "answers"


def _written(stem: Path, kind: str, rows: Sequence[Mapping[str, Any]]) -> Path:
    import pyarrow as pa
    from pyarrow import parquet

    path = stem.with_suffix(f".{'jsonl' if kind == 'benchmark' else kind}")
    match kind:
        case "json":
            path.write_text(json.dumps(list(rows)))
        case "csv":
            lines = [rows[0].keys(), *(row.values() for row in rows)]
            path.write_text("\n".join(",".join(map(str, line)) for line in lines))
        case "parquet":
            parquet.write_table(pa.Table.from_pylist([dict(row) for row in rows]), path)
        case _:
            path.write_text("\n".join(map(json.dumps, rows)))
    return path


# --- verdicts -----------------------------------------------------------------------------------

RESPONSES = (
    *(r"\boxed{1}", r"\boxed{2}", "#### 1", "@@ 1", "it is 1", "1", "#### 1 or 2", ""),
    *(r"\boxed{B}", r"\boxed{F}", "@@ B"),
)
GOLDS = {"code": "assert x == 1", "choice": "B", "reasoning_gym": "1"}
SLOW_TO_JUDGE = {"code": ("x = 1", "x = 2"), "command": ("1",)}
SCORES = [sys.executable, "-c", "print(0.5)"]
NEGATIVE = [sys.executable, "-c", "print(-0.5)"]
BY_SCORE = {"judged_by": "score", "argv": SCORES}
_ANSWERED = {
    f"{kind}Verifier.{key}": (value, {})
    for kind in ("Math", "Exact", "Choice", "Code", "ReasoningGym", "Command", "Python")
    for key, value in (("correct", 2.0), ("wrong", 0.25))
}
VERDICTS: dict[str, tuple[Any, Mapping[str, Any]]] = {
    **_ANSWERED,
    "PythonVerifier.correct": (2.0, {"function": "tests.recipes.rewards:is_one"}),
    "PythonVerifier.wrong": (0.25, {"function": "tests.recipes.rewards:is_one"}),
    "CommandVerifier.wrong": (0.25, {"argv": ["false"]}),
    **{
        f"{kind}Verifier.marker": ("@@", {}) for kind in ("Math", "Exact", "Choice", "ReasoningGym")
    },
    "MathVerifier.last_number": (True, {}),
    "ChoiceVerifier.options": ("ABCDEF", {}),
    "ReasoningGymVerifier.name": ("no_such", {}),
    "ReasoningGymVerifier.threshold": (0.01, {}),
    "ReasoningGymVerifier.partial": (True, {"correct": 3.0}),
    "CommandVerifier.argv": (["false"], {}),
    "CommandVerifier.judged_by": ("score", {"argv": SCORES}),
    "CommandVerifier.threshold": (0.5, BY_SCORE),
    "CommandVerifier.lowest": (-1.0, {"judged_by": "score", "argv": NEGATIVE}),
    "PythonVerifier.function": ("tests.recipes.rewards:length", {}),
    "PythonVerifier.threshold": (0.5, {"function": "tests.recipes.rewards:half"}),
    "PythonVerifier.lowest": (-1.0, {"function": "tests.recipes.rewards:below"}),
    "Part.weight": (0.5, {}),
    "Part.verifier": ({"type": "exact", "marker": "@@"}, {}),
}


def verdicts_of(spec: Mapping[str, Any]) -> str:
    kind = str(spec["type"])
    prompt = Prompt("t/0", "t", "?", GOLDS.get(kind, "1"))
    try:
        task = Task.model_validate({"source": {"type": "jsonl", "path": "x"}, "verifier": spec})
        verifier = make_verifiers({"t": task})["t"]
    except UserError as error:
        return f"refused: {error}"
    responses = SLOW_TO_JUDGE.get(kind, RESPONSES)
    return repr([_verdict(verifier, prompt, response) for response in responses])


def _verdict(verifier: Verifier, prompt: Prompt, response: str) -> Verdict | str:
    try:
        return verifier(prompt, response)
    except Exception as error:  # noqa: BLE001 - what the pool makes a scorer error of
        return type(error).__name__


@pytest.mark.parametrize("name", VERDICTS)
def test_a_key_changes_the_verdicts(name: str, sections: Mapping[str, Any]) -> None:
    value, context = VERDICTS[name]
    (key,) = (key for key in all_keys() if key.name == name)
    kind = next(p.removeprefix("type=") for p in key.path if p.startswith("type="))
    before = copy.deepcopy(sections[f"verifier/{kind}"])
    if "marker" in before and key.path[-1] != "marker":
        before.pop("marker")
    before |= context
    after = copy.deepcopy(before)
    (after["parts"][0] if key.owner == "Part" else after)[key.path[-1]] = value
    assert verdicts_of(before) != verdicts_of(after)
    assert not verdicts_of(before).startswith("refused")


# --- all of them --------------------------------------------------------------------------------

ELSEWHERE = {
    **{
        f"HubSource.{key}": "tests/tasks/test_sources.py::test_a_hub_data_set_is_loaded_by_the"
        for key in ("id", "config", "split", "revision", "limit", "question", "answer")
    },
    "HubSource.answers": "tests/tasks/test_fields.py::test_several_answers_mean_what_the_task_says",
    "Recipe.clock": "tests/runs/test_clock.py::test_the_clock_stands_still_at_the_start_of_a_run",
    "NamedTemplate.name": "tests/agents/policy/test_vocabulary.py::"
    "test_one_of_several_named_templates",
    "AgentSpec.split_special_tokens": "tests/agents/policy/test_vocabulary.py::"
    "test_control_tokens_in_questions_can_be_text",
    "PythonRule.function": "tests/training/test_own_rule.py::test_a_rule_decides_what_is_learned",
    "Lora.adapter": "tests/agents/policy/test_adapters.py::",
    "Lora.quantization": "tests/agents/policy/test_adapters.py::",
}


@pytest.mark.parametrize("key", keys_that_hold_values(), ids=str)
def test_every_key_acts_or_says_that_it_changes_nothing(key: Key) -> None:
    assert (key.name in LEARNED | PROMPTS | VERDICTS | ELSEWHERE) or says_so(key)


def test_nothing_is_listed_that_is_no_key() -> None:
    names = {key.name for key in all_keys()}
    assert (LEARNED | PROMPTS | VERDICTS | ELSEWHERE).keys() <= names
    for place in ELSEWHERE.values():
        path, _, test = place.partition("::")
        assert f"def {test}" in (ROOT / path).read_text() if test else (ROOT / path).is_file()

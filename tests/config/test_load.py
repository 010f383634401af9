from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from hacrl.algorithm.methods import method_names
from hacrl.config import load_recipe, recipe_from_dict, recipe_to_yaml
from hacrl.errors import UserError

TASK: dict[str, Any] = {
    "source": {"type": "jsonl", "path": "x.jsonl"},
    "verifier": {"type": "exact"},
}

RAW: dict[str, Any] = {
    "name": "trial",
    "steps": 2,
    "prompts_per_step": 4,
    "agents": {"kim": {"model": "a/b"}, "lee": {"model": "c/d"}},
    "tasks": {"sums": TASK},
}


def refusal(call: Callable[[], object]) -> str:
    """The message of the error, which must be short."""
    with pytest.raises(UserError) as caught:
        call()
    message = str(caught.value)
    assert len(message.splitlines()) <= 2
    return message


def refused(*overrides: str, **changes: Any) -> str:
    return refusal(lambda: recipe_from_dict(RAW | changes, overrides))


def written(folder: Path, text: str) -> Path:
    path = folder / "trial.yaml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("changes", "key", "nearest"),
    [
        ({"step": 3}, "step", "steps"),
        ({"samplin": {}}, "samplin", "sampling"),
        ({"sampling": {"groupsize": 3}}, "sampling.groupsize", "group_size"),
        ({"update": {"minibatches": 3}}, "update.minibatches", "mini_batches"),
        ({"agents": {"kim": {"modle": "a"}}}, "agents.kim.modle", "model"),
        (
            {"tasks": {"sums": TASK | {"verifier": {"type": "math", "last_numbr": True}}}},
            "tasks.sums.verifier.last_numbr",
            "last_number",
        ),
        (
            {"tasks": {"sums": TASK | {"source": {"type": "jsonl", "pth": "x", "path": "x"}}}},
            "tasks.sums.source.pth",
            "path",
        ),
        (
            {"tasks": {"sums": TASK | {"instructions": "x"}}},
            "tasks.sums.instructions",
            "instruction",
        ),
    ],
)
def test_an_unknown_key_is_refused_with_the_nearest(
    changes: dict[str, Any], key: str, nearest: str
) -> None:
    assert f"unknown key {key}; did you mean {nearest}?" in refused(**changes)


def test_an_unknown_key_like_no_other_lists_those_that_are_known() -> None:
    assert "the keys here are alpha, length, level" in refused(ratio={"xyzzy": 1})


def test_a_missing_key_is_named() -> None:
    assert "missing key agents.kim.model" in refused(agents={"kim": {"dtype": "float32"}})


def test_a_wrong_value_is_named_with_its_key() -> None:
    message = refused(sampling={"temperature": 0})
    assert "sampling.temperature" in message
    assert "got 0" in message


def test_several_problems_are_counted() -> None:
    assert "(and 1 more)" in refused(step=3, stepss=4)


def test_a_long_or_multi_line_value_stays_short() -> None:
    assert len(refused(steps="word\n" * 1000)) < 400
    assert len(refused(**{"key\n" * 1000: 1})) < 500  # it lists the known ones


def test_a_section_that_is_no_mapping_is_named_as_such() -> None:
    assert refused(clip=5, method="grpo").startswith("recipe: clip: ")


@pytest.mark.parametrize(
    ("text", "line", "key"),
    [
        ("name: a\nsteps: 1\nname: b\n", 3, "name"),
        ("agents:\n  kim: {model: a}\n  lee: {model: b}\n  kim: {model: c}\n", 4, "kim"),
    ],
)
def test_a_key_given_twice_is_refused(tmp_path: Path, text: str, line: int, key: str) -> None:
    message = refusal(lambda: load_recipe(written(tmp_path, text)))
    assert f"trial.yaml: line {line}: key {key} is given twice" in message


@pytest.mark.parametrize(
    "text",
    [
        "",
        "- a\n",
        "a: [1\n",
        "? [a, b]\n: 1\n",
        "&loop name: *loop\n",
        "name: &loop [*loop]\n",
        "name: &loop {a: *loop}\n",
        "name: 2020-13-45\n",
        "name: 0x_\n",
        "steps: " + "9" * 5000,
        "name: " + "[" * 3000,
        "name: !!python/object:os.system x\n",
        "name: \x07\n",
    ],
)
def test_a_malformed_file_is_named(tmp_path: Path, text: str) -> None:
    assert "trial.yaml" in refusal(lambda: load_recipe(written(tmp_path, text)))


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    assert "none.yaml" in refusal(lambda: load_recipe(tmp_path / "none.yaml"))
    assert "cannot be read" in refusal(lambda: load_recipe(tmp_path))
    (tmp_path / "latin.yaml").write_bytes("name: é".encode("latin-1"))
    assert "not UTF-8" in refusal(lambda: load_recipe(tmp_path / "latin.yaml"))


def test_exponents_without_a_dot_are_numbers(tmp_path: Path) -> None:
    text = yaml.safe_dump(RAW) + "optimizer: {learning_rate: 1e-4, epsilon: 1E-9}\n"
    recipe = load_recipe(written(tmp_path, text), ["clip.own_low=2e-4"])
    assert recipe.optimizer.learning_rate == 1e-4
    assert recipe.optimizer.epsilon == 1e-9
    assert recipe.clip.own_low == 2e-4


def test_overrides_win() -> None:
    overrides = ["steps=7", "agents.kim.model=e/f", "sharing={kim: [lee]}", "sampling.group_size=3"]
    recipe = recipe_from_dict(RAW, overrides)
    assert recipe.steps == 7
    assert recipe.agents["kim"].model == "e/f"
    assert recipe.sharing == {"kim": ["lee"]}
    assert recipe.group_size == 3
    assert RAW["steps"] == 2


def test_an_override_can_add_an_agent() -> None:
    assert list(recipe_from_dict(RAW, ["agents.max.model=g/h"]).agents) == ["kim", "lee", "max"]


@pytest.mark.parametrize(
    ("overrides", "part"),
    [
        (["sampling.top_k=50"], "unknown key sampling.top_k: it would sample from another distrib"),
        (["sampling.min_p=0.1"], "the one that ratios are computed for; use sampling.temperature"),
        (["stesp=3"], "unknown key stesp; did you mean steps?"),
        (["agents.kim.modle=x"], "unknown key agents.kim.modle; did you mean model?"),
        (["steps.more=3"], "override steps.more: steps is 2, not a group of keys"),
        (["steps"], "override 'steps': write it as dotted.key=value"),
        (["=3"], "write it as dotted.key=value"),
        (["sampling..x=3"], "write it as dotted.key=value"),
        (["steps=3", "steps=4"], "override steps: given twice"),
        (["clip={delta: 0.1}", "clip.delta=0.2"], "override clip: contradicts override clip.delta"),
        (["steps=[1"], "override 'steps=[1'"),
        (["clip={delta: 1, delta: 0}"], "key delta is given twice"),
        (["method=hcapo"], "method: "),
    ],
)
def test_an_override_is_never_lost(overrides: list[str], part: str) -> None:
    assert part in refused(*overrides)


def test_what_a_recipe_says_itself_wins_over_its_method() -> None:
    recipe = recipe_from_dict(RAW | {"method": "hacpo", "advantage": {"discrepancy": False}})
    assert not recipe.advantage.discrepancy
    assert recipe.advantage.capability_aware


@pytest.mark.parametrize("method", method_names())
def test_a_resolved_recipe_reads_back_the_same(method: str) -> None:
    recipe = recipe_from_dict(RAW | {"method": method, "sampling": {"temperature": 0.7}})
    assert recipe_from_dict(yaml.safe_load(recipe_to_yaml(recipe))) == recipe


@pytest.mark.parametrize("new", method_names())
@pytest.mark.parametrize("old", method_names())
def test_a_resolved_recipe_takes_another_method(old: str, new: str) -> None:
    resolved = yaml.safe_load(recipe_to_yaml(recipe_from_dict(RAW | {"method": old})))
    assert recipe_from_dict(resolved, [f"method={new}"]) == recipe_from_dict(RAW | {"method": new})


def test_a_method_that_the_file_contradicts_must_be_settled() -> None:
    own = {"method": "hacpo", "clip": {"cross": "none"}}
    assert "adding clip.cross=…" in refused("method=naive", **own)
    settled = recipe_from_dict(RAW | own, ["method=naive", "clip.cross=none"])
    assert settled.method == "naive"
    assert settled.clip.cross == "none"
    assert settled.ratio.alpha == 0.0


def test_numbers_that_no_method_fixes_survive_a_change_of_method() -> None:
    recipe = recipe_from_dict(RAW | {"clip": {"delta": 0.4}}, ["method=gspo"])
    assert recipe.clip.delta == 0.4


KEYS = [
    *("name", "steps", "method", "sharing", "agents", "agents.kim", "agents.kim.model"),
    *("agents.kim.template_args", "agents.kim.stop", "tasks", "tasks.sums", "tasks.sums.source"),
    *("tasks.sums.source.type", "tasks.sums.source.config", "tasks.sums.verifier"),
    *("tasks.sums.verifier.type", "sampling", "clip.own_low", "prompts", "verification.workers"),
    *("optimizer.betas", "ratio", "capability.metric", "threads"),
]
WORDS = st.sampled_from(["type", "jsonl", "reasoning_gym", "math", "kim", "lee", "model", "nobody"])
GARBAGE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.dates() | WORDS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text() | WORDS | st.integers() | st.none(), inner, max_size=4)
    ),
    max_leaves=10,
)


def recipe_or_short_refusal(raw: dict[str, Any], overrides: list[str]) -> None:
    message = ""
    try:
        recipe_from_dict(raw, overrides)
    except UserError as error:
        message = str(error)
    assert len(message.splitlines()) <= 2


@given(st.sampled_from(KEYS), GARBAGE)
def test_garbage_in_a_recipe_is_refused_briefly(key: str, value: object) -> None:
    raw = copy.deepcopy(RAW)
    *parents, last = key.split(".")
    node = raw
    for parent in parents:
        node = node.setdefault(parent, {})
    node[last] = value
    recipe_or_short_refusal(raw, [])
    recipe_or_short_refusal(raw, ["method=naive", "agents.kim.device=cpu"])


@given(st.dictionaries(st.text() | st.integers(), GARBAGE))
def test_a_garbage_recipe_is_refused_briefly(raw: dict[Any, Any]) -> None:
    recipe_or_short_refusal(raw, [])


@given(st.sampled_from(KEYS), st.text() | GARBAGE.map(str))
def test_a_garbage_override_is_refused_briefly(key: str, text: str) -> None:
    recipe_or_short_refusal(RAW, [f"{key}={text}"])
    recipe_or_short_refusal(RAW, [text])


@pytest.mark.parametrize("value", ["off", "Off", "OFF"])
def test_words_that_yaml_takes_for_switches_are_what_the_key_wants(
    tmp_path: Path, value: str
) -> None:
    text = yaml.safe_dump(RAW) + (
        f"update: {{autocast: {value}, gradient_checkpointing: on}}\n"
        f"advantage: {{guard: {value}, discrepancy: No}}\n"
    )
    recipe = load_recipe(
        written(tmp_path, text), ["agents.kim.template_args={enable_thinking: no}"]
    )
    assert recipe.update.autocast == "off"
    assert recipe.update.gradient_checkpointing
    assert not recipe.advantage.guard
    assert not recipe.advantage.discrepancy
    assert recipe.agents["kim"].template_args == {"enable_thinking": False}
    assert recipe_from_dict(RAW, ["update.autocast=off"]).update.autocast == "off"


@pytest.mark.parametrize(
    "name", ["no", "on", "Yes", "null", "true", "7", "1e3", "010", "2020-01-01"]
)
def test_an_agent_may_have_any_name(tmp_path: Path, name: str) -> None:
    raw = yaml.safe_dump({key: value for key, value in RAW.items() if key != "agents"})
    text = raw + f"agents:\n  {name}: {{model: a/b}}\n  lee: {{model: c/d}}\n"
    recipe = load_recipe(written(tmp_path, text), [f"agents.{name}.stop=[no, 'x']"])
    assert list(recipe.agents) == [name, "lee"]
    assert recipe.agents[name].stop == ["no", "x"]
    again = load_recipe(written(tmp_path, recipe_to_yaml(recipe)))
    assert again == recipe


@pytest.mark.parametrize(("text", "steps"), [("010", 10), ("1_000", 1000), ("0x10", 16), ("8", 8)])
def test_numbers_are_what_they_look_like(text: str, steps: int) -> None:
    assert recipe_from_dict(RAW, [f"steps={text}"]).steps == steps


@pytest.mark.parametrize("text", ["1:30", "2020-01-01", "true", "yes", "1.5", "0x_", "8 # eight"])
def test_what_is_no_number_is_refused(text: str) -> None:
    assert "steps" in refused(f"steps={text}")


@pytest.mark.parametrize("text", ["1:30", "2020-01-01", "1e5", "010", "no", "123e4567", "~", "0o7"])
def test_a_resolved_recipe_keeps_every_text(tmp_path: Path, text: str) -> None:
    raw = copy.deepcopy(RAW)
    raw["agents"]["kim"]["revision"] = raw["tasks"]["sums"]["system"] = text
    recipe = recipe_from_dict(raw)
    assert load_recipe(written(tmp_path, recipe_to_yaml(recipe))) == recipe


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("marker: ####", "marker has no value: #### is a comment"),
        ("marker: #### # the answer", "marker has no value"),
        ("marker: # the answer", "marker has no value"),
        ("marker:\n        ####", "marker has no value"),
        ("{type: exact, marker: ####}", "####} is a comment"),
        ("marker: Answer ####", "marker: #### is a comment"),
    ],
)
def test_a_value_that_became_a_comment_is_refused(tmp_path: Path, text: str, part: str) -> None:
    raw = {key: value for key, value in RAW.items() if key != "tasks"}
    end = text if text.startswith("{") else f"\n      type: exact\n      {text}\n"
    path = written(
        tmp_path,
        yaml.safe_dump(raw)
        + f"tasks:\n  sums:\n    source: {{type: jsonl, path: x.jsonl}}\n    verifier: {end}\n",
    )
    message = refusal(lambda: load_recipe(path))
    assert part in message
    assert "quote" in message


def test_comments_that_took_no_value_are_comments(tmp_path: Path) -> None:
    text = (
        "#### a recipe ####\n"
        "name: trial  # of a run\n"
        "steps: 2 #### as before\n"
        "prompts_per_step: 4\n"
        "evaluation:\n"
        "  # tasks: later\n"
        "checkpoints: {every: null}  # none\n"
        "threads: ~ # torch knows\n"
        "agents:\n"
        "  # the small one\n"
        "  kim:\n"
        "    #### its model\n"
        "    model: a/b\n"
        "  lee: {model: c/d, stop: [  # two\n"
        '    "####", x]}\n'
        "tasks:\n"
        "  sums: {source: {type: jsonl, path: x}, verifier: {type: exact, marker: null}}\n"
        "#### the end\n"
    )
    recipe = load_recipe(written(tmp_path, text))
    assert recipe.agents["lee"].stop == ["####", "x"]
    assert recipe.evaluation is None
    assert recipe.threads is None


@pytest.mark.parametrize("value", ["####", "#### ", "Answer: x ####", "#", "null # none", "a #b"])
def test_an_override_has_no_comments(value: str) -> None:
    message = refused(f"tasks.sums.verifier.marker={value}")
    assert "is a comment" in message or "mapping values" in message


def test_an_override_can_be_quoted_or_null() -> None:
    key = "tasks.sums.verifier.marker"
    for value, marker in (("'####'", "####"), ("null", None), ("~", None), ("a#b", "a#b")):
        recipe = recipe_from_dict(RAW, [f"{key}={value}"])
        assert recipe.tasks["sums"].verifier.marker == marker  # type: ignore[union-attr]


def test_half_characters_are_refused_and_halves_joined(tmp_path: Path) -> None:
    text = yaml.safe_dump(RAW)
    path = written(tmp_path, text + 'method: "\\ud83d"\n')
    assert "line" in refusal(lambda: load_recipe(path))
    assert "lone surrogate" in refusal(lambda: load_recipe(path))
    joined = load_recipe(written(tmp_path, text), [r'agents.kim.stop=["\ud83d\ude00"]'])
    assert joined.agents["kim"].stop == ["😀"]
    refused(name="a\ud800")


def test_true_is_no_number_and_a_number_no_text() -> None:
    assert "sampling.temperature: must be a number, got true" in refused(
        "sampling.temperature=true"
    )
    assert "put it into quotes" in refused("agents.kim.revision=1234567")


def test_a_section_that_a_name_stands_for_takes_overrides() -> None:
    recipe = recipe_from_dict(RAW | {"fleet": "ray"}, ["fleet.seconds=60"])
    assert (recipe.fleet.type, recipe.fleet.seconds) == ("ray", 60)

import json
from pathlib import Path

import pytest

from hacrl.audit import audit_golds
from hacrl.config.rollouts import Verification
from hacrl.config.sources import BENCHMARKS
from hacrl.errors import UserError
from hacrl.records import Outcome
from hacrl.tasks import REGISTRY, benchmark_tasks, load_problems, load_task


def test_the_registry_knows_the_seven() -> None:
    assert tuple(REGISTRY) == BENCHMARKS
    assert list(benchmark_tasks(["gsm8k", "all", "gsm8k"])) == [
        "gsm8k",
        *(name for name in BENCHMARKS if name != "gsm8k"),
    ]


@pytest.mark.parametrize(
    ("name", "first", "gold_end"),
    [
        ("math500", "Convert the", r"\right)"),
        ("math", "How many vertical", "asymptotes."),
        ("gsm8k", "Janet", "#### 18"),
        ("aime25", "Six points", "468"),
        ("amc23", "Cities", "27"),
        ("minerva_math", "Each of the", r"\]"),
        ("olympiadbench", "Xenia and", "2"),
    ],
)
def test_local_files(data: Path, name: str, first: str, gold_end: str) -> None:
    (task,) = benchmark_tasks([name], data).values()
    prompts = load_task(name, task)
    assert len(prompts) == REGISTRY[name].size
    assert prompts[0].text.startswith(first)
    assert prompts[0].text.endswith("put your final answer within \\boxed{}.")
    assert prompts[0].gold.endswith(gold_end)
    assert task.verifier.type == "math"


def test_worked_solutions_are_kept_for_the_audit(data: Path) -> None:
    tasks = benchmark_tasks(["math500", "aime25", "olympiadbench"], data)
    solutions = [load_problems(name, task)[0].solution for name, task in tasks.items()]
    assert [bool(solution) for solution in solutions] == [True, False, True]


@pytest.mark.parametrize(
    ("row", "gold"),
    [
        ({"problem": "?", "answer": 5.0, "solution": "so 6"}, "5"),
        ({"question": "?", "final_answer": ["5", "6"], "solution": ["so"]}, "5, 6"),
        ({"question": "?", "solution": r"so \boxed{5}", "answer": None}, r"so \boxed{5}"),
    ],
)
@pytest.mark.parametrize("suffix", ["jsonl", "json"])
def test_any_of_the_shapes(tmp_path: Path, row: dict[str, object], gold: str, suffix: str) -> None:
    (tmp_path / "amc23").mkdir()
    path = tmp_path / "amc23" / f"test.{suffix}"
    path.write_text(json.dumps([row] if suffix == "json" else row))
    assert load_task("a", benchmark_tasks(["amc23"], tmp_path)["amc23"])[0].gold == gold


def test_every_gold_is_right_against_itself(data: Path) -> None:
    rows = audit_golds(benchmark_tasks(["all"], data), Verification(), lambda done, total: None)
    assert len(rows) == sum(benchmark.size for benchmark in REGISTRY.values())
    amiss = {r.prompt.id: r.verdict.outcome for r in rows if r.verdict.outcome != Outcome.RIGHT}
    assert amiss == {}


def test_mistakes(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="--bench: there is no benchmark 'gsm8'; did you mean gsm"):
        benchmark_tasks(["math", "gsm8"])
    with pytest.raises(UserError, match=r"gsm8k: holds no test file \(\.jsonl, .*openai/gsm8k"):
        benchmark_tasks(["gsm8k"], tmp_path)
    (tmp_path / "gsm8k").mkdir()
    path = tmp_path / "gsm8k" / "test.jsonl"
    (task,) = benchmark_tasks(["gsm8k"], write(path, '{"problem": "?"}')).values()
    with pytest.raises(UserError, match=r"line 1: has none of the fields answer, final_answer, s"):
        load_task("gsm8k", task)


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path.parent.parent

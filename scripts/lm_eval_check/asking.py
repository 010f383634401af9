"""The same model and file, put by `hacrl eval` and by lm-eval."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import lm_eval  # type: ignore[import-not-found]
import yaml
from lm_eval.tasks import TaskManager  # type: ignore[import-not-found]

from hacrl.config import load_recipe
from hacrl.config.bundled import find_recipe
from hacrl.config.tasks import Task
from hacrl.evaluation.answers import Answer
from hacrl.evaluation.jobs import load_job
from hacrl.evaluation.runner import evaluate
from hacrl.evaluation.settings import Settings
from hacrl.evaluation.targets import find_targets
from hacrl.paths import resolve
from hacrl.training.train import train
from scripts.lm_eval_check.comparing import STOP_TEXTS

__all__ = ["demo_problems", "exported_agent", "our_answers", "their_samples"]

_NAME = "gsm8k_style"


class _Quiet:
    """A watcher that says nothing."""

    def note(self, text: str) -> None: ...

    def progress(self, place: str, new: int, *, stored: bool = False) -> None: ...


def exported_agent(folder: Path) -> Path:
    """What a run leaves behind: the demo's first agent after one small step."""
    small = ["steps=1", "prompts_per_step=4", "sampling.group_size=2"]
    return train(load_recipe(find_recipe("demo"), small), folder).agents["ada"]


def demo_problems(folder: Path) -> Path:
    """The demo's held-out problems in the shape of GSM8K."""
    lines = resolve("bundled:demo/assets/heldout.jsonl").read_text("utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    path = folder / "problems.jsonl"
    path.write_text(
        "".join(
            json.dumps({"question": row["question"], "answer": f"#### {row['answer']}"}) + "\n"
            for row in rows
        )
    )
    return path


def our_answers(
    model: Path, file: Path, instruction: str, settings: Settings, limit: int, folder: Path
) -> Sequence[Answer]:
    """Greedy answers as `hacrl eval` makes them."""
    task = Task.model_validate(
        {
            "source": {"type": "jsonl", "path": str(file)},
            "instruction": instruction,
            "verifier": {"type": "math"},
        }
    )
    job = load_job(_NAME, task, settings, limit)
    targets = find_targets([str(model)], device="cpu")
    (result,) = evaluate(targets, [job], folder / "ours", _Quiet())
    return result.answers


def their_samples(
    model: Path, file: Path, instruction: str, settings: Settings, limit: int, folder: Path
) -> Mapping[int, Mapping[str, Any]]:
    """lm-eval's samples by row, with GSM8K's filter and metric."""
    task = {
        "task": _NAME,
        "dataset_path": "json",
        "dataset_kwargs": {"data_files": {"test": str(file)}},
        "test_split": "test",
        "output_type": "generate_until",
        "doc_to_text": instruction.replace("{question}", "{{question}}"),
        "doc_to_target": "{{answer}}",
        "num_fewshot": 0,
        "generation_kwargs": {
            "until": STOP_TEXTS,
            "do_sample": False,
            "max_gen_toks": settings.max_new_tokens,
        },
        "metric_list": [
            {
                "metric": "exact_match",
                "aggregation": "mean",
                "higher_is_better": True,
                "ignore_case": True,
                "ignore_punctuation": False,
                "regexes_to_ignore": [",", "\\$", "(?s).*#### ", "\\.$"],
            }
        ],
        "filter_list": [
            {
                "name": "strict-match",
                "filter": [
                    {"function": "regex", "regex_pattern": r"####\s?(\-?[0-9\.\,]+)"},
                    {"function": "take_first"},
                ],
            }
        ],
    }
    tasks = folder / "tasks"
    tasks.mkdir()
    (tasks / f"{_NAME}.yaml").write_text(yaml.safe_dump(task))
    found = lm_eval.simple_evaluate(
        model="hf",
        model_args={"pretrained": str(model), "dtype": "float32"},
        tasks=[_NAME],
        task_manager=TaskManager(include_path=str(tasks)),
        device="cpu",
        batch_size=16,
        limit=limit,
        log_samples=True,
        bootstrap_iters=0,
        apply_chat_template=_has_template(model),
    )
    return {sample["doc_id"]: sample for sample in found["samples"][_NAME]}


def _has_template(model: Path) -> bool:
    """Whether the model comes with a chat template, which both sides then apply."""
    config = json.loads((model / "tokenizer_config.json").read_text("utf-8"))
    return (model / "chat_template.jinja").is_file() or bool(config.get("chat_template"))

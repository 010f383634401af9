"""Run the check; see the package."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # read when the libraries are imported
os.environ.setdefault("HF_DATASETS_OFFLINE", "1")
os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
os.environ.setdefault("HF_DATASETS_DISABLE_PROGRESS_BARS", "1")

from hacrl.evaluation.settings import Settings
from scripts.lm_eval_check import asking
from scripts.lm_eval_check.comparing import report


def main() -> int:
    """Compare, print what was found, return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m scripts.lm_eval_check")
    parser.add_argument("--model", type=Path, help="model folder; default: a demo agent")
    parser.add_argument("--file", type=Path, help="JSON lines of question and answer")
    parser.add_argument("--instruction", default="{question}", help="the user's turn")
    parser.add_argument("--limit", type=int, default=100, help="problems")
    parser.add_argument("--max-new-tokens", type=int, default=64)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model = options.model or asking.exported_agent(folder)
        file = options.file.resolve() if options.file else asking.demo_problems(folder)
        settings = Settings(max_new_tokens=options.max_new_tokens)
        same = (model, file, options.instruction, settings, options.limit, folder)
        ours = asking.our_answers(*same)
        theirs = asking.their_samples(*same)
    return report(ours, theirs)


if __name__ == "__main__":
    sys.exit(main())

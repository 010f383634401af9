"""`hacrl eval` from beginning to end."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from hacrl.config.bounds import Count, Rows, within
from hacrl.console.terminal import say
from hacrl.evaluation.jobs import chosen_tasks, load_job
from hacrl.evaluation.report import print_failures, report
from hacrl.evaluation.runner import evaluate
from hacrl.evaluation.settings import chosen_settings
from hacrl.evaluation.targets import find_targets, without_thinking
from hacrl.evaluation.watching import watch
from hacrl.phases import finish_phase_on_interrupt

__all__ = ["run_eval"]


def run_eval(
    targets: Sequence[str],
    console: Console,
    *,
    benchmarks: Sequence[str],
    recipes: Sequence[str],
    files: Sequence[Path],
    data: Path | None,
    paper: bool,
    limit: int | None,
    samples: int | None,
    temperature: float | None,
    max_new_tokens: int | None,
    batch_size: int | None,
    dtype: str | None,
    device: str | None,
    failures: int,
    root: Path,
) -> None:
    """Evaluate, print the table, write it below `root`. `hacrl eval --help` has the options.

    Raises:
        UserError: something that the user can mend.
        Interrupted: Ctrl-C, after the chunk in progress; what is done is kept.
    """
    for option, bound, value in (("--limit", Rows, limit), ("--batch-size", Count, batch_size)):
        if value is not None:
            within(bound, value, option)
    tasks, rule = chosen_tasks(benchmarks, recipes, files, data)
    settings = {
        name: chosen_settings(
            name,
            paper=paper,
            samples=samples,
            temperature=temperature,
            max_new_tokens=max_new_tokens,
        )
        for name in tasks
    }
    agents = find_targets(targets, dtype=dtype, device=device)
    jobs = [load_job(name, task, settings[name], limit) for name, task in tasks.items()]
    if paper:
        agents = [without_thinking(agent) for agent in agents]
    total = len(agents) * sum(job.responses for job in jobs)
    with watch(total, console) as watcher, finish_phase_on_interrupt() as stop:
        results = evaluate(agents, jobs, root, watcher, rule=rule, batch_size=batch_size, stop=stop)
    report(results, root, console)
    if failures:
        print_failures(results, failures, console)
    say(console, f"responses and results: {root}")

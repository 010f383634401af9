"""The command `hacrl eval`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from hacrl.cli.arguments import DataOption, EvaluationsOption, split_names
from hacrl.config.bounds import Count, Rows, within
from hacrl.console.terminal import INTERRUPTED, make_console, quieten_libraries, say
from hacrl.phases import Interrupted, finish_phase_on_interrupt

__all__ = ["evaluate"]


class Preset(StrEnum):
    """Named settings of an evaluation."""

    PAPER = "paper"


class Dtype(StrEnum):
    """Types that weights may have."""

    FLOAT32 = "float32"
    BFLOAT16 = "bfloat16"
    FLOAT16 = "float16"


def evaluate(
    targets: Annotated[
        list[str],
        typer.Argument(
            metavar="TARGET",
            help="Run folders, checkpoints, model folders, recipes, Hub models.",
            show_default=False,
        ),
    ],
    bench: Annotated[
        str, typer.Option(metavar="NAMES", help="Benchmarks, such as gsm8k,math500, or all.")
    ] = "",
    task: Annotated[
        list[str] | None,
        typer.Option(metavar="RECIPE[:TASK]", help="Held-out tasks of a recipe, or its tasks."),
    ] = None,
    file: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="Problems with the fields question and answer."),
    ] = None,
    data: DataOption = None,
    preset: Annotated[
        Preset | None,
        typer.Option(help="paper: 8,192 tokens, thinking off, best@30 on aime25."),
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first N problems.")] = None,
    samples: Annotated[
        int | None, typer.Option(min=1, help="Responses per problem; sampled if several.")
    ] = None,
    temperature: Annotated[
        float | None, typer.Option(min=1e-3, help="Sample at this temperature.")
    ] = None,
    max_new_tokens: Annotated[
        int | None, typer.Option(min=1, help="Longest response; default: 1024 tokens.")
    ] = None,
    batch_size: Annotated[
        int | None, typer.Option(min=1, help="Responses at once; default: automatic.")
    ] = None,
    dtype: Annotated[Dtype | None, typer.Option(help="Of the weights.")] = None,
    device: Annotated[str | None, typer.Option(help="A torch device.")] = None,
    show_failures: Annotated[
        int, typer.Option(min=0, metavar="N", help="Show N responses that are not right.")
    ] = 0,
    out: EvaluationsOption = Path("evaluations"),
) -> None:
    """Evaluate agents on benchmarks.

    One greedy response per problem by default. Every response is stored with its verdict below DIR,
    as are results.json, .csv and .md. Stored responses are reused: the same command continues
    after Ctrl-C, and adds what is new.

    \b
    Benchmarks: math500, math, gsm8k, aime25, amc23, minerva_math, olympiadbench

    \b
    Examples:
      hacrl eval runs/first --bench gsm8k,math500
      hacrl eval runs/first my.yaml --task my.yaml
      hacrl eval Qwen/Qwen3-4B --bench all --preset paper
      hacrl eval runs/first/agents/kim --file mine.jsonl --samples 8
      hacrl eval models/kim --bench gsm8k --data ../data --limit 50
    """
    quieten_libraries()
    from hacrl.evaluation.jobs import chosen_tasks, load_job
    from hacrl.evaluation.report import print_failures, report
    from hacrl.evaluation.runner import evaluate as put_jobs
    from hacrl.evaluation.settings import chosen_settings
    from hacrl.evaluation.targets import find_targets, without_thinking
    from hacrl.evaluation.watching import watch

    for option, bound, value in (("--limit", Rows, limit), ("--batch-size", Count, batch_size)):
        if value is not None:
            within(bound, value, option)
    paper = preset is Preset.PAPER
    tasks, rule = chosen_tasks(split_names(bench), task or [], file or [], data)
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
    agents = find_targets(targets, dtype=None if dtype is None else dtype.value, device=device)
    jobs = [load_job(name, task, settings[name], limit) for name, task in tasks.items()]
    if paper:
        agents = [without_thinking(agent) for agent in agents]
    console = make_console()
    total = len(agents) * sum(job.responses for job in jobs)
    try:
        with watch(total, console) as watcher, finish_phase_on_interrupt() as stop:
            results = put_jobs(
                agents, jobs, out, watcher, rule=rule, batch_size=batch_size, stop=stop
            )
    except Interrupted as error:
        say(console, f"interrupted; finished responses are in {out}; the same command continues")
        raise typer.Exit(INTERRUPTED) from error
    report(results, out, console)
    if show_failures:
        print_failures(results, show_failures, console)
    say(console, f"responses and results: {out}")

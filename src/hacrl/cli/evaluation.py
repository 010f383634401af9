"""The commands `hacrl eval` and `hacrl compare`. Thin, as `cli.py`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from hacrl.console.terminal import INTERRUPTED, make_console, quieten_libraries, say
from hacrl.phases import Interrupted

__all__ = ["compare", "evaluate"]

Out = Annotated[
    Path, typer.Option("--out", metavar="DIR", help="Where responses and results are kept.")
]


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
    data: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Local benchmarks: DIR/NAME/test.jsonl."),
    ] = None,
    preset: Annotated[
        Preset | None,
        typer.Option(help="paper: 8,192 tokens, thinking off, best@30 on aime25."),
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="The first problems only.")] = None,
    samples: Annotated[
        int | None, typer.Option(min=1, help="Responses per problem, drawn if several.")
    ] = None,
    temperature: Annotated[
        float | None, typer.Option(min=1e-3, help="Draw at it instead of greedily.")
    ] = None,
    max_new_tokens: Annotated[
        int | None, typer.Option(min=1, help="Longest response; 1024 unless given.")
    ] = None,
    batch_size: Annotated[
        int | None, typer.Option(min=1, help="Responses at once; found automatically.")
    ] = None,
    dtype: Annotated[Dtype | None, typer.Option(help="Of the weights.")] = None,
    device: Annotated[str | None, typer.Option(help="A torch device.")] = None,
    show_failures: Annotated[
        int, typer.Option(min=0, metavar="N", help="Show N responses that are not right.")
    ] = 0,
    out: Out = Path("evaluations"),
) -> None:
    """Put benchmarks to agents, and count what they get right.

    One greedy response per problem, unless told otherwise. Every response is kept with its verdict
    below DIR, beside results.json, .csv and .md. Whatever is there already is not asked again: the
    same command continues after Ctrl-C, and adds what is new.

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
    from hacrl.evaluation.command import run_eval

    console = make_console()
    try:
        run_eval(
            targets,
            console,
            benchmarks=_names(bench),
            recipes=task or [],
            files=file or [],
            data=data,
            paper=preset is Preset.PAPER,
            limit=limit,
            samples=samples,
            temperature=temperature,
            max_new_tokens=max_new_tokens,
            batch_size=batch_size,
            dtype=None if dtype is None else dtype.value,
            device=device,
            failures=show_failures,
            root=out,
        )
    except Interrupted as error:
        say(console, f"interrupted; what is done is kept in {out}, the same command continues")
        raise typer.Exit(INTERRUPTED) from error


def compare(
    targets: Annotated[
        list[str],
        typer.Argument(
            metavar="TARGET",
            help="Two or more, as for hacrl eval; the first is compared with.",
            show_default=False,
        ),
    ],
    bench: Annotated[
        str, typer.Option(metavar="NAMES", help="Only these; all that is stored unless given.")
    ] = "",
    out: Out = Path("evaluations"),
) -> None:
    """Compare agents on the problems that both have answered.

    Takes the responses that hacrl eval has stored, or those of the last evaluation in training.
    Agents of the same name in two runs are paired, else all are compared with the first. Shows the
    difference with a paired bootstrap interval, and how many problems were gained and lost.

    \b
    Examples:
      hacrl compare runs/gspo runs/hacpo
      hacrl compare models/before runs/first/agents/kim --bench gsm8k
    """
    quieten_libraries()
    from hacrl.evaluation.compare import run_compare

    run_compare(targets, out, _names(bench), make_console())


def _names(text: str) -> list[str]:
    return [name for name in text.replace(" ", "").split(",") if name]

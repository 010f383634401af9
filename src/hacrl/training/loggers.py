"""Metrics for TensorBoard, Weights & Biases and trackio: one thin adapter each.

Names are those of `metrics.jsonl`, flattened: `agent/key/…`, and `agent/evaluation/task/key` for
`evaluations.jsonl`. The step is the number of completed steps everywhere. Gaps and texts are not
logged.
"""

from __future__ import annotations

import contextlib
import io
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

from hacrl.config import Recipe
from hacrl.config.loggers import LoggerSpec, TensorBoardLogger, TrackioLogger, WandbLogger
from hacrl.errors import UserError

__all__ = ["Loggers", "check_loggers", "flatten"]

Row = Mapping[str, Any]

_LONGEST = 200
"""Characters of somebody else's message that a note repeats."""


class _Logger(Protocol):
    """One place that metrics are sent to. May raise anything."""

    def log(self, values: Mapping[str, float], step: int) -> None: ...

    def finish(self) -> None: ...


def check_loggers(specs: Iterable[LoggerSpec]) -> None:
    """See that the package of every logger is installed.

    Raises:
        UserError: one is missing.
    """
    for spec in specs:
        try:
            version(spec.type)
        except PackageNotFoundError as error:
            raise UserError(
                f"loggers: {spec.type} is not installed\n"
                f'pip install "hacrl[{spec.type}]", or leave it out with loggers=[]'
            ) from error


def flatten(values: Mapping[str, Any], prefix: str = "") -> dict[str, float]:
    """Numbers of a nested mapping by their path, such as `sources/lee/teaching`."""
    flat: dict[str, float] = {}
    for key, value in values.items():
        if isinstance(value, Mapping):
            flat |= flatten(value, f"{prefix}{key}/")
        elif isinstance(value, int | float):  # a flag counts as 0 or 1
            flat[f"{prefix}{key}"] = value
    return flat


class Loggers:
    """All loggers of a run. A context manager.

    One that fails, at whatever moment, is switched off with a note; the run goes on.

    Args:
        recipe: of the run; it is logged as well.
        folder: of the run.
        note: called with a message when a logger is switched off.
        start: completed steps of a run that is resumed; what was logged after them is logged again.
    """

    def __init__(
        self, recipe: Recipe, folder: Path, note: Callable[[str], None], start: int = 0
    ) -> None:
        self._note = note
        self._active: dict[str, _Logger] = {}
        for i, spec in enumerate(recipe.loggers):
            name = f"loggers.{i} ({spec.type})"
            with self._guard(name), _quiet():
                self._active[name] = _open(spec, recipe, folder, start)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for name, logger in self._active.items():
            with self._guard(name), _quiet():
                logger.finish()

    def step(self, rows: Sequence[Row]) -> None:
        """Log the metrics of a step, one row per agent as in `metrics.jsonl`."""
        if rows:
            values = {row["agent"]: {k: v for k, v in row.items() if k != "step"} for row in rows}
            self._log(flatten(values), rows[0]["step"] + 1)

    def evaluations(self, rows: Sequence[Row]) -> None:
        """Log lines of `evaluations.jsonl`, all after the same step."""
        flat: dict[str, float] = {}
        for row in rows:
            values = {key: value for key, value in row.items() if key != "step"}
            flat |= flatten(values, f"{row['agent']}/evaluation/{row['task']}/")
        if rows:
            self._log(flat, rows[0]["step"])

    def _log(self, values: Mapping[str, float], step: int) -> None:
        for name, logger in list(self._active.items()):
            with self._guard(name):
                logger.log(values, step)

    @contextlib.contextmanager
    def _guard(self, name: str) -> Iterator[None]:
        """Switch a logger off if it fails in the block."""
        try:
            yield
        # Other people's code, which talks to networks, disks and processes of its own and may raise
        # anything. Hours of training must not end because of a curve.
        except Exception as error:  # noqa: BLE001
            self._active = {key: value for key, value in self._active.items() if key != name}
            reason = " ".join(str(error).split())[:_LONGEST]
            self._note(f"{name} is switched off: {type(error).__name__} {reason}".rstrip())


def _quiet() -> contextlib.redirect_stdout[io.StringIO]:
    """Swallows the greetings of libraries, which would stand amid our output."""
    return contextlib.redirect_stdout(io.StringIO())


def _open(spec: LoggerSpec, recipe: Recipe, folder: Path, start: int) -> _Logger:
    if isinstance(spec, TensorBoardLogger):
        return _TensorBoard(spec, recipe, folder, start)
    if isinstance(spec, WandbLogger):
        return _Wandb(spec, recipe, folder)
    return _Trackio(spec, recipe, start)


class _TensorBoard:
    def __init__(self, spec: TensorBoardLogger, recipe: Recipe, folder: Path, start: int) -> None:
        from torch.utils.tensorboard import SummaryWriter

        place = folder / "tensorboard" if spec.folder is None else Path(spec.folder) / recipe.name
        self._writer = SummaryWriter(str(place), purge_step=start + 1 if start else None)

    def log(self, values: Mapping[str, float], step: int) -> None:
        for name, value in values.items():
            self._writer.add_scalar(name, value, step)
        self._writer.flush()

    def finish(self) -> None:
        self._writer.close()


class _Wandb:
    def __init__(self, spec: WandbLogger, recipe: Recipe, folder: Path) -> None:
        import wandb

        # A resumed run continues its curves. The file goes when the run folder is replaced.
        remembered = folder / "wandb-id"
        if not remembered.exists():
            remembered.write_text(uuid.uuid4().hex, "utf-8")
        self._run = wandb.init(
            id=remembered.read_text("utf-8"),
            resume="allow",
            project=spec.project,
            entity=spec.entity,
            group=spec.group,
            tags=spec.tags,
            mode=spec.mode,
            name=recipe.name,
            dir=str(folder),
            config=recipe.model_dump(mode="json"),
            settings=wandb.Settings(silent=True, console="off"),
        )

    def log(self, values: Mapping[str, float], step: int) -> None:
        self._run.log(dict(values), step=step)

    def finish(self) -> None:
        self._run.finish()


class _Trackio:
    def __init__(self, spec: TrackioLogger, recipe: Recipe, start: int) -> None:
        import trackio

        self._run = trackio.init(
            resume="allow" if start else "never",
            project=spec.project,
            name=recipe.name,
            group=spec.group,
            space_id=spec.space_id,
            config=recipe.model_dump(mode="json"),
            embed=False,
        )
        self._finish: Callable[[], object] = trackio.finish

    def log(self, values: Mapping[str, float], step: int) -> None:
        self._run.log(dict(values), step=step)

    def finish(self) -> None:
        self._finish()  # the run's own method would leave it to be finished again at exit

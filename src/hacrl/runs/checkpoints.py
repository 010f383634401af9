"""Joint checkpoints on disk: all agents of a run at the end of the same step.

checkpoints/step-N/
  manifest.json         size and SHA-256 of every other file; its presence makes it complete
  recipe.yaml           resolved
  run.json              see `Progress`
  agents/<name>/        an ordinary Hugging Face folder, and what the agent learns on from:
                        optimizer.safetensors, learner.json, agent.json

There is no random state among this: every draw is derived from the run's seed and the place where
it is made (`hacrl.seeding`).
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from safetensors import SafetensorError

from hacrl.config import Recipe, load_recipe, recipe_to_yaml
from hacrl.errors import UserError
from hacrl.runs.sealing import damage, write_sealed
from hacrl.runs.writing import why_not_written

__all__ = [
    "Checkpoint",
    "Progress",
    "best_checkpoint",
    "checkpoints",
    "newest_checkpoint",
    "prune",
    "set_aside",
    "write_checkpoint",
]

_FOLDER = re.compile(r"step-(\d{6,})")


@dataclass(frozen=True, slots=True)
class Progress:
    """What a run continues from besides its agents.

    Args:
        completed: steps.
        capability: the window of rewards of each agent; see `CapabilityTracker.state`.
        data: fingerprint of the prompts of each task. The position in them is `completed`.
        score: by which the best checkpoint is chosen, None if there is none.
        lengths: bytes of the files that grow, by name.
        versions: of the libraries whose arithmetic matters, by name.
        machines: where each agent computed; see `hacrl.fleet.machine`.
        files: marks of the files that the recipe names; see `named_files`. A checkpoint of an
            earlier version of this package has none.
    """

    completed: int
    capability: Mapping[str, Sequence[float | None]]
    data: Mapping[str, str]
    score: float | None
    lengths: Mapping[str, int]
    versions: Mapping[str, str]
    machines: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A complete checkpoint. Its files have not been read yet, but for their hashes."""

    path: Path

    @property
    def step(self) -> int:
        """Steps that had been completed."""
        return int(self.path.name.removeprefix("step-"))

    @property
    def agents(self) -> Path:
        """Holds a folder for each agent."""
        return self.path / "agents"

    def recipe(self) -> Recipe:
        """As it was then.

        Raises:
            UserError: it was written by another version of this package, with other keys.
        """
        return load_recipe(self.path / "recipe.yaml")

    def progress(self) -> Progress:
        """What the run continues from.

        Raises:
            UserError: it was written by another version of this package.
        """
        try:
            return Progress(**json.loads((self.path / "run.json").read_text("utf-8")))
        except (ValueError, TypeError) as error:
            raise UserError(
                f"checkpoint {self.path}: run.json is of another version of hacrl ({error})"
            ) from error


def write_checkpoint(
    root: Path,
    progress: Progress,
    recipe: Recipe,
    save_agents: Callable[[Path], None],
    keep: int,
) -> Checkpoint:
    """Write a checkpoint whole, then drop what is to be kept no longer.

    Args:
        root: the folder `checkpoints` of a run.
        save_agents: writes a folder for each agent into the one that it is given.
        keep: how many of the newest stay; the one with the best score stays besides.

    Raises:
        UserError: it cannot be written. What was there before is as it was.
    """
    path = root / f"step-{progress.completed:06d}"

    def write(part: Path) -> None:
        (part / "recipe.yaml").write_text(recipe_to_yaml(recipe), "utf-8")
        (part / "run.json").write_text(json.dumps(asdict(progress), indent=2) + "\n", "utf-8")
        (part / "agents").mkdir()
        save_agents(part / "agents")

    try:
        write_sealed(path, write)
    except (OSError, SafetensorError) as error:
        last = max((c.step for c in checkpoints(root)), default=None)
        kept = "there was none before" if last is None else f"step-{last:06d} is intact"
        raise UserError(
            f"checkpoint {path}: cannot be written ({why_not_written(error)}); {kept}. Fix "
            "the cause, such as a full disk, and continue with --resume"
        ) from error
    prune(root, progress.completed, keep)
    return Checkpoint(path)


def checkpoints(root: Path) -> list[Checkpoint]:
    """All that look complete, oldest first. Their contents are not looked at."""
    folders = root.iterdir() if root.is_dir() else ()
    names = (folder for folder in folders if _FOLDER.fullmatch(folder.name))
    return sorted((Checkpoint(folder) for folder in names), key=lambda c: c.step)


def newest_checkpoint(root: Path) -> tuple[Checkpoint | None, list[str]]:
    """The newest checkpoint that is as it was written, and why newer ones are not.

    Crashes leave folders that were never completed; these are passed over and named as well.
    """
    passed_over = [
        f"{path.name.removesuffix('.part')}: it was not completely written or removed"
        for path in sorted(root.glob("step-*.part"))
    ]
    for checkpoint in reversed(checkpoints(root)):
        problem = damage(checkpoint.path)
        if problem is None:
            return checkpoint, passed_over
        passed_over.append(f"{checkpoint.path.name}: {problem}")
    return None, passed_over


def best_checkpoint(root: Path) -> Checkpoint | None:
    """The one with the highest score, the newest of equal ones; None if none has a score."""
    scored = [(score, c.step, c) for c in checkpoints(root) if (score := _score(c)) is not None]
    return max(scored)[-1] if scored else None


def _score(checkpoint: Checkpoint) -> float | None:
    try:
        return checkpoint.progress().score
    except (UserError, OSError):  # a damaged one cannot be the best
        return None


def set_aside(root: Path, step: int | None) -> Checkpoint | None:
    """Set the checkpoint after `step` steps aside, since its agents turned out useless.

    Args:
        step: None if they have no checkpoint yet.

    Returns:
        The newest that is left, None if there is none.
    """
    for checkpoint in checkpoints(root):
        if checkpoint.step == step:
            aside = checkpoint.path.with_name(checkpoint.path.name + ".not-finite")
            shutil.rmtree(aside, ignore_errors=True)
            checkpoint.path.rename(aside)
    return newest_checkpoint(root)[0]


def prune(root: Path, completed: int, keep: int) -> None:
    """Remove the checkpoints that are no longer kept after `completed` steps.

    A folder that goes becomes invisible first, so that a crash leaves none that is half gone.
    """
    known = [c for c in checkpoints(root) if c.step <= completed]
    best = best_checkpoint(root)
    for old in known[:-keep]:
        if old != best:
            aside = old.path.with_name(old.path.name + ".part")
            shutil.rmtree(aside, ignore_errors=True)
            old.path.rename(aside)
            shutil.rmtree(aside)

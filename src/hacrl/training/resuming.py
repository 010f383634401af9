"""Whether and where an existing run goes on."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from hacrl.config import Recipe
from hacrl.config.changes import changes
from hacrl.errors import UserError
from hacrl.runs.checkpoints import Checkpoint, Progress, newest_checkpoint, prune
from hacrl.runs.versions import library_versions

__all__ = ["check_data", "find_checkpoint", "note_machines"]

_ACCEPT = "undo that, or accept it with --accept-changes"


def find_checkpoint(
    run: Path, recipe: Recipe, *, accept_changes: bool, note: Callable[[str], None]
) -> Checkpoint | None:
    """The newest complete checkpoint of a run, if the recipe may continue it.

    Args:
        run: its folder, which may not exist yet.
        accept_changes: continue although the recipe differs in what is learned.
        note: called with what was skipped, and which differences do not matter.

    Returns:
        None if the run has never come to a checkpoint: it starts from the beginning.

    Raises:
        UserError: all checkpoints are damaged, the recipe differs in a way that matters, or it asks
            for fewer steps than were made.
    """
    if not (run / "recipe.yaml").is_file():
        note(f"{run} has no run to resume; starting from the beginning")
        return None
    root = run / "checkpoints"
    checkpoint, passed_over = newest_checkpoint(root)
    for text in passed_over:
        note(f"passed over {root.name}/{text}")
    if checkpoint is None:
        if any(True for _ in root.glob("step-*[0-9]")):
            raise UserError(
                f"{root}: no checkpoint is undamaged ({'; '.join(passed_over)})\n"
                "Restore one from a copy, or start anew with --overwrite"
            )
        note(f"{run} has no checkpoint yet; starting from the beginning")
        return None
    _check_recipe(checkpoint, recipe, accept_changes, note)
    if checkpoint.step > recipe.steps:
        raise UserError(
            f"steps: {run} has completed {checkpoint.step} already; ask for at least as many"
        )
    for part in root.glob("step-*.part"):
        shutil.rmtree(part)
    prune(root, checkpoint.step, recipe.checkpoints.keep)  # a crash may have come between the two
    note(f"continuing after step {checkpoint.step}, from {checkpoint.path}")
    return checkpoint


def check_data(
    checkpoint: Checkpoint,
    progress: Progress,
    data: Mapping[str, str],
    files: Mapping[str, str],
    *,
    accept_changes: bool,
    note: Callable[[str], None],
) -> None:
    """See that the run goes on with the data, files and libraries that it began with.

    Args:
        data: fingerprint of the prompts of each task as they are now.
        files: marks of the files that the recipe names, as they are now.

    Raises:
        UserError: the prompts of a task, or a file, are not those of the checkpoint.
    """
    differ = [task for task, mark in data.items() if progress.data.get(task) != mark]
    texts = [
        f"tasks.{task}: its problems are not those that {checkpoint.path.name} was trained on"
        for task in differ[:1]
    ]
    texts += [
        f"{place} is not what it was when {checkpoint.path.name} was written"
        for place, mark in files.items()
        if progress.files.get(place, mark) != mark
    ]
    if texts and not accept_changes:
        raise UserError(f"{texts[0]}{_and_more(texts)}; {_ACCEPT}")
    for text in texts:
        note(f"{text}; accepted")
    for name, now in library_versions().items():
        if (before := progress.versions.get(name)) != now:
            note(f"{name} was {before}, is {now}: the run goes on, but not bit for bit")


def note_machines(
    before: Mapping[str, Mapping[str, str]],
    now: Mapping[str, Mapping[str, str]],
    note: Callable[[str], None],
) -> None:
    """Say in one line if agents compute elsewhere than they did.

    Args:
        before: see `Fleet.machines`; empty if that was not written down.
    """
    moved: dict[str, list[str]] = {}
    for name, own in now.items():
        known = before.get(name, {})
        differ = [
            f"{key} {known.get(key)}, is {own[key]}" for key in own if own[key] != known.get(key)
        ]
        if known and differ:
            moved.setdefault("; ".join(differ), []).append(name)
    if moved:
        texts = [f"{', '.join(names)}: was {text}" for text, names in moved.items()]
        note(f"another machine ({'; '.join(texts)}): the run goes on, but not bit for bit")


def _check_recipe(
    checkpoint: Checkpoint, recipe: Recipe, accept_changes: bool, note: Callable[[str], None]
) -> None:
    try:
        saved = checkpoint.recipe()
    except UserError as error:
        if not accept_changes:
            raise UserError(f"{error}\nIt was written by another version; {_ACCEPT}") from error
        return
    if strangers := recipe.agents.keys() - saved.agents.keys():
        raise UserError(
            f"agents.{min(strangers)}: is not in {checkpoint.path}; agents cannot join a run"
        )
    if beginners := recipe.learners.keys() - saved.learners.keys():
        raise UserError(
            f"agents.{min(beginners)}.learns: it did not learn up to {checkpoint.path}; agents "
            "cannot begin to learn amid a run"
        )
    changed = changes(saved, recipe)
    serious = [change for change in changed if not change.harmless]
    if serious and not accept_changes:
        more = _and_more(serious)
        raise UserError(
            f"the recipe is not that of {checkpoint.path}: {serious[0]}{more}; {_ACCEPT}"
        )
    for change in changed:
        note(f"changed since {checkpoint.path.name}: {change}")


def _and_more(items: Sequence[object]) -> str:
    return f" (and {len(items) - 1} more)" if len(items) > 1 else ""

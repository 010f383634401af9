"""One process at a time in a run folder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from hacrl.errors import UserError, first_line

__all__ = ["only_process"]


@contextmanager
def only_process(root: Path, name: str) -> Iterator[None]:
    """Hold a run folder for as long as the block lasts.

    The lock is a file beside the folder, since the folder itself may be replaced. The system lets
    go of it when the process dies, however that happens.

    Raises:
        UserError: another process holds it, or there can be no such folder.
    """
    file = root / f".{name}.lock"
    made, lock = False, FileLock(file)
    try:
        made = not root.exists()
        root.mkdir(parents=True, exist_ok=True)
        lock.acquire(timeout=0)
    except Timeout as error:
        raise UserError(
            f"run folder {root / name} is in use by another process; wait for it, stop it, or "
            "choose another with name=…"
        ) from error
    except (OSError, ValueError) as error:  # a name of the path is too long, or root is a file
        raise UserError(
            f"run folder {root / name} cannot be created: {first_line(error)}\n"
            "Choose another place with --runs, or a shorter name with name=…"
        ) from error
    try:
        yield
    finally:
        lock.release()
        if made and [*root.iterdir()] == [file]:  # nothing came of the run
            file.unlink()
            root.rmdir()

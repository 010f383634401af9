"""What the commands share: the console, its tables, and keeping libraries quiet."""

from __future__ import annotations

import logging
import os
import sys

from rich import box
from rich.console import Console
from rich.table import Table

__all__ = ["INTERRUPTED", "is_live", "make_console", "make_table", "quieten_libraries", "say"]

INTERRUPTED = 130
"""Exit code after Ctrl-C."""

_PIPE_WIDTH = 120
"""Columns where there is no terminal to ask."""


def make_console() -> Console:
    """Standard output, without colours that rich would guess."""
    return Console(width=None if sys.stdout.isatty() else _PIPE_WIDTH, highlight=False)


def is_live(console: Console) -> bool:
    """Whether lines that were written can be replaced.

    A pipe cannot do that even where an environment variable makes it pass for a terminal.
    """
    return console.is_interactive and console.file.isatty()


def make_table(console: Console, *, gap: int = 2) -> Table:
    """An empty table: ruled on a terminal, bare columns elsewhere.

    Args:
        gap: spaces between columns.
    """
    lines = box.SIMPLE_HEAD if is_live(console) else None
    return Table(box=lines, show_edge=False, pad_edge=False, padding=(0, gap, 0, 0))


def say(console: Console, text: str) -> None:
    """Print a text as it is: one line however long, with no markup in it."""
    console.print(text, markup=False, highlight=False, emoji=False, soft_wrap=True)


def quieten_libraries() -> None:
    """Keep progress bars and remarks of libraries out of ours, in worker processes too.

    They read these variables when they are imported; a user's own settings win.
    """
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")  # heeded by transformers as well
    os.environ.setdefault("HF_HUB_VERBOSITY", "error")
    os.environ.setdefault("HF_DATASETS_DISABLE_PROGRESS_BARS", "1")
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    # It warns of kernels that it could fetch, on every import and also where nothing is quantized.
    logging.getLogger("bitsandbytes").setLevel(logging.ERROR)

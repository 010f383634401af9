"""What the commands share: the console, and keeping libraries quiet."""

from __future__ import annotations

import os
import sys

from rich.console import Console

__all__ = ["make_console", "quieten_libraries", "say"]

_PIPE_WIDTH = 120
"""Columns where there is no terminal to ask."""


def make_console() -> Console:
    """Standard output, without colours that rich would guess."""
    return Console(width=None if sys.stdout.isatty() else _PIPE_WIDTH, highlight=False)


def say(console: Console, text: str) -> None:
    """Print a text as it is."""
    console.print(text, markup=False, soft_wrap=True)


def quieten_libraries() -> None:
    """Keep progress bars and remarks of libraries out of ours, in worker processes too.

    They read these variables when they are imported; a user's own settings win.
    """
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")  # heeded by transformers as well
    os.environ.setdefault("HF_HUB_VERBOSITY", "error")
    os.environ.setdefault("HF_DATASETS_DISABLE_PROGRESS_BARS", "1")
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")

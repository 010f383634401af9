"""Ends what a process has started once that process is gone, however it ended.

Ray's own processes mostly follow their driver; its agents find out after half a minute. Run as a
script, it reads nothing from its standard input: the end of it says that the process is gone.
"""

from __future__ import annotations

import os
import select
import subprocess
import sys
from contextlib import suppress

import psutil

__all__ = ["Guard"]

_SECONDS = 5.0
"""Between two looks at what the process has started."""
_END = 10.0
"""Seconds within which the guard itself ends."""


class Guard:
    """Watches this process from another one until it is closed."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-I", __file__, str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is for the run
        )

    def close(self) -> None:
        """Stop watching, without ending anything."""
        self._process.kill()
        self._process.wait(_END)
        if self._process.stdin is not None:
            self._process.stdin.close()


def main(pid: int) -> None:
    """Watch a process until its end of our standard input is closed."""
    started: list[psutil.Process] = []
    while True:
        with suppress(psutil.Error):
            children = psutil.Process(pid).children(recursive=True)
            started = [child for child in children if child.pid != os.getpid()]
        if select.select([sys.stdin], [], [], _SECONDS)[0]:
            break
    for child in started:
        with suppress(psutil.Error):  # which also says that its number is another's by now
            child.kill()


if __name__ == "__main__":
    main(int(sys.argv[1]))

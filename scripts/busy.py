"""Run a command while every core is busy with something else.

    python -m scripts.busy --times 3 make test

What passes only on a machine that has nothing else to do fails here. Prints how long each time
took: with as many busy loops as cores, about twice as long as without.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

_LOOP = "import os, sys\nwhile os.getppid() == int(sys.argv[1]): pass"


def main() -> int:
    """Run the command until it fails or has passed so many times."""
    parser = argparse.ArgumentParser(prog="python -m scripts.busy", description=__doc__)
    parser.add_argument("--times", type=int, default=1)
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    times: list[float] = []
    with every_core_busy():
        for _ in range(options.times):
            begun = time.monotonic()
            code = subprocess.run(options.command, check=False).returncode
            times.append(time.monotonic() - begun)
            if code:
                print(f"failed the {len(times)}. time, after {times[-1]:.0f} s", flush=True)
                return 1
    print("passed, with every core busy, in", ", ".join(f"{t:.0f} s" for t in times))
    return 0


def loop() -> list[str]:
    """The command of an endless loop that ends with this process, even if this one is killed."""
    return [sys.executable, "-c", _LOOP, str(os.getpid())]


@contextmanager
def every_core_busy() -> Iterator[None]:
    """As many endless loops as there are cores, which end with the block."""
    loops = [subprocess.Popen(loop()) for _ in range(os.cpu_count() or 1)]
    try:
        yield
    finally:
        for process in loops:
            process.kill()
            process.wait()


if __name__ == "__main__":
    sys.exit(main())

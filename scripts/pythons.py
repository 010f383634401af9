"""Run the part of the suite that needs no torch on every Python that is installed.

    python -m scripts.pythons python3.11 python3.12 python3.13 python3.14

They are looked for on the PATH and among the versions of pyenv; those that are not there are passed
over. Each gets an environment of its own, such as .venv-3.12, with what the part needs. torch is
left out because it is what differs: its wheels come late for a new Python, and on some systems
bring gigabytes of CUDA with them. With --torch everything is installed, and the whole suite runs
but for what is slow.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

NEED_TORCH = ("torch", "accelerate", "peft")
"""Of the dependencies, torch and those that install it."""

PART = (
    *("tests/config", "tests/tasks", "tests/verify", "tests/report", "tests/audit"),
    *(f"tests/runs/test_{name}.py" for name in ("checkpoints", "listing", "lock")),
    *(f"tests/test_{name}.py" for name in ("api", "phases", "records", "seeding")),
    *("tests/algorithm/test_capability.py", "tests/cli/test_cli.py"),
    *("tests/console/test_progress.py", "tests/training/test_advice.py"),
)
"""Where tests are that need no torch: of the recipe, problems, rewards, records, reports and the
command line. Those among them that do need it are skipped."""


def main() -> int:
    """Test each Python in turn; 1 if the tests failed on one, 2 if there was none."""
    parser = argparse.ArgumentParser(prog="python -m scripts.pythons", description=__doc__)
    parser.add_argument("pythons", nargs="+", help="commands or paths")
    parser.add_argument("--torch", action="store_true", help="install torch too, and test it all")
    options = parser.parse_args()
    results: dict[str, bool] = {}
    for name in options.pythons:
        python = find(name)
        version = version_of(python) if python else None
        if python is None or version is None:
            print(f"== {name}: not installed", flush=True)
        elif version not in results:
            print(f"== Python {version}", flush=True)
            results[version] = test(python, version, torch=options.torch)
    for version, passed in results.items():
        print(f"Python {version}: {'passed' if passed else 'FAILED'}")
    return 2 if not results else 0 if all(results.values()) else 1


def find(name: str) -> str | None:
    """An interpreter by its command or path, on the PATH or else by pyenv; None if there is none.

    What pyenv puts on the PATH runs only the versions that are switched on.
    """
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    others = (str(path) for path in sorted(pyenv.glob(f"versions/*/bin/{Path(name).name}")))
    return next((python for python in (name, *others) if version_of(python)), None)


def version_of(python: str) -> str | None:
    """Major and minor version of an interpreter, None if there is none by that name."""
    ask = [python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
    try:
        done = subprocess.run(ask, capture_output=True, text=True, check=False)
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def test(python: str, version: str, *, torch: bool) -> bool:
    """Make the environment of a Python where it is missing, and run the tests in it."""
    folder = ROOT / (f".venv-{version}-torch" if torch else f".venv-{version}")
    inside = folder / "bin" / "python"
    everything = ("-n", "3", "--dist", "loadgroup", "-m", "not slow")
    what = everything if torch else ("-p", "scripts.without_torch", *PART)
    return (is_ready(folder) or install(python, folder, inside, torch=torch)) and done(
        inside, "-m", "pytest", *what
    )


def is_ready(folder: Path) -> bool:
    """Whether an environment was made after the last change of what belongs into it."""
    stamp, sources = folder / ".ready", (ROOT / "pyproject.toml", ROOT / "constraints.txt")
    return stamp.is_file() and all(
        stamp.stat().st_mtime > source.stat().st_mtime for source in sources
    )


def install(python: str, folder: Path, inside: Path, *, torch: bool) -> bool:
    """Fill an environment; whether everything could be installed."""
    wanted = ["-e", ".[dev]"] if torch else [*without_torch(), "pytest", "hypothesis"]
    pip = ("-m", "pip", "install", "-c", "constraints.txt")
    ready = (
        done(python, "-m", "venv", folder)
        and done(inside, *pip, *wanted)
        and (torch or done(inside, *pip, "--no-deps", "-e", "."))
    )
    if ready:
        (folder / ".ready").touch()
    return ready


def without_torch() -> list[str]:
    """The package's dependencies but those that need torch."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return [
        requirement
        for requirement in project["dependencies"]
        if re.split(r"[^\w-]", requirement)[0] not in NEED_TORCH
    ]


def done(*command: str | Path) -> bool:
    """Run a command in the project's folder; whether it succeeded."""
    words: Sequence[str] = [str(word) for word in command]
    return subprocess.run(words, cwd=ROOT, check=False).returncode == 0


if __name__ == "__main__":
    sys.exit(main())

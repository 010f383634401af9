from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def data() -> Path:
    folder = Path(__file__).resolve().parents[3] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"needs the public data sets in {folder}")
    return folder

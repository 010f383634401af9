"""Makes the stubs importable by name, which worker processes need to unpickle them."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))

"""Makes the modules of this folder importable from each other."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

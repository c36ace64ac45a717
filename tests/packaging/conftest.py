"""Puts the repository root on the path: `dev.py` and `devtools/` are not installed."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

"""Makes the helpers beside this file importable from every test module."""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
os.environ.setdefault("TRITON_VERIFY_IR", "1")  # every pass of every test is checked

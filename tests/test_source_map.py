"""The map of the source tree shows the tree as it is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def test_source_map_is_up_to_date() -> None:
    script = Path(__file__).parents[1] / "devtools" / "source_map.py"
    done = subprocess.run([sys.executable, str(script), "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr

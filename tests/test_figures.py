"""The pictures of the docs show what the code makes."""

import subprocess
import sys
from pathlib import Path


def test_layout_figures_are_up_to_date():
    script = Path(__file__).parents[1] / "devtools" / "layout_figures.py"
    done = subprocess.run([sys.executable, str(script), "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr

"""What is kept of a compilation that failed inside the compiler, so that it can be reported and replayed."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping


def write_bundle(root: str, name: str, files: Mapping[str, str], error: BaseException) -> str:
    """Write a folder under ``root`` with ``files``, the error and the versions in use; returns its path.

    Raises OSError when it cannot be written.
    """
    import platform  # with traceback: needed by those who fail only
    import traceback

    plain = "".join(c if c.isalnum() or c in "_-" else "_" for c in name)[:60]
    folder = os.path.join(root, f"failure-{plain}-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}")
    os.makedirs(folder, exist_ok=True)
    contents = {
        **files,
        "error.txt": "".join(traceback.format_exception(type(error), error, error.__traceback__)),
        "versions.txt": f"Python {sys.version}\n{platform.platform()}\n",
    }
    for filename, text in contents.items():
        with open(os.path.join(folder, filename), "w", encoding="utf-8") as file:
            file.write(text)
    return folder

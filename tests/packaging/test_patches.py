"""The Windows port's patch series fits the checkout, is in form, and is applied strictly."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from devtools import patches  # noqa: E402


def test_the_series_is_as_it_should_be() -> None:
    assert patches.check(ROOT) == []
    assert [path.name.partition("-")[0] for path in patches.series(ROOT)] == ["0001", "0002", "0003"]


def test_the_checkout_is_not_changed(tmp_path: Path) -> None:
    before = (ROOT / "src/CMakeLists.txt").read_bytes()
    staged = patches.stage(ROOT, tmp_path)
    assert (staged / "native/platform_windows.cpp").is_file()
    assert not (ROOT / "src/native/platform_windows.cpp").exists()
    assert (ROOT / "src/CMakeLists.txt").read_bytes() == before != (staged / "CMakeLists.txt").read_bytes()


def test_patch_agrees(tmp_path: Path) -> None:
    """The `patch` program, which conda-build calls, makes the same tree without fuzz."""
    program = shutil.which("patch")
    if program is None:
        pytest.skip("no patch program here")
    ours = patches.stage(ROOT, tmp_path / "ours")
    patches.copy_sources(ROOT, tmp_path / "theirs")
    for patch in patches.series(ROOT):
        command = [program, "-p1", "--fuzz=0", "--no-backup-if-mismatch", "-i", str(patch)]
        done = subprocess.run(command, cwd=tmp_path / "theirs", capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    for file in (path for path in ours.rglob("*") if path.is_file()):
        assert file.read_bytes() == (tmp_path / "theirs/src" / file.relative_to(ours)).read_bytes(), file


def small(tmp_path: Path) -> Path:
    """A root with the series and the sources, to be spoilt."""
    shutil.copytree(ROOT / "patches", tmp_path / "patches")
    patches.copy_sources(ROOT, tmp_path)
    return tmp_path


def test_changed_context_is_refused(tmp_path: Path) -> None:
    root = small(tmp_path)
    file = root / "src/triton/runtime/cache.py"
    file.write_text(file.read_text().replace("os.replace(source, target)", "os.replace(source, target )"))
    assert re.search(r"0003-\S+: src/triton/runtime/cache.py: hunk \d+ does not apply", "\n".join(patches.check(root)))


def test_gaps_and_missing_fields_are_named(tmp_path: Path) -> None:
    root = small(tmp_path)
    first, second, third = patches.series(root)
    first.write_text(first.read_text().replace("\nDrop-when:", "\nLater:"))
    third.write_text(third.read_text().replace("triton/knobs.py", "triton/nobs.py", 1))
    second.rename(second.with_name("0004-threading.patch"))
    found = "\n".join(patches.form_errors(root))
    assert "0001-Windows-paths.patch: the text should end with Why:" in found
    assert "0003-Windows-cache-dir.patch: its number should be 0002" in found
    assert "0003-Windows-cache-dir.patch: Touches: names" in found
    assert "0004-threading.patch: its number should be 0003" in found


def test_offsets_are_followed_and_counted() -> None:
    change = patches.parse("diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n")[0]
    assert patches.apply_text("x\ny\na\nb\n", change) == ("x\ny\na\nc\n", 2)
    with pytest.raises(patches.PatchError, match="hunk 1 does not apply"):
        patches.apply_text("a\nB\n", change)

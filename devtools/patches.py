"""The patch series of the Windows port: patches/windows/*.patch, in `git format-patch` form, on src/.

apply    writes a copy of src/ with the series applied; the checkout is not changed
refresh  brings the series up to date with the checkout's src/ (needs git) and writes it anew
check    the series applies without fuzz, its numbers have no gap and each patch says what it must

Only the standard library is used, no `patch` program and, but for refresh, no git: `pip install` calls `stage` too.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path("patches") / "windows"
FIELDS = ("Why:", "Touches:", "Tested-by:", "Drop-when:")
_IDENTITY = {"NAME": "Windows port", "EMAIL": "windows-port@example.invalid", "DATE": "2026-11-30T12:00:00Z"}


class PatchError(Exception):
    """A patch that does not apply or is not in form."""


@dataclass(frozen=True, slots=True)
class Hunk:
    start: int  # of the old lines, from 1; 0 for a new file
    old: tuple[str, ...]
    new: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Change:
    """One file's part of a patch; `path` below the root, `created` or changed."""

    path: str
    created: bool
    hunks: tuple[Hunk, ...]


def series(root: Path) -> list[Path]:
    return sorted((root / FOLDER).glob("*.patch"))


def _hunk(lines: list[str], at: int) -> tuple[Hunk, int]:
    found = re.match(r"@@ -(\d+)(?:,(\d+))? \+\d+(?:,(\d+))? @@", lines[at])
    if found is None:
        raise PatchError(f"not a hunk: {lines[at]!r}")
    left, right = (int(found[i]) if found[i] else 1 for i in (2, 3))
    old: list[str] = []
    new: list[str] = []
    at += 1
    while left > 0 or right > 0:
        mark, text = lines[at][:1], lines[at][1:]
        if mark not in (" ", "-", "+"):
            raise PatchError(f"unexpected line in a hunk: {lines[at]!r}")
        if mark != "+":
            old.append(text)
            left -= 1
        if mark != "-":
            new.append(text)
            right -= 1
        at += 1
    return Hunk(int(found[1]), tuple(old), tuple(new)), at


def parse(text: str) -> list[Change]:
    """The changes of one patch. Files are changed or created here, neither removed nor renamed."""
    lines = text.split("\n")
    changes: list[Change] = []
    at = 0
    while at < len(lines):
        if not lines[at].startswith("diff --git "):
            at += 1
            continue
        while not lines[at].startswith("--- "):
            if re.match(r"(deleted|rename|copy|GIT binary)", lines[at]):
                raise PatchError(f"patches only change and create text files: {lines[at]}")
            at += 1
        created, path = lines[at] == "--- /dev/null", lines[at + 1].removeprefix("+++ b/")
        at += 2
        hunks = []
        while at < len(lines) and lines[at].startswith("@@ "):
            hunk, at = _hunk(lines, at)
            hunks.append(hunk)
        changes.append(Change(path, created, tuple(hunks)))
    return changes


def _place(lines: list[str], hunk: Hunk, expected: int) -> int | None:
    """Where the old lines stand, word for word, nearest to the line where they are expected."""
    size = len(hunk.old)
    places = [i for i in range(len(lines) - size + 1) if tuple(lines[i : i + size]) == hunk.old]
    return min(places, key=lambda place: abs(place - expected), default=None)


def apply_text(text: str, change: Change) -> tuple[str, int]:
    """The file after the change, and by how many lines its hunks were off at most. Raises PatchError."""
    lines = text.split("\n")
    grown = worst = 0
    for number, hunk in enumerate(change.hunks, 1):
        expected = hunk.start - 1 + grown
        place = _place(lines, hunk, expected)
        if place is None:
            raise PatchError(f"{change.path}: hunk {number} does not apply (line {hunk.start})")
        worst = max(worst, abs(place - expected))
        lines[place : place + len(hunk.old)] = hunk.new
        grown += len(hunk.new) - len(hunk.old) + (place - expected)
    return "\n".join(lines), worst


def apply_patch(patch: Path, tree: Path) -> int:
    """Applies one patch to `tree`, in which src/ lies; returns the largest offset. Raises PatchError."""
    worst = 0
    for change in parse(patch.read_text(encoding="utf-8")):
        file = tree / change.path
        if change.created == file.exists():
            raise PatchError(f"{patch.name}: {change.path} {'is there already' if change.created else 'is not there'}")
        try:
            if change.created:
                text, offset = "\n".join(change.hunks[0].new) + "\n", 0
            else:
                text, offset = apply_text(file.read_text(encoding="utf-8"), change)
        except PatchError as error:
            raise PatchError(f"{patch.name}: {error}") from None
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8", newline="\n")
        worst = max(worst, offset)
    return worst


def copy_sources(root: Path, tree: Path) -> None:
    """src/ without what was built in it."""
    shutil.rmtree(tree / "src", ignore_errors=True)
    unwanted = shutil.ignore_patterns("__pycache__", "*.so", "*.pyd", "*.new", "*.pyc", ".*_cache")
    shutil.copytree(root / "src", tree / "src", ignore=unwanted)


def stage(root: Path, tree: Path) -> Path:
    """A patched copy of `root`/src as `tree`/src, which is returned. Raises PatchError."""
    copy_sources(root, tree)
    for patch in series(root):
        apply_patch(patch, tree)
    return tree / "src"


def form_errors(root: Path) -> list[str]:
    """What is wrong with headers and numbers of the series."""
    found = []
    for expected, patch in enumerate(series(root), 1):
        text = patch.read_text(encoding="utf-8")
        number, _, rest = patch.name.partition("-")
        if number != f"{expected:04}" or not rest:
            found.append(f"{patch.name}: its number should be {expected:04}")
        if not re.match(r"From [0-9a-f]{40} .*\nFrom: .+\nDate: .+\nSubject: \[PATCH\] .+\n", text):
            found.append(f"{patch.name}: not in the form that git format-patch writes")
        body = text.partition("\n\n")[2].partition("\n---\n")[0]
        places = [body.find(f"\n{field} ") for field in FIELDS]
        if min(places) < 0 or places != sorted(places):
            found.append(f"{patch.name}: the text should end with {', '.join(FIELDS)}")
        named = set(re.findall(r"\S+/\S+|\S+\.\w+", body[places[1] : places[2]].partition(":")[2]))
        touched = {change.path.removeprefix("src/") for change in parse(text)}
        if {name.strip(",.") for name in named} != touched:
            found.append(f"{patch.name}: Touches: names {sorted(named)}, the patch changes {sorted(touched)}")
    return found


def check(root: Path) -> list[str]:
    """Everything that is wrong with the series; empty when it is as it should be."""
    if not series(root):
        return [f"there is no patch in {FOLDER}"]
    found = form_errors(root)
    with tempfile.TemporaryDirectory() as folder:
        copy_sources(root, Path(folder))
        for patch in series(root):
            try:
                apply_patch(patch, Path(folder))
            except PatchError as error:
                return [*found, str(error)]
    return found


def refresh(root: Path) -> list[Path]:
    """Rewrites the series for src/ as it is now; where a hunk no longer fits, git merges. Raises PatchError."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder)
        copy_sources(root, tree)
        command = ["git", "rev-parse", "--git-common-dir"]  # not always .git: this may be a worktree
        shared = subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout.strip()
        env = {**os.environ, "GIT_ALTERNATE_OBJECT_DIRECTORIES": str((root / shared).resolve() / "objects")}
        env |= {f"GIT_COMMITTER_{key}": value for key, value in _IDENTITY.items()}
        env |= {f"GIT_AUTHOR_{key}": value for key, value in _IDENTITY.items()}

        def git(*words: str | Path) -> None:
            done = subprocess.run(["git", *map(str, words)], cwd=tree, env=env, capture_output=True, text=True)
            if done.returncode:
                raise PatchError(f"git {words[0]}: {(done.stdout + done.stderr).strip()}")

        git("init", "-q")
        git("add", "-A")
        git("commit", "-q", "--no-verify", "-m", "base")
        git("tag", "base")
        git("am", "-q", "--3way", *series(root))
        made = Path(folder) / "series"
        options = ("--zero-commit", "--no-signature", "--no-numbered", "--full-index")
        git("format-patch", "-q", *options, "-o", made, "base")
        for old in series(root):
            old.unlink()
        for new in sorted(made.glob("*.patch")):
            shutil.copy2(new, root / FOLDER / new.name)
    return series(root)


def main(root: Path, command: str, target: Path) -> int:
    """`dev.py patches COMMAND`; the exit status."""
    try:
        if command == "apply":
            print(f"{stage(root, target)}: src/ with {len(series(root))} patches")
        elif command == "refresh":
            print("\n".join(str(path.relative_to(root)) for path in refresh(root)))
        elif found := check(root):
            print("\n".join(found))
            return 1
        else:
            print(f"{len(series(root))} patches apply and are in form")
    except PatchError as error:
        print(error)
        return 1
    return 0

"""Makes the modules beside this file importable."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))


def pytest_terminal_summary(terminalreporter):
    """How much was compiled, in one line of the log."""
    found = {}
    for report in terminalreporter.stats.get("passed", ()):
        name = report.nodeid.partition("test_feature_compiles[")[2]
        if name:
            arch, _, feature = name.rstrip("]").partition("-")
            found.setdefault(arch, set()).add(feature)
    if found:
        features = len(set().union(*found.values()))
        counts = ", ".join(f"{arch} {len(names)}" for arch, names in sorted(found.items()))
        total = sum(len(names) for names in found.values())
        terminalreporter.write_line(
            f"AMD: {total} code objects compiled, {features} features x {len(found)} architectures: {counts}"
        )

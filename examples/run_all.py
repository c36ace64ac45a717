"""Runs every example, checks it against NumPy and prints one table. Exit code 1 when one fails."""

import argparse
import importlib
import sys
import time
import traceback

import common

import triton

NAMES = ["vector_add", "softmax", "matmul", "layer_norm", "dropout", "attention", "convolution"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=NAMES, help=f"examples to run (default: {' '.join(NAMES)})")
    names = parser.parse_args().names
    unknown = sorted(set(names) - set(NAMES))
    if unknown:
        parser.error(f"no example {unknown[0]!r}; there are {', '.join(NAMES)}")
    print(f"triton {triton.__version__} from {triton.__path__[0]}")
    rows: list[common.Row] = []
    failed: list[str] = []
    start = time.perf_counter()
    for name in names:
        try:
            rows += importlib.import_module(name).run()
        except (Exception, SystemExit):
            traceback.print_exc()
            failed.append(name)
    common.print_table(rows)
    print(f"{len(names) - len(failed)} passed, {len(failed)} failed")
    print(f"{time.perf_counter() - start:.1f} s, timings included")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

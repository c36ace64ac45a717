"""Barriers between accesses of the same global memory by different threads of a program."""

import re

import pytest

from triton.backends.cuda.lowering import CudaMachine, features
from triton.ir import parse_module, verify
from triton.lowering.simt.lower import lower_module
from triton.lowering.writer import ModuleWriter
from triton.passes.assign_layouts import LayoutOptions, assign_layouts, default_layout

HEAD = """module {
func @k(%x: ptr<f32> {divisible = 16}, %y: ptr<f32> {divisible = 16}, %n: i32, %c: i1) {kernel = true} {
  %i = arange {start = 0, end = 256} : 256xi32
  %b = splat %x : 256xptr<f32>
  %p = addptr %b, %i : 256xptr<f32>
  %m = constant {value = 255} : 256xi32
  %f = sub %m, %i : 256xi32
  %q = addptr %b, %f : 256xptr<f32>
  %d = splat %y : 256xptr<f32>
  %r = addptr %d, %i : 256xptr<f32>
  %v = constant {value = 1.0} : 256xf32
  %0 = constant {value = 0} : i32
  %1 = constant {value = 1} : i32
"""


def barriers(body: str) -> int:
    """How many barriers ``body`` needs; converting layouts is not part of it."""
    module = parse_module(HEAD + body + "  return\n}\n}\n")
    verify(module)
    assign_layouts(module, LayoutOptions(32, 4, lambda op, options: (default_layout((1,), options),) * 3))
    for op in module.walk():
        assert op.kind != "convert_layout", "the case should need none"
    lowered = lower_module(module, CudaMachine(80, 4), ModuleWriter(features(80, True)))
    return len(re.findall("bar.sync", lowered.text))


LOOP = "  for %0, %n, %1 (%j: i32) {{\n{}    yield\n  }}\n"
CASES = {
    "read only": ("  %a = load %p : 256xf32\n  %e = load %q : 256xf32\n", 0),
    "own elements": ("  store %p, %v\n  %a = load %p : 256xf32\n  store %p, %a\n", 0),
    "others' elements after a store": ("  store %p, %v\n  %a = load %q : 256xf32\n", 1),
    "store after others have loaded": ("  %a = load %q : 256xf32\n  store %p, %v\n", 1),
    "another parameter": ("  store %r, %v\n  %a = load %q : 256xf32\n", 0),
    "one barrier serves two loads": ("  store %p, %v\n  %a = load %q : 256xf32\n  %e = load %q : 256xf32\n", 1),
    "the trip before": (LOOP.format("    %a = load %q : 256xf32\n    store %p, %v\n"), 2),
    "a loop that may not run": ("  store %p, %v\n" + LOOP.format("    barrier\n") + "  %a = load %q : 256xf32\n", 2),
    "a branch that may not be taken": (
        "  store %p, %v\n  if %c () {\n    barrier\n    yield\n  } () {\n    yield\n  }\n  %a = load %q : 256xf32\n",
        2,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_barriers(name):
    body, count = CASES[name]
    assert barriers(body) == count

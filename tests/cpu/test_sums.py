"""Sums over loops: kept in registers, made together, joined with the store that reads the same."""

from __future__ import annotations

import re

import numpy as np
import pytest
from tiles import build, compare

SUM = """module {
func @k(%p: ptr<TYPE>, %q: ptr<TYPE>, %n: i32) {kernel = true} {
  %zero = constant {value = START} : SIZExTYPE
  %low = constant {value = 0} : i32
  %step = constant {value = SIZE} : i32
  %lanes = arange {start = 0, end = SIZE} : SIZExi32
  %ends = splat %n : SIZExi32
  %base = splat %p : SIZExptr<TYPE>
  %total = for %low, %n, %step, %zero : SIZExTYPE (%at: i32, %so_far: SIZExTYPE) {
    %from = splat %at : SIZExi32
    %c = add %from, %lanes : SIZExi32
    %place = addptr %base, %c : SIZExptr<TYPE>
    %inside = cmp %c, %ends {pred = "lt"} : SIZExi1
    %x = load %place, %inside, %zero : SIZExTYPE
    %next = OP %so_far, %x : SIZExTYPE
    yield %next
  }
  %s = reduce %total {axis = 0} : TYPE (%a: TYPE, %b: TYPE) {
    %c2 = OP %a, %b : TYPE
    yield %c2
  }
  store %q, %s
  return
}
}
"""


def text(size: int, type: str = "f32", op: str = "add", start: str = "0.0") -> str:
    source = SUM.replace("SIZE", str(size)).replace("TYPE", type).replace("OP", op)
    return source.replace("START", start)


@pytest.mark.parametrize("size", [2, 16, 64, 1024])
@pytest.mark.parametrize("n", [0, 1, 63, 64, 1500])
def test_sum_of_a_sum(size: int, n: int) -> None:
    data = np.random.default_rng(n).standard_normal(4096).astype(np.float32)
    compare(text(size), [data, np.zeros(1, np.float32), n], ulps=4 * 4096)


@pytest.mark.parametrize(
    ("type", "op", "start"),
    [("i32", "add", "0"), ("i32", "add", "7"), ("i32", "max", "-5"), ("i64", "mul", "1"), ("u32", "xor", "0"),
     ("f32", "max", "0.5"), ("i8", "add", "0"), ("i32", "mul", "3")],
)  # fmt: skip
def test_other_sums(type: str, op: str, start: str) -> None:
    dtype = {"i32": np.int32, "i64": np.int64, "u32": np.uint32, "f32": np.float32, "i8": np.int8}[type]
    data = np.random.default_rng(0).integers(1, 100, 600).astype(dtype)
    for n in (0, 500, 512):
        compare(text(128, type, op, start), [data, np.zeros(1, dtype), n])


def test_no_tile_is_kept() -> None:
    assert build(text(4096)).scratch == build(text(64)).scratch
    assert build(text(4096, start="1.0")).scratch >= build(text(64)).scratch + 4 * 4096 - 512


ROWS = """module {
func @k(%p: ptr<f32>, %out: ptr<f32>, %sums: ptr<f32>, %n: i32) {kernel = true} {
  %zero = constant {value = 0.0} : 256xf32
  %low = constant {value = 0} : i32
  %one = constant {value = 1} : i32
  %width = constant {value = 256} : i32
  %lanes = arange {start = 0, end = 256} : 256xi32
  %total, %squares = for %low, %n, %one, %zero, %zero : 256xf32, 256xf32 (%row: i32, %t: 256xf32, %u: 256xf32) {
    %first = mul %row, %width : i32
    %p1 = addptr %p, %first : ptr<f32>
    %p2 = splat %p1 : 256xptr<f32>
    %place = addptr %p2, %lanes : 256xptr<f32>
    %x = load %place : 256xf32
    %xx = mul %x, %x : 256xf32
    %s1 = reduce %x {axis = 0} : f32 (%a: f32, %b: f32) {
      %c = add %a, %b : f32
      yield %c
    }
    %s2 = reduce %xx {axis = 0} : f32 (%a2: f32, %b2: f32) {
      %c2 = add %a2, %b2 : f32
      yield %c2
    }
    %d1 = splat %s1 : 256xf32
    %d2 = splat %s2 : 256xf32
    %y1 = sub %x, %d1 : 256xf32
    %y2 = add %y1, %d2 : 256xf32
    %y = EXTRA
    %o1 = addptr %out, %first : ptr<f32>
    %o2 = splat %o1 : 256xptr<f32>
    %o = addptr %o2, %lanes : 256xptr<f32>
    store %o, %y
    %t2 = add %t, %x : 256xf32
    %u2 = add %u, %xx : 256xf32
    yield %t2, %u2
  }
  %q = splat %sums : 256xptr<f32>
  %q1 = addptr %q, %lanes : 256xptr<f32>
  %both = add %total, %squares : 256xf32
  store %q1, %both
  return
}
}
"""


@pytest.mark.parametrize(
    "extra", ["mul %y2, %y2 : 256xf32", "add %y2, %t : 256xf32", "add %y2, %flipped : 256xf32"], ids=lambda s: s[:12]
)
@pytest.mark.parametrize("in_place", [False, True])
def test_rows(extra: str, in_place: bool) -> None:
    """A store that needs a carried tile, elsewhere even, still sees the one of its own trip."""
    source = ROWS.replace("%y = EXTRA", f"%flipped = flip %t {{axis = 0}} : 256xf32\n    %y = {extra}")
    if in_place:
        source = source.replace("addptr %out, %first", "addptr %p, %first")
    data = np.random.default_rng(0).integers(-3, 4, 256 * 5).astype(np.float32)  # sums are exact
    compare(source, [data, np.zeros_like(data), np.zeros(256, np.float32), 5])


def test_sums_of_the_same_are_one_loop() -> None:
    lowered = build(ROWS.replace("EXTRA", "mul %y2, %y2 : 256xf32")).text
    loops = len(re.findall(r"^loop\.\d+:", lowered, re.M))
    apart = build(ROWS.replace("EXTRA", "add %y2, %t : 256xf32")).text
    assert loops < len(re.findall(r"^loop\.\d+:", apart, re.M))


def products(m: int, n: int, k: int) -> str:
    return f"""module {{
func @k(%p: ptr<f32>, %q: ptr<f32>, %o: ptr<f32>) {{kernel = true}} {{
  %ka = arange {{start = 0, end = {m * k}}} : {m * k}xi32
  %kb = arange {{start = 0, end = {k * n}}} : {k * n}xi32
  %kc = arange {{start = 0, end = {m * n}}} : {m * n}xi32
  %p1 = splat %p : {m * k}xptr<f32>
  %q1 = splat %q : {k * n}xptr<f32>
  %o1 = splat %o : {m * n}xptr<f32>
  %p2 = addptr %p1, %ka : {m * k}xptr<f32>
  %q2 = addptr %q1, %kb : {k * n}xptr<f32>
  %o2 = addptr %o1, %kc : {m * n}xptr<f32>
  %a1 = load %p2 : {m * k}xf32
  %b1 = load %q2 : {k * n}xf32
  %a = reshape %a1 : {m}x{k}xf32
  %b = reshape %b1 : {k}x{n}xf32
  %zero = constant {{value = 0.0}} : {m}x{n}xf32
  %c = dot %a, %b, %zero : {m}x{n}xf32
  %c1 = reshape %c : {m * n}xf32
  store %o2, %c1
  return
}}
}}
"""


def test_code_size_does_not_grow_with_the_tile() -> None:
    """The register tile may differ from size to size, the number of loops may not depend on it."""

    def lines(m: int, n: int, k: int) -> int:
        return build(products(m, n, k)).text.count("\n")

    assert lines(512, 512, 128) <= 1.1 * lines(128, 128, 64)
    assert lines(128, 128, 64) <= 2.25 * lines(16, 16, 16)

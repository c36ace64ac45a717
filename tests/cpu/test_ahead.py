"""Loops that fetch the next trip's data ahead."""

from __future__ import annotations

import numpy as np
import pytest
from tiles import build, compare

N = 80
BODIES = {
    "row by counter": ("%b = mul %r, %n : i32\n%s = splat %b : 80xi32\n%at = add %s, %i : 80xi32", "", True),
    "row by pointer": ("%b = mul %r, %n : i32\n%pr = addptr %p, %b : ptr<f32>\n"
                       "%qr = addptr %q, %b : ptr<f32>", "row", True),
    "the same row": ("%at = add %i, %zero : 80xi32", "", False),
    "rows by a table": ("%tp = addptr %t, %r : ptr<i32>\n%b = load %tp : i32\n%s = splat %b : 80xi32\n"
                        "%at = add %s, %i : 80xi32", "", False),
}  # fmt: skip
SUM = "reduce %x {axis = 0} : f32 (%g: f32, %h: f32) {\n  %y = add %g, %h : f32\n  yield %y\n}"


def source(body: str, by: str, passes: str) -> str:
    p, q = ("%pr", "%qr") if by else ("%p", "%q")
    at = "%i" if by else "%at"
    return f"""module {{
func @k(%p: ptr<f32>, %q: ptr<f32>, %t: ptr<i32>, %rows: i32, %n: i32) {{kernel = true}} {{
  %i = arange {{start = 0, end = {N}}} : {N}xi32
  %zero = constant {{value = 0}} : {N}xi32
  %z = constant {{value = 0}} : i32
  %one = constant {{value = 1}} : i32
  for %z, %rows, %one (%r: i32) {{
    {body}
    %ps = splat {p} : {N}xptr<f32>
    %qs = splat {q} : {N}xptr<f32>
    %pa = addptr %ps, {at} : {N}xptr<f32>
    %qa = addptr %qs, {at} : {N}xptr<f32>
    %x = load %pa : {N}xf32
    {passes}
    store %qa, %v
    yield
  }}
  return
}}
}}
"""


TWICE = f"%m = {SUM}\n%ms = splat %m : {N}xf32\n%v = sub %x, %ms : {N}xf32"
ONCE = f"%v = neg %x : {N}xf32"


def inputs() -> list[object]:
    rng = np.random.default_rng(0)
    x = rng.integers(-9, 9, 5 * N).astype(np.float32)
    return [x, np.zeros(5 * N, np.float32), np.array([3, 80, 7, 160, 240], np.int32), 5, N]


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("passes", [TWICE, ONCE], ids=["two passes", "one pass"])
def test_prefetches(name: str, passes: str) -> None:
    body, by, moves = BODIES[name]
    text = source(body, by, passes)
    compare(text, inputs())
    lines = [line for line in build(text).text.splitlines() if "call void @llvm.prefetch" in line]
    assert bool(lines) == (moves and passes is TWICE)
    if lines:  # the data is fetched in the first pass, the result's place in the last
        assert {", i32 0, i32 2" in line for line in lines} == {True, False}


def test_long_chains_of_arithmetic() -> None:
    steps = ["%b0 = mul %r, %n : i32", *(f"%b{i + 1} = add %b{i}, %z : i32" for i in range(2000))]
    text = source("\n".join([*steps, f"%s = splat %b2000 : {N}xi32", f"%at = add %s, %i : {N}xi32"]), "", TWICE)
    compare(text, inputs())

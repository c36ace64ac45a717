"""Conversions of layout by shuffles, lowered and run in the emulator: random layouts with replicas, every kind of
element."""

import random
import sys
from pathlib import Path

import emulator
import numpy as np
import pytest

from triton.backends.compiler import GPUTarget
from triton.backends.hip import capabilities as chips
from triton.backends.hip.pipeline import HIPBackend
from triton.ir.parser import parse_module
from triton.ir.verifier import verify
from triton.layouts.linear import INPUTS, LinearLayout, plan_conversion

sys.path.append(str(Path(__file__).parents[1] / "layouts"))
from test_linear import random_layout
from test_shuffles import traded, within_warps

# element of the tile -> in memory, its NumPy type, and the ops between memory and tile
KINDS = {
    "f32": ("f32", np.float32, None, None),
    "f16": ("f16", np.float16, None, None),
    "i8": ("i8", np.int8, None, None),
    "f8e5m2": ("i8", np.int8, "bitcast", "bitcast"),
    "i16": ("i16", np.int16, None, None),
    "i64": ("i64", np.int64, None, None),
    "f64": ("f64", np.float64, None, None),
    "i1": ("i8", np.int8, "cast", "cast"),
    "ptr<f32>": ("i64", np.int64, "bitcast", "bitcast"),
}


def described(layout: LinearLayout) -> str:
    parts = [f"{name} = {list(getattr(layout, name))}" for name in INPUTS if getattr(layout, name)]
    return f"{{{', '.join([*parts, f'shape = {list(layout.shape)}'])}}}"


def module_text(kind: str, source: LinearLayout, target: LinearLayout) -> str:
    memory, _, into, out = KINDS[kind]
    (n,) = source.shape
    tile = f"{n}x{kind}"
    made = f"%m = {into} %v : {tile} #S" if into else ""
    back = f"%r = {out} %c : {n}x{memory} #T" if out else ""
    return f"""module {{layouts = {{S = {described(source)}, T = {described(target)}}}, num_warps = {source.warps}}} {{
func @kernel(%x: ptr<{memory}>, %y: ptr<{memory}>) {{kernel = true}} {{
  %a = arange {{start = 0, end = {n}}} : {n}xi32 #S
  %b = splat %x : {n}xptr<{memory}> #S
  %p = addptr %b, %a : {n}xptr<{memory}> #S
  %v = load %p : {n}x{memory} #S
  {made}
  %c = convert_layout {"%m" if into else "%v"} : {tile} #T
  {back}
  %d = arange {{start = 0, end = {n}}} : {n}xi32 #T
  %e = splat %y : {n}xptr<{memory}> #T
  %q = addptr %e, %d : {n}xptr<{memory}> #T
  store %q, {"%r" if out else "%c"}
  return
}}
}}
"""


@pytest.mark.parametrize("arch", ["gfx1100", "gfx942"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(6))
def test_every_kind_by_shuffles(kind, seed, arch, monkeypatch):
    monkeypatch.setattr("triton.lowering.simt.convert.shared_cost", lambda *args: 1e9)
    rng = random.Random(f"{kind} {seed} {arch}")
    backend, lanes = HIPBackend(GPUTarget("hip", arch, 0)), chips.chip_of(arch).lanes
    while True:
        source = random_layout(rng, (1 << rng.randint(4, 9),), lanes.bit_length() - 1, rng.randint(0, 2))
        if seed % 2 and source.register:
            target = traded(rng, source)
        else:
            target = within_warps(rng, source, len(source.register) + rng.randint(0, 1))
        if plan_conversion(source, target).kind == "shuffle":
            break
    module = parse_module(module_text(kind, source, target))
    verify(module, "layout")
    metadata = {}
    text = backend.lower(module, metadata, backend.parse_options({"num_warps": source.warps}))
    assert metadata["shared"] == 0
    dtype, n = KINDS[kind][1], source.shape[0]
    numbers = np.random.default_rng(seed)
    if kind == "i1":
        x = numbers.integers(0, 2, n).astype(dtype)
    elif dtype().dtype.kind == "f":
        x = numbers.permutation(n).astype(dtype)
    else:
        x = numbers.integers(0, 256, n * dtype().nbytes, np.uint8).view(dtype)
    after = emulator.Emulator(text, arch, lanes, metadata["threads"]).run("kernel", [x, np.zeros_like(x)], (1, 1, 1))
    np.testing.assert_array_equal(after[1], x)

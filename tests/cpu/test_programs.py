"""Printing, assertions and faults."""

from __future__ import annotations

import numpy as np
import pytest
from tiles import build, check, kernel

from triton import interpreter
from triton._C import libtriton
from triton.ir.core import Location


def printed(source: str, args: list[np.ndarray], grid: tuple[int, int, int] = (1, 1, 1)) -> tuple[list[str], list[str]]:
    """The lines that the CPU prints, sorted, and those of the interpreter."""
    mine: list[str] = []
    expected: list[str] = []
    built = build(source)
    before = libtriton.set_print_sink(lambda line: mine.append(line.rstrip("\n")))
    try:
        built.run(args, grid)
    finally:
        libtriton.set_print_sink(before)
    interpreter.run(built.module, [a.ctypes.data for a in args], grid, output=expected.append)
    return sorted(mine), sorted(line.rstrip("\n") for line in expected)


@pytest.mark.parametrize("type", ["i1", "i8", "u8", "i32", "u64", "f16", "bf16", "f32", "f64", "f8e4m3"])
@pytest.mark.parametrize("hexadecimal", [False, True])
def test_print(type: str, hexadecimal: bool) -> None:
    body = f'print %a, %b {{prefix = "x, y: ", hex = {str(hexadecimal).lower()}}}'
    source = kernel([f"3x5x{type}", type], body, [])
    rng = np.random.default_rng(0)
    width = {"i1": 1, "i8": 1, "u8": 1, "f8e4m3": 1, "f16": 2, "bf16": 2, "i32": 4, "f32": 4, "u64": 8, "f64": 8}[type]
    data = rng.integers(0, 2 if type == "i1" else 256, 15 * width).astype(np.uint8)
    mine, expected = printed(source, [data, data[:width].copy()], (2, 1, 2))
    assert mine == expected and len(mine) == 4 * 16


def test_print_nothing_and_numbers() -> None:
    mine, expected = printed(kernel([], 'print {prefix = "here \\"quoted\\" é"}', []), [], (2, 1, 1))
    assert mine == expected and len(mine) == 2
    data = np.array([0.0, -0.0, np.nan, -np.nan, np.inf, -np.inf, 1e30, 1.5, 1 / 3], np.float32)
    mine, expected = printed(kernel(["9xf32"], 'print %a {prefix = "v "}', []), [data])
    assert mine == expected


def test_assert() -> None:
    body = (
        '%z = constant {value = 0} : 30xi32\n%c = cmp %a, %z {pred = "ge"} : 30xi1\n'
        'assert %c, %b {message = "not negative"}'
    )
    built = build(kernel(["30xi32", "30xi1"], body, []))
    data, mask = np.arange(30, dtype=np.int32), np.ones(30, np.uint8)
    built.run([data, mask])
    data[29] = -1
    with pytest.raises(libtriton.DeviceAssertError, match="assertion failed: not negative"):
        built.run([data, mask])
    mask[29] = 0
    built.run([data, mask])


def test_assert_names_its_place() -> None:
    from triton.ir import parse_module

    module = parse_module(kernel(["i1"], 'assert %a {message = "no"}', []))
    for op in module.walk():
        op.loc = Location("kernel.py", 12, 3, "f")
    built = build(module)
    with pytest.raises(libtriton.DeviceAssertError, match=r"kernel\.py:12: f: assertion failed: no"):
        built.run([np.zeros(1, np.uint8)])


def test_nothing_and_promises() -> None:
    check(["i32"], '%c = cmp %a, %a {pred = "eq"} : i1\nassume %c\nbarrier\n%r = add %a, %a : i32', [("%r", "i32")])


def test_fault() -> None:
    source = kernel([], "%n = constant {value = 0} : ptr<i32>\n%v = load %n : i32", [("%v", "i32")])
    with pytest.raises(libtriton.KernelFault, match="segmentation fault"):
        build(source).run([np.zeros(1, np.int32)])


SCALED = [("e4m3", "f8e4m3"), ("e5m2", "f8e5m2"), ("e4m3", "u8"), ("e2m1", "u8"), ("bf16", "bf16"), ("fp16", "f16")]


@pytest.mark.parametrize("a_format,a_type", SCALED)
@pytest.mark.parametrize("b_format,b_type", SCALED[:4])
@pytest.mark.parametrize("a_scaled,b_scaled", [(True, True), (True, False), (False, True)])
def test_dot_scaled(a_format: str, a_type: str, b_format: str, b_type: str, a_scaled: bool, b_scaled: bool) -> None:
    m, n, k = 12, 20, 64
    ka, kb = (k // 2 if form == "e2m1" else k for form in (a_format, b_format))
    inputs = [f"{m}x{ka}x{a_type}", f"{kb}x{n}x{b_type}", f"{m}x{n}xf32"]
    scales = [f"{size}x{k // 32}xu8" for size, used in ((m, a_scaled), (n, b_scaled)) if used]
    names = ", ".join(f"%{'de'[i]}" for i in range(len(scales)))
    flags = f"a_scaled = {str(a_scaled).lower()}, b_scaled = {str(b_scaled).lower()}"
    forms = f'a_format = "{a_format}", b_format = "{b_format}", {flags}'
    body = f"%r = dot_scaled %a, %b, %c, {names} {{{forms}}} : {m}x{n}xf32"
    check([*inputs, *scales], body, [("%r", f"{m}x{n}xf32")], low=100, high=140, ulps=256)


@pytest.mark.parametrize("side", ["a", "b"])
def test_dot_scaled_packed_across(side: str) -> None:
    """4-bit values packed along M or N instead of K."""
    m, n, k = 12, 20, 32
    a = f"{m // 2}x{k}xu8" if side == "a" else f"{m}x{k // 2}xu8"
    b = f"{k}x{n // 2}xu8" if side == "b" else f"{k // 2}x{n}xu8"
    body = (
        f'%r = dot_scaled %a, %b, %c, %d, %e {{a_format = "e2m1", b_format = "e2m1", a_scaled = true, b_scaled = true, '
        f"{side}_k_pack = false}} : {m}x{n}xf32"
    )
    inputs = [a, b, f"{m}x{n}xf32", f"{m}x1xu8", f"{n}x1xu8"]
    check(inputs, body, [("%r", f"{m}x{n}xf32")], low=100, high=140, ulps=256)

"""Products whose results go from registers to memory."""

from __future__ import annotations

import numpy as np
import pytest
from tiles import Options, build, compare

SHAPES = [(16, 16, 8), (5, 33, 7), (64, 64, 64), (33, 17, 12), (1, 100, 4)]


def grid(name: str, rows: int, columns: int, pitch: int) -> list[str]:
    """%NAME.o: the offsets of a rows x columns tile, %NAME.r and %NAME.c its row and column numbers."""
    shape = f"{rows}x{columns}xi32"
    return [
        f"%{name}.a = arange {{start = 0, end = {rows}}} : {rows}xi32",
        f"%{name}.b = arange {{start = 0, end = {columns}}} : {columns}xi32",
        f"%{name}.d = expand_dims %{name}.a {{axis = 1}} : {rows}x1xi32",
        f"%{name}.e = expand_dims %{name}.b {{axis = 0}} : 1x{columns}xi32",
        f"%{name}.r = broadcast %{name}.d : {shape}",
        f"%{name}.c = broadcast %{name}.e : {shape}",
        f"%{name}.p = constant {{value = {pitch}}} : {shape}",
        f"%{name}.m = mul %{name}.r, %{name}.p : {shape}",
        f"%{name}.o = add %{name}.m, %{name}.c : {shape}",
    ]


def pointers(name: str, base: str, rows: int, columns: int, type: str) -> list[str]:
    shape = f"{rows}x{columns}xptr<{type}>"
    return [f"%{name}.s = splat %{base} : {shape}", f"%{name}.q = addptr %{name}.s, %{name}.o : {shape}"]


def source(m: int, n: int, k: int, body: str, out: str = "f32", target: str = "z") -> str:
    """z = epilogue(a x b): ``body`` makes %v (and %k, a mask) of %r, the product; %w.r, %w.c are rows and columns."""
    lines = [*grid("x", m, k, k), *pointers("x", "a", m, k, "f32"), *grid("y", k, n, n)]
    lines += [*pointers("y", "b", k, n, "f32"), f"%x = load %x.q : {m}x{k}xf32", f"%y = load %y.q : {k}x{n}xf32"]
    lines += [f"%o = constant {{value = 1.0}} : {m}x{n}xf32", f"%r = dot %x, %y, %o : {m}x{n}xf32"]
    lines += [*grid("w", m, n, n), *pointers("w", target, m, n, out), *body.strip().splitlines()]
    lines += ["store %w.q, %v, %k" if "%k =" in body else "store %w.q, %v", "return"]
    text = "\n".join(lines)
    head = f"func @k(%a: ptr<f32>, %b: ptr<f32>, %z: ptr<{out}>, %l: i32) {{kernel = true}}"
    return f"module {{\n{head} {{\n{text}\n}}\n}}\n"


def bodies(m: int, n: int) -> dict[str, tuple[str, str]]:
    tile = f"{m}x{n}"
    return {
        "plain": ("f32", f"%h = constant {{value = 0.0}} : {tile}xf32\n%v = add %r, %h : {tile}xf32"),
        "narrow": ("f16", f"%v = cast %r : {tile}xf16"),
        "integer": ("i8", f"%v = cast %r : {tile}xi8"),
        "masked": (
            "f32",
            f"%u = splat %l : {tile}xi32\n%k1 = cmp %w.r, %u {{pred = \"lt\"}} : {tile}xi1\n"
            f"%k2 = cmp %w.c, %u {{pred = \"lt\"}} : {tile}xi1\n%k = and %k1, %k2 : {tile}xi1\n"
            f"%v = neg %r : {tile}xf32",
        ),
        "used twice": ("f32", f"%v = mul %r, %r : {tile}xf32"),
        "column": ("f32", f"%c = cast %w.c : {tile}xf32\n%v = mul %r, %c : {tile}xf32"),
        "long": (
            "f32",
            f"%e = constant {{value = 0.01}} : {tile}xf32\n%g = mul %r, %e : {tile}xf32\n%v = exp %g : {tile}xf32",
        ),
    }  # fmt: skip


def inputs(m: int, n: int, k: int, out: str) -> list[np.ndarray]:
    rng = np.random.default_rng(m + n + k)
    dtype = {"f32": np.float32, "f16": np.float16, "i8": np.int8}[out]
    a, b = (rng.integers(-4, 5, size).astype(np.float32) for size in (m * k, k * n))
    return [a, b, np.full(m * n, 7, dtype).view(np.uint16 if out == "f16" else dtype)]


@pytest.mark.parametrize("name", bodies(1, 1))
@pytest.mark.parametrize("m, n, k", SHAPES)
@pytest.mark.parametrize("limit", [1000, 9, 0])
def test_values(name: str, m: int, n: int, k: int, limit: int) -> None:
    out, body = bodies(m, n)[name]
    if name == "integer" and k > 7:
        k = 7  # casts of what does not fit are free
    compare(source(m, n, k, body, out), [*inputs(m, n, k, out), limit], ulps=4)


def test_results_do_not_pass_through_scratch() -> None:
    body = bodies(64, 64)["masked"][1]
    assert build(source(64, 64, 64, body)).scratch < 64 * 64 * 4


@pytest.mark.parametrize("m, n, k", [(16, 16, 16), (40, 40, 40)])
@pytest.mark.parametrize("target", ["a", "b"])
def test_over_an_operand(m: int, n: int, k: int, target: str) -> None:
    text = source(m, n, k, bodies(m, n)["plain"][1], target=target)
    compare(text, [*inputs(m, n, k, "f32"), 0], ulps=4)


def test_overlapping_arguments() -> None:
    m = 32
    built = build(source(m, m, m, bodies(m, m)["plain"][1]), Options(may_alias=True))
    a, b, _ = inputs(m, m, m, "f32")
    expected = (a.reshape(m, m) @ b.reshape(m, m) + 1).ravel()
    built.run([a, b, a, 0])
    np.testing.assert_allclose(a, expected, rtol=1e-6)


def test_what_is_read_in_between_is_read_before_the_store() -> None:
    text = source(16, 16, 16, "%q = load %w.q : 16x16xf32\n%v = add %r, %q : 16x16xf32")
    compare(text, [*inputs(16, 16, 16, "f32"), 0], ulps=4)

"""Every op of the table, CPU against interpreter, at sizes that are and are not powers of two."""

from __future__ import annotations

import numpy as np
import pytest
from tiles import build, check, compare, kernel, random

from triton.backends.cpu.capabilities import host, processor
from triton.ir import OPS

ADD = "(%u: {t}, %v: {t}) {{\n  %w = add %u, %v : {t}\n  yield %w\n}}"
PAIR = """(%u: i32, %i: i32, %v: i32, %j: i32) {
  %g = cmp %u, %v {pred = "gt"} : i1
  %e = cmp %u, %v {pred = "eq"} : i1
  %l = cmp %i, %j {pred = "lt"} : i1
  %t = and %e, %l : i1
  %c = or %g, %t : i1
  %x = select %c, %u, %v : i32
  %y = select %c, %i, %j : i32
  yield %x, %y
}"""
RECURRENCE = """(%a1: f32, %b1: f32, %a2: f32, %b2: f32) {
  %m = mul %a1, %a2 : f32
  %n = mul %a2, %b1 : f32
  %s = add %n, %b2 : f32
  yield %m, %s
}"""
FIRST = "(%u: i32, %v: i32) {\n  yield %u\n}"
BRANCH = """(%u: i32, %v: i32) {
  %c = cmp %u, %v {pred = "lt"} : i1
  %w = if %c : i32 () {
    yield %v
  } () {
    yield %u
  }
  yield %w
}"""


def add(t: str) -> str:
    return ADD.format(t=t)


CASES = {
    "constant": (["5xf32"], "%r = constant {value = 2.5} : 5xf32", "5xf32"),
    "arange": (["13xi32"], "%x = arange {start = -3, end = 10} : 13xi32\n%r = add %x, %a : 13xi32", "13xi32"),
    "splat": (["f32"], "%r = splat %a : 3x7xf32", "3x7xf32"),
    "broadcast": (["4x1xf32"], "%r = broadcast %a : 4x9xf32", "4x9xf32"),
    "broadcast_both": (["1x6x1xi32"], "%r = broadcast %a : 5x6x3xi32", "5x6x3xi32"),
    "expand_dims": (["6xf32"], "%r = expand_dims %a {axis = 1} : 6x1xf32", "6x1xf32"),
    "reshape": (["4x6xf32"], "%r = reshape %a : 3x8xf32", "3x8xf32"),
    "reshape_odd": (["5x7x6xi32"], "%x = permute %a {order = [1, 0, 2]} : 7x5x6xi32\n"
        "%r = reshape %x : 10x21xi32", "10x21xi32"),
    "reshape_scalar": (["1x1xi32"], "%r = reshape %a : i32", "i32"),
    "permute": (["4x6x5xf32"], "%r = permute %a {order = [2, 0, 1]} : 5x4x6xf32", "5x4x6xf32"),
    "flip": (["4x37xi32"], "%r = flip %a {axis = 1} : 4x37xi32", "4x37xi32"),
    "flip_outer": (["5x40xi16"], "%r = flip %a {axis = 0} : 5x40xi16", "5x40xi16"),
    "join": (["33xf32", "33xf32"], "%r = join %a, %b : 33x2xf32", "33x2xf32"),
    "join_scalar": (["i32", "i32"], "%r = join %a, %b : 2xi32", "2xi32"),
    "split": (["33x2xf32"], "%x, %y = split %a : 33xf32, 33xf32\n%r = sub %x, %y : 33xf32", "33xf32"),
    "split_scalar": (["2xi32"], "%x, %y = split %a : i32, i32\n%r = sub %x, %y : i32", "i32"),
    "cat": (["4x9xf32", "3x9xf32"], "%r = cat %a, %b {axis = 0} : 7x9xf32", "7x9xf32"),
    "cat_inner": (["4x9xi8", "4x33xi8"], "%r = cat %a, %b {axis = 1} : 4x42xi8", "4x42xi8"),
    "gather": (["50xf32", "17xi32"], "%r = gather %a, %b {axis = 0} : 17xf32", "17xf32"),
    "gather_outer": (["50x6xf32", "9x6xi64"], "%r = gather %a, %b {axis = 0} : 9x6xf32", "9x6xf32"),
    "gather_computed": (["20xi32", "17xi32"], "%x = add %a, %a : 20xi32\n%j = arange {start = 1, end = 18} : 17xi32\n"
                        "%r = gather %x, %j {axis = 0} : 17xi32", "17xi32"),
    "fma": (["9xf32", "9xf32"], "%r = fma %a, %b, %a : 9xf32", "9xf32"),
    "select": (["9xi1", "9xf32"], "%x = neg %b : 9xf32\n%r = select %a, %b, %x : 9xf32", "9xf32"),
    "select_scalar": (["i1", "19xf32"], "%x = neg %b : 19xf32\n%r = select %a, %b, %x : 19xf32", "19xf32"),
    "cast": (["70xf32"], "%r = cast %a : 70xbf16", "70xbf16"),
    "bitcast": (["9xf32"], "%r = bitcast %a : 9xu32", "9xu32"),
    "hint": (["32xi32"], "%r = hint %a {divisible = [1]} : 32xi32", "32xi32"),
    "reduce_inner": (["5x100xi32"], "%r = reduce %a {axis = 1} : 5xi32 " + add("i32"), "5xi32"),
    "reduce_outer": (["33x50xi32"], "%r = reduce %a {axis = 0} : 50xi32 " + add("i32"), "50xi32"),
    "reduce_middle": (["3x7x20xi64"], "%r = reduce %a {axis = 1} : 3x20xi64 " + add("i64"), "3x20xi64"),
    "reduce_scalar": (["301xi32"], "%r = reduce %a {axis = 0} : i32 " + add("i32"), "i32"),
    "reduce_one": (["5x1xi32"], "%r = reduce %a {axis = 1} : 5xi32 " + add("i32"), "5xi32"),
    "reduce_ordered": (["5x77xi32"], "%r = reduce %a {axis = 1} : 5xi32 " + FIRST, "5xi32"),
    "reduce_ordered_outer": (["19x21xi32"], "%r = reduce %a {axis = 0} : 21xi32 " + FIRST, "21xi32"),
    "reduce_branch": (["5x17xi32"], "%r = reduce %a {axis = 1} : 5xi32 " + BRANCH, "5xi32"),
    "scan": (["5x77xi32"], "%r = scan %a {axis = 1} : 5x77xi32 " + add("i32"), "5x77xi32"),
    "scan_one": (["133xi64"], "%r = scan %a {axis = 0} : 133xi64 " + add("i64"), "133xi64"),
    "scan_reverse": (["70xi32"], "%r = scan %a {axis = 0, reverse = true} : 70xi32 " + add("i32"), "70xi32"),
    "scan_outer": (["9x70xi32"], "%r = scan %a {axis = 0, reverse = true} : 9x70xi32 " + add("i32"), "9x70xi32"),
    "scan_ordered": (["40xi32"], "%r = scan %a {axis = 0} : 40xi32 " + FIRST, "40xi32"),
    "scan_branch": (["3x11xi32"], "%r = scan %a {axis = 1} : 3x11xi32 " + BRANCH, "3x11xi32"),
    "map": (["40xf32"], "%r = map %a : 40xf32 (%u: f32) {\n  %v = neg %u : f32\n  yield %v\n}", "40xf32"),
    "map_branch": (["3x7xi32"], "%r = map %a : 3x7xi32 (%u: i32) {\n  %z = constant {value = 0} : i32\n"
                   "  %c = cmp %u, %z {pred = \"lt\"} : i1\n  %w = if %c : i32 () {\n    %n = neg %u : i32\n"
                   "    yield %n\n"
                   "  } () {\n    yield %u\n  }\n  yield %w\n}", "3x7xi32"),
    "map_pack": (["4x6xi32"], "%r = map %a {pack = 2} : 4x6xi32 (%u: i32, %v: i32) {\n  %s = add %u, %v : i32\n"
                 "  %d = sub %u, %v : i32\n  yield %s, %d\n}", "4x6xi32"),
    "dot": (["5x7xi8", "7x9xi8", "5x9xi32"], "%r = dot %a, %b, %c : 5x9xi32", "5x9xi32"),
    "dot_wide": (["33x40xi32", "40x70xi32", "33x70xi32"], "%r = dot %a, %b, %c : 33x70xi32", "33x70xi32"),
    "dot_batch": (["3x5x4xi32", "3x4x18xi32", "3x5x18xi32"], "%r = dot %a, %b, %c : 3x5x18xi32", "3x5x18xi32"),
    "dot_turned": (["20x33xi32", "70x20xi32", "33x70xi32"], "%x = permute %a {order = [1, 0]} : 33x20xi32\n"
                   "%y = permute %b {order = [1, 0]} : 20x70xi32\n%r = dot %x, %y, %c : 33x70xi32", "33x70xi32"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_case(name: str) -> None:
    inputs, body, output = CASES[name]
    gather = name.startswith("gather")
    check(inputs, body, [("%r", output)], low=0 if gather else -100, high=20 if gather else 100)


def test_pairs() -> None:
    body = f"%n0 = arange {{start = 0, end = 90}} : 90xi32\n%x, %y = reduce %a, %n0 {{axis = 0}} : i32, i32 {PAIR}"
    check(["90xi32"], body, [("%x", "i32"), ("%y", "i32")], low=-9, high=9)
    body = (
        "%n0 = arange {start = 0, end = 37} : 37xi32\n%n1 = expand_dims %n0 {axis = 0} : 1x37xi32\n"
        f"%k = broadcast %n1 : 6x37xi32\n%x, %y = reduce %a, %k {{axis = 1}} : 6xi32, 6xi32 {PAIR}"
    )
    check(["6x37xi32"], body, [("%x", "6xi32"), ("%y", "6xi32")], low=-9, high=9)


@pytest.mark.parametrize("axis", [0, 1])
def test_recurrence(axis: int) -> None:
    body = f"%x, %y = scan %a, %b {{axis = {axis}}} : 12x20xf32, 12x20xf32 {RECURRENCE}"
    check(["12x20xf32", "12x20xf32"], body, [("%x", "12x20xf32"), ("%y", "12x20xf32")], ulps=64)
    body = f"%x, %y = scan %a, %b {{axis = 0, reverse = true}} : 64xf32, 64xf32 {RECURRENCE}"
    check(["64xf32", "64xf32"], body, [("%y", "64xf32")], ulps=64)


@pytest.mark.parametrize("kind", ["min", "max"])
@pytest.mark.parametrize("propagate", [False, True])
def test_reductions_with_nan(kind: str, propagate: bool) -> None:
    attr = f"{{propagate_nan = {str(propagate).lower()}}}"
    region = f"(%u: f32, %v: f32) {{\n  %w = {kind} %u, %v {attr} : f32\n  yield %w\n}}"
    data = np.random.default_rng(1).standard_normal((4, 50)).astype(np.float32)
    data[1, 7] = np.nan
    data[2, :] = np.nan
    data[3, 0] = np.inf
    check(["4x50xf32"], f"%r = reduce %a {{axis = 1}} : 4xf32 {region}", [("%r", "4xf32")], data=[data.reshape(-1)])


FLOAT_REDUCTIONS = ["f16", "bf16", "f32", "f64"]


@pytest.mark.parametrize("type", FLOAT_REDUCTIONS)
@pytest.mark.parametrize("axis", [0, 1])
def test_float_sums(type: str, axis: int) -> None:
    out = f"{(60, 23)[axis]}x{type}"
    check([f"23x60x{type}"], f"%r = reduce %a {{axis = {axis}}} : {out} {add(type)}", [("%r", out)], ulps=64)


SORTS = ["i8", "u8", "i16", "i32", "u32", "i64", "u64", "f16", "bf16", "f32", "f64", "f8e4m3", "f8e5m2"]


@pytest.mark.parametrize("type", SORTS)
@pytest.mark.parametrize("shape,axis", [("100", 0), ("3x33", 1), ("40x5", 0), ("1", 0), ("7", 0), ("2x256", 1)])
@pytest.mark.parametrize("descending", [False, True])
def test_sort(type: str, shape: str, axis: int, descending: bool) -> None:
    body = f"%r = sort %a {{axis = {axis}, descending = {str(descending).lower()}}} : {shape}x{type}"
    check([f"{shape}x{type}"], body, [("%r", f"{shape}x{type}")])


def test_sort_with_nan() -> None:
    data = np.array([3, np.nan, -np.inf, 2, np.inf, -np.nan, 0], np.float32)
    for descending in ("false", "true"):
        body = f"%r = sort %a {{axis = 0, descending = {descending}}} : 7xf32"
        check(["7xf32"], body, [("%r", "7xf32")], data=[data])


@pytest.mark.parametrize("type", ["i32", "u8", "i64", "i8"])
def test_histogram(type: str) -> None:
    check([f"300x{type}"], "%r = histogram %a {bins = 17} : 17xi32", [("%r", "17xi32")], low=-5, high=30)
    check([f"300x{type}", "300xi1"], "%r = histogram %a, %b {bins = 17} : 17xi32", [("%r", "17xi32")], low=-5, high=30)


DOTS = [
    ("f16", "f32"),
    ("bf16", "f32"),
    ("f32", "f32"),
    ("f64", "f64"),
    ("f8e4m3", "f32"),
    ("f8e5m2", "f32"),
    ("f16", "f16"),
]


@pytest.mark.parametrize("type,acc", DOTS)
@pytest.mark.parametrize(
    "m,n,k", [(1, 1, 1), (16, 16, 16), (30, 50, 17), (1, 40, 33), (40, 1, 33), (14, 96, 8), (100, 33, 5)]
)
def test_dot(type: str, acc: str, m: int, n: int, k: int) -> None:
    inputs = [f"{m}x{k}x{type}", f"{k}x{n}x{type}", f"{m}x{n}x{acc}"]
    check(inputs, f"%r = dot %a, %b, %c : {m}x{n}x{acc}", [("%r", f"{m}x{n}x{acc}")], ulps=64)


def test_every_op_has_a_case() -> None:
    """Ops covered here, in the random kernels, or in the files named."""
    here = {name.split("_")[0] for name in CASES} | {"expand_dims", "sort", "histogram", "reduce", "scan"}
    arithmetic = {kind for kind, info in OPS.items() if info.elementwise}
    elsewhere = {
        "load", "store", "atomic_rmw", "atomic_cas", "make_desc", "desc_load", "desc_store",  # test_memory
        "for", "while", "if", "call", "yield", "condition", "return",  # test_control
        "program_id", "num_programs", "assert", "print", "assume", "barrier", "dot_scaled",  # test_programs
        "atomic_poll",  # tests/kernels/test_memory
    }  # fmt: skip
    tile_ops = {kind for kind, info in OPS.items() if "tile" in info.stages}
    assert tile_ops - here - arithmetic - elsewhere == set()


@pytest.mark.parametrize("type", ["f32", "f16", "i8", "f64"])
@pytest.mark.parametrize("m,n,k", [(16, 16, 16), (32, 64, 48), (64, 32, 16), (16, 48, 20)])
def test_dot_of_turned_operands(type: str, m: int, n: int, k: int) -> None:
    acc = "i32" if type == "i8" else "f64" if type == "f64" else "f32"
    body = f"""%x = permute %a {{order = [1, 0]}} : {m}x{k}x{type}
%y = permute %b {{order = [1, 0]}} : {k}x{n}x{type}
%r = dot %x, %y, %c : {m}x{n}x{acc}"""
    check([f"{k}x{m}x{type}", f"{n}x{k}x{type}", f"{m}x{n}x{acc}"], body, [("%r", f"{m}x{n}x{acc}")], ulps=64)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("level", ["x86-64-v2", "x86-64-v3"])
def test_older_processors(name: str, level: str) -> None:
    """Narrower vectors, no masked instructions, no fused multiply-add."""
    if not host().has("avx2"):
        pytest.skip("this processor cannot run the code")
    inputs, body, output = CASES[name]
    rng = np.random.default_rng(0)
    gather = name.startswith("gather")
    args = [random(t, rng, 0 if gather else -100, 20 if gather else 100) for t in inputs]
    args.append(random(output, rng))
    compare(kernel(inputs, body, [("%r", output)]), args, cpu=processor(level))


@pytest.mark.parametrize("kind", ["min", "max"])
@pytest.mark.parametrize("type", ["f32", "f64", "f16"])
@pytest.mark.parametrize(
    "shape,axis", [("6x50", 1), ("50x6", 0), ("6x3", 1), ("2x6", 0), ("6x128", 1), ("128x40", 0), ("6x1", 1)]
)
def test_extremes_of_special_numbers(kind: str, type: str, shape: str, axis: int) -> None:
    """Rows (or columns) of NaN, of infinities, and of both."""
    rows, columns = map(int, shape.split("x"))
    inf = np.inf if kind == "min" else -np.inf
    data = np.random.default_rng(0).standard_normal((rows, columns))
    lines = data if axis == 1 else data.T
    lines[0] = np.nan
    lines[1] = inf
    lines[min(2, len(lines) - 1)] = -inf
    lines[min(3, len(lines) - 1)] = np.where(np.arange(lines.shape[1]) % 2, np.nan, inf)
    lines[min(4, len(lines) - 1)] = np.where(np.arange(lines.shape[1]) % 2, 1.5, np.nan)
    region = f"(%u: {type}, %v: {type}) {{\n  %w = {kind} %u, %v : {type}\n  yield %w\n}}"
    out = f"{rows if axis == 1 else columns}x{type}"
    raw = data.astype({"f32": np.float32, "f64": np.float64, "f16": np.float16}[type]).reshape(-1)
    check([f"{shape}x{type}"], f"%r = reduce %a {{axis = {axis}}} : {out} {region}", [("%r", out)], data=[raw])


@pytest.mark.parametrize(
    "size", [1.0, 3.0, 2.0**-140, 2.0**-126, 2.0**-70, 2.0**100, 2.0**127, np.inf, 0.0, np.nan, -7.0]
)
def test_approximate_quotient_by_one_number(size: float) -> None:
    """Large and small divisors, and what is not a number."""
    x = np.array(
        [0.0, -0.0, 1.0, -3.5, 2.0**-126, 2.0**-149, 2.0**127, np.inf, -np.inf, np.nan, 1e-30, 1e30] * 3, np.float32
    )
    body = "%bs = splat %b : 36xf32\n%r = div %a, %bs {approx = true} : 36xf32"
    source = kernel(["36xf32", "f32"], body, [("%r", "36xf32")])
    (_, _, got) = compare_loosely(source, [x, np.array([size], np.float32), np.zeros(36, np.float32)])
    with np.errstate(all="ignore"):
        exact = x.astype(np.float64) / np.float64(np.float32(size))
        rounded = exact.astype(np.float32)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(rounded))
    usual = np.isfinite(rounded) & (np.abs(exact) >= 2.0**-126)
    np.testing.assert_allclose(got[usual], exact[usual], rtol=2.0**-22)
    rest = ~usual & ~np.isnan(rounded)
    np.testing.assert_allclose(got[rest], rounded[rest], rtol=0, atol=2.0**-148)


def compare_loosely(source: str, args: list[np.ndarray]) -> list[np.ndarray]:
    build(source).run(args)
    return args


@pytest.mark.parametrize("spelling", ["or", "select"])
@pytest.mark.parametrize("axis", [0, 1])
def test_maximum_spelled_out(spelling: str, axis: int) -> None:
    """NaN wins: recognised as a selection whose order does not matter."""
    chosen = (
        "%m = or %g, %n : i1"
        if spelling == "or"
        else "%t = constant {value = true} : i1\n  %m = select %n, %t, %g : i1"
    )
    region = f"""(%u: f32, %v: f32) {{
  %g = cmp %u, %v {{pred = "gt"}} : i1
  %n = cmp %u, %u {{pred = "ne"}} : i1
  {chosen}
  %w = select %m, %u, %v : f32
  yield %w
}}"""
    data = np.random.default_rng(0).standard_normal((40, 70)).astype(np.float32)
    data[3, 60], data[7, 0], data[9] = np.nan, np.nan, np.nan
    out = f"{40 if axis else 70}xf32"
    body = f"%r = reduce %a {{axis = {axis}}} : {out} {region}"
    check(["40x70xf32"], body, [("%r", out)], data=[data.reshape(-1)])


@pytest.mark.parametrize("shape,axis", [("64x256", 0), ("65x257", 0), ("3x30x200", 1), ("67x1000", 0), ("40x3x256", 0)])
@pytest.mark.parametrize("type", ["f32", "i64", "f16", "i1"])
def test_large_sums_over_rows(shape: str, axis: int, type: str) -> None:
    """Tiles beyond the first-level cache, sums and an ordered combine."""
    sizes = shape.split("x")
    out = "x".join(sizes[:axis] + sizes[axis + 1 :]) + f"x{type}"
    ordered = f"(%u: {type}, %v: {type}) {{\n  yield %u\n}}"
    for region in (add(type), ordered):
        body = f"%r = reduce %a {{axis = {axis}}} : {out} {region}"
        check([f"{shape}x{type}"], body, [("%r", out)], ulps=256 if type.startswith("f") else 0)

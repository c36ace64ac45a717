"""Loads, stores, atomics and descriptors, and the order of what they do."""

from __future__ import annotations

import re

import numpy as np
import pytest
from tiles import Options, build, check, compare, kernel

ALIASING = [Options(), Options(may_alias=True)]


def text(params: str, body: str) -> str:
    lines = "\n".join("  " + line for line in [*body.strip().splitlines(), "return"])
    return f"module {{\nfunc @kernel({params}) {{kernel = true}} {{\n{lines}\n}}\n}}\n"


VECTOR = """%r = arange {{start = 0, end = {n}}} : {n}xi32
%s = splat %p : {n}xptr<{t}>
%q = addptr %s, %r : {n}xptr<{t}>
"""


@pytest.mark.parametrize("type", ["i1", "i8", "i16", "f16", "bf16", "f32", "f64", "f8e4m3"])
@pytest.mark.parametrize("n", [1, 3, 17, 64, 100])
def test_masked(type: str, n: int) -> None:
    body = (
        f"%r = arange {{start = 0, end = {n}}} : {n}xi32\n%s = splat %pa : {n}xptr<{type}>\n"
        f"%q = addptr %s, %r : {n}xptr<{type}>\n%x = load %q, %b : {n}x{type}\n%y = load %q, %b, %c : {n}x{type}"
    )
    check([f"{n}x{type}", f"{n}xi1", f"{n}x{type}"], body, [("%x", f"{n}x{type}"), ("%y", f"{n}x{type}")])


@pytest.mark.parametrize("place", ["%q", "%far"])
def test_masked_bf16_stays_in_vectors(place: str) -> None:
    """LLVM takes masked vectors of bf16 apart and calls a conversion for each lane stored: a second for one kernel."""
    n = 100
    body = VECTOR.format(n=n, t="bf16") + (
        f'%k = constant {{value = 40}} : {n}xi32\n%m = cmp %r, %k {{pred = "lt"}} : {n}xi1\n'
        f"%i = load %pi : i32\n%is = splat %i : {n}xi32\n%ri = mul %r, %is : {n}xi32\n"
        f"%far = addptr %s, %ri : {n}xptr<bf16>\n%x = load {place}, %m : {n}xbf16\n%y = neg %x : {n}xbf16\n"
        f"store {place}, %y, %m"
    )
    source = text("%p: ptr<bf16>, %pi: ptr<i32>", body)
    built = build(source)
    assert "masked" in built.text and not re.search(r"masked\.\w+\.v\d+bf16", built.text)
    data = np.random.default_rng(0).integers(0, 0x7F80, 200).astype(np.uint16)
    got, _ = compare(source, [data, np.array([2], np.int32)])
    stride = 2 if place == "%far" else 1
    np.testing.assert_array_equal(got[: 40 * stride : stride], data[: 40 * stride : stride] | 0x8000)
    np.testing.assert_array_equal(got[40 * stride :], data[40 * stride :])


@pytest.mark.parametrize("options", ALIASING)
def test_masked_lanes_touch_nothing(options: Options) -> None:
    """Addresses of lanes that are off may be anything, in scalar, vector, strided and gathered accesses."""
    body = """%n = load %pn : i32
%r = arange {start = 0, end = 40} : 40xi32
%ns = splat %n : 40xi32
%m = cmp %r, %ns {pred = "lt"} : 40xi1
%big = constant {value = 268435456} : 40xi32
%zero = constant {value = 0} : 40xi32
%far = select %m, %zero, %big : 40xi32
%i = add %r, %far : 40xi32
%s = splat %p : 40xptr<f32>
%q = addptr %s, %i : 40xptr<f32>
%x = load %q, %m : 40xf32
%t = splat %o : 40xptr<f32>
%u = addptr %t, %i : 40xptr<f32>
store %u, %x, %m
%null = constant {value = 0} : ptr<f32>
%off = constant {value = false} : i1
%y = load %null, %off : f32
store %null, %y, %off"""
    source = text("%pn: ptr<i32>, %p: ptr<f32>, %o: ptr<f32>", body)
    compare(
        source, [np.array([23], np.int32), np.arange(40, dtype=np.float32), np.zeros(40, np.float32)], options=options
    )


@pytest.mark.parametrize("stride", [1, 2, 3, 7, -1, -2, 0])
@pytest.mark.parametrize("options", ALIASING)
def test_strides(stride: int, options: Options) -> None:
    body = f"""%r = arange {{start = 0, end = 37}} : 37xi32
%k = constant {{value = {stride}}} : 37xi32
%i = mul %r, %k : 37xi32
%s = splat %p : 37xptr<i16>
%b = constant {{value = {36 * 7}}} : 37xi32
%j = add %i, %b : 37xi32
%q = addptr %s, %j : 37xptr<i16>
%x = load %q : 37xi16
%t = splat %o : 37xptr<i16>
%u = addptr %t, %{"j" if stride else "r"} : 37xptr<i16>
store %u, %x"""
    size = 36 * 14 + 1
    data = np.arange(size, dtype=np.int16)
    compare(text("%p: ptr<i16>, %o: ptr<i16>", body), [data, np.zeros(size, np.int16)], options=options)


@pytest.mark.parametrize("options", ALIASING)
def test_reversal_in_place(options: Options) -> None:
    """The whole tile is read before any of it is written."""
    body = VECTOR.format(n=100, t="i32") + "%x = load %q : 100xi32\n%y = flip %x {axis = 0} : 100xi32\nstore %q, %y"
    (result,) = compare(text("%p: ptr<i32>", body), [np.arange(100, dtype=np.int32)], options=options)
    np.testing.assert_array_equal(result, np.arange(100)[::-1])


@pytest.mark.parametrize("options", ALIASING)
def test_broadcast_in_place(options: Options) -> None:
    """Every element loads cell 0, adds one and stores: cell 0 is read once for all, and used again afterwards."""
    body = """%z = constant {value = 0} : 64xi32
%s = splat %p : 64xptr<i32>
%q = addptr %s, %z : 64xptr<i32>
%x = load %q : 64xi32
%one = constant {value = 1} : 64xi32
%y = add %x, %one : 64xi32
store %q, %y
%r = arange {start = 0, end = 64} : 64xi32
%t = splat %o : 64xptr<i32>
%u = addptr %t, %r : 64xptr<i32>
store %u, %x"""
    source = text("%p: ptr<i32>, %o: ptr<i32>", body)
    a, b = compare(source, [np.array([5], np.int32), np.zeros(64, np.int32)], options=options)
    assert a[0] == 6 and (b == 5).all()


def test_overlapping_arguments() -> None:
    """out = in + 1 shifted by one element: right only when the load is not fused with the store."""
    body = """%r = arange {start = 0, end = 200} : 200xi32
%s = splat %p : 200xptr<i32>
%q = addptr %s, %r : 200xptr<i32>
%x = load %q : 200xi32
%t = splat %o : 200xptr<i32>
%u = addptr %t, %r : 200xptr<i32>
store %u, %x"""
    built = build(text("%p: ptr<i32>, %o: ptr<i32>", body), Options(may_alias=True))
    data = np.arange(201, dtype=np.int32)
    built.run([data, data[1:]])
    np.testing.assert_array_equal(data, [0, *range(200)])


@pytest.mark.parametrize("options", ALIASING)
def test_store_between_load_and_use(options: Options) -> None:
    body = (
        VECTOR.format(n=50, t="i32")
        + """%x = load %q : 50xi32
%zero = constant {value = 0} : 50xi32
store %q, %zero
%y = load %q : 50xi32
%t = splat %o : 50xptr<i32>
%u = addptr %t, %r : 50xptr<i32>
%d = sub %x, %y : 50xi32
store %u, %d"""
    )
    compare(
        text("%p: ptr<i32>, %o: ptr<i32>", body),
        [np.arange(50, dtype=np.int32), np.zeros(50, np.int32)],
        options=options,
    )


@pytest.mark.parametrize("options", ALIASING)
def test_transposed_scratch(options: Options) -> None:
    """One tile stored, loaded transposed and stored again (case C16)."""
    body = """%i = arange {start = 0, end = 12} : 12xi32
%j = arange {start = 0, end = 20} : 20xi32
%i1 = expand_dims %i {axis = 1} : 12x1xi32
%j1 = expand_dims %j {axis = 0} : 1x20xi32
%w = constant {value = 20} : 12x1xi32
%iw = mul %i1, %w : 12x1xi32
%ib = broadcast %iw : 12x20xi32
%jb = broadcast %j1 : 12x20xi32
%k = add %ib, %jb : 12x20xi32
%ps = splat %p : 12x20xptr<f32>
%pk = addptr %ps, %k : 12x20xptr<f32>
%x = load %pk : 12x20xf32
%zero = constant {value = 0.0} : 12x20xf32
%y = max %x, %zero : 12x20xf32
%ss = splat %s : 12x20xptr<f32>
%sk = addptr %ss, %k : 12x20xptr<f32>
store %sk, %y
%kt = permute %k {order = [1, 0]} : 20x12xi32
%st = splat %s : 20x12xptr<f32>
%sq = addptr %st, %kt : 20x12xptr<f32>
%z = load %sq : 20x12xf32
%f = reshape %z : 240xf32
%r = arange {start = 0, end = 240} : 240xi32
%os = splat %o : 240xptr<f32>
%oq = addptr %os, %r : 240xptr<f32>
store %oq, %f"""
    x = np.random.default_rng(0).standard_normal(240).astype(np.float32)
    args = [x, np.full(240, np.nan, np.float32), np.zeros(240, np.float32)]
    compare(text("%p: ptr<f32>, %s: ptr<f32>, %o: ptr<f32>", body), args, options=options)


ATOMICS = [
    (op, type)
    for type in ("i8", "i16", "i32", "i64", "u32", "u64", "f16", "bf16", "f32", "f64")
    for op in ("add", "max", "min", "and", "or", "xor", "xchg")
    if not (type.startswith(("f", "bf")) and op in ("and", "or", "xor"))
]


@pytest.mark.parametrize("op,type", ATOMICS)
def test_atomic(op: str, type: str) -> None:
    n = 19
    body = f"""%r = arange {{start = 0, end = {n}}} : {n}xi32
%s = splat %pa : {n}xptr<{type}>
%q = addptr %s, %r : {n}xptr<{type}>
%x = atomic_rmw %q, %b, %c {{op = "{op}"}} : {n}x{type}"""
    check([f"{n}x{type}", f"{n}x{type}", f"{n}xi1"], body, [("%x", f"{n}x{type}")])


def test_atomic_on_one_cell_from_many_programs() -> None:
    body = """%one = constant {value = 1} : 8xi32
%z = constant {value = 0} : 8xi32
%s = splat %p : 8xptr<i32>
%q = addptr %s, %z : 8xptr<i32>
%x = atomic_rmw %q, %one {op = "add"} : 8xi32"""
    cell = np.zeros(1, np.int32)
    build(text("%p: ptr<i32>", body)).run([cell], (100, 7, 3))
    assert cell[0] == 8 * 2100


@pytest.mark.parametrize("type", ["i8", "i32", "u64", "f32", "f64", "bf16"])
def test_compare_and_swap(type: str) -> None:
    body = f"""%r = arange {{start = 0, end = 9}} : 9xi32
%s = splat %pa : 9xptr<{type}>
%q = addptr %s, %r : 9xptr<{type}>
%m = arange {{start = 0, end = 9}} : 9xi32
%two = constant {{value = 2}} : 9xi32
%odd = rem %m, %two : 9xi32
%z = constant {{value = 0}} : 9xi32
%c = cmp %odd, %z {{pred = "eq"}} : 9xi1
%e = select %c, %a, %b : 9x{type}
%x = atomic_cas %q, %e, %b : 9x{type}
%y = load %q : 9x{type}"""
    check([f"9x{type}", f"9x{type}"], body, [("%x", f"9x{type}"), ("%y", f"9x{type}")])


@pytest.mark.parametrize("padding", ["zero", "nan"])
@pytest.mark.parametrize("at", [(0, 0), (3, 5), (-2, -3), (9, 30), (100, 0)])
@pytest.mark.parametrize("constant_stride", [True, False])
def test_descriptor(padding: str, at: tuple[int, int], constant_stride: bool) -> None:
    one = "%one = constant {value = 1} : i64" if constant_stride else "%one = load %pone : i64"
    body = f"""%h = load %ph : i32
%w = load %pw : i32
{one}
%s = cast %w : i64
%i = constant {{value = {at[0]}}} : i32
%j = constant {{value = {at[1]}}} : i32
%d = make_desc %p, %h, %w, %s, %one {{padding = "{padding}"}} : desc<5x20xf32>
%x = desc_load %d, %i, %j : 5x20xf32
%e = make_desc %o, %h, %w, %s, %one : desc<5x20xf32>
desc_store %e, %x, %i, %j
%y = add %x, %x : 5x20xf32
desc_store %e, %y, %j, %i"""
    h, w = 11, 33
    x = np.random.default_rng(0).standard_normal(h * w).astype(np.float32)
    args = [np.array([h], np.int32), np.array([w], np.int32), np.array([1], np.int64), x, np.full(h * w, 7, np.float32)]
    compare(text("%ph: ptr<i32>, %pw: ptr<i32>, %pone: ptr<i64>, %p: ptr<f32>, %o: ptr<f32>", body), args)


@pytest.mark.parametrize("op", ["add", "min", "max", "and", "or", "xor"])
def test_descriptor_updates(op: str) -> None:
    body = f"""%n = constant {{value = 10}} : i64
%m = constant {{value = 12}} : i64
%one = constant {{value = 1}} : i64
%d = make_desc %pa, %n, %m, %m, %one : desc<4x5xi32>
%i = constant {{value = 8}} : i32
%j = constant {{value = 9}} : i32
desc_store %d, %b, %i, %j {{op = "{op}"}}
%r = arange {{start = 0, end = 120}} : 120xi32
%s = splat %pa : 120xptr<i32>
%q = addptr %s, %r : 120xptr<i32>
%x = load %q : 120xi32"""
    check(["120xi32", "4x5xi32"], body, [("%x", "120xi32")])


def test_no_tile_is_unrolled() -> None:
    """The code for a large tile is as long as for a small one."""
    body = "%y = exp %a : {n}xf32\n%r = add %y, %b : {n}xf32"
    sizes = []
    for n in (1 << 8, 1 << 20):
        source = kernel([f"{n}xf32"] * 2, body.format(n=n), [("%r", f"{n}xf32")])
        sizes.append(len(build(source).text))
    assert sizes[1] < sizes[0] * 1.05


@pytest.mark.parametrize("type", ["f32", "f16", "i8", "i64", "bf16"])
@pytest.mark.parametrize("m,n", [(32, 32), (64, 16), (16, 128), (33, 16)])
@pytest.mark.parametrize("masked", [False, True])
def test_transposition(type: str, m: int, n: int, masked: bool) -> None:
    """Rows in, columns out."""
    body = f"""%i = arange {{start = 0, end = {m}}} : {m}xi32
%j = arange {{start = 0, end = {n}}} : {n}xi32
%i1 = expand_dims %i {{axis = 1}} : {m}x1xi32
%j1 = expand_dims %j {{axis = 0}} : 1x{n}xi32
%w = constant {{value = {n}}} : {m}x1xi32
%h = constant {{value = {m}}} : 1x{n}xi32
%iw = mul %i1, %w : {m}x1xi32
%jh = mul %j1, %h : 1x{n}xi32
%ib = broadcast %i1 : {m}x{n}xi32
%jb = broadcast %j1 : {m}x{n}xi32
%iwb = broadcast %iw : {m}x{n}xi32
%jhb = broadcast %jh : {m}x{n}xi32
%from = add %iwb, %jb : {m}x{n}xi32
%to = add %jhb, %ib : {m}x{n}xi32
%lim = constant {{value = {m * n // 2}}} : {m}x{n}xi32
%mask = cmp %to, %lim {{pred = "{"lt" if masked else "ne"}"}} : {m}x{n}xi1
%ps = splat %p : {m}x{n}xptr<{type}>
%pq = addptr %ps, %from : {m}x{n}xptr<{type}>
%os = splat %o : {m}x{n}xptr<{type}>
%oq = addptr %os, %to : {m}x{n}xptr<{type}>
%x = load %pq : {m}x{n}x{type}
%y = add %x, %x : {m}x{n}x{type}
store %oq, %y{", %mask" if masked else ""}"""
    width = {"f32": np.float32, "f16": np.float16, "i8": np.int8, "i64": np.int64, "bf16": np.uint16}[type]
    data = np.random.default_rng(0).integers(0, 100, m * n).astype(width)
    source = text(f"%p: ptr<{type}>, %o: ptr<{type}>", body)
    compare(source, [data, np.zeros_like(data)])


@pytest.mark.parametrize("n", [16, 48, 1000, 37, 1])
@pytest.mark.parametrize("promised", [False, True])
@pytest.mark.parametrize("type", ["f32", "i8", "i64", "i1"])
@pytest.mark.parametrize("masked", [False, True])
def test_wrapped_offsets(n: int, promised: bool, type: str, masked: bool) -> None:
    """p + i % n: consecutive in runs that are known only if n has a promise, and not at all for odd n."""
    if promised and n % 16:
        n *= 16
    body = f"""%pid = program_id {{axis = 0}} : i32
%b = constant {{value = 100}} : i32
%o = mul %pid, %b : i32
%r = arange {{start = 0, end = 100}} : 100xi32
%os = splat %o : 100xi32
%i = add %os, %r : 100xi32
%ns = splat %n : 100xi32
%j = rem %i, %ns : 100xi32
%s = splat %p : 100xptr<{type}>
%q = addptr %s, %j : 100xptr<{type}>
%lim = constant {{value = 250}} : 100xi32
%m = cmp %i, %lim {{pred = "lt"}} : 100xi1
%z = constant {{value = {"true" if type == "i1" else "7.0" if type == "f32" else "7"}}} : 100x{type}
%x = load %q{", %m, %z" if masked else ""} : 100x{type}
%t = splat %to : 100xptr<{type}>
%u = addptr %t, %i : 100xptr<{type}>
store %u, %x"""
    attrs = " {divisible = 16}" if promised else ""
    width = {"f32": np.float32, "i8": np.int8, "i64": np.int64, "i1": np.uint8}[type]
    data = np.random.default_rng(0).integers(0, 2 if type == "i1" else 100, n).astype(width)
    source = text(f"%p: ptr<{type}>, %to: ptr<{type}>, %n: i32{attrs}", body)
    compare(source, [data, np.zeros(300, width), n], (3, 1, 1))


@pytest.mark.parametrize("type", ["f32", "i1", "i8", "f64", "bf16"])
@pytest.mark.parametrize("n", [1, 5, 32, 100])
def test_pairs_of_a_stream(type: str, n: int) -> None:
    """Split, computed with and joined again."""
    body = f"""%x = reshape %a : {n}x2x{type}
%y, %z = split %x : {n}x{type}, {n}x{type}
%w = join %z, %y : {n}x2x{type}
%r = reshape %w : {2 * n}x{type}"""
    check([f"{2 * n}x{type}"], body, [("%r", f"{2 * n}x{type}")])


PREDICATES = [("lt", "%c, %ns"), ("le", "%c, %ns"), ("gt", "%ns, %c"), ("ge", "%ns, %c")]


@pytest.mark.parametrize("predicate,operands", PREDICATES)
@pytest.mark.parametrize("n", [-5, 0, 1, 31, 32, 100, 255, 256, 1000, 2**31 - 1, -(2**31)])
@pytest.mark.parametrize("type", ["i32", "i64"])
def test_masks_as_bounds(predicate: str, operands: str, n: int, type: str) -> None:
    """Loads, a reduction and a store whose masks end somewhere inside the tile."""
    body = f"""%r = arange {{start = 0, end = 256}} : 256xi32
%k = constant {{value = 7}} : i32
%ks = splat %k : 256xi32
%q = add %r, %ks : 256xi32
%c = cast %q : 256x{type}
%ns = splat %n : 256x{type}
%m = cmp {operands} {{pred = "{predicate}"}} : 256xi1
%s = splat %p : 256xptr<f32>
%a = addptr %s, %r : 256xptr<f32>
%x = load %a, %m : 256xf32
%h = reduce %x {{axis = 0}} : f32 (%u: f32, %v: f32) {{
  %w = add %u, %v : f32
  yield %w
}}
%hs = splat %h : 256xf32
%y = sub %x, %hs : 256xf32
%t = splat %o : 256xptr<f32>
%b = addptr %t, %r : 256xptr<f32>
store %b, %y, %m"""
    if type == "i64" and abs(n) > 1 << 30:
        n = n << 32 if n < 0 else 2**63 - 1
    if type == "i32":
        body = body.replace("%c = cast %q : 256xi32", "%c = add %q, %zero : 256xi32")
        body = "%zero = constant {value = 0} : 256xi32\n" + body
    x = np.random.default_rng(0).integers(-9, 9, 256).astype(np.float32)
    compare(text(f"%p: ptr<f32>, %o: ptr<f32>, %n: {type}", body), [x, np.full(256, 5, np.float32), n])


@pytest.mark.parametrize("rows", [0, 3, 8])
@pytest.mark.parametrize("columns", [0, 5, 64, 200, 256])
def test_masks_of_two_axes(rows: int, columns: int) -> None:
    """Row and column masks together; the row's own load must not run where its mask is off."""
    body = """%i = arange {start = 0, end = 8} : 8xi32
%j = arange {start = 0, end = 256} : 256xi32
%i1 = expand_dims %i {axis = 1} : 8x1xi32
%j1 = expand_dims %j {axis = 0} : 1x256xi32
%m = splat %rows : 8x1xi32
%n = splat %columns : 1x256xi32
%mi = cmp %i1, %m {pred = "lt"} : 8x1xi1
%mj = cmp %j1, %n {pred = "lt"} : 1x256xi1
%mib = broadcast %mi : 8x256xi1
%mjb = broadcast %mj : 8x256xi1
%mask = and %mib, %mjb : 8x256xi1
%w = constant {value = 256} : 8x1xi32
%iw = mul %i1, %w : 8x1xi32
%iwb = broadcast %iw : 8x256xi32
%jb = broadcast %j1 : 8x256xi32
%k = add %iwb, %jb : 8x256xi32
%ps = splat %p : 8x256xptr<f32>
%pq = addptr %ps, %k : 8x256xptr<f32>
%seven = constant {value = 7.0} : 8x256xf32
%x = load %pq, %mask, %seven : 8x256xf32
%bs = splat %bias : 8x1xptr<f32>
%far = constant {value = 1000000000} : 8x1xi32
%zero = constant {value = 0} : 8x1xi32
%away = select %mi, %zero, %far : 8x1xi32
%at = add %i1, %away : 8x1xi32
%bq = addptr %bs, %at : 8x1xptr<f32>
%b = load %bq, %mi : 8x1xf32
%bb = broadcast %b : 8x256xf32
%y = add %x, %bb : 8x256xf32
%sel = select %mask, %y, %x : 8x256xf32
%os = splat %o : 8x256xptr<f32>
%oq = addptr %os, %k : 8x256xptr<f32>
store %oq, %sel, %mjb"""
    rng = np.random.default_rng(0)
    args = [
        rng.integers(0, 99, 2048).astype(np.float32),
        rng.integers(0, 99, 8).astype(np.float32),
        np.zeros(2048, np.float32),
    ]
    source = text("%p: ptr<f32>, %bias: ptr<f32>, %o: ptr<f32>, %rows: i32, %columns: i32", body)
    compare(source, [*args, rows, columns])


@pytest.mark.parametrize("stride", [1, 2, -1, 0])
@pytest.mark.parametrize("type", ["i32", "i64"])
def test_stride_as_argument(stride: int, type: str) -> None:
    body = f"""%r = arange {{start = 0, end = 64}} : 64xi32
%c = cast %r : 64xi64
%ks = splat %k : 64x{type}
%i = mul {"%r" if type == "i32" else "%c"}, %ks : 64x{type}
%b = constant {{value = 64}} : 64x{type}
%j = add %i, %b : 64x{type}
%s = splat %p : 64xptr<i16>
%q = addptr %s, %j : 64xptr<i16>
%lim = constant {{value = 50}} : 64xi32
%m = cmp %r, %lim {{pred = "lt"}} : 64xi1
%x = load %q, %m : 64xi16
%t = splat %o : 64xptr<i16>
%u = addptr %t, %{"j" if stride else "r"} : 64xptr<i16>
store %u, %x, %m"""
    data = np.arange(200, dtype=np.int16)
    compare(text(f"%p: ptr<i16>, %o: ptr<i16>, %k: {type}", body), [data, np.zeros(200, np.int16), stride])


def test_steps_that_need_two_places() -> None:
    """x + flip(x) along one axis after the other: the work must not double at each step."""
    lines = ["%x0 = add %a, %a : 4x4x4x4xi32"]
    for k in range(12):
        lines += [
            f"%f{k} = flip %x{k} {{axis = {k % 4}}} : 4x4x4x4xi32",
            f"%t{k} = permute %f{k} {{order = [1, 2, 3, 0]}} : 4x4x4x4xi32",
            f"%x{k + 1} = sub %x{k}, %t{k} : 4x4x4x4xi32",
        ]
    check(["4x4x4x4xi32"], "\n".join(lines), [("%x12", "4x4x4x4xi32")])
    source = kernel(["4x4x4x4xi32"], "\n".join(lines), [("%x12", "4x4x4x4xi32")])
    assert build(source).text.count("\n") < 3000

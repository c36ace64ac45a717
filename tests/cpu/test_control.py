"""Loops, branches and calls with scalars and tiles."""

from __future__ import annotations

import numpy as np
import pytest
from tiles import check, compare

TYPES = ["i32", "i64", "u8", "u64", "i8"]
BOUNDS = [(0, 10, 1), (0, 10, 3), (5, 5, 1), (7, 3, 1), (3, 7, 0), (0, 1, 100), (10, 0, -1), (10, 0, -3), (0, 10, -1)]


@pytest.mark.parametrize("type", TYPES)
@pytest.mark.parametrize("low,high,step", BOUNDS)
@pytest.mark.parametrize("known", [False, True])
def test_bounds(type: str, low: int, high: int, step: int, known: bool) -> None:
    if type.startswith("u") and step < 0:
        step = -step
    values = {"a": low, "b": high, "c": step}
    given = "\n".join(f"%k{k} = constant {{value = {v}}} : {type}" for k, v in values.items()) if known else ""
    names = ["%ka", "%kb", "%kc"] if known else ["%a", "%b", "%c"]
    body = f"""{given}
%z = constant {{value = 0}} : i64
%o = constant {{value = 1}} : i64
%n, %s = for {", ".join(names)}, %z, %z : i64, i64 (%i: {type}, %n0: i64, %s0: i64) {{
  %n1 = add %n0, %o : i64
  %w = cast %i : i64
  %s1 = add %s0, %w : i64
  yield %n1, %s1
}}"""
    data = [np.array([v]).astype(f"{'uint' if type[0] == 'u' else 'int'}{type[1:]}") for v in (low, high, step)]
    check([type] * 3, body, [("%n", "i64"), ("%s", "i64")], data=data)


@pytest.mark.parametrize(
    "low,high,step", [(-(2**63), 2**63 - 1, 2**62), (2**63 - 1, -(2**63), -(2**62)), (2**63 - 2, 2**63 - 1, 5)]
)
def test_extreme_bounds(low: int, high: int, step: int) -> None:
    body = """%z = constant {value = 0} : i64
%o = constant {value = 1} : i64
%n = for %a, %b, %c, %z : i64 (%i: i64, %n0: i64) {
  %n1 = add %n0, %o : i64
  yield %n1
}"""
    check(["i64"] * 3, body, [("%n", "i64")], data=[np.array([v]) for v in (low, high, step)])


CARRIED = {
    "in place": "%y = add %x, %b : 37xi32\n  yield %y",
    "reversed": "%t = flip %x {axis = 0} : 37xi32\n  %y = add %t, %b : 37xi32\n  yield %y",
    "same": "yield %x",
    "outer": "yield %b",
    "held": "%t = flip %x {axis = 0} : 37xi32\n  %y = scan %t {axis = 0} : 37xi32 (%u: i32, %v: i32) {\n"
            "    %w = add %u, %v : i32\n    yield %w\n  }\n  yield %y",
    "read after": "%s = scan %x {axis = 0} : 37xi32 (%u: i32, %v: i32) {\n    %w = add %u, %v : i32\n"
        "    yield %w\n  }\n"
                  "  %t = flip %x {axis = 0} : 37xi32\n  %y = add %s, %t : 37xi32\n  yield %y",
    "read later": "%s = sort %x {axis = 0} : 37xi32\n  %h = reduce %x {axis = 0} : i32 (%u: i32, %v: i32) {\n"
                  "    %w = add %u, %v : i32\n    yield %w\n  }\n  %hs = splat %h : 37xi32\n"
                  "  %y = add %s, %hs : 37xi32\n  yield %y",
}  # fmt: skip


@pytest.mark.parametrize("name", CARRIED)
@pytest.mark.parametrize("trips", [0, 1, 2, 5])
def test_carried_tile(name: str, trips: int) -> None:
    body = f"""%z = constant {{value = 0}} : i32
%o = constant {{value = 1}} : i32
%n = constant {{value = {trips}}} : i32
%r = for %z, %n, %o, %a : 37xi32 (%i: i32, %x: 37xi32) {{
  {CARRIED[name]}
}}
%q = add %r, %a : 37xi32"""
    check(["37xi32", "37xi32"], body, [("%r", "37xi32"), ("%q", "37xi32")])


EXCHANGES = {
    "swap": "yield %y, %x",
    "shift": "%t = add %x, %y : 20xi32\n  yield %y, %t",
    "both": "%t = add %x, %y : 20xi32\n  %u = sub %x, %y : 20xi32\n  yield %t, %u",
    "twice": "%t = add %x, %y : 20xi32\n  yield %t, %t",
    "cross": "%t = flip %y {axis = 0} : 20xi32\n  %u = sub %x, %y : 20xi32\n  yield %u, %t",
}


@pytest.mark.parametrize("name", EXCHANGES)
@pytest.mark.parametrize("trips", [0, 1, 2, 3])
def test_two_carried_tiles(name: str, trips: int) -> None:
    body = f"""%z = constant {{value = 0}} : i32
%o = constant {{value = 1}} : i32
%n = constant {{value = {trips}}} : i32
%r, %s = for %z, %n, %o, %a, %b : 20xi32, 20xi32 (%i: i32, %x: 20xi32, %y: 20xi32) {{
  {EXCHANGES[name]}
}}"""
    check(["20xi32", "20xi32"], body, [("%r", "20xi32"), ("%s", "20xi32")])


def test_nested_loops() -> None:
    body = """%z = constant {value = 0} : i32
%o = constant {value = 1} : i32
%n = constant {value = 3} : i32
%r = for %z, %n, %o, %a : 20xi32 (%i: i32, %x: 20xi32) {
  %s = for %z, %i, %o, %x : 20xi32 (%j: i32, %y: 20xi32) {
    %t = flip %y {axis = 0} : 20xi32
    %u = add %t, %b : 20xi32
    yield %u
  }
  %v = for %z, %n, %o, %s : 20xi32 (%k: i32, %w: 20xi32) {
    %ks = splat %k : 20xi32
    %q = add %w, %ks : 20xi32
    yield %q
  }
  yield %v
}"""
    check(["20xi32", "20xi32"], body, [("%r", "20xi32")])


@pytest.mark.parametrize("trips", [0, 1, 4])
def test_inductions(trips: int) -> None:
    """Pointers and integers that grow by the same everywhere, up and down, and are used after the loop."""
    body = f"""%z = constant {{value = 0}} : i32
%o = constant {{value = 1}} : i32
%n = constant {{value = {trips}}} : i32
%r = arange {{start = 0, end = 10}} : 10xi32
%s = splat %pa : 10xptr<i32>
%p = addptr %s, %r : 10xptr<i32>
%step = constant {{value = 10}} : 10xi32
%zero = constant {{value = 0}} : 10xi32
%small = constant {{value = 100}} : 10xi8
%add = constant {{value = 90}} : 10xi8
%x, %q, %e, %d = for %z, %n, %o, %zero, %p, %small, %r : 10xi32, 10xptr<i32>, 10xi8, 10xi32
    (%i: i32, %acc: 10xi32, %pp: 10xptr<i32>, %ee: 10xi8, %dd: 10xi32) {{
  %l = load %pp : 10xi32
  %w = cast %ee : 10xi32
  %t = add %acc, %l : 10xi32
  %t2 = add %t, %w : 10xi32
  %t3 = sub %t2, %dd : 10xi32
  %pn = addptr %pp, %step : 10xptr<i32>
  %en = add %ee, %add : 10xi8
  %is = splat %i : 10xi32
  %dn = sub %dd, %is : 10xi32
  yield %t3, %pn, %en, %dn
}}
%y = load %q : 10xi32
%f = cast %e : 10xi32
%g = add %f, %d : 10xi32"""
    check(["60xi32"], body, [("%x", "10xi32"), ("%y", "10xi32"), ("%g", "10xi32")])


@pytest.mark.parametrize("condition", [False, True])
def test_if(condition: bool) -> None:
    body = """%x, %s = if %a : 20xi32, i32 () {
  %t = sort %b {axis = 0} : 20xi32
  %one = constant {value = 1} : i32
  yield %t, %one
} () {
  %u = flip %b {axis = 0} : 20xi32
  %h = reduce %b {axis = 0} : i32 (%v: i32, %w: i32) {
    %m = max %v, %w : i32
    yield %m
  }
  yield %u, %h
}"""
    check(["i1", "20xi32"], body, [("%x", "20xi32"), ("%s", "i32")], data=[np.array([condition], np.uint8)])


def test_if_with_stores() -> None:
    """A load before the branch sees what was there before the store inside it."""
    body = """%r = arange {start = 0, end = 20} : 20xi32
%s = splat %pb : 20xptr<i32>
%p = addptr %s, %r : 20xptr<i32>
%x = load %p : 20xi32
if %a () {
  %z = constant {value = 0} : 20xi32
  store %p, %z
  yield
} () {
  yield
}
%y = load %p : 20xi32
%d = sub %x, %y : 20xi32"""
    for condition in (0, 1):
        check(["i1", "20xi32"], body, [("%d", "20xi32")], data=[np.array([condition], np.uint8)])


def test_while() -> None:
    body = """%z = constant {value = 0} : i32
%lim = constant {value = 1000} : i32
%o = constant {value = 1} : i32
%x, %n = while %a, %z : 20xi32, i32 (%u: 20xi32, %k: i32) {
  %m = reduce %u {axis = 0} : i32 (%v: i32, %w: i32) {
    %mm = max %v, %w : i32
    yield %mm
  }
  %c = cmp %m, %lim {pred = "lt"} : i1
  %f = flip %u {axis = 0} : 20xi32
  condition %c, %f, %k
} (%y: 20xi32, %j: i32) {
  %t = add %y, %b : 20xi32
  %t2 = add %t, %y : 20xi32
  %j1 = add %j, %o : i32
  yield %t2, %j1
}"""
    for high in (100, 3000):
        check(["20xi32", "20xi32"], body, [("%x", "20xi32"), ("%n", "i32")], low=1, high=high)


def test_calls() -> None:
    extra = """func @twice(%x: 12xi32, %s: i32, %c: i1) -> 12xi32, i32 {noinline = true} {
  %ss = splat %s : 12xi32
  %t = flip %x {axis = 0} : 12xi32
  %y = add %t, %ss : 12xi32
  %h = call %y {callee = "inner"} : i32
  %h2 = select %c, %h, %s : i32
  return %y, %h2
}
func @inner(%x: 12xi32) -> i32 {noinline = true} {
  %h = reduce %x {axis = 0} : i32 (%u: i32, %v: i32) {
    %w = add %u, %v : i32
    yield %w
  }
  return %h
}"""
    body = """%e = add %a, %a : 12xi32
%t = constant {value = true} : i1
%x, %h = call %e, %b, %t {callee = "twice"} : 12xi32, i32
%y, %k = call %x, %h, %t {callee = "twice"} : 12xi32, i32"""
    check(["12xi32", "i32"], body, [("%x", "12xi32"), ("%y", "12xi32"), ("%k", "i32")], extra=extra)


def test_invariant_operands_of_a_dot() -> None:
    """Packed once before the loop; the other operand changes."""
    body = """%z = constant {value = 0} : i32
%o = constant {value = 1} : i32
%n = constant {value = 4} : i32
%zero = constant {value = 0} : 20x18xi32
%r = for %z, %n, %o, %zero : 20x18xi32 (%i: i32, %acc: 20x18xi32) {
  %is = splat %i : 7x18xi8x
  %q = add %b, %is : 7x18xi8x
  %d = dot %a, %q, %acc : 20x18xi32
  %e = dot %a, %b, %d : 20x18xi32
  yield %e
}""".replace("i8x", "i32")
    check(["20x7xi32", "7x18xi32"], body, [("%r", "20x18xi32")])


def test_program_ids() -> None:
    source = """module {
func @kernel(%o: ptr<i32>) {kernel = true} {
  %x = program_id {axis = 0} : i32
  %y = program_id {axis = 1} : i32
  %z = program_id {axis = 2} : i32
  %nx = num_programs {axis = 0} : i32
  %ny = num_programs {axis = 1} : i32
  %nz = num_programs {axis = 2} : i32
  %a = mul %z, %ny : i32
  %b = add %a, %y : i32
  %c = mul %b, %nx : i32
  %i = add %c, %x : i32
  %p = addptr %o, %i : ptr<i32>
  %h = constant {value = 100} : i32
  %d = mul %z, %h : i32
  %e = add %d, %y : i32
  %f = mul %e, %h : i32
  %g = add %f, %x : i32
  %v = mul %nz, %g : i32
  store %p, %v
  return
}
}"""
    compare(source, [np.zeros(5 * 7 * 3, np.int32)], (5, 7, 3))


@pytest.mark.parametrize("trips", [0, 1, 2, 3])
def test_loops_in_a_row(trips: int) -> None:
    """Each loop may take over the other's places; what comes later must not land on them."""
    body = f"""%z = constant {{value = 0}} : i32
%o = constant {{value = 1}} : i32
%n = constant {{value = {trips}}} : i32
%r = for %z, %n, %o, %a : 37xi32 (%i: i32, %x: 37xi32) {{
  %t = flip %x {{axis = 0}} : 37xi32
  %y = add %t, %b : 37xi32
  yield %y
}}
%s = for %z, %n, %o, %r : 37xi32 (%j: i32, %x2: 37xi32) {{
  %t2 = flip %x2 {{axis = 0}} : 37xi32
  %y2 = sub %t2, %b : 37xi32
  yield %y2
}}
%q = sort %b {{axis = 0}} : 37xi32
%p = sort %a {{axis = 0}} : 37xi32
%m = sort %q {{axis = 0, descending = true}} : 37xi32
%u = for %z, %n, %o, %s : 37xi32 (%k: i32, %x3: 37xi32) {{
  %y3 = add %x3, %m : 37xi32
  yield %y3
}}
%w = sort %p {{axis = 0, descending = true}} : 37xi32
%f = add %u, %w : 37xi32"""
    check(["37xi32", "37xi32"], body, [("%f", "37xi32"), ("%q", "37xi32")])


TURNED = {
    "dot": "%r = dot %t, %b, %z48 : 32x32xi32",
    "columns": "%q = reduce %t {axis = 0} : 48xi32 (%u: i32, %v: i32) {\n  %w = add %u, %v : i32\n  yield %w\n"
    "}\n%r = splat %one : 32x32xi32\n"
    "%x = expand_dims %q {axis = 0} : 1x48xi32",
    "call": '%y = call %t {callee = "turn"} : 48x32xi32\n%r = dot %t, %y, %z48 : 32x32xi32',
    "join": "%j = join %t, %t : 32x48x2xi32\n%k = reshape %j : 32x96xi32\n%c = cat %b, %b {axis = 0} : 96x32xi32\n"
    "%r = dot %k, %c, %z48 : 32x32xi32",
    "second loop": "%t2 = for %zero, %n, %one, %t : 32x48xi32 (%k: i32, %acc2: 32x48xi32) {\n"
    "  %f = flip %acc2 {axis = 0} : 32x48xi32\n"
    "  %g = add %f, %acc2 : 32x48xi32\n  yield %g\n}\n%r = dot %t2, %b, %z48 : 32x32xi32",
}


@pytest.mark.parametrize("name", TURNED)
@pytest.mark.parametrize("trips", [0, 1, 3])
def test_tiles_made_of_columns(name: str, trips: int) -> None:
    """A carried tile that is read from memory along its first axis, and what may be done with it."""
    extra = """func @turn(%x: 32x48xi32) -> 48x32xi32 {noinline = true} {
  %y = permute %x {order = [1, 0]} : 48x32xi32
  return %y
}"""
    body = f"""%zero = constant {{value = 0}} : i32
%one = constant {{value = 1}} : i32
%n = constant {{value = {trips}}} : i32
%z48 = constant {{value = 0}} : 32x32xi32
%i = arange {{start = 0, end = 32}} : 32xi32
%jj = arange {{start = 0, end = 48}} : 48xi32
%i1 = expand_dims %i {{axis = 1}} : 32x1xi32
%j1 = expand_dims %jj {{axis = 0}} : 1x48xi32
%ld = constant {{value = 32}} : 1x48xi32
%jl = mul %j1, %ld : 1x48xi32
%ib = broadcast %i1 : 32x48xi32
%jb = broadcast %jl : 32x48xi32
%o = add %ib, %jb : 32x48xi32
%ps = splat %pa : 32x48xptr<i32>
%p = addptr %ps, %o : 32x48xptr<i32>
%init = constant {{value = 1}} : 32x48xi32
%t = for %zero, %n, %one, %init : 32x48xi32 (%trip: i32, %acc: 32x48xi32) {{
  %l = load %p : 32x48xi32
  %next = add %acc, %l : 32x48xi32
  yield %next
}}
{TURNED[name]}
%sum = reduce %t {{axis = 1}} : 32xi32 (%u9: i32, %v9: i32) {{
  %w9 = add %u9, %v9 : i32
  yield %w9
}}"""
    check(["1536xi32", "48x32xi32"], body, [("%r", "32x32xi32"), ("%sum", "32xi32")], extra=extra)


def test_program_ids_in_a_function() -> None:
    source = """module {
func @place(%n: i32) -> i32 {noinline = true} {
  %x = program_id {axis = 0} : i32
  %y = program_id {axis = 1} : i32
  %w = num_programs {axis = 0} : i32
  %a = mul %y, %w : i32
  %b = add %a, %x : i32
  %c = mul %b, %n : i32
  return %c
}
func @kernel(%o: ptr<i32>, %n: i32) {kernel = true} {
  %i = call %n {callee = "place"} : i32
  %p = addptr %o, %i : ptr<i32>
  store %p, %i
  return
}
}"""
    compare(source, [np.zeros(5 * 4 * 3, np.int32), 3], (5, 4, 1))


@pytest.mark.parametrize("type", ["i1", "i8", "f16", "bf16", "f8e4m3", "f64", "u32"])
@pytest.mark.parametrize("trips", [0, 1, 3])
def test_carried_types(type: str, trips: int) -> None:
    """Tiles, numbers and pointers of every width, some turned over on the way."""
    step = "xor" if type == "i1" else "add"
    body = f"""%z = constant {{value = 0}} : i32
%o = constant {{value = 1}} : i32
%n = constant {{value = {trips}}} : i32
%r, %s, %p = for %z, %n, %o, %a, %b, %pa : 21x{type}, {type}, ptr<{type}>
    (%i: i32, %x: 21x{type}, %y: {type}, %q: ptr<{type}>) {{
  %f = flip %x {{axis = 0}} : 21x{type}
  %ys = splat %y : 21x{type}
  %g = {step} %f, %ys : 21x{type}
  %l = load %q : {type}
  %q2 = addptr %q, %o : ptr<{type}>
  yield %g, %l, %q2
}}
%last = load %p : {type}"""
    outputs = [("%r", f"21x{type}"), ("%s", type), ("%last", type)]
    check([f"21x{type}", type], body, outputs)


@pytest.mark.parametrize("trips", [0, 1, 3])
def test_pointers_that_grow_apart(trips: int) -> None:
    """Each element of a pointer tile has a step of its own: no induction."""
    body = f"""%z = constant {{value = 0}} : i32
%o = constant {{value = 1}} : i32
%n = constant {{value = {trips}}} : i32
%r = arange {{start = 0, end = 10}} : 10xi32
%s = splat %pa : 10xptr<i32>
%p = addptr %s, %r : 10xptr<i32>
%zero = constant {{value = 0}} : 10xi32
%x, %q = for %z, %n, %o, %zero, %p : 10xi32, 10xptr<i32> (%i: i32, %acc: 10xi32, %pp: 10xptr<i32>) {{
  %l = load %pp : 10xi32
  %t = add %acc, %l : 10xi32
  %pn = addptr %pp, %r : 10xptr<i32>
  yield %t, %pn
}}
%y = load %q : 10xi32"""
    check(["60xi32"], body, [("%x", "10xi32"), ("%y", "10xi32")])


def test_descriptors_in_loops_and_branches() -> None:
    body = """%z = constant {value = 0} : i32
%o = constant {value = 1} : i32
%n = constant {value = 3} : i32
%four = constant {value = 4} : i64
%six = constant {value = 6} : i64
%one = constant {value = 1} : i64
%d = make_desc %pa, %four, %six, %six, %one : desc<2x8xi32>
%e = make_desc %pa, %six, %four, %four, %one : desc<2x8xi32>
%zero = constant {value = 0} : 2x8xi32
%x, %last = for %z, %n, %o, %zero, %d : 2x8xi32, desc<2x8xi32> (%i: i32, %acc: 2x8xi32, %c: desc<2x8xi32>) {
  %l = desc_load %c, %i, %z : 2x8xi32
  %t = add %acc, %l : 2x8xi32
  %odd = cmp %i, %o {pred = "eq"} : i1
  %next = if %odd : desc<2x8xi32> () {
    yield %d
  } () {
    yield %e
  }
  yield %t, %next
}
%y = desc_load %last, %o, %o : 2x8xi32"""
    check(["24xi32"], body, [("%x", "2x8xi32"), ("%y", "2x8xi32")])


def test_while_in_for_in_if() -> None:
    body = """%z = constant {value = 0} : i32
%o = constant {value = 1} : i32
%n = constant {value = 4} : i32
%c = cmp %b, %z {pred = "ge"} : i1
%r = if %c : 20xi32 () {
  %f = for %z, %n, %o, %a : 20xi32 (%i: i32, %x: 20xi32) {
    %w, %k = while %x, %i : 20xi32, i32 (%u: 20xi32, %j: i32) {
      %m = cmp %j, %z {pred = "gt"} : i1
      condition %m, %u, %j
    } (%v: 20xi32, %l: i32) {
      %t = flip %v {axis = 0} : 20xi32
      %s = add %t, %v : 20xi32
      %l2 = sub %l, %o : i32
      yield %s, %l2
    }
    yield %w
  }
  yield %f
} () {
  yield %a
}"""
    for value in (-1, 1):
        check(["20xi32", "i32"], body, [("%r", "20xi32")], data=[None, np.array([value], np.int32)])


SUMS = {
    "load": "%v = load %q, %m : 256x{t}",
    "other": "%seven = constant {{value = {seven}}} : 256x{t}\n  %v = load %q, %m, %seven : 256x{t}",
    "select": "%l = load %q, %m : 256x{t}\n  %d = sub %l, %ones : 256x{t}\n  %w = select %m, %d, %none : 256x{t}\n"
    "  %v = mul %w, %w : 256x{t}",
    "half select": "%l = load %q, %m : 256x{t}\n  %d = sub %l, %ones : 256x{t}\n  %w = select %m, %d, %none : 256x{t}\n"
    "  %v = mul %w, %d : 256x{t}",
}


@pytest.mark.parametrize("name", SUMS)
@pytest.mark.parametrize("type", ["f32", "i32"])
@pytest.mark.parametrize("n", [0, 5, 256, 300, 700])
@pytest.mark.parametrize("start", [0.0, -0.0, 3.0])
def test_masked_sums(name: str, type: str, n: int, start: float) -> None:
    """Loops that add where a mask holds: what is past its end may be skipped only if nothing is added there."""
    zero, one, seven = ("0.0", "1.0", "7.0") if type == "f32" else ("0", "1", "7")
    first = repr(start) if type == "f32" else repr(int(start))
    body = f"""%z = constant {{value = 0}} : i32
%step = constant {{value = 256}} : i32
%n = constant {{value = {n}}} : i32
%none = constant {{value = {zero}}} : 256x{type}
%ones = constant {{value = {one}}} : 256x{type}
%start = constant {{value = {first}}} : 256x{type}
%r = arange {{start = 0, end = 256}} : 256xi32
%ns = splat %n : 256xi32
%s = splat %pa : 256xptr<{type}>
%t = for %z, %n, %step, %start : 256x{type} (%i: i32, %acc: 256x{type}) {{
  %is = splat %i : 256xi32
  %c = add %is, %r : 256xi32
  %m = cmp %c, %ns {{pred = "lt"}} : 256xi1
  %q = addptr %s, %c : 256xptr<{type}>
  {SUMS[name].format(t=type, seven=seven)}
  %next = add %acc, %v : 256x{type}
  yield %next
}}
%bits = bitcast %t : 256xi32"""
    data = np.random.default_rng(0).integers(-9, 9, 1024).astype(np.float32 if type == "f32" else np.int32)
    check([f"1024x{type}"], body, [("%bits", "256xi32")], data=[data])

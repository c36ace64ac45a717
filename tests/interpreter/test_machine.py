"""Control flow, memory, atomics, regions, printing: modules given as text, run on arrays."""

import time

import numpy as np
import pytest

from triton import interpreter
from triton.ir import parse_module, verify
from triton.ir.core import Location


def kernel(params, body):
    return f"module {{ func @k({params}) {{kernel = true}} {{\n{body}\nreturn\n}} }}"


# Control flow -------------------------------------------------------------------------------------------------------


def test_long_loop(run):
    out = np.zeros(1, np.int32)
    text = kernel(
        "%p: ptr<i32>, %n: i32",
        """%z = constant {value = 0} : i32
        %o = constant {value = 1} : i32
        %r = for %z, %n, %o, %z : i32 (%i: i32, %a: i32) {
          %b = add %a, %i : i32
          yield %b
        }
        store %p, %r""",
    )
    start = time.perf_counter()
    run(text, out, scalars=[100_000])
    assert out[0] == np.array(sum(range(100_000))).astype(np.int32)
    assert time.perf_counter() - start < 20


@pytest.mark.parametrize(
    "low, high, step", [(0, 10, 3), (5, 10, -3), (88, -1, -8), (0, 5, 0), (3, 3, 1), (2**31 - 5, 2**31 - 1, 3)]
)
def test_for_bounds(run, low, high, step):
    out = np.full(64, -1, np.int32)
    text = kernel(
        "%p: ptr<i32>, %l: i32, %h: i32, %s: i32",
        """%z = constant {value = 0} : i32
        %o = constant {value = 1} : i32
        %n = for %l, %h, %s, %z : i32 (%i: i32, %k: i32) {
          %q = addptr %p, %k : ptr<i32>
          store %q, %i
          %m = add %k, %o : i32
          yield %m
        }""",
    )
    run(text, out, scalars=[low, high, step])
    expected = list(range(low, high, step)) if step else []
    assert out.tolist() == expected + [-1] * (64 - len(expected))


def test_while_swaps_carried_values(run):
    out = np.zeros(2, np.int64)
    text = kernel(
        "%p: ptr<i64>, %a: i64, %b: i64",
        """%z = constant {value = 0} : i64
        %g, %h = while %a, %b : i64, i64 (%x: i64, %y: i64) {
          %c = cmp %y, %z {pred = "ne"} : i1
          condition %c, %x, %y
        } (%x: i64, %y: i64) {
          %r = rem %x, %y : i64
          yield %y, %r
        }
        store %p, %g""",
    )
    run(text, out, scalars=[1071, 462])
    assert out[0] == 21


def test_deep_nesting_of_ifs_and_a_call(run):
    depth = 150
    body = '%c = cmp %n, %z {pred = "eq"} : i1\n'
    for k in range(depth):
        body += f"%r{k} = if %c : i32 () {{\n"
    body += '%v = call %n {callee = "f"} : i32\nyield %v\n} () {\n yield %n\n}\n'
    for k in reversed(range(depth - 1)):
        body += f"yield %r{k + 1}\n}} () {{\n yield %n\n}}\n"
    text = f"""module {{
    func @f(%x: i32) -> i32 {{ %a = constant {{value = 41}} : i32
      %b = add %x, %a : i32
      return %b }}
    func @k(%p: ptr<i32>, %n: i32) {{kernel = true}} {{
    %z = constant {{value = 0}} : i32
    {body} store %p, %r0
    return }} }}"""
    out = np.zeros(1, np.int32)
    run(text, out, scalars=[0])
    assert out[0] == 41
    run(text, out, scalars=[7])
    assert out[0] == 7


def test_grid_order_and_ids(run):
    lines = []
    text = kernel("", '%x = program_id {axis = 0} : i32\nprint %x {prefix = ""}')
    run(text, grid=(2, 1, 2), output=lines.append)
    assert lines == [f"pid ({x}, 0, {z}) idx () {x}" for z in (0, 1) for x in (0, 1)]
    run(text, grid=(0, 5, 5), output=lines.append)
    assert len(lines) == 4


# Memory -------------------------------------------------------------------------------------------------------------

COPY = kernel(
    "%p: ptr<f32>, %q: ptr<f32>, %o: i32",
    """%i = arange {start = 0, end = 5} : 5xi32
    %s = splat %o : 5xi32
    %j = add %i, %s : 5xi32
    %a = splat %p : 5xptr<f32>
    %b = addptr %a, %j : 5xptr<f32>
    %x = load %b : 5xf32
    %c = splat %q : 5xptr<f32>
    %d = addptr %c, %i : 5xptr<f32>
    store %d, %x""",
)


def test_access_outside_an_argument_names_it(run):
    x, y = np.arange(8, dtype=np.float32), np.zeros(5, np.float32)
    run(COPY, x, y, scalars=[3])
    assert y.tolist() == [3, 4, 5, 6, 7]
    with pytest.raises(interpreter.MemoryFault, match=r"outside argument 'arg0': index 8, but it has 8 elements"):
        run(COPY, x, y, scalars=[4])
    with pytest.raises(interpreter.MemoryFault, match=r"index -1, but"):
        run(COPY, x, y, scalars=[-1])


def test_fault_carries_the_source_line():
    module = parse_module(COPY)
    for op in module.walk():
        op.loc = Location("kernel.py", 12, 4, "copy")
    x = np.zeros(2, np.float32)
    with pytest.raises(interpreter.InterpreterError, match=r"^kernel.py:12:4: access outside argument 'x'"):
        ranges = [interpreter.Range(x.ctypes.data, x.nbytes, "x")]
        interpreter.run(module, [x.ctypes.data, x.ctypes.data, 0], (1,), ranges)


def test_overlapping_and_nested_ranges(run):
    x = np.arange(16, dtype=np.float32)
    run(COPY, x, x[:6], scalars=[11])
    assert x[:5].tolist() == [11, 12, 13, 14, 15]


def test_odd_byte_addresses(run):
    raw = np.zeros(64, np.uint8)
    view = raw[3:].view(np.uint8)
    x = np.arange(8, dtype=np.float32)
    view[:32] = x.view(np.uint8)
    module = parse_module(COPY)
    out = np.zeros(5, np.float32)
    interpreter.run(module, [raw.ctypes.data + 3, out.ctypes.data, 1], (1,))
    assert out.tolist() == [1, 2, 3, 4, 5]


def test_masked_lanes_may_hold_wild_addresses(run):
    x = np.arange(4, dtype=np.float32)
    y = np.full(8, -1, np.float32)
    text = kernel(
        "%p: ptr<f32>, %q: ptr<f32>, %n: i32",
        """%i = arange {start = 0, end = 8} : 8xi32
        %big = constant {value = 1000000000} : 8xi32
        %s = splat %n : 8xi32
        %m = cmp %i, %s {pred = "lt"} : 8xi1
        %j = select %m, %i, %big : 8xi32
        %a = splat %p : 8xptr<f32>
        %b = addptr %a, %j : 8xptr<f32>
        %e = constant {value = 9.0} : 8xf32
        %x = load %b, %m, %e : 8xf32
        %z = load %b, %m : 8xf32
        %w = add %x, %z : 8xf32
        %c = splat %q : 8xptr<f32>
        %d = addptr %c, %i : 8xptr<f32>
        store %d, %w
        store %b, %w, %m""",
    )
    run(text, x, y, scalars=[4])
    assert y.tolist() == [0, 2, 4, 6, 9, 9, 9, 9] and x.tolist() == [0, 2, 4, 6]
    run(text, x, y, scalars=[0])
    assert y.tolist() == [9] * 8


def test_booleans_are_bytes(run):
    x, y = np.array([0, 1, 2, 255, 128], np.uint8), np.full(5, 7, np.uint8)
    run(COPY.replace("f32", "i1"), x, y, scalars=[0])
    assert y.tolist() == [0, 1, 1, 1, 1]


@pytest.mark.parametrize("op", ["add", "max", "min", "xchg"])
@pytest.mark.parametrize("dtype, ir", [(np.float32, "f32"), (np.int64, "i64"), (np.uint32, "u32"), (np.float16, "f16")])
def test_atomics_on_repeated_addresses(run, op, dtype, ir):
    rng = np.random.default_rng(0)
    index, value = rng.integers(0, 5, 40).astype(np.int32), rng.integers(0, 100, 40).astype(dtype)
    cells, old = np.full(5, 50, dtype), np.zeros(40, dtype)
    mask = np.arange(40) % 7 != 0
    text = kernel(
        f"%c: ptr<{ir}>, %o: ptr<{ir}>, %ip: ptr<i32>, %vp: ptr<{ir}>, %mp: ptr<i1>",
        f"""%i = arange {{start = 0, end = 40}} : 40xi32
        %is = splat %ip : 40xptr<i32>
        %ia = addptr %is, %i : 40xptr<i32>
        %ix = load %ia : 40xi32
        %vs = splat %vp : 40xptr<{ir}>
        %va = addptr %vs, %i : 40xptr<{ir}>
        %v = load %va : 40x{ir}
        %ms = splat %mp : 40xptr<i1>
        %ma = addptr %ms, %i : 40xptr<i1>
        %m = load %ma : 40xi1
        %cs = splat %c : 40xptr<{ir}>
        %ca = addptr %cs, %ix : 40xptr<{ir}>
        %r = atomic_rmw %ca, %v, %m {{op = "{op}"}} : 40x{ir}
        %os = splat %o : 40xptr<{ir}>
        %oa = addptr %os, %i : 40xptr<{ir}>
        store %oa, %r""",
    )
    expected, seen = cells.copy(), np.zeros(40, dtype)
    meaning = {"add": lambda a, b: a + b, "max": max, "min": min, "xchg": lambda a, b: b}[op]
    for k in range(40):
        if mask[k]:
            seen[k] = expected[index[k]]
            expected[index[k]] = meaning(expected[index[k]], value[k])
    run(text, cells, old, index, value, mask)
    np.testing.assert_array_equal(cells, expected)
    np.testing.assert_array_equal(old, seen)


def test_compare_and_swap(run):
    cell, old = np.array([5], np.int32), np.zeros(2, np.int32)
    text = kernel(
        "%p: ptr<i32>, %o: ptr<i32>",
        """%i = arange {start = 0, end = 2} : 2xi32
        %a = splat %p : 2xptr<i32>
        %e = constant {value = 5} : 2xi32
        %n = add %i, %e : 2xi32
        %v = add %n, %e : 2xi32
        %r = atomic_cas %a, %e, %v : 2xi32
        %os = splat %o : 2xptr<i32>
        %oa = addptr %os, %i : 2xptr<i32>
        store %oa, %r""",
    )
    run(text, cell, old)
    assert cell[0] == 10 and old.tolist() == [5, 10]


# Regions ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 2, 3, 7, 12, 33])
@pytest.mark.parametrize("op", ["reduce", "scan", "reverse"])
@pytest.mark.parametrize("branch", [False, True])
def test_combination_that_does_not_commute(run, size, op, branch):
    """x -> m x + c composed along an axis: the earlier map is applied first."""
    rng = np.random.default_rng(0)
    m, c = rng.integers(-3, 4, size), rng.integers(-3, 4, size)
    if branch:
        q = """%t = if %yes : i64 () { %p = mul %m1, %c0 : i64
          yield %p } () { yield %c0 }
          %q = add %t, %c1 : i64"""
        q = '%yes = cmp %m0, %m0 {pred = "eq"} : i1\n' + q
    else:
        q = "%p = mul %m1, %c0 : i64\n%q = add %p, %c1 : i64"
    kind = "reduce" if op == "reduce" else "scan"
    attrs = "{axis = 0, reverse = true}" if op == "reverse" else "{axis = 0}"
    result = "i64, i64" if op == "reduce" else f"{size}xi64, {size}xi64"
    out = "%o" if op == "reduce" else "%oa"
    text = kernel(
        "%mp: ptr<i64>, %cp: ptr<i64>, %o: ptr<i64>",
        f"""%i = arange {{start = 0, end = {size}}} : {size}xi32
        %ms = splat %mp : {size}xptr<i64>
        %ma = addptr %ms, %i : {size}xptr<i64>
        %m = load %ma : {size}xi64
        %cs = splat %cp : {size}xptr<i64>
        %ca = addptr %cs, %i : {size}xptr<i64>
        %c = load %ca : {size}xi64
        %os = splat %o : {size}xptr<i64>
        %oa = addptr %os, %i : {size}xptr<i64>
        %rm, %rc = {kind} %m, %c {attrs} : {result} (%m0: i64, %c0: i64, %m1: i64, %c1: i64) {{
          %w = mul %m0, %m1 : i64
          {q}
          yield %w, %q
        }}
        store {out}, %rc""",
    )
    order = list(range(size))[:: -1 if op == "reverse" else 1]
    running, expected = (1, 0), np.zeros(size, np.int64)
    for k in order:
        running = (running[0] * int(m[k]), int(m[k]) * running[1] + int(c[k]))
        expected[k] = np.array(running[1] & (2**64 - 1), np.uint64).astype(np.int64)
    got = np.zeros(size, np.int64)
    run(text, m, c, got)
    if op == "reduce":
        assert got[0] == expected[-1]
    else:
        np.testing.assert_array_equal(got, expected)


def test_map_with_pack(run):
    x, y = np.arange(12, dtype=np.int32), np.zeros(12, np.int32)
    text = kernel(
        "%p: ptr<i32>, %q: ptr<i32>",
        """%i = arange {start = 0, end = 12} : 12xi32
        %a = splat %p : 12xptr<i32>
        %b = addptr %a, %i : 12xptr<i32>
        %x = load %b : 12xi32
        %r = map %x {pack = 2} : 12xi32 (%u: i32, %v: i32) {
          %s = sub %u, %v : i32
          yield %v, %s
        }
        %c = splat %q : 12xptr<i32>
        %d = addptr %c, %i : 12xptr<i32>
        store %d, %r""",
    )
    run(text, x, y)
    assert y.reshape(6, 2).tolist() == [[2 * k + 1, -1] for k in range(6)]


# Printing and assertions --------------------------------------------------------------------------------------------


def test_print_formats(run):
    lines = []
    x = np.array([1.5, np.nan, -np.inf, 1e-8], np.float32)
    text = kernel(
        "%p: ptr<f32>, %n: i32, %c: i1",
        """%i = arange {start = 0, end = 4} : 4xi32
        %a = splat %p : 4xptr<f32>
        %b = addptr %a, %i : 4xptr<f32>
        %x = load %b : 4xf32
        %y = reshape %x : 2x2xf32
        print %y {prefix = "y: "}
        print %n, %c {prefix = ""}
        print %n {prefix = "n=", hex = true}
        print {prefix = "here"}
        print %p {prefix = "p "}""",
    )
    run(text, x, scalars=[-2, True], output=lines.append)
    head = "pid (0, 0, 0) "
    assert lines == [
        head + "idx (0, 0) y: 1.5",
        head + "idx (0, 1) y: nan",
        head + "idx (1, 0) y: -inf",
        head + "idx (1, 1) y: 1e-08",
        head + "idx () (operand 0) -2",
        head + "idx () (operand 1) 1",
        head + "idx () n=0xfffffffe",
        head + "here",
        head + f"idx () p 0x{x.ctypes.data:016x}",
    ]


def test_assert_names_message_and_line():
    text = kernel(
        "%n: i32",
        """%i = arange {start = 0, end = 4} : 4xi32
        %s = splat %n : 4xi32
        %c = cmp %i, %s {pred = "lt"} : 4xi1
        %k = constant {value = 2} : 4xi32
        %m = cmp %i, %k {pred = "lt"} : 4xi1
        assert %c, %m {message = "index below n"}""",
    )
    module = parse_module(text)
    interpreter.run(module, [2], (1,))
    with pytest.raises(interpreter.AssertionFailed, match=r"^assertion failed: index below n$"):
        interpreter.run(module, [1], (1,))
    for op in module.walk():
        op.loc = Location("file.py", 3, 0, "kern")
    with pytest.raises(AssertionError, match=r"^file\.py:3: kern: assertion failed: index below n$"):
        interpreter.run(module, [1], (1,))


def test_false_assumption_and_gather_out_of_range(run):
    with pytest.raises(interpreter.InterpreterError, match="assumption"):
        run(kernel("%c: i1", "assume %c"), scalars=[False])
    text = kernel(
        "%n: i32",
        """%i = arange {start = 0, end = 4} : 4xi32
        %s = splat %n : 2xi32
        %r = gather %i, %s {axis = 0} : 2xi32""",
    )
    run(text, scalars=[3])
    with pytest.raises(interpreter.InterpreterError, match=r"gather index 4 is outside 0\.\.3"):
        run(text, scalars=[4])


def test_wrong_number_of_arguments(run):
    with pytest.raises(interpreter.InterpreterError, match="@k takes 1 arguments, 0 were given"):
        run(kernel("%n: i32", ""))


# dot and descriptors ------------------------------------------------------------------------------------------------


def test_scaled_dot(run):
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 256, (4, 32), dtype=np.uint8), rng.integers(0, 256, (32, 3), dtype=np.uint8)
    sa, sb = rng.integers(120, 130, (4, 2), dtype=np.uint8), rng.integers(120, 130, (3, 2), dtype=np.uint8)
    e2m1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6])
    left = np.empty((4, 64))
    left[:, 0::2], left[:, 1::2] = e2m1[a & 15], e2m1[a >> 4]
    right = np.empty((64, 3))
    right[0::2], right[1::2] = e2m1[b & 15], e2m1[b >> 4]
    left *= np.repeat(2.0 ** (sa.astype(int) - 127), 32, 1)
    right *= np.repeat(2.0 ** (sb.astype(int) - 127), 32, 1).T
    from triton.interpreter.tiles import dot_scaled
    from triton.ir.types import SCALARS

    attrs = {"a_format": "e2m1", "b_format": "e2m1", "a_scaled": True, "b_scaled": True}
    acc = np.ones((4, 3), np.float32)
    got = dot_scaled([a, b, acc, sa, sb], [SCALARS["u8"], SCALARS["u8"], SCALARS["f32"]], attrs)
    np.testing.assert_allclose(got, left @ right + 1, rtol=1e-6)


def test_descriptor_clips(run):
    x, y = np.arange(30, dtype=np.float32).reshape(5, 6), np.zeros((4, 4), np.float32)
    text = kernel(
        "%p: ptr<f32>, %q: ptr<f32>",
        """%five = constant {value = 5} : i32
        %six = constant {value = 6} : i32
        %four = constant {value = 4} : i32
        %zero = constant {value = 0} : i32
        %m = constant {value = -1} : i32
        %s = constant {value = 6} : i64
        %t = constant {value = 4} : i64
        %o = constant {value = 1} : i64
        %d = make_desc %p, %five, %six, %s, %o : desc<4x4xf32>
        %e = make_desc %q, %four, %four, %t, %o : desc<4x4xf32>
        %x = desc_load %d, %m, %four : 4x4xf32
        desc_store %e, %x, %zero, %zero
        desc_store %e, %x, %zero, %zero {op = "add"}""",
    )
    run(text, x, y)
    expected = np.zeros((4, 4), np.float32)
    expected[1:, :2] = x[:3, 4:]
    np.testing.assert_array_equal(y, 2 * expected)


# Shared memory ------------------------------------------------------------------------------------------------------


def test_copies_land_when_they_are_waited_for():
    text = """module { func @k(%p: ptr<f32>, %q: ptr<f32>) {kernel = true} {
      %z = constant {value = 0} : i32
      %o = constant {value = 1} : i32
      %i = arange {start = 0, end = 4} : 4xi32 #L
      %s = splat %p : 4xptr<f32> #L
      %a = addptr %s, %i : 4xptr<f32> #L
      %t = splat %q : 4xptr<f32> #L
      %d = addptr %t, %i : 4xptr<f32> #L
      %four = constant {value = 4} : 4xi32 #L
      %e = addptr %d, %four : 4xptr<f32> #L
      %g = addptr %e, %four : 4xptr<f32> #L
      %b = alloc_shared {inner = 0} : shared<2 of 4xf32>
      async_copy %b, %z, %a
      async_commit
      async_copy %b, %o, %a
      async_commit
      async_wait {pending = 1}
      %x = shared_load %b, %z : 4xf32 #L
      %y = shared_load %b, %o : 4xf32 #L
      async_wait {pending = 0}
      %w = shared_load %b, %o : 4xf32 #L
      store %d, %x
      store %e, %y
      store %g, %w
      return } }"""
    module = parse_module(text)
    verify(module, "layout")
    x, z = np.arange(4, dtype=np.float32), np.zeros((3, 4), np.float32)
    interpreter.run(module, [x.ctypes.data, z.ctypes.data], (1,))
    assert z[0].tolist() == z[2].tolist() == [0, 1, 2, 3] and np.isnan(z[1]).all()

"""Small kernels and the IR they become."""

from __future__ import annotations

from building import CPU, OPTIONS, body, build, kinds

import triton
import triton.language as tl
from triton.frontend.build import build_module
from triton.ir import print_module


def vector_add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    pid = tl.program_id(axis=0)
    offsets = pid * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)


def test_vector_add_is_the_expected_module():
    module = build(vector_add, "*fp32", "*fp32", "*fp32", "i32", BLOCK=1000)
    assert (
        print_module(module)
        == """\
module {num_stages = 3, num_warps = 4} {
func @vector_add(%x_ptr: ptr<f32>, %y_ptr: ptr<f32>, %out_ptr: ptr<f32>, %n: i32) {kernel = true} {
  %pid = program_id {axis = 0} : i32
  %0 = constant {value = 1000} : i32
  %1 = mul %pid, %0 : i32
  %2 = arange {start = 0, end = 1000} : 1000xi32
  %3 = splat %1 : 1000xi32
  %offsets = add %3, %2 : 1000xi32
  %4 = splat %n : 1000xi32
  %mask = cmp %offsets, %4 {pred = "lt"} : 1000xi1
  %5 = splat %x_ptr : 1000xptr<f32>
  %6 = addptr %5, %offsets : 1000xptr<f32>
  %x = load %6, %mask : 1000xf32
  %7 = splat %y_ptr : 1000xptr<f32>
  %8 = addptr %7, %offsets : 1000xptr<f32>
  %y = load %8, %mask : 1000xf32
  %9 = splat %out_ptr : 1000xptr<f32>
  %10 = addptr %9, %offsets : 1000xptr<f32>
  %11 = add %x, %y : 1000xf32
  store %10, %11, %mask
  return
}
}
"""
    )


def test_literals_take_the_type_of_the_tensor_and_constants_are_shared():
    def kernel(p):
        x = tl.load(p + tl.arange(0, 4))
        tl.store(p + tl.arange(0, 4), x * 2 + 2)

    lines = body(kernel, "*fp16")
    assert [line for line in lines if "constant" in line] == ["%6 = constant {value = 2.0} : 4xf16"]
    assert "%7 = mul %x, %6 : 4xf16" in lines
    assert "%8 = add %7, %6 : 4xf16" in lines


def test_broadcast_pads_on_the_left():
    def kernel(p):
        a = tl.arange(0, 4)[:, None] + tl.arange(0, 8)
        tl.store(p + a, a)

    lines = body(kernel, "*i32")
    assert "%1 = expand_dims %0 {axis = 1} : 4x1xi32" in lines
    assert "%3 = broadcast %1 : 4x8xi32" in lines
    assert "%4 = expand_dims %2 {axis = 0} : 1x8xi32" in lines
    assert "%5 = broadcast %4 : 4x8xi32" in lines


def test_for_carries_what_its_body_assigns():
    def kernel(p, n):
        total = 0
        other = 1.0
        for i in range(n):
            total += i
        tl.store(p, total + other)

    assert body(kernel, "*fp32", "i32") == [
        "%0 = constant {value = 0} : i32",
        "%1 = constant {value = 1.0} : f32",
        "%2 = constant {value = 1} : i32",
        "%total = for %0, %n, %2, %0 : i32 (%i: i32, %total_1: i32) {",
        "  %total_2 = add %total_1, %i : i32",
        "  yield %total_2",
        "}",
        "%3 = cast %total : f32",
        "%4 = add %3, %1 : f32",
        "store %p, %4",
    ]


def test_loop_attributes():
    def kernel(p, n):
        for i in tl.range(
            0, n, 2, num_stages=3, loop_unroll_factor=2, flatten=True, warp_specialize=True, disable_licm=True
        ):
            tl.store(p + i, i)

    line = next(line for line in body(kernel, "*i32", "i32") if " for " in line or line.startswith("for "))
    assert line.endswith(
        "{num_stages = 3, unroll = 2, flatten = true, warp_specialize = true, disable_licm = true} (%i: i32) {"
    )


def test_if_gives_only_what_changed():
    def kernel(p, n):
        a = 1
        b = 2
        if n > 3:
            a = n
        tl.store(p, a + b)

    lines = body(kernel, "*i32", "i32")
    assert "%a = if %3 : i32 () {" in lines
    assert lines.count("  yield %n") == 1
    assert "%4 = add %a, %1 : i32" in lines


def test_guard_clause_puts_the_rest_into_the_other_branch():
    def kernel(p, n):
        if n == 0:
            return
        tl.store(p, n)

    assert body(kernel, "*i32", "i32") == [
        "%0 = constant {value = 0} : i32",
        '%1 = cmp %n, %0 {pred = "eq"} : i1',
        "if %1 () {",
        "  yield",
        "} () {",
        "  store %p, %n",
        "  yield",
        "}",
    ]


def test_while_with_break_carries_a_flag():
    def kernel(p, n):
        i = 0
        while i < n:
            if i == 5:
                break
            i += 1
        tl.store(p, i)

    assert body(kernel, "*i32", "i32") == [
        "%0 = constant {value = 0} : i32",
        "%1 = constant {value = false} : i1",
        "%i, %2 = while %0, %1 : i32, i1 (%i_1: i32, %3: i1) {",
        '  %4 = cmp %i_1, %n {pred = "lt"} : i1',
        "  %5 = constant {value = true} : i1",
        "  %6 = xor %3, %5 : i1",
        "  %7 = and %4, %6 : i1",
        "  condition %7, %i_1, %3",
        "} (%i_2: i32, %8: i1) {",
        "  %9 = constant {value = 5} : i32",
        '  %10 = cmp %i_2, %9 {pred = "eq"} : i1',
        "  %11, %12 = if %10 : i32, i1 () {",
        "    %13 = constant {value = true} : i1",
        "    yield %i_2, %13",
        "  } () {",
        "    %14 = constant {value = 1} : i32",
        "    %i_3 = add %i_2, %14 : i32",
        "    %15 = constant {value = false} : i1",
        "    yield %i_3, %15",
        "  }",
        "  yield %11, %12",
        "}",
        "store %p, %i",
    ]


def test_compile_time_branches_leave_no_trace():
    def kernel(p, FLAG: tl.constexpr):
        if FLAG == "a":
            tl.store(p, 1)
        elif FLAG is None:
            tl.store(p, undefined_name)  # noqa: F821 - never compiled
        else:
            tl.store(p, 2)

    assert kinds(kernel, "*i32", FLAG="a") == ["constant", "store", "return"]
    assert kinds(kernel, "*i32", FLAG="b") == ["constant", "store", "return"]


def test_conditional_expression_without_effects_is_a_select():
    def kernel(p, n):
        tl.store(p, n + 1 if n > 0 else n)

    assert "select" in kinds(kernel, "*i32", "i32")

    def with_load(p, n):
        tl.store(p, tl.load(p + 1) if n > 0 else 0)

    assert "if" in kinds(with_load, "*i32", "i32")


def test_reduce_has_its_combine_function_as_region():
    def kernel(p):
        x = tl.load(p + tl.arange(0, 6))
        tl.store(p, tl.sum(x, axis=0))

    assert body(kernel, "*fp32")[4:] == [
        "%3 = reduce %x {axis = 0} : f32 (%4: f32, %5: f32) {",
        "  %6 = add %4, %5 : f32",
        "  yield %6",
        "}",
        "store %p, %3",
    ]


def test_block_pointer_becomes_arithmetic_and_a_mask_of_the_checked_axis():
    def kernel(p, n, m):
        block = tl.make_block_ptr(p, (n, m), (m, 1), (0, 0), (4, 8), (1, 0))
        block = tl.advance(block, (0, 8))
        tl.store(block, tl.load(block, boundary_check=(1,), padding_option="zero"))

    module = build(kernel, "*fp16", "i32", "i32")
    loads = [op for op in module.walk() if op.kind == "load"]
    stores = [op for op in module.walk() if op.kind == "store"]
    assert [len(op.operands) for op in loads] == [3]
    assert [len(op.operands) for op in stores] == [2]
    assert str(loads[0].result.type) == "4x8xf16"
    offsets = [op.operands[1].type for op in module.walk() if op.kind == "addptr"]
    assert {str(t) for t in offsets} == {"4x8xi64"}


def test_descriptor_ops():
    def kernel(p, n, m):
        d = tl.make_tensor_descriptor(p, [n, m], [m, 1], [4, 16], padding_option="nan")
        d.store([4, 0], d.load([0, 8]))

    assert [k for k in kinds(kernel, "*fp16", "i32", "i32") if "desc" in k] == ["make_desc", "desc_load", "desc_store"]
    ops = {op.kind: op for op in build(kernel, "*fp16", "i32", "i32").walk()}
    assert ops["make_desc"].attrs == {"padding": "nan"}
    assert str(ops["make_desc"].result.type) == "desc<4x16xf16>"


@triton.jit(noinline=True)
def outlined(x, y, FACTOR: tl.constexpr):
    return x * FACTOR, y


def test_noinline_functions_are_emitted_once_for_each_signature():
    def kernel(p):
        a, b = outlined(tl.load(p), 1, 2)
        c, d = outlined(a, 1, 2)
        e, f = outlined(c, 1, 3)
        tl.store(p, e + f + b + d)

    module = build(kernel, "*fp32")
    assert list(module.functions) == ["kernel", "outlined", "outlined_1"]
    assert [op.attrs["callee"] for op in module.walk() if op.kind == "call"] == ["outlined", "outlined", "outlined_1"]


@triton.jit
def inlined(x):
    return x + 1


def test_locations_of_inlined_code_name_the_call():
    def kernel(p):
        tl.store(p, inlined(tl.load(p)))

    add = next(op for op in build(kernel, "*fp32").walk() if op.kind == "add")
    assert add.loc is not None and add.loc.caller is not None
    assert (add.loc.function, add.loc.caller.function) == ("inlined", "kernel")
    assert add.loc.line == inlined.def_file_line_number + 1
    assert add.loc.caller.line == kernel.__code__.co_firstlineno + 1


def test_promises_become_argument_attributes():
    fn = triton.jit(vector_add)
    signature = {"x_ptr": "*fp32", "y_ptr": "*fp32", "out_ptr": "*fp32", "n": "i32", "BLOCK": "constexpr"}
    promises = {(0,): [("tt.divisibility", 16)], (3,): [("tt.divisibility", 16)]}
    module = build_module(fn, signature, {(4,): 8}, promises, OPTIONS, CPU)
    assert module.kernel.arg_attrs == [{"divisible": 16}, {}, {}, {"divisible": 16}]


def test_tuple_arguments_become_one_argument_for_each_leaf():
    def kernel(pair, n):
        p, extra = pair
        q, offset = extra
        tl.static_assert(offset == 3)
        tl.store(p, tl.load(q + offset) + n)

    fn = triton.jit(kernel)
    signature = {"pair": ("*fp32", ("*i32", "constexpr")), "n": "i32"}
    module = build_module(fn, signature, {(0, 1, 1): 3}, {}, OPTIONS, CPU)
    assert [(a.name, str(a.type)) for a in module.kernel.args] == [
        ("pair_0", "ptr<f32>"), ("pair_1_0", "ptr<i32>"), ("n", "i32"),
    ]  # fmt: skip


def test_host_descriptor_becomes_base_sizes_and_strides():
    def kernel(d, p):
        tl.store(p, tl.sum(d.load([0, 0]), axis=None))

    module = build_module(triton.jit(kernel), {"d": "tensordesc<fp16[4, 16]>", "p": "*fp32"}, {}, {}, OPTIONS, CPU)
    assert [str(a.type) for a in module.kernel.args] == ["ptr<f16>", "i64", "i64", "i64", "i64", "ptr<f32>"]
    assert next(iter(module.walk())).kind == "make_desc"


def test_division_of_float32_may_be_approximate_and_the_others_are_exact():
    def kernel(a, b, c, n, p):
        tl.store(p, a / b)
        tl.store(p, n / 3)
        tl.store(p, tl.fdiv(a, a))
        tl.store(p, c / c)
        tl.store(p, tl.div_rn(a, a))
        tl.store(p, tl.fdiv(a, a, ieee_rounding=True))

    divisions = [op for op in build(kernel, "fp32", "fp16", "fp64", "i32", "*fp64").walk() if op.kind == "div"]
    assert [op.attrs.get("approx", False) for op in divisions] == [True, True, True, False, False, False]


def test_a_promise_made_as_a_statement_holds_for_the_variable():
    def kernel(p, n):
        tl.multiple_of(n, 16)
        tl.store(p, n)

    assert body(kernel, "*i32", "i32") == ["%0 = hint %n {divisible = [16]} : i32", "store %p, %0"]


def test_exits_that_cannot_be_taken_leave_a_loop_as_it_is():
    def kernel(p, n, STOP: tl.constexpr):
        for i in range(n):
            tl.store(p + i, i)
            if STOP:
                break

    assert "for" in kinds(kernel, "*i32", "i32", STOP=False)
    assert "while" not in kinds(kernel, "*i32", "i32", STOP=False)
    assert "while" in kinds(kernel, "*i32", "i32", STOP=True)

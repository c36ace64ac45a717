"""Errors about kernels, word for word."""

# ruff: noqa: B007, B018, F401, F841, SIM105, SIM115 - the kernels are wrong on purpose

from __future__ import annotations

import pickle
import re
import traceback
from typing import Any

import pytest
from building import CPU, OPTIONS, build, error, message

import triton
import triton.language as tl
from triton import knobs
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.diagnostics import CompilationError, CompileTimeAssertionFailure, UnsupportedLanguageConstruct
from triton.frontend.build import build_module
from triton.runtime.jit import constexpr_function

SIZE = 128
GOOD = tl.constexpr(4)
ANNOTATED: tl.constexpr = 8


def plain_function(x):
    return x


def line(fn: Any, offset: int) -> str:
    """``file:line`` of the line ``offset`` after ``def``."""
    code = getattr(fn, "fn", fn).__code__
    first = code.co_firstlineno + (1 if hasattr(fn, "fn") else 0)
    return f"{__file__}:{first + offset}"


@triton.jit
def helper(x, n):
    y = x + 1
    return y + tl.arange(0, n)


@triton.jit
def middle(x, n):
    return helper(x, n)


def test_the_call_chain_is_shown_with_carets():
    def kernel(p, n):
        tl.store(p, middle(tl.load(p), n))

    assert (
        str(error(kernel, "*i32", "i32"))
        == f"""\
{line(helper, 2)}:16: in helper, at 3:15:
    return y + tl.arange(0, n)
               ^^^^^^^^^^^^^^^
called from {line(middle, 1)}:12: in middle, at 2:11:
    return helper(x, n)
           ^^^^^^^^^^^^
called from {line(kernel, 1)}:21: in kernel, at 2:16:
    tl.store(p, middle(tl.load(p), n))
                ^^^^^^^^^^^^^^^^^^^^^
arange: end: expected an int known at compile time (tl.constexpr), got a run-time int32"""
    )


def test_an_expression_over_several_lines_is_marked_to_the_end_of_its_first():
    def kernel(p):
        tl.store(
            p,
            tl.load(p) + tl.zeros((4,), tl.float32),
        )

    assert (
        str(error(kernel, "*fp32"))
        == f"""\
{line(kernel, 1)}:9: in kernel, at 2:4:
    tl.store(
    ^^^^^^^^^
store: value: has shape [4], but the pointer is a scalar"""
    )


def test_columns_count_characters_not_bytes():
    def kernel(p):
        größe = "é" + tl.load(p)

    assert str(error(kernel, "*fp32")).splitlines()[1:3] == [
        '    größe = "é" + tl.load(p)',
        "            ^^^^^^^^^^^^^^^^",
    ]


def check(kernel: Any, types: tuple[str, ...], expected: str, **constants: Any) -> None:
    assert message(kernel, *types, **constants) == expected


def test_operands_that_do_not_broadcast():
    def kernel():
        tl.zeros((4, 8), tl.float32) + tl.zeros((4, 3), tl.float32)

    check(
        kernel,
        (),
        "+: shapes [4, 8] and [4, 3] cannot be broadcast together (incompatible dimensions at index 1: 8 and 3)",
    )


def test_a_literal_that_does_not_fit():
    def add(p):
        tl.store(p, tl.load(p) + 300)

    def fill():
        tl.full((4,), 300, tl.int8)

    fits = "300 does not fit int8 (-128 to 127); cast the other operand to a wider type"
    check(add, ("*i8",), f"+: {fits}")
    check(fill, (), f"full: value: {fits}")


def test_globals_must_be_constants():
    def bad(p):
        tl.store(p, SIZE)

    def good(p):
        tl.store(p, GOOD + ANNOTATED)

    check(
        bad,
        ("*i32",),
        "global variable SIZE is not a compile-time constant: kernels may use globals only if they are tl.constexpr, "
        "as in `SIZE = tl.constexpr(128)` or `SIZE: tl.constexpr = 128`",
    )
    assert build(good, "*i32")


def test_names_that_do_not_exist():
    def global_name(p):
        tl.store(p, nowhere)  # noqa: F821

    def module_name(p):
        tl.stoer(p, 1)

    def method(p):
        tl.load(p).summ()

    def python_name(p):
        open(p)

    check(global_name, ("*i32",), "nowhere is not defined")
    check(module_name, ("*i32",), "triton.language has no 'stoer'")
    check(method, ("*i32",), "a tensor has no attribute 'summ'")
    check(python_name, ("*i32",), "Python's open cannot be used in a kernel")


def test_calls_of_what_is_not_jitted():
    def kernel(p):
        plain_function(p)

    check(
        kernel,
        ("*i32",),
        "plain_function is a plain Python function: decorate it with @triton.jit, or with "
        "@triton.constexpr_function to "
        "run it at compile time",
    )


def test_arguments_of_jitted_functions():
    def missing(p):
        helper(p)

    def unknown(p):
        helper(p, 1, m=2)

    def twice(p):
        helper(p, 1, n=2)

    def many(p):
        helper(p, 1, 2)

    check(missing, ("*i32",), "helper: argument n is missing")
    check(unknown, ("*i32",), "helper: has no argument m")
    check(twice, ("*i32",), "helper: got two values for argument n")
    check(many, ("*i32",), "helper: takes 2 arguments, got 3")


@triton.jit
def needs_constant(N: tl.constexpr):
    return tl.arange(0, N)


def test_run_time_values_for_constexpr_parameters():
    """They are taken, as people's kernels rely on it; what needs a constant says so."""

    def kernel(n):
        needs_constant(n)

    check(kernel, ("i32",), "arange: end: expected an int known at compile time (tl.constexpr), got a run-time int32")


def test_causes_of_errors(tmp_path):
    """``__cause__`` is what tests of kernels look at: the operation's error, or that of the function called."""

    @triton.jit
    def direct(p):
        tl.store(p, tl.zeros([4], tl.float32) + tl.zeros([8], tl.float32))

    @triton.jit
    def nested(p):
        needs_constant(p)

    @triton.jit
    def asserted(p):
        tl.static_assert(False)

    @triton.jit
    def unnamed(p):
        p += nothing  # noqa: F821

    def caught(kernel):
        with pytest.raises(CompilationError) as info:
            triton.compile(ASTSource(kernel, {"p": "*fp32"}), target=GPUTarget("cpu", "x86-64", 1))
        return info.value

    assert re.match(r"\+: shapes .*incompatible dimensions at index 0: 4 and 8", str(caught(direct).__cause__))
    outer = caught(nested)
    assert type(outer.__cause__) is CompilationError and "at 2:4:" in str(outer)
    assert "at 2:11:" in str(outer.__cause__) and "at 2:4:" not in str(outer.__cause__)
    assert isinstance(outer.__cause__.__cause__, TypeError)
    assert caught(asserted).__cause__ is None and caught(unnamed).__cause__ is None
    assert "compiler" not in "".join(traceback.format_exception(outer.__cause__)).replace(__file__, "")


@triton.jit
def endless(x):
    return endless(x)


def test_recursion():
    def kernel(p):
        endless(p)

    check(kernel, ("*i32",), "endless: a jitted function must not call itself; use a loop")


def test_branches_of_different_types():
    def kernel(p, n):
        if n > 2:
            y = 1
        else:
            y = tl.arange(0, 4)
        tl.store(p, y)

    check(
        kernel,
        ("*i32", "i32"),
        "Mismatched type for y between then block (a run-time int32) and else block (a tensor int32[4])",
    )


def test_variables_that_only_one_branch_sets():
    def kernel(p, n):
        if n > 2:
            y = 1
        tl.store(p, y)

    first = kernel.__code__.co_firstlineno
    expected = f"y is not defined here: only one branch of the if at line {first + 1} gives it a value"
    check(kernel, ("*i32", "i32"), expected)


def test_variables_that_a_loop_sets_first():
    def kernel(p, n):
        for i in range(n):
            y = i
        tl.store(p, y)

    first = kernel.__code__.co_firstlineno
    expected = f"y is not defined here: it is first assigned inside the loop at line {first + 1}, which may not run"
    check(kernel, ("*i32", "i32"), expected)


def test_loop_variables_keep_their_type():
    def kernel(p, n):
        total = 0
        for i in range(n):
            total = total + 1.5
        tl.store(p, total)

    raised = error(kernel, "*fp32", "i32")
    assert raised.frames[0].line == kernel.__code__.co_firstlineno + 2
    assert raised.error_message == (
        "Loop-carried variable total has initial type int32 but is re-assigned to fp32 in the loop's body; it must "
        "keep its type and shape"
    )


def test_conditions_must_be_scalars():
    def kernel(p):
        if tl.arange(0, 4) > 2:
            tl.store(p, 1)

    check(
        kernel,
        ("*i32",),
        "if: the condition must be a scalar, got a tensor int1[4]; use tl.where to choose by element",
    )


def test_static_assert():
    def kernel(N: tl.constexpr):
        tl.static_assert(N % 2 == 0, f"N is {N}")

    raised = error(kernel, kind=CompileTimeAssertionFailure, N=3)
    assert raised.error_message == "static assertion failed: N is 3"
    build(kernel, N=4)


def unsupported(kernel: Any, types: tuple[str, ...], expected: str) -> None:
    assert error(kernel, *types, kind=UnsupportedLanguageConstruct).error_message == expected


def test_syntax_that_the_language_does_not_have():
    def with_try(p):
        try:
            tl.store(p, 1)
        except ValueError:
            pass

    def with_lambda(p):
        f = lambda x: x  # noqa: E731

    def with_dict(p):
        d = {}

    def with_import(p):
        import math

    def with_nested(p):
        def inner(x):
            return x

    def with_item(p):
        p[0] = 1

    def with_value_in_loop(n):
        for i in range(n):
            if i == 3:
                return i

    def with_else(n):
        while n < 3:
            n += 1
        else:
            n = 2

    unsupported(with_try, ("*i32",), "'try' is not supported in a kernel")
    unsupported(with_lambda, ("*i32",), "a lambda is not supported in a kernel")
    unsupported(with_dict, ("*i32",), "a dict is not supported in a kernel")
    unsupported(with_import, ("*i32",), "'import' is not supported in a kernel")
    unsupported(
        with_nested,
        ("*i32",),
        "inner: a function cannot be defined inside a jitted function; define it at module level",
    )
    unsupported(
        with_item,
        ("*i32",),
        "assigning to part of a tensor is not supported; use tl.where, or tl.store for memory",
    )
    unsupported(
        with_value_in_loop,
        ("i32",),
        "return of a value inside a loop is not supported; leave the loop with break and return after it",
    )
    unsupported(with_else, ("i32",), "else after a loop is not supported")


def test_subscripts():
    def with_int(p):
        tl.arange(0, 4)[1]

    def with_slice(p):
        tl.arange(0, 4)[0:2]

    def too_many(n):
        n[:, None]

    check(
        with_int,
        ("*i32",),
        "subscript: a tensor takes None and : only, got int 1; use tl.gather, or tl.load for memory",
    )
    check(
        with_slice,
        ("*i32",),
        "subscript: a tensor cannot be sliced; use a mask, tl.gather or tl.reshape with tl.split",
    )
    check(too_many, ("i32",), "subscript: has 1 colons, but a run-time int32 has 0 axes")


def test_memory():
    def not_a_pointer(n):
        tl.load(n)

    def none(p):
        tl.load(p)

    def other_without_mask(p):
        tl.load(p, other=1)

    def const(p):
        tl.store(p, 1)

    def mask_shape(p):
        tl.load(p + tl.arange(0, 8), mask=tl.arange(0, 4) < 2)

    def cache(p):
        tl.load(p, cache_modifier=".xy")

    def float_offset(p):
        p + 1.5

    def bitwise(p):
        tl.atomic_and(p, 1)

    check(not_a_pointer, ("i32",), "load: pointer: expected a pointer or a tensor of pointers, got a run-time int32")
    check(
        none,
        (),
        "load: pointer: expected a pointer or a tensor of pointers, got None; test `pointer is not None` first",
        p=None,
    )
    check(other_without_mask, ("*i32",), "load: other: needs a mask")
    check(const, ("*ki32",), "store: Cannot store to a constant pointer")
    check(
        mask_shape,
        ("*i32",),
        "load: shapes [8] and [4] cannot be broadcast together (incompatible dimensions at index 0: 8 and 4)",
    )
    check(cache, ("*i32",), "load: cache_modifier: expected one of '.ca', '.cg', '.cs', '.cv', got '.xy'")
    check(float_offset, ("*i32",), "+: a pointer moves by an integer, got fp32")
    check(bitwise, ("*fp32",), "atomic_and: expected a pointer to integers, got a run-time pointer<fp32>")


def test_shapes():
    def empty():
        tl.arange(3, 3)

    def huge():
        tl.full((2048, 1024), 0, tl.float32)

    def reshape():
        tl.reshape(tl.arange(0, 8), (3, 3))

    def axis():
        tl.sum(tl.arange(0, 8), 1)

    def dot():
        tl.dot(tl.zeros((4, 4), tl.float32), tl.zeros((3, 4), tl.float32))

    check(empty, (), "arange: end must be greater than start, got start=3 and end=3")
    check(
        huge,
        (),
        "full: shape: [2048, 1024]: numel (2097152) exceeds triton maximum tensor numel (1048576)",
    )
    check(reshape, (), "reshape: shape: [3, 3] has 9 elements, the tensor of shape [8] has 8")
    check(axis, (), "reduce: axis: invalid axis 1. Expected -1 <= axis < 1")
    check(dot, (), "dot: the inner sizes of shapes [4, 4] and [3, 4] differ: 4 and 3")


def test_operators():
    def mixed_signs(a, b):
        a // b

    def float_floordiv(a):
        a // 2.0

    def matmul(a):
        a @ a

    def power(a):
        a**2

    def zero():
        1 // 0

    check(
        mixed_signs,
        ("i32", "u32"),
        "Cannot use // with int32 and uint32 because they have different signedness, so that the result is "
        "unlikely to be what you want; cast one of them",
    )
    check(
        float_floordiv,
        ("fp32",),
        "invalid operands of type fp32 and float 2.0 for //: expected integers; use / or tl.floor(a / b) for floats",
    )
    check(matmul, ("fp32",), "@: not supported between run-time values; use tl.dot")
    check(power, ("fp32",), "**: not supported between run-time values; multiply, or use tl.exp2/libdevice.pow")
    check(zero, (), "integer division or modulo by zero")


def test_wrong_arguments_of_operations():
    def unknown(p):
        tl.load(p, masc=1)

    def missing():
        tl.arange(0)

    check(unknown, ("*i32",), "load() got an unexpected keyword argument 'masc'")
    check(missing, (), "arange() missing 1 required positional argument: 'end'")


def test_kernels_return_nothing():
    def kernel(n):
        return n

    check(kernel, ("i32",), "a kernel returns nothing")


def test_what_can_be_polled():
    def tile(p):
        tl.atomic_poll(p + tl.arange(0, 4), 1)

    def wrong(p):
        tl.atomic_poll(p, 1)

    def order(p):
        tl.atomic_poll(p, 1, sem="release")

    def time(p):
        tl.atomic_poll(p, 1, timeout_ns=1.5)

    expected = "atomic_poll: expected a scalar pointer to integers of 16, 32 or 64 bits, got "
    check(tile, ("*i32",), expected + "a tensor pointer<int32>[4]")
    check(wrong, ("*fp32",), expected + "a run-time pointer<fp32>")
    check(wrong, ("*i8",), expected + "a run-time pointer<int8>")
    check(order, ("*i32",), "atomic_poll: sem: expected 'acquire' or 'relaxed', got 'release'")
    check(time, ("*i32",), "atomic_poll: timeout_ns: expected an integer or None, got float 1.5")


def test_bad_values_are_named():
    def shape(p):
        tl.full(None, 1, tl.int32)

    def tuples(p):
        pair = (p, p)
        pair + tl.program_id(0)

    def multiple(p):
        tl.multiple_of(p, 0)

    def assembly(p):
        tl.inline_asm_elementwise("nop", "=r,r", [1], dtype=tl.int32, is_pure=True, pack=0)

    check(shape, ("*i32",), "full: shape: expected a tuple of ints, got None")
    check(multiple, ("*i32",), "multiple_of: values: must be at least 1, got 0")
    check(assembly, ("*i32",), "inline_asm_elementwise: pack: must be at least 1, got 0")
    found = message(tuples, "*i32")
    assert found.startswith("+: not supported between a tuple") and found.endswith("and a run-time int32")


def test_errors_survive_pickling():
    def kernel(p):
        tl.load(1)

    raised = error(kernel, "*i32")
    copy = pickle.loads(pickle.dumps(raised))
    assert type(copy) is CompilationError and str(copy) == str(raised)


def test_operations_outside_of_kernels():
    with pytest.raises(ValueError, match=r"^arange: can only be called inside a function decorated with @triton\.jit$"):
        tl.arange(0, 4)


def test_a_function_without_source():
    space: dict[str, Any] = {}
    exec("def kernel(p):\n    pass\n", space)
    with pytest.raises(OSError, match="source of a jitted function must be in a file"):
        build_module(triton.jit(space["kernel"]), {"p": "*i32"}, {}, {}, OPTIONS, CPU)


@constexpr_function
def bottomless(n):
    return bottomless.fn(n + 1)


def test_endless_compile_time_recursion():
    def kernel(p):
        tl.store(p, bottomless(0))

    check(kernel, ("*i32",), "the kernel, or a function it runs at compile time, is nested too deeply")


def test_any_global_may_be_used_when_asked_for():
    def kernel(p):
        tl.store(p, SIZE)

    with knobs.compilation.scope():
        knobs.compilation.allow_non_constexpr_globals = True
        assert build(kernel, "*i32")


def power(p):
    tl.store(p, 9 ** (9**9))


def shift(p):
    tl.store(p, 1 << (1 << 40))


def text(p):
    tl.static_assert(False, "x" * (1 << 40))


def members(p):
    tl.store(p, ((1,) * (1 << 40))[0])


@pytest.mark.parametrize(
    "kernel, message",
    [
        (power, "**: a compile-time integer may have 65536 bits, the result would have 1549681956"),
        (shift, "<<: a compile-time integer may have 65536 bits, the result would have 1099511627777"),
        (text, "*: a compile-time sequence may have 1048576 members, the result would have 1099511627776"),
        (members, "*: a compile-time sequence may have 1048576 members, the result would have 1099511627776"),
    ],
)
def test_compile_time_values_that_fill_the_memory(kernel, message):
    check(kernel, ("*i32",), message)

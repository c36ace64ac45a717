"""The text form: examples of the op table, round trips, what the printer makes of names, messages of the parser."""

from __future__ import annotations

import math

import pytest

from triton.ir import (
    OPS,
    Builder,
    Function,
    IRError,
    Location,
    Module,
    equal,
    parse_module,
    parse_type,
    print_module,
    verify,
)
from triton.ir import types as t

from .examples import KERNEL, KINDS, example_module


@pytest.mark.parametrize("kind", KINDS)
def test_example_of_every_op(kind: str) -> None:
    text = example_module(kind)
    module = parse_module(text)
    verify(module, "tile" if "tile" in OPS[kind].stages else "layout")
    assert any(op.kind == kind for op in module.walk())
    printed = print_module(module)
    assert printed == text
    assert equal(parse_module(printed), module)


def test_kernel_prints_as_it_was_read() -> None:
    module = parse_module(KERNEL)
    verify(module)
    assert print_module(module) == KERNEL
    assert equal(module, parse_module(KERNEL))


@pytest.mark.parametrize(
    "text",
    ["i1", "u64", "f8e4b15", "ptr<bf16>", "ptr<i8, 3>", "4x1x7xf32", "12xptr<f16>", "desc<8x16xf32>", "4xf32 #mma"],
)
def test_types_round_trip(text: str) -> None:
    assert str(parse_type(text)) == text


@pytest.mark.parametrize("value", [0.0, -0.0, math.inf, -math.inf, math.nan, 5e-324, 0.1, 1e300, 16777217.0])
def test_floats_round_trip(value: float) -> None:
    function = Function("f")
    b = Builder(function.body)
    b.const(value, t.f64)
    b.return_()
    module = Module()
    module.add(function)
    again = parse_module(print_module(module))
    assert equal(module, again)
    read = again.functions["f"].body.ops[0].attrs["value"]
    assert isinstance(read, float)
    assert math.copysign(1, read) == math.copysign(1, value) or math.isnan(value)


def test_attributes_of_every_kind_round_trip() -> None:
    attrs = {"a": 1, "b": True, "c": None, "d": 'é\n"\\\u0007\ud800', "e": (1, (2.5, "x"), ()), "f": {"g": {}, "h": -7}}
    module = Module(dict(attrs))
    again = parse_module(print_module(module))
    assert again.attrs == attrs
    assert equal(module, again)


def test_names_are_made_printable_and_distinct() -> None:
    function = Function("f", [t.i32] * 6, (), ["été", "x", "x", "x_1", "7", "a b"])
    Builder(function.body).return_()
    module = Module()
    module.add(function)
    text = print_module(module)
    assert "@f(%_t_: i32, %x: i32, %x_1: i32, %x_1_1: i32, %0: i32, %a_b: i32)" in text
    assert equal(parse_module(text), module)
    assert print_module(parse_module(text)) == text


def test_locations_round_trip() -> None:
    outer = Location("k é.py", 10, 4, "kernel")
    inner = Location("lib.py", 3, 8, "helper", outer)
    function = Function("f", loc=outer)
    b = Builder(function.body, inner)
    b.const(1, t.i32)
    b.loc = None
    b.const(2, t.i32)
    b.loc = outer
    b.return_()
    module = Module()
    module.add(function)
    text = print_module(module, locations=True)
    again = parse_module(text)
    assert again.functions["f"].loc == outer
    assert [op.loc for op in again.functions["f"].body.ops] == [inner, None, outer]
    assert print_module(again, locations=True) == text


def test_equal_sees_every_difference() -> None:
    base = parse_module(KERNEL)
    for old, new in [
        ("num_warps = 4", "num_warps = 8"),
        ("kernel = true", "kernel = 1"),
        ("divisible = 16", "divisible = 8"),
        ('pred = "lt"', 'pred = "le"'),
        ("value = -inf", "value = nan"),
        ("%4 = max %a, %b", "%4 = max %a, %a"),
        ("num_stages = 3", "num_stages = 2"),
        ("yield %c", "yield %e"),
        ("@helper", "@helper2"),
        ("neg %c", "abs %c"),
    ]:
        assert old in KERNEL
        assert not equal(base, parse_module(KERNEL.replace(old, new))), (old, new)
    assert equal(base, parse_module(KERNEL.replace("%acc", "%sum").replace("%mask", "%m")))


def test_default_attributes_equal_absent_ones() -> None:
    text = "module {{\nfunc @f(%x: 4xf32) {{\n  %r = cast %x{} : 4xf16\n  return\n}}\n}}\n"
    assert equal(parse_module(text.format("")), parse_module(text.format(' {rounding = "rtne"}')))
    assert not equal(parse_module(text.format("")), parse_module(text.format(' {rounding = "rtz"}')))


def _in_function(body: str) -> str:
    return f"module {{\nfunc @f(%x: f32) {{\n{body}\n  return\n}}\n}}\n"


@pytest.mark.parametrize(
    "text, message",
    [
        ("", "1:1: expected 'module', found 'end of text'"),
        ("module {", "1:9: expected 'func', found 'end of text'"),
        ("module { ; }", "1:10: unexpected character ';'"),
        ("module {\n} x", "2:3: unexpected 'x'"),
        (_in_function("  %y = negate %x : f32"), "3:8: unknown op 'negate'"),
        (_in_function("  %y = neg %z : f32"), "3:12: %z is not defined here"),
        (_in_function("  %y = neg %x : f33"), "3:17: unknown type 'f33'"),
        (_in_function("  %y = neg %x"), "4:3: neg has 1 result names and 0 result types"),
        (_in_function("  %x = neg %x : f32"), "4:3: %x is defined twice"),
        (_in_function("  %y = constant {value = 1, value = 2} : i32"), "3:29: attribute value is given twice"),
        (_in_function("  %y = constant {value = wrong} : i32"), "3:26: expected an attribute value, found 'wrong'"),
        (_in_function('  %y = constant {value = "\\q"} : i32'), '3:26: bad string "\\q"'),
        (_in_function("  %y = splat %x : 0x4xf32"), "3:23: tensor sizes must be at least 1"),
        (_in_function("  %y = neg %x : ptr<ptr<f32>>"), "3:21: pointers to pointers do not exist; use ptr<i64>"),
        (_in_function("  %y = neg %x : ptr<f32, 1.5>"), "3:26: expected an integer, found '1.5'"),
        (_in_function("  %y = neg %x : desc<f32>"), "3:22: a descriptor needs a tensor type"),
        (_in_function(f"  %y = constant {{value = {'9' * 5000}}} : i32"), "3:26: the number has more than 40 digits"),
        (_in_function(f"  %y = constant {{value = {'[' * 5000}}} : i32"), "3:225: attributes nest deeper than 200"),
        ("module {\nfunc @f() {\n  return loc(3)\n}\n}\n", "3:14: location 3 is not in the table"),
        ('module {}\nloc 0 = "a" 1 2 "f" 7\n', "2:21: a caller's location must stand before its callees'"),
        ("module {\nfunc @f() {\n return\n}\nfunc @f() {\n return\n}\n}", "8:1: function @f is defined twice"),
    ],
)
def test_wrong_text_names_the_place(text: str, message: str) -> None:
    with pytest.raises(IRError) as caught:
        parse_module(text)
    assert str(caught.value) == message


def test_deep_regions_are_refused_or_read() -> None:
    def nested(depth: int) -> str:
        opening = "".join("if %c () {\n" for _ in range(depth))
        return f"module {{\nfunc @f(%c: i1) {{\n{opening}{'yield } () { yield }' * depth}\nreturn\n}}\n}}\n"

    module = parse_module(nested(100))
    verify(module)
    assert equal(parse_module(print_module(module)), module)
    with pytest.raises(IRError, match=r"nest"):
        parse_module(nested(5000))

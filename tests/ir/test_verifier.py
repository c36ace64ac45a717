"""What the verifier refuses, word for word, and a seeded fuzz: any text parses and verifies, or raises IRError."""

from __future__ import annotations

import random
import time

import pytest

from triton.ir import (
    OPS,
    Block,
    Builder,
    Function,
    IRError,
    Module,
    Op,
    Value,
    equal,
    parse_module,
    print_module,
    verify,
)
from triton.ir import types as t

from .examples import KERNEL, KINDS, example_module


def _fails(text: str, stage: str = "tile") -> str:
    module = parse_module(text)
    with pytest.raises(IRError) as caught:
        verify(module, stage)
    return str(caught.value)


def _in(body: str, args: str = "%x: 4xf32, %n: i32, %c: i1, %p: 4xptr<f32>", tail: str = "  return") -> str:
    return f"module {{\nfunc @f({args}) {{\n{body}\n{tail}\n}}\n}}\n"


_FOR = "  %r = for %n, %n, %n, %x : 4xf32 (%i: i32, %a: 4xf32) {{\n{}\n  }}"

CASES = [
    ("  %r = add %x, %x : 5xf32", "%r = add %x, %x : 5xf32: result types are (5xf32), expected (4xf32)"),
    ("  %r = add %x : 4xf32", "%r = add %x : 4xf32: has 1 operands, expected 2"),
    ("  %r = add %x, %n : 4xf32", "%r = add %x, %n : 4xf32: operands differ in type: 4xf32 and i32"),
    ("  %r = add %p, %p : 4xptr<f32>", "%r = add %p, %p : 4xptr<f32>: lhs must be numbers, got 4xptr<f32>"),
    ("  %r = exp %n : i32", "%r = exp %n : i32: value must be floating-point numbers, got i32"),
    ("  %r = cmp %n, %n : i1", "%r = cmp %n, %n : i1: attribute pred is missing"),
    (
        '  %r = cmp %n, %n {pred = "lo"} : i1',
        '%r = cmp %n, %n {pred = "lo"} : i1: attribute pred: expected one of '
        "'eq', 'ne', 'lt', 'le', 'gt', 'ge', got 'lo'",
    ),
    ("  %r = neg %x {fast = true} : 4xf32", "%r = neg %x {fast = true} : 4xf32: unknown attribute 'fast'"),
    ("  %r = constant {value = 128} : i8", "%r = constant {value = 128} : i8: constant 128 does not fit i8"),
    ("  %r = constant {value = -1} : u8", "%r = constant {value = -1} : u8: constant -1 does not fit u8"),
    ("  %r = constant {value = 1} : f32", "%r = constant {value = 1} : f32: a constant of f32 must be a float, got 1"),
    (
        "  %r = constant {value = 1} : i1",
        "%r = constant {value = 1} : i1: a constant of i1 must be true or false, got 1",
    ),
    (
        "  %r = constant {value = 8} : ptr<f32>",
        "%r = constant {value = 8} : ptr<f32>: a pointer constant must be 0, got 8",
    ),
    (
        "  %r = constant {value = 0.0} : desc<4xf32>",
        "%r = constant {value = 0.0} : desc<4xf32>: a descriptor cannot be a constant",
    ),
    ("  constant {value = 0.0}", "constant {value = 0.0}: has 0 results, expected 1"),
    (
        "  %r = arange {start = 4, end = 4} : 4xi32",
        "%r = arange {start = 4, end = 4} : 4xi32: arange needs end > start, got 4 and 4",
    ),
    ("  %r = broadcast %x : 8xf32", "%r = broadcast %x : 8xf32: cannot broadcast 4xf32 to 8xf32"),
    ("  %r = reshape %x : 2x3xf32", "%r = reshape %x : 2x3xf32: cannot reshape 4xf32 to 2x3xf32"),
    (
        "  %r = permute %x {order = [1]} : 4xf32",
        "%r = permute %x {order = [1]} : 4xf32: order (1,) is not a permutation of 1 axes",
    ),
    ("  %r = expand_dims %x {axis = 2} : 4x1xf32", "%r = expand_dims %x {axis = 2} : 4x1xf32: axis 2 is outside 0..1"),
    ("  %a, %b = split %x : f32, f32", "%0, %1 = split %2 : f32, f32: the last axis of 4xf32 must have size 2"),
    ("  %r = bitcast %x : 4xf16", "%r = bitcast %x : 4xf16: bitcast keeps shape and width; got 4xf32 to 4xf16"),
    (
        "  %r = cast %x : 4xptr<f32>",
        "%r = cast %x : 4xptr<f32>: cast gives a number, not 4xptr<f32>; bitcast changes pointers",
    ),
    ("  %r = load %p, %c : 4xf32", "%r = load %p, %c : 4xf32: mask i1 does not match 4xf32"),
    ("  store %p, %n", "store %p, %n: cannot store i32 through 4xptr<f32>"),
    (
        "  %r = select %c, %x, %n : 4xf32",
        "%r = select %c, %x, %n : 4xf32: the two choices differ in type: 4xf32 and i32",
    ),
    ("  %r = program_id {axis = 3} : i32", "%r = program_id {axis = 3} : i32: axis must be 0, 1 or 2, got 3"),
    ("  reduce {axis = 0} () {\n  yield\n  }", "reduce {axis = 0}: at least one operand is needed"),
    (
        "  %r = reduce %x {axis = 0} : f32 (%a: f32) {\n  yield %a\n  }",
        "%r = reduce %x {axis = 0} : f32: combine takes (f32), expected (f32, f32)",
    ),
    (
        "  %r = reduce %x {axis = 0} : f32 (%a: f32, %b: f32) {\n  yield\n  }",
        "%r = reduce %x {axis = 0} : f32: combine ends with (), expected (f32)",
    ),
    (_FOR.format("    yield %n"), "%r = for %n, %n, %n, %x : 4xf32: loop body ends with (i32), expected (4xf32)"),
    (
        _FOR.format("    %z = neg %a : 4xf32"),
        "%r = for %n, %n, %n, %x : 4xf32: the block does not end with a terminator",
    ),
    (_FOR.format("    return"), "return: return cannot end this block"),
    (_FOR.format("    yield %a\n    yield %a"), "yield %a: a terminator stands before the end of its block"),
    ("  if %c () {\n  yield\n  }", "if %c: has 1 regions, expected 2"),
    ("  if %c () {\n  yield\n  } () {\n  yield %n\n  }", "if %c: branch ends with (i32), expected ()"),
    ('  call %n {callee = "g"}', 'call %n {callee = "g"}: no function @g in the module'),
    ('  call {callee = "f"}', 'call {callee = "f"}: passes (), @f takes (4xf32, i32, i1, 4xptr<f32>)'),
    (
        "  %r = splat %n : 65536x65536xi32",
        "%r = splat %n : 65536x65536xi32: 65536x65536xi32 has more than 2^31 - 1 elements",
    ),
    ("  %r = splat %n : 4xi32 #mma", "%r = splat %n : 4xi32 #mma: 4xi32 #mma must not carry a layout"),
]


@pytest.mark.parametrize(
    "body, message", CASES, ids=[message.split(":")[0] + str(i) for i, (_, message) in enumerate(CASES)]
)
def test_refused(body: str, message: str) -> None:
    assert _shape(_fails(_in(body))) == _shape("@f: " + message)


def _shape(message: str) -> str:
    """The message with every %name replaced by one mark: printed ops in messages name their values afresh."""
    out, rest = "", message
    while "%" in rest:
        before, _, rest = rest.partition("%")
        name = ""
        while rest and (rest[0].isalnum() or rest[0] in "_.$"):
            name, rest = name + rest[0], rest[1:]
        out += before + "%v"
    return out + rest


def test_return_types_and_layout_stage() -> None:
    assert _fails(_in("", tail="  return %n")) == "@f: return %n: the function returns ()"
    text = "module {\nfunc @f(%x: 4xf32) {\n  return\n}\n}\n"
    assert _fails(text, "layout") == "@f: 4xf32 needs a layout"


def test_use_outside_of_the_defining_block() -> None:
    then = Block()
    inner = Builder(then)
    hidden = inner.const(1.0, t.f32)
    inner.yield_()
    other = Block()
    Builder(other).yield_()
    function = Function("f", [t.i1], [t.f32])
    b = Builder(function.body)
    b.if_(function.args[0], types=[], regions=[then, other])
    b.return_(hidden)
    module = Module()
    module.add(function)
    with pytest.raises(IRError, match=r"^@f: return %0: operand 0 is used where it is not defined$"):
        verify(module)


def test_objects_that_text_cannot_make() -> None:
    function = Function("f", [t.f32])
    b = Builder(function.body)
    op = b.emit("neg", [function.args[0]])
    op.results = [Value(t.f32, op, 3)]
    b.return_()
    module = Module()
    module.add(function)
    with pytest.raises(IRError, match="result 0 does not belong to its op"):
        verify(module)
    function.body.ops[0] = Op("frobnicate")
    with pytest.raises(IRError, match="@f: frobnicate: unknown op 'frobnicate'"):
        verify(module)
    function.body.ops = []
    with pytest.raises(IRError, match="the block does not end with a terminator"):
        verify(module)
    Builder(function.body).return_()
    function.attrs["x"] = object()
    with pytest.raises(IRError, match="have no text form"):
        verify(module)
    del function.attrs["x"]
    function.name = "two words"
    with pytest.raises(IRError, match="a function name has neither spaces nor parentheses"):
        verify(module)


# Fuzz ---------------------------------------------------------------------------------------------------------------

_PIECES = [
    "%x", "%r", "%0", "4x", "f32", "i1", "ptr<", "desc<", "<", ">", "(", ")", "{", "}", "[", "]", ",", ":", "=", "->",
    "#L",
    '"', '"a"', '"\\u12"', "loc(0)", "loc 0 = ", "1", "-1", "0", "1e999", "nan", "-inf", "true", "none", "axis",
    "value",
    "yield", "return", "for", "while", "if", "reduce", "func", "@f", "module", "//", "\n", "\x00", "é", "٣", "9" * 60,
    "\\",
    "start = 0, end = 9999999999999999999999", "axis = 77", "order = [0, 0]", "bins = -3",
]  # fmt: skip


def mutate(text: str, rng: random.Random) -> str:
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(text))
        choice = rng.random()
        if choice < 0.25:
            text = text[:at] + text[at + rng.randint(1, 12) :]
        elif choice < 0.5:
            text = text[:at] + rng.choice(_PIECES) + text[at:]
        elif choice < 0.6:
            text = text[:at] + chr(rng.randrange(1, 0x250)) + text[at + 1 :]
        elif choice < 0.8:  # one word for another one of the text
            words = text.split(" ")
            i, j = rng.randrange(len(words)), rng.randrange(len(words))
            words[i] = words[j]
            text = " ".join(words)
        else:  # a line twice, or moved
            lines = text.split("\n")
            lines.insert(rng.randrange(len(lines)), lines[rng.randrange(len(lines))])
            if rng.random() < 0.5:
                del lines[rng.randrange(len(lines))]
            text = "\n".join(lines)
        text = text or "module"
    return text


def test_any_text_gives_a_module_or_an_ir_error() -> None:
    rng = random.Random(20)
    seeds = [example_module(kind) for kind in KINDS] + [KERNEL] * 12
    parsed = verified = 0
    stop = time.monotonic() + 20
    for _ in range(12000):
        text = mutate(rng.choice(seeds), rng)
        assert time.monotonic() < stop, "the fuzz takes too long"
        try:
            module = parse_module(text)
        except IRError as error:
            assert str(error)
            continue
        parsed += 1
        again = parse_module(print_module(module, locations=True))
        assert equal(module, again), text
        try:
            verify(module)
            verified += 1
        except IRError as error:
            assert str(error)
    assert parsed > 500 and verified > 200, (parsed, verified)


def test_every_op_without_operands_attributes_or_regions() -> None:
    """The shortest wrong op of each kind, and one with too much of everything."""
    for kind in OPS:
        for body in (
            f"  {kind}",
            f"  %r = {kind} : f32",
            f"  {kind} %x, %x, %x, %x, %x, %x, %x, %x () {{ yield }} () {{ yield }}",
        ):
            module = parse_module(_in(body))
            try:
                verify(module)
            except IRError as error:
                assert str(error)

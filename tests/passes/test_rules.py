"""Every rule against the interpreter: both sides of each equation on random values of each dtype of its domain."""

from __future__ import annotations

import math
from typing import Any

import pytest

from triton.interpreter.floats import widen
from triton.interpreter.rules import RULES as SUPPORTED
from triton.ir import OPS, Builder, Function, Module, Value, parse_module, print_module, verify
from triton.ir.types import SCALARS, ScalarType, TensorType, element_of
from triton.passes.dce import dce
from triton.passes.fold import fold
from triton.rules.catalogue import FUNCTIONS, RULES
from triton.rules.constants import evaluate
from triton.rules.pattern import FunctionRule, Node, Rule

from .oracle import FLOATS, INTEGERS, Data, run, same

SIZE = 96
TRIES = 4


class _Left:
    """Builds the left side of an equation as a function of its variables, with random constants for capital letters."""

    def __init__(self, rule: Rule, name: str, data: Data) -> None:
        self.element, self.data = SCALARS[name], data
        self.tile = TensorType((SIZE,), self.element)
        self.module = Module()
        self.values: dict[str, Value] = {}
        variables = sorted(set(_variables(rule.sides[0])))
        root_is_choice = rule.kind == "select"
        types = [TensorType((SIZE,), SCALARS["i1"]) if root_is_choice and v == "c" else self.tile for v in variables]
        self.function = Function("f", types, (), variables)
        self.values.update(zip(variables, self.function.args, strict=True))
        self.b = Builder(self.function.body)
        result = self.build(rule.sides[0])
        self.function.result_types = (result.type,)
        self.b.return_(result)
        self.module.add(self.function)

    def number(self, value: object) -> Value:
        from triton.ir.numbers import wrap

        if self.element.is_float:
            return self.b.const(float(value), self.tile)  # type: ignore[arg-type]
        return self.b.const(wrap(int(value), self.element), self.tile)  # type: ignore[call-overload]

    def build(self, node: Node) -> Value:
        if node.form == "num":
            if isinstance(node.number, bool):
                return self.b.const(node.number, TensorType((SIZE,), SCALARS["i1"]))
            return self.number(node.number)
        if node.form == "var":
            return self.values[node.name]
        if node.form == "const":
            if node.name not in self.values:
                raw = self.data.values(self.element)
                if self.element.is_float:
                    self.values[node.name] = self.number(2.0 ** int(self.data.rng.integers(-6, 7)))
                elif node.name in "AB" and self.data.rng.random() < 0.5:
                    self.values[node.name] = self.number(int(self.data.rng.integers(1, 5)) * 2)
                else:
                    self.values[node.name] = self.number(raw.item())
            return self.values[node.name]
        operands = [self.build(arg) for arg in node.args]
        return self.b.emit(node.name, operands, None, dict(node.attrs)).results[0]


def _variables(node: Node) -> list[str]:
    if node.form == "var":
        return [node.name]
    return [name for arg in node.args for name in _variables(arg)]


def _domain(rule: Rule) -> list[str]:
    if rule.kind in ("select",) or (rule.kind == "xor" and rule.sides[0].args[0].name == "cmp"):
        return ["i1", "i32", "u8", "f32", "bf16"]  # the root's first operand is a boolean, the others are free
    return [n for n in ("i1", *INTEGERS, *FLOATS) if rule.domain(SCALARS[n])]


@pytest.mark.parametrize("rule", RULES, ids=lambda r: f"{r.left} -> {r.right}")
def test_equation(rule: Rule) -> None:
    fired = 0
    for name in _domain(rule):
        for seed in range(TRIES):
            data = Data(seed)
            left = _Left(rule, name, data)
            verify(left.module)
            text = print_module(left.module)
            args = [data.values(a.type) for a in left.function.args]
            before = run(left.module, left.function, args)
            fold(left.module)
            verify(left.module)
            after = run(left.module, left.function, args)
            result = left.function.result_types[0]
            assert same(before[0], after[0], result), f"{name}:\n{text}\n{print_module(left.module)}"
            fired += print_module(left.module) != text
            if seed == 0:
                assert _cost(left.module) <= _cost(parse_module(text)), "the rule makes the program longer"
    assert fired, "the rule never applied"


def _cost(module: Module) -> int:
    """Ops that compute something; constants are free."""
    return sum(op.kind not in ("constant", "splat") for op in dce(parse_module(print_module(module))).walk())


def _example(text: str) -> Module:
    head, _, body = text.partition("=>")
    module = parse_module(f"module {{\nfunc @f{head.strip()} {{\n{body}\n return\n}}\n}}")
    function = module.functions["f"]
    names = {r.name: r for op in function.body.ops for r in op.results}
    results = [names[n] for n in ("r", "s") if n in names and names[n].op is function.body.ops[-2]]
    function.body.terminator.operands = results
    function.result_types = tuple(r.type for r in results)
    verify(module)
    return module


@pytest.mark.parametrize(
    "rule, text",
    [(r, e) for r in FUNCTIONS for e in r.examples],
    ids=lambda p: p if isinstance(p, str) else p.equation[:40],
)
def test_function_rule(rule: FunctionRule, text: str) -> None:
    module = _example(text)
    kinds = {op.kind for op in module.walk()}
    assert kinds & set(rule.kinds)
    original = print_module(module)
    function = module.functions["f"]
    for seed in range(TRIES):
        data = Data(seed, tame="dot" in kinds)  # a dot may add in another order
        args = [data.values(a.type) for a in function.args]
        reference = parse_module(original)
        before = run(reference, reference.functions["f"], args)
        folded = fold(parse_module(original))
        verify(folded)
        assert print_module(folded) != original, "the rule does not apply to its example"
        after = run(folded, folded.functions["f"], args)
        for a, b, type in zip(before, after, function.result_types, strict=True):
            assert same(a, b, type), print_module(folded)


def test_every_function_rule_has_examples() -> None:
    assert all(rule.examples and rule.equation for rule in FUNCTIONS)
    assert all(rule.licence for rule in RULES if rule.domain(SCALARS["f32"]) and not rule.domain(SCALARS["i32"]))


# Constant folding ---------------------------------------------------------------------------------------------------

_ELEMENTWISE = [
    kind for kind, info in OPS.items() if info.elementwise and kind not in ("select", "addptr", "libm", "extern",
    "inline_asm")
]  # fmt: skip
_TOLERANT = {"exp", "exp2", "log", "log2", "sin", "cos", "erf", "rsqrt", "sqrt"}


@pytest.mark.parametrize("kind", _ELEMENTWISE)
def test_constants_fold_to_what_the_interpreter_computes(kind: str) -> None:
    assert kind in SUPPORTED
    attr_sets: list[dict[str, Any]] = {
        "cmp": [{"pred": p} for p in ("eq", "ne", "lt", "le", "gt", "ge")],
        "min": [{}, {"propagate_nan": True}],
        "max": [{}, {"propagate_nan": True}],
        "cast": [{}, {"rounding": "rtz"}],
    }.get(kind, [{}])
    folded = 0
    for seed, element in enumerate(SCALARS.values()):
        operands = OPS[kind].operands
        if not all(o.constraint.holds(element) for o in operands):
            continue
        targets: list[Any] = [None]
        if kind in ("cast", "bitcast"):
            targets = [t for t in SCALARS.values() if kind == "cast" or t.bits == element.bits]
        for target in targets:
            for attrs in attr_sets:
                folded += _compare(kind, [TensorType((40,), element)] * len(operands), target, attrs, Data(seed))
    assert folded > 50


def _compare(kind: str, types: list[TensorType], target: Any, attrs: dict[str, Any], data: Data) -> int:
    """How many of the elements fold; each must be what the interpreter computes."""
    function = Function("f", types)
    results = None if target is None else [TensorType((40,), target)]
    op = Builder(function.body).emit(kind, function.args, results, attrs)
    function.result_types = tuple(r.type for r in op.results)
    Builder(function.body).return_(*op.results)
    module = Module()
    module.add(function)
    args = [data.values(t) for t in types]
    result = element_of(op.results[0].type)
    assert isinstance(result, ScalarType)
    expected = widen(run(module, function, args)[0], result).tolist()
    columns = [widen(a, element_of(t)).tolist() for a, t in zip(args, types, strict=True)]
    folded = 0
    for *numbers, got in zip(*columns, expected, strict=True):
        found = evaluate(op, numbers)
        if found is None:
            continue
        folded += 1
        text = f"{kind}{attrs} {types[0]} -> {result} {numbers}: folded {found!r}, interpreter {got!r}"
        assert type(found) is {"bool": bool, "float": float}.get(result.kind, int), text
        same_sign = not result.is_float or math.copysign(1, found) == math.copysign(1, got)
        equal = (found == got and same_sign) or (found != found and got != got)
        assert equal or (kind in _TOLERANT and math.isclose(found, got, rel_tol=2.0**-7, abs_tol=1e-7)), text
    return folded


def test_folded_op_is_one_constant() -> None:
    module = _example(
        "() => %a = constant {value = 0.1} : 4xf16\n%b = constant {value = 3.0} : 4xf16\n%r = mul %a, %b : 4xf16"
    )
    folded = dce(fold(module))
    assert [op.kind for op in folded.walk()] == ["constant", "return"]
    assert folded.functions["f"].body.ops[0].attrs["value"] == 0.2998046875


@pytest.mark.parametrize("name", list(SCALARS))
def test_every_pair_of_conversions(name: str) -> None:
    """Two casts or bitcasts in a row, through every type to every type, are after folding what they were before."""
    source, data = SCALARS[name], Data(7)
    function = Function("f", [TensorType((SIZE,), source)])
    b = Builder(function.body)
    ends: list[Value] = []
    for middle in SCALARS.values():
        for first in ("cast", "bitcast"):
            if first == "bitcast" and middle.bits != source.bits:
                continue
            x = b.emit(first, function.args, [TensorType((SIZE,), middle)]).results[0]
            for target in SCALARS.values():
                ends.append(b.cast(x, types=[TensorType((SIZE,), target)]))
                if target.bits == middle.bits:
                    ends.append(b.bitcast(x, types=[TensorType((SIZE,), target)]))
    function.result_types = tuple(v.type for v in ends)
    b.return_(*ends)
    module = Module()
    module.add(function)
    args = [data.values(function.args[0].type)]
    expected = run(module, function, args)
    folded = dce(fold(parse_module(print_module(module))))
    verify(folded)
    got = run(folded, folded.functions["f"], args)
    for value, a, c in zip(ends, expected, got, strict=True):
        chain = [op for op in (value.op, value.op and value.op.operands[0].op) if op is not None]
        assert same(a, c, value.type), f"{name} -> " + " <- ".join(f"{op.kind} {op.results[0].type}" for op in chain)

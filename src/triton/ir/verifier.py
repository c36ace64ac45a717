"""The staged verifier: what must hold of a module, in words, and the code that checks it.

Checked on every module:
 1. Every op is a row of the op table and legal in the stage; it has the row's number of operands, regions and
 attributes, and each
    operand and attribute satisfies its constraint.
 2. Result types equal those the row's rule infers; the row's own check passes (loop-carried types, combine regions,
 ...).
 3. A value is used only after its definition, inside the block that defines it or a region nested in it.
 4. Every block ends with its only terminator: ``return`` in functions, otherwise what the row asks for.
 5. ``return`` gives the function's result types. A call names a function of the module, with its argument and result
 types.
 6. Names of functions and attributes, and attribute values, have a text form.
 7. Tensors have at most 2^31 - 1 elements. In stage ``layout`` every tensor type names a layout, in stage ``tile``
 none does.
Not checked: that hints and ``assume`` are true; that memory accesses are in range; that recursion does not occur (the
front end refuses it); that no two ops share an attribute dictionary.
"""

from __future__ import annotations

import re
from typing import Any, NoReturn

from .core import Block, Function, Module, Op, Value
from .ops import OPS
from .printer import print_op
from .table import REQUIRED, IRError
from .types import DescriptorType, SharedType, TensorType, Type


def verify(module: Module, stage: str = "tile") -> None:
    """Raises IRError naming function, op and rule when ``module`` breaks an invariant of ``stage``."""
    for function in module.functions.values():
        _FunctionVerifier(module, function, stage).run()


class _FunctionVerifier:
    def __init__(self, module: Module, function: Function, stage: str) -> None:
        self.module = module
        self.function = function
        self.stage = stage
        self.visible: set[Value] = set()

    def fail(self, message: str, op: Op | None = None) -> NoReturn:
        where = f"@{self.function.name}"
        if op is not None:
            where += f": {print_op(op)}" + (f" [{op.loc}]" if op.loc is not None else "")
        raise IRError(f"{where}: {message}")

    def run(self) -> None:
        if len(self.function.arg_attrs) != len(self.function.args):
            self.fail("one attribute dictionary is needed for each argument")
        if not _SYMBOL.fullmatch(self.function.name):
            self.fail("a function name has neither spaces nor parentheses")
        for attrs in (self.module.attrs, self.function.attrs, *self.function.arg_attrs):
            if attrs and not _has_text(attrs):
                self.fail(f"attributes {attrs!r} have no text form")
        self.block(self.function.body, None)

    def block(self, block: Block, parent: Op | None) -> None:
        defined: list[Value] = []
        for index, arg in enumerate(block.args):
            if arg.owner is not block or arg.index != index:
                self.fail(f"block argument {arg!r} does not belong to its block", parent)
            self.type(arg.type, parent)
            defined.append(arg)
        self.visible.update(defined)
        if not block.ops or not OPS[block.ops[-1].kind].terminator:
            self.fail("the block does not end with a terminator", parent)
        for position, op in enumerate(block.ops):
            if op.kind not in OPS:
                self.fail(f"unknown op {op.kind!r}", op)
            if OPS[op.kind].terminator and position != len(block.ops) - 1:
                self.fail("a terminator stands before the end of its block", op)
            if (op.kind == "return") is not (parent is None) and OPS[op.kind].terminator:
                self.fail(f"{op.kind} cannot end this block", op)
            self.op(op)
            defined.extend(op.results)
            self.visible.update(op.results)
        self.visible.difference_update(defined)

    def op(self, op: Op) -> None:
        info = OPS[op.kind]
        if self.stage not in info.stages:
            self.fail(f"not legal in stage {self.stage}", op)
        self.operands(op)
        self.attributes(op)
        if len(op.regions) != len(info.regions):
            self.fail(f"has {len(op.regions)} regions, expected {len(info.regions)}", op)
        for region in op.regions:
            self.block(region, op)
        if info.results is not None and len(op.results) != info.results:
            self.fail(f"has {len(op.results)} results, expected {info.results}", op)
        for index, result in enumerate(op.results):
            if result.owner is not op or result.index != index:
                self.fail(f"result {index} does not belong to its op", op)
            self.type(result.type, op)
        try:
            if info.infer is not None:
                expected = info.infer([v.type for v in op.operands], op.attrs)
                given = [r.type for r in op.results]
                if [_bare(t) for t in expected] != [_bare(t) for t in given]:
                    raise IRError(f"result types are {_list(given)}, expected {_list(expected)}")
            if info.check is not None:
                info.check(op)
        except IRError as error:
            self.fail(str(error), op)
        if op.kind == "return" and [v.type for v in op.operands] != list(self.function.result_types):
            self.fail(f"the function returns {_list(list(self.function.result_types))}", op)
        if op.kind == "call":
            self.call(op)

    def operands(self, op: Op) -> None:
        info, count = OPS[op.kind], len(op.operands)
        if count < info.min_operands or (info.max_operands is not None and count > info.max_operands):
            self.fail(f"has {count} operands, expected {_count(info.min_operands, info.max_operands)}", op)
        for index, value in enumerate(op.operands):
            if value not in self.visible:
                self.fail(f"operand {index} is used where it is not defined", op)
            declared = info.operands[min(index, len(info.operands) - 1)]
            if not declared.constraint.holds(value.type):
                self.fail(f"{declared.name} must be {declared.constraint.words}, got {value.type}", op)

    def attributes(self, op: Op) -> None:
        info = OPS[op.kind]
        for name, value in op.attrs.items():
            if name not in info.attrs:
                self.fail(f"unknown attribute {name!r}", op)
            problem = info.attrs[name].problem(value)
            if problem is None and info.attrs[name].kind == "any" and not _has_text(value):
                problem = f"{value!r} has no text form"
            if problem:
                self.fail(f"attribute {name}: {problem}", op)
        for name, attr in info.attrs.items():
            if attr.default is REQUIRED and name not in op.attrs:
                self.fail(f"attribute {name} is missing", op)

    def type(self, type: Type, op: Op | None) -> None:
        if isinstance(type, (DescriptorType, SharedType)):
            type = type.block
        elif isinstance(type, TensorType) and (type.layout is None) is (self.stage == "layout"):
            self.fail(f"{type} {'needs a layout' if self.stage == 'layout' else 'must not carry a layout'}", op)
        if isinstance(type, TensorType):
            if not type.shape or min(type.shape) < 1:
                self.fail(f"tensor sizes must be at least 1, got {type}", op)
            if type.numel >= 1 << 31:
                self.fail(f"{type} has more than 2^31 - 1 elements", op)

    def call(self, op: Op) -> None:
        callee = self.module.functions.get(op.attrs["callee"])
        if callee is None:
            self.fail(f"no function @{op.attrs['callee']} in the module", op)
        given, expected = [v.type for v in op.operands], [a.type for a in callee.args]
        if given != expected:
            self.fail(f"passes {_list(given)}, @{callee.name} takes {_list(expected)}", op)
        if [r.type for r in op.results] != list(callee.result_types):
            self.fail(f"@{callee.name} returns {_list(list(callee.result_types))}", op)


_SYMBOL = re.compile(r"[^\s(]+")
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*")


def _has_text(value: Any) -> bool:
    """Whether an attribute value prints and parses back."""
    if isinstance(value, dict):
        return all(isinstance(k, str) and _WORD.fullmatch(k) and _has_text(v) for k, v in value.items())
    if isinstance(value, (tuple, list)):
        return all(map(_has_text, value))
    return value is None or isinstance(value, (bool, int, float, str))


def _bare(type: Type) -> Type:
    """The type without its layout: layouts are chosen by passes, not by the op table."""
    return TensorType(type.shape, type.element) if isinstance(type, TensorType) else type


def _list(types: list[Type]) -> str:
    return "(" + ", ".join(map(str, types)) + ")"


def _count(low: int, high: int | None) -> str:
    return str(low) if low == high else f"at least {low}" if high is None else f"{low} to {high}"

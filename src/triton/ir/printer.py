"""Prints the tile IR as text. ``parser.py`` reads it back to an equal module; the grammar stands there.

Attributes of ops come in the order of the op table and without those that have their default value; other attributes
by name.
"""

from __future__ import annotations

import json
import re
from typing import Any

from .core import Block, Function, Location, Module, Op, Value
from .ops import OPS

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_.$]")


def print_module(module: Module, locations: bool = False) -> str:
    """The module's text. With ``locations`` every op carries its source position, in a table at the end."""
    printer = _Printer(locations)
    head = "module" + (f" {print_attrs(module.attrs)}" if module.attrs else "")
    parts = [printer.function(f) for f in module.functions.values()]
    body = head + " {\n" + "\n".join(parts) + "}\n"
    return body + printer.location_table()


def print_function(function: Function) -> str:
    """The text of one function."""
    return _Printer(False).function(function)


def print_op(op: Op) -> str:
    """One op as a line for messages: values get short names of their own."""
    return _Printer(False).head(op)


def print_attrs(attrs: dict[str, Any]) -> str:
    """``{name = value, ...}`` sorted by name."""
    return "{" + ", ".join(f"{k} = {_attr(attrs[k])}" for k in sorted(attrs)) + "}"


def _attr(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)  # round-trips; inf and nan print as such
    if isinstance(value, str):
        return json.dumps(value)
    if isinstance(value, (tuple, list)):
        return "[" + ", ".join(map(_attr, value)) + "]"
    if isinstance(value, dict):
        return print_attrs(value)
    raise TypeError(f"attribute value {value!r} has no text form")


class _Printer:
    def __init__(self, locations: bool) -> None:
        self.lines: list[str] = []
        self.names: dict[Value, str] = {}
        self.used: set[str] = set()
        self.counter = 0
        self.locations: dict[Location, int] | None = {} if locations else None

    def name(self, value: Value) -> str:
        name = self.names.get(value)
        if name is None:
            name = self.names[value] = self.fresh(value.name)
        return name

    def fresh(self, hint: str) -> str:
        if not (hint.isascii() and hint.isidentifier()):
            hint = _NOT_IN_NAMES.sub("_", hint)
        if not hint or hint[0].isdigit():  # names that start with a digit are for nameless values
            self.counter += 1
            return f"%{self.counter - 1}"
        name, n = hint, 0
        while name in self.used:
            n += 1
            name = f"{hint}_{n}"
        self.used.add(name)
        return "%" + name

    def function(self, function: Function) -> str:
        self.lines, self.names, self.used, self.counter = [], {}, set(), 0
        args = []
        for value, attrs in zip(function.args, function.arg_attrs, strict=True):
            args.append(f"{self.name(value)}: {value.type}" + (f" {print_attrs(attrs)}" if attrs else ""))
        head = f"func @{function.name}({', '.join(args)})"
        if function.result_types:
            head += " -> " + ", ".join(map(str, function.result_types))
        if function.attrs:
            head += " " + print_attrs(function.attrs)
        for op in function.body.ops:
            self.op(op, 1)
        return head + self.suffix(function.loc) + " {\n" + "\n".join(self.lines) + "\n}\n"

    def op(self, op: Op, depth: int) -> None:
        text = "  " * depth + self.head(op)
        for region in op.regions:
            text = self.region(text, region, depth)
        self.lines.append(text)

    def head(self, op: Op) -> str:
        text = ""
        if op.results:
            text += ", ".join([self.name(r) for r in op.results]) + " = "
        text += op.kind
        if op.operands:
            text += " " + ", ".join([self.name(v) for v in op.operands])
        if op.attrs:
            info = OPS.get(op.kind)
            known = info.attrs if info is not None else {}
            shown = [k for k in known if k in op.attrs and op.attrs[k] != known[k].default]
            shown += sorted(k for k in op.attrs if k not in known)
            if shown:
                text += " {" + ", ".join([f"{k} = {_attr(op.attrs[k])}" for k in shown]) + "}"
        if op.results:
            text += " : " + ", ".join([str(r.type) for r in op.results])
        return text + self.suffix(op.loc)

    def region(self, text: str, region: Block, depth: int) -> str:
        args = ", ".join(f"{self.name(a)}: {a.type}" for a in region.args)
        self.lines.append(f"{text} ({args}) {{")
        for op in region.ops:
            self.op(op, depth + 1)
        return "  " * depth + "}"

    def suffix(self, loc: Location | None) -> str:
        if self.locations is None or loc is None:
            return ""
        return f" loc({self.location(loc)})"

    def location(self, loc: Location) -> int:
        assert self.locations is not None
        number = self.locations.get(loc)
        if number is None:
            if loc.caller is not None:
                self.location(loc.caller)
            number = self.locations[loc] = len(self.locations)
        return number

    def location_table(self) -> str:
        text = ""
        for loc, number in (self.locations or {}).items():
            text += f"loc {number} = {json.dumps(loc.file)} {loc.line} {loc.column} {json.dumps(loc.function)}"
            text += f" {self.location(loc.caller)}\n" if loc.caller is not None else "\n"
        return text

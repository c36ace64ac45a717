"""Reads the text form of the tile IR.

Grammar (``?`` optional, ``*`` repeated, comments run from ``//`` to the end of the line):

    module   = "module" attrs? "{" function* "}" location*
    function = "func" @name "(" (arg ("," arg)*)? ")" ("->" types)? attrs? loc? "{" op* "}"
    arg      = %name ":" type attrs?
    op       = (%name ("," %name)* "=")? kind (%name ("," %name)*)? attrs? (":" types)? loc? region*
    region   = "(" (%name ":" type ("," ...)*)? ")" "{" op* "}"
    attrs    = "{" (word "=" value ("," ...)*)? "}"
    value    = number | string | "true" | "false" | "none" | "[" values "]" | attrs
    type     = scalar | "ptr<" scalar (", " int)? ">" | (int "x")+ type ("#" word)? | "desc<" type ">"
    loc      = "loc(" int ")";   location = "loc" int "=" string int int string int?

Wrong text raises IRError with line and column; nothing else escapes.
"""

from __future__ import annotations

import json
import re
from typing import Any, NoReturn

from .core import Block, Function, Location, Module, Op, Value
from .ops import OPS
from .table import IRError
from .types import SCALARS, DescriptorType, ElementType, PointerType, ScalarType, SharedType, TensorType, Type

_TOKEN = re.compile(
    r"""(?P<skip>(?:\s+|//[^\n]*)+)
      | (?P<string>"(?:[^"\\\n]|\\.)*")
      | (?P<shape>(?:[0-9]{1,18}x)+(?=[a-z]))
      | (?P<number>-?(?:[0-9]+\.?[0-9]*(?:e[+-]?[0-9]+)?|inf\b|nan\b))
      | (?P<value>%[A-Za-z0-9_.$]+)
      | (?P<symbol>@[^\s(]+)
      | (?P<word>[A-Za-z_][A-Za-z0-9_.]*)
      | (?P<arrow>->)
      | (?P<punct>[{}()\[\]<>=,:\#])""",
    re.VERBOSE,
)
_MAX_DEPTH = 200
_MAX_DIGITS = 40


def parse_module(text: str) -> Module:
    """The module that ``text`` describes. Raises IRError."""
    parser = _Parser(text)
    try:
        return parser.module()
    except RecursionError:
        parser.fail("the text nests too deeply for the interpreter's stack")


def parse_type(text: str) -> Type:
    """One type, for example ``4x8xptr<f16>``. Raises IRError."""
    parser = _Parser(text)
    type = parser.type()
    parser.expect_end()
    return type


def unescape(text: str) -> str:
    """The string that a quoted token stands for. Raises ValueError."""
    value = json.loads(text)
    assert isinstance(value, str)
    return value


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[tuple[str, str, int]] = []
        self.position = 0
        self.scopes: list[dict[str, Value]] = []
        self.depth = 0
        self.pending: list[tuple[Op | Function, int, int]] = []
        at = 0
        while at < len(text):
            match = _TOKEN.match(text, at)
            if match is None:
                self.fail(f"unexpected character {text[at]!r}", at)
            kind = match.lastgroup or ""
            if kind != "skip":
                self.tokens.append((kind, match.group(), at))
            at = match.end()
        self.tokens.append(("end", "end of text", len(text)))

    # Tokens

    def fail(self, message: str, at: int | None = None) -> NoReturn:
        at = self.tokens[self.position][2] if at is None else at
        line = self.text.count("\n", 0, at) + 1
        column = at - (self.text.rfind("\n", 0, at) + 1) + 1
        raise IRError(f"{line}:{column}: {message}")

    def peek(self, text: str) -> bool:
        return self.tokens[self.position][1] == text

    def peek_kind(self, kind: str) -> bool:
        return self.tokens[self.position][0] == kind

    def take(self, text: str) -> bool:
        if self.tokens[self.position][1] != text:
            return False
        self.position += 1
        return True

    def expect(self, text: str) -> None:
        if not self.take(text):
            self.fail(f"expected {text!r}, found {self.tokens[self.position][1]!r}")

    def expect_kind(self, kind: str, words: str) -> str:
        found, text, _ = self.tokens[self.position]
        if found != kind:
            self.fail(f"expected {words}, found {text!r}")
        self.position += 1
        return text

    def expect_end(self) -> None:
        if not self.peek_kind("end"):
            self.fail(f"unexpected {self.tokens[self.position][1]!r}")

    def integer(self) -> int:
        text = self.expect_kind("number", "an integer")
        number = self.number(text)
        if isinstance(number, float):
            self.position -= 1
            self.fail(f"expected an integer, found {text!r}")
        return number

    def number(self, text: str) -> int | float:
        """The value of the number token just taken."""
        if any(c in text for c in ".en"):
            return float(text)
        if len(text) > _MAX_DIGITS:
            self.position -= 1
            self.fail(f"the number has more than {_MAX_DIGITS} digits")
        return int(text)

    def string(self, words: str) -> str:
        text = self.expect_kind("string", words)
        try:
            return unescape(text)
        except ValueError:
            self.position -= 1
            self.fail(f"bad string {text}")

    # Types and attributes

    def type(self) -> Type:
        if self.take("desc"):
            self.expect("<")
            if not self.peek_kind("shape"):
                self.fail("a descriptor needs a tensor type")
            block = self.type()
            self.expect(">")
            assert isinstance(block, TensorType)
            return DescriptorType(block)
        if self.take("shared"):
            self.expect("<")
            slots = self.integer()
            self.expect("of")
            if not self.peek_kind("shape"):
                self.fail("shared memory holds tensors")
            held = self.type()
            self.expect(">")
            assert isinstance(held, TensorType)
            return SharedType(slots, held)
        if not self.peek_kind("shape"):
            return self.element()
        shape = tuple(int(n) for n in self.expect_kind("shape", "a shape")[:-1].split("x"))
        if 0 in shape:
            self.fail("tensor sizes must be at least 1")
        element = self.element()
        layout = self.expect_kind("word", "a layout name") if self.take("#") else None
        return TensorType(shape, element, layout)

    def element(self) -> ElementType:
        word = self.expect_kind("word", "a type")
        if word == "ptr":
            self.expect("<")
            if self.peek("ptr"):
                self.fail("pointers to pointers do not exist; use ptr<i64>")
            pointee = self.element()
            space = self.integer() if self.take(",") else 1
            self.expect(">")
            assert isinstance(pointee, ScalarType)
            return PointerType(pointee, space)
        if word not in SCALARS:
            self.position -= 1
            self.fail(f"unknown type {word!r}")
        return SCALARS[word]

    def types(self) -> list[Type]:
        types = [self.type()]
        while self.take(","):
            types.append(self.type())
        return types

    def attrs(self) -> dict[str, Any]:
        result: dict[str, Any] = {}
        self.expect("{")
        while not self.take("}"):
            if result:
                self.expect(",")
            name = self.expect_kind("word", "an attribute name")
            if name in result:
                self.position -= 1
                self.fail(f"attribute {name} is given twice")
            self.expect("=")
            result[name] = self.attr_value()
        return result

    def nest(self, what: str) -> None:
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            self.fail(f"{what} nest deeper than {_MAX_DEPTH}")

    def attr_value(self) -> Any:
        kind, text, _ = self.tokens[self.position]
        if kind == "string":
            return self.string("a string")
        if text in ("{", "["):
            self.nest("attributes")
            nested = self.attrs() if text == "{" else self.items()
            self.depth -= 1
            return nested
        self.position += 1
        if kind == "number":
            return self.number(text)
        words = {"true": True, "false": False, "none": None, "inf": float("inf"), "nan": float("nan")}
        if text not in words:
            self.position -= 1
            self.fail(f"expected an attribute value, found {text!r}")
        return words[text]

    def items(self) -> tuple[Any, ...]:
        items: list[Any] = []
        self.expect("[")
        while not self.take("]"):
            if items:
                self.expect(",")
            items.append(self.attr_value())
        return tuple(items)

    # Modules, functions, ops

    def module(self) -> Module:
        self.expect("module")
        module = Module(self.attrs() if self._attrs_follow() else None)
        self.expect("{")
        while not self.take("}"):
            function = self.function()
            if function.name in module.functions:
                self.fail(f"function @{function.name} is defined twice")
            module.add(function)
        self.location_table()
        self.expect_end()
        return module

    def _attrs_follow(self) -> bool:
        """``{`` starts attributes only when ``}`` or ``word =`` comes next; otherwise it starts a body."""
        if not self.peek("{"):
            return False
        after = self.tokens[self.position + 1 : self.position + 3]
        return len(after) == 2 and after[0][0] == "word" and after[1][1] == "="

    def function(self) -> Function:
        self.expect("func")
        name = self.expect_kind("symbol", "a function name")[1:]
        self.expect("(")
        names: list[str] = []
        types: list[Type] = []
        arg_attrs: list[dict[str, Any]] = []
        while not self.take(")"):
            if names:
                self.expect(",")
            names.append(self.expect_kind("value", "an argument"))
            self.expect(":")
            types.append(self.type())
            arg_attrs.append(self.attrs() if self.peek("{") else {})
        results = self.types() if self.take("->") else []
        attrs = self.attrs() if self._attrs_follow() else None
        function = Function(name, types, results, [_hint(n) for n in names], attrs)
        function.arg_attrs = arg_attrs
        self.loc_suffix(function)
        self.scopes = [{}]
        for text, value in zip(names, function.args, strict=True):
            self.define(text, value)
        self.body(function.body)
        return function

    def define(self, text: str, value: Value) -> None:
        if any(text in scope for scope in self.scopes):
            self.fail(f"{text} is defined twice")
        self.scopes[-1][text] = value

    def use(self) -> Value:
        text = self.expect_kind("value", "a value")
        for scope in reversed(self.scopes):
            if text in scope:
                return scope[text]
        self.position -= 1
        self.fail(f"{text} is not defined here")

    def body(self, block: Block) -> None:
        self.nest("regions")
        self.expect("{")
        while not self.take("}"):
            block.ops.append(self.op())
        self.depth -= 1

    def op(self) -> Op:
        names: list[str] = []
        if self.peek_kind("value"):
            names.append(self.expect_kind("value", "a result"))
            while self.take(","):
                names.append(self.expect_kind("value", "a result"))
            self.expect("=")
        kind = self.expect_kind("word", "an op")
        if kind not in OPS:
            self.position -= 1
            self.fail(f"unknown op {kind!r}")
        operands: list[Value] = []
        # Operands start on the op's own line of tokens: a %name followed by "=" or "," ... "=" is the next op's result.
        if self.peek_kind("value") and not self._starts_op():
            operands.append(self.use())
            while self.take(","):
                operands.append(self.use())
        attrs = self.attrs() if self.peek("{") else {}
        types = self.types() if self.take(":") else []
        if len(types) != len(names):
            self.fail(f"{kind} has {len(names)} result names and {len(types)} result types")
        op = Op(kind, operands, types, attrs)
        self.loc_suffix(op)
        while self.peek("("):
            op.regions.append(self.region())
        for text, value in zip(names, op.results, strict=True):
            value.name = _hint(text)
            self.define(text, value)
        return op

    def _starts_op(self) -> bool:
        at = self.position + 1
        while self.tokens[at][1] == "," and self.tokens[at + 1][0] == "value":
            at += 2
        return self.tokens[at][1] == "="

    def region(self) -> Block:
        self.expect("(")
        names: list[str] = []
        types: list[Type] = []
        while not self.take(")"):
            if names:
                self.expect(",")
            names.append(self.expect_kind("value", "an argument"))
            self.expect(":")
            types.append(self.type())
        block = Block(types, [_hint(n) for n in names])
        self.scopes.append({})
        for text, value in zip(names, block.args, strict=True):
            self.define(text, value)
        self.body(block)
        self.scopes.pop()
        return block

    # Locations

    def loc_suffix(self, item: Op | Function) -> None:
        if self.take("loc"):
            self.expect("(")
            self.pending.append((item, self.integer(), self.tokens[self.position - 1][2]))
            self.expect(")")

    def location_table(self) -> None:
        table: dict[int, Location] = {}
        while self.take("loc"):
            number = self.integer()
            self.expect("=")
            file = self.string("a file name")
            line, column = self.integer(), self.integer()
            function = self.string("a function name")
            caller = None
            if self.peek_kind("number"):
                at = self.tokens[self.position][2]
                caller = table.get(self.integer())
                if caller is None:
                    self.fail("a caller's location must stand before its callees'", at)
            table[number] = Location(file, line, column, function, caller)
        for item, number, at in self.pending:
            if number not in table:
                self.fail(f"location {number} is not in the table", at)
            item.loc = table[number]


def _hint(text: str) -> str:
    """The name kept for a value: none for the numbers that the printer gives to nameless values."""
    return "" if text[1].isdigit() else text[1:]

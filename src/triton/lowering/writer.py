"""Writers of textual LLVM IR: a module, a function being filled, and the operands (``Cell``) that pass between rules.

The text is valid for LLVM 21 to 23: opaque pointers, no constant expressions, only intrinsics that all of them know.
Everything that must exist once in a module (declarations, helper functions, constants, attribute groups, metadata) is
asked for by name or content and written once.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ..ir.types import ElementType, PointerType


@dataclass(frozen=True, slots=True)
class Features:
    """What the code generator may count on. Everything false gives code for the plainest target.

    ``fma``           ``llvm.fma`` on f32 and f64 is one instruction.
    ``half_convert``  ``fpext``/``fptrunc`` between half and float need no library function.
    ``half_arith``    arithmetic on half is native.
    ``contract``      the user allows a * b + c to be rounded once.
    ``scale``         writes p * 2^n, rounded once, of two ``Num`` of one float type (n integral), or gives None for
    shapes that
                      the target has no instruction for.
    """

    fma: bool = False
    half_convert: bool = False
    half_arith: bool = False
    contract: bool = False
    scale: Callable[[Any, Any], Any] | None = None


@dataclass(frozen=True, slots=True)
class Cell:
    """One LLVM operand: a scalar (``lanes`` 0) or a vector of ``lanes`` elements.

    ``text`` is what stands in an instruction after the type. ``value`` is the number it holds, in every lane, if that
    is known.
    """

    text: str
    element: ElementType
    lanes: int = 0
    value: int | float | None = None

    @property
    def type(self) -> str:
        return llvm_type(self.element, self.lanes)

    @property
    def typed(self) -> str:
        """Type and operand, as call arguments and stores want them."""
        return f"{llvm_type(self.element, self.lanes)} {self.text}"


_FLOAT_TYPES = {"f16": "half", "bf16": "bfloat", "f32": "float", "f64": "double"}


def scalar_type(element: ElementType, memory: bool = False) -> str:
    """The LLVM type of one element. In memory a boolean is a byte; 8-bit floats are i8 everywhere."""
    if isinstance(element, PointerType):
        return "ptr" if element.space in (0, 1) else f"ptr addrspace({element.space})"
    if element.is_float:
        return _FLOAT_TYPES.get(element.name, "i8")
    return "i8" if memory and element.is_bool else f"i{element.bits}"


_TYPE_CACHE: dict[tuple[ElementType, int, bool], str] = {}


def llvm_type(element: ElementType, lanes: int = 0, memory: bool = False) -> str:
    """The LLVM type of a cell: ``float`` for lanes 0, ``<8 x float>`` for lanes 8."""
    key = (element, lanes, memory)
    text = _TYPE_CACHE.get(key)
    if text is None:
        base = scalar_type(element, memory)
        text = _TYPE_CACHE[key] = f"<{lanes} x {base}>" if lanes else base
    return text


def vector(base: str, lanes: int) -> str:
    """The type of ``lanes`` values of the LLVM type ``base``; ``base`` itself for lanes 0."""
    return f"<{lanes} x {base}>" if lanes else base


_SUFFIX = {"half": "f16", "bfloat": "bf16", "float": "f32", "double": "f64", "ptr": "p0"}


def suffix(base: str, lanes: int) -> str:
    """How intrinsic names spell a type: ``v8f32``, ``i32``."""
    name = _SUFFIX.get(base, base)
    return f"v{lanes}{name}" if lanes else name


def float_bits(value: float, bits: int) -> int:
    """The bits of ``value`` rounded to an IEEE float of 16, 32 or 64 bits; too large becomes infinity."""
    code, integer = {16: ("<e", "<H"), 32: ("<f", "<I"), 64: ("<d", "<Q")}[bits]
    try:
        packed = struct.pack(code, value)
    except OverflowError:
        packed = struct.pack(code, float("inf") if value > 0 else float("-inf"))
    return int(struct.unpack(integer, packed)[0])


def float_text(value: float, base: str = "double") -> str:
    """An exact LLVM literal of a float or double constant (rounded to float first when ``base`` says so)."""
    if base == "float":
        value = struct.unpack("<f", struct.pack("<I", float_bits(value, 32)))[0]
    return f"0x{float_bits(value, 64):016X}"


def splat_text(literal: str, base: str, lanes: int) -> str:
    """A constant with ``literal`` in every lane. ``literal`` alone for lanes 0."""
    if not lanes:
        return literal
    if literal in ("zeroinitializer", "poison", "undef"):
        return literal
    return f"splat ({base} {literal})"


class ModuleWriter:
    """Collects a module. ``text()`` gives it at any time."""

    def __init__(
        self, features: Features | None = None, c_function: Callable[[str, str], str] = lambda name, base: name
    ) -> None:
        """``c_function(name, base)``: the symbol of the C function ``name`` with a result of LLVM type ``base``."""
        self.features = features if features is not None else Features()
        self.c_function = c_function
        self._declarations: dict[str, str] = {}
        self._globals: dict[str, str] = {}
        self._constants: dict[tuple[str, str], str] = {}
        self._strings: dict[bytes, str] = {}
        self._helpers: dict[str, FunctionWriter | str | None] = {}
        self._functions: list[FunctionWriter | str] = []
        self._attributes: dict[str, str] = {}
        self._metadata: dict[str, str] = {}

    def declare(self, name: str, result: str, params: Sequence[str], attributes: str = "") -> str:
        """Declares a function once and returns ``@name``."""
        if name not in self._declarations:
            tail = f" {attributes}" if attributes else ""
            self._declarations[name] = f"declare {result} @{_quoted(name)}({', '.join(params)}){tail}"
        return f"@{_quoted(name)}"

    def intrinsic(self, name: str, base: str, lanes: int, params: Sequence[str] | None = None, count: int = 1) -> str:
        """Declares ``llvm.<name>.<type>``. Without ``params`` it takes ``count`` arguments of its result type."""
        type = vector(base, lanes)
        return self.declare(f"llvm.{name}.{suffix(base, lanes)}", type, [type] * count if params is None else params)

    def global_constant(self, type: str, initializer: str, align: int = 0) -> str:
        """A private constant with this initializer, shared by all who ask for the same; returns its ``@`` name."""
        key = (type, initializer)
        if key not in self._constants:
            name = f"@.const.{len(self._constants)}"
            tail = f", align {align}" if align else ""
            self._constants[key] = name
            self._globals[name] = f"{name} = private unnamed_addr constant {type} {initializer}{tail}"
        return self._constants[key]

    def array(self, base: str, literals: Sequence[str], align: int = 0) -> str:
        """A constant array of ``base`` elements."""
        body = ", ".join(f"{base} {literal}" for literal in literals)
        return self.global_constant(f"[{len(literals)} x {base}]", f"[{body}]", align)

    def string(self, data: str | bytes) -> str:
        """A constant with these bytes (UTF-8 for str), no terminating zero; the length is the caller's business."""
        raw = data.encode() if isinstance(data, str) else data
        if raw not in self._strings:
            body = "".join(chr(b) if 32 <= b < 127 and b not in (34, 92) else f"\\{b:02X}" for b in raw)
            self._strings[raw] = self.global_constant(f"[{len(raw)} x i8]", f'c"{body}"')
        return self._strings[raw]

    def global_text(self, name: str, definition: str) -> str:
        """Any other global: ``global_text("@x", "internal global i32 0")``; the first definition of a name counts."""
        self._globals.setdefault(name, f"{name} = {definition}")
        return name

    def helper(self, name: str, build: Callable[[ModuleWriter], FunctionWriter | str]) -> str:
        """``@name``, which ``build`` defines the first time it is asked for. Helpers may ask for helpers."""
        if name not in self._helpers:
            self._helpers[name] = None  # cuts recursion; the order of insertion is the order in the text
            self._helpers[name] = build(self)
        return f"@{_quoted(name)}"

    def function(
        self, name: str, result: str, params: Sequence[str], *, linkage: str = "", attributes: str = ""
    ) -> FunctionWriter:
        """Starts a function of the module. ``params`` are like ``ptr noalias %args``."""
        writer = FunctionWriter(self, name, result, params, linkage=linkage, attributes=attributes)
        self._functions.append(writer)
        return writer

    def add_text(self, definition: str) -> None:
        """Adds a finished function."""
        self._functions.append(definition)

    def attributes(self, text: str) -> str:
        """The attribute group ``#N`` with these attributes."""
        return self._attributes.setdefault(text, f"#{len(self._attributes)}")

    def metadata(self, body: str) -> str:
        """The metadata node with this body, braces included: ``!{i32 1}``. Equal bodies share one."""
        return self._metadata.setdefault(body, f"!{len(self._metadata)}")

    def named_metadata(self, name: str, nodes: Sequence[str]) -> None:
        """``!name = !{...}`` with these nodes."""
        self.add_text(f"!{name} = !{{{', '.join(nodes)}}}")

    def distinct_metadata(self, extra: str = "") -> str:
        """A new node whose first operand is itself, as ``!llvm.loop`` wants it; ``extra`` follows, like ``!3, !4``."""
        node = f"!{len(self._metadata)}"
        self._metadata[f"distinct !{{{node}{', ' + extra if extra else ''}}}"] = node
        return node

    def text(self) -> str:
        parts = [*self._globals.values(), *self._declarations.values()]
        for helper in self._helpers.values():
            assert helper is not None
            parts.append(helper if isinstance(helper, str) else helper.text())
        parts += [f if isinstance(f, str) else f.text() for f in self._functions]
        parts += [f"attributes {name} = {{ {text} }}" for text, name in self._attributes.items()]
        parts += [f"{name} = {body}" for body, name in self._metadata.items()]
        return "\n".join(parts) + "\n"


def _quoted(name: str) -> str:
    if name and name.replace("_", "a").replace(".", "a").replace("$", "a").isalnum() and name.isascii():
        return name
    plain = (c if c.isprintable() and c.isascii() and c not in '"\\' else f"\\{ord(c):02X}" for c in name)
    return '"' + "".join(plain) + '"'


class Point:
    """A place in a function where straight-line code may be added later, see ``FunctionWriter.point``."""

    __slots__ = ("label", "lines")

    def __init__(self, label: str) -> None:
        self.lines: list[str | Point] = []
        self.label = label


class FunctionWriter:
    """Fills one function, front to back; ``point``/``at`` allow straight-line code to be put in earlier places too.

    ``block`` is the label of the block being filled, for phis. Names of values are ``%v0``, ``%v1``, ...
    """

    def __init__(
        self,
        module: ModuleWriter,
        name: str,
        result: str,
        params: Sequence[str],
        *,
        linkage: str = "",
        attributes: str = "",
    ) -> None:
        self.module = module
        self.features = module.features
        self.name = name
        head = f"define {linkage + ' ' if linkage else ''}{result} @{_quoted(name)}({', '.join(params)})"
        self._head = f"{head} {attributes} {{" if attributes else head + " {"
        self._entry: list[str] = []
        self._body = Point("entry")
        self._lines = self._body.lines
        self._values = 0
        self._labels = 0
        self.block = "entry"
        self.before_branch: Callable[[], None] | None = None  # asked for code to put at the end of each block
        self.shared_note = ""  # metadata for reads of shared memory

    # Instructions

    def emit(self, rhs: str) -> str:
        """Writes ``%vN = rhs`` and returns ``%vN``."""
        name = f"%v{self._values}"
        self._values += 1
        self._lines.append(f"  {name} = {rhs}")
        return name

    def reserve(self) -> str:
        """A value name to be defined later, by a line put at a point (a phi that closes a loop)."""
        self._values += 1
        return f"%v{self._values - 1}"

    def cell(self, rhs: str, element: ElementType, lanes: int) -> Cell:
        """``emit`` with the result as a cell."""
        return Cell(self.emit(rhs), element, lanes)

    def line(self, text: str) -> None:
        """An instruction without a result."""
        self._lines.append("  " + text)

    def comment(self, text: str) -> None:
        self._lines.append(f"  ; {text}")

    def call(self, result: str, callee: str, args: Sequence[str], flags: str = "") -> str:
        """``%vN = call result callee(args)``; args carry their types."""
        return self.emit(f"call {flags + ' ' if flags else ''}{result} {callee}({', '.join(args)})")

    def intrinsic(self, name: str, base: str, lanes: int, *args: str, flags: str = "") -> str:
        """Calls ``llvm.<name>`` of arguments that all have the result's type."""
        type = vector(base, lanes)
        callee = self.module.intrinsic(name, base, lanes, count=len(args))
        return self.call(type, callee, [f"{type} {a}" for a in args], flags)

    def alloca(self, type: str, align: int = 0, count: int = 1) -> str:
        """A stack slot, made once when the function is entered, wherever this is called."""
        name = f"%slot{len(self._entry)}"
        array = f", i64 {count}" if count != 1 else ""
        self._entry.append(f"  {name} = alloca {type}{array}{f', align {align}' if align else ''}")
        return name

    # Control flow

    def new_label(self, hint: str = "b") -> str:
        """A label nobody has. It starts a block when given to ``label``."""
        self._labels += 1
        return f"{hint}.{self._labels}"

    def label(self, name: str) -> str:
        """Starts block ``name``; the previous one must have ended."""
        self._lines.append(f"{name}:")
        self.block = name
        return name

    def br(self, target: str, metadata: str = "") -> None:
        self._end_block()
        self._lines.append(f"  br label %{target}{metadata}")

    def cond_br(self, condition: str, yes: str, no: str, metadata: str = "") -> None:
        self._end_block()
        self._lines.append(f"  br i1 {condition}, label %{yes}, label %{no}{metadata}")

    def _end_block(self) -> None:
        if self.before_branch is not None:
            self.before_branch()

    def ret(self, operand: str = "void") -> None:
        self._lines.append(f"  ret {operand}")

    @contextmanager
    def branch(self, condition: str, hint: str = "if", metadata: str = "") -> Iterator[None]:
        """The code inside runs only when the i1 ``condition`` holds; afterwards ``block`` is the joining block."""
        then, done = self.new_label(hint), self.new_label(hint + ".end")
        self.cond_br(condition, then, done, metadata)
        self.label(then)
        yield
        self.br(done)
        self.label(done)

    def loop(
        self,
        low: str,
        high: str,
        step: str,
        body: Callable[[str, list[str]], Sequence[str]],
        carried: Sequence[tuple[str, str]] = (),
        *,
        hint: str = "loop",
        at_least_once: bool = False,
        metadata: str = "",
    ) -> list[str]:
        """Counts an i64 from ``low`` while it is less than ``high`` (signed), upward by ``step``.

        ``carried`` are (type, initial operand); ``body(counter, operands)`` returns their next values. The results
        are the values after the last trip. ``at_least_once`` says that low < high, which saves a branch.
        """
        before = self.block
        head, done = self.new_label(hint), self.new_label(hint + ".end")
        if at_least_once:
            self.br(head)
        else:
            self.cond_br(self.emit(f"icmp slt i64 {low}, {high}"), head, done)
        self.label(head)
        counter = f"%v{self._values}"
        values = [f"%v{self._values + 1 + i}" for i in range(len(carried))]
        self._values += 1 + len(carried)
        phis = Point(head)
        self._lines.append(phis)
        following = list(body(counter, values))
        succ = self.emit(f"add nsw i64 {counter}, {step}")
        latch = self.block
        self.cond_br(self.emit(f"icmp slt i64 {succ}, {high}"), head, done, metadata)
        phis.lines.append(f"  {counter} = phi i64 [ {low}, %{before} ], [ {succ}, %{latch} ]")
        for value, (type, first), then in zip(values, carried, following, strict=True):
            phis.lines.append(f"  {value} = phi {type} [ {first}, %{before} ], [ {then}, %{latch} ]")
        self.label(done)
        if at_least_once:
            return following
        return [
            self.emit(f"phi {type} [ {first}, %{before} ], [ {then}, %{latch} ]")
            for (type, first), then in zip(carried, following, strict=True)
        ]

    # Earlier places

    def point(self) -> Point:
        """Marks this place: ``with w.at(point):`` puts straight-line code here later."""
        point = Point(self.block)
        self._lines.append(point)
        return point

    @contextmanager
    def at(self, point: Point) -> Iterator[None]:
        """Code inside goes to ``point``. It must not start blocks."""
        lines, block = self._lines, self.block
        self._lines, self.block = point.lines, point.label
        try:
            yield
            assert self.block == point.label, "code at a point must be straight-line"
        finally:
            self._lines, self.block = lines, block

    def text(self) -> str:
        out = [self._head, "entry:", *self._entry]
        _flatten(self._body.lines, out)
        out.append("}")
        return "\n".join(out)


def _flatten(lines: Sequence[str | Point], out: list[str]) -> None:
    for line in lines:
        if isinstance(line, Point):
            _flatten(line.lines, out)
        else:
            out.append(line)


def splat(w: FunctionWriter, cell: Cell, lanes: int) -> Cell:
    """``cell`` in every one of ``lanes`` lanes; itself when it already has them or lanes is 0."""
    if cell.lanes == lanes:
        return cell
    assert not cell.lanes, f"cannot splat {cell.lanes} lanes to {lanes}"
    base = scalar_type(cell.element)
    if not cell.text.startswith("%") and not cell.text.startswith("@"):
        text = "zeroinitializer" if cell.text in ("0", "null", "false") else splat_text(cell.text, base, lanes)
        return Cell(text, cell.element, lanes, cell.value)
    type = vector(base, lanes)
    first = w.emit(f"insertelement {type} poison, {base} {cell.text}, i64 0")
    text = w.emit(f"shufflevector {type} {first}, {type} poison, <{lanes} x i32> zeroinitializer")
    return Cell(text, cell.element, lanes, cell.value)


def extract(w: FunctionWriter, cell: Cell, lane: int) -> Cell:
    """One lane as a scalar."""
    return Cell(w.emit(f"extractelement {cell.typed}, i64 {lane}"), cell.element)


def insert(w: FunctionWriter, into: Cell, value: Cell, lane: int) -> Cell:
    return Cell(w.emit(f"insertelement {into.typed}, {value.typed}, i64 {lane}"), into.element, into.lanes)

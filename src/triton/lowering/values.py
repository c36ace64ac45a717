"""``Num``: LLVM values with Python operators, in which conversions and mathematical functions are written.

A ``Num`` knows its LLVM scalar type (``i32``, ``float``, ...) but no signedness; where it matters the method says so.
Plain Python numbers become constants of the other operand's type. Everything works for scalars (lanes 0) and vectors
alike.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..ir.types import ElementType
from .writer import Cell, FunctionWriter, float_bits, float_text, scalar_type, splat_text, vector

FLOAT_BASES = frozenset({"half", "bfloat", "float", "double"})


def literal(value: bool | int | float, base: str, lanes: int = 0) -> str:
    """``value`` as a constant of the LLVM type, rounded to it if it is a float; integers wrap."""
    if base in ("float", "double"):
        text = float_text(float(value), base)
    elif base == "half":
        text = f"0xH{float_bits(float(value), 16):04X}"
    elif base == "bfloat":
        raise AssertionError("bfloat constants are written by emit_constant")
    elif base == "i1":
        text = "true" if value else "false"
    elif base == "ptr":
        text = "null"
    else:
        bits = int(base[1:])
        number = int(value) & ((1 << bits) - 1)
        text = str(number - (1 << bits) if number >> (bits - 1) else number)
    if lanes and text in ("0", "false", "null"):
        return "zeroinitializer"
    return splat_text(text, base, lanes)


class Num:
    """One value: operand ``text`` of ``lanes`` x ``base``."""

    __slots__ = ("base", "lanes", "text", "type", "w")

    def __init__(self, w: FunctionWriter, text: str, base: str, lanes: int) -> None:
        self.w = w
        self.text = text
        self.base = base
        self.lanes = lanes
        self.type = f"<{lanes} x {base}>" if lanes else base

    @property
    def bits(self) -> int:
        return {"half": 16, "bfloat": 16, "float": 32, "double": 64}.get(self.base) or int(self.base[1:])

    @property
    def typed(self) -> str:
        return f"{self.type} {self.text}"

    def cell(self, element: ElementType) -> Cell:
        """This value as a cell of ``element``, whose LLVM type it has."""
        return Cell(self.text, element, self.lanes)

    def const(self, value: bool | int | float) -> Num:
        """A constant of this value's type."""
        return Num(self.w, literal(value, self.base, self.lanes), self.base, self.lanes)

    def operand(self, other: Num | int | float) -> str:
        return other.text if isinstance(other, Num) else literal(other, self.base, self.lanes)

    def binary(self, opcode: str, other: Num | int | float) -> Num:
        return Num(
            self.w, self.w.emit(f"{opcode} {self.type} {self.text}, {self.operand(other)}"), self.base, self.lanes
        )

    # Arithmetic; / is for floats, >> is logical

    def __add__(self, other: Num | int | float) -> Num:
        return self.binary("fadd" if self.base in FLOAT_BASES else "add", other)

    def __sub__(self, other: Num | int | float) -> Num:
        return self.binary("fsub" if self.base in FLOAT_BASES else "sub", other)

    def __mul__(self, other: Num | int | float) -> Num:
        return self.binary("fmul" if self.base in FLOAT_BASES else "mul", other)

    def __truediv__(self, other: Num | int | float) -> Num:
        return self.binary("fdiv", other)

    def __radd__(self, other: int | float) -> Num:
        return self + other

    def __rmul__(self, other: int | float) -> Num:
        return self * other

    def __rsub__(self, other: int | float) -> Num:
        return self.const(other) - self

    def __rtruediv__(self, other: int | float) -> Num:
        return self.const(other) / self

    def __and__(self, other: Num | int) -> Num:
        return self.binary("and", other)

    def __or__(self, other: Num | int) -> Num:
        return self.binary("or", other)

    def __xor__(self, other: Num | int) -> Num:
        return self.binary("xor", other)

    def __lshift__(self, other: Num | int) -> Num:
        return self.binary("shl", other)

    def __rshift__(self, other: Num | int) -> Num:
        return self.binary("lshr", other)

    def ashr(self, other: Num | int) -> Num:
        return self.binary("ashr", other)

    def __neg__(self) -> Num:
        if self.base in FLOAT_BASES:
            return Num(self.w, self.w.emit(f"fneg {self.type} {self.text}"), self.base, self.lanes)
        return self.const(0) - self

    def __invert__(self) -> Num:
        return self ^ -1

    def muladd(self, b: Num | float, c: Num | float) -> Num:
        """self * b + c: fused where the target fuses in one instruction, otherwise rounded twice."""
        if self.w.features.fma:
            return self.fma(b, c)
        return self * b + c

    def fma(self, b: Num | float, c: Num | float) -> Num:
        """self * b + c, rounded once whatever it costs."""
        return self.call("fma", b, c)

    def call(self, intrinsic: str, *others: Num | float) -> Num:
        """An intrinsic whose operands and result have this value's type."""
        args = [self.text, *(self.operand(o) for o in others)]
        return Num(self.w, self.w.intrinsic(intrinsic, self.base, self.lanes, *args), self.base, self.lanes)

    def abs(self) -> Num:
        """Absolute value of a float."""
        return self.call("fabs")

    # Comparisons, giving i1

    def compare(self, predicate: str, other: Num | int | float) -> Num:
        """``fcmp``/``icmp`` with LLVM's predicate name (``olt``, ``ult``, ``slt``, ...)."""
        opcode = "fcmp" if self.base in FLOAT_BASES else "icmp"
        text = self.w.emit(f"{opcode} {predicate} {self.type} {self.text}, {self.operand(other)}")
        return Num(self.w, text, "i1", self.lanes)

    def eq(self, other: Num | int | float) -> Num:
        return self.compare("oeq" if self.base in FLOAT_BASES else "eq", other)

    def ne(self, other: Num | int | float) -> Num:
        return self.compare("une" if self.base in FLOAT_BASES else "ne", other)

    def lt(self, other: Num | int | float) -> Num:
        """Ordered (float) or signed (integer) less than."""
        return self.compare("olt" if self.base in FLOAT_BASES else "slt", other)

    def gt(self, other: Num | int | float) -> Num:
        return self.compare("ogt" if self.base in FLOAT_BASES else "sgt", other)

    def le(self, other: Num | int | float) -> Num:
        return self.compare("ole" if self.base in FLOAT_BASES else "sle", other)

    def ge(self, other: Num | int | float) -> Num:
        return self.compare("oge" if self.base in FLOAT_BASES else "sge", other)

    def isnan(self) -> Num:
        return self.compare("uno", 0.0)

    def select(self, yes: Num | int | float, no: Num | int | float) -> Num:
        """This i1 chooses; at least one of the two must be a Num."""
        like = yes if isinstance(yes, Num) else no
        assert isinstance(like, Num)
        text = self.w.emit(
            f"select {self.type} {self.text}, {like.type} {like.operand(yes)}, {like.type} {like.operand(no)}"
        )
        return Num(self.w, text, like.base, like.lanes)

    # Type changes

    def convert(self, opcode: str, base: str, flags: str = "") -> Num:
        """``sext``, ``zext``, ``trunc``, ``fpext``, ``sitofp``, ``bitcast``, ... to another scalar type."""
        to = vector(base, self.lanes)
        head = f"{opcode} {flags} " if flags else opcode + " "
        return Num(self.w, self.w.emit(f"{head}{self.type} {self.text} to {to}"), base, self.lanes)

    def resize(self, base: str, signed: bool = False) -> Num:
        """This integer as another integer type: low bits, or extended."""
        old, new = self.bits, int(base[1:])
        if new == old:
            return self
        return self.convert("trunc" if new < old else "sext" if signed else "zext", base)

    def bitcast(self, base: str) -> Num:
        return self if base == self.base else self.convert("bitcast", base)

    def to_bits(self) -> Num:
        """The bits of this float as an integer."""
        return self.bitcast(f"i{self.bits}")

    def to_int(self, base: str) -> Num:
        """Signed integer part; only for values known to fit."""
        return self.convert("fptosi", base)

    def polynomial(self, coefficients: Sequence[float]) -> Num:
        """c[0] + c[1] x + c[2] x^2 + ... by Horner's rule."""
        result = self.const(coefficients[-1])
        for c in reversed(coefficients[:-1]):
            result = result.muladd(self, c)
        return result


def num(w: FunctionWriter, cell: Cell) -> Num:
    return Num(w, cell.text, scalar_type(cell.element), cell.lanes)

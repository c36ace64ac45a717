"""Typing rules and IR emission that the language's operations share.

Promotion of two operands, in this order (``triton.language`` semantics page): the higher kind of boolean < integer <
float wins; of one kind the wider wins; of one width float16 wins over bfloat16; of one width and two signednesses
unsigned wins. A Python number takes the tensor's type when its kind is not higher and its value fits; otherwise it
counts as the first of int32, uint32, int64, uint64 or of float32, float64 that holds it. Division and remainder of
16-bit floats compute in float32. Two shapes meet by padding the shorter one with ones on the left and stretching axes
of size 1.
"""

from __future__ import annotations

import math
import operator
import warnings
from typing import Any

from triton.ir import Builder, Op, Value
from triton.ir import types as ir

from . import dtypes as dt
from .dtypes import get_block_type
from .values import describe, tensor, unwrap

_KIND_RANK = {dt.dtype.KIND.BOOLEAN: 0, dt.dtype.KIND.INTEGRAL: 1, dt.dtype.KIND.FLOATING: 2}
_MIN_NORMAL_F32, _MAX_F32 = 2.0**-126, (2 - 2.0**-23) * 2.0**127
_rank = {t.name: _KIND_RANK[t.kind()] for t in (*dt.SIGNATURE_NAMES.values(),) if not t.is_void()}


class StaticAssertionFailed(Exception):
    """Raised by ``tl.static_assert`` while a kernel is built; becomes CompileTimeAssertionFailure with its place."""


class TritonSemantic:
    """What an operation may use while it builds IR: the builder, the options, and the rules above.

    ``generator`` calls jitted functions (combine functions of reductions); ``options`` and ``capabilities`` are read
    only.
    """

    __slots__ = ("_constants", "builder", "capabilities", "generator", "options")

    def __init__(self, builder: Builder, options: Any, capabilities: Any, generator: Any = None) -> None:
        self.builder = builder
        self.options = options
        self.capabilities = capabilities
        self.generator = generator
        self._constants: dict[Any, Value] = {}

    # IR -------------------------------------------------------------------------------------------------------------

    def op(self, kind: str, operands: list[Value], type: ir.Type, attrs: dict[str, Any] | None = None) -> Value:
        """Appends an op with one result of a known type."""
        builder = self.builder
        made = Op(kind, operands, (type,), attrs, (), builder.loc)
        builder.block.ops.append(made)
        return made.results[0]

    def constant(self, value: Any, type: dt.dtype) -> tensor:
        """``value`` everywhere in a tensor (or scalar) of ``type``; equal constants of a block are shared."""
        element = type.scalar
        if element.is_floating():
            value = float(value)
            key: Any = (self.builder.block, type.ir, value.hex())
        else:
            value = bool(value) if element.is_bool() else int(value)
            key = (self.builder.block, type.ir, value)
        found = self._constants.get(key)
        if found is None:
            found = self._constants[key] = self.op("constant", [], type.ir, {"value": value})
        return tensor(found, type)

    def known(self, x: tensor) -> Any:
        """The number that ``x`` is known to hold (everywhere), or None."""
        owner = x.handle.owner
        return owner.attrs["value"] if isinstance(owner, Op) and owner.kind == "constant" else None

    # Python values --------------------------------------------------------------------------------------------------

    def scalar_type(self, value: Any, what: str = "value") -> dt.dtype:
        """The type that a Python number has by itself."""
        if isinstance(value, bool):
            return dt.int1
        if isinstance(value, int):
            for low, high, found in (
                (-(2**31), 2**31, dt.int32),
                (2**31, 2**32, dt.uint32),
                (-(2**63), 2**63, dt.int64),
                (2**63, 2**64, dt.uint64),
            ):
                if low <= value < high:
                    return found
            text = str(value) if abs(value) < 10**40 else f"an integer of {value.bit_length()} bits"
            raise ValueError(f"{what}: {text} does not fit in 64 bits")
        if isinstance(value, float):
            size = abs(value)
            fits = value == 0.0 or math.isinf(value) or math.isnan(value) or _MIN_NORMAL_F32 <= size <= _MAX_F32
            return dt.float32 if fits else dt.float64
        raise TypeError(f"{what}: expected a tensor or a number, got {describe(value)}")

    def to_tensor(self, value: Any, what: str = "value") -> tensor:
        """A Python number as a run-time scalar; a tensor is itself."""
        if type(value) is tensor:
            return value
        value = unwrap(value)
        if isinstance(value, tensor):
            return value
        return self.constant(value, self.scalar_type(value, what))

    def literal(self, value: Any, type: dt.dtype, what: str) -> tensor:
        """A Python number as a constant of ``type``. Raises ValueError when an integer does not fit."""
        element = type.scalar
        if element.is_ptr():
            if value != 0 or isinstance(value, bool):
                raise TypeError(f"{what}: expected a pointer, got {describe(value)}")
            return self.constant(0, type)
        if element.is_int() and not element.is_bool():
            if isinstance(value, float):
                raise TypeError(f"{what}: cannot use {describe(value)} as {element}")
            self.check_fits(value, element, what)
        return self.constant(value, type)

    def check_fits(self, value: int, element: dt.dtype, what: str) -> None:
        low, high = element.get_int_min_value(), element.get_int_max_value()
        if not low <= value <= high:
            raise ValueError(
                f"{what}: {int(value)} does not fit {element} ({low} to {high}); cast the other operand to a wider type"
            )

    # Promotion ------------------------------------------------------------------------------------------------------

    def promoted(self, a: dt.dtype, b: dt.dtype, division: bool, what: str) -> dt.dtype:
        """The type in which two tensors' elements meet."""
        if a == b and not division:
            return a
        rank_a, rank_b = _rank[a.name], _rank[b.name]
        if rank_a != rank_b:
            wide = a if rank_a > rank_b else b
            return self.divisible(wide) if division else wide
        if rank_a == 2:
            return self._promoted_floats(a, b, division)
        if a.name == b.name:
            return a
        if division and a.is_int_signed() != b.is_int_signed():
            raise TypeError(
                f"Cannot use {what} with {a} and {b} because they have different signedness, so that the result is "
                "unlikely to be what you want; cast one of them"
            )
        if a.int_bitwidth != b.int_bitwidth:
            return a if a.int_bitwidth > b.int_bitwidth else b
        return a if a.is_int_unsigned() else b

    def _promoted_floats(self, a: dt.dtype, b: dt.dtype, division: bool) -> dt.dtype:
        if a.name == b.name:
            return self.divisible(a) if division else a
        if a.primitive_bitwidth != b.primitive_bitwidth:
            wide = a if a.primitive_bitwidth > b.primitive_bitwidth else b
        else:
            wide = dt.float16  # float16 with bfloat16, or two kinds of float8
        return self.divisible(wide) if division else wide

    @staticmethod
    def divisible(type: dt.dtype) -> dt.dtype:
        """The float type in which a division of ``type`` is computed."""
        return dt.float32 if type.is_floating() and type.primitive_bitwidth <= 16 else type

    def pair(self, a: Any, b: Any, what: str, division: bool = False, pointers: bool = False) -> tuple[tensor, tensor]:
        """Both operands as tensors of one promoted type and one shape."""
        a, b = unwrap(a), unwrap(b)
        number_a, number_b = not isinstance(a, tensor), not isinstance(b, tensor)
        if number_a and number_b:
            a, b = self.to_tensor(a, what), self.to_tensor(b, what)
        elif number_a:
            a = self._number_beside(a, b, what, division, pointers)
        elif number_b:
            b = self._number_beside(b, a, what, division, pointers)
        a_type, b_type = a.type.scalar, b.type.scalar
        if a_type.is_ptr() or b_type.is_ptr():
            self._check_pointers(a_type, b_type, what, pointers)
        else:
            if not (number_a or number_b) or _rank[a_type.name] != _rank[b_type.name]:
                common = self.promoted(a_type, b_type, division, what)
            else:
                common = self.divisible(a_type) if division else a_type
            a, b = self.cast(a, common), self.cast(b, common)
        return self.broadcast(a, b, what)

    def _number_beside(self, number: Any, other: tensor, what: str, division: bool, pointers: bool) -> tensor:
        """A Python number that meets a tensor: a constant of the tensor's type and shape when its kind is not
        higher."""
        element = other.type.scalar
        natural = self.scalar_type(number, what)
        if element.is_ptr():
            return self.literal(number, other.type, what) if pointers else self.to_tensor(number, what)
        if _rank[natural.name] <= _rank[element.name]:
            if division:
                element = self.divisible(element)
            return self.literal(number, other.type.with_element_ty(element), what)
        return self.constant(number, get_block_type(natural, other.type.shape))

    @staticmethod
    def _check_pointers(a: dt.dtype, b: dt.dtype, what: str, allowed: bool) -> None:
        if not allowed or not (a.is_ptr() and b.is_ptr()):
            raise TypeError(f"invalid operands of type {a} and {b} for {what}")

    # Shapes ---------------------------------------------------------------------------------------------------------

    def broadcast_shape(self, a: tuple[int, ...], b: tuple[int, ...], what: str) -> tuple[int, ...]:
        if a == b:
            return a
        rank = max(len(a), len(b))
        wide_a, wide_b = (1,) * (rank - len(a)) + a, (1,) * (rank - len(b)) + b
        for axis, (m, n) in enumerate(zip(wide_a, wide_b, strict=True)):
            if m != n and m != 1 and n != 1:
                raise ValueError(
                    f"{what}: shapes {list(a)} and {list(b)} cannot be broadcast together "
                    f"(incompatible dimensions at index {axis}: {m} and {n})"
                )
        return tuple(n if m == 1 else m for m, n in zip(wide_a, wide_b, strict=True))

    def to_shape(self, x: tensor, shape: tuple[int, ...]) -> tensor:
        """``x`` stretched to ``shape``, which its own shape must fit."""
        own = x.type.shape
        if own == shape:
            return x
        element = x.type.scalar
        type = get_block_type(element, shape)
        value = self.known(x)
        if value is not None:
            return self.constant(value, type)
        handle = x.handle
        if not own:
            return tensor(self.op("splat", [handle], type.ir), type)
        while len(own) < len(shape):
            own = (1, *own)
            handle = self.op("expand_dims", [handle], ir.TensorType(own, element.ir), {"axis": 0})
        if own != shape:
            handle = self.op("broadcast", [handle], type.ir)
        return tensor(handle, type)

    def broadcast(self, a: tensor, b: tensor, what: str) -> tuple[tensor, tensor]:
        """Both tensors in their common shape."""
        shape_a, shape_b = a.type.shape, b.type.shape
        if shape_a == shape_b:
            return a, b
        shape = self.broadcast_shape(shape_a, shape_b, what)
        return self.to_shape(a, shape), self.to_shape(b, shape)

    def broadcast_all(self, values: list[tensor], what: str) -> list[tensor]:
        shape: tuple[int, ...] = ()
        for value in values:
            shape = self.broadcast_shape(shape, value.type.shape, what)
        return [self.to_shape(v, shape) for v in values]

    # Casts ----------------------------------------------------------------------------------------------------------

    def cast(self, x: tensor, element: dt.dtype, rounding: str | None = None) -> tensor:
        """Value conversion of the elements."""
        source = x.type.scalar
        if source is element or source == element:
            return x
        type = x.type.with_element_ty(element)
        if source.is_ptr() or element.is_ptr():
            return self._cast_pointer(x, source, type)
        value = self.known(x)
        if value is not None and rounding is None:
            folded = _fold_cast(value, element)
            if folded is not None:
                return self.constant(folded, type)
        attrs = {"rounding": rounding} if rounding and rounding != "rtne" else None
        return tensor(self.op("cast", [x.handle], type.ir, attrs), type)

    def _cast_pointer(self, x: tensor, source: dt.dtype, type: Any) -> tensor:
        element = type.scalar
        if source.is_ptr() and element.is_ptr():
            return self.bitcast(x, element)
        if source.is_ptr():
            if not element.is_int():
                raise TypeError(f"cannot cast {source} to {element}")
            if element.is_bool():
                return self.binary("cmp", x, 0, "cast", pred="ne", pointers=True)
            return self.cast(self.bitcast(x, dt.int64), element)
        if not source.is_int() or source.is_bool():
            raise TypeError(f"cannot cast {source} to {element}")
        return self.bitcast(self.cast(x, dt.int64 if source.is_int_signed() else dt.uint64), element)

    def bitcast(self, x: tensor, element: dt.dtype) -> tensor:
        """The same bits as another type of the same width."""
        source = x.type.scalar
        if source == element:
            return x
        if source.primitive_bitwidth != element.primitive_bitwidth:
            raise ValueError(
                f"bitcast: {source} has {source.primitive_bitwidth} bits and {element} has {element.primitive_bitwidth}"
            )
        type = x.type.with_element_ty(element)
        if type.ir == x.type.ir:
            return tensor(x.handle, type)
        value = self.known(x)
        if isinstance(value, int) and element.is_int() and not element.is_bool():
            return self.constant(_wrapped(value, element), type)
        return tensor(self.op("bitcast", [x.handle], type.ir), type)

    # Arithmetic -----------------------------------------------------------------------------------------------------

    def binary(
        self,
        kind: str,
        a: Any,
        b: Any,
        what: str,
        *,
        pred: str | None = None,
        division: bool = False,
        pointers: bool = False,
        only: str = "",
        attrs: dict[str, Any] | None = None,
    ) -> tensor:
        """An elementwise op of two operands after promotion and broadcasting. ``only``: ``int`` or ``float``
        operands."""
        x, y = self.pair(a, b, what, division, pointers)
        element = x.type.scalar
        if only and not element.is_ptr():
            good = element.is_int() if only == "int" else element.is_floating()
            if not good:
                words = "integers" if only == "int" else "floating-point numbers"
                types = f"invalid operands of type {self.words(a)} and {self.words(b)}"
                raise TypeError(f"{types} for {what}: expected {words}")
        if element.is_fp8() and pred is None:
            x, y = self.cast(x, dt.float16), self.cast(y, dt.float16)
        if not x.type.is_block() and element.is_int():
            folded = _fold_integers(pred or kind, self.known(x), self.known(y))
            if folded is not None:
                result = dt.int1 if pred is not None else element
                return self.constant(folded if pred is not None else _wrapped(folded, element), result)
        if pred is not None:
            type = x.type.with_element_ty(dt.int1)
            return tensor(self.op(kind, [x.handle, y.handle], type.ir, {"pred": pred}), type)
        return tensor(self.op(kind, [x.handle, y.handle], x.type.ir, attrs), x.type)

    @staticmethod
    def words(value: Any) -> str:
        value = unwrap(value)
        if not isinstance(value, tensor):
            return describe(value)
        return str(value) if value.type.is_block() else str(value.type)

    def add(self, a: Any, b: Any, what: str = "+") -> tensor:
        a, b = unwrap(a), unwrap(b)
        pointer_a = isinstance(a, tensor) and a.type.scalar.is_ptr()
        pointer_b = isinstance(b, tensor) and b.type.scalar.is_ptr()
        if pointer_a and pointer_b:
            raise TypeError(f"{what}: cannot add two pointers")
        if pointer_a:
            return self.offset(a, b, what)
        return self.offset(b, a, what) if pointer_b else self.binary("add", a, b, what)

    def sub(self, a: Any, b: Any, what: str = "-") -> tensor:
        a = unwrap(a)
        if isinstance(a, tensor) and a.type.scalar.is_ptr():
            b = self.to_tensor(b, what)
            if b.type.scalar.is_ptr():
                raise TypeError(f"{what}: cannot subtract two pointers; cast them to int64 first")
            if b.type.scalar.is_int_unsigned():
                b = self.cast(b, dt.int64)
            return self.offset(a, self.negative(b), what)
        return self.binary("sub", a, b, what)

    def mul(self, a: Any, b: Any, what: str = "*") -> tensor:
        return self.binary("mul", a, b, what)

    def offset(self, pointer: tensor, offset: Any, what: str) -> tensor:
        """Pointer arithmetic in units of the pointee."""
        offset = self.to_tensor(offset, what)
        if not offset.type.scalar.is_int() or offset.type.scalar.is_bool():
            raise TypeError(f"{what}: a pointer moves by an integer, got {self.words(offset)}")
        if self.known(offset) == 0 and not offset.type.shape:
            return pointer
        pointer, offset = self.broadcast(pointer, offset, what)
        return tensor(self.op("addptr", [pointer.handle, offset.handle], pointer.type.ir), pointer.type)

    def truediv(self, a: Any, b: Any, what: str = "/") -> tensor:
        """Division to a float type: integers count as float32, whose quotients may be off by two last places."""
        a, b = unwrap(a), unwrap(b)
        types = [v.type.scalar if isinstance(v, tensor) else self.scalar_type(v, what) for v in (a, b)]
        if all(not t.is_ptr() and t.is_int() for t in types):
            a = self.cast(self.to_tensor(a, what), dt.float32)
            b = self.cast(self.to_tensor(b, what), dt.float32)
        x, y = self.pair(a, b, what, division=True)
        # As users of GPUs expect of the operator: two last places in float32; tl.div_rn rounds correctly.
        return self.binary("div", x, y, what, attrs={"approx": True} if x.type.scalar.is_fp32() else None)

    def floordiv(self, a: Any, b: Any, what: str = "//") -> tensor:
        """Integer division that truncates toward zero, as in C."""
        try:
            return self.binary("div", a, b, what, division=True, only="int")
        except TypeError as error:
            if "expected integers" in str(error):
                raise TypeError(f"{error}; use / or tl.floor(a / b) for floats") from None
            raise

    def mod(self, a: Any, b: Any, what: str = "%") -> tensor:
        """Remainder with the sign of the dividend, as in C."""
        return self.binary("rem", a, b, what, division=True)

    def bitwise(self, kind: str, a: Any, b: Any, what: str) -> tensor:
        return self.binary(kind, a, b, what, only="int")

    def shift(self, kind: str, a: Any, b: Any, what: str) -> tensor:
        amount = unwrap(b)
        if isinstance(amount, int) and isinstance(a, tensor) and a.type.scalar.is_int():
            width = a.type.scalar.int_bitwidth
            if not 0 <= amount < width:
                warnings.warn(f"{what}: shifting {a.type.scalar} by {amount} gives an unspecified value", stacklevel=2)
        return self.binary(kind, a, b, what, only="int")

    def compare(self, pred: str, a: Any, b: Any, what: str) -> tensor:
        return self.binary("cmp", a, b, what, pred=pred, pointers=True)

    def negative(self, x: Any, what: str = "-") -> tensor:
        x = self.to_tensor(x, what)
        element = x.type.scalar
        if element.is_ptr():
            raise TypeError(f"{what}: cannot negate {element}")
        if element.is_bool():
            x = self.cast(x, dt.int32)
        elif element.is_fp8():
            x = self.cast(x, dt.float16)
        value = self.known(x)
        if value is not None and (x.type.scalar.is_floating() or x.type.scalar.get_int_min_value() <= -value):
            return self.constant(-value, x.type)
        return tensor(self.op("neg", [x.handle], x.type.ir), x.type)

    def invert(self, x: Any, what: str = "~") -> tensor:
        x = self.to_tensor(x, what)
        element = x.type.scalar
        if not element.is_int():
            raise TypeError(f"{what}: expected integers, got {self.words(x)}")
        ones = True if element.is_bool() else (-1 if element.is_int_signed() else element.get_int_max_value())
        return tensor(self.op("xor", [x.handle, self.constant(ones, x.type).handle], x.type.ir), x.type)

    def truth(self, x: Any, what: str) -> tensor:
        """``x != 0`` as booleans."""
        x = self.to_tensor(x, what)
        return x if x.type.scalar.is_bool() else self.compare("ne", x, 0, what)

    def logical(self, kind: str, a: Any, b: Any, what: str) -> tensor:
        """``and``/``or`` of truth values, elementwise."""
        return self.binary(kind, self.truth(a, what), self.truth(b, what), what)

    def logical_not(self, x: Any, what: str = "not") -> tensor:
        return self.invert(self.truth(x, what))

    def select(self, condition: Any, a: Any, b: Any, what: str = "where") -> tensor:
        """``a`` where the condition holds, else ``b``, after promotion and broadcasting of all three."""
        condition = self.truth(condition, what)
        x, y = self.pair(a, b, what, pointers=True)
        if condition.type.shape != x.type.shape and condition.type.shape:
            shape = self.broadcast_shape(condition.type.shape, x.type.shape, what)
            condition, x, y = (self.to_shape(v, shape) for v in (condition, x, y))
        return tensor(self.op("select", [condition.handle, x.handle, y.handle], x.type.ir), x.type)

    def min_max(self, kind: str, a: Any, b: Any, what: str, propagate_nan: bool) -> tensor:
        return self.binary(kind, a, b, what, attrs={"propagate_nan": True} if propagate_nan else None)

    def constexpr_int(self, value: Any, what: str) -> int:
        """An int known at compile time, or TypeError."""
        value = unwrap(value)
        if isinstance(value, tensor):
            known = self.known(value)
            if isinstance(known, int) and not value.type.shape:
                return int(known)
        if isinstance(value, bool) or not isinstance(value, int):
            raise TypeError(f"{what}: expected an int known at compile time (tl.constexpr), got {describe(value)}")
        return value

    def shape_argument(self, shape: Any, what: str) -> tuple[int, ...]:
        """A shape from ints, constexprs or one sequence of them."""
        shape = unwrap(shape)
        if isinstance(shape, (int, tensor)):
            shape = (shape,)
        if not hasattr(shape, "__iter__") or isinstance(shape, str):
            raise TypeError(f"{what}: expected a tuple of ints, got {describe(shape)}")
        return tuple(self.constexpr_int(s, what) for s in shape)

    def axis_argument(self, axis: Any, rank: int, what: str) -> int:
        """An axis, counted from the end when negative."""
        axis = self.constexpr_int(axis, what)
        if not -rank <= axis < rank:
            raise ValueError(f"{what}: invalid axis {axis}. Expected {-rank} <= axis < {rank}")
        return int(axis % rank)


_INTEGER_RULES: dict[str, Any] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
    "min": min,
    "max": max,
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}


def _fold_integers(kind: str, a: Any, b: Any) -> Any:
    """The result of an op on two known integers before wrapping; None when it is to be emitted."""
    if a is None or b is None:
        return None
    if kind in ("div", "rem"):
        if b == 0:
            return None
        quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
        return quotient if kind == "div" else a - quotient * b
    rule = _INTEGER_RULES.get(kind)
    return None if rule is None else rule(a, b)


def _wrapped(value: int, element: dt.dtype) -> int:
    """``value`` modulo two to the width, in the type's range."""
    value &= (1 << element.int_bitwidth) - 1
    negative = element.is_int_signed() and value >> (element.int_bitwidth - 1)
    return value - (1 << element.int_bitwidth) if negative else value


def _fold_cast(value: Any, element: dt.dtype) -> Any:
    """``value`` converted to ``element`` when that is exact or plain truncation; None when the cast must stay."""
    if element.is_bool():
        return value != 0
    if element.is_int():
        if isinstance(value, float):
            if not math.isfinite(value) or not element.get_int_min_value() <= int(value) <= element.get_int_max_value():
                return None
            value = int(value)
        return _wrapped(int(value), element)
    if element.is_fp64():
        return float(value)
    # Small whole numbers are exact in every float type but the 8-bit ones; the rest needs the rules of rounding.
    if isinstance(value, float) and math.isinf(value) and not element.is_fp8():
        return value
    exact = (
        abs(value) <= 256 and value == int(value)
        if not (isinstance(value, float) and not math.isfinite(value))
        else False
    )
    return float(value) if exact and not element.is_fp8() else None


def promote_bfloat16(x: Any, semantic: TritonSemantic) -> Any:
    """bfloat16 tensors as float32; anything else is itself."""
    x = semantic.to_tensor(x)
    return semantic.cast(x, dt.float32) if x.type.scalar.is_bf16() else x

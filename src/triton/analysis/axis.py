"""Contiguity, divisibility and constancy of every value along each axis: what decides the width of memory accesses.

For axis d of a tensor x of size n, with aligned groups [0, c), [c, 2c), ... of indices along d (the last may be
shorter):

* ``contiguity[d] = c``: inside each group values go up by 1, modulo 2^bits (pointers: by one element).
* ``constancy[d] = c``: inside each group values are equal.
* ``divisibility[d] = p``: the power of two p (at most 2^30) divides the first value of each *contiguous* group; for
  pointers it
  counts bytes. With contiguity 1 every value is a group, so p divides them all.

A scalar counts as a tensor of one axis of size 1. ``value`` is set when all elements are one known integer. Sizes
need not be powers of two: groups of c are also groups of every divisor of c, so facts meet by their greatest common
divisor.

Signed index arithmetic is taken not to wrap inside a group (a wrapped index lies outside every allocation); unsigned
arithmetic may.

Example, with 16 | stride and 16 | p:   %r = p + row[:, None] * stride + arange(0, 64)[None, :]    (f32)
    contiguity (1, 64)   divisibility (1, 16)   constancy (1, 1)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import gcd, prod

from ..ir.core import Block, Function, Op, Value
from ..ir.types import DescriptorType, ScalarType, element_of, shape_of
from . import ranges as _ranges
from .groups import (
    MAX_DIVISIBILITY,
    AxisInfo,
    axis_groups,
    divisor_at,
    divisor_of_all,
    known,
    meet,
    merge,
    merge_axes,
    power_of_two,
    rank,
    sizes_of,
    step_of,
    unknown,
    wrapped,
)

__all__ = ["AxisInfo", "analyse", "power_of_two"]


def analyse(function: Function, ranges: dict[Value, _ranges.Range] | None = None) -> dict[Value, AxisInfo]:
    """The facts for every value of ``function``, descriptors excepted.

    ``ranges`` may be given when they are known already, with ``no_wrap``.
    """
    walker = _Walker(_ranges.analyse(function, no_wrap=True) if ranges is None else ranges)
    for arg, attrs in zip(function.args, function.arg_attrs, strict=True):
        walker.set_unknown(arg)
        divisible = attrs.get("divisible")
        if divisible and arg in walker.info:
            walker.info[arg] = walker.info[arg]._replace(divisibility=(power_of_two(divisible),) * rank(arg.type))
    walker.block(function.body)
    return walker.info


class _Walker:
    def __init__(self, ranges: dict[Value, _ranges.Range]) -> None:
        self.info: dict[Value, AxisInfo] = {}
        self.ranges = ranges

    def set_unknown(self, value: Value) -> None:
        if not isinstance(value.type, DescriptorType):
            self.info[value] = unknown(rank(value.type))

    def block(self, block: Block) -> None:
        for op in block.ops:
            self.op(op)

    def op(self, op: Op) -> None:
        kind, info = op.kind, self.info
        control = _CONTROL.get(kind)
        if control is not None:
            control(self, op)
            return
        for region in op.regions:
            for arg in region.args:
                self.set_unknown(arg)
            self.block(region)
        if not op.results:
            return
        rule = _RULES.get(kind)
        if rule is None or isinstance(op.results[0].type, DescriptorType):
            for result in op.results:
                self.set_unknown(result)
            return
        found = rule(self, op)
        for result in op.results:
            info[result] = found

    # Control flow

    def op_if(self, op: Op) -> None:
        for region in op.regions:
            self.block(region)
        first, second = (region.terminator.operands for region in op.regions)
        for result, a, b in zip(op.results, first, second, strict=True):
            if a in self.info:
                self.info[result] = merge(self.info[a], self.info[b], result)

    def op_for(self, op: Op) -> None:
        low, _, step, *inits = op.operands
        (body,) = op.regions
        divisor = min(self.info[low].divisibility[0], self.info[step].divisibility[0])
        self.info[body.args[0]] = AxisInfo((1,), (divisor,), (1,))
        self.fixpoint(body.args[1:], inits, lambda: self.block(body), lambda: body.terminator.operands)
        for result, arg in zip(op.results, body.args[1:], strict=True):
            if arg in self.info:
                self.info[result] = self.info[arg]

    def op_while(self, op: Op) -> None:
        before, after = op.regions
        passed = before.terminator.operands[1:]

        def run() -> None:
            self.block(before)
            for arg, value in zip(after.args, passed, strict=True):
                if value in self.info:
                    self.info[arg] = self.info[value]
            self.block(after)

        self.fixpoint(before.args, op.operands, run, lambda: after.terminator.operands)
        for result, value in zip(op.results, passed, strict=True):
            if value in self.info:
                self.info[result] = self.info[value]

    def fixpoint(
        self, args: Sequence[Value], inits: Sequence[Value], run: Callable[[], None], yielded: Callable[[], list[Value]]
    ) -> None:
        """Starts from the initial values and meets them with what the body yields until nothing changes.

        From the third round on a value that still changes is given up at once, so nests of loops stay cheap.
        """
        for arg, init in zip(args, inits, strict=True):
            if init in self.info:
                self.info[arg] = self.info[init]
        rounds = 0
        while True:
            run()
            rounds += 1
            changed = False
            for arg, value in zip(args, yielded(), strict=True):
                if arg not in self.info:
                    continue
                old = self.info[arg]
                new = merge(old, self.info[value], arg)
                if new != old:
                    self.info[arg] = new if rounds < 3 else unknown(rank(arg.type))
                    changed = True
            if not changed:
                return


_CONTROL: dict[str, Callable[[_Walker, Op], None]] = {
    "if": _Walker.op_if,
    "for": _Walker.op_for,
    "while": _Walker.op_while,
}


# Rules --------------------------------------------------------------------------------------------------------------


def _constant(w: _Walker, op: Op) -> AxisInfo:
    value, result = op.attrs["value"], op.result
    if isinstance(value, float):
        axes = rank(result.type)
        return AxisInfo((1,) * axes, (1,) * axes, sizes_of(result))
    return known(int(value), sizes_of(result))


def _arange(w: _Walker, op: Op) -> AxisInfo:
    start, end = op.attrs["start"], op.attrs["end"]
    return AxisInfo((end - start,), (power_of_two(start),), (1,))


def _splat(w: _Walker, op: Op) -> AxisInfo:
    source, shape = w.info[op.operands[0]], sizes_of(op.result)
    return AxisInfo((1,) * len(shape), source.divisibility * len(shape), shape, source.value)


def _broadcast(w: _Walker, op: Op) -> AxisInfo:
    source, before, after = w.info[op.operands[0]], sizes_of(op.operands[0]), sizes_of(op.result)
    constancy = tuple(c if n == m else m for c, n, m in zip(source.constancy, before, after, strict=True))
    return AxisInfo(source.contiguity, source.divisibility, constancy, source.value)


def _expand_dims(w: _Walker, op: Op) -> AxisInfo:
    source, axis = w.info[op.operands[0]], op.attrs["axis"]
    if not shape_of(op.operands[0].type):
        return source
    every = divisor_of_all(source, op.operands[0])
    parts = []
    for part, new in ((source.contiguity, 1), (source.divisibility, every), (source.constancy, 1)):
        parts.append((*part[:axis], new, *part[axis:]))
    return AxisInfo(parts[0], parts[1], parts[2], source.value)


def _permute(w: _Walker, op: Op) -> AxisInfo:
    source, order = w.info[op.operands[0]], op.attrs["order"]
    return AxisInfo(
        tuple(source.contiguity[i] for i in order),
        tuple(source.divisibility[i] for i in order),
        tuple(source.constancy[i] for i in order),
        source.value,
    )


def _flip(w: _Walker, op: Op) -> AxisInfo:
    source, axis, shape = w.info[op.operands[0]], op.attrs["axis"], sizes_of(op.result)
    contiguity, divisibility, constancy = (list(part) for part in source[:3])
    if source.constancy[axis] < shape[axis] and shape[axis] % source.constancy[axis]:
        constancy[axis] = 1  # the groups, counted from the other end, are not aligned
    contiguity[axis] = 1
    divisibility[axis] = divisor_of_all(source, op.operands[0])
    return AxisInfo(tuple(contiguity), tuple(divisibility), tuple(constancy), source.value)


def _reshape(w: _Walker, op: Op) -> AxisInfo:
    source, value = w.info[op.operands[0]], op.operands[0]
    before, after = sizes_of(value), sizes_of(op.result)
    if source.value is not None:
        return known(source.value, after)
    if op.attrs.get("reorder"):
        return unknown(len(after))
    every, step = divisor_of_all(source, value), step_of(value)
    contiguity, divisibility, constancy = [1] * len(after), [every] * len(after), [1] * len(after)
    for sources, targets in axis_groups(before, after):
        con, div, equal = merge_axes(source, before, sources, step)
        whole, stride = prod(before[i] for i in sources), 1
        for axis in reversed(targets):
            size = after[axis]
            total = stride * size
            if stride == 1:
                contiguity[axis] = size if con >= whole else gcd(con, size)
                inside = contiguity[axis] != con
                divisibility[axis] = min(div, power_of_two(contiguity[axis] * step)) if inside else div
            if equal >= whole or equal % total == 0:
                constancy[axis] = size
            elif equal % stride == 0:
                constancy[axis] = gcd(equal // stride, size)
            stride = total
    return AxisInfo(tuple(contiguity), tuple(divisibility), tuple(constancy))


def _join(w: _Walker, op: Op) -> AxisInfo:
    first, second = op.operands
    both = merge(w.info[first], w.info[second], first)
    every = min(divisor_of_all(w.info[v], v) for v in op.operands)
    if not shape_of(first.type):
        return AxisInfo((1,), (every,), (2 if both.value is not None else 1,), both.value)
    last = 2 if both.value is not None else 1
    return AxisInfo((*both.contiguity, 1), (*both.divisibility, every), (*both.constancy, last), both.value)


def _split(w: _Walker, op: Op) -> AxisInfo:
    source = w.info[op.operands[0]]
    if not shape_of(op.results[0].type):
        return AxisInfo((1,), (divisor_of_all(source, op.operands[0]),), (1,), source.value)
    return AxisInfo(source.contiguity[:-1], source.divisibility[:-1], source.constancy[:-1], source.value)


def _cat(w: _Walker, op: Op) -> AxisInfo:
    parts, axis, shape = [w.info[v] for v in op.operands], op.attrs["axis"], sizes_of(op.result)
    step, border = step_of(op.result), gcd(*(sizes_of(v)[axis] for v in op.operands[:-1]))
    contiguity, divisibility, constancy = [], [], []
    for d, n in enumerate(shape):
        if d == axis:
            c, k = gcd(border, *(x.contiguity[d] for x in parts)), gcd(border, *(x.constancy[d] for x in parts))
        else:
            c, k = n, n
            for x in parts:
                c, k = meet(c, x.contiguity[d], n), meet(k, x.constancy[d], n)
        sizes = [sizes_of(v)[d] for v in op.operands]
        contiguity.append(c)
        constancy.append(k)
        divisibility.append(min(divisor_at(x, d, c, m, step) for x, m in zip(parts, sizes, strict=True)))
    value = parts[0].value if all(x.value == parts[0].value for x in parts) else None
    return AxisInfo(tuple(contiguity), tuple(divisibility), shape if value is not None else tuple(constancy), value)


def _sum(w: _Walker, op: Op) -> AxisInfo:
    """add, sub, addptr: a contiguous operand stays so over groups in which the other one is constant."""
    first, second = op.operands
    a, b, shape = w.info[first], w.info[second], sizes_of(op.result)
    if op.kind == "addptr" and element_of(second.type).kind == "uint":
        b = _unwrapped(b, shape)
    step, scale = step_of(first), step_of(first)  # an offset counts pointees, a pointer bytes
    contiguity, divisibility, constancy = [], [], []
    for d, n in enumerate(shape):
        c = meet(a.contiguity[d], b.constancy[d], n)
        if op.kind != "sub":
            c = max(c, meet(b.contiguity[d], a.constancy[d], n))
        contiguity.append(c)
        right = min(divisor_at(b, d, c, n) * scale, MAX_DIVISIBILITY)
        divisibility.append(min(divisor_at(a, d, c, n, step), power_of_two(right)))
        constancy.append(meet(a.constancy[d], b.constancy[d], n))
    value = None
    if a.value is not None and b.value is not None and op.kind != "addptr":
        value = wrapped(a.value + b.value if op.kind == "add" else a.value - b.value, op.result)
    return AxisInfo(tuple(contiguity), tuple(divisibility), tuple(constancy), value)


def _elementwise(w: _Walker, op: Op) -> AxisInfo:
    """Nothing but constancy: equal operands give equal results."""
    shape = sizes_of(op.results[0])
    constancy = shape
    if op.kind in ("extern", "inline_asm") and not (op.attrs.get("pure", True) and op.attrs.get("pack", 1) == 1):
        return unknown(len(shape))
    for value in op.operands:
        constancy = tuple(map(meet, constancy, w.info[value].constancy, shape))
    ones = (1,) * len(shape)
    return AxisInfo(ones, ones, constancy)


def _with_divisor(info: AxisInfo, divisor: int) -> AxisInfo:
    return info._replace(divisibility=(power_of_two(divisor),) * len(info.constancy))


def _mul(w: _Walker, op: Op) -> AxisInfo:
    a, b = op.operands
    for one, other in ((a, b), (b, a)):
        if w.info[one].value == 1:
            return w.info[other]
    info = _with_divisor(_elementwise(w, op), divisor_of_all(w.info[a], a) * divisor_of_all(w.info[b], b))
    x, y = w.info[a].value, w.info[b].value
    return info if x is None or y is None else info._replace(value=wrapped(x * y, op.result))


def _neg(w: _Walker, op: Op) -> AxisInfo:
    return _with_divisor(_elementwise(w, op), divisor_of_all(w.info[op.operands[0]], op.operands[0]))


def _aligned_groups(
    w: _Walker, moving: Value, fixed: AxisInfo, divisor: int, shape: tuple[int, ...]
) -> tuple[int, ...]:
    """Sizes g of aligned groups over which ``moving`` is a multiple of g plus 0, 1, ..., g - 1, ``fixed`` is constant
    and g divides
    ``divisor`` (or the whole axis fits in such a group): there x / fixed and x < fixed are constant and x % fixed
    goes up by 1."""
    info, groups = w.info[moving], []
    for d, n in enumerate(shape):
        c = meet(info.contiguity[d], fixed.constancy[d], n)
        groups.append(meet(c, min(divisor_at(info, d, c, n), divisor), n))
    return tuple(groups)


def _floors(w: _Walker, op: Op) -> bool:
    """No dividend is negative, so truncation does not turn round inside a group; the divisor's sign does not matter.
    By 0, which counts as 1, nothing is grouped; one that is 0 only at run time breaks the promise to be a multiple."""
    return w.ranges.get(op.operands[0], (-1, 0))[0] >= 0 and w.info[op.operands[1]].value != 0


def _div(w: _Walker, op: Op) -> AxisInfo:
    if not element_of(op.result.type).is_integer:
        return _elementwise(w, op)
    value, divider = w.info[op.operands[0]], w.info[op.operands[1]]
    if divider.value in (0, 1):
        return value
    info = _elementwise(w, op)
    if divider.value is not None and divider.value == power_of_two(divider.value):
        info = _with_divisor(info, max(divisor_of_all(value, op.operands[0]) // divider.value, 1))
    if _floors(w, op):
        groups = _aligned_groups(
            w, op.operands[0], divider, divisor_of_all(divider, op.operands[1]), sizes_of(op.result)
        )
        info = info._replace(constancy=tuple(map(max, info.constancy, groups)))
    return info


def _rem(w: _Walker, op: Op) -> AxisInfo:
    if not element_of(op.result.type).is_integer:
        return _elementwise(w, op)
    (a, b), shape = op.operands, sizes_of(op.result)
    value, divider = w.info[a], w.info[b]
    high = w.ranges.get(a, (0, 1 << 64))[1]
    floors = _floors(w, op)
    if floors and high < w.ranges[b][0]:
        return value._replace(value=None)
    return _remainder(w, op, divider, divisor_of_all(divider, b), floors, shape)


def _remainder(w: _Walker, op: Op, modulus: AxisInfo, divisor: int, floors: bool, shape: tuple[int, ...]) -> AxisInfo:
    value, info = w.info[op.operands[0]], _elementwise(w, op)
    groups = _aligned_groups(w, op.operands[0], modulus, divisor, shape) if floors else (1,) * len(shape)
    divisibility = tuple(
        min(divisor_at(value, d, c, n), divisor) for d, (c, n) in enumerate(zip(groups, shape, strict=True))
    )
    return AxisInfo(groups, divisibility, info.constancy)


def _shl(w: _Walker, op: Op) -> AxisInfo:
    (a, b), info = op.operands, _elementwise(w, op)
    low = max(w.ranges.get(b, (0, 0))[0], 0)
    return _with_divisor(info, divisor_of_all(w.info[a], a) << min(low, 30))


def _shr(w: _Walker, op: Op) -> AxisInfo:
    (a, b), info = op.operands, _elementwise(w, op)
    amount = w.info[b].value
    if amount is None or not 0 <= amount <= 30:
        return info
    info = _with_divisor(info, max(divisor_of_all(w.info[a], a) >> amount, 1))
    groups = _aligned_groups(w, a, w.info[b], 1 << amount, sizes_of(op.result))
    return info._replace(constancy=tuple(map(max, info.constancy, groups)))


def _bits(w: _Walker, op: Op) -> AxisInfo:
    """and, or, xor. ``x & (2^k - 1)`` is a remainder, ``x & -2^k`` rounds down to a multiple."""
    info = _elementwise(w, op)
    divisors = [divisor_of_all(w.info[v], v) for v in op.operands]
    if op.kind != "and":
        return _with_divisor(info, min(divisors))
    masked, mask = op, w.info[op.operands[1]]
    if mask.value is None and w.info[op.operands[0]].value is not None:
        masked = Op("and", op.operands[::-1], [op.result.type])
        mask = w.info[masked.operands[1]]
    if mask.value is None or element_of(op.result.type).is_bool:
        return _with_divisor(info, max(divisors))
    low_bits = mask.value + 1
    if low_bits > 1 and low_bits == power_of_two(low_bits):
        return _remainder(w, masked, mask, low_bits, True, sizes_of(op.result))
    info = _with_divisor(info, max(divisors))
    if mask.value < 0:
        groups = _aligned_groups(w, masked.operands[0], mask, power_of_two(mask.value), sizes_of(op.result))
        if mask.value == -power_of_two(mask.value):
            info = info._replace(constancy=tuple(map(max, info.constancy, groups)))
    return info


def _extremum(w: _Walker, op: Op) -> AxisInfo:
    a, b = op.operands
    if a in w.ranges:
        smaller = op.kind == "min"
        if w.ranges[a][1] <= w.ranges[b][0]:
            return w.info[a if smaller else b]._replace(value=None)
        if w.ranges[b][1] <= w.ranges[a][0]:
            return w.info[b if smaller else a]._replace(value=None)
    info = _elementwise(w, op)
    if not element_of(op.result.type).is_integer:
        return info
    return _with_divisor(info, min(divisor_of_all(w.info[v], v) for v in op.operands))


def _select(w: _Walker, op: Op) -> AxisInfo:
    condition, yes, no = op.operands
    both, shape = merge(w.info[yes], w.info[no], op.result), sizes_of(op.result)
    if both.value is not None:
        return both
    choice = w.info[condition].constancy if shape_of(condition.type) else shape
    step = step_of(op.result)
    contiguity = tuple(map(meet, both.contiguity, choice, shape))
    divisibility = tuple(divisor_at(both, d, c, shape[d], step) for d, c in enumerate(contiguity))
    return AxisInfo(contiguity, divisibility, tuple(map(meet, both.constancy, choice, shape)))


def _cmp(w: _Walker, op: Op) -> AxisInfo:
    """x < m is constant over groups of g when x is contiguous and starts at, and m is, a multiple of g."""
    info = _elementwise(w, op)
    (a, b), pred, shape = op.operands, op.attrs["pred"], sizes_of(op.result)
    if pred in ("eq", "ne") or a not in w.ranges:
        return info
    moving, fixed = (a, b) if pred in ("lt", "ge") else (b, a)
    groups = _aligned_groups(w, moving, w.info[fixed], divisor_of_all(w.info[fixed], fixed), shape)
    return info._replace(constancy=tuple(map(max, info.constancy, groups)))


def _cast(w: _Walker, op: Op) -> AxisInfo:
    value = op.operands[0]
    source, target = element_of(value.type), element_of(op.result.type)
    info, shape = w.info[value], sizes_of(op.result)
    assert isinstance(source, ScalarType) and isinstance(target, ScalarType)
    if source == target:
        return info
    if not source.is_integer or not target.is_integer or target.is_bool:
        return _elementwise(w, op)
    number = None if info.value is None else wrapped(info.value, op.result)
    if source.kind == "uint" and target.bits > source.bits:
        info = _unwrapped(info, shape)
    return info._replace(value=number)


def _unwrapped(info: AxisInfo, shape: tuple[int, ...]) -> AxisInfo:
    """An unsigned group may wrap to 0 inside; sub-groups whose size divides their first value cannot."""
    if max(info.contiguity) == 1:
        return info
    groups = tuple(meet(c, min(p, c), n) for c, p, n in zip(info.contiguity, info.divisibility, shape, strict=True))
    starts = tuple(divisor_at(info, d, c, n) for d, (c, n) in enumerate(zip(groups, shape, strict=True)))
    return info._replace(contiguity=groups, divisibility=starts)


def _bitcast(w: _Walker, op: Op) -> AxisInfo:
    value = op.operands[0]
    source, target = element_of(value.type), element_of(op.result.type)
    if source.is_float or target.is_float:
        return _elementwise(w, op)
    info = w.info[value]
    if step_of(value) == step_of(op.result):
        return info._replace(value=None if info.value is None else wrapped(info.value, op.result))
    return _with_divisor(_elementwise(w, op), divisor_of_all(info, value))


def _load(w: _Walker, op: Op) -> AxisInfo:
    """Equal addresses under equal masks give equal values."""
    info = _elementwise(w, op)
    return unknown(len(info.constancy)) if op.attrs.get("volatile") else info


def _hint(w: _Walker, op: Op) -> AxisInfo:
    source, shape, step = w.info[op.operands[0]], sizes_of(op.result), step_of(op.result)

    def promised(name: str, axis: int) -> int:
        numbers = op.attrs.get(name, ())
        return max(numbers[axis], 1) if axis < len(numbers) else 1

    contiguity, divisibility, constancy = [], [], []
    for d, n in enumerate(shape):
        c = max(source.contiguity[d], min(promised("contiguous", d), n))
        contiguity.append(c)
        divisibility.append(max(divisor_at(source, d, c, n, step), power_of_two(promised("divisible", d))))
        constancy.append(max(source.constancy[d], min(promised("constant", d), n)))
    return AxisInfo(tuple(contiguity), tuple(divisibility), tuple(constancy), source.value)


_PLAIN = (
    *("mulhi", "fma", "exp", "exp2", "log", "log2", "sin", "cos", "sqrt", "sqrt_rn", "rsqrt", "erf", "floor", "ceil"),
    *("abs", "libm", "extern", "inline_asm"),
)
_RULES: dict[str, Callable[[_Walker, Op], AxisInfo]] = {
    "constant": _constant,
    "arange": _arange,
    "splat": _splat,
    "broadcast": _broadcast,
    "expand_dims": _expand_dims,
    "permute": _permute,
    "flip": _flip,
    "reshape": _reshape,
    "join": _join,
    "split": _split,
    "cat": _cat,
    "add": _sum,
    "sub": _sum,
    "addptr": _sum,
    "mul": _mul,
    "neg": _neg,
    "div": _div,
    "rem": _rem,
    "shl": _shl,
    "shr": _shr,
    "and": _bits,
    "or": _bits,
    "xor": _bits,
    "min": _extremum,
    "max": _extremum,
    "select": _select,
    "cmp": _cmp,
    "cast": _cast,
    "bitcast": _bitcast,
    "load": _load,
    "hint": _hint,
    **dict.fromkeys(_PLAIN, _elementwise),
}

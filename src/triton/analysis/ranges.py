"""Integer ranges: for every integer and boolean value, the interval that holds all its elements.

A range is a pair ``(low, high)``, both ends included; booleans are 0 and 1. Sources of knowledge: constants,
``arange``, program indices (a grid has at most 2^31 - 1 programs along an axis), loop bounds, ``assume`` and the
condition of an ``if`` inside its branches. A fact that holds in a nested region only is forgotten at the region's
end.

Integer ops wrap, so a sum that may leave its type has the full range of the type. With ``no_wrap`` signed sums,
differences and products are taken to stay inside their type, and divisors of unknown sign to be positive: right for the
arithmetic of addresses, where a wrapped index lies outside every allocation and divisors are sizes, wrong for
arithmetic on data. Loops reach a fixpoint by widening: a bound that
moves goes to the type's end.
"""

from __future__ import annotations

from collections.abc import Callable

from ..ir.core import Block, Function, Op, Value
from ..ir.numbers import limits
from ..ir.types import SCALARS, ScalarType, TensorType, element_of

Range = tuple[int, int]
_LAST_PROGRAM = (1 << 31) - 2


def analyse(function: Function, no_wrap: bool = False) -> dict[Value, Range]:
    """The range of every integer or boolean value in ``function``. One walk, loops at most three times."""
    walker = _Ranges(no_wrap)
    for arg in function.args:
        walker.forget(arg)
    for op in function.body.ops:
        walker.op(op)
    return walker.ranges


_LIMITS: dict[str, Range] = {name: limits(type) for name, type in SCALARS.items() if type.is_integer}


def type_range(type: ScalarType) -> Range:
    """All values of an integer type."""
    return _LIMITS[type.name]


def decide(pred: str, a: Range, b: Range) -> bool | None:
    """What the comparison gives for all members of two ranges; None when it depends."""
    if pred == "lt":
        return True if a[1] < b[0] else False if a[0] >= b[1] else None
    if pred == "le":
        return True if a[1] <= b[0] else False if a[0] > b[1] else None
    if pred == "gt":
        return decide("lt", b, a)
    if pred == "ge":
        return decide("le", b, a)
    if a[1] < b[0] or b[1] < a[0]:
        return pred == "ne"
    if a == b and a[0] == a[1]:
        return pred == "eq"
    return None


_NEGATED = {"eq": "ne", "ne": "eq", "lt": "ge", "ge": "lt", "gt": "le", "le": "gt"}
_MIRRORED = {"eq": "eq", "ne": "ne", "lt": "gt", "gt": "lt", "le": "ge", "ge": "le"}


class _Ranges:
    def __init__(self, no_wrap: bool) -> None:
        self.ranges: dict[Value, Range] = {}
        self.no_wrap = no_wrap
        self.undo: list[tuple[Value, Range]] = []

    def forget(self, value: Value) -> None:
        element = element_of(value.type)
        if isinstance(element, ScalarType) and element.is_integer:
            self.ranges[value] = type_range(element)

    def scoped(self, block: Block, condition: Op | None = None, holds: bool = True) -> None:
        """Walks a region; what ``assume`` or the condition adds is undone at its end."""
        mark = len(self.undo)
        if condition is not None:
            self.learn(condition, holds)
        for op in block.ops:
            self.op(op)
        while len(self.undo) > mark:
            value, known = self.undo.pop()
            self.ranges[value] = known

    def op(self, op: Op) -> None:
        kind, ranges = op.kind, self.ranges
        special = _CONTROL.get(kind)
        if special is not None:
            special(self, op)
            return
        for region in op.regions:
            for arg in region.args:
                self.forget(arg)
            self.scoped(region)
        for result in op.results:
            type = result.type
            element = type.element if isinstance(type, TensorType) else type
            if not isinstance(element, ScalarType) or element.kind == "float":
                continue
            ends = ranges[result] = _LIMITS[element.name]
            rule = _RULES.get(kind)
            found = rule(op, ranges) if rule is not None else None
            if found is None:
                if kind != "div" or not self.no_wrap:
                    continue
                found = _index_div(op, ranges)
            if found is not None:
                ranges[result] = self.fit(found, ends, element.kind == "int" and kind in _WRAPPING)

    def fit(self, found: Range, limits: Range, may_saturate: bool) -> Range:
        low, high = found
        if limits[0] <= low and high <= limits[1]:
            return found
        if self.no_wrap and may_saturate:
            low, high = max(low, limits[0]), min(high, limits[1])
            if low <= high:
                return low, high
        return limits

    # Facts from conditions

    def learn(self, condition: Op | None, holds: bool) -> None:
        """Narrows the operands of a comparison, or of both sides of an ``and``, that is known to hold."""
        pending = [condition]
        while pending:
            op = pending.pop()
            if op is None:
                continue
            if op.kind == "and" and holds and op.result in self.ranges:
                pending += [v.op for v in op.operands]
            elif op.kind == "cmp" and op.operands[0] in self.ranges:
                pred = op.attrs["pred"] if holds else _NEGATED[op.attrs["pred"]]
                a, b = op.operands
                self.narrow(a, pred, self.ranges[b])
                self.narrow(b, _MIRRORED[pred], self.ranges[a])

    def narrow(self, value: Value, pred: str, other: Range) -> None:
        low, high = known = self.ranges[value]
        if pred in ("lt", "le"):
            high = min(high, other[1] - (pred == "lt"))
        elif pred in ("gt", "ge"):
            low = max(low, other[0] + (pred == "gt"))
        elif pred == "eq":
            low, high = max(low, other[0]), min(high, other[1])
        if low <= high and (low, high) != known:
            self.undo.append((value, known))
            self.ranges[value] = low, high

    # Control flow

    def op_assume(self, op: Op) -> None:
        self.learn(op.operands[0].op, True)

    def op_if(self, op: Op) -> None:
        condition = op.operands[0].op
        yields: list[list[Range | None]] = []
        for region, holds in zip(op.regions, (True, False), strict=True):
            self.scoped(region, condition, holds)
            yields.append([self.ranges.get(v) for v in region.terminator.operands])
        for result, a, b in zip(op.results, *yields, strict=True):
            if a is not None and b is not None:
                self.ranges[result] = _union(a, b)

    def op_for(self, op: Op) -> None:
        low, high, step, *inits = op.operands
        (body,) = op.regions
        counter, *carried = body.args
        first, last, stride = self.ranges[low], self.ranges[high], self.ranges[step]
        if stride[0] > 0:
            self.ranges[counter] = first[0], max(first[0], last[1] - 1)
        elif stride[1] < 0:
            self.ranges[counter] = min(first[1], last[0] + 1), first[1]
        else:
            self.forget(counter)
        self.fixpoint(carried, inits, lambda: self.scoped(body), lambda: body.terminator.operands)
        for result, arg in zip(op.results, carried, strict=True):
            if arg in self.ranges:
                self.ranges[result] = self.ranges[arg]

    def op_while(self, op: Op) -> None:
        before, after = op.regions

        def run() -> None:
            self.scoped(before)
            for arg, value in zip(after.args, before.terminator.operands[1:], strict=True):
                if arg_range := self.ranges.get(value):
                    self.ranges[arg] = arg_range
            self.scoped(after, before.terminator.operands[0].op, True)

        self.fixpoint(before.args, op.operands, run, lambda: after.terminator.operands)
        for result, value in zip(op.results, before.terminator.operands[1:], strict=True):
            if value in self.ranges:
                self.ranges[result] = self.ranges[value]

    def fixpoint(
        self, args: list[Value], inits: list[Value], run: Callable[[], None], yielded: Callable[[], list[Value]]
    ) -> None:
        for arg, init in zip(args, inits, strict=True):
            if init in self.ranges:
                self.ranges[arg] = self.ranges[init]
        while True:  # every further round moves at least one bound to its type's end, so this stops
            run()
            stable = True
            for arg, value in zip(args, yielded(), strict=True):
                if arg not in self.ranges:
                    continue
                (low, high), (new_low, new_high) = self.ranges[arg], self.ranges[value]
                if new_low < low or new_high > high:
                    element = element_of(arg.type)
                    assert isinstance(element, ScalarType)
                    ends = type_range(element)
                    self.ranges[arg] = ends[0] if new_low < low else low, ends[1] if new_high > high else high
                    stable = False
            if stable:
                return


_CONTROL: dict[str, Callable[[_Ranges, Op], None]] = {
    "assume": _Ranges.op_assume,
    "if": _Ranges.op_if,
    "for": _Ranges.op_for,
    "while": _Ranges.op_while,
}


# Rules: operand ranges -> the mathematical range of the result, before it is fitted into the type --------------------

_Known = dict[Value, Range]


def _union(a: Range, b: Range) -> Range:
    return min(a[0], b[0]), max(a[1], b[1])


def _corners(op: Op, known: _Known, f: Callable[[int, int], int]) -> Range:
    (a, b), (c, d) = known[op.operands[0]], known[op.operands[1]]
    values = f(a, c), f(a, d), f(b, c), f(b, d)
    return min(values), max(values)


def _constant(op: Op, known: _Known) -> Range:
    value = int(op.attrs["value"])
    return value, value


def _add(op: Op, known: _Known) -> Range:
    a, b = known[op.operands[0]], known[op.operands[1]]
    return a[0] + b[0], a[1] + b[1]


def _sub(op: Op, known: _Known) -> Range:
    a, b = known[op.operands[0]], known[op.operands[1]]
    return a[0] - b[1], a[1] - b[0]


def _div(op: Op, known: _Known) -> Range | None:
    low, _ = known[op.operands[1]]
    return _corners(op, known, lambda x, y: abs(x) // y * (1 if x >= 0 else -1)) if low > 0 else None


def _index_div(op: Op, known: _Known) -> Range | None:
    """In index arithmetic a divisor that may be of either sign is a size, so at least 1."""
    (low, high), (_, largest) = known[op.operands[0]], known[op.operands[1]]
    return (min(low, 0), max(high, 0)) if largest > 0 else None


def _rem(op: Op, known: _Known) -> Range:
    """The sign is the dividend's and the magnitude below the divisor's, whose sign does not matter; x rem 0 is 0."""
    (low, high), (a, b) = known[op.operands[0]], known[op.operands[1]]
    most = max(abs(a), abs(b), 1) - 1
    return max(low, -most) if low < 0 else 0, min(high, most) if high > 0 else 0


def _and(op: Op, known: _Known) -> Range | None:
    a, b = known[op.operands[0]], known[op.operands[1]]
    if a[0] >= 0 and b[0] >= 0:
        return 0, min(a[1], b[1])
    if a[0] >= 0 or b[0] >= 0:
        return 0, a[1] if a[0] >= 0 else b[1]
    return None


def _or(op: Op, known: _Known) -> Range | None:
    a, b = known[op.operands[0]], known[op.operands[1]]
    if a[0] < 0 or b[0] < 0:
        return None
    low = max(a[0], b[0]) if op.kind == "or" else 0
    return low, (1 << max(a[1], b[1]).bit_length()) - 1


def _shl(op: Op, known: _Known) -> Range | None:
    (a, b), (low, high) = known[op.operands[0]], known[op.operands[1]]
    return (min(a << low, a << high), max(b << low, b << high)) if low >= 0 and high < 64 else None


def _shr(op: Op, known: _Known) -> Range | None:
    low, high = known[op.operands[1]]
    return _corners(op, known, lambda x, y: x >> y) if low >= 0 and high < 64 else None


def _cmp(op: Op, known: _Known) -> Range | None:
    a, b = (known.get(v) for v in op.operands)
    answer = decide(op.attrs["pred"], a, b) if a is not None and b is not None else None
    return None if answer is None else (int(answer), int(answer))


def _cast(op: Op, known: _Known) -> Range | None:
    source = known.get(op.operands[0])
    if source is None:
        return None
    if op.results and element_of(op.result.type).is_bool:
        return (1, 1) if source[0] > 0 or source[1] < 0 else (0, 0) if source == (0, 0) else None
    return source


def _abs(op: Op, known: _Known) -> Range:
    low, high = known[op.operands[0]]
    return 0 if low <= 0 <= high else min(abs(low), abs(high)), max(abs(low), abs(high))


def _neg(op: Op, known: _Known) -> Range:
    low, high = known[op.operands[0]]
    return -high, -low


def _select(op: Op, known: _Known) -> Range:
    return _union(known[op.operands[1]], known[op.operands[2]])


def _histogram(op: Op, known: _Known) -> Range:
    type = op.operands[0].type
    return 0, getattr(type, "numel", 1)


_MOVES = ("splat", "broadcast", "expand_dims", "reshape", "permute", "flip", "split", "sort", "gather", "hint")
_WRAPPING = frozenset({"add", "sub", "mul", "neg", "shl"})
_RULES: dict[str, Callable[[Op, _Known], Range | None]] = {
    "constant": _constant,
    "arange": lambda op, known: (op.attrs["start"], op.attrs["end"] - 1),
    "program_id": lambda op, known: (0, _LAST_PROGRAM),
    "num_programs": lambda op, known: (1, _LAST_PROGRAM + 1),
    "add": _add,
    "sub": _sub,
    "mul": lambda op, known: _corners(op, known, lambda x, y: x * y),
    "neg": _neg,
    "abs": _abs,
    "div": _div,
    "rem": _rem,
    "and": _and,
    "or": _or,
    "xor": _or,
    "shl": _shl,
    "shr": _shr,
    "min": lambda op, known: _corners(op, known, min),
    "max": lambda op, known: _corners(op, known, max),
    "cmp": _cmp,
    "cast": _cast,
    "select": _select,
    "histogram": _histogram,
    **dict.fromkeys(_MOVES, lambda op, known: known[op.operands[0]]),
    **dict.fromkeys(("join", "cat"), lambda op, known: _union(known[op.operands[0]], known[op.operands[1]])),
}

"""Loop nests over tiles, and the choice of the axis that becomes vectors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from ...ir.core import Op, Value
from ...ir.types import ElementType, PointerType, TensorType, shape_of
from . import bounds
from .evaluate import Evaluator
from .graph import reshaped_axis
from .index import ZERO, Dim, Index, fixed, lane_mask

MAX_LANES = 64


@dataclass(slots=True)
class Survey:
    """What a root reads and computes.

    ``accesses``  for each memory access its step along each axis of the root.
    ``bits``      the width of the widest element, ``heavy`` whether there are long computations; ``mask_bits`` the
                  width of the widest element that only masks are made of.
    ``masks``     the masks of the accesses, with the root's axes that theirs follow.
    ``stop``      the mask without which the root does nothing.
    """

    accesses: list[tuple[int | None, ...]]
    bits: int
    heavy: bool
    masks: list[tuple[Value, bounds.Axes]]
    stop: tuple[Value, bounds.Axes] | None = None
    mask_bits: int = 8


_HEAVY = frozenset({"exp", "exp2", "log", "log2", "sin", "cos", "erf", "libm", "rem"})
_INEXACT = frozenset({"reshape", "flip", "split", "gather"})


def survey(e: Evaluator, values: Sequence[Value], shape: tuple[int, ...], pointers: Iterable[Value] = ()) -> Survey:
    """Walks the lazy expressions below ``values``, all of the root's ``shape``; ``pointers`` are stored through."""
    graph, found = e.graph, Survey([], 8, False, [])
    identity = tuple(range(len(shape)))
    work: list[tuple[Value, bounds.Axes, bool]] = []
    masks: list[tuple[Value, bounds.Axes, bool]] = []  # looked at last: what data needs too counts as data
    seen: set[tuple[Value, bounds.Axes]] = set()

    def steps(value: Value, axes: bounds.Axes) -> tuple[int | None, ...]:
        result: list[int | None] = [0] * len(shape)
        for axis, root_axis in enumerate(axes):
            if root_axis is not None:
                stride = graph.stride(value, axis)
                result[root_axis] = None if stride is None else stride.step
        return tuple(result)

    for pointer in pointers:
        found.accesses.append(steps(pointer, identity))
    work += [(v, identity, True) for v in values if isinstance(v.type, TensorType)]
    while work or masks:
        in_mask = not work
        value, axes, exact = (work or masks).pop()
        if (value, axes) in seen or not isinstance(value.type, TensorType):
            continue
        seen.add((value, axes))
        _widen(found, value.type.element, in_mask)
        buffer = e.buffers.get(value)
        if buffer is None and value in e.plan.held and value not in values:
            continue  # not written yet
        if buffer is not None:
            result: list[int | None] = [0] * len(shape)
            for axis, root_axis in enumerate(axes):
                if root_axis is not None:
                    result[root_axis] = buffer.strides[axis]
            found.accesses.append(tuple(result))
            continue
        record = graph.inductions.get(value)
        if record is not None:
            (masks if in_mask else work).append((record.init, axes, exact))
            continue
        op = value.op
        if op is None:
            continue
        if op.kind in _HEAVY:
            found.heavy = True
        if op.kind == "load":
            found.accesses.append(steps(op.operands[0], axes))
            masks += [(v, axes, exact) for v in op.operands[1:2]]
            (masks if in_mask else work).extend((v, axes, exact) for v in op.operands[2:])
            if exact and len(op.operands) > 1:
                found.masks.append((op.operands[1], axes))
        elif op.kind == "desc_load":
            rank = len(axes)
            found.accesses.append(tuple(1 if a == rank - 1 else None for a in _inverse(axes, len(shape))))
        else:
            exact = exact and op.kind not in _INEXACT
            (masks if in_mask else work).extend((v, a, exact) for v, a in _operands(op, value, axes))
    return found


def _inverse(axes: tuple[int | None, ...], rank: int) -> list[int | None]:
    result: list[int | None] = [None] * rank
    for axis, root_axis in enumerate(axes):
        if root_axis is not None:
            result[root_axis] = axis
    return result


def _widen(found: Survey, element: ElementType, in_mask: bool) -> None:
    if isinstance(element, PointerType) or (not element.is_float and element.bits >= 64):
        return
    bits = max(32, element.bits) if element.is_float else element.bits
    if in_mask:
        found.mask_bits = max(found.mask_bits, bits)
    else:
        found.bits = max(found.bits, bits)


def _operands(op: Op, value: Value, axes: tuple[int | None, ...]) -> list[tuple[Value, tuple[int | None, ...]]]:
    """The operands of a lazy op with the root axes that their own axes follow."""
    kind = op.kind
    if not op.operands:
        return []
    source = op.operands[0]
    if kind == "broadcast":
        return [(source, tuple(None if n == 1 else a for n, a in zip(shape_of(source.type), axes, strict=True)))]
    if kind == "expand_dims":
        at = op.attrs["axis"]
        return [(source, axes[:at] + axes[at + 1 :])]
    if kind == "permute":
        moved: list[int | None] = [None] * len(axes)
        for i, axis in enumerate(op.attrs["order"]):
            moved[axis] = axes[i]
        return [(source, tuple(moved))]
    if kind == "split":
        return [(source, (*axes, None))]
    if kind == "reshape":
        shape, old = shape_of(value.type), shape_of(source.type)
        mapped_axes: list[int | None] = [None] * len(old)
        for axis, root_axis in enumerate(axes):
            mapped = reshaped_axis(shape, old, axis) if root_axis is not None and shape[axis] > 1 else None
            if mapped is not None and mapped_axes[mapped[0]] is None:
                mapped_axes[mapped[0]] = root_axis
        return [(source, tuple(mapped_axes))]
    if kind == "gather":
        return [(op.operands[1], axes)]
    return [(v, axes) for v in op.operands]


@dataclass(slots=True)
class Shape:
    """How a nest runs: the vector axis (None: no vectors) and the number of lanes."""

    axis: int | None
    lanes: int


def choose(
    e: Evaluator, shape: tuple[int, ...], found: Survey, allowed: Sequence[int] | None = None, wide: int = 2
) -> Shape:
    """The axis with the cheapest accesses, and its vector length: ``wide`` registers of the widest element."""
    best: tuple[float, int] | None = None
    widest = max(found.bits, found.mask_bits)
    limit = max(1, min(MAX_LANES, e.machine.vector_bits * (1 if found.heavy and widest > 32 else wide) // widest))
    for axis in range(len(shape)) if allowed is None else allowed:
        n = shape[axis]
        if n < 2:
            continue
        cost = 1.0
        for access in found.accesses:
            step = access[axis]
            cost += (
                1
                if step == 1
                else 0
                if step == 0
                else 2
                if step == -1
                else 3
                if step is not None and 0 < step <= 4
                else 12
            )
        lanes = lanes_for(n, limit)
        score = cost * (-(-n // lanes) * min(lanes, limit) / n) * (limit / lanes) ** 0.7, -axis
        if best is None or score < best:
            best = score
    if best is None:
        return Shape(None, 0)
    axis = -best[1]
    if found.bits < widest:  # where most vectors go without masks, only data counts
        lanes = lanes_for(shape[axis], min(MAX_LANES, e.machine.vector_bits * wide // found.bits))
        if find_bounds(e, found, shape[axis], axis, lanes) is not None:
            return Shape(axis, lanes)
    return Shape(axis, lanes_for(shape[axis], limit))


def access_cost(found: Survey, axis: int) -> float:
    """The cost of a vector of each access with the lanes along ``axis``."""
    cost = 1.0
    for access in found.accesses:
        step = access[axis]
        cost += (
            1 if step == 1 else 0 if step == 0 else 2 if step == -1 else 3 if step is not None and 0 < step <= 4 else 12
        )
    return cost


def preferred_axis(found: Survey, shape: tuple[int, ...]) -> int | None:
    """The axis along which the accesses run, if there is one and it is long enough for vectors."""
    costs = {axis: access_cost(found, axis) for axis, n in enumerate(shape) if n >= 8}
    if not costs or not found.accesses:
        return None
    best = min(costs, key=lambda axis: (costs[axis], -axis))
    return best if max(costs.values()) > costs[best] or len(costs) == 1 else None


def lanes_for(n: int, limit: int) -> int:
    """A power of two, at most ``limit``: one that divides n if it is not much shorter, else enough to cover n."""
    lanes = 1
    while lanes < limit and lanes < n:
        lanes *= 2
    if lanes >= 8 and n % lanes and n % (lanes // 2) == 0:
        lanes //= 2
    return lanes


# Loops ----------------------------------------------------------------------------------------------------------------


def count(
    e: Evaluator,
    n: int,
    body: Callable[[Dim, list[str]], Sequence[str]],
    carried: Sequence[tuple[str, str]] = (),
    step: int = 1,
) -> list[str]:
    """A loop over 0, step, ... below n (at least one trip) with carried (type, initial operand) values."""
    if n <= step:
        return list(body(ZERO, [init for _, init in carried]))
    e.open()
    level = e.depth

    def inner(counter: str, values: list[str]) -> Sequence[str]:
        return body(Dim(counter, level, None, 0, step), values)

    results = e.w.loop("0", str(n), str(step), inner, carried, at_least_once=True)
    e.close()
    return results


def count_between(
    e: Evaluator,
    low: str,
    high: str,
    step: int,
    body: Callable[[Dim, list[str]], Sequence[str]],
    carried: Sequence[tuple[str, str]] = (),
) -> list[str]:
    """A loop over low, low + step, ... below high, perhaps without a trip; ``low`` is a multiple of ``step``."""
    e.open()
    level = e.depth

    def inner(counter: str, values: list[str]) -> Sequence[str]:
        return body(Dim(counter, level, None, 0, step), values)

    results = e.w.loop(low, high, str(step), inner, carried)
    e.close()
    return results


def find_bounds(e: Evaluator, found: Survey, n: int, axis: int, lanes: int) -> bounds.Bounds | None:
    """The bounds along a vector axis of size n, where splitting its loop pays."""
    if n % lanes or n < 2 * lanes or not (found.masks or found.stop):
        return None
    return bounds.find(e, found.masks, axis, found.stop)


def vectors(
    e: Evaluator,
    n: int,
    lanes: int,
    body: Callable[[Dim], None],
    limit: bounds.Bounds | None = None,
    outer_index: Sequence[Dim] = (),
    streams: str = "",
) -> None:
    """Runs ``body`` for whole vectors of an axis of size n, then for the rest with ``e.active`` set.

    ``streams``: an i1; where it holds, whole vectors without masks are stored past the caches.
    """
    whole = n // lanes * lanes

    def full(d: Dim, _: list[str]) -> Sequence[str]:
        body(d._replace(step=1))
        return ()

    outer = e.lanes, e.active, e.count
    e.lanes, e.active, e.count = lanes, None, lanes
    mark = e.mark()
    if limit is not None:
        assert whole == n
        split, end = limit.split(outer_index, n, lanes)

        def unmasked(d: Dim, _: list[str]) -> Sequence[str]:
            limit.assume(outer_index, d._replace(step=1))
            body(d._replace(step=1))
            return ()

        count_between(e, _streamed(e, streams, split, lanes, unmasked), split, lanes, unmasked)
        count_between(e, split, end, lanes, full)
    elif whole and streams:
        count_between(e, _streamed(e, streams, str(whole), lanes, full), str(whole), lanes, full)
    elif whole:
        count(e, whole, full, step=lanes)
    if whole < n:
        e.forget(mark)
        e.active, e.count = lane_mask(lanes, n - whole), n - whole
        body(fixed(whole, 1))
    e.forget(mark)
    e.lanes, e.active, e.count = outer


def _streamed(e: Evaluator, streams: str, high: str, step: int, body: Callable[[Dim, list[str]], Sequence[str]]) -> str:
    """Runs the loop below ``high`` with stores past the caches, if ``streams`` says so; where to go on without."""
    if not streams:
        return "0"
    end = e.w.emit(f"select i1 {streams}, i64 {high}, i64 0")
    e.streaming = True
    count_between(e, "0", end, step, body)
    e.streaming = False
    return end


def nest(
    e: Evaluator,
    shape: tuple[int, ...],
    chosen: Shape,
    body: Callable[[Index], None],
    found: Survey | None = None,
    streams: Callable[[Index], str] | None = None,
) -> None:
    """Runs ``body`` for every index of ``shape``, the vector axis innermost. With ``found``, masks become loop
    bounds. ``streams`` says for the start of each run of vectors whether stores should go past the caches."""
    index: list[Dim] = [ZERO] * len(shape)
    limit: bounds.Bounds | None = None
    if found is not None and chosen.axis is not None:
        limit = find_bounds(e, found, shape[chosen.axis], chosen.axis, chosen.lanes)

    def run(axes: list[int]) -> None:
        if axes:
            axis = axes[0]

            def inner(d: Dim, _: list[str]) -> Sequence[str]:
                index[axis] = d
                run(axes[1:])
                return ()

            count(e, shape[axis], inner)
        elif chosen.axis is None:
            body(tuple(index))
        else:

            def leaf(d: Dim) -> None:
                index[chosen.axis] = d  # type: ignore[index]
                body(tuple(index))

            index[chosen.axis] = ZERO
            past = streams(tuple(index)) if streams is not None else ""
            vectors(e, shape[chosen.axis], chosen.lanes, leaf, limit, index, past)

    outer = e.lanes
    if chosen.axis is None:
        e.lanes = 0
    run([d for d, n in enumerate(shape) if d != chosen.axis and n > 1])
    e.lanes = outer

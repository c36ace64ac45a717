"""Loops, branches and calls: scalars in phis, tiles in buffers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ...ir.core import Op, Value
from ...ir.ops import OPS
from ...ir.types import DescriptorType, ElementType, PointerType, TensorType, element_of, i64, shape_of
from ..writer import Cell, scalar_type
from . import checks, gathered
from .access import Descriptor
from .buffers import Buffer
from .dot import pack_invariants
from .emit import FunctionEmitter, rule
from .idle import is_number, zero_without
from .index import strides_of

_COMPOUND = frozenset({"for", "while", "if", "call", "map"})
"""Ops whose results have places of their own."""

# Scalars and descriptors as lists of cells --------------------------------------------------------------------------


def flatten(f: FunctionEmitter, value: Value) -> list[Cell]:
    """The LLVM operands of a scalar or descriptor."""
    if isinstance(value.type, DescriptorType):
        d = f.e.descriptors[value]
        return [d.base, *d.sizes, *d.strides]
    return [f.scalars[value]]


def bind(f: FunctionEmitter, value: Value, cells: list[Cell], padding: str = "zero") -> None:
    """Makes ``cells`` the operands of ``value``."""
    if isinstance(value.type, DescriptorType):
        rank = (len(cells) - 1) // 2
        f.e.descriptors[value] = Descriptor(cells[0], cells[1 : 1 + rank], cells[1 + rank :], padding)
    else:
        (f.scalars[value],) = cells


def padding_of(f: FunctionEmitter, value: Value) -> str:
    return f.e.descriptors[value].padding if isinstance(value.type, DescriptorType) else "zero"


def is_tile(value: Value) -> bool:
    return isinstance(value.type, TensorType)


# for ----------------------------------------------------------------------------------------------------------------


class Carried:
    """One loop-carried tile: where it is at the start of a trip and where the next one may go."""

    __slots__ = ("current", "index", "other", "swap", "value")

    def __init__(self, index: int, value: Value, current: Buffer, other: Buffer | None) -> None:
        self.index = index
        self.value = value
        self.current = current
        self.other = other
        self.swap = other is not None


@rule("for")
def _for(f: FunctionEmitter, op: Op) -> None:
    (body,) = op.regions
    inits, args, ends = op.operands[3:], body.args[1:], body.terminator.operands
    trips = _trip_count(f, op)
    low, step = f.scalars[op.operands[0]], f.scalars[op.operands[2]]
    scalars = [i for i, v in enumerate(inits) if not is_tile(v)]
    growing = [i for i, a in enumerate(args) if a in f.graph.inductions]
    f.e.reset()
    sums = gathered.find(f, op)
    tiles = [_start_tile(f, op, i) for i, v in enumerate(inits) if is_tile(v) and i not in growing and i not in sums]
    f.e.reset()
    prepared = pack_invariants(f, op)
    f.e.reset()

    first = [low, *(cell for i in scalars for cell in flatten(f, inits[i]))]
    delta_types = [_delta_type(args[i]) for i in growing]
    carried = _carried(first, delta_types, tiles, list(sums.values()))
    checked = f.loops == 0 and not sums and checks.works(op)  # (sums are in registers, which a call would spill)

    def run(_: str, values: list[str]) -> list[str]:
        it = iter(values)
        counter = next(it)
        f.scalars[body.args[0]] = Cell(counter, low.element)
        for i in scalars:
            cells = [Cell(next(it), c.element) for c in flatten(f, inits[i])]
            bind(f, args[i], cells, padding_of(f, inits[i]))
        deltas = [Cell(next(it), t) for t in delta_types]
        for i, delta in zip(growing, deltas, strict=True):
            f.e.deltas[args[i]] = delta
        for t in tiles:
            if t.other is not None:
                t.current, t.other = t.current.at(next(it)), t.other.at(next(it))
            f.buffers[args[t.index]] = t.current
            _aim(f, op, t)
        store = _join_store(f, op, tiles)
        accs = [Cell(next(it), g.acc.element, g.lanes) for g in sums.values()]
        following: list[str] = []
        if checked:
            checks.check(f, waiting=False)

        def finish(end: Op) -> None:
            f.e.reset()
            following.append(f.w.emit(f"add {low.type} {counter}, {step.text}"))
            moved = [_grow(f, args[i], delta) for i, delta in zip(growing, deltas, strict=True)]
            pairs = zip(sums.values(), accs, strict=True)
            summed = [gathered.advance(f, g, acc, _idle_mask(op, g.index)).text for g, acc in pairs]
            pointers = _end_tiles(f, op, tiles, f.trailing.pop(store, []) if store is not None else [])
            for i in scalars:
                following.extend(c.text for c in flatten(f, ends[i]))
            following.extend(moved)
            following.extend(pointers)
            following.extend(summed)

        f.loops += 1
        f.block(body, finish)
        f.loops -= 1
        return following

    results = iter(f.w.loop("0", trips, "1", run, carried, hint="for"))
    f.e.reset()
    next(results)
    _loop_results(f, op, results, scalars, list(zip(growing, delta_types, strict=True)), tiles)
    for g in sums.values():
        f.gathered[op.results[g.index]] = Cell(next(results), g.acc.element, g.lanes)
    for key in prepared:
        del f.packed[key]


def _carried(
    first: list[Cell], deltas: list[ElementType], tiles: list[Carried], sums: list[gathered.Gathered]
) -> list[tuple[str, str]]:
    """Types and first values of the loop's phis: scalars, how far pointers have grown, places of tiles, sums."""
    carried = [(c.type, c.text) for c in first]
    carried += [(scalar_type(t), "0") for t in deltas]
    for t in tiles:
        if t.other is not None:
            carried += [("ptr", t.current.pointer), ("ptr", t.other.pointer)]
    return carried + [(g.acc.type, g.acc.text) for g in sums]


def _loop_results(
    f: FunctionEmitter,
    op: Op,
    values: Iterator[str],
    scalars: Sequence[int],
    growing: Sequence[tuple[int, ElementType]],
    tiles: Sequence[Carried],
) -> None:
    """Binds a loop's results to what it ended with: ``values`` in the order in which they were carried."""
    inits, ends = op.operands[3:], op.regions[0].terminator.operands
    for i in scalars:
        cells = [Cell(next(values), c.element) for c in flatten(f, inits[i])]
        bind(f, op.results[i], cells, padding_of(f, inits[i]))
    for i, kind in growing:
        f.e.deltas[op.results[i]] = Cell(next(values), kind)
    for t in tiles:
        if t.other is not None:
            t.current = t.current.at(next(values))
            next(values)
        f.buffers[op.results[t.index]] = t.current
        f.destination.pop(ends[t.index], None)


def _trip_count(f: FunctionEmitter, op: Op) -> str:
    """ceil((high - low) / step), or 0, without overflow: differences are taken as unsigned 64-bit numbers."""
    w = f.w
    element = f.scalars[op.operands[0]].element
    signed, bits = element.is_signed, element.bits

    def wide(v: Value) -> str:
        cell = f.scalars[v]
        if isinstance(cell.value, int):
            return str(int(cell.value))
        return cell.text if bits == 64 else w.emit(f"{'sext' if signed else 'zext'} {cell.typed} to i64")

    low, high, step = (wide(v) for v in op.operands[:3])
    less = ("slt" if signed else "ult") if bits == 64 else "slt"
    literal = step.lstrip("-").isdigit()

    def upward(amount: str, a: str, b: str) -> str:
        some = w.emit(f"icmp {less} i64 {a}, {b}")
        gap = w.emit(f"sub i64 {b}, {a}")
        if amount == "1":
            return w.emit(f"select i1 {some}, i64 {gap}, i64 0")
        before = w.emit(f"sub i64 {gap}, 1")
        whole = w.emit(f"udiv i64 {before}, {amount}")
        return w.emit(f"select i1 {some}, i64 {w.emit(f'add i64 {whole}, 1')}, i64 0")

    if literal:
        number = int(step)
        return "0" if number == 0 else upward(step, low, high) if number > 0 else upward(str(-number), high, low)
    zero = w.emit(f"icmp eq i64 {step}, 0")
    safe = w.emit(f"select i1 {zero}, i64 1, i64 {step}")
    up = upward(safe, low, high)
    if not signed:
        return w.emit(f"select i1 {zero}, i64 0, i64 {up}")
    negative = w.emit(f"icmp slt i64 {step}, 0")
    size = w.emit(f"select i1 {negative}, i64 {w.emit(f'sub i64 0, {safe}')}, i64 1")
    down = upward(size, high, low)
    some = w.emit(f"select i1 {negative}, i64 {down}, i64 {up}")
    return w.emit(f"select i1 {zero}, i64 0, i64 {some}")


def _delta_type(arg: Value) -> ElementType:
    element = element_of(arg.type)
    return i64 if isinstance(element, PointerType) else element


def _grow(f: FunctionEmitter, arg: Value, delta: Cell) -> str:
    """What an induction has grown by after this trip."""
    w, text = f.w, delta.text
    for offset, sign in f.graph.inductions[arg].offsets:
        cell = f.scalar_of(offset)
        amount = cell.text
        if delta.element == i64 and cell.element.bits < 64:
            amount = w.emit(f"{'sext' if cell.element.is_signed else 'zext'} {cell.typed} to i64")
        text = w.emit(f"{'add' if sign > 0 else 'sub'} {delta.type} {text}, {amount}")
    return text


def _start_tile(f: FunctionEmitter, op: Op, i: int) -> Carried:
    """Puts the initial value of a carried tile where the loop expects it."""
    init = op.operands[3 + i]
    end = f.graph.end[op]
    until = max(end, f.plan.death.get(op.results[i], 0))
    held = f.buffers.get(init)
    shape, element = shape_of(init.type), element_of(init.type)
    if held is not None and _may_take(f, op, init) and (init.op is None or f.extend(held, until)):
        current = held
    else:
        current, offset = f.allocate(shape, element, f.strides_for(op.regions[0].terminator.operands[i]))
        f.keep(offset, until)
        f.fill(init, current)
    other = None
    if _needs_other(f, op, i):
        other, offset = f.allocate(shape, element, current.strides)
        f.keep(offset, until)
    return Carried(i, init, current, other)


def _may_take(f: FunctionEmitter, op: Op, init: Value) -> bool:
    """Whether the loop may use the place of its initial value: nobody else reads it, and it is made anew before each
    run of the loop."""
    if f.graph.users[init] != [op] or op.operands.count(init) != 1 or f.graph.home(init) is not f.graph.block[op]:
        return False
    return init.op is not None or init.owner is not f.function.body  # a caller's tile is not ours


def _needs_other(f: FunctionEmitter, op: Op, i: int) -> bool:
    """Whether the next value cannot be written over the current one."""
    body = op.regions[0]
    arg, value, end = body.args[i + 1], body.terminator.operands[i], body.terminator
    plan, start = f.plan, f.graph.start
    if value is arg:
        return False
    readers = plan.roots(plan.roots_of(arg))
    if value in plan.held:
        if not _aimable(f, op, i):
            return True
        root = plan.computed_at.get(value, value.op)
        assert root is not None
        last = [r for r in readers if start[f.graph.ancestor(r, body)] >= start[root]]
        if not last:
            return False
        if any(r is not root for r in last) or root is not value.op:
            return True
        if root.kind == "dot":
            return not plan.reaches_same_index_through(arg, root, 2)
        return not OPS[root.kind].elementwise or not plan.reaches_same_index(arg, root)
    if any(plan.depends(v, arg) for j, v in enumerate(end.operands) if j != i and is_tile(v)):
        return True
    late = [r for r in readers if r is end]
    return bool(late) and not plan.reaches_same_index(arg, end)


def _aimable(f: FunctionEmitter, op: Op, i: int) -> bool:
    """Whether the yielded value can be computed right where the next trip wants it."""
    ends = op.regions[0].terminator.operands
    value = ends[i]
    producer = value.op
    if producer is None or f.graph.block[producer] is not op.regions[0] or ends.count(value) != 1:
        return False
    return value in f.plan.held and producer.kind not in _COMPOUND


def _aim(f: FunctionEmitter, op: Op, t: Carried) -> None:
    value = op.regions[0].terminator.operands[t.index]
    if value is not op.regions[0].args[t.index + 1] and _aimable(f, op, t.index):
        f.destination[value] = t.other if t.other is not None else t.current


def _end_tiles(f: FunctionEmitter, op: Op, tiles: list[Carried], done: list[tuple[Value, Buffer]]) -> list[str]:
    """Brings every carried tile to its next value, but for those that are ``done``; returns the pointers of the next
    trip."""
    ends = op.regions[0].terminator.operands
    finished = {buffer.pointer for _, buffer in done}
    pointers: list[str] = []
    together: dict[tuple[object, Value | None], list[tuple[Value, Buffer]]] = {}
    for t in tiles:
        value = ends[t.index]
        held = f.buffers.get(value)
        target = t.other if t.other is not None else t.current
        if held is not None and held.pointer == t.current.pointer:
            target = t.current
        elif held is not None and held.pointer != target.pointer:
            f.fill(value, target)
        elif held is None and target.pointer not in finished:
            idle = _idle_mask(op, t.index) if t.other is None else None
            together.setdefault((shape_of(value.type), idle), []).append((value, target))
        if t.other is not None:
            source = t.other if target is t.current else t.current
            pointers += [target.pointer, source.pointer]
    for (_, idle), pairs in together.items():
        f.fill_all(pairs, idle)
    return pointers


def _join_store(f: FunctionEmitter, op: Op, tiles: list[Carried]) -> Op | None:
    """Has sums such as ``total += x`` computed in the loop nest of the store that ends the body, where its mask is
    theirs; returns that store.

    What both read is read once. The store must not need a carried tile: its other elements would be new ones.
    """
    body = op.regions[0]
    at = len(body.ops) - 2
    while at >= 0 and f.plan.is_lazy(body.ops[at]):
        at -= 1
    store = body.ops[at] if at >= 0 else None
    if store is None or store.kind != "store" or not isinstance(store.operands[0].type, TensorType):
        return None
    mask = store.operands[2] if len(store.operands) > 2 else None
    pairs: list[tuple[Value, Buffer]] = []
    for t in tiles:
        arg, value = body.args[t.index + 1], body.terminator.operands[t.index]
        lazy = value.op is not None and value not in f.plan.held and f.graph.block[value.op] is body
        if not lazy or t.other is not None or shape_of(value.type) != shape_of(store.operands[0].type):
            continue
        if (mask is None or _idle_mask(op, t.index) is mask) and not any(
            f.plan.depends(v, arg) for v in store.operands
        ):
            pairs.append((value, t.current))
    if not pairs:
        return None
    f.trailing[store] = pairs
    return store


def _idle_mask(op: Op, i: int) -> Value | None:
    """For a tile that sums up: the mask without which nothing is added, as in ``total += load(p, mask, other=0)``.

    Adding 0.0 changes no number but -0.0, which a sum that started at 0.0 never is.
    """
    body = op.regions[0]
    arg, value, init = body.args[i + 1], body.terminator.operands[i], op.operands[3 + i]
    if value.op is None or value.op.kind != "add" or arg not in value.op.operands:
        return None
    if element_of(arg.type).is_float and not is_number(init, 0.0):
        return None
    first, second = value.op.operands
    added = second if first is arg else first
    return None if added is arg else zero_without(added)


# if -----------------------------------------------------------------------------------------------------------------


@rule("if")
def _if(f: FunctionEmitter, op: Op) -> None:
    w = f.w
    condition = f.scalars[op.operands[0]]
    targets: dict[int, Buffer] = {}
    for i, r in enumerate(op.results):
        if is_tile(r):
            targets[i] = f.buffer_for(r)
    labels = [w.new_label("then"), w.new_label("else")]
    done = w.new_label("endif")
    w.cond_br(condition.text, *labels)
    outcomes: list[tuple[str, list[list[Cell]]]] = []
    for region, label in zip(op.regions, labels, strict=True):
        w.label(label)
        found: list[list[Cell]] = []
        for i, target in targets.items():
            value = region.terminator.operands[i]
            producer = value.op
            once = region.terminator.operands.count(value) == 1
            mine = producer is not None and f.graph.block[producer] is region and once and value in f.plan.held
            if mine and producer is not None and producer.kind not in _COMPOUND:
                f.destination[value] = target

        def finish(end: Op, found: list[list[Cell]] = found) -> None:
            f.e.reset()
            for i, value in enumerate(end.operands):
                if i in targets:
                    held = f.buffers.get(value)
                    if held is None or held.pointer != targets[i].pointer:
                        f.fill(value, targets[i])
                    found.append([])
                else:
                    found.append(flatten(f, value))

        f.block(region, finish)
        outcomes.append((w.block, found))
        w.br(done)
    w.label(done)
    f.e.reset()
    for i, result in enumerate(op.results):
        if i in targets:
            f.buffers[result] = targets[i]
            continue
        cells = []
        for a, b in zip(outcomes[0][1][i], outcomes[1][1][i], strict=True):
            text = w.emit(f"phi {a.type} [ {a.text}, %{outcomes[0][0]} ], [ {b.text}, %{outcomes[1][0]} ]")
            cells.append(Cell(text, a.element))
        bind(f, result, cells, padding_of(f, op.regions[0].terminator.operands[i]))


# while --------------------------------------------------------------------------------------------------------------


@rule("while")
def _while(f: FunctionEmitter, op: Op) -> None:
    """Tiles have one place each; new values are computed aside first, as they may need old ones of others."""
    w = f.w
    before, after = op.regions
    inits = op.operands
    until = f.graph.end[op]
    tiles: dict[int, Buffer] = {}
    for i, v in enumerate(inits):
        if is_tile(v):
            tiles[i], offset = f.allocate(shape_of(v.type), element_of(v.type))
            f.keep(offset, until)
            f.fill(v, tiles[i])
    outs = {i: f.buffer_for(r) for i, r in enumerate(op.results) if is_tile(r)}
    scalars = [i for i in range(len(inits)) if i not in tiles]
    entry = w.block
    head, inside, done = w.new_label("while"), w.new_label("do"), w.new_label("done")
    first = [c for i in scalars for c in flatten(f, inits[i])]
    w.br(head)
    w.label(head)
    phis = w.point()
    names = [w.reserve() for _ in first]
    it = iter(zip(names, first, strict=True))
    for i in scalars:
        cells = [Cell(n, c.element) for n, c in (next(it) for _ in flatten(f, inits[i]))]
        bind(f, before.args[i], cells, padding_of(f, inits[i]))
    for i, tile in tiles.items():
        f.buffers[before.args[i]] = tile
    passed: list[list[Cell]] = []
    conditions: list[str] = []

    def test(end: Op) -> None:
        f.e.reset()
        for i, value in enumerate(end.operands[1:]):
            if i in outs:
                f.fill(value, outs[i])
                passed.append([])
            else:
                passed.append(flatten(f, value))
        conditions.append(f.scalars[end.operands[0]].text)

    checks.check(f, checks.spins(op))
    f.block(before, test)
    w.cond_br(conditions[0], inside, done)
    w.label(inside)
    for i, result in enumerate(op.results):
        if i in outs:
            f.buffers[after.args[i]] = f.buffers[result] = outs[i]
        else:
            padding = padding_of(f, before.terminator.operands[1 + i])
            bind(f, after.args[i], passed[i], padding)
            bind(f, result, passed[i], padding)
    following: list[Cell] = []

    def finish(end: Op) -> None:
        f.e.reset()
        for i, tile in tiles.items():  # after.args are other places than before.args: no order matters
            f.fill(end.operands[i], tile)
        for i in scalars:
            following.extend(flatten(f, end.operands[i]))

    f.block(after, finish)
    latch = w.block
    w.br(head)
    for name, a, b in zip(names, first, following, strict=True):
        phis.lines.append(f"  {name} = phi {a.type} [ {a.text}, %{entry} ], [ {b.text}, %{latch} ]")
    w.label(done)
    f.e.reset()


# Calls --------------------------------------------------------------------------------------------------------------


@rule("call")
def _call(f: FunctionEmitter, op: Op) -> None:
    """Scalars by value, tiles by pointer; results through pointers, then context and scratch."""
    w, callee = f.w, f.callees[op.attrs["callee"]]
    args: list[str] = []
    temporary: list[int] = []
    for v in op.operands:
        if not is_tile(v):
            args += [c.typed for c in flatten(f, v)]
            continue
        held = f.buffers.get(v)
        if held is None or held.strides != strides_of(held.shape):
            held, offset = f.allocate(shape_of(v.type), element_of(v.type))
            temporary.append(offset)
            f.fill(v, held)
        args.append(f"ptr {held.pointer}")
    slots: list[tuple[Value, str]] = []
    for r in op.results:
        if is_tile(r):
            buffer = f.buffer_for(r)
            f.buffers[r] = buffer
            args.append(f"ptr {buffer.pointer}")
        else:
            slot = w.alloca(scalar_type(element_of(r.type), memory=False))
            slots.append((r, slot))
            args.append(f"ptr {slot}")
    scratch, offset = f.arena.allocate(max(64, callee.scratch))
    temporary.append(offset)
    args += [f"ptr {f.context}", f"ptr {scratch}"]
    args += [f"i32 {f.program_id(axis).text}" for axis in range(3)]
    w.line(f"call void {callee.name}({', '.join(args)})")
    for r, slot in slots:
        element = element_of(r.type)
        f.scalars[r] = Cell(w.emit(f"load {scalar_type(element)}, ptr {slot}"), element)
    for offset in temporary:
        f.arena.free(offset)
    f.e.reset()


def finish_return(f: FunctionEmitter, outs: list[str]) -> Callable[[Op], None]:
    """How a called function ends: results go where the caller said."""

    def finish(end: Op) -> None:
        f.e.reset()
        for value, pointer in zip(end.operands, outs, strict=True):
            if is_tile(value):
                f.fill(value, Buffer.dense(pointer, shape_of(value.type), element_of(value.type)))
            else:
                f.w.line(f"store {f.scalars[value].typed}, ptr {pointer}")
        f.w.ret()

    return finish

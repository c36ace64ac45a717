"""Decides for every tensor value whether it is computed where it is used or held in a buffer.

A *root* is an op that runs a loop nest of its own: a store, a reduction, a dot, a yield, ... or an op whose result is
held. All other tensor ops are *lazy*: the roots that need them compute them element by element.

    x = load p            lazy: each root reads the memory itself,       m = reduce max x      root 1
    e = exp (x - m)       held: two roots need it and it costs much      s = reduce add e      root 2, which also
    fills e's buffer store q, e / s        the quotient is lazy                                                 root 3

A lazy load must not move past a write that may change what it reads, nor into another block: such loads are held.
"""

from __future__ import annotations

from math import prod

from ...ir.core import Block, Op, Value
from ...ir.ops import OPS
from ...ir.types import TensorType, element_of, shape_of
from .graph import EVERYTHING, Graph, Stride
from .machine import Machine

LAZY = frozenset({
    "constant", "arange", "splat", "broadcast", "expand_dims", "reshape", "permute", "flip", "split", "hint", "gather",
    "load", "desc_load",
})  # fmt: skip
LOADS = frozenset({"load", "desc_load"})
EXPENSIVE = 10
"""Cost, in simple instructions for each element, from which a value that several roots need is held."""

_COST = {
    "exp": 14, "exp2": 12, "log": 16, "log2": 16, "sin": 30, "cos": 30, "erf": 20, "rsqrt": 10, "sqrt": 6, "sqrt_rn": 6,
    "div": 6, "rem": 12, "libm": 30, "extern": 30, "inline_asm": 10, "gather": 12, "desc_load": 3, "mulhi": 4,
}  # fmt: skip
_FREE = frozenset(
    {"constant", "arange", "splat", "broadcast", "expand_dims", "reshape", "permute", "hint", "split", "flip"}
)

_MOVES = frozenset({"reshape", "permute", "flip", "expand_dims", "split", "broadcast"})


class Plan:
    """What ``emit`` needs to know of a function.

    ``held``         tensor values that live in buffers.
    ``by_product``   for a root: held values that its loop computes anyway and stores on the way.
    ``death``        for a held value: the number of the op after which its buffer is free.
    """

    def __init__(self, graph: Graph, machine: Machine) -> None:
        self.graph = graph
        self.machine = machine
        self.held: set[Value] = set()
        self.by_product: dict[Op, list[Value]] = {}
        self.computed_at: dict[Value, Op] = {}
        self.death: dict[Value, int] = {}
        self._costs: dict[Value, int] = {}
        self._roots: dict[Value, int] = {}
        self._root_ops: list[Op] = []
        self._root_bit: dict[Op, int] = {}
        self._in_block: dict[Block, int] = {}
        self._writes: dict[Block, list[tuple[int, list[Value | None]]]] = {}
        self._classify_by_kind()
        self._estimate()
        self._decide()
        self._lifetimes()

    # By kind

    def _classify_by_kind(self) -> None:
        held = self.held
        for op in self.graph.ops:
            for region in op.regions:
                held.update(a for a in region.args if isinstance(a.type, TensorType) and a not in self.graph.inductions)
            writes = self.graph.writes(op)
            if writes:
                self._writes.setdefault(self.graph.block[op], []).append((self.graph.start[op], writes))
            for result in op.results:
                if (
                    isinstance(result.type, TensorType)
                    and not self.lazy_kind(op)
                    and result not in self.graph.inductions
                ):
                    held.add(result)
            if op.kind == "gather" and op.operands[0].op is not None:
                held.add(op.operands[0])
            elif op.kind == "load" and op.attrs.get("volatile", False) and isinstance(op.results[0].type, TensorType):
                held.add(op.results[0])
            elif op.kind == "split":
                self._hold_before_split(op)
        held.update(a for a in self.graph.function.args if isinstance(a.type, TensorType))

    def _hold_before_split(self, op: Op) -> None:
        """What is split is computed once, in order: reading every second element from memory costs a gather each."""
        value = op.operands[0]
        while value.op is not None and value.op.kind == "reshape" and isinstance(value.op.operands[0].type, TensorType):
            value = value.op.operands[0]
        if value.op is not None and (
            value.op.kind in LOADS or (OPS[value.op.kind].elementwise and element_of(value.type).is_float)
        ):
            self.held.add(value)

    def lazy_kind(self, op: Op) -> bool:
        """Whether the op's results can be computed element by element."""
        if OPS[op.kind].elementwise:
            return op.kind not in ("extern", "inline_asm") or (
                bool(op.attrs.get("pure", True)) and op.attrs.get("pack", 1) == 1
            )
        return op.kind in LAZY

    def is_lazy(self, op: Op) -> bool:
        """Whether ``op`` emits nothing by itself."""
        if not op.results or not self.lazy_kind(op):
            return False
        return all(isinstance(r.type, TensorType) and r not in self.held for r in op.results)

    # Costs

    def _estimate(self) -> None:
        """The cost of computing each lazy value from held ones, with values that many ops need counted as held."""
        costs = self._costs
        for op in self.graph.ops:
            if not op.results or not self.lazy_kind(op) or not isinstance(op.results[0].type, TensorType):
                continue
            total = 0 if op.kind in _FREE else self._load_cost(op) if op.kind == "load" else _COST.get(op.kind, 1)
            for v in op.operands:
                if isinstance(v.type, TensorType):
                    total += self._operand_cost(v)
            for result in op.results:
                costs[result] = total

    def cost(self, value: Value) -> int:
        """Simple instructions for one element, held inputs given."""
        return self._costs.get(value, 1) if value not in self.held else 1

    def _operand_cost(self, value: Value) -> int:
        if value in self.held:
            return 1
        cost = self._costs.get(value, 1)
        return 1 if cost >= EXPENSIVE and len(self.graph.users[value]) > 1 else cost

    def _load_cost(self, op: Op) -> int:
        pointer = op.operands[0]
        axes = range(len(shape_of(pointer.type)))
        strides = [self.graph.stride(pointer, d) for d in axes]
        return (
            2
            if any(s is not None and abs(s.step) == 1 for s in strides) or not any(s != Stride(0, 0) for s in strides)
            else 12
        )

    # Decisions, from the last op to the first: the roots of a value are known before its operands are looked at

    def _decide(self) -> None:
        for op in reversed(self.graph.ops):
            if not op.results or not self.lazy_kind(op) or not isinstance(op.results[0].type, TensorType):
                if op.kind == "for" or any(isinstance(v.type, TensorType) for v in op.operands):
                    self._add_root(op)
                continue
            roots = 0
            for result in op.results:
                mine = self.roots_of(result)
                self._roots[result] = mine
                roots |= mine
            if any(r in self.held for r in op.results) or self._should_hold(op, roots):
                self.held.update(op.results)
                self._place(op, roots)

    def _add_root(self, op: Op) -> None:
        if op in self._root_bit:
            return
        bit = 1 << len(self._root_ops)
        self._root_bit[op] = bit
        self._root_ops.append(op)
        block = self.graph.block[op]
        self._in_block[block] = self._in_block.get(block, 0) | bit

    def roots_of(self, value: Value) -> int:
        """The roots that compute with ``value``, as a set of bits."""
        roots = 0
        for user in self.graph.users.get(value, ()):
            if user.kind == "for":
                for i, init in enumerate(user.operands):
                    if init is not value:
                        continue
                    arg = user.regions[0].args[i - 2] if i >= 3 else None
                    if arg is not None and arg in self.graph.inductions:
                        roots |= self.roots_of(arg) | self.roots_of(user.results[i - 3])
                    else:
                        roots |= self._root_bit[user]
                continue
            bit = self._root_bit.get(user)
            if bit is not None:
                roots |= bit
                continue
            for result in user.results:
                at = self.computed_at.get(result)
                roots |= self._root_bit[at] if at is not None else self._roots.get(result, 0)
        return roots

    def roots(self, mask: int) -> list[Op]:
        found = []
        while mask:
            low = mask & -mask
            found.append(self._root_ops[low.bit_length() - 1])
            mask ^= low
        return found

    def _place(self, op: Op, roots: int) -> None:
        """``op``'s results are held: by its own loop, or by that of the first root that computes them anyway."""
        first = self._by_product_root(op, roots)
        if first is None:
            self._add_root(op)
            return
        for result in op.results:
            self.computed_at[result] = first
            self.by_product.setdefault(first, []).append(result)

    def _by_product_root(self, op: Op, roots: int) -> Op | None:
        if not OPS[op.kind].elementwise or len(op.results) != 1 or not roots:
            return None
        first = min(self.roots(roots), key=self.graph.start.__getitem__)
        if self.graph.block[first] is not self.graph.block[op] or first.kind not in ("reduce", "store"):
            return None
        result = op.results[0]
        if shape_of(first.operands[0].type) != shape_of(result.type):
            return None
        return first if self.reaches_same_index(result, first) else None

    def reaches_same_index(self, value: Value, root: Op) -> bool:
        """Whether every lazy path from ``value`` to ``root`` keeps the index of each element."""
        seen: set[Value] = {value}
        work = [value]
        reached = False
        while work:
            for user in self.graph.users.get(work.pop(), ()):
                if user is root:
                    reached = True
                elif user in self._root_bit or not self._roots_reach(user, root):
                    continue
                elif not OPS[user.kind].elementwise and user.kind != "hint":
                    return False
                else:
                    fresh = [r for r in user.results if r not in seen]
                    seen.update(fresh)
                    work += fresh
        return reached

    def reaches_same_index_through(self, value: Value, root: Op, operand: int) -> bool:
        """``reaches_same_index``, and only by that operand of ``root``."""
        others = [v for i, v in enumerate(root.operands) if i != operand]
        return not any(self.depends(v, value) for v in others) and self.reaches_same_index(value, root)

    def depends(self, value: Value, source: Value) -> bool:
        """Whether computing ``value`` now reads ``source``, which is held."""
        seen: set[Value] = set()
        work = [value]
        while work:
            current = work.pop()
            if current is source:
                return True
            if current in seen or current in self.held or current.op is None:
                if current in self.graph.inductions and current not in seen:
                    work.append(self.graph.inductions[current].init)
                seen.add(current)
                continue
            seen.add(current)
            record = self.graph.inductions.get(current)
            work += [record.init] if record is not None else current.op.operands
        return False

    def _roots_reach(self, user: Op, root: Op) -> bool:
        bit = self._root_bit[root]
        if user.kind == "for":
            return True
        return any(self._roots.get(r, 0) & bit and r not in self.computed_at for r in user.results) or any(
            self.computed_at.get(r) is root for r in user.results
        )

    def _should_hold(self, op: Op, roots: int) -> bool:
        if not roots:
            return False
        home = self.graph.block[op]
        nested = bool(roots & ~self._in_block.get(home, 0))
        if op.kind in LOADS:
            return nested or self._illegal(op, roots)
        if op.kind in _FREE:
            return False
        cost = self._costs.get(op.results[0], 1)
        if nested and cost >= EXPENSIVE:
            return True
        if nested and cost > 4 and not self._is_address(op):
            return True
        users = [u for r in op.results for u in self.graph.users.get(r, ())]
        # Needed at two places by one root, as in x + flip(x): chains of such steps would double the work at each.
        if (
            len(users) > 1
            and cost > 4
            and any(u.kind in _MOVES for u in users)
            and (cost >= EXPENSIVE or not self._is_address(op))
        ):
            return True
        if cost < EXPENSIVE:
            return False
        if len(users) > 1 and roots & (roots - 1):
            return True
        return any(self._repeats(u, r) for r in op.results for u in self.graph.users.get(r, ()))

    def _is_address(self, op: Op) -> bool:
        element = op.results[0].type.element if isinstance(op.results[0].type, TensorType) else op.results[0].type
        return not element.is_float and not isinstance(element, type(None)) and element.kind in ("ptr", "int", "bool")  # type: ignore[union-attr]

    def _repeats(self, user: Op, value: Value) -> bool:
        """Whether ``user`` asks for each element many times."""
        if user.kind == "broadcast":
            return prod(shape_of(user.results[0].type)) >= 4 * prod(shape_of(value.type))
        if user.kind in ("expand_dims", "reshape", "permute") and self.is_lazy(user):
            return any(self._repeats(u, user.results[0]) for u in self.graph.users.get(user.results[0], ()))
        return False

    # Loads

    def _illegal(self, load: Op, roots: int) -> bool:
        """Whether a root would read memory after a write that may have changed it."""
        block, low = self.graph.block[load], self.graph.start[load]
        base = self.graph.base(load.operands[0])
        writes = self._writes.get(block, ())
        for root in self.roots(roots):
            high = self.graph.start[root]
            for at, bases in writes:
                if low < at < high and any(self.conflict(base, b) for b in bases):
                    return True
            if root.kind in ("for", "while", "if"):
                continue  # what enters them is computed before
            clash = any(self.conflict(base, b) for b in self.graph.writes(root))
            if clash and not self._reads_what_it_writes(load, root):
                return True
        return False

    def conflict(self, a: Value | None, b: Value | None) -> bool:
        return self.machine.may_alias or a is EVERYTHING or b is EVERYTHING or a is b

    def _reads_what_it_writes(self, load: Op, store: Op) -> bool:
        """Element i of the store needs element i of the load alone, and all elements have places of their own."""
        pointer = load.operands[0]
        if store.kind != "store" or store.operands[0] is not pointer:
            return False
        shape = shape_of(pointer.type)
        wide = [d for d, n in enumerate(shape) if n > 1]
        if len(wide) > 1 or any((s := self.graph.stride(pointer, d)) is None or s.group or not s.step for d in wide):
            return False
        return self.reaches_same_index(load.results[0], store)

    # Lifetimes

    def _lifetimes(self) -> None:
        """Until when each held value is read, lazy users included."""
        last: dict[Value, int] = {}
        graph = self.graph
        for op in reversed(graph.ops):
            for operand in op.operands:
                at = self._use_end(op, last)
                block = graph.home(operand)
                if graph.block[op] is not block:
                    at = max(at, graph.end[graph.ancestor(op, block)])
                last[operand] = max(last.get(operand, 0), at)
                record = graph.inductions.get(operand)
                while record is not None:  # reading an induction reads its initial value
                    home = graph.home(record.init)
                    end = graph.end[graph.ancestor(op, home)]
                    last[record.init] = max(last.get(record.init, 0), at, end)
                    record = graph.inductions.get(record.init)
        self.death = {v: last.get(v, 0) for v in self.held}

    def _use_end(self, op: Op, last: dict[Value, int]) -> int:
        end = self.graph.end[op]
        for result in op.results:
            if isinstance(result.type, TensorType) and (result not in self.held or result in self.computed_at):
                end = max(end, last.get(result, 0))
                at = self.computed_at.get(result)
                if at is not None:
                    end = max(end, self.graph.end[at])
        return end

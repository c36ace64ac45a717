"""The objects of the tile IR: values, ops, blocks, functions, modules.

Control flow is structured, so a region is exactly one block, and a value is visible from its definition to the end of
the block that defines it, nested regions included. Nothing here knows any particular op: see ``ops.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from .types import Type


@dataclass(frozen=True, slots=True)
class Location:
    """Where in the user's source an op comes from; ``caller`` is the call site when its function was inlined."""

    file: str
    line: int
    column: int
    function: str = ""
    caller: Location | None = None

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


class Value:
    """One SSA value. ``owner`` is the op that computes it, or the block whose argument it is."""

    __slots__ = ("index", "name", "owner", "type")

    def __init__(self, type: Type, owner: Op | Block, index: int, name: str = "") -> None:
        self.type = type
        self.owner = owner
        self.index = index
        self.name = name

    def __repr__(self) -> str:
        return f"%{self.name or '?'}: {self.type}"

    @property
    def op(self) -> Op | None:
        """The op that defines this value; None for a block argument."""
        return self.owner if isinstance(self.owner, Op) else None


class Op:
    """One operation. ``kind`` is its name in the op table."""

    __slots__ = ("attrs", "kind", "loc", "operands", "regions", "results")

    def __init__(
        self,
        kind: str,
        operands: Sequence[Value] = (),
        types: Sequence[Type] = (),
        attrs: dict[str, Any] | None = None,
        regions: Sequence[Block] = (),
        loc: Location | None = None,
    ) -> None:
        self.kind = kind
        self.operands = list(operands)
        self.results = [Value(t, self, i) for i, t in enumerate(types)]
        self.attrs = {} if attrs is None else attrs
        self.regions = list(regions)
        self.loc = loc

    @property
    def result(self) -> Value:
        """The only result."""
        (value,) = self.results
        return value

    def __repr__(self) -> str:
        return f"<op {self.kind}>"


class Block:
    """A straight list of ops with arguments; the last op is a terminator."""

    __slots__ = ("args", "ops")

    def __init__(self, arg_types: Sequence[Type] = (), names: Sequence[str] = ()) -> None:
        self.args = [Value(t, self, i, names[i] if i < len(names) else "") for i, t in enumerate(arg_types)]
        self.ops: list[Op] = []

    @property
    def terminator(self) -> Op:
        return self.ops[-1]

    def walk(self) -> Iterator[Op]:
        """Every op of this block and of the regions inside it, in program order, parents first."""
        stack = [iter(self.ops)]  # not recursive: kernels nest deeper than Python's stack is for
        while stack:
            for op in stack[-1]:
                yield op
                if op.regions:
                    stack.extend(iter(region.ops) for region in reversed(op.regions))
                    break
            else:
                stack.pop()


class Function:
    """A function; a kernel is a function with ``attrs["kernel"]`` set. ``arg_attrs`` has one dict per argument."""

    __slots__ = ("arg_attrs", "attrs", "body", "loc", "name", "result_types")

    def __init__(
        self,
        name: str,
        arg_types: Sequence[Type] = (),
        result_types: Sequence[Type] = (),
        arg_names: Sequence[str] = (),
        attrs: dict[str, Any] | None = None,
        loc: Location | None = None,
    ) -> None:
        self.name = name
        self.body = Block(arg_types, arg_names)
        self.result_types = tuple(result_types)
        self.attrs = {} if attrs is None else attrs
        self.arg_attrs: list[dict[str, Any]] = [{} for _ in arg_types]
        self.loc = loc

    @property
    def args(self) -> list[Value]:
        return self.body.args

    @property
    def is_kernel(self) -> bool:
        return bool(self.attrs.get("kernel"))


class Module:
    """Functions by name. ``attrs`` holds options that change code, for example ``num_warps``."""

    __slots__ = ("attrs", "functions")

    def __init__(self, attrs: dict[str, Any] | None = None) -> None:
        self.functions: dict[str, Function] = {}
        self.attrs = {} if attrs is None else attrs

    def add(self, function: Function) -> Function:
        if function.name in self.functions:
            raise ValueError(f"function @{function.name} is already in the module")
        self.functions[function.name] = function
        return function

    @property
    def kernel(self) -> Function:
        """The module's only kernel."""
        kernels = [f for f in self.functions.values() if f.is_kernel]
        if len(kernels) != 1:
            raise ValueError(f"expected one kernel in the module, found {len(kernels)}")
        return kernels[0]

    def walk(self) -> Iterator[Op]:
        for function in self.functions.values():
            yield from function.body.walk()


def clone_op(op: Op, mapping: dict[Value, Value], relocate: Callable[[Location | None], Location | None]) -> Op:
    """A copy of ``op`` with operands looked up in ``mapping``; its results and block arguments are added to it."""
    copy = Op(
        op.kind,
        [mapping.get(v, v) for v in op.operands],
        [r.type for r in op.results],
        dict(op.attrs),
        (),
        relocate(op.loc),
    )
    for old, new in zip(op.results, copy.results, strict=True):
        new.name = old.name
        mapping[old] = new
    copy.regions = [clone_block(region, mapping, relocate) for region in op.regions]
    return copy


def clone_block(
    block: Block,
    mapping: dict[Value, Value],
    relocate: Callable[[Location | None], Location | None] = lambda loc: loc,
) -> Block:
    """A deep copy of ``block``; values defined outside it are looked up in ``mapping`` or kept."""
    copy = Block([a.type for a in block.args], [a.name for a in block.args])
    mapping.update(zip(block.args, copy.args, strict=True))
    copy.ops = [clone_op(op, mapping, relocate) for op in block.ops]
    return copy

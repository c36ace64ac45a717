"""What a target must supply to the thread-level lowering: one protocol, answered in LLVM IR by each back end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from ...ir.core import Op
from ...ir.types import ElementType
from ..writer import Cell, FunctionWriter, ModuleWriter

if TYPE_CHECKING:
    from .context import Context

SHARED_SPACE = 3


class Cluster(Protocol):
    """What a machine supplies whose programs may be clusters of several blocks of threads. Each block has shared memory
    of its own, which the others can reach."""

    @property
    def blocks(self) -> int: ...

    def rank(self, w: FunctionWriter) -> str:
        """This block's number within the program, i32."""

    def barrier(self, w: FunctionWriter) -> None:
        """All threads of all blocks of the program meet; shared and global memory written before is seen after."""

    def remote(self, w: FunctionWriter, pointer: str, rank: str) -> str:
        """The place at ``pointer`` (in this block's shared memory) in that of block ``rank``, as a generic pointer."""


Pieces = Sequence[tuple[int, Sequence[str]]]
"""Copies that make up a box: offset from the slot's address in bytes, and coordinates (i32), the last axis first."""


class Boxes(Protocol):
    """Copies of boxes of global tensors, begun by one thread of the program. Addresses are i32, in shared memory."""

    def parameter(self, module: ModuleWriter, kernel: str, number: int) -> str:
        """The declaration of the kernel's parameter ``number``, which holds a descriptor's machine form."""

    def make_barriers(self, w: FunctionWriter, address: str, count: int, copies: int, first: str) -> None:
        """Barriers one behind the other, 8 bytes each, made by the ``first`` thread."""

    def wait(self, w: FunctionWriter, barrier: str, parity: str) -> None:
        """Until the barrier's phase of this parity (i32) has ended."""

    def load(
        self, w: FunctionWriter, map: str, pieces: Pieces, address: str, barrier: str, bytes: int, wanted: str
    ) -> None:
        """Begins a copy of ``bytes`` in all to shared memory, which the barrier's open phase counts, where ``wanted``
        holds: in one warp at most."""

    def copy(self, w: FunctionWriter, target: str, source: Cell, bytes: int, size: str, owner: str | None) -> None:
        """One thread's part of a box: begins to copy ``size`` (i32) of at most 16 bytes, zeros behind them, as one of
        the ``async_copy`` since the last commit."""

    def store(self, w: FunctionWriter, map: str, pieces: Pieces, address: str, update: str, first: str) -> None:
        """Writes or combines (``update``) from shared memory, which has been read when the ``first`` thread goes on."""

    def written(self, w: FunctionWriter) -> None:
        """What this thread stored by boxes is in memory."""

    def follow(self, w: FunctionWriter) -> None:
        """Boxes copied from now on see what this thread wrote to memory."""


class Machine(Protocol):
    """Operands named ``text`` are LLVM operands without their type. ``predicate`` is an i1 operand, or None for
    always."""

    @property
    def lanes(self) -> int: ...

    @property
    def warps(self) -> int:
        """Warps of a block."""

    @property
    def cluster(self) -> Cluster | None:
        """None where a program is one block."""

    def kernel(self, module: ModuleWriter, name: str, params: Sequence[str]) -> FunctionWriter:
        """Starts the kernel's function: calling convention, launch bounds, attributes."""

    def thread(self, w: FunctionWriter) -> str:
        """This thread's number within its block, i32."""

    def program_id(self, w: FunctionWriter, axis: int) -> str: ...

    def num_programs(self, w: FunctionWriter, axis: int) -> str: ...

    def barrier(self, w: FunctionWriter) -> None:
        """All threads of the block meet; shared and global memory written before is seen after."""

    def shuffle(self, w: FunctionWriter, kind: str, text: str, amount: str) -> str:
        """An i32 from another lane: ``xor`` (lane ^ amount), ``up`` (lane - amount), ``down`` (lane + amount),
        ``index`` (lane amount).

        ``up`` and ``down`` beyond the warp give the lane's own value.
        """

    def load(
        self,
        w: FunctionWriter,
        pointer: Cell,
        element: ElementType,
        count: int,
        predicate: str | None,
        others: Sequence[Cell] | None,
        op: Op,
    ) -> list[str]:
        """``count`` consecutive elements (aligned as a whole) in their memory type; ``others``, or 0, where the
        predicate fails."""

    def store(self, w: FunctionWriter, pointer: Cell, values: Sequence[Cell], predicate: str | None, op: Op) -> None:
        """``values``, in their memory type, to consecutive addresses (aligned as a whole)."""

    def atomic(self, w: FunctionWriter, op: Op, pointer: Cell, values: Sequence[Cell], predicate: str | None) -> Cell:
        """``atomic_rmw`` (one value) or ``atomic_cas`` (expected, new) on one element; the old value, 0 where not
        done."""

    def poll(self, w: FunctionWriter, op: Op, pointer: Cell, expected: Cell, timeout: Cell | None) -> str:
        """This thread's ``atomic_poll``: an i1, whether it saw the value."""

    def elementwise(self, w: FunctionWriter, op: Op, args: Sequence[Cell]) -> list[Cell] | None:
        """The target's own way for one element, or None for the common rule."""

    def elementwise_pack(self, op: Op) -> int:
        """How many neighbouring registers ``op`` takes at once (inline assembly with ``pack``); usually 1."""

    def dot(self, c: Context, op: Op) -> list[Cell]:
        """The accumulator's registers after the product."""

    def async_copy(
        self,
        w: FunctionWriter,
        target: str,
        source: Cell,
        bytes: int,
        predicate: str | None,
        owner: str | None,
        in_order: bool,
    ) -> None:
        """Begins to copy ``bytes`` (4, 8 or 16) to a shared address; zeros where the predicate fails; only owners
        copy. ``in_order``: the warp's lanes write side by side."""

    def async_commit(self, w: FunctionWriter) -> None: ...

    def async_wait(self, w: FunctionWriter, pending: int) -> None:
        """This thread's copies but the last ``pending`` groups are done."""

    def shared_written(self, w: FunctionWriter) -> None:
        """What this thread wrote to shared memory is to be read by matrix instructions."""

    def dot_shared(self, c: Context, op: Op) -> list[Cell]: ...

    def dot_wait(self, w: FunctionWriter, values: Sequence[Sequence[Cell]], pending: int) -> list[list[Cell]]: ...

    @property
    def boxes(self) -> Boxes: ...

    def print(self, c: Context, op: Op) -> None: ...

    def assertion(self, c: Context, op: Op) -> None: ...

    def finish(self, module: ModuleWriter, kernel: str) -> None:
        """Metadata that belongs to the module."""

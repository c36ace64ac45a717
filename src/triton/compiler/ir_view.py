"""A kernel's IR as PyTorch walks it, to learn which arguments of a user's kernel are written.

PyTorch reads operations by the names of MLIR's dialects, each after the operations inside it. Without an answer it
takes every argument for written, and then may reuse the memory of a tensor that the caller still owns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ..ir.core import Block, Function, Module, Op
from ..ir.printer import print_module
from ..ir.verifier import verify

_NAMES = {
    "for": "scf.for",
    "while": "scf.while",
    "if": "scf.if",
    "yield": "scf.yield",
    "condition": "scf.condition",
    "inline_asm": "tt.elementwise_inline_asm",
    "atomic_poll": "tt.atomic_cas",
    "desc_load": "tt.descriptor_load",
    "desc_store": "tt.descriptor_store",
}
_ENDS = {"reduce": "tt.reduce.return", "scan": "tt.scan.return"}  # what ``yield`` is called within


class context:
    """Nothing is kept in it; modules are made without one."""


def load_dialects(context: Any) -> None:
    """There are none to load."""


class _Identity:
    """Something of the IR; ``id`` tells it from the others."""

    def __init__(self, part: Any, kind: str = "") -> None:
        self._part, self._kind = part, kind

    def id(self) -> Any:
        return (self._kind, id(self._part))


class BlockView(_Identity):
    """A block; its region holds nothing else."""

    def __init__(self, block: Block) -> None:
        super().__init__(block, "block")

    def get_num_arguments(self) -> int:
        return len(self._part.args)

    def get_argument(self, index: int) -> _Identity:
        return _Identity(self._part.args[index])

    def get_parent(self) -> _Identity:
        return _Identity(self._part, "region")


class OperationView:
    """An operation in its block; functions are operations too."""

    def __init__(
        self,
        name: str,
        block: Block | None,
        op: Op | None = None,
        regions: list[Block] | None = None,
        symbol: str = "",
    ) -> None:
        self._name, self._block, self._symbol = name, block, symbol
        self._operands = op.operands if op is not None else []
        self._results = op.results if op is not None else []
        self._attrs = op.attrs if op is not None else {}
        self._regions = regions or []

    def get_name(self) -> str:
        return self._name

    def get_num_operands(self) -> int:
        return len(self._operands)

    def get_operand(self, index: int) -> _Identity:
        return _Identity(self._operands[index])

    def get_num_results(self) -> int:
        return len(self._results)

    def get_result(self, index: int) -> _Identity:
        return _Identity(self._results[index])

    def get_num_regions(self) -> int:
        return len(self._regions)

    def get_region(self, index: int) -> _Identity:
        return _Identity(self._regions[index], "region")

    def get_block(self) -> BlockView | None:
        return None if self._block is None else BlockView(self._block)

    def get_str_attr(self, name: str) -> Any:
        return self._symbol if name == "sym_name" else self._attrs.get(name)

    def get_flat_symbol_ref_attr(self, name: str) -> Any:
        return self._attrs.get(name)

    def get_bool_attr(self, name: str) -> bool:
        return bool(self._attrs.get(name))


class ModuleView:
    """A module to walk over."""

    def __init__(self, module: Module) -> None:
        self.module = module

    def __str__(self) -> str:
        return print_module(self.module)

    def verify(self) -> bool:
        """Raises for IR that breaks a rule."""
        verify(self.module)
        return True

    def walk(self, visit: Callable[[OperationView], None]) -> None:
        """Calls ``visit`` with every operation, after those inside it; the kernel comes first among the functions."""
        for function in sorted(self.module.functions.values(), key=lambda f: not f.is_kernel):
            for operation in _function(function):
                visit(operation)


def _function(function: Function) -> Iterator[OperationView]:
    # The last is the next; not recursive, as kernels nest deeper than Python's stack is for.
    left: list[OperationView | tuple[Block, str]] = [
        OperationView("tt.func", None, None, [function.body], function.name),
        (function.body, ""),
    ]
    while left:
        item = left.pop()
        if isinstance(item, OperationView):
            yield item
            continue
        block, parent = item
        for op in reversed(block.ops):
            operation = _operation(op, block, parent)
            left.append(operation)
            if operation.get_num_regions():
                left += [(region, op.kind) for region in reversed(op.regions)]


def _operation(op: Op, block: Block, parent: str) -> OperationView:
    # What is mapped over elements touches no memory.
    name = _ENDS[parent] if op.kind == "yield" and parent in _ENDS else _NAMES.get(op.kind, f"tt.{op.kind}")
    return OperationView(name, block, op, [] if op.kind == "map" else op.regions)

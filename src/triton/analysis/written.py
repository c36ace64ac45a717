"""Which kernel arguments a kernel writes through. A launcher needs it to know when overlapping tensors matter."""

from __future__ import annotations

from triton.ir.core import Block, Function, Module, Op, Value
from triton.ir.types import DescriptorType, PointerType, element_of

_WRITERS = frozenset({"store", "atomic_rmw", "atomic_cas", "desc_store"})
_OPAQUE = frozenset({"extern", "inline_asm"})


class _Tracer:
    """For every value, the set of arguments (as bits) whose address it may be made of. Loops run to a fixed point."""

    def __init__(self, module: Module, function: Function) -> None:
        self.module = module
        self.function = function
        self.everything = 0
        self.written = 0
        self.masks: dict[Value, int] = {}
        self.changed = False
        for i, arg in enumerate(function.args):
            if isinstance(element_of(arg.type), PointerType) or isinstance(arg.type, DescriptorType):
                self.masks[arg] = 1 << i
                self.everything |= 1 << i

    def run(self) -> int:
        self.changed = True
        while self.changed:
            self.changed = False
            self.block(self.function.body)
        return self.written

    def join(self, value: Value, mask: int) -> None:
        old = self.masks.get(value, 0)
        if mask | old != old:
            self.masks[value] = mask | old
            self.changed = True

    def block(self, block: Block) -> None:
        for op in block.ops:
            self.op(op)

    def op(self, op: Op) -> None:
        masks = self.masks
        mask = 0
        for operand in op.operands:
            mask |= masks.get(operand, 0)
        if op.kind in _WRITERS:
            # An address that stems from no argument (one that was loaded) may lead anywhere.
            self.written |= masks.get(op.operands[0], 0) or self.everything
        elif op.kind == "call":
            self.written |= mask if _writes(self.module, self.module.functions[op.attrs["callee"]]) else 0
        elif op.kind in _OPAQUE and not op.attrs.get("pure", True):
            self.written |= mask
        elif op.kind == "load":
            mask = 0
        if op.regions:
            self.regions(op, mask)
        if mask:
            for result in op.results:
                self.join(result, mask)

    # What goes into a region, comes out of it or around a loop is not told apart.
    def regions(self, op: Op, mask: int) -> None:
        for region in op.regions:
            if region.ops:
                for value in region.terminator.operands:
                    mask |= self.masks.get(value, 0)
        for region in op.regions:
            for arg in region.args:
                self.join(arg, mask)
            self.block(region)
        for result in op.results:
            self.join(result, mask)


def _writes(module: Module, function: Function) -> bool:
    kinds = _WRITERS | _OPAQUE
    for op in function.body.walk():
        if op.kind in kinds or (op.kind == "call" and _writes(module, module.functions[op.attrs["callee"]])):
            return True
    return False


def written_arguments(module: Module) -> tuple[int, ...]:
    """Indices of the kernel's arguments that some program may write through; never one too few.

    Requires a module with one kernel and no recursive calls.
    """
    kernel = module.kernel
    written = _Tracer(module, kernel).run()
    return tuple(i for i in range(len(kernel.args)) if written >> i & 1)

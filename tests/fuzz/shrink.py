"""Makes a failing kernel small: ops are removed one by one while the same stage goes on failing."""

from __future__ import annotations

from collections.abc import Callable

from exactness import WRITERS
from generator import Kernel

from triton.ir import parse_module, print_module, verify
from triton.ir.core import Block, Module, Op, Value
from triton.ir.ops import OPS
from triton.ir.table import IRError
from triton.ir.types import DescriptorType, PointerType, element_of


def shrink(kernel: Kernel, fails: Callable[[Kernel], bool], budget: int = 600) -> Kernel:
    """A kernel that still ``fails``, from which no single op can be taken. At most ``budget`` trials."""
    effects = [lambda op: op.kind in WRITERS, lambda op: bool(op.regions), lambda op: True]
    for wanted in (*effects, *effects[1:]):
        position = len(list(kernel.module.walk()))
        while position > 0 and budget > 0:
            position -= 1
            for change in (_drop, _bypass):
                trial = _attempt(kernel, position, change, wanted)
                if trial is None:
                    continue
                budget -= 1
                if fails(trial):
                    kernel = trial
                    position = min(position, len(list(kernel.module.walk())))
                    break
    return kernel


def _attempt(
    kernel: Kernel, position: int, change: Callable[[Module, Block, int], bool], wanted: Callable[[Op], bool]
) -> Kernel | None:
    module = parse_module(print_module(kernel.module))
    places = list(_places(module))
    if position >= len(places):
        return None
    block, index = places[position]
    if not wanted(block.ops[index]) or block.ops[index] in _fixed(module) or not change(module, block, index):
        return None
    try:
        verify(module)
    except IRError:
        return None
    _sweep(module)
    return Kernel(module, kernel.seed, kernel.grid, kernel.buffers, kernel.scalars)


def _fixed(module: Module) -> set[Op]:
    """Ops that must stay: they compute where something is written, or end a while loop."""
    found: set[Op] = set()
    work = [op.operands[0] for op in module.walk() if op.kind in (*WRITERS, "atomic_poll")]
    work += [op.operands[0] for op in module.walk() if op.kind == "condition"]
    work += [op.regions[1].terminator.operands[0] for op in module.walk() if op.kind == "while"]
    while work:
        op = work.pop().op
        if op is not None and op not in found and op.kind != "load":
            found.add(op)
            work += op.operands
    return found


def _places(module: Module):
    """Every op as (block, index), in the order of ``walk``."""

    def inside(block: Block):
        for index, op in enumerate(block.ops):
            yield block, index
            for region in op.regions:
                yield from inside(region)

    for function in module.functions.values():
        yield from inside(function.body)


def _replace(module: Module, old: Value, new: Value) -> None:
    for op in module.walk():
        op.operands = [new if v is old else v for v in op.operands]


def _drop(module: Module, block: Block, index: int) -> bool:
    """Puts constants in the place of one op's results."""
    op = block.ops[index]
    if OPS[op.kind].terminator or op.kind == "constant":
        return False
    if any(isinstance(element_of(r.type), PointerType) or isinstance(r.type, DescriptorType) for r in op.results):
        return False
    fresh = []
    for result in op.results:
        element = element_of(result.type)
        value = 1.0 if element.is_float else True if element.is_bool else 1
        fresh.append(Op("constant", (), [result.type], {"value": value}))
        _replace(module, result, fresh[-1].result)
    block.ops[index : index + 1] = fresh
    return True


def _bypass(module: Module, block: Block, index: int) -> bool:
    """Puts an operand of the same type in the place of an op's only result."""
    op = block.ops[index]
    if OPS[op.kind].terminator or len(op.results) != 1 or op.regions:
        return False
    for operand in op.operands:
        if operand.type == op.results[0].type:
            _replace(module, op.results[0], operand)
            del block.ops[index]
            return True
    return False


def _sweep(module: Module) -> None:
    """Removes ops without effect whose results nobody reads, and functions that nobody calls."""
    changed = True
    while changed:
        used = {v for op in module.walk() for v in op.operands}
        changed = False
        blocks = [b for f in module.functions.values() for b in _blocks(f.body)]
        for block in blocks:
            kept = [op for op in block.ops if _needed(op, used)]
            changed |= len(kept) != len(block.ops)
            block.ops = kept
    called = {op.attrs["callee"] for op in module.walk() if op.kind == "call"}
    for name in [n for n, f in module.functions.items() if not f.is_kernel and n not in called]:
        del module.functions[name]


def _blocks(block: Block):
    yield block
    for op in block.ops:
        for region in op.regions:
            yield from _blocks(region)


def _needed(op: Op, used: set[Value]) -> bool:
    if OPS[op.kind].terminator or any(r in used for r in op.results):
        return True
    ops = [op, *(inner for region in op.regions for inner in region.walk())]
    return any(OPS[o.kind].effects - {"read"} for o in ops) and not all(
        o.kind == "call" for o in ops if OPS[o.kind].effects
    )

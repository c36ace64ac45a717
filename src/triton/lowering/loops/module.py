"""A module of the tile IR as LLVM IR: each function over tiles becomes one function of loops.

The kernel's entry has the signature ``void NAME(ptr args, i64 begin, i64 end, ptr context)``: it runs the programs
with linear ids
from ``begin`` to ``end`` (x varies fastest). ``args`` has an 8-byte slot for each parameter; ``context`` starts with
the grid's three sizes (i32), a thread id (i32) and the pointer to the thread's scratch memory; see also checks.py.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...ir.core import Function, Module, Op
from ...ir.types import DescriptorType, TensorType, element_of, i32
from ..writer import Cell, Features, FunctionWriter, ModuleWriter, scalar_type
from . import (  # noqa: F401  (rules)
    atomic,
    chains,
    checks,
    control,
    debug,
    dot,
    epilogue,
    reduce,
    scaled,
    scan,
    siblings,
    tables,
)
from .buffers import Buffer
from .emit import Callee, FunctionEmitter
from .errors import Unsupported
from .machine import Machine

SCRATCH_OFFSET = 16
STREAMS_OFFSET = 36


@dataclass(frozen=True, slots=True)
class Lowered:
    """LLVM IR text, the kernel's name in it, the scratch bytes each thread needs, and whether programs may wait for
    one another."""

    text: str
    name: str
    scratch: int
    waits: bool


def lower(module: Module, machine: Machine, features: Features, attributes: str = "") -> Lowered:
    """The whole module. ``attributes`` are given to every function. Raises Unsupported."""
    writer = ModuleWriter(features)
    callees: dict[str, Callee] = {}
    group = writer.attributes("nounwind null_pointer_is_valid " + attributes)
    kernel = module.kernel
    functions = _callees_first(module, kernel)
    _refuse_packed_assembly(functions)
    for function in functions:
        siblings.merge(function)
        chains.join(function)
        epilogue.sink(function)
        if function is kernel:
            continue
        callees[function.name] = _function(writer, function, machine, callees, group)
    scratch = _kernel(writer, kernel, machine, callees, group)
    return Lowered(writer.text(), kernel.name, scratch, checks.waits(functions))


def _refuse_packed_assembly(functions: list[Function]) -> None:
    for function in functions:
        for op in function.body.walk():
            if op.kind == "inline_asm" and op.attrs.get("pack", 1) != 1:
                raise Unsupported("inline assembly of several elements at a time (pack > 1) is not supported here", op)


def _callees_first(module: Module, kernel: Function) -> list[Function]:
    """The functions that the kernel reaches, each after those it calls."""
    order: list[Function] = []
    done: set[str] = set()
    work: list[tuple[Function, bool]] = [(kernel, False)]
    while work:
        function, expanded = work.pop()
        if expanded:
            order.append(function)
            continue
        if function.name in done:
            continue
        done.add(function.name)
        work.append((function, True))
        work += [(module.functions[op.attrs["callee"]], False) for op in function.body.walk() if op.kind == "call"]
    return order


def _kernel(writer: ModuleWriter, function: Function, machine: Machine, callees: dict[str, Callee], group: str) -> int:
    w = writer.function(
        function.name, "void", ["ptr noalias %args", "i64 %begin", "i64 %end", "ptr %context"], attributes=group
    )
    cells = []
    for i, arg in enumerate(function.args):
        if isinstance(arg.type, (TensorType, DescriptorType)):
            raise Unsupported(f"a kernel parameter cannot be of type {arg.type}", Op("return", loc=function.loc))
        slot = w.emit(f"getelementptr i64, ptr %args, i64 {i}") if i else "%args"
        element = element_of(arg.type)
        if element.is_bool:
            byte = w.emit(f"load i8, ptr {slot}, align 8")
            cells.append(Cell(w.emit(f"icmp ne i8 {byte}, 0"), element))
        else:
            cells.append(Cell(w.emit(f"load {scalar_type(element)}, ptr {slot}, align 8"), element))
    place = w.emit(f"getelementptr i8, ptr %context, i64 {SCRATCH_OFFSET}")
    scratch = w.emit(f"load ptr, ptr {place}, align 8")
    f = FunctionEmitter(writer, function, machine, w, scratch, "%context", callees)
    f.scalars.update(zip(function.args, cells, strict=True))
    grid = _Grid(w)
    f.num_programs = grid.size
    grid.outside = w.point()

    def program(counter: str, _: list[str]) -> list[str]:
        grid.start(counter)
        f.program_id = grid.position
        f.streams = grid.streams
        f.block(function.body, lambda end: None)
        return []

    w.loop("%begin", "%end", "1", program, hint="program")
    w.ret()
    return f.arena.peak


class _Grid:
    """Program ids from the linear id, each computed once and only if asked for."""

    def __init__(self, w: FunctionWriter) -> None:
        self.w = w
        self.outside = w.point()
        self.inside = self.outside
        self.counter = ""
        self._sizes: dict[int, str] = {}
        self._wide: dict[int, str] = {}
        self._ids: dict[int, str] = {}
        self._streams = ""

    def start(self, counter: str) -> None:
        self.counter = counter
        self.inside = self.w.point()

    def size(self, axis: int) -> Cell:
        if axis not in self._sizes:
            with self.w.at(self.outside):
                place = self.w.emit(f"getelementptr i32, ptr %context, i64 {axis}") if axis else "%context"
                self._sizes[axis] = self.w.emit(f"load i32, ptr {place}, align 4")
                self._wide[axis] = self.w.emit(f"zext i32 {self._sizes[axis]} to i64")
        return Cell(self._sizes[axis], i32)

    def streams(self) -> str:
        """Whether the launch's data is too much for the caches."""
        if not self._streams:
            with self.w.at(self.outside):
                place = self.w.emit(f"getelementptr i8, ptr %context, i64 {STREAMS_OFFSET}")
                flag = self.w.emit(f"load i32, ptr {place}, align 4")
                self._streams = self.w.emit(f"icmp ne i32 {flag}, 0")
        return self._streams

    def position(self, axis: int) -> Cell:
        if axis not in self._ids:
            sizes = [self.size(a) and self._wide[a] for a in range(min(axis + 1, 2))]
            with self.w.at(self.inside):
                text = self.counter
                for size in sizes[:axis]:
                    text = self.w.emit(f"udiv i64 {text}, {size}")
                if axis < 2:
                    text = self.w.emit(f"urem i64 {text}, {sizes[axis]}")
                self._ids[axis] = self.w.emit(f"trunc i64 {text} to i32")
        return Cell(self._ids[axis], i32)


def _function(
    writer: ModuleWriter, function: Function, machine: Machine, callees: dict[str, Callee], group: str
) -> Callee:
    params: list[str] = []
    bound: list[tuple[int, list[Cell]]] = []
    for i, arg in enumerate(function.args):
        if isinstance(arg.type, TensorType):
            params.append(f"ptr %a{i}")
            continue
        if isinstance(arg.type, DescriptorType):
            raise Unsupported(
                "a descriptor cannot be passed to a function that is not inlined", Op("return", loc=function.loc)
            )
        element = element_of(arg.type)
        params.append(f"{scalar_type(element)} %a{i}")
        bound.append((i, [Cell(f"%a{i}", element)]))
    outs = [f"%r{i}" for i in range(len(function.result_types))]
    params += [f"ptr {name}" for name in outs]
    params += ["ptr %context", "ptr %scratch", "i32 %pid0", "i32 %pid1", "i32 %pid2"]
    name = f"tile.{len(callees)}"
    w = writer.function(name, "void", params, linkage="internal", attributes=group)
    f = FunctionEmitter(writer, function, machine, w, "%scratch", "%context", callees)
    for i, cells in bound:
        control.bind(f, function.args[i], cells)
    for i, arg in enumerate(function.args):
        if isinstance(arg.type, TensorType):
            f.buffers[arg] = Buffer.dense(f"%a{i}", arg.type.shape, arg.type.element)
    grid = _Grid(w)
    f.num_programs = grid.size
    f.program_id = lambda axis: Cell(f"%pid{axis}", i32)
    f.block(function.body, control.finish_return(f, outs))
    return Callee(f"@{name}", f.arena.peak)

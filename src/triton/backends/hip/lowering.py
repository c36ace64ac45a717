"""The AMD machine for the thread-level lowering: work-item ids, cross-lane moves, memory access, atomics.

Sources: LLVM "User Guide for AMDGPU Backend" (kernel calling convention, implicit arguments of code object version 5,
memory model); AMD instruction set guides ("Data Parallel Processing", "LDS Permute").
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ...ir.core import Op
from ...ir.table import IRError
from ...ir.types import ElementType, ScalarType, f32
from ...lowering.simt.context import Context, memory_bytes
from ...lowering.simt.dot import fma_dot
from ...lowering.simt.machine import SHARED_SPACE, Boxes
from ...lowering.simt.waiting import poll_loop
from ...lowering.writer import Cell, Features, FunctionWriter, ModuleWriter, float_text, llvm_type
from . import buffer, debug
from .capabilities import Chip
from .copies import MOST_LOADS, WIDTHS, DirectCopies, waitcnt
from .dots import packed_dot
from .matrix import Products, matrix_dot

_AXES = "xyz"
_SCOPE = {"cta": "workgroup", "gpu": "agent", "sys": ""}
_ORDER = {"relaxed": "monotonic", "acquire": "acquire", "release": "release", "acq_rel": "acq_rel"}
_PARAMETER = re.compile(r"ptr( align \d+)? (%arg\d+)")
_GLOBAL = "ptr addrspace(1)"
_MASKED_OFF = "@masked_off"


def features(contract: bool) -> Features:
    """What code generation may count on."""
    return Features(fma=True, half_convert=True, half_arith=True, contract=contract)


def device_function(name: str, base: str) -> str:
    """AMD's library has C's mathematical functions under names of its own: ``__ocml_sinh_f32``."""
    name = name.removesuffix("f") if base == "float" else name
    return f"__ocml_{name}_{'f32' if base == 'float' else 'f64'}"


@dataclass(frozen=True, slots=True)
class HipMachine:
    """One kernel's machine. ``printf``: the library that prints from kernels is there."""

    chip: Chip
    warps: int
    waves_per_eu: int = 0
    extra_attributes: str = ""
    printf: bool = False
    tile_side: int = 0  # of the matrix instructions; 0 for what fits
    bounded: frozenset[str] = frozenset()  # parameters that point to less than 2 GiB
    cluster: None = None  # workgroups do not reach each other's memory
    offsets: dict[tuple[str, str], tuple[str, str]] = field(default_factory=dict)  # see buffer.py
    copies: list[tuple[str, str, int]] = field(default_factory=list)  # loaded, to be written to shared memory
    direct: DirectCopies = field(default_factory=DirectCopies)

    @property
    def lanes(self) -> int:
        return self.chip.lanes

    @property
    def threads(self) -> int:
        return self.warps * self.chip.lanes

    # Kernel and program

    def kernel(self, module: ModuleWriter, name: str, params: Sequence[str]) -> FunctionWriter:
        """Pointers come in as global ones, which the runtime's metadata and the address computations want to know."""
        notes = [
            "nounwind",
            f'"amdgpu-flat-work-group-size"="{self.threads},{self.threads}"',
            '"uniform-work-group-size"="true"',
        ]
        if self.waves_per_eu:
            notes.append(f'"amdgpu-waves-per-eu"="{self.waves_per_eu}"')
        if self.extra_attributes:
            notes.append(self.extra_attributes)
        size = module.metadata(f"!{{i32 {self.threads}, i32 1, i32 1}}")
        given, casts = [], []
        for param in params:
            found = _PARAMETER.fullmatch(param)
            if found is None:
                given.append(param)
                continue
            given.append(f"{_GLOBAL}{found[1] or ''} {found[2]}.global")
            casts.append(f"{found[2]} = addrspacecast {_GLOBAL} {found[2]}.global to ptr")
            if found[2] in self.bounded:
                self.offsets[name, found[2]] = found[2], "0"
        attributes = f"{module.attributes(' '.join(notes))} !reqd_work_group_size {size}"
        w = module.function(name, "void", given, linkage="protected amdgpu_kernel", attributes=attributes)
        for line in casts:
            w.line(line)
        w.before_branch = lambda: self._write_copies(w)
        return w

    def finish(self, module: ModuleWriter, kernel: str) -> None:
        module.named_metadata(
            "llvm.module.flags", [module.metadata('!{i32 1, !"amdhsa_code_object_version", i32 500}')]
        )

    def _call(self, w: FunctionWriter, name: str, result: str = "i32", args: Sequence[str] = ()) -> str:
        callee = w.module.declare(f"llvm.amdgcn.{name}", result, [a.rsplit(" ", 1)[0] for a in args])
        return w.emit(f"call {result} {callee}({', '.join(args)})")

    def thread(self, w: FunctionWriter) -> str:
        return self._call(w, "workitem.id.x")

    def program_id(self, w: FunctionWriter, axis: int) -> str:
        return self._call(w, f"workgroup.id.{_AXES[axis]}")

    def num_programs(self, w: FunctionWriter, axis: int) -> str:
        """The hidden arguments hidden_block_count_x, _y, _z lie first, 4 bytes each."""
        implicit = "ptr addrspace(4)"
        base = self._call(w, "implicitarg.ptr", implicit)
        at = w.emit(f"getelementptr inbounds i8, {implicit} {base}, i64 {4 * axis}")
        return w.emit(f"load i32, {implicit} {at}, align 4, !invariant.load {w.module.metadata('!{}')}")

    def barrier(self, w: FunctionWriter) -> None:
        """Fences make the waits and cache operations that the memory model asks for; a single wave needs no more than
        those. While loads to shared memory are under way a fence of a workgroup would wait for them: then the wait is
        written out (waves of a workgroup share the cache, so shared memory is all there is to wait for)."""
        self._write_copies(w)
        callee = w.module.declare("llvm.amdgcn.s.barrier", "void", [], "convergent nounwind")
        scope = "wavefront" if self.direct.under_way else "workgroup"
        w.line(f'fence syncscope("{scope}") release')
        if self.direct.under_way:
            waitcnt(w, MOST_LOADS, 0)
        w.line(f"call void {callee}()")
        w.line(f'fence syncscope("{scope}") acquire')

    # Lanes

    def shuffle(self, w: FunctionWriter, kind: str, text: str, amount: str) -> str:
        """Within rows of 16 lanes by DPP, between rows by v_permlanex16 or ds_swizzle, anything else by ds_bpermute."""
        if kind == "xor" and amount.isdigit():
            found = self._exchange(w, text, int(amount))
            if found is not None:
                return found
        if kind == "index":
            source = amount
        else:
            lane = self._lane(w)
            source = w.emit(f"{ {'xor': 'xor', 'up': 'sub', 'down': 'add'}[kind] } i32 {lane}, {amount}")
            if kind != "xor":  # beyond the wave: the lane's own value
                inside = w.emit(f"icmp ult i32 {source}, {self.lanes}")
                source = w.emit(f"select i1 {inside}, i32 {source}, i32 {lane}")
        return self._call(w, "ds.bpermute", args=[f"i32 {w.emit(f'shl i32 {source}, 2')}", f"i32 {text}"])

    def _lane(self, w: FunctionWriter) -> str:
        low = self._call(w, "mbcnt.lo", args=["i32 -1", "i32 0"])
        return self._call(w, "mbcnt.hi", args=["i32 -1", f"i32 {low}"]) if self.lanes == 64 else low

    def _dpp(self, w: FunctionWriter, text: str, control: int) -> str:
        args = ["i32 poison", f"i32 {text}", f"i32 {control}", "i32 15", "i32 15", "i1 true"]
        return self._call(w, "update.dpp.i32", args=args)

    def _exchange(self, w: FunctionWriter, text: str, amount: int) -> str | None:
        """Lane ^ amount. DPP: quad_perm within 4, row_half_mirror is ^ 7, row_mirror is ^ 15, row_xmask:n is ^ n."""
        if amount in (1, 2, 3):
            order = [i ^ amount for i in range(4)]
            return self._dpp(w, text, sum(v << 2 * i for i, v in enumerate(order)))
        if amount < 16 and self.chip.has_row_xmask:
            return self._dpp(w, text, 0x160 | amount)
        if amount in (7, 15):
            return self._dpp(w, text, 0x141 if amount == 7 else 0x140)
        if amount == 4:
            return self._dpp(w, self._dpp(w, text, 0x141), 0x1B)
        if amount == 8:
            return self._dpp(w, self._dpp(w, text, 0x140), 0x141)
        if amount == 16 and self.chip.has_row_xmask:
            args = [
                "i32 poison",
                f"i32 {text}",
                f"i32 {0x76543210}",
                f"i32 {0xFEDCBA98 - (1 << 32)}",
                "i1 true",
                "i1 true",
            ]
            return self._call(w, "permlanex16.i32", args=args)
        if amount < 32:
            return self._call(w, "ds.swizzle", args=[f"i32 {text}", f"i32 {amount << 10 | 0x1F}"])
        return None

    # Memory

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
        """Lanes whose predicate fails read zeros: out of bounds of a buffer, or from a constant that is there for the
        purpose. There is no branch, so that many loads are in flight."""
        type = llvm_type(element, 0, memory=True)
        full, bytes = _vector(type, count), memory_bytes(element) * count
        space = w.emit(f"addrspacecast {pointer.typed} to {_GLOBAL}")
        if predicate is not None and op.attrs.get("volatile"):
            return self._volatile(w, space, full, type, count, bytes, predicate, others)
        raw = (
            buffer.load(w, self, pointer, bytes, predicate) if type != "ptr" and not op.attrs.get("volatile") else None
        )
        if raw is not None:
            value = w.emit(f"bitcast {buffer.word(bytes)} {raw} to {full}") if buffer.word(bytes) != full else raw
        else:
            if predicate is not None:
                space = w.emit(f"select i1 {predicate}, {_GLOBAL} {space}, {_GLOBAL} {_zeros(w)}")
            value = w.emit(f"load {_volatile(op)}{full}, {_GLOBAL} {space}, align {bytes}{_hint(w, op)}")
        if predicate is not None and others is not None:
            other = _joined(w, others, type)
            value = w.emit(f"select i1 {predicate}, {full} {value}, {full} {other}")
        return _elements(w, value, full, count)

    def _volatile(
        self,
        w: FunctionWriter,
        space: str,
        full: str,
        type: str,
        count: int,
        bytes: int,
        predicate: str,
        others: Sequence[Cell] | None,
    ) -> list[str]:
        other = _joined(w, others, type) if others is not None else "zeroinitializer"
        before, label, done = w.block, w.new_label("load"), w.new_label("load.end")
        w.cond_br(predicate, label, done)
        w.label(label)
        value = w.emit(f"load volatile {full}, {_GLOBAL} {space}, align {bytes}")
        w.br(done)
        w.label(done)
        return _elements(w, w.emit(f"phi {full} [ {value}, %{label} ], [ {other}, %{before} ]"), full, count)

    def store(self, w: FunctionWriter, pointer: Cell, values: Sequence[Cell], predicate: str | None, op: Op) -> None:
        type = llvm_type(values[0].element, 0, memory=True)
        full, bytes = _vector(type, len(values)), memory_bytes(values[0].element) * len(values)
        value = _joined(w, values, type)
        if (
            type != "ptr"
            and not op.attrs.get("volatile")
            and buffer.store(w, self, pointer, value, full, bytes, predicate)
        ):
            return
        space = w.emit(f"addrspacecast {pointer.typed} to {_GLOBAL}")
        line = f"store {_volatile(op)}{full} {value}, {_GLOBAL} {space}, align {bytes}{_hint(w, op)}"
        if predicate is None:
            w.line(line)
            return
        with w.branch(predicate, "store"):
            w.line(line)

    def atomic(self, w: FunctionWriter, op: Op, pointer: Cell, values: Sequence[Cell], predicate: str | None) -> Cell:
        kind = values[0].element
        assert isinstance(kind, ScalarType)
        before = w.block
        do, done = w.new_label("atomic"), w.new_label("atomic.end")
        if predicate is not None:
            w.cond_br(predicate, do, done)
            w.label(do)
        space = w.emit(f"addrspacecast {pointer.typed} to {_GLOBAL}")
        scope = _SCOPE[op.attrs.get("scope", "gpu")]
        sync = f' syncscope("{scope}")' if scope else ""
        order = _ORDER[op.attrs.get("sem", "acq_rel")]
        old = self._atomic(w, op, space, values, kind, f"{sync} {order}", order)
        if predicate is None:
            return old
        inside = w.block
        w.br(done)
        w.label(done)
        return Cell(w.emit(f"phi {old.type} [ {old.text}, %{inside} ], [ zeroinitializer, %{before} ]"), kind)

    def poll(self, w: FunctionWriter, op: Op, pointer: Cell, expected: Cell, timeout: Cell | None) -> str:
        """The steady counter (s_memrealtime and its like) ticks every 10 ns."""
        scope = _SCOPE[op.attrs.get("scope", "gpu")]
        sync = f'syncscope("{scope}") ' if scope else ""
        space = w.emit(f"addrspacecast {pointer.typed} to {_GLOBAL}")
        order, bytes = _ORDER[op.attrs.get("sem", "acquire")], memory_bytes(expected.element)

        def look() -> str:
            return w.emit(f"load atomic {expected.type}, {_GLOBAL} {space} {sync}{order}, align {bytes}")

        def clock() -> str:
            callee = w.module.declare("llvm.readsteadycounter", "i64", [])
            return w.emit(f"mul i64 {w.emit(f'call i64 {callee}()')}, 10")

        def rest() -> None:
            callee = w.module.declare("llvm.amdgcn.s.sleep", "void", ["i32"])
            w.line(f"call void {callee}(i32 1)")

        return poll_loop(w, expected, timeout, look, clock, rest)

    def _atomic(
        self, w: FunctionWriter, op: Op, space: str, values: Sequence[Cell], kind: ScalarType, sync: str, order: str
    ) -> Cell:
        """Where the processor has no such instruction LLVM makes a loop of compare-and-swap. A NaN operand loses in max
        and min."""
        if op.kind == "atomic_cas":
            type = f"i{kind.bits}"
            texts = [v.text if v.type == type else w.emit(f"bitcast {v.typed} to {type}") for v in values]
            failure = "monotonic" if order in ("monotonic", "release") else "acquire"
            pair = w.emit(f"cmpxchg {_GLOBAL} {space}, {type} {texts[0]}, {type} {texts[1]}{sync} {failure}")
            found = w.emit(f"extractvalue {{{type}, i1}} {pair}, 0")
            return Cell(
                found if type == values[0].type else w.emit(f"bitcast {type} {found} to {values[0].type}"), kind
            )
        (value,) = values
        name = op.attrs["op"]
        if kind.is_float:
            name = {"add": "fadd", "max": "fmax", "min": "fmin"}.get(name, name)
        elif name in ("max", "min") and not kind.is_signed:
            name = "u" + name
        name = {"inc": "uinc_wrap", "dec": "udec_wrap"}.get(name, name)
        notes = ""
        if name.startswith("f"):  # memory of this GPU, allocated as usual: its own instructions do
            empty = w.module.metadata("!{}")
            notes = f", !amdgpu.no.fine.grained.memory {empty}, !amdgpu.no.remote.memory {empty}"
        return Cell(w.emit(f"atomicrmw {name} {_GLOBAL} {space}, {value.typed}{sync}{notes}"), kind)

    # Copies ahead. CDNA: by loads that write to shared memory themselves, if their lanes lie side by side there.
    # Others are loaded where they begin and written to shared memory where the block ends; products run meanwhile.

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
        """Replicas copy too: they write the same, and a branch would end the block."""
        space = w.emit(f"addrspacecast {source.typed} to {_GLOBAL}")
        if predicate is not None:
            space = w.emit(f"select i1 {predicate}, {_GLOBAL} {space}, {_GLOBAL} {_zeros(w)}")
        if in_order and bytes in WIDTHS and bytes <= self.chip.copy_bytes:
            self.direct.load(w, target, space, bytes)
            return
        value = w.emit(f"load {_vector('i32', bytes // 4)}, {_GLOBAL} {space}, align {bytes}")
        self.copies.append((target, value, bytes))

    def _write_copies(self, w: FunctionWriter) -> None:
        for target, value, bytes in self.copies:
            w.line(f"store {_vector('i32', bytes // 4)} {value}, ptr addrspace({SHARED_SPACE}) {target}, align {bytes}")
        self.copies.clear()

    def async_commit(self, w: FunctionWriter) -> None:
        self.direct.commit()

    def async_wait(self, w: FunctionWriter, pending: int) -> None:
        self._write_copies(w)
        self.direct.wait(w, pending)

    def shared_written(self, w: FunctionWriter) -> None:
        return None

    def dot_shared(self, c: Context, op: Op) -> list[Cell]:
        raise IRError(f"{c.reason(op)}: no AMD matrix instruction reads shared memory")

    def dot_wait(self, w: FunctionWriter, values: Sequence[Sequence[Cell]], pending: int) -> list[list[Cell]]:
        return [list(cells) for cells in values]

    @property
    def boxes(self) -> Boxes:
        raise IRError("no AMD machine copies boxes")

    # Elementwise

    def elementwise(self, w: FunctionWriter, op: Op, args: Sequence[Cell]) -> list[Cell] | None:
        kind = args[0].element if args else None
        if op.kind == "addptr":
            return buffer.advance(w, self, op, args)
        if op.kind == "div" and kind == f32 and op.attrs.get("approx"):
            note = w.module.metadata("!{float 2.5}")
            return [Cell(w.emit(f"fdiv float {args[0].text}, {args[1].text}, !fpmath {note}"), f32)]
        rule = _F32.get(op.kind)
        return [Cell(rule(w, args[0].text), f32)] if rule is not None and kind == f32 else None

    def elementwise_pack(self, op: Op) -> int:
        return 1

    def dot(self, c: Context, op: Op) -> list[Cell]:
        """By a matrix instruction, else by one for a few neighbours of K, else element by element."""
        found = matrix_dot(c, op, Products(self.chip, self.warps, self.tile_side))
        if found is None:
            found = packed_dot(c, op, self.chip)
        return found if found is not None else fma_dot(c, op)

    # Diagnosis

    def print(self, c: Context, op: Op) -> None:
        debug.print_values(c, op, [self.program_id(c.w, d) for d in range(3)])

    def assertion(self, c: Context, op: Op) -> None:
        debug.check(c, op, self.printf)


def _zeros(w: FunctionWriter) -> str:
    """Where lanes read whose predicate fails."""
    return w.module.global_text(_MASKED_OFF, "internal addrspace(1) constant [16 x i8] zeroinitializer, align 16")


def _vector(type: str, count: int) -> str:
    return f"<{count} x {type}>" if count > 1 else type


def _joined(w: FunctionWriter, cells: Sequence[Cell], type: str) -> str:
    """Cells, in their memory type, as one vector."""
    texts = [w.emit(f"zext i1 {c.text} to i8") if c.type == "i1" else c.text for c in cells]
    if len(texts) == 1:
        return texts[0]
    full, vector = _vector(type, len(texts)), "poison"
    for i, text in enumerate(texts):
        vector = w.emit(f"insertelement {full} {vector}, {type} {text}, i32 {i}")
    return vector


def _elements(w: FunctionWriter, value: str, full: str, count: int) -> list[str]:
    return [value] if count == 1 else [w.emit(f"extractelement {full} {value}, i32 {i}") for i in range(count)]


def _volatile(op: Op) -> str:
    return "volatile " if op.attrs.get("volatile") else ""


def _hint(w: FunctionWriter, op: Op) -> str:
    """Data that is used once need not stay in caches."""
    if op.attrs.get("eviction") == "evict_first" or op.attrs.get("cache") in (".cs", ".cv", ".wt"):
        return f", !nontemporal {w.module.metadata('!{i32 1}')}"
    return ""


def _function(name: str) -> Callable[[FunctionWriter, str], str]:
    """An intrinsic that the code generator writes out, at most 1 ulp off, denormals kept."""
    return lambda w, x: w.intrinsic(name, "float", 0, x)


def _rsqrt(w: FunctionWriter, x: str) -> str:
    """v_rsq_f32 (1 ulp) takes denormals for zeros: those are scaled up by 2^24, and the result by 2^12."""
    small = w.emit(f"fcmp olt float {x}, {float_text(2.0**-126, 'float')}")
    scaled = w.emit(f"fmul float {x}, {float_text(2.0**24, 'float')}")
    callee = w.module.declare("llvm.amdgcn.rsq.f32", "float", ["float"])
    root = w.emit(f"call float {callee}(float {w.emit(f'select i1 {small}, float {scaled}, float {x}')})")
    factor = w.emit(f"select i1 {small}, float {float_text(4096.0, 'float')}, float 1.0")
    return w.emit(f"fmul float {root}, {factor}")


_F32 = {**{name: _function(name) for name in ("exp", "exp2", "log", "log2")}, "rsqrt": _rsqrt}

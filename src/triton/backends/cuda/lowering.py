"""The CUDA machine for the thread-level lowering: special registers, predicated memory access, atomics, printing,
assertions.

Sources: PTX ISA (sections named at each function); LLVM "User Guide for NVPTX Back-end".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...ir.core import Op
from ...ir.types import ElementType, PointerType, ScalarType, TensorType, element_of, f32, f64
from ...lowering import convert
from ...lowering.simt.context import Context, memory_bytes
from ...lowering.simt.dot import fma_dot
from ...lowering.simt.waiting import poll_loop
from ...lowering.writer import Cell, Features, FunctionWriter, ModuleWriter, float_text, llvm_type
from . import wgmma
from .boxes import TensorMemory
from .capabilities import WARP
from .mma import mma_dot

_SPECIAL = "llvm.nvvm.read.ptx.sreg."
_AXES = "xyz"
_SCOPE = {"cta": "block", "gpu": "device", "sys": ""}
_ORDER = {"relaxed": "monotonic", "acquire": "acquire", "release": "release", "acq_rel": "acq_rel"}
_FULL_WARP = "-1"


def _special(w: FunctionWriter, name: str) -> str:
    """A special register, i32."""
    callee = w.module.declare(_SPECIAL + name, "i32", [])
    return w.emit(f"call i32 {callee}()")


def features(arch: int, contract: bool) -> Features:
    """What code generation for ``arch`` may count on."""
    return Features(fma=True, half_convert=True, half_arith=arch >= 53, contract=contract)


@dataclass(frozen=True, slots=True)
class CudaCluster:
    """Programs of several thread blocks (PTX ISA, "Cluster of Cooperative Thread Arrays"), from sm_90 on."""

    blocks: int

    def rank(self, w: FunctionWriter) -> str:
        return _special(w, "cluster.ctarank")

    def barrier(self, w: FunctionWriter) -> None:
        """PTX ISA "barrier.cluster": arriving releases, waiting acquires, for all of the cluster."""
        text = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"
        w.line(f'call void asm sideeffect "{text}", "~{{memory}}"() {w.module.attributes("convergent nounwind")}')

    def remote(self, w: FunctionWriter, pointer: str, rank: str) -> str:
        """PTX ISA "mapa" on generic addresses."""
        generic = w.emit(f"addrspacecast ptr addrspace(3) {pointer} to ptr")
        pure = w.module.attributes("memory(none) nounwind willreturn")
        return w.emit(f'call ptr asm "mapa.u64 $0, $1, $2;", "=l,l,r"(ptr {generic}, i32 {rank}) {pure}')


@dataclass(frozen=True, slots=True)
class CudaMachine:
    """One kernel's machine: architecture, number of warps, and the cluster where a program is several blocks."""

    arch: int
    warps: int
    maxnreg: int | None = None
    cluster: CudaCluster | None = None
    lanes: int = WARP

    # Kernel and program

    def kernel(self, module: ModuleWriter, name: str, params: Sequence[str]) -> FunctionWriter:
        return module.function(name, "void", params, linkage="ptx_kernel")

    def finish(self, module: ModuleWriter, kernel: str) -> None:
        notes = [f'ptr @{kernel}, !"reqntidx", i32 {self.warps * self.lanes}']
        if self.cluster is not None:
            notes += [
                f'ptr @{kernel}, !"cluster_dim_{axis}", i32 {self.cluster.blocks if axis == "x" else 1}'
                for axis in _AXES
            ]
        if self.maxnreg:
            notes.append(f'ptr @{kernel}, !"maxnreg", i32 {self.maxnreg}')
        nodes = [module.metadata(f"!{{{note}}}") for note in notes]
        module.named_metadata("nvvm.annotations", nodes)

    def thread(self, w: FunctionWriter) -> str:
        return _special(w, "tid.x")

    def program_id(self, w: FunctionWriter, axis: int) -> str:
        return _special(w, f"{'clusterid' if self.cluster else 'ctaid'}.{_AXES[axis]}")

    def num_programs(self, w: FunctionWriter, axis: int) -> str:
        return _special(w, f"{'nclusterid' if self.cluster else 'nctaid'}.{_AXES[axis]}")

    def barrier(self, w: FunctionWriter) -> None:
        """PTX ISA "bar.sync": also orders memory among the program's threads. One warp needs only ``bar.warp.sync``."""
        text = "bar.sync 0;" if self.warps > 1 else f"bar.warp.sync {_FULL_WARP};"
        w.line(f'call void asm sideeffect "{text}", "~{{memory}}"() {w.module.attributes("convergent nounwind")}')

    def shuffle(self, w: FunctionWriter, kind: str, text: str, amount: str) -> str:
        """PTX ISA "shfl.sync"; the clamp operand is 31, for ``up`` 0."""
        name = {"xor": "bfly", "up": "up", "down": "down", "index": "idx"}[kind]
        callee = w.module.declare(f"llvm.nvvm.shfl.sync.{name}.i32", "i32", ["i32"] * 4, "convergent")
        clamp = "0" if kind == "up" else "31"
        return w.emit(f"call i32 {callee}(i32 {_FULL_WARP}, i32 {text}, i32 {amount}, i32 {clamp})")

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
        bytes = memory_bytes(element) * count
        words, constraint, word = _words(bytes)
        modifier = _load_modifier(op)
        if predicate is None and modifier == ".global":
            raw = self._plain_load(w, pointer, words, word, bytes)
        else:
            first = self._fallback(w, element, count, others, words, word)
            outputs = ", ".join(f"${i}" for i in range(words))
            at = words
            moves = "".join(f"mov.b{word[1:]} ${i}, ${at + 2 + i}; " for i in range(words))
            group = f"{{ {outputs} }}" if words > 1 else outputs
            vector = f".v{words}" if words > 1 else ""
            width = bytes * 8 if bytes < 4 else 32
            asm = f"{moves}@${at + 1} ld{modifier}{vector}.b{width} {group}, [ ${at} ];"
            marks = ",".join(["=" + constraint] * words + ["l", "b"] + [constraint] * words)
            result = word if words == 1 else "{" + ", ".join([word] * words) + "}"
            args = [f"ptr {pointer.text}", f"i1 {predicate or 'true'}", *(f"{word} {t}" for t in first)]
            call = w.emit(f'call {result} asm sideeffect "{asm}", "{marks},~{{memory}}"({", ".join(args)})')
            raw = [call] if words == 1 else [w.emit(f"extractvalue {result} {call}, {i}") for i in range(words)]
        return _unpack(w, raw, word, element, count)

    def _plain_load(self, w: FunctionWriter, pointer: Cell, words: int, word: str, bytes: int) -> list[str]:
        space = w.emit(f"addrspacecast ptr {pointer.text} to ptr addrspace(1)")
        if bytes == 1:
            return [w.emit(f"zext i8 {w.emit(f'load i8, ptr addrspace(1) {space}')} to i16")]
        full = f"<{words} x {word}>" if words > 1 else word
        loaded = w.emit(f"load {full}, ptr addrspace(1) {space}, align {bytes}")
        return [loaded] if words == 1 else [w.emit(f"extractelement {full} {loaded}, i32 {i}") for i in range(words)]

    def _fallback(
        self, w: FunctionWriter, element: ElementType, count: int, others: Sequence[Cell] | None, words: int, word: str
    ) -> list[str]:
        if others is None:
            return ["0"] * words
        return _pack(w, list(others), words, word)

    def store(self, w: FunctionWriter, pointer: Cell, values: Sequence[Cell], predicate: str | None, op: Op) -> None:
        bytes = memory_bytes(values[0].element) * len(values)
        words, constraint, word = _words(bytes)
        packed = _pack(w, values, words, word)
        cache = op.attrs.get("cache", "")
        hint = {"evict_first": ".L1::evict_first", "evict_last": ".L1::evict_last"}.get(
            op.attrs.get("eviction", ""), ""
        )
        inputs = ", ".join(f"${i + 2}" for i in range(words))
        group = f"{{ {inputs} }}" if words > 1 else inputs
        vector = f".v{words}" if words > 1 else ""
        asm = f"@$1 st.global{cache}{hint}{vector}.b{min(bytes * 8, 32)} [ $0 ], {group};"
        marks = ",".join(["l", "b"] + [constraint] * words)
        args = [f"ptr {pointer.text}", f"i1 {predicate or 'true'}", *(f"{word} {t}" for t in packed)]
        w.line(f'call void asm sideeffect "{asm}", "{marks},~{{memory}}"({", ".join(args)})')

    def atomic(self, w: FunctionWriter, op: Op, pointer: Cell, values: Sequence[Cell], predicate: str | None) -> Cell:
        kind = values[0].element
        assert isinstance(kind, ScalarType)
        before = w.block
        do, done = w.new_label("atomic"), w.new_label("atomic.end")
        if predicate is not None:
            w.cond_br(predicate, do, done)
            w.label(do)
        space = w.emit(f"addrspacecast ptr {pointer.text} to ptr addrspace(1)")
        scope = _SCOPE[op.attrs.get("scope", "gpu")]
        sync = f' syncscope("{scope}")' if scope else ""
        order = _ORDER[op.attrs.get("sem", "acq_rel")]
        old = self._atomic(w, op, space, values, kind, sync, order)
        if predicate is None:
            return old
        inside = w.block
        w.br(done)
        w.label(done)
        zero = "0.0" if kind.is_float and not kind.is_fp8 else "0"
        if old.type == "bfloat":
            zero = "0xR0000"
        return Cell(w.emit(f"phi {old.type} [ {old.text}, %{inside} ], [ {zero}, %{before} ]"), kind)

    def poll(self, w: FunctionWriter, op: Op, pointer: Cell, expected: Cell, timeout: Cell | None) -> str:
        """PTX ISA "ld", "nanosleep", "%globaltimer"."""
        constraint = {16: "h", 32: "r", 64: "l"}[expected.element.bits]
        order, scope = op.attrs.get("sem", "acquire"), op.attrs.get("scope", "gpu")
        asm = f"ld.{order}.{scope}.global.b{expected.element.bits} $0, [ $1 ];"

        def look() -> str:
            marks = f"={constraint},l,~{{memory}}"
            return w.emit(f'call {expected.type} asm sideeffect "{asm}", "{marks}"(ptr {pointer.text})')

        def clock() -> str:
            return w.emit('call i64 asm sideeffect "mov.u64 $0, %globaltimer;", "=l,~{memory}"()')

        def rest() -> None:
            w.line('call void asm sideeffect "nanosleep.u32 40;", "~{memory}"()')

        return poll_loop(w, expected, timeout, look, clock, rest)

    def _atomic(
        self, w: FunctionWriter, op: Op, space: str, values: Sequence[Cell], kind: ScalarType, sync: str, order: str
    ) -> Cell:
        if op.kind == "atomic_cas":
            expected, new = values
            type = f"i{kind.bits}"
            texts = [v.text if v.type == type else w.emit(f"bitcast {v.typed} to {type}") for v in (expected, new)]
            failure = "monotonic" if order in ("monotonic", "release") else "acquire"
            pair = w.emit(
                f"cmpxchg ptr addrspace(1) {space}, {type} {texts[0]}, {type} {texts[1]}{sync} {order} {failure}"
            )
            found = w.emit(f"extractvalue {{{type}, i1}} {pair}, 0")
            return Cell(found if type == expected.type else w.emit(f"bitcast {type} {found} to {expected.type}"), kind)
        (value,) = values
        name = op.attrs["op"]
        if kind.is_float and name in ("max", "min"):
            return self._float_extremum(w, name, space, value, kind, sync, order)
        if kind.is_float:
            name = {"add": "fadd"}.get(name, name)
        elif name in ("max", "min") and not kind.is_signed:
            name = "u" + name
        name = {"inc": "uinc_wrap", "dec": "udec_wrap"}.get(name, name)
        text = w.emit(f"atomicrmw {name} ptr addrspace(1) {space}, {value.typed}{sync} {order}")
        return Cell(text, kind)

    def _float_extremum(
        self, w: FunctionWriter, name: str, space: str, value: Cell, kind: ScalarType, sync: str, order: str
    ) -> Cell:
        """By integers: floats of one sign are ordered as their bits, negative ones the other way round; a NaN changes
        nothing."""
        if kind.bits not in (32, 64):
            text = w.emit(f"atomicrmw f{name} ptr addrspace(1) {space}, {value.typed}{sync} {order}")
            return Cell(text, kind)
        integer = f"i{kind.bits}"
        added = w.emit(f"fadd {value.type} {value.text}, 0.0")  # -0.0 becomes 0.0, so that signs order as numbers
        bits = w.emit(f"bitcast {value.type} {added} to {integer}")
        number = w.emit(f"fcmp ord {value.type} {value.text}, {value.text}")
        negative = w.emit(f"icmp slt {integer} {bits}, 0")
        labels = [w.new_label(f"extremum.{n}") for n in ("number", "up", "down", "nan", "end")]
        w.cond_br(number, labels[0], labels[3])
        w.label(labels[0])
        w.cond_br(negative, labels[2], labels[1])
        olds = []
        for label, operation in ((labels[1], name), (labels[2], "umin" if name == "max" else "umax")):
            w.label(label)
            olds.append(
                (w.emit(f"atomicrmw {operation} ptr addrspace(1) {space}, {integer} {bits}{sync} {order}"), label)
            )
            w.br(labels[4])
        w.label(labels[3])
        olds.append((w.emit(f"atomicrmw or ptr addrspace(1) {space}, {integer} 0{sync} {order}"), labels[3]))
        w.br(labels[4])
        w.label(labels[4])
        old = w.emit(f"phi {integer} " + ", ".join(f"[ {text}, %{label} ]" for text, label in olds))
        return Cell(w.emit(f"bitcast {integer} {old} to {value.type}"), kind)

    # Elementwise

    def elementwise(self, w: FunctionWriter, op: Op, args: Sequence[Cell]) -> list[Cell] | None:
        if op.kind == "inline_asm":
            return self._inline_asm(w, op, args)
        kind = args[0].element if args else None
        if op.kind == "div" and kind == f32 and op.attrs.get("approx"):
            return [Cell(_div(w, args[0].text, args[1].text), f32)]
        if op.kind == "exp2" and kind == f32 and op.attrs.get("flush"):
            return [Cell(_call(w, "ex2.approx.ftz.f32", args[0].text), f32)]
        rule = _FAST_F32.get(op.kind)
        if rule is not None and kind == f32:
            return [Cell(rule(w, args[0].text), f32)]
        return None

    def elementwise_pack(self, op: Op) -> int:
        return op.attrs.get("pack", 1) if op.kind == "inline_asm" else 1

    def _inline_asm(self, w: FunctionWriter, op: Op, args: Sequence[Cell]) -> list[Cell]:
        """Each group of ``pack`` values narrower than 32 bits is passed in packed 32-bit registers."""
        pack = op.attrs.get("pack", 1)
        operands: list[str] = []
        for start in range(0, len(args), pack):
            group = args[start : start + pack]
            operands += _asm_operands(w, group)
        kinds = [element_of(r.type) for r in op.results]
        shapes = [_asm_shape(kind, pack) for kind in kinds]
        types = [t for shape in shapes for t in shape]
        result = types[0] if len(types) == 1 else "{" + ", ".join(types) + "}"
        effect = "" if op.attrs.get("pure", True) else "sideeffect "
        text = op.attrs["text"].replace("\\", "\\5C").replace('"', "\\22").replace("\n", "\\0A").replace("\t", "\\09")
        call = w.emit(f'call {result} asm {effect}"{text}", "{op.attrs["constraints"]}"({", ".join(operands)})')
        raw = [call] if len(types) == 1 else [w.emit(f"extractvalue {result} {call}, {i}") for i in range(len(types))]
        cells: list[Cell] = []
        for kind, shape in zip(kinds, shapes, strict=True):
            mine, raw = raw[: len(shape)], raw[len(shape) :]
            cells += _asm_results(w, mine, shape, kind, pack)
        return cells

    def dot(self, c: Context, op: Op) -> list[Cell]:
        found = mma_dot(c, op, self.arch)
        return found if found is not None else fma_dot(c, op)

    # Asynchronous work

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
        """PTX ISA "cp.async": the source size 0 fills the target with zeros."""
        size = str(bytes)
        if predicate is not None:
            size = w.emit(f"select i1 {predicate}, i32 {bytes}, i32 0")
        cache = "cg" if bytes == 16 else "ca"
        asm = f"@$3 cp.async.{cache}.shared.global [ $0 ], [ $1 ], {bytes}, $2;"
        address = w.emit(f"ptrtoint ptr addrspace(3) {target} to i32")
        args = f"i32 {address}, ptr {source.text}, i32 {size}, i1 {owner or 'true'}"
        w.line(f'call void asm sideeffect "{asm}", "r,l,r,b,~{{memory}}"({args})')

    def async_commit(self, w: FunctionWriter) -> None:
        w.line('call void asm sideeffect "cp.async.commit_group;", "~{memory}"()')

    def async_wait(self, w: FunctionWriter, pending: int) -> None:
        w.line(f'call void asm sideeffect "cp.async.wait_group {pending};", "~{{memory}}"()')
        self.shared_written(w)

    def shared_written(self, w: FunctionWriter) -> None:
        """PTX ISA "Async Proxy": wgmma reads shared memory through another proxy than ordinary writes."""
        if self.arch >= 90:
            w.line('call void asm sideeffect "fence.proxy.async.shared::cta;", "~{memory}"()')

    def dot_shared(self, c: Context, op: Op) -> list[Cell]:
        return wgmma.dot_shared(c, op)

    def dot_wait(self, w: FunctionWriter, values: Sequence[Sequence[Cell]], pending: int) -> list[list[Cell]]:
        return wgmma.dot_wait(w, values, pending)

    @property
    def boxes(self) -> TensorMemory:
        return TensorMemory()

    # Diagnosis

    def print(self, c: Context, op: Op) -> None:
        """``vprintf`` (CUDA C++ Programming Guide, "Formatted Output"): one line for each element, printed by its first
        replica."""
        w = c.w
        programs = [self.program_id(w, d) for d in range(3)]
        many = len(op.operands) > 1
        if not op.operands:
            with w.branch(c.first_thread(), "print"):
                self._printf(
                    w, "pid (%u, %u, %u) " + _escaped(op.attrs["prefix"]) + "\n", [f"i32 {p}" for p in programs]
                )
        for number, value in enumerate(op.operands):
            label = _escaped(op.attrs["prefix"]) + (f"(operand {number}) " if many else "")
            tensor = isinstance(value.type, TensorType)
            layout = c.layout(value) if tensor else None
            owner = c.is_first_replica(layout) if layout is not None else c.first_thread()
            for r, cell in enumerate(c.tile(value)):
                predicate = c.both(owner, c.in_range(layout, r) if layout is not None else None)
                where = [c.coordinate(layout, d, r) for d in range(len(layout.shape))] if layout is not None else []
                with w.branch(predicate or "true", "print"):
                    form, text = _printed(w, cell, bool(op.attrs.get("hex", False)))
                    sizes = layout.shape if layout is not None else ()
                    index = "(" + ", ".join(f"%{len(str(size - 1))}u" for size in sizes) + ")"
                    line = f"pid (%u, %u, %u) idx {index} {label}{form}\n"
                    self._printf(w, line, [f"i32 {t}" for t in (*programs, *where)] + [text])

    def _printf(self, w: FunctionWriter, form: str, args: Sequence[str]) -> None:
        callee = w.module.declare("vprintf", "i32", ["ptr", "ptr"])
        layout = "{" + ", ".join(a.split(" ")[0] for a in args) + "}"
        buffer = w.alloca(layout, align=8)
        for i, arg in enumerate(args):
            slot = w.emit(f"getelementptr inbounds {layout}, ptr {buffer}, i32 0, i32 {i}")
            w.line(f"store {arg}, ptr {slot}")
        w.emit(f"call i32 {callee}(ptr {w.module.string(form.encode() + bytes(1))}, ptr {buffer})")

    def assertion(self, c: Context, op: Op) -> None:
        """``__assertfail`` of the device runtime stops the kernel with a message that names file, line and function."""
        w = c.w
        value = op.operands[0]
        tensor = isinstance(value.type, TensorType)
        layout = c.layout(value) if tensor else None
        mask = c.tile(op.operands[1]) if len(op.operands) > 1 else None
        loc = op.loc
        strings = [
            w.module.string(text.encode() + bytes(1))
            for text in (op.attrs["message"], loc.file if loc else "?", loc.function if loc else "?")
        ]
        callee = w.module.declare("__assertfail", "void", ["ptr", "ptr", "i32", "ptr", "i64"])
        for r, cell in enumerate(c.tile(value)):
            failed: str | None = w.emit(f"xor i1 {cell.text}, true")
            if layout is not None:
                failed = c.both(failed, c.in_range(layout, r))
            if mask is not None:
                failed = c.both(failed, mask[r].text)
            assert failed is not None
            with w.branch(failed, "assert"):
                args = f"ptr {strings[0]}, ptr {strings[1]}, i32 {loc.line if loc else 0}, ptr {strings[2]}, i64 1"
                w.line(f"call void {callee}({args})")


def _words(bytes: int) -> tuple[int, str, str]:
    """How an access of ``bytes`` is split into registers: their number, constraint letter and LLVM type."""
    return (1, "h", "i16") if bytes < 4 else (bytes // 4, "r", "i32")


def _load_modifier(op: Op) -> str:
    """PTX ISA "ld": cache operators and eviction priority; volatile loads have no modifier."""
    if op.attrs.get("volatile"):
        return ".volatile.global"
    hint = {"evict_first": ".L1::evict_first", "evict_last": ".L1::evict_last"}.get(op.attrs.get("eviction", ""), "")
    return f".global{op.attrs.get('cache', '')}{hint}"


def _pack(w: FunctionWriter, values: Sequence[Cell], words: int, word: str) -> list[str]:
    """Cells as ``words`` registers."""
    type = llvm_type(values[0].element, 0, memory=True)
    texts = [w.emit(f"zext i1 {v.text} to i8") if v.type == "i1" else v.text for v in values]
    if isinstance(values[0].element, PointerType):
        texts = [w.emit(f"ptrtoint {type} {t} to i64") for t in texts]
        type = "i64"
    if len(texts) == 1 and type == word:
        return texts
    if len(texts) == 1 and type == "i8":
        return [w.emit(f"zext i8 {texts[0]} to i16")]
    full, vector = f"<{len(texts)} x {type}>", "poison"
    for i, text in enumerate(texts):
        vector = w.emit(f"insertelement {full} {vector}, {type} {text}, i32 {i}")
    if words == 1:
        return [w.emit(f"bitcast {full} {vector} to {word}")]
    cast = w.emit(f"bitcast {full} {vector} to <{words} x {word}>")
    return [w.emit(f"extractelement <{words} x {word}> {cast}, i32 {i}") for i in range(words)]


def _unpack(w: FunctionWriter, raw: Sequence[str], word: str, element: ElementType, count: int) -> list[str]:
    """Registers as ``count`` elements of the memory type."""
    type = llvm_type(element, 0, memory=True)
    pointer = isinstance(element, PointerType)
    inner = "i64" if pointer else type
    if len(raw) == 1 and count == 1 and inner == word:
        texts = list(raw)
    elif len(raw) == 1 and count == 1 and inner == "i8":
        texts = [w.emit(f"trunc {word} {raw[0]} to i8")]
    else:
        full = word
        value = raw[0]
        if len(raw) > 1:
            full, value = f"<{len(raw)} x {word}>", "poison"
            for i, text in enumerate(raw):
                value = w.emit(f"insertelement {full} {value}, {word} {text}, i32 {i}")
        target = f"<{count} x {inner}>" if count > 1 else inner
        cast = w.emit(f"bitcast {full} {value} to {target}")
        texts = [cast] if count == 1 else [w.emit(f"extractelement {target} {cast}, i32 {i}") for i in range(count)]
    return [w.emit(f"inttoptr i64 {t} to {type}") for t in texts] if pointer else texts


# Fast single-precision functions: PTX ISA "ex2", "rsqrt"; errors at most 2 ulp, denormals kept
# --------------------------


def _call(w: FunctionWriter, instruction: str, x: str) -> str:
    return w.emit(f'call float asm "{instruction} $0, $1;", "=f,f"(float {x})')


def _exp2(w: FunctionWriter, x: str) -> str:
    """ex2 flushes denormal results, or makes them inexactly: they are computed 2^32 higher and scaled down, exactly."""
    asm = (
        "{ .reg .pred p; .reg .f32 t; setp.lt.f32 p, $1, 0fC2FC0000; mov.f32 t, $1; @p add.f32 t, t, 0f42000000; "
        "ex2.approx.ftz.f32 $0, t; @p mul.f32 $0, $0, 0f2F800000; }"
    )  # -126, 32 and 2^-32
    return w.emit(f'call float asm "{asm}", "=f,f"(float {x})')


def _exp(w: FunctionWriter, x: str) -> str:
    """2^(x log2 e). The product is carried in two parts, t + r, so that large x lose nothing: 2^t + 2^t r ln 2.

    x is first brought to where the result is known to be 0 or infinite (and r is not negative there); a NaN stays.
    """
    x = w.intrinsic("maximum", "float", 0, x, _literal(-150.0))
    x = w.intrinsic("minimum", "float", 0, x, _literal(_EXP_TOP))
    t = w.emit(f"fmul float {x}, {_literal(_LOG2E)}")
    rest = w.intrinsic("fma", "float", 0, x, _literal(_LOG2E), w.emit(f"fneg float {t}"))
    rest = w.intrinsic("fma", "float", 0, x, _literal(_LOG2E_LOW), rest)
    power = _call(w, "ex2.approx.f32", t)
    return w.intrinsic("fma", "float", 0, power, w.emit(f"fmul float {rest}, {_literal(0.6931471805599453)}"), power)


def _div(w: FunctionWriter, x: str, y: str) -> str:
    """PTX ISA "div": at most 2 ulp over the whole range."""
    return w.emit(f'call float asm "div.full.f32 $0, $1, $2;", "=f,f,f"(float {x}, float {y})')


def _rsqrt(w: FunctionWriter, x: str) -> str:
    return _call(w, "rsqrt.approx.f32", x)


def _literal(value: float) -> str:
    return float_text(value, "float")


_LOG2E = 1.44269502162933349609375  # log2(e) rounded to float; the next line is what that leaves
_LOG2E_LOW = 1.92596299112661744e-8
_EXP_TOP = 89.0  # e^89 is infinite in float, and the rest r of 89 log2(e) is positive
_FAST_F32 = {"exp": _exp, "exp2": _exp2, "rsqrt": _rsqrt}


# Inline assembly ----------------------------------------------------------------------------------------------------


def _asm_shape(kind: ElementType, pack: int) -> list[str]:
    """The LLVM types that a group of ``pack`` values takes: whole 32-bit registers when packed, else one each."""
    bits = max(8, kind.bits)
    if pack > 1 and bits < 32:
        return ["i32"] * -(-bits * pack // 32)
    type = llvm_type(kind)
    return ["i16" if type == "i8" else type] * pack


def _asm_operands(w: FunctionWriter, group: Sequence[Cell]) -> list[str]:
    shape = _asm_shape(group[0].element, len(group))
    if len(group) > 1 and shape[0] == "i32" and max(8, group[0].element.bits) < 32:
        return [f"i32 {t}" for t in _pack(w, group, len(shape), "i32")]
    found = []
    for cell in group:
        if cell.type == "i8":
            found.append(f"i16 {w.emit(f'zext i8 {cell.text} to i16')}")
        else:
            found.append(cell.typed)
    return found


def _asm_results(
    w: FunctionWriter, raw: Sequence[str], shape: Sequence[str], kind: ElementType, pack: int
) -> list[Cell]:
    if pack > 1 and shape[0] == "i32" and max(8, kind.bits) < 32:
        texts = _unpack(w, raw, "i32", kind, pack)
        return [Cell(t, kind) for t in texts]
    return [Cell(w.emit(f"trunc i16 {t} to i8") if llvm_type(kind) == "i8" else t, kind) for t in raw]


# Printing -----------------------------------------------------------------------------------------------------------


def _escaped(text: str) -> str:
    return text.replace("%", "%%")


def _printed(w: FunctionWriter, cell: Cell, hexadecimal: bool) -> tuple[str, str]:
    """A printf conversion and its argument."""
    kind = cell.element
    if isinstance(kind, PointerType):
        return "0x%016llx", f"i64 {w.emit(f'ptrtoint {cell.typed} to i64')}"
    if hexadecimal:
        width = max(8, kind.bits)
        text = cell.text
        if kind.is_float and not kind.is_fp8:
            text = w.emit(f"bitcast {cell.typed} to i{kind.bits}")
        if kind.bits < 64:
            text = w.emit(f"zext {'i1' if kind.is_bool else f'i{kind.bits}'} {text} to i64")
        return f"0x%0{width // 4}llx", f"i64 {text}"
    if kind.is_float:
        return "%g", f"double {convert.cast(w, cell, f64).text}"
    if kind.bits < 64:
        extend = "sext" if kind.is_signed else "zext"
        return "%lld", f"i64 {w.emit(f'{extend} {cell.typed} to i64')}"
    return ("%lld" if kind.is_signed else "%llu"), f"i64 {cell.text}"

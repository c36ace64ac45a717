"""Boxes of global tensors copied by the tensor memory accelerator (compute capability 9.0 on).

Sources: PTX ISA, "cp.async.bulk.tensor", "cp.reduce.async.bulk.tensor", "mbarrier", "Async Proxy"; CUDA Driver API,
"Tensor Map Object Management" (cuTensorMapEncodeTiled).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from ...ir.core import Function
from ...ir.types import PointerType, ScalarType, TensorType
from ...layouts.boxes import boxes
from ...lowering.simt.machine import Pieces
from ...lowering.writer import Cell, FunctionWriter, ModuleWriter

MAP_BYTES = 128
ALIGNMENT = 16
"""A box elsewhere along the last axis is an illegal instruction, as is writing one that begins before the tensor (seen
on compute capability 9.0)."""
# CUtensorMapDataType. What is only moved may be of any type of its width.
_TYPES = {"f16": 6, "bf16": 9, "f32": 7, "f64": 8, "i32": 3, "u32": 2, "i64": 5, "u64": 4, "i16": 1, "u16": 1}
_SWIZZLE = {16: 0, 32: 1, 64: 2, 128: 3}  # CUtensorMapSwizzle


def _width(element: ScalarType) -> int:
    return max(1, element.bits // 8)


def can_load(block: TensorType, padding: str) -> bool:
    """Whether boxes like this one can be copied to shared memory."""
    element = block.element
    if not isinstance(element, ScalarType) or boxes(block.shape, _width(element)) is None:
        return False
    return padding == "zero" or element.name in ("f16", "bf16", "f32", "f64")


def can_store(block: TensorType, update: str) -> bool:
    """Whether boxes like this one can be written, or combined with what is there."""
    return can_load(block, "zero") and update == "store"


def map_plans(kernel: Function) -> bytes:
    """What the driver must know to make each parameter that holds a tensor map: see ``cuda_launch``."""
    plans = b""
    for attrs in kernel.arg_attrs:
        if "map_of" not in attrs:
            continue
        slots, shape = attrs["map_of"], attrs["map_box"]
        pointer = kernel.args[slots[0]].type
        assert isinstance(pointer, PointerType)
        cut = boxes(shape, _width(pointer.pointee))
        assert cut is not None
        type = _TYPES.get(pointer.pointee.name, 0)  # 8 bits: CU_TENSOR_MAP_DATA_TYPE_UINT8
        fill = int(attrs["map_padding"] == "nan")
        box = [*reversed(cut.piece), 0, 0, 0, 0][:5]
        rest = [0] * (11 - len(slots))
        numbers = [len(shape), type, _SWIZZLE[cut.swizzle], fill, *box, *slots, *rest]
        plans += struct.pack("<20i11q", *numbers, *attrs["map_values"], *rest)
    return plans


class TensorMemory:
    """How a program's threads copy boxes: one elected lane of one warp begins, all wait."""

    def parameter(self, module: ModuleWriter, kernel: str, number: int) -> str:
        """A parameter that may be used where it lies: LLVM's "grid_constant" annotation."""
        which = module.metadata(f"!{{i32 {number + 1}}}")
        note = module.metadata(f'!{{ptr @{kernel}, !"grid_constant", {which}}}')
        module.named_metadata("nvvm.annotations", [note])
        return f"ptr byval([{MAP_BYTES} x i8]) align 64 %arg{number}"

    def make_barriers(self, w: FunctionWriter, address: str, count: int, copies: int, first: str) -> None:
        lines = [f"@$1 mbarrier.init.shared::cta.b64 [ $0+{8 * i} ], {copies};" for i in range(count)]
        text = " ".join([*lines, "fence.proxy.async.shared::cta;"])
        w.line(f'call void asm sideeffect "{text}", "r,b,~{{memory}}"(i32 {address}, i1 {first})')

    def wait(self, w: FunctionWriter, barrier: str, parity: str) -> None:
        text = (
            "{ .reg .pred done; again: mbarrier.try_wait.parity.shared::cta.b64 done, [ $0 ], $1; "
            "@!done bra.uni again; }"
        )
        w.line(f'call void asm sideeffect "{text}", "r,r,~{{memory}}"(i32 {barrier}, i32 {parity})')

    def load(
        self, w: FunctionWriter, map: str, pieces: Pieces, address: str, barrier: str, bytes: int, wanted: str
    ) -> None:
        """The barrier learns how many bytes will arrive; the copies name it."""
        rank = len(pieces[0][1])
        name = f"cp.async.bulk.tensor.{rank}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
        lines = ["{ .reg .pred e; elect.sync _|e, -1; and.pred e, e, $3;"]
        lines.append(f"@e mbarrier.arrive.expect_tx.shared::cta.b64 _, [ $2 ], {bytes};")
        operands = _Operands([f"ptr {map}", f"i32 {address}", f"i32 {barrier}", f"i1 {wanted}"], ["l", "r", "r", "b"])
        for place, coordinates in pieces:
            lines.append(f"@e {name} [ $1+{place} ], [ $0, {operands.group(coordinates)} ], [ $2 ];")
        operands.call(w, " ".join([*lines, "}"]))

    def copy(self, w: FunctionWriter, target: str, source: Cell, bytes: int, size: str, owner: str | None) -> None:
        """PTX ISA "cp.async": what the source lacks of the target's size becomes zeros."""
        address = w.emit(f"ptrtoint ptr addrspace(3) {target} to i32")
        asm = f"@$3 cp.async.{'cg' if bytes == 16 else 'ca'}.shared.global [ $0 ], [ $1 ], {bytes}, $2;"
        args = f"i32 {address}, ptr {source.text}, i32 {size}, i1 {owner or 'true'}"
        w.line(f'call void asm sideeffect "{asm}", "r,l,r,b,~{{memory}}"({args})')

    def store(self, w: FunctionWriter, map: str, pieces: Pieces, address: str, update: str, first: str) -> None:
        """Shared memory may be written again when this is done; global memory is written by ``written``."""
        rank = len(pieces[0][1])
        operation = "" if update == "store" else f".{update}"
        kind = f"cp{'.reduce' if operation else ''}.async.bulk.tensor.{rank}d"
        name = f"{kind}.global.shared::cta{operation}.tile.bulk_group"
        operands = _Operands([f"ptr {map}", f"i32 {address}", f"i1 {first}"], ["l", "r", "b"])
        lines = [f"@$2 {name} [ $0, {operands.group(at)} ], [ $1+{place} ];" for place, at in pieces]
        lines += ["@$2 cp.async.bulk.commit_group;", "@$2 cp.async.bulk.wait_group.read 0;"]
        operands.call(w, " ".join(lines))

    def written(self, w: FunctionWriter) -> None:
        w.line('call void asm sideeffect "cp.async.bulk.wait_group 0;", "~{memory}"()')

    def follow(self, w: FunctionWriter) -> None:
        w.line('call void asm sideeffect "fence.proxy.async;", "~{memory}"()')


class _Operands:
    """Operands of a piece of assembly; equal ones are one."""

    def __init__(self, texts: list[str], marks: list[str]) -> None:
        self.texts, self.marks = texts, marks

    def group(self, coordinates: Sequence[str]) -> str:
        """Coordinates in braces."""
        found = []
        for text in (f"i32 {c}" for c in coordinates):
            if text not in self.texts:
                self.texts.append(text)
                self.marks.append("r")
            found.append(f"${self.texts.index(text)}")
        return "{" + ", ".join(found) + "}"

    def call(self, w: FunctionWriter, text: str) -> None:
        marks, args = ",".join(self.marks), ", ".join(self.texts)
        group = w.module.attributes("convergent nounwind")
        w.line(f'call void asm sideeffect "{text}", "{marks},~{{memory}}"({args}) {group}')

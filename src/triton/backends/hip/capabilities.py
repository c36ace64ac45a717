"""What each AMD architecture can do. Sources: the AMD instruction set architecture guides (RDNA 2 to 4, CDNA 2 to 4);
LLVM "User Guide for AMDGPU Backend" (processors, code object version 5, register allocation)."""

from __future__ import annotations

from dataclasses import dataclass

from ...ir.capabilities import Capabilities

MAX_THREADS = 1024
SIMDS = 4


@dataclass(frozen=True, slots=True)
class Chip:
    """One processor.

    ``matrix``      family of its matrix instructions: ``wmma11``, ``wmma12``, ``mfma2``, ``mfma3``, ``mfma4`` or none.
    ``xf32``        they take f32 shortened to 10 bits of mantissa; ``scaled``: 8- and 4-bit floats with block scales.
    ``copy_bytes``  most bytes of a lane that a load may write to shared memory itself; 0: none may.
    ``float8``      IR names of the two 8-bit floats its matrix instructions take.
    ``registers``   vector registers a SIMD has for each lane; ``granule``: in steps of how many they are given out.
    ``waves``       most waves of a SIMD.
    """

    lanes: int
    matrix: str = ""
    float8: tuple[str, ...] = ()
    shared: int = 65536
    registers: int = 512
    granule: int = 8
    waves: int = 8
    xf32: bool = False
    scaled: bool = False
    copy_bytes: int = 0

    @property
    def buffer_word(self) -> int:
        """The last word of a buffer descriptor: 32-bit data, bounds counted in bytes (ISA guides, "Buffer Resource
        Descriptor")."""
        if self.lanes == 64:
            return 0x00020000
        return 0x31004000 if self.matrix else 0x31014000

    @property
    def has_row_xmask(self) -> bool:
        """DPP ``row_xmask`` and ``v_permlanex16`` came with RDNA."""
        return self.lanes == 32


_OCP, _FNUZ = ("f8e4m3", "f8e5m2"), ("f8e4b8", "f8e5b16")
_RDNA3 = Chip(32, "wmma11", registers=1536, granule=24, waves=16)
_RDNA3_SMALL = Chip(32, "wmma11", registers=1024, granule=16, waves=16)
_RDNA4 = Chip(32, "wmma12", _OCP, registers=1536, granule=24, waves=16)
CHIPS = {
    "gfx1030": Chip(32, registers=1024, granule=16, waves=16),
    "gfx1100": _RDNA3,
    "gfx1101": _RDNA3,
    "gfx1102": _RDNA3_SMALL,
    "gfx1151": _RDNA3,
    "gfx1200": _RDNA4,
    "gfx1201": _RDNA4,
    "gfx90a": Chip(64, "mfma2", copy_bytes=4),
    "gfx942": Chip(64, "mfma3", _FNUZ, xf32=True, copy_bytes=4),
    "gfx950": Chip(64, "mfma4", _OCP, shared=163840, scaled=True, copy_bytes=16),
}


def chip_of(arch: str) -> Chip:
    """The record for a processor name, which may carry target features (``gfx942:sramecc+``). Raises ValueError for
    others."""
    name = arch.split(":")[0]
    if name not in CHIPS:
        raise ValueError(f"AMD architecture {arch!r} is not supported; supported are {', '.join(CHIPS)}")
    return CHIPS[name]


def capabilities(arch: str) -> Capabilities:
    chip = chip_of(arch)
    return Capabilities(
        backend="hip",
        arch=arch,
        lanes_per_warp=chip.lanes,
        dot_precisions=("ieee", "tf32", "tf32x3", "bf16x3", "bf16x6"),
        default_precision="ieee",
        native_float8=chip.float8,
        max_shared_memory=chip.shared,
        needs_layouts=True,
    )


def isa_version(arch: str) -> int:
    """The number by which the device libraries know a processor: 9402 for gfx942, 9010 for gfx90a, 11000 for
    gfx1100."""
    digits = arch.split(":")[0].removeprefix("gfx")
    major, minor, stepping = int(digits[:-2]), int(digits[-2], 16), int(digits[-1], 16)
    return major * 1000 + minor * 100 + stepping


def occupancy(arch: str, vector_registers: int, shared: int = 0, warps: int = 1) -> int:
    """Waves of a SIMD that so many vector registers, and so much shared memory for a workgroup of ``warps`` waves,
    leave room for. Four SIMDs share the memory: of one compute unit (CDNA), of a pair with two times 64 KiB (RDNA)."""
    chip = chip_of(arch)
    taken = max(1, -(-vector_registers // chip.granule)) * chip.granule
    limits = [chip.waves, chip.registers // taken]
    if shared:
        pool = chip.shared if chip.lanes == 64 else 2 * chip.shared
        limits.append(pool // shared * warps // SIMDS)
    return max(1, min(limits))

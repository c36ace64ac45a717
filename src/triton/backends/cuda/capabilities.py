"""What each NVIDIA architecture can do. Sources: PTX ISA 8.8 to 9.0 (target ISA notes of each instruction); CUDA C++
Programming Guide, "Compute Capabilities" (shared memory per block)."""

from __future__ import annotations

from ...ir.capabilities import Capabilities

WARP = 32
CLUSTERS = 90
"""The first compute capability (times ten) with clusters of thread blocks."""
SHARED_OPTIN = {
    70: 98304,
    72: 98304,
    75: 65536,
    80: 166912,
    86: 101376,
    87: 166912,
    89: 101376,
    90: 232448,
    100: 232448,
    103: 232448,
    110: 232448,
    120: 101376,
    121: 101376,
}
OLDEST = 70


def capabilities(arch: int) -> Capabilities:
    """The record for compute capability ``arch`` (80 for 8.0). Raises ValueError for one that is too old."""
    if arch < OLDEST:
        raise ValueError(f"compute capability {arch // 10}.{arch % 10} is not supported; the oldest is 7.0")
    known = max((a for a in SHARED_OPTIN if a <= arch), default=OLDEST)
    return Capabilities(
        backend="cuda",
        arch=f"sm_{arch}",
        lanes_per_warp=WARP,
        default_precision="tf32",
        native_float8=("f8e4m3", "f8e5m2") if arch >= 89 else (),
        max_shared_memory=SHARED_OPTIN[known],
        needs_layouts=True,
        boxed_loads=arch >= 90,
    )


def target_name(arch: int) -> str:
    """The name LLVM and ptxas know: architecture-specific features (wgmma, tcgen05) need the ``a`` variant."""
    return f"sm_{arch}a" if arch >= 90 and arch // 10 in (9, 10, 11) else f"sm_{arch}"


def ptx_version(arch: int) -> int:
    """The oldest PTX version (times ten) that has what we emit for ``arch``; older drivers and ptxas accept old
    versions only."""
    if arch >= 110:
        return 90
    if arch >= 103:
        return 88
    if arch >= 100:
        return 87 if arch >= 120 else 86
    if arch >= 90:
        return 84
    return 84 if arch >= 89 else 71 if arch >= 86 else 70 if arch >= 80 else 63

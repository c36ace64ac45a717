"""What a processor can do, read from LLVM's feature string."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from ..._C import libtriton
from ...ir.capabilities import Capabilities


@dataclass(frozen=True, slots=True)
class Processor:
    """``triple``, ``cpu`` and ``features`` as LLVM takes them."""

    triple: str
    cpu: str
    features: str

    def has(self, name: str) -> bool:
        return f"+{name}" in self.features.split(",")

    @property
    def vector_bits(self) -> int:
        return (
            512
            if self.has("avx512f") and self.has("avx512vl") and self.has("avx512bw")
            else 256
            if self.has("avx")
            else 128
        )

    @property
    def key(self) -> str:
        enabled = sorted(f for f in self.features.split(",") if f.startswith("+"))
        return f"{self.triple}/{self.cpu}/{','.join(enabled)}"


_LEVELS = {
    "x86-64": "+sse2,+cx8,+fxsr,+mmx,+sse,+cmov",
    "x86-64-v2": "+sse2,+sse3,+ssse3,+sse4.1,+sse4.2,+popcnt,+cx16",
    "x86-64-v3": "+sse4.2,+avx,+avx2,+bmi,+bmi2,+f16c,+fma,+lzcnt,+movbe,+popcnt,+cx16",
    "x86-64-v4": "+sse4.2,+avx,+avx2,+bmi,+bmi2,+f16c,+fma,+lzcnt,+movbe,+popcnt,+cx16,"
                 "+avx512f,+avx512bw,+avx512cd,+avx512dq,+avx512vl",
}  # fmt: skip


@cache
def host() -> Processor:
    """The processor of this machine."""
    return Processor(*libtriton.host_target())


@cache
def processor(arch: str) -> Processor:
    """The processor that ``arch`` names: empty or the host's own name, or one of the x86-64 levels."""
    mine = host()
    if arch in ("", "native", mine.cpu):
        return mine
    if arch in _LEVELS:
        return Processor(mine.triple, arch, _LEVELS[arch])
    raise ValueError(f"unknown processor {arch!r}; known: {mine.cpu}, {', '.join(_LEVELS)}")


def capabilities(cpu: Processor) -> Capabilities:
    """What front end and passes may ask."""
    return Capabilities(backend="cpu", arch=cpu.cpu)

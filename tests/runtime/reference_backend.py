"""A back end for tests: its "machine code" is the kernel's tile IR, its device the reference interpreter."""

from __future__ import annotations

import struct
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from triton import interpreter
from triton.backends.compiler import BaseBackend, GPUTarget, Language
from triton.backends.driver import DriverBase, LoadedKernel
from triton.ir.capabilities import Capabilities
from triton.ir.core import Module
from triton.ir.parser import parse_module
from triton.ir.printer import print_module
from triton.ir.types import PointerType


@dataclass(frozen=True)
class Options:
    num_warps: int = 4
    num_stages: int = 3
    num_ctas: int = 1
    debug: bool = False
    enable_fp_fusion: bool = True
    sanitize_overflow: bool = False
    may_alias: bool = False
    ir_override: str | None = None
    fail: str = ""


class ReferenceBackend(BaseBackend):
    binary_ext = "bin"
    stages_run: list[str] = []  # noqa: RUF012 - shared on purpose: the tests count

    @staticmethod
    def supports_target(target: GPUTarget) -> bool:
        return target.backend == "reference"

    def hash(self) -> str:
        return "reference"

    def parse_options(self, options: dict[str, Any]) -> Options:
        return Options(**{name: value for name, value in options.items() if name in Options.__dataclass_fields__})

    def capabilities(self, options: Any) -> Capabilities:
        return Capabilities("reference", "")

    def add_stages(self, stages: dict[str, Any], options: Any, language: Language = Language.TRITON) -> None:
        def passes(module: Module, metadata: dict[str, Any]) -> Module:
            self.stages_run.append(metadata["name"])
            if options.fail == "code":
                raise RuntimeError("this cannot be coded")
            if options.fail == "bug":
                raise KeyError("a bug")
            if options.fail == "shared":
                metadata["shared"] = 1 << 30
            return module

        stages["ttir"] = passes
        stages["bin"] = lambda module, metadata: print_module(module).encode()

    def render(self, name: str, asm: Mapping[str, Any], options: Any) -> str | None:
        return asm["bin"].decode().upper() if name == "loud" else None


class ReferenceDriver(DriverBase):
    device_kinds = ("cpu",)
    max_grid = (2**31 - 1,) * 3
    checks_overlap = True

    def __init__(self) -> None:
        super().__init__()
        self.launches: list[tuple[tuple[int, int, int], Any]] = []

    @classmethod
    def is_active(cls) -> bool:
        return False

    def get_current_target(self) -> GPUTarget:
        return GPUTarget("reference", "", 32)

    def get_device_properties(self, device: int) -> dict[str, Any]:
        return {"max_shared_mem": 1 << 20}

    def load(self, name: str, binary: bytes, metadata: Mapping[str, Any]) -> LoadedKernel:
        module = parse_module(binary.decode())
        return LoadedKernel(module, module, n_regs=7)

    def launch(self, function: Any, grid: tuple[int, int, int], stream: int, args: bytes, metadata: Any) -> None:
        values = []
        for i, parameter in enumerate(function.kernel.args):
            slot = args[8 * i : 8 * i + 8]
            kind = parameter.type
            if isinstance(kind, PointerType) or kind.kind in ("uint", "bool"):
                values.append(struct.unpack("<Q", slot)[0])
            elif kind.kind == "int":
                values.append(struct.unpack("<q", slot)[0])
            elif kind.name == "bf16":
                values.append(struct.unpack("<f", b"\0\0" + slot[:2])[0])
            else:
                code = {"f16": "<e6x", "f32": "<f4x", "f64": "<d"}[kind.name]
                values.append(struct.unpack(code, slot)[0])
        self.launches.append((grid, metadata))
        interpreter.run(function, values, grid)

    def get_benchmarker(self) -> Any:
        def bench(kernel_call: Any, *, quantiles: Any, **kwargs: Any) -> list[float]:
            start = time.perf_counter()
            kernel_call()
            return [(time.perf_counter() - start) * 1e3 for _ in quantiles]

        return bench

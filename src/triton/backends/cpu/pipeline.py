"""The passes and stages that make CPU code."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from ..._C import libtriton
from ...diagnostics.errors import CompilationError, Frame
from ...errors import OptionError
from ...ir.capabilities import Capabilities
from ...ir.core import Module
from ..compiler import BaseBackend, GPUTarget, Language, Stage
from . import codegen
from .capabilities import Processor, capabilities, processor

_WITHOUT_EFFECT = frozenset(
    [
        "num_warps",
        "num_stages",
        "num_ctas",
        "warp_size",
        "maxnreg",
        "ptx_version",
        "cluster_dims",
        "enable_reflect_ftz",
        "launch_cooperative_grid",
        "launch_pdl",
    ]
)


@dataclass(frozen=True)
class CPUOptions:
    """Options of one compilation. Those that concern GPUs only are accepted and have no effect.

    ``may_alias``   tensor arguments may overlap; the launcher asks for such code when it finds that they do.
    """

    num_warps: int = 4
    num_stages: int = 3
    num_ctas: int = 1
    warp_size: int = 32
    enable_fp_fusion: bool = True
    supported_fp8_dtypes: tuple[str, ...] = ("fp8e4nv", "fp8e5", "fp8e4b15", "fp8e4b8", "fp8e5b16")
    deprecated_fp8_dot_operand_dtypes: tuple[str, ...] = ()
    default_dot_input_precision: str = "ieee"
    allowed_dot_input_precisions: tuple[str, ...] = ("ieee", "tf32", "tf32x3", "bf16x3", "bf16x6")
    max_num_imprecise_acc_default: int = 0
    extern_libs: tuple[tuple[str, str], ...] | None = None
    debug: bool = False
    sanitize_overflow: bool = True
    backend_name: str = "cpu"
    arch: str = ""
    ir_override: str | None = None
    instrumentation_mode: str = ""
    may_alias: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.num_warps, int) or self.num_warps < 1 or self.num_warps & (self.num_warps - 1):
            raise OptionError(f"num_warps must be a power of 2, got {self.num_warps!r}")

    def hash(self) -> str:
        """Text for what changes code; the rest is for GPUs and may differ between kernels that share code."""
        return repr(sorted((name, value) for name, value in vars(self).items() if name not in _WITHOUT_EFFECT))


def _frames(error: Any) -> list[Frame]:
    """The user's source line, and the calls that led to it."""
    found: list[Frame] = []
    loc = error.loc
    while loc is not None:
        text = linecache.getline(loc.file, loc.line).rstrip()
        found.append(Frame(loc.file, loc.line, loc.column, loc.function or "kernel", text, 1))
        loc = loc.caller
    return found


class CPUBackend(BaseBackend):
    """Tile IR -> LLVM IR -> object file."""

    binary_ext: ClassVar[str] = "obj"

    def __init__(self, target: GPUTarget) -> None:
        super().__init__(target)
        self.processor: Processor = processor(str(target.arch or ""))

    @staticmethod
    def supports_target(target: GPUTarget) -> bool:
        return target.backend == "cpu"

    def hash(self) -> str:
        return f"cpu-{libtriton.llvm_version()}-{self.processor.key}"

    def parse_options(self, options: dict[str, Any]) -> CPUOptions:
        known = CPUOptions.__dataclass_fields__
        given = {k: v for k, v in options.items() if k in known and v is not None}
        for name in ("supported_fp8_dtypes", "deprecated_fp8_dot_operand_dtypes", "allowed_dot_input_precisions"):
            if name in given:
                given[name] = tuple(given[name])
        libs = given.get("extern_libs")
        if isinstance(libs, Mapping):
            given["extern_libs"] = tuple(sorted(libs.items()))
        given["arch"] = self.processor.cpu
        return CPUOptions(**given)

    def capabilities(self, options: Any) -> Capabilities:
        return capabilities(self.processor)

    def add_stages(self, stages: dict[str, Stage], options: CPUOptions, language: Language = Language.TRITON) -> None:
        stages["ttir"] = lambda module, metadata: self.passes(module, options)
        stages["llir"] = lambda module, metadata: self.lower(module, metadata, options)
        stages["obj"] = lambda text, metadata: codegen.compile(text, self.processor)["obj"]

    def passes(self, module: Module, options: CPUOptions) -> Module:
        # Passes and lowering are half of what is to import; a kernel that is in the cache does without them.
        from ...passes.manager import run_passes
        from ...passes.pipeline import TILE_PASSES

        return run_passes(module, TILE_PASSES)

    def lower(self, module: Module, metadata: dict[str, Any], options: CPUOptions) -> str:
        from . import lowering  # see passes

        try:
            lowered = lowering.lower(module, self.processor, options)
        except lowering.Unsupported as error:
            raise CompilationError(None, ast.Pass(), error.reason, frames=_frames(error)) from error
        metadata["name"] = lowered.name
        metadata["scratch_bytes"] = lowered.scratch
        metadata["waits"] = lowered.waits
        metadata["shared"] = 0
        return lowered.text

    def render(self, name: str, asm: Mapping[str, Any], options: Any) -> str | bytes | None:
        if name != "asm":
            return None
        text = asm["llir"]
        made = codegen.compile(text if isinstance(text, str) else text.decode(), self.processor, ("asm",))["asm"]
        return str(made)

"""The passes and stages that make code for NVIDIA GPUs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from ... import knobs
from ..._C import libtriton
from ...errors import OptionError
from ...ir.capabilities import Capabilities
from ...ir.core import Module
from ...lowering.simt.lower import lower_module
from ...lowering.writer import ModuleWriter
from ...passes.assign_layouts import LayoutOptions, assign_layouts
from ...passes.box_copies import box_copies
from ...passes.box_maps import BoxOptions, box_maps
from ...passes.dce import dce
from ...passes.expand_dot_scaled import expand_dot_scaled
from ...passes.flush_denormals import flush_denormals
from ...passes.inline import inline_tensors
from ...passes.manager import Pass, run_passes
from ...passes.pipeline import TILE_PASSES
from ...passes.pipeline_loads import PipelineOptions, pipeline_loads
from ...passes.shared_products import shared_products
from ..compiler import BaseBackend, GPUTarget, Language, Stage
from . import boxes, codegen
from . import capabilities as chips
from .lowering import CudaCluster, CudaMachine, features
from .products import Products

SCRATCH_ROOM = 32 << 10
"""Shared memory left to conversions and reductions when slots are dealt."""

# Scaled products are written out first, because what that makes is index arithmetic for fold and cse.
PASSES = (Pass("expand dot_scaled", expand_dot_scaled), *TILE_PASSES)


@dataclass(frozen=True)
class CUDAOptions:
    """Options of one compilation. ``sched4reg`` has no effect. ``num_ctas``: a program is a cluster of so many thread
    blocks; ``cluster_dims`` puts programs that are one block each into clusters."""

    num_warps: int = 4
    num_ctas: int = 1
    num_stages: int = 3
    warp_size: int = chips.WARP
    maxnreg: int | None = None
    ptx_version: int | None = None
    ptx_options: str | None = None
    ir_override: str | None = None
    enable_fp_fusion: bool = True
    sched4reg: bool = False
    enable_reflect_ftz: bool = True
    launch_cooperative_grid: bool = False
    launch_pdl: bool = False
    clc: bool = False
    cluster_dims: tuple[int, int, int] = (1, 1, 1)
    supported_fp8_dtypes: tuple[str, ...] = ("fp8e4nv", "fp8e5", "fp8e4b15", "fp8e4b8", "fp8e5b16")
    deprecated_fp8_dot_operand_dtypes: tuple[str, ...] = ()
    default_dot_input_precision: str = "tf32"
    allowed_dot_input_precisions: tuple[str, ...] = ("tf32", "tf32x3", "ieee", "bf16x3", "bf16x6")
    max_num_imprecise_acc_default: int = 0  # no limit
    extern_libs: tuple[tuple[str, str], ...] | None = None
    debug: bool = False
    backend_name: str = "cuda"
    sanitize_overflow: bool = True
    arch: str = ""
    instrumentation_mode: str = ""
    min_shared_mem: int | None = None

    def __post_init__(self) -> None:
        if self.num_warps not in (1, 2, 4, 8, 16, 32):
            raise OptionError(f"num_warps must be a power of 2 from 1 to 32, got {self.num_warps!r}")
        if self.num_ctas not in (1, 2, 4, 8, 16):
            raise OptionError(f"num_ctas must be 1, 2, 4, 8 or 16, got {self.num_ctas!r}")
        if self.num_ctas == 1:
            return
        number = int(self.arch.removeprefix("sm") or 0)
        if number < chips.CLUSTERS:
            raise OptionError(
                f"num_ctas={self.num_ctas} needs clusters of thread blocks, which GPUs have from compute capability "
                f"9.0 on; this one's is {number // 10}.{number % 10}"
            )
        if self.cluster_dims not in ((1, 1, 1), (self.num_ctas, 1, 1)):
            raise OptionError(
                f"a program of num_ctas={self.num_ctas} is a cluster of its own; "
                f"cluster_dims={self.cluster_dims} cannot be given too"
            )
        object.__setattr__(self, "cluster_dims", (self.num_ctas, 1, 1))

    def hash(self) -> str:
        return repr(sorted(vars(self).items()))


class CUDABackend(BaseBackend):
    """Tile IR -> laid-out tile IR -> LLVM IR -> PTX -> cubin."""

    binary_ext: ClassVar[str] = "cubin"

    def __init__(self, target: GPUTarget) -> None:
        super().__init__(target)
        self.arch = int(target.arch)

    @staticmethod
    def supports_target(target: GPUTarget) -> bool:
        return target.backend == "cuda"

    def hash(self) -> str:
        ptxas = codegen.find_ptxas(self.arch)
        release = codegen.ptxas_release(str(ptxas)) if ptxas else "driver"
        return f"cuda-{self.arch}-{libtriton.llvm_version()}-{release}"

    def parse_options(self, options: dict[str, Any]) -> CUDAOptions:
        known = CUDAOptions.__dataclass_fields__
        given = {k: v for k, v in options.items() if k in known and v is not None}
        for name, value in given.items():
            if isinstance(value, list):
                given[name] = tuple(value)
            elif isinstance(value, Mapping):
                given[name] = tuple(sorted(value.items()))
        given["arch"] = f"sm{self.arch}"
        return CUDAOptions(**given)

    def capabilities(self, options: Any) -> Capabilities:
        return chips.capabilities(self.arch)

    def add_stages(self, stages: dict[str, Stage], options: CUDAOptions, language: Language = Language.TRITON) -> None:
        stages["ttir"] = lambda module, metadata: run_passes(inline_tensors(module), PASSES)
        stages["ttgir"] = lambda module, metadata: self.lay_out(module, options)
        stages["llir"] = lambda module, metadata: self.lower(module, metadata, options)
        stages["ptx"] = lambda text, metadata: codegen.make_ptx(text, self.arch, options.ptx_version)
        stages["cubin"] = lambda ptx, metadata: self.assemble(ptx, metadata, options)

    def lay_out(self, module: Module, options: CUDAOptions) -> Module:
        """Layouts first; then copies ahead, because they need to know them; then what is read where it lies; dead loads
        last."""

        products = Products(module, options.num_warps, self.arch, options.num_ctas)
        choice = LayoutOptions(
            chips.WARP, options.num_warps, products.layouts, blocks=options.num_ctas, loads=products.loads
        )
        room = chips.capabilities(self.arch).max_shared_memory or 0
        hooks = products.read_asynchronously, products.k_inside
        alone = options.num_ctas == 1
        ahead = PipelineOptions(options.num_stages, room - SCRATCH_ROOM, *hooks, boxes.ALIGNMENT, alone)
        steps = [Pass("flush denormals", flush_denormals)]
        steps.append(Pass("assign layouts", lambda m: assign_layouts(m, choice), "layout"))
        copies = BoxOptions(boxes.can_load, boxes.can_store, room - SCRATCH_ROOM, boxes.ALIGNMENT, True)
        boxed = self.arch >= 90 and knobs.nvidia.enable_tma and options.num_ctas == 1
        if boxed:
            steps.append(Pass("box maps", lambda m: box_maps(m, copies)))
        if self.arch >= 80 and options.num_stages > 1:
            steps.append(Pass("pipeline loads", lambda m: pipeline_loads(m, ahead)))
        if boxed:
            steps.append(Pass("box copies", lambda m: box_copies(m, copies)))
        steps.append(Pass("shared products", lambda m: shared_products(m, *hooks)))
        steps.append(Pass("dce after pipelining", dce))
        return run_passes(module, steps)

    def lower(self, module: Module, metadata: dict[str, Any], options: CUDAOptions) -> str:
        cluster = CudaCluster(options.num_ctas) if options.num_ctas > 1 else None
        machine = CudaMachine(self.arch, options.num_warps, options.maxnreg, cluster)
        writer = ModuleWriter(
            features(self.arch, options.enable_fp_fusion), c_function=lambda name, base: f"__nv_{name}"
        )
        lowered = lower_module(module, machine, writer)
        metadata["name"] = lowered.kernel
        metadata["shared"] = max(lowered.shared_bytes, options.min_shared_mem or 0)
        metadata["threads"] = options.num_warps * chips.WARP
        metadata["maps"] = boxes.map_plans(module.kernel).hex()
        return lowered.text

    def assemble(self, ptx: str, metadata: dict[str, Any], options: CUDAOptions) -> bytes:
        binary, said = codegen.make_cubin(ptx, self.arch, options.ptx_options)
        registers = re.search(r"Used (\d+) registers", said)
        spills = re.findall(r"(\d+) bytes spill (?:stores|loads)", said)
        metadata["registers"] = int(registers.group(1)) if registers else 0
        metadata["spill_bytes"] = sum(map(int, spills))
        return binary

    def render(self, name: str, asm: Mapping[str, Any], options: Any) -> str | bytes | None:
        return codegen.disassemble(asm["cubin"]) if name == "sass" else None

    def pack_metadata(self, metadata: Any) -> Any:
        return {
            "threads": metadata.threads,
            "blocks": metadata.num_ctas,
            "cluster": tuple(metadata.cluster_dims),
            "shared": metadata.shared,
            "cooperative": bool(metadata.launch_cooperative_grid),
            "overlap": bool(metadata.launch_pdl),
            "maps": bytes.fromhex(metadata.maps),
        }

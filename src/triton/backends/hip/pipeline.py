"""The passes and stages that make code for AMD GPUs (experimental)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from ... import knobs
from ..._C import libtriton
from ...errors import OptionError, OutOfResources
from ...ir.capabilities import Capabilities
from ...ir.core import Module, Op
from ...lowering.simt.context import SHARED
from ...lowering.simt.lower import lower_module
from ...lowering.simt.machine import SHARED_SPACE
from ...lowering.writer import ModuleWriter
from ...passes.assign_layouts import DotChoice, LayoutOptions, assign_layouts
from ...passes.dce import dce
from ...passes.expand_dot_scaled import expand_dot_scaled
from ...passes.inline import inline_tensors
from ...passes.manager import Pass, run_passes
from ...passes.pipeline import TILE_PASSES
from ...passes.pipeline_loads import PipelineOptions, pipeline_loads
from ..compiler import BaseBackend, GPUTarget, Language, Stage
from ..tools import find_bitcode
from . import capabilities as chips
from . import codegen, matrix
from .copies import direct_layouts
from .lowering import HipMachine, device_function, features


@dataclass(frozen=True)
class HIPOptions:
    """Options of one compilation. ``matrix_instr_nonkdim``: side of CDNA's matrix instructions, 16 or 32, 0 for what
    fits. ``use_async_copy``: CDNA's loads may write to shared memory themselves (``TRITON_HIP_USE_ASYNC_COPY``).
    ``kpack`` and ``schedule_hint`` have no effect yet."""

    num_warps: int = 4
    waves_per_eu: int = 0
    num_stages: int = 2
    num_ctas: int = 1
    extern_libs: tuple[tuple[str, str], ...] | None = None
    debug: bool = False
    sanitize_overflow: bool = True
    arch: str | None = None
    supported_fp8_dtypes: tuple[str, ...] = ("fp8e4nv", "fp8e5", "fp8e5b16", "fp8e4b8", "fp8e4b15")
    deprecated_fp8_dot_operand_dtypes: tuple[str, ...] = ()
    default_dot_input_precision: str = "ieee"
    allowed_dot_input_precisions: tuple[str, ...] = ("ieee", "bf16x3", "bf16x6", "tf32", "tf32x3")
    enable_fp_fusion: bool = True
    launch_cooperative_grid: bool = False
    matrix_instr_nonkdim: int = 0
    kpack: int = 1
    allow_flush_denorm: bool = False
    max_num_imprecise_acc_default: int = 0
    backend_name: str = "hip"
    instrumentation_mode: str = ""
    fpsan_homomorphic_casts: bool = False
    schedule_hint: str = ""
    llvm_fn_attrs: str = ""
    wgp_cu_mode: str = "wgp"
    use_async_copy: bool = True

    def __post_init__(self) -> None:
        if self.num_warps not in (1, 2, 4, 8, 16, 32):
            raise OptionError(f"num_warps must be a power of 2 from 1 to 32, got {self.num_warps!r}")
        if self.num_ctas != 1:
            raise ValueError("num_ctas other than 1 is not supported: AMD GPUs have no clusters of workgroups")
        if self.matrix_instr_nonkdim not in (0, 16, 32):
            raise ValueError(f"matrix_instr_nonkdim must be 0, 16 or 32, got {self.matrix_instr_nonkdim!r}")
        if self.wgp_cu_mode not in ("wgp", "cu"):
            raise ValueError(f"wgp_cu_mode must be 'wgp' or 'cu', got {self.wgp_cu_mode!r}")

    def hash(self) -> str:
        return repr(sorted(vars(self).items()))


class HIPBackend(BaseBackend):
    """Tile IR -> laid-out tile IR -> LLVM IR -> code object. Assembly (``amdgcn``) is made when it is asked for."""

    binary_ext: ClassVar[str] = "hsaco"

    def __init__(self, target: GPUTarget) -> None:
        super().__init__(target)
        self.arch = str(target.arch)
        self.chip = chips.chip_of(self.arch)
        if target.warp_size not in (0, self.chip.lanes):
            raise ValueError(
                f"{self.arch} runs waves of {self.chip.lanes} lanes here, got warp_size={target.warp_size}"
            )

    @staticmethod
    def supports_target(target: GPUTarget) -> bool:
        return target.backend == "hip"

    def hash(self) -> str:
        return f"hip-{self.arch}-{libtriton.llvm_version()}-{codegen.tools_hash()}"

    def parse_options(self, options: dict[str, Any]) -> HIPOptions:
        known = HIPOptions.__dataclass_fields__
        given = {k: v for k, v in options.items() if k in known and v is not None}
        for name, value in given.items():
            if isinstance(value, list):
                given[name] = tuple(value)
            elif isinstance(value, Mapping):
                given[name] = tuple(sorted(value.items()))
        given["arch"] = self.arch
        if knobs.amd.use_async_copy is not None:
            given.setdefault("use_async_copy", knobs.amd.use_async_copy)
        parsed = HIPOptions(**given)
        if parsed.num_warps * self.chip.lanes > chips.MAX_THREADS:
            most = chips.MAX_THREADS // self.chip.lanes
            raise ValueError(f"num_warps must be at most {most} on {self.arch}, got {parsed.num_warps}")
        return parsed

    def capabilities(self, options: Any) -> Capabilities:
        return chips.capabilities(self.arch)

    def add_stages(self, stages: dict[str, Stage], options: HIPOptions, language: Language = Language.TRITON) -> None:
        stages["ttir"] = lambda module, metadata: self.simplify(module, options)
        stages["ttgir"] = lambda module, metadata: self.lay_out(module, options)
        stages["llir"] = lambda module, metadata: self.lower(module, metadata, options)
        stages["hsaco"] = lambda text, metadata: self.assemble(text, metadata, options)

    def products(self, options: HIPOptions) -> matrix.Products:
        return matrix.Products(self.chip, options.num_warps, options.matrix_instr_nonkdim)

    def simplify(self, module: Module, options: HIPOptions) -> Module:
        """Scaled products without an instruction are written out before functions are inlined, so that every function
        is seen once."""
        products = self.products(options)
        expand = Pass("expand dot_scaled", lambda m: expand_dot_scaled(m, products.takes_scaled))
        return run_passes(inline_tensors(module), (expand, *TILE_PASSES))

    def lay_out(self, module: Module, options: HIPOptions) -> Module:
        """Layouts first; then copies ahead, because they need to know them; the loads they replace last."""

        stages = options.num_stages

        products = self.products(options)
        ahead = PipelineOptions(stages, self.chip.shared // 2, lambda op: False)

        def dots(op: Op, options: LayoutOptions) -> DotChoice:
            return matrix.layouts(op, options, products)

        functions = module.functions.values() if options.use_async_copy else ()
        loads = {k: v for f in functions for k, v in direct_layouts(f, self.chip, options.num_warps, ahead).items()}
        choice = LayoutOptions(self.chip.lanes, options.num_warps, dots, loads=loads)
        steps = [Pass("assign layouts", lambda m: assign_layouts(m, choice), "layout")]
        if stages > 1:
            steps.append(Pass("pipeline loads", lambda m: pipeline_loads(m, ahead)))
            steps.append(Pass("dce after pipelining", dce))
        return run_passes(module, steps)

    def lower(self, module: Module, metadata: dict[str, Any], options: HIPOptions) -> str:
        kernel = module.kernel
        machine = HipMachine(
            self.chip,
            options.num_warps,
            options.waves_per_eu,
            _attributes(options.llvm_fn_attrs),
            options.debug and _can_print(),  # printing takes private memory and many registers
            options.matrix_instr_nonkdim,
            frozenset(f"%arg{i}" for i, attrs in enumerate(kernel.arg_attrs) if attrs.get("range_bits") == 32),
        )
        writer = ModuleWriter(features(options.enable_fp_fusion), c_function=device_function)
        lowered = lower_module(module, machine, writer)
        if lowered.shared_bytes > self.chip.shared:
            raise OutOfResources(lowered.shared_bytes, self.chip.shared, f"shared memory of {self.arch}")
        metadata["name"] = lowered.kernel
        metadata["shared"] = lowered.shared_bytes
        metadata["threads"] = machine.threads
        return _sized_shared(lowered.text, lowered.shared_bytes)

    def assemble(self, text: str, metadata: dict[str, Any], options: HIPOptions) -> bytes:
        """The linked code object; the object file itself where no linker is found (it cannot be launched then)."""
        obj = codegen.compile_object(text, self.arch, _features(self.arch, options))
        note = codegen.kernel_note(obj, metadata["name"])
        metadata["registers"] = note.vector_registers
        metadata["scalar_registers"] = note.scalar_registers
        metadata["spill_bytes"] = 4 * note.vector_spills
        metadata["scalar_spills"] = note.scalar_spills
        metadata["scratch_bytes"] = note.private
        metadata["occupancy"] = chips.occupancy(self.arch, note.vector_registers, note.shared, options.num_warps)
        linker = codegen.find_linker()
        return codegen.link(obj, linker) if linker is not None else obj

    def render(self, name: str, asm: Mapping[str, Any], options: Any) -> str | bytes | None:
        if name != "amdgcn":
            return None
        text: str = codegen.compile_object(asm["llir"], self.arch, _features(self.arch, options), "asm")
        return text

    def pack_metadata(self, metadata: Any) -> Any:
        return {"threads": metadata.threads, "cooperative": bool(metadata.launch_cooperative_grid)}


def _features(arch: str, options: Any) -> str:
    """Target features.

    A workgroup may be kept to one compute unit (``cu``) where the processor has pairs of them. 16-bit values take whole
    registers on RDNA3 and 4: instructions that name half registers save few, and not all tools know them.
    """
    mode = getattr(options, "wgp_cu_mode", "wgp")
    return ",".join(["+cumode"] * (mode == "cu") + ["-real-true16"] * arch.startswith(("gfx11", "gfx12")))


def _attributes(text: str) -> str:
    """``llvm_fn_attrs``: ``key=value`` pairs, separated by commas."""
    pairs = [item.partition("=") for item in text.split(",") if item.strip()]
    return " ".join(f'"{key.strip()}"="{value.strip()}"' if sign else f'"{key.strip()}"' for key, sign, value in pairs)


def _can_print() -> bool:
    try:
        find_bitcode("ockl")
    except FileNotFoundError:
        return False
    return True


def _sized_shared(text: str, size: int) -> str:
    """Shared memory with its size, which the code object then states."""
    open_ended = f"{SHARED} = external addrspace({SHARED_SPACE}) global [0 x i8]"
    sized = f"{SHARED} = internal addrspace({SHARED_SPACE}) global [{max(size, 1)} x i8] poison"
    before, found, after = text.partition(open_ended)
    assert found, "the lowering declares shared memory otherwise"
    return before + sized + after

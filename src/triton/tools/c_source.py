"""The C source and header of a kernel that was compiled ahead of time."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

C_TYPES = {
    "i1": "int8_t", "u1": "int8_t", "i8": "int8_t", "i16": "int16_t", "i32": "int32_t", "i64": "int64_t",
    "u8": "uint8_t", "u16": "uint16_t", "u32": "uint32_t", "u64": "uint64_t", "fp32": "float", "fp64": "double",
}  # fmt: skip


@dataclass(frozen=True)
class Api:
    """The C types of a back end's host library."""

    include: str
    result: str
    stream: str
    pointer: str
    success: str
    invalid: str


APIS = {
    "cpu": Api("<stddef.h>", "int", "void *", "void *", "0", "1"),
    "cuda": Api("<cuda.h>", "CUresult", "CUstream", "CUdeviceptr", "CUDA_SUCCESS", "CUDA_ERROR_INVALID_VALUE"),
    "hip": Api(
        "<hip/hip_runtime_api.h>", "hipError_t", "hipStream_t", "hipDeviceptr_t", "hipSuccess", "hipErrorInvalidValue"
    ),
}
"""CPU results: 0, 1 for arguments that no kernel takes, 2 when memory is short. A stream is not looked at there."""

_KEYWORDS = re.compile(
    "auto|break|case|char|const|continue|default|do|double|else|enum|extern|float|for|goto|if|inline|int|long|register|"
    "restrict|return|short|signed|sizeof|static|struct|switch|typedef|union|unsigned|void|volatile|while|stream"
)
"""What a parameter cannot be called: C's keywords, and the first parameter's name."""


def c_identifier(name: str) -> bool:
    """Whether this may name a function of C."""
    return bool(re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name)) and not _KEYWORDS.fullmatch(name)


@dataclass(frozen=True)
class Argument:
    """A parameter of the kernel: its type, what is promised of it (16 or 1), the value where it is known."""

    name: str
    type: str | None
    hint: int | None
    value: Any

    @property
    def constant(self) -> bool:
        return self.type is None or self.hint == 1

    @property
    def c_name(self) -> str:
        return self.name if c_identifier(self.name) else f"{self.name}_"


@dataclass(frozen=True)
class Launch:
    """All that the C code is made of."""

    name: str
    symbol: str
    digest: str
    suffix: str
    backend: str
    arguments: list[Argument]
    grid: list[str]
    compiled: Any

    @property
    def api(self) -> Api:
        return APIS[self.backend]

    def declared(self, argument: Argument) -> str:
        """``type name`` of a parameter."""
        kind = str(argument.type)
        text = self.api.pointer if kind.startswith("*") else C_TYPES[kind]
        return f"{text}{'' if text.endswith('*') else ' '}{argument.c_name}"

    @property
    def runtime(self) -> list[Argument]:
        return [a for a in self.arguments if a.type is not None]

    @property
    def prototype(self) -> str:
        stream = self.api.stream + ("" if self.api.stream.endswith("*") else " ")
        passed = [self.declared(a) for a in self.runtime if not a.constant]
        return f"{self.api.result} {self.symbol}({', '.join([f'{stream}stream', *passed])})"


def header_text(launch: Launch) -> str:
    """The header: what ``triton.tools.link`` reads, and prototypes."""
    meta, api = launch.compiled.metadata, launch.api
    values = ", ".join(f"{a.name} = {a.value!r}" for a in launch.arguments if a.type is None)
    described = values.encode("ascii", "backslashreplace").decode().replace("*/", "* /")
    everything = ", ".join(launch.declared(a) for a in launch.runtime)
    return f"""/* Made by triton.tools.compile.
   {described or "no compile-time values"}; num_warps = {meta.num_warps}, num_stages = {meta.num_stages} */
// tt-linker: {launch.backend} {launch.name}({everything}) {launch.digest} {launch.suffix}
#pragma once
#include {api.include}
#include <stdint.h>
#ifdef __cplusplus
extern "C" {{
#endif
{api.result} load_{launch.symbol}(void);
void unload_{launch.symbol}(void);
{launch.prototype};
#ifdef __cplusplus
}}
#endif
"""


def source_text(launch: Launch, header: str) -> str:
    """The C source that includes this header."""
    start = f'/* Made by triton.tools.compile. */\n#include "{header}"\n'
    return start + (_cpu(launch) if launch.backend == "cpu" else _gpu(launch))


def _grid(launch: Launch) -> str:
    """The grid's sizes, with the compile-time values that its expressions name."""
    text = " ".join(launch.grid)
    lines = [
        f"  const int64_t {a.c_name} = {int(a.value)};\n"
        for a in launch.arguments
        if a.constant and isinstance(a.value, int) and re.search(rf"\b{re.escape(a.name)}\b", text)
    ]
    lines += [f"  const int64_t grid_{axis}_ = {size};\n" for axis, size in zip("xyz", launch.grid, strict=True)]
    return "".join(lines)


_GPU = """
static const unsigned char code_[] = {{
{code}
}};
static {module} module_;
static {function} function_;

{result} load_{symbol}(void) {{
  {result} status = {load}(&module_, code_);
  if (status == {success}) status = {find}(&function_, module_, "{entry}");
{shared}  return status;
}}

void unload_{symbol}(void) {{
  if (module_) {unload}(module_);
  module_ = NULL;
  function_ = NULL;
}}

{prototype} {{
{grid}  if (grid_x_ < 0 || grid_y_ < 0 || grid_z_ < 0) return {invalid};
  if (grid_x_ == 0 || grid_y_ == 0 || grid_z_ == 0) return {success};
  if (!function_) {{
    {result} status = load_{symbol}();
    if (status != {success}) return status;
  }}
  void *arguments_[] = {{{arguments}}};
  return {launch}(function_, (unsigned)grid_x_, (unsigned)grid_y_, (unsigned)grid_z_, {threads}, 1, 1, {bytes}, stream,
      arguments_, NULL);
}}
"""
_NAMES = {
    "cuda": {
        "module": "CUmodule", "function": "CUfunction", "load": "cuModuleLoadData", "find": "cuModuleGetFunction",
        "unload": "cuModuleUnload", "launch": "cuLaunchKernel",
    },
    "hip": {
        "module": "hipModule_t", "function": "hipFunction_t", "load": "hipModuleLoadData",
        "find": "hipModuleGetFunction", "unload": "hipModuleUnload", "launch": "hipModuleLaunchKernel",
    },
}  # fmt: skip
_MORE_SHARED = """  if (status == CUDA_SUCCESS)
    status = cuFuncSetAttribute(function_, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, {bytes});
"""


def _gpu(launch: Launch) -> str:
    meta, asm = launch.compiled.metadata, launch.compiled.asm
    code = asm["cubin" if launch.backend == "cuda" else "hsaco"]
    rows = [", ".join(f"0x{byte:02x}" for byte in code[at : at + 20]) for at in range(0, len(code), 20)]
    more = launch.backend == "cuda" and meta.shared > 48 << 10
    return _GPU.format(
        **_NAMES[launch.backend],
        code=",\n".join(rows),
        result=launch.api.result,
        success=launch.api.success,
        invalid=launch.api.invalid,
        symbol=launch.symbol,
        entry=meta.name,
        shared=_MORE_SHARED.format(bytes=meta.shared) if more else "",
        prototype=launch.prototype,
        grid=_grid(launch),
        arguments=", ".join(f"&{a.c_name}" for a in launch.runtime if not a.constant) or "NULL",
        threads=meta.threads,
        bytes=meta.shared,
    )


_CPU = """#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What kernels on the CPU call; the same in every file. */
#if defined(_MSC_VER) && !defined(__clang__)
#define TRITON_SHARED
#else
#define TRITON_SHARED __attribute__((weak))
#endif
#ifndef TRITON_CONTEXT
#define TRITON_CONTEXT
typedef struct {{
  int32_t grid[3], thread;
  void *scratch, *host;
  int32_t countdown, streams;
}} triton_context;
#endif
TRITON_SHARED void tl_check(triton_context *context, int32_t spins) {{
  (void)spins;
  context->countdown = INT32_MAX;
}}
TRITON_SHARED void tl_assert_fail(triton_context *context, const char *text, int64_t length) {{
  (void)context;
  fprintf(stderr, "%.*s\\n", (int)length, text);
  abort();
}}
TRITON_SHARED void tl_print(triton_context *context, const char *text, int64_t length) {{
  (void)context;
  printf("%.*s\\n", (int)length, text);
}}
TRITON_SHARED int64_t tl_fmt_u64(char *buffer, uint64_t value, int32_t hex) {{
  if (hex <= 0) return snprintf(buffer, 32, "%" PRIu64, value);
  if (hex < 16) value &= ((uint64_t)1 << (4 * hex)) - 1;
  return snprintf(buffer, 32, "0x%0*" PRIx64, hex < 16 ? hex : 16, value);
}}
TRITON_SHARED int64_t tl_fmt_i64(char *buffer, int64_t value, int32_t hex) {{
  return hex > 0 ? tl_fmt_u64(buffer, (uint64_t)value, hex) : snprintf(buffer, 32, "%" PRId64, value);
}}
TRITON_SHARED int64_t tl_fmt_f64(char *buffer, double value) {{
  return snprintf(buffer, 32, "%g", isnan(value) ? fabs(value) : value);
}}
TRITON_SHARED int64_t tl_fmt_ptr(char *buffer, const void *value) {{
  return snprintf(buffer, 32, "0x%016" PRIxPTR, (uintptr_t)value);
}}

extern void {entry}(const void *arguments, int64_t begin, int64_t end, triton_context *context);

int load_{symbol}(void) {{ return 0; }}
void unload_{symbol}(void) {{}}

static int run_(const void *arguments, int64_t begin, int64_t end, const int64_t *grid) {{
  triton_context context = {{{{(int32_t)grid[0], (int32_t)grid[1], (int32_t)grid[2]}}, 0, NULL, NULL, INT32_MAX, 0}};
  char *memory = malloc({scratch} + 64);
  if (!memory) return 2;
  context.scratch = memory + (64 - (uintptr_t)memory % 64);
  {entry}(arguments, begin, end, &context);
  free(memory);
  return 0;
}}

{prototype} {{
  (void)stream;
{grid}  const int64_t sizes[3] = {{grid_x_, grid_y_, grid_z_}};
  int64_t total = 1;
  for (int axis = 0; axis < 3; ++axis) {{
    if (sizes[axis] < 0 || sizes[axis] > INT32_MAX || (sizes[axis] && total > INT64_MAX / sizes[axis])) return 1;
    total *= sizes[axis];
  }}
  uint64_t arguments_[{count}] = {{0}};
{arguments}  int status = 0;
#ifdef _OPENMP
  const int64_t chunk = total / 64 + 1;
#pragma omp parallel for schedule(dynamic) reduction(| : status)
#else
  const int64_t chunk = total + 1;
#endif
  for (int64_t begin = 0; begin < total; begin += chunk)
    status |= run_(arguments_, begin, begin + chunk < total ? begin + chunk : total, sizes);
  return status;
}}
"""


def _cpu(launch: Launch) -> str:
    meta = launch.compiled.metadata
    passed = [a for a in launch.runtime if not a.constant]
    copies = [f"  memcpy(&arguments_[{i}], &{a.c_name}, sizeof {a.c_name});\n" for i, a in enumerate(passed)]
    return _CPU.format(
        entry=meta.name,
        symbol=launch.symbol,
        scratch=int(meta.scratch_bytes),
        prototype=launch.prototype,
        grid=_grid(launch),
        count=max(len(passed), 1),
        arguments="".join(copies),
    )

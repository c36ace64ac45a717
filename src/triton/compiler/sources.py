"""What can be compiled: a jitted function with a specialisation, or the text of a kernel's IR."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from ..backends import make_backend
from ..backends.compiler import Language
from ..ir.core import Module
from ..ir.parser import parse_module
from ..ir.table import IRError
from ..ir.types import DescriptorType, PointerType, ScalarType
from ..ir.verifier import verify
from ..runtime.binding import constexpr_key
from .ir_view import ModuleView

_BOOLEANS: dict[Any, Any] = {"i1": "u1", "*i1": "*u1"}  # PyTorch's names
_SIGNATURE_NAMES = {
    "i1": "u1",
    "f16": "fp16",
    "f32": "fp32",
    "f64": "fp64",
    "f8e4m3": "fp8e4nv",
    "f8e5m2": "fp8e5",
    "f8e4b15": "fp8e4b15",
    "f8e4b8": "fp8e4b8",
    "f8e5b16": "fp8e5b16",
}


class Specialization(NamedTuple):
    """What ``@triton.jit(repr=...)`` is given to name a compiled kernel: compile-time values (integers that are 1 among
    them) and types, by parameter."""

    constants: dict[Any, Any]
    signature: dict[str, Any]


class ASTSource:
    """A jitted function for given argument types.

    ``signature`` maps parameter names to type names; ``constexprs`` maps names or paths of parameters to compile-time
    values; ``attrs`` maps paths to promises such as ``[("tt.divisibility", 16)]``.
    """

    def __init__(
        self,
        fn: Any,
        signature: Mapping[str, Any],
        constexprs: Mapping[Any, Any] | None = None,
        attrs: Mapping[Any, Any] | None = None,
    ) -> None:
        if isinstance(signature, str):
            raise TypeError("ASTSource: signature maps parameter names to types; it is not text")
        self.fn = fn
        self.language = Language.TRITON
        self.ext = "ttir"
        self.signature: dict[str, Any] = {
            name: _BOOLEANS.get(type, type) if isinstance(type, str) else type for name, type in signature.items()
        }
        unknown = [name for name in self.signature if name not in fn.arg_names]
        if unknown:
            raise ValueError(f"ASTSource: {fn.__name__} has no parameter {unknown[0]!r}")
        self.constants: dict[tuple[int, ...], Any] = {}
        for key, value in (constexprs or {}).items():
            path = (fn.arg_names.index(key),) if isinstance(key, str) else key if isinstance(key, tuple) else (key,)
            self.constants[path] = value
            # A value given for a parameter makes it a compile-time one even where the signature leaves it out.
            if len(path) == 1:
                self.signature.setdefault(fn.arg_names[path[0]], "constexpr")
        self.signature = {name: self.signature[name] for name in fn.arg_names if name in self.signature}
        missing = [name for name in fn.arg_names if name not in self.signature]
        if missing:
            raise ValueError(f"ASTSource: the signature of {fn.__name__} lacks parameter {missing[0]!r}")
        self.attrs: dict[tuple[int, ...], list[tuple[str, int]]] = {
            path: [(name, value) for name, value in promises] for path, promises in (attrs or {}).items()
        }
        self.name: str = fn.__name__
        if getattr(fn, "_repr", None) is not None:
            self.name = fn.repr(Specialization(self._by_name(), self.signature))

    def _by_name(self) -> dict[Any, Any]:
        names = self.fn.arg_names
        return {names[path[0]] if len(path) == 1 else path: value for path, value in self.constants.items()}

    @property
    def constexprs(self) -> dict[tuple[int, ...], Any]:
        return self.constants

    def hash(self) -> str:
        """A hash of the function with all it calls, and of the specialisation."""
        constants = sorted((path, repr(constexpr_key(value))) for path, value in self.constants.items())
        text = "\0".join(
            (
                self.fn.cache_key,
                self.name,
                repr(list(self.signature.items())),
                repr(constants),
                repr(sorted(self.attrs.items())),
                f"{self.fn.noinline}",
            )
        )
        return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()

    def source_text(self) -> str:
        return str(getattr(self.fn, "src", ""))

    def build(self, options: Any, capabilities: Any) -> Module:
        """The kernel's IR as the front end makes it."""
        from ..frontend.build import build_module  # a kernel that is in the cache does without the front end

        module = build_module(self.fn, self.signature, self.constants, self.attrs, options, capabilities)
        kernel = module.kernel
        if kernel.name != self.name:
            module.functions = {self.name if f is kernel else name: f for name, f in module.functions.items()}
            kernel.name = self.name
        return module

    def make_ir(self, target: Any, options: Any, codegen_fns: Any, module_map: Any, context: Any) -> ModuleView:
        """The kernel's IR for ``target``, to walk over."""
        return ModuleView(self.build(options, make_backend(target).capabilities(options)))

    def parse_options(self) -> dict[str, Any]:
        return {}


class IRSource:
    """The text of a kernel in a file: ``.ttir`` is the tile IR, other endings are a back end's stages."""

    def __init__(self, path: Any, context: Any = None, backend: Any = None) -> None:
        self.path = str(path)
        stem, extension = os.path.splitext(os.path.basename(self.path))
        self.ext = extension[1:]
        self.language = Language.TRITON
        self.fn = None
        self.constants: dict[tuple[int, ...], Any] = {}
        self.attrs: dict[tuple[int, ...], Any] = {}
        with open(self.path, encoding="utf-8") as file:
            self.src = file.read()
        self.module: Module | None = None
        self.signature: dict[str, Any] = {}
        self.name = stem
        if self.ext == "ttir":
            self.module = _read_module(self.src, self.path)
            kernel = self.module.kernel
            self.name = kernel.name
            self.signature = {arg.name or str(i): type_name(arg.type) for i, arg in enumerate(kernel.args)}

    def hash(self) -> str:
        return hashlib.sha256(self.src.encode()).hexdigest()

    def source_text(self) -> str:
        return self.src

    def build(self, options: Any, capabilities: Any) -> Any:
        """The module for tile IR, else the text."""
        return parse_module(self.src) if self.ext == "ttir" else self.src

    def make_ir(self, target: Any, options: Any, codegen_fns: Any, module_map: Any, context: Any) -> Any:
        return self.build(options, None)

    def parse_options(self) -> dict[str, Any]:
        if self.module is None:
            return {}
        return {name: self.module.attrs[name] for name in ("num_warps", "num_stages") if name in self.module.attrs}


def _read_module(text: str, path: str) -> Module:
    """Parsed and verified: passes and lowering rely on what the rules say. Raises IRError that names the file."""
    try:
        module = parse_module(text)
    except IRError as error:
        raise IRError(f"{path}:{error}") from None
    try:
        verify(module)
    except IRError as error:
        raise IRError(f"{path}: {error}") from None
    return module


def type_name(type: Any) -> str:
    """The signature's name of an IR type."""
    if isinstance(type, PointerType):
        return "*" + type_name(type.pointee)
    if isinstance(type, ScalarType):
        return _SIGNATURE_NAMES.get(type.name, type.name)
    if isinstance(type, DescriptorType):
        return f"tensordesc<{type_name(type.block.element)}{list(type.block.shape)}>"
    raise ValueError(f"a kernel cannot take an argument of type {type}")

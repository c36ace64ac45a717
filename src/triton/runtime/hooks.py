"""What the hooks around a kernel's compilation are told, and the text from which ``preload`` compiles again."""

from __future__ import annotations

import importlib
import json
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from ..frontend.source import JITCallable


@dataclass
class JitFunctionInfo:
    """A kernel as hooks see it."""

    module: ModuleType | str
    name: str
    jit_function: Any


@dataclass(slots=True)
class HookCall:
    """The arguments of the compile hooks."""

    fn: Any
    key: str
    signature: dict[str, Any]
    device: int
    constants: dict[Any, Any]
    options: Any
    attrs: dict[Any, Any]
    is_warmup: bool
    target: Any

    def call(self, hook: Any, already_compiled: bool) -> bool:
        if hook is None:
            return False
        fn, options = self.fn, self.options
        shown = ", ".join(f"{name}: {kind}" for name, kind in self.signature.items())
        tuning = ", ".join(f"{n}={getattr(options, n, None)}" for n in ("num_warps", "num_ctas", "num_stages"))
        info: dict[str, Any] = {
            name: getattr(options, name, None)
            for name in (
                "num_warps",
                "num_ctas",
                "num_stages",
                "enable_fp_fusion",
                "launch_cooperative_grid",
                "extern_libs",
            )
        }
        info |= {
            "key": self.key,
            "signature": self.signature,
            "device": self.device,
            "constants": self.constants,
            "configs": [self.attrs],
            "is_warmup": self.is_warmup,
            "specialization_data": serialize_specialization_data(
                fn.__name__, self.signature, self.constants, self.attrs, options, self.key, self.target
            ),
        }
        declined = hook(
            key=self.key,
            repr=f"{fn.__name__}[{tuning}]({shown})",
            fn=JitFunctionInfo(fn.module, fn.__name__, fn),
            compile=info,
            is_manual_warmup=self.is_warmup,
            already_compiled=already_compiled,
        )
        return bool(declined)


def to_json(value: Any) -> Any:
    if isinstance(value, JITCallable):
        return {"jit_function": f"{f'{value.fn.__module__}.{value.fn.__qualname__}'}:{value.cache_key}"}
    if type(value).__name__ == "constexpr":
        return {"constexpr": to_json(value.value)}
    if type(value).__name__ == "dtype":
        return {"dtype": str(value)}
    if isinstance(value, tuple):
        return {"tuple": [to_json(item) for item in value]}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return {"repr": repr(value)}


def from_json(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    ((kind, inner),) = value.items()
    if kind == "tuple":
        return tuple(from_json(item) for item in inner)
    if kind == "constexpr":
        return from_json(inner)
    if kind == "dtype":
        language = importlib.import_module("triton.language")
        return language.dtype(inner)
    raise RuntimeError(f"specialization data holds a value that cannot be made again: {inner}")


def tuples(value: Any) -> Any:
    return tuple(tuples(item) for item in value) if isinstance(value, list) else value


def serialize_specialization_data(
    name: str, signature: Any, constants: Any, attrs: Any, options: Any, key: Any, target: Any = None
) -> str:
    """The text that ``JITFunction.preload`` reads."""
    return json.dumps(
        {
            "name": name,
            "signature": signature,
            "constant_keys": list(constants),
            "constant_vals": [to_json(value) for value in constants.values()],
            "attrs_keys": list(attrs),
            "attrs_vals": list(attrs.values()),
            "options": dict(vars(options)),
            "key": key,
            "target": vars(target) if target is not None else None,
        },
        default=str,
    )

"""The back ends: one folder each, found when first asked for.

``backends`` maps a name to its :class:`Backend`. A back end is a package ``triton.backends.<name>`` with a module
``pipeline`` (one subclass of ``BaseBackend``) and a module ``driver`` (one subclass of ``DriverBase``). Others may be
added by the entry-point group ``triton.backends``, unless ``TRITON_BACKENDS_IN_TREE=1``; theirs may be called
``compiler``.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import pkgutil
from types import ModuleType
from typing import Any

from .compiler import BaseBackend, GPUTarget
from .driver import DriverBase

__all__ = ["Backend", "BaseBackend", "DriverBase", "all_backends", "make_backend", "missing_backend"]


class Backend:
    """A back end's compiler and driver classes; their modules are imported when asked for."""

    __slots__ = ("_compiler", "_driver", "package")

    def __init__(
        self,
        compiler: type[BaseBackend] | None = None,
        driver: type[DriverBase] | None = None,
        *,
        package: str = "",
    ) -> None:
        self.package = package
        self._compiler = compiler
        self._driver = driver

    @property
    def compiler(self) -> type[BaseBackend]:
        if self._compiler is None:
            name = "pipeline" if importlib.util.find_spec(f"{self.package}.pipeline") else "compiler"
            self._compiler = _only_subclass(importlib.import_module(f"{self.package}.{name}"), BaseBackend)
        return self._compiler

    @property
    def driver(self) -> type[DriverBase]:
        if self._driver is None:
            self._driver = _only_subclass(importlib.import_module(f"{self.package}.driver"), DriverBase)
        return self._driver

    def __repr__(self) -> str:
        return f"Backend({self.package or self._compiler!r})"


def _only_subclass(module: ModuleType, base: type[Any]) -> type[Any]:
    found: list[type[Any]] = [
        value
        for value in vars(module).values()
        # Asked of its type: on Python 3.10 a parametrised generic says that it is an instance of `type`.
        if issubclass(type(value), type)
        and issubclass(value, base)
        and value.__module__ == module.__name__
        and not getattr(value, "__abstractmethods__", None)
    ]
    if len(found) != 1:
        raise RuntimeError(
            f"module {module.__name__} should define one subclass of {base.__name__}, it has {len(found)}"
        )
    return found[0]


# Names under which other packages look for back ends of this one.
_ALIASES = {"nvidia": "cuda", "amd": "hip"}

_in_tree: dict[str, Backend] | None = None
_all: dict[str, Backend] | None = None


def in_tree_backends() -> dict[str, Backend]:
    """The back ends of this package by name."""
    global _in_tree
    if _in_tree is None:
        _in_tree = {
            info.name: Backend(package=f"{__name__}.{info.name}")
            for info in pkgutil.iter_modules(__path__)
            if info.ispkg and os.path.exists(os.path.join(__path__[0], info.name, "driver.py"))
        }
    return _in_tree


def all_backends() -> dict[str, Backend]:
    """All back ends by name, those that other packages register included; looked for once."""
    global _all
    if _all is None:
        _all = dict(in_tree_backends())
        _all.update({alias: _all[name] for alias, name in _ALIASES.items() if name in _all and alias not in _all})
        if os.environ.get("TRITON_BACKENDS_IN_TREE", "") != "1":
            from importlib.metadata import entry_points  # reads every installed package: launches do without it

            for entry in entry_points(group="triton.backends"):
                _all.setdefault(entry.name, Backend(package=entry.value))
    return _all


def missing_backend(name: str) -> str:
    """The sentence that says a back end is not there."""
    known = ", ".join(sorted(all_backends())) or "none"
    return f"back end {name!r} is not part of this build of triton yet; available: {known}"


def make_backend(target: GPUTarget) -> BaseBackend:
    """The back end for a target. Raises RuntimeError when there is none."""
    named = in_tree_backends().get(target.backend) or all_backends().get(target.backend)
    if named is not None and named.compiler.supports_target(target):
        return named.compiler(target)
    every = {b.compiler for b in all_backends().values()}
    fitting = [compiler for compiler in every if compiler.supports_target(target)]
    if not fitting:
        raise RuntimeError(missing_backend(target.backend))
    if len(fitting) > 1:
        raise RuntimeError(f"{len(fitting)} back ends make code for {target}: {', '.join(c.__name__ for c in fitting)}")
    return fitting[0](target)


def __getattr__(name: str) -> Any:
    if name == "backends":
        return all_backends()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

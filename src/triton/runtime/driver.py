"""Which driver runs kernels. Chosen at the first launch, never at import."""

from __future__ import annotations

from typing import Any

from .. import knobs
from ..backends import all_backends, in_tree_backends, missing_backend
from ..backends.driver import DriverBase
from .errors import LaunchError

__all__ = ["DriverBase", "DriverConfig", "driver"]

# Which device kinds a back end's name stands for, in the order in which drivers are tried.
_ORDER = ("nvidia", "cuda", "amd", "hip", "cpu")


def create_driver() -> DriverBase:
    """The driver of ``TRITON_DEFAULT_BACKEND``, else of the first active back end: GPUs first, then the CPU."""
    found = in_tree_backends()
    wanted = knobs.runtime.default_backend
    if wanted:
        if wanted not in found:
            found = all_backends()
        if wanted not in found:
            raise LaunchError(missing_backend(wanted))
        driver: DriverBase = found[wanted].driver()
        return driver
    names = sorted(found, key=lambda name: (_ORDER.index(name) if name in _ORDER else len(_ORDER), name))
    for name in names:
        if found[name].driver.is_active():
            active: DriverBase = found[name].driver()
            return active
    if len(all_backends()) > len(found):
        for backend in all_backends().values():
            if backend.driver.is_active():
                other: DriverBase = backend.driver()
                return other
    raise LaunchError(f"no back end can run kernels here; these are installed: {', '.join(names) or 'none'}")


class DriverConfig:
    """The active driver, made when first asked for."""

    def __init__(self) -> None:
        self._default: DriverBase | None = None
        self._active: DriverBase | None = None

    @property
    def default(self) -> DriverBase:
        """The driver that is chosen when nobody sets one."""
        if self._default is None:
            self._default = create_driver()
        return self._default

    @property
    def active(self) -> DriverBase:
        """The driver that launches go to."""
        if self._active is None:
            self._active = self.default
        return self._active

    def set_active(self, driver: DriverBase) -> None:
        self._active = driver

    def reset_active(self) -> None:
        self._active = self.default


driver = DriverConfig()


def __getattr__(name: str) -> Any:
    if name == "backends":
        return all_backends()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

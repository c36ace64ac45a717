"""Which driver runs kernels. Chosen at the first launch, never at import."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .. import knobs
from ..backends import Backend, all_backends, in_tree_backends, missing_backend
from ..backends.compiler import GPUTarget
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
    for candidate in active_drivers():
        first: DriverBase = candidate()
        return first
    try:
        from .._C import libtriton  # noqa: F401 - without it no back end of this package has a device
    except ImportError as error:
        raise LaunchError(f"no back end can run kernels: triton's compiled core cannot be loaded ({error})") from error
    raise LaunchError(f"no back end can run kernels here; these are installed: {', '.join(all_backends()) or 'none'}")


def active_drivers() -> Iterator[type[DriverBase]]:
    """The drivers that have a device, in order of preference: GPUs, then the CPU, then those of other packages."""
    found = in_tree_backends()
    for name in sorted(found, key=lambda name: (_ORDER.index(name) if name in _ORDER else len(_ORDER), name)):
        if _usable(name, found[name]):
            yield found[name].driver
    own = set(found.values())
    for name, backend in all_backends().items():
        if backend not in own and _usable(name, backend):
            yield backend.driver


@contextmanager
def on_device(chosen: DriverBase, device: int) -> Iterator[None]:
    """Make ``device`` the driver's current one for a while."""
    before = chosen.get_current_device()
    if before == device:
        yield
        return
    chosen.set_current_device(device)
    try:
        yield
    finally:
        chosen.set_current_device(before)


def _usable(name: str, backend: Backend) -> bool:
    """Whether a back end has a device. A broken one is told of and passed over, so that the others work."""
    try:
        return backend.driver.is_active()
    except Exception as error:
        knobs.warn_once(f"triton: back end {name!r} cannot be used: {error!r}")
        return False


class DriverConfig:
    """The active driver, made when first asked for."""

    def __init__(self) -> None:
        self._default: DriverBase | None = None
        self._active: DriverBase | None = None
        self._others: dict[str, DriverBase | None] = {}

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

    def for_arrays_on(self, kind: str) -> DriverBase:
        """The driver for a launch whose arrays are all on devices of one kind: the active one if it fits or was chosen
        by the user, else another that has such devices."""
        active = self.active
        if kind in active.device_kinds or active is not self._default or knobs.runtime.default_backend:
            return active
        if kind not in self._others:
            fitting = (candidate for candidate in active_drivers() if kind in candidate.device_kinds)
            found = next(fitting, None)
            self._others[kind] = None if found is None else found()
        return self._others[kind] or active

    def for_target(self, target: GPUTarget) -> DriverBase:
        """The driver for code made for ``target``: the active one, unless its device is of another kind and a driver of
        the right kind is there."""
        active = self.active
        if active.get_current_target().backend == target.backend:
            return active
        for other in self._others.values():
            if other is not None and other.get_current_target().backend == target.backend:
                return other
        for candidate in active_drivers():
            made = candidate()
            if made.get_current_target().backend == target.backend:
                for kind in made.device_kinds:
                    self._others.setdefault(kind, made)
                return made
        return active

    def set_active(self, driver: DriverBase) -> None:
        self._active = driver

    def reset_active(self) -> None:
        self._active = self.default


driver = DriverConfig()


def __getattr__(name: str) -> Any:
    if name == "backends":
        return all_backends()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

"""From a compiled kernel and argument values to a call of the driver."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any

from ..backends.driver import Scratch
from ._allocation import get_allocator
from .arguments import address_of, as_array, byte_range, device_index, device_of, is_readonly
from .dispatch import make_launcher
from .errors import LaunchError

# struct codes of one 8-byte argument slot, by signature type.
_SLOTS = {"fp32": "f4x", "fp64": "d", "fp16": "e6x", "bf16": "H6x", "u1": "q"}
_SLOTS |= {f"i{bits}": "q" for bits in (8, 16, 32, 64)} | {f"u{bits}": "Q" for bits in (8, 16, 32, 64)}


def _bfloat16_bits(value: float) -> int:
    """The bits of a number rounded to bfloat16, nearest even."""
    bits: int = struct.unpack("<I", struct.pack("<f", value))[0]
    if bits & 0x7FFFFFFF > 0x7F800000:
        return (bits >> 16) | 0x40
    return (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16


def _half(value: Any) -> float:
    """A number that struct can store as half precision: what is too large becomes infinite."""
    number = float(value)
    if abs(number) >= 65520.0:
        return float("inf") if number > 0 else float("-inf")
    return number


def _single(value: Any) -> float:
    number = float(value)
    if abs(number) >= 3.4028235677973366e38 and number == number:
        return float("inf") if number > 0 else float("-inf")
    return number


# What struct does not round by itself.
_ROUNDING: dict[str, Callable[[Any], Any]] = {
    "H6x": lambda value: _bfloat16_bits(_single(value)),
    "e6x": _half,
    "f4x": _single,
}


def _integer(kind: str) -> Callable[[Any], int]:
    bits = int(kind[1:])
    low, high = (0, 2**bits) if kind[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1))

    def convert(value: Any) -> int:
        number = int(value)
        if not low <= number < high:
            raise LaunchError(f"{number} does not fit type {kind}")
        return number

    return convert


def _converter(kind: str) -> Callable[[Any], Any]:
    if kind == "u1":
        return lambda value: int(bool(value))
    return float if kind[0] in "fb" else _integer(kind)


def pack(slots: Sequence[Any], codes: Sequence[str]) -> bytes:
    """Argument values as 8-byte slots."""
    rounded = [_ROUNDING[code](value) if code in _ROUNDING else value for value, code in zip(slots, codes, strict=True)]
    return struct.pack("<" + "".join(codes), *rounded)


class Pointer:
    """One pointer argument of a launch: its place among the kernel's arguments, name, array and address."""

    __slots__ = ("array", "index", "name")

    def __init__(self, index: int, name: str, array: Any) -> None:
        self.index = index
        self.name = name
        self.array = array


def _check_device(
    name: str, array: Any, kinds: Sequence[str], number: int | None, reaches: Callable[[int], bool] | None
) -> None:
    kind, index = device_of(array), device_index(array)
    if kind in kinds and (number is None or index is None or index == number or kind == "cpu"):
        return
    if kind == "cpu" and reaches is not None and reaches(address_of(array)):
        return
    here = kind if index is None else f"{kind}:{index}"
    wanted = kinds[0] if number is None or kinds[0] == "cpu" else f"{kinds[0]}:{number}"
    raise LaunchError(f"argument {name!r} is on device {here!r}, the launch needs {wanted!r}")


def flatten(
    signature: dict[str, Any],
    values: Sequence[Any],
    device_kinds: Sequence[str],
    number: int | None = None,
    reaches: Callable[[int], bool] | None = None,
) -> tuple[list[Any], list[str], list[Pointer]]:
    """``(slot values, slot codes, pointers)``: the kernel's arguments in order, compile-time ones left out.

    Arrays must be on a device of ``device_kinds``, on the one with this ``number`` if given, or in host memory of which
    ``reaches(address)`` holds."""
    slots: list[Any] = []
    codes: list[str] = []
    pointers: list[Pointer] = []

    def leaf(name: str, kind: str, value: Any) -> None:
        try:
            slots.append(_converter(kind)(value))
        except (TypeError, ValueError, OverflowError, KeyError):
            raise LaunchError(f"argument {name!r}: expected type {kind}, got {value!r}") from None
        except LaunchError as error:
            raise LaunchError(f"argument {name!r}: {error}") from None
        codes.append(_SLOTS[kind])

    def pointer(name: str, value: Any) -> None:
        codes.append("Q")
        if type(value) is int or value is None:
            slots.append(value or 0)
            return
        array = as_array(value)
        if array is None:
            raise LaunchError(f"argument {name!r}: expected an array, got {type(value).__name__}")
        _check_device(name, array, device_kinds, number, reaches)
        pointers.append(Pointer(len(slots), name, array))
        slots.append(address_of(array))

    def walk(name: str, kind: Any, value: Any) -> None:
        if kind == "constexpr":
            return
        if isinstance(kind, (tuple, list)):
            for i, (part, item) in enumerate(zip(kind, value, strict=True)):
                walk(f"{name}[{i}]", part, item)
        elif kind[0] == "*":
            pointer(name, value)
        elif kind.startswith("tensordesc"):
            pointer(f"{name}.base", value.base)
            for i, size in enumerate(value.shape):
                leaf(f"{name}.shape[{i}]", "i64", size)
            for i, stride in enumerate(value.strides):
                leaf(f"{name}.strides[{i}]", "i64", stride)
        else:
            leaf(name, kind, value)

    for (name, kind), value in zip(signature.items(), values, strict=True):
        walk(name, kind, value)
    return slots, codes, pointers


def overlapping(pointers: Sequence[Pointer], written: Sequence[int]) -> bool:
    """Whether the bytes of a written tensor are also those of another argument."""
    if len(pointers) < 2 or not written:
        return False
    ranges = [(*byte_range(p.array), p.index in written) for p in pointers]
    for i, (low, high, writes) in enumerate(ranges):
        for other_low, other_high, other_writes in ranges[i + 1 :]:
            if (writes or other_writes) and low < other_high and other_low < high:
                return True
    return False


_NO_OPTIONS: dict[str, Any] = {}


def allocate(size: int, alignment: int, stream: int | None) -> Any:
    """Memory from the allocator that ``triton.set_allocator`` set."""
    return get_allocator()(size, alignment, stream)


class Launcher:
    """Packs arguments and launches one compiled kernel. Called as PyTorch calls it."""

    __slots__ = (
        "_alternative",
        "_checks",
        "_device",
        "_driver",
        "_kept",
        "_kernel",
        "_name",
        "_native",
        "_scratch",
        "_signature",
        "_written",
    )

    def __init__(self, kernel: Any, driver: Any) -> None:
        self._kernel = kernel
        self._driver = driver
        self._device = driver.get_current_device()  # on which the code has been loaded
        size = int(getattr(kernel.metadata, "global_scratch_size", 0) or 0)
        align = int(getattr(kernel.metadata, "global_scratch_align", 1) or 1)
        self._scratch = Scratch(size, align, allocate) if size else None
        self._name = kernel.name
        self._signature: dict[str, Any] = dict(kernel.src.signature)
        self._written = tuple(kernel.metadata.written)
        self._checks = bool(driver.checks_overlap) and not getattr(kernel.metadata, "may_alias", True)
        self._alternative: Any = None
        self._kept: list[Any] = []
        self._native = None
        if driver.native_launch:
            self._native = make_launcher(self._name, self._signature, self._on_miss, driver.gpu)

    def __call__(
        self,
        grid_0: int,
        grid_1: int,
        grid_2: int,
        stream: int,
        function: Any,
        packed_metadata: Any,
        launch_metadata: Any,
        enter_hook: Any,
        exit_hook: Any,
        *args: Any,
    ) -> None:
        if self._native is not None and not enter_hook and not exit_hook:
            self._native.run((grid_0, grid_1, grid_2), args, _NO_OPTIONS, stream)
            return
        grid = (int(grid_0), int(grid_1), int(grid_2))
        self.check_grid(grid)
        if 0 in grid:
            return
        if len(args) != len(self._signature):
            raise LaunchError(f"{self._name} takes {len(self._signature)} arguments, {len(args)} were given")
        slots, codes, pointers = self._flatten(args)
        self._check_writes(pointers)
        if self._checks and overlapping(pointers, self._written):
            other = self._aliasing_kernel()
            function, packed_metadata = other.function, other.packed_metadata
        packed = pack(slots, codes)
        buffer = None  # held until the launch is queued
        if self._scratch is not None:
            size = grid[0] * grid[1] * grid[2] * self._scratch.bytes
            buffer = self._scratch.allocate(size, self._scratch.alignment, stream)
            packed += struct.pack("<Q", buffer.data_ptr())
        if enter_hook:
            enter_hook(launch_metadata)
        self._driver.launch(function, grid, stream, packed, packed_metadata)
        del buffer
        if exit_hook:
            exit_hook(launch_metadata)

    def _on_miss(
        self, key: bytes, values: tuple[Any, ...], classes: Any, options: dict[str, Any], overlap: bool, grid: Any
    ) -> Any:
        chosen = self.native_choice(values, overlap)
        chosen._init_handles()
        self._kept.append(chosen.module)
        return self.native_kernel(chosen, self._name)

    def native_kernel(self, chosen: Any, owner: Any) -> Any:
        """What the native dispatcher launches for the answer of ``native_choice``; such launches return ``owner``."""
        return self._driver.native_kernel(chosen.module, chosen.function, chosen.packed_metadata, owner, self._scratch)

    def _flatten(self, values: Sequence[Any]) -> tuple[list[Any], list[str], list[Pointer]]:
        return flatten(self._signature, values, self._driver.device_kinds, self._device, self._driver.reaches)

    def current_stream(self) -> int:
        """The stream that a launch goes to when none is named."""
        return int(self._driver.get_current_stream(self._driver.get_current_device()))

    def native_choice(self, values: Sequence[Any], overlap: bool) -> Any:
        """The kernel that the native dispatcher should launch for arguments like these; None when it cannot pass them.

        ``overlap`` says that some tensors share bytes, which ones may differ from call to call. Raises LaunchError for
        what no kernel may be launched with.
        """
        _, _, pointers = self._flatten(values)
        self._check_writes(pointers)
        return self._aliasing_kernel() if overlap and self._written and self._checks else self._kernel

    def _check_writes(self, pointers: Sequence[Pointer]) -> None:
        for pointer in pointers:
            if pointer.index in self._written and is_readonly(pointer.array):
                raise LaunchError(f"{self._name} writes argument {pointer.name!r}, whose array is read-only")

    def check_grid(self, grid: tuple[int, int, int]) -> None:
        for dim, (size, limit) in enumerate(zip(grid, self._driver.max_grid, strict=True)):
            if not 0 <= size <= limit:
                raise LaunchError(f"grid dimension {dim} is {size}; it must lie between 0 and {limit}")

    def _aliasing_kernel(self) -> Any:
        """The same kernel compiled to allow overlapping tensors; made when a launch first needs it."""
        if self._alternative is None:
            self._alternative = self._kernel.recompile(may_alias=True)
            self._alternative._init_handles()
        return self._alternative

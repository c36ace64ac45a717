"""Objects that steer control flow: ``tl.range``, ``tl.static_range``, ``tl.condition``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .values import base_value, constexpr


class range(base_value):
    """Counts ``arg1`` times, or from ``arg1`` to ``arg2`` (not included) by ``step``, at run time; for use in a
    ``for``.

    ``num_stages``: software pipelining depth of the loop's loads. ``loop_unroll_factor``: iterations unrolled
    together. ``flatten``: merge a nested loop into this one. ``warp_specialize``, ``disallow_acc_multi_buffer``,
    ``disable_licm``: scheduling choices for GPUs. None of them changes results.
    """

    def __init__(
        self,
        arg1: Any,
        arg2: Any = None,
        step: Any = None,
        num_stages: Any = None,
        loop_unroll_factor: Any = None,
        disallow_acc_multi_buffer: Any = False,
        flatten: Any = False,
        warp_specialize: Any = False,
        disable_licm: Any = False,
    ) -> None:
        one_sided = arg2 is None or (isinstance(arg2, constexpr) and arg2.value is None)
        self.start = constexpr(0) if one_sided else arg1
        self.end = arg1 if one_sided else arg2
        self.step = constexpr(1) if step is None or (isinstance(step, constexpr) and step.value is None) else step
        self.num_stages = num_stages
        self.loop_unroll_factor = loop_unroll_factor
        self.disallow_acc_multi_buffer = disallow_acc_multi_buffer
        self.flatten: Any = flatten
        self.warp_specialize = warp_specialize
        self.disable_licm = disable_licm

    def __iter__(self) -> Iterator[Any]:
        raise RuntimeError("tl.range can only be used in the for statement of a jitted function")

    def __next__(self) -> Any:
        raise RuntimeError("tl.range can only be used in the for statement of a jitted function")


class static_range(base_value):
    """Counts like ``range`` at compile time: the loop's body is emitted once for each value, which is a constexpr."""

    def __init__(self, arg1: Any, arg2: Any = None, step: Any = None) -> None:
        one_sided = arg2 is None or (isinstance(arg2, constexpr) and arg2.value is None)
        self.start = constexpr(0) if one_sided else arg1
        self.end = arg1 if one_sided else arg2
        self.step = constexpr(1) if step is None or (isinstance(step, constexpr) and step.value is None) else step

    def __iter__(self) -> Iterator[Any]:
        raise RuntimeError("tl.static_range can only be used in the for statement of a jitted function")

    def __next__(self) -> Any:
        raise RuntimeError("tl.static_range can only be used in the for statement of a jitted function")


class condition(base_value):
    """The condition of a ``while`` with options: ``while tl.condition(x > 0, disable_licm=True):``."""

    def __init__(self, arg1: Any, disable_licm: Any = False) -> None:
        self.condition = arg1
        self.disable_licm = disable_licm

"""Functions for AMD GPUs."""

from . import libdevice
from .utils import memrealtime, num_threads, num_warps, smid

__all__ = ["libdevice", "memrealtime", "num_threads", "num_warps", "smid"]

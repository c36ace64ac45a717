"""The typing rules that the operations share; see ``triton.frontend.semantic``."""

from __future__ import annotations

from triton.frontend.semantic import TritonSemantic

__all__ = ["TritonSemantic"]

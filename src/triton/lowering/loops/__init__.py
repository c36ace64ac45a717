"""Tile IR as loops over tiles, for targets where one program is one thread. Start reading at ``plan.py`` and
``module.py``."""

from .errors import Unsupported
from .machine import Machine
from .module import Lowered, lower

__all__ = ["Lowered", "Machine", "Unsupported", "lower"]

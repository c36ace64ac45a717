"""The mathematical library; the same functions as ``triton.language.extra.libdevice``."""

from triton.language import core as core
from triton.language.extra.libdevice import *  # noqa: F403

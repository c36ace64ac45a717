"""The tile IR: types, ops, text form and verifier. Start reading at ``ops.py``."""

from .builder import Builder
from .core import Block, Function, Location, Module, Op, Value
from .equal import equal
from .ops import OPS, has_effect, is_pure
from .parser import parse_module, parse_type
from .printer import print_function, print_module, print_op
from .table import IRError
from .verifier import verify

__all__ = [
    "OPS", "Block", "Builder", "Function", "IRError", "Location", "Module", "Op", "Value",
    "equal", "has_effect", "is_pure", "parse_module", "parse_type", "print_function", "print_module", "print_op",
    "verify",
]

"""The walk over a jitted function's syntax tree that emits IR: state, places for errors, and the dispatch tables.

Expressions are in ``expressions.py``, calls in ``calls.py``, statements in ``statements.py``, branches and loops in
``branches.py`` and ``loops.py``; each adds its handlers to the tables here. Jitted functions that a kernel calls are
walked in place: a call is a new ``Scope`` with its own variables, emitting into the same block.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from triton.diagnostics.errors import (
    CompilationError,
    Frame,
    UnsupportedLanguageConstruct,
    frame_of,
)
from triton.ir import Block, Builder, Location, Module

from .semantic import TritonSemantic
from .source import JITCallable
from .values import constexpr, tensor
from .values import tuple as language_tuple

MISSING: Any = object()


class Scope:
    """One activation of a jitted function: its variables, and where it was called from."""

    __slots__ = (
        "call_node",
        "caller",
        "env",
        "file",
        "first_line",
        "fn",
        "globals",
        "indent",
        "locations",
        "loops",
        "lost",
        "parent",
    )

    def __init__(
        self, fn: JITCallable, parent: Scope | None, call_node: ast.AST | None, caller: Location | None
    ) -> None:
        self.fn = fn
        self.env: dict[str, Any] = {}
        self.parent = parent
        self.call_node = call_node
        self.caller = caller
        self.file = fn.file
        self.first_line = fn.def_file_line_number
        self.indent = fn.def_file_col_number - 1
        self.locations: dict[tuple[int, int], Location] = {}
        self.loops: list[Any] = []  # enclosing loops, innermost last
        self.lost: dict[str, str] = {}  # variables that a branch or loop left undefined, with the reason
        self.globals: dict[str, Any] = {}

    def location(self, node: Any) -> Location:
        key = (node.lineno, node.col_offset)
        found = self.locations.get(key)
        if found is None:
            found = self.locations[key] = Location(
                self.file, self.first_line + key[0] - 1, key[1] + self.indent + 1, self.fn.__name__, self.caller
            )
        return found

    def frame(self, node: Any) -> Frame:
        return frame_of(self.fn.src, node, self.file, self.first_line, self.indent, self.fn.__name__)


class BoundMethod:
    """A method of a value, before its call."""

    __slots__ = ("fn", "receiver")

    def __init__(self, fn: Any, receiver: Any) -> None:
        self.fn = fn
        self.receiver = receiver


Handler = Callable[..., Any]
EXPRESSIONS: dict[type[ast.AST], Handler] = {}
STATEMENTS: dict[type[ast.AST], Handler] = {}


def expression(*kinds: type[ast.AST]) -> Callable[[Handler], Handler]:
    """Registers the handler of these syntax nodes."""

    def register(handler: Handler) -> Handler:
        for kind in kinds:
            EXPRESSIONS[kind] = handler
        return handler

    return register


def statement(*kinds: type[ast.AST]) -> Callable[[Handler], Handler]:
    """Registers the handler of these syntax nodes."""

    def register(handler: Handler) -> Handler:
        for kind in kinds:
            STATEMENTS[kind] = handler
        return handler

    return register


class Generator:
    """Emits one module. ``scope`` is the activation being walked and ``node`` the syntax node that is being worked
    on."""

    def __init__(self, module: Module, options: Any, capabilities: Any) -> None:
        self.module = module
        self.options = options
        self.capabilities = capabilities
        self.builder = Builder()
        self.semantic = TritonSemantic(self.builder, options, capabilities, self)
        self.scope: Scope = None  # type: ignore[assignment]
        self.node: Any = None
        self.in_region = False  # within what a reduction, scan or map applies
        self.copies = 0  # how often statements were emitted again after a conditional return
        self.functions: dict[Any, Any] = {}  # functions made for noinline calls, by callee and argument types

    # Places ---------------------------------------------------------------------------------------------------------

    def at(self, node: Any) -> None:
        """Marks what is emitted, and what goes wrong, from here on with the place of ``node``."""
        self.node = node
        self.builder.loc = self.scope.location(node)

    def frames(self) -> list[Frame]:
        """The place being worked on and the calls that led to it, innermost first."""
        frames, scope, node = [], self.scope, self.node
        while scope is not None:
            frames.append(scope.frame(node))
            node, scope = scope.call_node, scope.parent  # type: ignore[assignment]
        return frames

    def error(self, message: str, kind: type[CompilationError] = CompilationError) -> CompilationError:
        """The error for the current place."""
        return kind(self.scope.fn.src, self.node, message, frames=self.frames())

    def unsupported(self, node: Any, message: str) -> CompilationError:
        """The error for Python syntax that the language does not have."""
        if hasattr(node, "lineno"):
            self.node = node
        return self.error(message, UnsupportedLanguageConstruct)

    # Set by the modules that hold the handlers.
    assign: Callable[..., None]
    call: Callable[..., Any]
    call_in_region: Callable[..., list[Any]]
    run_function: Callable[..., Any]
    static_truth: Callable[..., bool]
    emit_assert: Callable[..., None]

    def scalar_of(self, x: Any) -> Any:
        """The only element of a tile of one."""
        element = x.type.scalar
        return tensor(self.semantic.op("reshape", [x.handle], element.ir), element)

    # Walking --------------------------------------------------------------------------------------------------------

    def visit(self, node: Any) -> Any:
        """The value of an expression."""
        handler = EXPRESSIONS.get(type(node))
        if handler is None:
            raise self.unsupported(node, f"{_syntax_name(node)} is not supported in a kernel")
        return handler(self, node)

    @contextmanager
    def inside(self, block: Block) -> Iterator[Block]:
        """Ops go to ``block`` while the context lasts."""
        outer, self.builder.block = self.builder.block, block
        yield block
        self.builder.block = outer


def wrap(value: Any) -> Any:
    """A Python result as the language sees it: numbers, strings and None are constexpr, tuples and lists tl.tuple."""
    kind = type(value)
    if kind in _SCALARS:
        return constexpr(value)
    if kind is tuple or kind is list:
        return language_tuple([wrap(v) for v in value])
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return language_tuple([wrap(v) for v in value], type(value))
    return value


_SCALARS = frozenset({bool, int, float, str, type(None)})

_NAMES: dict[str, str] = {
    "Await": "await",
    "Yield": "yield",
    "YieldFrom": "yield from",
    "Lambda": "a lambda",
    "Dict": "a dict",
    "Set": "a set",
    "DictComp": "a dict comprehension",
    "SetComp": "a set comprehension",
    "Starred": "a starred expression here",
    "ClassDef": "a class",
    "AsyncFunctionDef": "an async function",
    "Try": "try",
    "TryStar": "try",
    "Raise": "raise",
    "Import": "import",
    "ImportFrom": "import",
    "Global": "global",
    "Nonlocal": "nonlocal",
    "AsyncFor": "async for",
    "AsyncWith": "async with",
    "With": "with",
    "Match": "match",
    "Delete": "del",
    "TypeAlias": "type",
}


def _syntax_name(node: Any) -> str:
    name = type(node).__name__
    return f"{_NAMES[name]!r}" if name in _NAMES and " " not in _NAMES[name] else _NAMES.get(name, name)

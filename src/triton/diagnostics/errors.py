"""What a kernel that cannot be compiled raises.

The text of a CompilationError, with the innermost place first:

    kernel.py:12:15: in helper, at 2:12:
        y = x + tl.arange(0, 3.5)
                ^^^^^^^^^^^^^^^^^
    called from kernel.py:20:9: in kernel, at 5:4:
        helper(p)
        ^^^^^^^^^
    arange: end: expected an int known at compile time (tl.constexpr), got float 3.5
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from triton.errors import TritonError

_SHOWN_CALLS = 5  # at either end of a long chain of calls


@dataclass(frozen=True, slots=True)
class Frame:
    """One place in the user's source: ``line`` and ``column`` (from 1) in ``file``; ``text`` is the source line.
    ``inner`` is the place within the function's own text, as ``LINE:COLUMN``, lines from 1 and columns from 0."""

    file: str
    line: int
    column: int
    function: str
    text: str
    width: int
    inner: str = ""

    def render(self, lead: str = "") -> str:
        """Place, source line and caret."""
        inner = f", at {self.inner}:" if self.inner else ""
        where = f"{lead}{self.file}:{self.line}:{self.column}: in {self.function}{inner}"
        shown = self.text.strip()
        if not shown:
            return where
        indent = self.column - 1 - (len(self.text) - len(self.text.lstrip()))
        if indent < 0:
            return f"{where}\n    {shown}"
        width = max(1, min(self.width, len(shown) - indent))
        return f"{where}\n    {shown}\n    {' ' * indent}{'^' * width}"


def frame_of(
    src: str | None, node: Any, file: str = "", first_line: int = 1, indent: int = 0, function: str = ""
) -> Frame:
    """The place of ``node``, whose line numbers count from 1 in ``src``; ``src`` begins at ``first_line`` of ``file``
    and was dedented by ``indent`` columns."""
    line, column = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
    lines = src.split("\n") if src else []
    text = lines[line - 1] if 0 < line <= len(lines) else ""
    # Columns of the syntax tree count UTF-8 bytes.
    column = len(text.encode()[:column].decode(errors="replace"))
    end = getattr(node, "end_col_offset", None)
    if end is None or getattr(node, "end_lineno", line) != line:
        width = len(text.rstrip()) - column
    else:
        width = len(text.encode()[:end].decode(errors="replace")) - column
    if isinstance(node, (ast.FunctionDef, ast.If, ast.For, ast.While, ast.With)):
        width = len(text.rstrip()) - column
    place = (file, first_line + line - 1, column + indent + 1)
    return Frame(*place, function, " " * indent + text, width, f"{line}:{column}")


class CompilationError(TritonError):
    """The kernel breaks a rule of the language. ``node`` is where, in ``src``; ``error_message`` says what, in one
    sentence. ``__cause__`` is the error of the operation (ValueError, TypeError, ...), or, when it happened within a
    function that the kernel calls, the CompilationError of that function."""

    source_line_count_max_in_message = 12

    def __init__(
        self, src: str | None, node: ast.AST, error_message: str | None = None, *, frames: Sequence[Frame] = ()
    ) -> None:
        self.src = src
        self.node = node
        self.error_message = error_message
        self.frames = tuple(frames)
        self.message = self._format_message()
        super().__init__(self.message)

    def _format_message(self) -> str:
        frames = self.frames or (frame_of(self.src, self.node, "<source>", function="kernel"),)
        parts = [frame.render("called from " if i else "") for i, frame in enumerate(frames)]
        if len(parts) > 2 * _SHOWN_CALLS:
            hidden = f"... {len(parts) - 2 * _SHOWN_CALLS} more calls ..."
            parts = [*parts[:_SHOWN_CALLS], hidden, *parts[-_SHOWN_CALLS:]]
        if self.error_message:
            parts.append(self.error_message)
        return "\n".join(parts)

    def __str__(self) -> str:
        return self.message

    def tell_causes(self) -> None:
        """Sets ``__cause__`` to what tests and tools look at, without the compiler's own tracebacks."""
        cause = self.__cause__
        if isinstance(cause, NameError):
            cause = None
        if cause is not None:
            cause.__traceback__ = None
            cause.__cause__ = None
            cause.__suppress_context__ = True
        if len(self.frames) > 1:
            inner = type(self)(self.src, self.node, self.error_message, frames=self.frames[:-1])
            inner.__cause__ = cause
            cause = inner
        self.__cause__ = cause
        self.__traceback__ = None

    def __reduce__(self) -> Any:
        return _rebuild, (type(self), self.src, self.node, self.error_message, self.frames)


def _rebuild(kind: type[CompilationError], src: str | None, node: ast.AST, message: str | None, frames: Any) -> Any:
    return kind(src, node, message, frames=frames)


class CompileTimeAssertionFailure(CompilationError):
    """A ``tl.static_assert`` failed."""


class UnsupportedLanguageConstruct(CompilationError):
    """The kernel uses Python syntax that the language does not have."""

"""Capture of the user's Python functions: source text, parameters, syntax tree and a hash of all that they depend
on."""

from __future__ import annotations

import ast
import builtins
import inspect
import linecache
import threading
from collections.abc import Callable
from functools import cached_property
from types import ModuleType
from typing import Any, Generic, ParamSpec, TypeVar

from .dtypes import constexpr_type
from .values import constexpr, unwrap

P = ParamSpec("P")
R = TypeVar("R")
LANGUAGE_PACKAGE = "triton.language"


class KernelParam:
    """One parameter of a jitted function. ``annotation`` is text; dtype annotations are known by
    ``annotation_type``."""

    def __init__(
        self, num: int, param: inspect.Parameter, do_not_specialize: bool, do_not_specialize_on_alignment: bool
    ) -> None:
        self.num = num
        self._param = param
        self.do_not_specialize = do_not_specialize
        self.do_not_specialize_on_alignment = do_not_specialize_on_alignment

    @cached_property
    def name(self) -> str:
        return self._param.name

    @cached_property
    def annotation(self) -> str:
        given = self._param.annotation
        if given is None or given is inspect.Parameter.empty:
            return ""
        if isinstance(given, str):
            return given
        return str(getattr(given, "__name__", None) or given)

    @cached_property
    def annotation_type(self) -> str:
        """The signature name of a type used as annotation, such as ``"fp16"`` or ``"*fp32"``; empty for others."""
        text = self.annotation.removeprefix("const ").rsplit(".", 1)[-1]
        if text.startswith("*"):
            return text if text.lstrip("*").removeprefix("k") in _SIGNATURE_TYPES else ""
        given = self._param.annotation
        mangle = getattr(given, "mangle", None)
        if getattr(given, "primitive_bitwidth", 0) and callable(mangle) and not given.is_ptr():
            text = {"i1": "u1"}.get(mangle(), mangle())
        return text if text in _SIGNATURE_TYPES else _TYPE_NAMES.get(text, "")

    @cached_property
    def is_constexpr(self) -> bool:
        return "constexpr" in self.annotation

    @cached_property
    def is_const(self) -> bool:
        text = self.annotation
        return not self.is_constexpr and (text == "const" or text.startswith("const ") or text.endswith(".const"))

    @property
    def default(self) -> Any:
        return self._param.default

    @property
    def has_default(self) -> bool:
        return self._param.default is not inspect.Parameter.empty

    def __repr__(self) -> str:
        return f"<parameter {self.num} {self.name}>"


_TYPE_NAMES = {
    "bool": "u1",
    "int1": "u1",
    "uint1": "u1",
    "float16": "fp16",
    "half": "fp16",
    "bfloat16": "bf16",
    "float32": "fp32",
    "float64": "fp64",
    "double": "fp64",
    "float8e4nv": "fp8e4nv",
    "float8e5": "fp8e5",
    "float8e4b15": "fp8e4b15",
    "float8e4b8": "fp8e4b8",
    "float8e5b16": "fp8e5b16",
    **{f"{sign}int{bits}": f"{sign or 'i'}{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
}
_SIGNATURE_TYPES = frozenset(_TYPE_NAMES.values())


class JITCallable:
    """A Python function whose source is compiled, never run. Keeps what the compiler needs to know of it.

    ``src`` is the text from ``def`` on, without outer indentation; ``raw_src`` the lines as they stand, decorators
    included; ``starting_line_number`` the line of the first of them.
    """

    def __init__(self, fn: Callable[..., Any]) -> None:
        if not inspect.isfunction(fn):
            raise TypeError(f"jit: expected a function, got {type(fn).__name__}")
        self.fn = fn
        self.signature = inspect.signature(fn)
        code = fn.__code__
        self.file_name = self.file = code.co_filename
        self.starting_line_number = code.co_firstlineno
        self.__name__ = fn.__name__
        self.__qualname__ = fn.__qualname__
        self.__module__ = fn.__module__ or ""
        self.__doc__ = fn.__doc__
        self.__globals__ = fn.__globals__
        self._fn_name = f"{self.__module__}.{fn.__qualname__}"
        # Only the lines of the file are taken now; the function is found in them at first need: import stays quick.
        if not self.__module__.startswith("triton."):
            linecache.checkcache(self.file)
        self._lines = linecache.getlines(self.file, fn.__globals__)
        self._raw: list[str] | None = None
        self._src: str | None = None
        self._tree: ast.FunctionDef | None = None
        self.hash: str | None = None
        self.used_global_vals: dict[tuple[str, int], tuple[Any, dict[str, Any]]] = {}
        self.noinline = False
        self.params: list[KernelParam] = [
            KernelParam(i, p, False, False) for i, p in enumerate(self.signature.parameters.values())
        ]
        self.arg_names = [p.name for p in self.params]

    # Source ---------------------------------------------------------------------------------------------------------

    @property
    def raw_src(self) -> list[str]:
        """The function's lines, decorators included. Raises OSError when the source is not to be had."""
        if self._raw is None:
            if not self._lines or self.starting_line_number > len(self._lines):
                raise OSError(
                    f"{self.__qualname__}: the source of a jitted function must be in a file; "
                    f"{self.file!r} could not be read"
                )
            self._raw = _block(self._lines[self.starting_line_number - 1 :])
        return self._raw

    @property
    def def_file_line_number(self) -> int:
        """The line of ``def``."""
        return self.starting_line_number + self._def_offset

    @property
    def def_file_col_number(self) -> int:
        """The column of ``def``, from 1."""
        line = self.raw_src[self._def_offset]
        return len(line) - len(line.lstrip()) + 1

    @cached_property
    def _def_offset(self) -> int:
        for offset, line in enumerate(self.raw_src):
            if line.lstrip().startswith(("def ", "def\t")):
                return offset
        raise OSError(f"{self.__qualname__}: found no 'def' in its source; a lambda or async function cannot be jitted")

    @property
    def src(self) -> str:
        if self._src is None:
            self._src = _dedented(self.raw_src[self._def_offset :])
        return self._src

    @src.setter
    def src(self, value: str) -> None:
        self._src, self._tree, self.hash = value, None, None

    def _unsafe_update_src(self, new_src: str) -> None:
        """Another text, from ``def`` on, for the same parameters: what libraries that generate kernels call."""
        self.src = new_src

    def parse(self) -> ast.FunctionDef:
        """The function's syntax tree, parsed once; line 1 is the line of ``def``."""
        if self._tree is None:
            module = ast.parse(self.src)
            if len(module.body) != 1 or not isinstance(module.body[0], ast.FunctionDef):
                raise SyntaxError(f"{self.__qualname__}: expected the source of one function")
            self._tree = module.body[0]
        return self._tree

    # Names ----------------------------------------------------------------------------------------------------------

    @cached_property
    def nonlocals(self) -> dict[str, Any]:
        """Variables captured from enclosing functions."""
        names, cells = self.fn.__code__.co_freevars, self.fn.__closure__ or ()
        found = {}
        for name, cell in zip(names, cells, strict=True):
            try:
                found[name] = cell.cell_contents
            except ValueError:  # not assigned yet: defined after the jitted function
                continue
        return found

    def get_capture_scope(self) -> dict[str, Any]:
        """Globals and captured variables by name."""
        return {**self.__globals__, **inspect.getclosurevars(self.fn).nonlocals}

    def lookup(self, name: str, default: Any = None) -> Any:
        """A captured variable or global by name."""
        if name in self.fn.__code__.co_freevars:
            # Read the cell anew: it may have been filled since the decorator ran.
            for free, cell in zip(self.fn.__code__.co_freevars, self.fn.__closure__ or (), strict=True):
                if free == name:
                    try:
                        return cell.cell_contents
                    except ValueError:
                        return default
        return self.__globals__.get(name, default)

    # Hash -----------------------------------------------------------------------------------------------------------

    @property
    def cache_key(self) -> str:
        """SHA-256 over this function's source, the values of globals it reads and everything it calls, transitively."""
        found = self.hash
        if found is None:
            with _hash_lock:
                found = self.hash = self.hash or self._compute_hash()
        return found

    def _compute_hash(self) -> str:
        import hashlib  # loads OpenSSL, which importing the language need not wait for

        seen: set[JITCallable] = {self}
        pending, texts, values = [self], [], {}
        while pending:
            fn = pending.pop()
            finder = DependenciesFinder(fn._fn_name, fn)
            finder.visit(fn.parse())
            values.update(finder.used_global_vals)
            texts.append(f"{fn._fn_name}\0{fn.src}\0{fn.starting_line_number}\0{sorted(finder.parts)}")
            new = [callee for callee in finder.callees if callee not in seen]
            seen.update(new)
            pending.extend(new)
        self.used_global_vals = dict(sorted(values.items()))
        # The function itself comes first; the order of the others must not depend on how they were found.
        text = "\0".join([texts[0], *sorted(texts[1:])])
        return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()

    def __hash__(self) -> int:
        return hash(self._fn_name) ^ id(self)

    def __eq__(self, other: object) -> bool:
        return self is other

    @property
    def type(self) -> Any:
        """What the language calls this value's type."""
        return constexpr_type(self)

    def __repr__(self) -> str:
        return f"<jitted {self.__module__}:{self.__qualname__}>"


def _block(lines: list[str]) -> list[str]:
    """The lines of the function that begins at the first one.

    It is taken to end before the next line that is not indented further than it. A line within brackets or a string
    may be, too; then what was taken does not parse, and the tokenizer finds the end, which takes longer.
    """
    start = next((i for i, line in enumerate(lines) if line.lstrip().startswith(("def ", "def\t"))), None)
    if start is None:
        return inspect.getblock(lines)
    indent = len(lines[start]) - len(lines[start].lstrip())
    end = start + 1
    for number in range(start + 1, len(lines)):
        text = lines[number].lstrip()
        if not text or text[0] in "#)":
            continue
        if len(lines[number]) - len(text) <= indent:
            break
        end = number + 1
    while end < len(lines) and lines[end].lstrip()[:1] == ")":
        end += 1
    try:
        ast.parse(_dedented(lines[start:end]))
    except SyntaxError:
        return inspect.getblock(lines)
    return lines[:end]


def _dedented(lines: list[str]) -> str:
    """The text without the indentation of its first line; lines that have less, in strings, stay as they are."""
    indent = len(lines[0]) - len(lines[0].lstrip())
    return "".join(lines) if not indent else "".join([s[indent:] if s[:indent].isspace() else s for s in lines])


_hash_lock = threading.RLock()


class DependenciesFinder(ast.NodeVisitor):
    """Collects what a jitted function's meaning depends on besides its own text, as strings for its hash.

    ``used_global_vals`` maps (name, id of its scope) to (value, scope): a change of such a value needs a new
    compilation.
    """

    def __init__(self, name: str, fn: JITCallable) -> None:
        self.name = name
        self.fn = fn
        self.parts: set[str] = set()
        self.callees: dict[JITCallable, None] = {}
        self.used_global_vals: dict[tuple[str, int], tuple[Any, dict[str, Any]]] = {}
        self.local_names = _assigned_names(fn.parse())

    def visit_Name(self, node: ast.Name) -> Any:
        if isinstance(node.ctx, ast.Store):
            return None
        if node.id in self.local_names:
            return None
        value = self.fn.lookup(node.id, _MISSING)
        if value is _MISSING:
            return getattr(builtins, node.id, None)
        captured = node.id in self.fn.fn.__code__.co_freevars
        self.record(node.id, value, self.fn.nonlocals if captured else self.fn.__globals__)
        return value

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        owner = self.visit(node.value)
        if owner is None or not (isinstance(owner, (ModuleType, type)) or hasattr(owner, "__dict__")):
            return None
        if isinstance(owner, ModuleType) and owner.__name__.startswith("triton."):
            return None  # the package's own version stands for it
        value = getattr(owner, node.attr, None)
        if isinstance(value, (JITCallable, ModuleType, type, constexpr)):
            scope = owner.__dict__ if isinstance(owner, ModuleType) else {}
            self.record(f"{getattr(owner, '__name__', '')}.{node.attr}", value, scope, node.attr)
        return value

    def generic_visit(self, node: ast.AST) -> None:
        """What lies below, without recursion: an expression may be deeper than Python's stack."""
        pending = [*ast.iter_child_nodes(node)]
        while pending:
            child = pending.pop()
            if isinstance(child, (ast.Name, ast.Attribute)):
                self.visit(child)
            else:
                pending.extend(ast.iter_child_nodes(child))

    def record(self, name: str, value: Any, scope: dict[str, Any], key: str | None = None) -> None:
        """Adds one referenced value."""
        if hasattr(value, "__triton_aggregate__"):
            for member_name, member in vars(value).items():
                self._call(f"{name}.{member_name}", member)
        if isinstance(value, ModuleType) or getattr(value, "__triton_builtin__", False):
            return
        wrapped = getattr(value, "fn", None)  # autotuned or heuristics around a jitted function
        if self._call(name, value) or self._call(name, wrapped):
            return
        if isinstance(value, type) or (callable(value) and not isinstance(value, constexpr)):
            module = str(getattr(value, "__module__", ""))
            self.parts.add(f"{name}={module}.{getattr(value, '__qualname__', name)}")
            return
        self.parts.add(f"{name}={value!r}")
        self.used_global_vals[(key or name, id(scope))] = (value, scope)

    def _call(self, name: str, value: Any) -> bool:
        """Adds ``value`` if it is a jitted function; the package's own version stands for those of the language."""
        if not isinstance(value, JITCallable):
            return False
        if not value.__module__.startswith(LANGUAGE_PACKAGE):
            self.parts.add(f"{name}={value._fn_name}")
            self.callees[getattr(value, "__func__", value)] = None
        return True


_MISSING = object()


def _assigned_names(function: ast.FunctionDef) -> set[str]:
    """Parameters and names that the function's body binds."""
    names = {a.arg for a in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)}
    for extra in (function.args.vararg, function.args.kwarg):
        if extra is not None:
            names.add(extra.arg)
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
    return names


class ConstexprFunction(JITCallable, Generic[P, R]):
    """A Python function that runs while a kernel is compiled, on compile-time values; its result is one too."""

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else BoundConstexprFunction(instance, self)

    def __call__(self, *args: Any, _semantic: Any = None, **kwargs: Any) -> Any:
        if _semantic is None and not kwargs:  # grids are computed by it at every launch
            for a in args:
                if type(a) is not int:
                    break
            else:
                return self.fn(*args)
        result = self.fn(*[unwrap(a) for a in args], **{k: unwrap(v) for k, v in kwargs.items()})
        if _semantic is None:  # called by ordinary Python
            return result
        return result if isinstance(result, (constexpr, JITCallable)) else constexpr(result)


class BoundConstexprFunction(JITCallable):
    """A ConstexprFunction as method of an object."""

    def __init__(self, instance: Any, fn: ConstexprFunction[..., Any]) -> None:
        self.__dict__.update(fn.__dict__)
        self.instance = instance
        self.__func__ = fn

    @property
    def cache_key(self) -> str:
        return self.__func__.cache_key

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.__func__(self.instance, *args, **kwargs)


def constexpr_function(fn: Callable[P, R]) -> ConstexprFunction[P, R]:
    """Decorator: ``fn`` may be called in a kernel with compile-time values and runs then and there, as plain Python."""
    return ConstexprFunction(fn)

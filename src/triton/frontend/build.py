"""Entry point of the front end: a jitted function and the types of its arguments to a module of tile IR."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from triton import knobs
from triton.diagnostics.errors import CompilationError, CompileTimeAssertionFailure, UnsupportedLanguageConstruct
from triton.ir import Function, Module
from triton.ir import types as ir
from triton.ir.capabilities import Capabilities

# Imported for the handlers that they register with the generator.
from . import branches, calls, expressions, loops, statements  # noqa: F401
from .descriptors import tensor_descriptor
from .dtypes import block_type, int64, str_to_ty
from .generator import Generator, Scope, wrap
from .semantic import StaticAssertionFailed
from .source import JITCallable
from .values import constexpr, tensor
from .values import tuple as language_tuple

Path = tuple[int, ...]

SAFE_DEPTH = 120
"""Frames below the caller up to which the walk runs on the caller's own stack."""
STACK_BYTES = 255 << 20  # less than 256 MiB: Windows takes no more
RECURSION_LIMIT = 100_000


def build_module(
    fn: JITCallable,
    signature: Mapping[str, Any],
    constexprs: Mapping[Path, Any],
    attrs: Mapping[Path, Sequence[tuple[str, int]]],
    options: Any,
    capabilities: Capabilities,
) -> Module:
    """The module of kernel ``fn``, verified by construction.

    ``signature`` gives each parameter a type: ``"*fp32"``, ``"i32"``, ``"u1"``, ``"constexpr"``,
    ``"tensordesc<fp16[64, 32]>"``, or a tuple of these; ``constexprs`` maps parameter paths, ``(2,)`` or ``(3, 0)``
    for tuple members, to values; ``attrs`` maps paths to promises such as ``("tt.divisibility", 16)``. Each run-time
    leaf becomes one argument of the kernel, in order; a descriptor becomes its base, its sizes and its strides (i64).
    Raises CompilationError for everything that is wrong with the kernel.
    """
    return _with_deep_stack(lambda last: _build(fn, signature, constexprs, attrs, options, capabilities, last))


def _with_deep_stack(work: Callable[[bool], Module]) -> Module:
    """Runs ``work`` here, or on a thread with a large stack when the stack is deep already or proves too short.

    ``work`` is told whether this is the last attempt.
    """
    depth, frame = 0, sys._getframe()
    while frame is not None and depth <= SAFE_DEPTH:
        depth, frame = depth + 1, frame.f_back  # type: ignore[assignment]
    if depth > SAFE_DEPTH:
        return _on_thread(lambda: work(True))
    try:
        return work(False)
    except RecursionError:
        return _on_thread(lambda: work(True))  # once more, with room


_thread_lock = threading.Lock()


def _on_thread(work: Callable[[], Module]) -> Module:
    result: list[Module] = []
    failure: list[BaseException] = []

    def target() -> None:
        try:
            result.append(work())
        except BaseException as error:  # handed to the caller below
            failure.append(error)

    with _thread_lock:  # stack size and recursion limit are settings of the whole process
        old_size, old_limit = threading.stack_size(STACK_BYTES), sys.getrecursionlimit()
        sys.setrecursionlimit(max(old_limit, RECURSION_LIMIT))
        try:
            thread = threading.Thread(target=target, name="triton-front-end")
            thread.start()
        finally:
            threading.stack_size(old_size)
        thread.join()
        sys.setrecursionlimit(old_limit)
    if failure:
        raise failure[0]
    return result[0]


def _build(
    fn: JITCallable,
    signature: Mapping[str, Any],
    constexprs: Mapping[Path, Any],
    attrs: Mapping[Path, Any],
    options: Any,
    capabilities: Capabilities,
    last_attempt: bool,
) -> Module:
    module = Module({"num_warps": getattr(options, "num_warps", 4), "num_stages": getattr(options, "num_stages", 3)})
    generator = Generator(module, options, capabilities)
    arguments = _Arguments(constexprs, attrs)
    env = {}
    for index, name in enumerate(fn.arg_names):
        env[name] = arguments.value((index,), name, signature.get(name, "constexpr"))
    function = Function(_kernel_name(fn), arguments.types, (), arguments.names, {"kernel": True})
    function.arg_attrs = arguments.attrs
    for placeholder, value in zip(arguments.placeholders, function.args, strict=True):
        placeholder.handle = value
    module.add(function)
    generator.builder.block = function.body
    generator.scope = scope = Scope(fn, None, None, None)
    scope.env = env
    tree = fn.parse()
    generator.at(tree)
    function.loc = generator.builder.loc
    for descriptor in arguments.descriptors:
        descriptor.make(generator.semantic)
    try:
        result = generator.run_function(tree)
        if not (isinstance(result, constexpr) and result.value is None):
            raise TypeError("a kernel returns nothing")
        generator.builder.emit("return", [], [])
    except (CompilationError, MemoryError):
        raise
    except RecursionError as error:
        if not last_attempt:
            raise
        raise generator.error("the kernel, or a function it runs at compile time, is nested too deeply") from error
    except StaticAssertionFailed as error:
        raise generator.error(str(error), CompileTimeAssertionFailure) from None
    except NotImplementedError as error:
        raise generator.error(str(error) or "not implemented", UnsupportedLanguageConstruct) from error
    except Exception as error:
        if knobs.compilation.front_end_debugging:
            raise
        raise generator.error(_message(error)) from error
    return module


def _message(error: Exception) -> str:
    text = str(error)
    if isinstance(error, KeyError):
        text = f"no such key: {text}"
    if isinstance(error, AssertionError):
        return f"assertion failed: {text}" if text else "assertion failed"
    return text or type(error).__name__


def _kernel_name(fn: JITCallable) -> str:
    return re.sub(r"\W", "_", fn.__name__, flags=re.ASCII) or "kernel"


class _Arguments:
    """Makes the kernel's arguments and the values of its parameters from signature, constants and promises."""

    def __init__(self, constexprs: Mapping[Path, Any], attrs: Mapping[Path, Any]) -> None:
        self.constexprs = constexprs
        self.promises = attrs
        self.types: list[ir.Type] = []
        self.names: list[str] = []
        self.attrs: list[dict[str, Any]] = []
        self.placeholders: list[Any] = []
        self.descriptors: list[Any] = []

    def value(self, path: Path, name: str, type: Any) -> Any:
        """What parameter ``name`` is in the kernel."""
        if path in self.constexprs and (len(path) == 1 or type == "constexpr"):
            given = self.constexprs[path]
            return given if isinstance(given, constexpr) or _is_function(given) else _constant(given)
        if isinstance(type, (tuple, list)):
            fields = getattr(type, "_fields", [str(i) for i in range(len(type))])
            members = [self.value((*path, i), f"{name}_{fields[i]}", t) for i, t in enumerate(type)]
            return language_tuple(members, type.__class__ if hasattr(type, "_fields") else None)
        if type == "constexpr":
            raise ValueError(f"build_module: parameter {name} is a constexpr without a value")
        if type.startswith(("tensordesc<", "nvTmaDesc<")):
            return self.descriptor(path, name, type)
        return self.leaf(name, str_to_ty(type), self.promises.get(path, ()))

    def leaf(self, name: str, type: Any, promises: Sequence[tuple[str, int]] = ()) -> tensor:
        self.types.append(type.ir)
        self.names.append(name)
        known = dict(promises)
        names = (("tt.divisibility", "divisible"), ("tt.pointer_range", "range_bits"))
        self.attrs.append({ours: int(known[name]) for name, ours in names if known.get(name)})
        made = tensor(None, type)  # type: ignore[arg-type]
        self.placeholders.append(made)
        return made

    def descriptor(self, path: Path, name: str, type: str) -> Any:
        element, shape = _parse_descriptor(type)
        rank = len(shape)
        base = self.leaf(f"{name}_base", str_to_ty("*" + element), [("tt.divisibility", 16)])
        sizes = [self.leaf(f"{name}_size{i}", int64) for i in range(rank)]
        strides = [self.leaf(f"{name}_stride{i}", int64) for i in range(rank)]
        block = block_type(str_to_ty(element), shape)
        made = tensor_descriptor(None, language_tuple(sizes), language_tuple(strides), block)
        made.base, made.padding = base, "nan" if type.endswith(", nan>") else "zero"
        made.regular = dict(self.promises.get(path, ())).get("tt.divisibility") == 16
        self.descriptors.append(made)
        return made


def _constant(value: Any) -> Any:
    return wrap(value) if isinstance(value, (tuple, list)) else constexpr(value)


def _is_function(value: Any) -> bool:
    return isinstance(value, JITCallable)


def _parse_descriptor(type: str) -> tuple[str, tuple[int, ...]]:
    """Element name and box of ``tensordesc<fp16[64, 32]>``."""
    match = re.match(r"\w+<(\w+)\s*\[([\d,\s]+)\]", type)
    if match is None:
        raise ValueError(f"signature: expected tensordesc<element[sizes]>, got {type!r}")
    return match[1], tuple(int(s) for s in match[2].split(",") if s.strip())

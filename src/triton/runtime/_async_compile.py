"""Compile in the background: inside ``AsyncCompileMode(executor)`` warm-ups return at once, the executor compiles."""

from __future__ import annotations

import contextvars
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from concurrent.futures import Executor, Future

active_mode: contextvars.ContextVar[AsyncCompileMode | None] = contextvars.ContextVar(
    "triton_async_compile_mode", default=None
)


class FutureKernel:
    """A kernel that is being compiled. Its attributes are those of the kernel; reading one waits for it."""

    def __init__(
        self,
        finalize_compile: Callable[[Any], Any],
        cleanup_compile: Callable[[], Any],
        future: Future[Any],
    ) -> None:
        self.finalize_compile = finalize_compile
        self.cleanup_compile = cleanup_compile
        self.kernel: Any = None
        self.future = future

    def result(self, ignore_errors: bool = False) -> Any:
        """The compiled kernel. A failed compile raises here, unless errors are ignored: then None, and a later launch
        compiles again."""
        if self.kernel is not None:
            return self.kernel
        try:
            kernel = self.future.result()
        except Exception:
            self.cleanup_compile()
            if ignore_errors:
                return None
            raise
        self.finalize_compile(kernel)
        self.kernel = kernel
        return kernel

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.result(), name)


class AsyncCompileMode:
    """A context in which kernels compile on ``executor``, any ``concurrent.futures`` executor that shares memory with
    this process; leaving it waits for them."""

    def __init__(self, executor: Executor, *, ignore_errors: bool = False) -> None:
        self.executor = executor
        self.ignore_errors = ignore_errors
        self.raw_futures: list[Future[Any]] = []
        self.future_kernels: dict[str, FutureKernel] = {}
        self._token: contextvars.Token[AsyncCompileMode | None] | None = None

    def submit(
        self,
        key: str,
        compile_fn: Callable[[], Any],
        finalize_fn: Callable[[Any], Any],
        cleanup_fn: Callable[[], Any] = lambda: None,
    ) -> FutureKernel:
        """Start a compile, or return the one already started under the same key."""
        kernel = self.future_kernels.get(key)
        if kernel is None:
            future = self.executor.submit(compile_fn)
            future._key = key  # type: ignore[attr-defined]
            self.raw_futures.append(future)
            kernel = self.future_kernels[key] = FutureKernel(finalize_fn, cleanup_fn, future)
        return kernel

    def __enter__(self) -> AsyncCompileMode:
        if active_mode.get() is not None:
            raise RuntimeError("AsyncCompileMode cannot be entered inside another one")
        self._token = active_mode.set(self)
        return self

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        if self._token is not None:
            active_mode.reset(self._token)
        for future in self.raw_futures:
            self.future_kernels[future._key].result(self.ignore_errors)  # type: ignore[attr-defined]

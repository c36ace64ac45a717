"""Vector addition and softmax."""

from __future__ import annotations

import numpy as np
from harness import Case, numba_module, torch_module
from softmax import softmax, softmax_numpy
from vector_add import add


def cases() -> list[Case]:
    torch, numba = torch_module(), numba_module()
    rng = np.random.default_rng(0)
    found = []
    for n in (1 << 14, 1 << 20, (1 << 24) + 3):
        x, y = rng.standard_normal((2, n), dtype=np.float32)
        out, spare = np.empty_like(x), np.empty_like(x)
        calls = {
            "triton": lambda x=x, y=y, out=out: add(x, y, out),
            "numpy": lambda x=x, y=y, o=spare: np.add(x, y, out=o),
        }
        if torch is not None:
            tx, ty, to = (torch.from_numpy(v) for v in (x, y, np.empty_like(x)))
            calls["torch"] = lambda tx=tx, ty=ty, to=to: torch.add(tx, ty, out=to)
        if numba is not None:
            calls["numba"] = lambda x=x, y=y, o=np.empty_like(x), f=_numba_add(numba): f(x, y, o)
        found.append(Case("vector add", f"{n} f32", calls, 0.0, n, 12 * n))
    for rows, columns in ((4096, 256), (2048, 781), (1024, 4000), (128, 32768)):
        x = rng.standard_normal((rows, columns), dtype=np.float32)
        calls = {"triton": lambda x=x, out=np.empty_like(x): softmax(x, out), "numpy": lambda x=x: softmax_numpy(x)}
        if torch is not None:
            calls["torch"] = lambda tx=torch.from_numpy(x), o=torch.empty(x.shape): torch.softmax(tx, 1, out=o)
        if numba is not None:
            calls["numba"] = lambda x=x, o=np.empty_like(x), f=_numba_softmax(numba): f(x, o)
        found.append(Case("softmax", f"{rows} x {columns} f32", calls, 1e-5, 5 * x.size, 8 * x.size))
    return found


def _numba_add(numba):
    @numba.njit(parallel=True, fastmath=True)
    def step(x, y, out):
        for i in numba.prange(x.size):
            out[i] = x[i] + y[i]
        return out

    return step


def _numba_softmax(numba):
    @numba.njit(parallel=True, fastmath=True)
    def step(x, out):
        for i in numba.prange(x.shape[0]):
            top = x[i].max()
            total = np.float32(0)
            for j in range(x.shape[1]):
                out[i, j] = np.exp(x[i, j] - top)
                total += out[i, j]
            for j in range(x.shape[1]):
                out[i, j] /= total
        return out

    return step

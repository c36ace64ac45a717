"""Special functions against SciPy, by the interpreter."""

from __future__ import annotations

import numpy as np
import pytest
import support

import triton
import triton.language as tl
from triton.language.extra import libdevice

special = pytest.importorskip("scipy.special")


@triton.jit
def apply(p, out, n: tl.constexpr, NAME: tl.constexpr):
    i = tl.arange(0, n)
    tl.store(out + i, getattr(libdevice, NAME)(tl.load(p + i)))


def probabilities(dtype):
    tiny = np.finfo(dtype).tiny
    return np.concatenate([np.linspace(0.001, 0.999, 301), [tiny * 2, 1e-30, 1e-12, 1e-7, 1e-3]]).astype(dtype)


CASES = {
    "erfinv": (special.erfinv, lambda t: np.concatenate([np.linspace(-0.9999, 0.9999, 401), [0, -1, 1]]).astype(t)),
    "erfcinv": (
        special.erfcinv,
        lambda t: np.concatenate([probabilities(t), 1 + probabilities(t)[:300], [0, 2]]).astype(t),
    ),
    "normcdfinv": (special.ndtri, lambda t: np.concatenate([probabilities(t), [0, 1]]).astype(t)),
    "erfcx": (special.erfcx, lambda t: np.concatenate([np.linspace(-5, 30, 501), [1e4, 1e10]]).astype(t)),
    "cyl_bessel_i0": (special.i0, lambda t: np.linspace(-80, 80, 801).astype(t)),
    "cyl_bessel_i1": (special.i1, lambda t: np.linspace(-80, 80, 801).astype(t)),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", CASES)
def test_special_functions(name, dtype):
    reference, sample = CASES[name]
    x = sample(dtype)
    out = np.zeros_like(x)
    support.launch(apply, (1,), x, out, backend="interpreter", n=len(x), NAME=name)
    expected = reference(x.astype(np.float64))
    infinite = np.isinf(expected)
    assert np.array_equal(out[infinite], expected[infinite])
    error = np.abs(out[~infinite] - expected[~infinite])
    # Where the function crosses zero its condition is bad: an absolute error of a rounded argument counts there.
    allowed = np.finfo(dtype).eps * (8 * np.abs(expected[~infinite]) + (4 if "inv" in name and name != "erfinv" else 0))
    worst = int(np.argmax(error / np.maximum(allowed, np.finfo(dtype).tiny)))
    assert (error <= allowed).all(), (x[~infinite][worst], out[~infinite][worst], expected[~infinite][worst])

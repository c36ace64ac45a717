"""Mathematical functions against float64, and random numbers against Philox written out in Python."""

import math

import numpy as np
import pytest
from support import close, empty, sample

import triton
import triton.language as tl
from triton.tools.sample_kernels import MATHEMATICS, math_kernel

FUNCTIONS = {
    "exp": np.exp, "exp2": np.exp2, "log": np.log, "log2": np.log2, "sin": np.sin, "cos": np.cos, "sqrt": np.sqrt,
    "sqrt_rn": np.sqrt, "rsqrt": lambda v: 1 / np.sqrt(v), "erf": np.vectorize(math.erf, otypes=[float]),
    "floor": np.floor, "ceil": np.ceil, "sigmoid": lambda v: 1 / (1 + np.exp(-v)), "neg": np.negative, "abs": np.abs,
}  # fmt: skip
POSITIVE = {"log", "log2", "sqrt", "sqrt_rn", "rsqrt"}


@pytest.mark.parametrize("op", MATHEMATICS)
@pytest.mark.parametrize("name", ["float32", "float64"])
def test_mathematics(launch, op, name):
    n = 2000
    low, high = (1e-3, 50) if op in POSITIVE else (-20, 20)
    x, z = sample(name, n, 0, low, high), empty(name, n)
    edges = [0.0, np.inf, np.nan, 1.0, 1e-30, 1e30, 0.5]
    edges = edges if op in POSITIVE | {"sin", "cos"} else [*edges, -0.0, -np.inf, -1.0, -1e30]
    x.raw[: len(edges)] = edges
    launch(math_kernel, (20,), x, z, N=100, OP=op)
    with np.errstate(all="ignore"):
        expected = FUNCTIONS[op](x.raw.astype(np.float64))
    tiny_error = 0.0
    if op in ("sin", "cos"):
        expected[[1, 5]] = [np.nan, z.raw[5]]  # NumPy's own result for 1e30 is not the yardstick
        assert abs(z.raw[5]) <= 1
        tiny_error = 1e-6 if name == "float32" else 1e-15
    exact = op in ("floor", "ceil", "sqrt_rn", "neg", "abs")
    places = 0 if exact and name == "float64" else 1 if exact else 4 if op == "sigmoid" else 2
    close(z, expected, places=places, scale=np.maximum(np.abs(expected), tiny_error / 1e-7 * 1e-2))


@pytest.mark.parametrize("op", ["exp", "log", "sqrt", "sin", "erf"])
@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_mathematics_of_short_floats(launch, op, name):
    x, z = sample(name, 200, 0, 0.01 if op in POSITIVE else -5, 5), empty(name, 200)
    launch(math_kernel, (2,), x, z, N=100, OP=op)
    close(z, FUNCTIONS[op](x.values.astype(np.float64)), places=1.01)


@triton.jit
def fused_kernel(x, y, w, z, N: tl.constexpr):
    i = tl.arange(0, N)
    a, b, c = tl.load(x + i), tl.load(y + i), tl.load(w + i)
    tl.store(z + i, tl.fma(a, b, c))
    tl.store(z + N + i, tl.fdiv(a, b))
    tl.store(z + 2 * N + i, tl.div_rn(a, b))


def test_fma_and_division(launch):
    n = 100
    x, y, w, z = sample("float32", n, 1), sample("float32", n, 2), sample("float32", n, 3), empty("float32", (3, n))
    w.raw[:50] = -(x.raw * y.raw)[:50]
    launch(fused_kernel, (1,), x, y, w, z, N=n)
    a, b, c = (v.raw.astype(np.float64) for v in (x, y, w))
    np.testing.assert_array_equal(z.raw[0], (a * b + c).astype(np.float32))
    np.testing.assert_allclose(z.raw[1], x.raw / y.raw, rtol=1e-6)
    np.testing.assert_array_equal(z.raw[2], x.raw / y.raw)


@triton.jit
def mulhi_kernel(x, y, z, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(z + i, tl.umulhi(tl.load(x + i), tl.load(y + i)))


@pytest.mark.parametrize("name", ["uint32", "uint64", "int32"])
def test_umulhi(launch, name):
    rng = np.random.default_rng(0)
    bits = np.iinfo(name).bits
    unsigned = rng.integers(0, 2**bits, (2, 60), dtype=f"uint{bits}")
    x, y, z = (empty(name, 60) for _ in range(3))
    x.raw[:], y.raw[:] = unsigned.view(name)
    launch(mulhi_kernel, (1,), x, y, z, N=60)
    expected = [a * b >> bits for a, b in zip(*unsigned.tolist(), strict=True)]
    np.testing.assert_array_equal(z.raw.view(unsigned.dtype), np.array(expected, unsigned.dtype))


@triton.jit
def mulhi_ones_kernel(x, y, z, N: tl.constexpr, M: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(z + i, tl.umulhi(tl.load(x + i), tl.load(y + i, mask=i < M, other=1)))


@pytest.mark.parametrize("name", ["uint32", "uint64", "int32"])
@pytest.mark.parametrize("m", [0, 8, 16, 31])
def test_umulhi_where_a_mask_leaves_ones(launch, name, m):
    """Whole registers of ones: LLVM folds a high half by a vector of ones to a shift by the whole width."""
    n, bits = 31, np.iinfo(name).bits
    unsigned = np.random.default_rng(1).integers(0, 2**bits, (2, n), dtype=f"uint{bits}")
    x, y, z = (empty(name, n) for _ in range(3))
    x.raw[:], y.raw[:] = unsigned.view(name)
    launch(mulhi_ones_kernel, (1,), x, y, z, N=n, M=m)
    expected = [a * b >> bits if i < m else 0 for i, (a, b) in enumerate(zip(*unsigned.tolist(), strict=True))]
    np.testing.assert_array_equal(z.raw.view(unsigned.dtype), np.array(expected, unsigned.dtype))


# Random numbers -----------------------------------------------------------------------------------------------------


def philox(counter, key, rounds=10):
    """Philox-4x32 (Salmon et al. 2011) on Python integers."""
    c, k = list(counter), list(key)
    for _ in range(rounds):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(b >> 32) ^ c[1] ^ k[0], b & 0xFFFFFFFF, (a >> 32) ^ c[3] ^ k[1], a & 0xFFFFFFFF]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c


@triton.jit
def randint_kernel(z, seed, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(z + i, tl.randint(seed, i))
    a, b, c, d = tl.randint4x(seed, i)
    tl.store(z + N + i, a)
    tl.store(z + 2 * N + i, b)
    tl.store(z + 3 * N + i, c)
    tl.store(z + 4 * N + i, d)


@pytest.mark.parametrize("seed", [0, 1, 42, 2**31 - 1, 0x123456789ABC])
def test_randint_is_philox(launch, seed):
    n = 20
    z = empty("int32", (5, n))
    launch(randint_kernel, (1,), z, seed, N=n)
    key = (seed & 0xFFFFFFFF, seed >> 32)
    expected = np.array([philox((i, 0, 0, 0), key) for i in range(n)], np.uint32).T
    np.testing.assert_array_equal(z.raw.view(np.uint32), [expected[0], *expected])


def test_philox_known_answer():
    """The published test vectors of Random123 for philox4x32-10."""
    assert philox((0,) * 4, (0,) * 2) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
    ones = 0xFFFFFFFF
    assert philox((ones,) * 4, (ones,) * 2) == [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]


@triton.jit
def rand_kernel(u, g, seed, N: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    tl.store(u + i, tl.rand(seed, i))
    tl.store(g + i, tl.randn(seed, i))


def test_distributions(launch):
    n = 8000
    u, g = empty("float32", n), empty("float32", n)
    launch(rand_kernel, (8,), u, g, 7, N=1000)
    assert u.raw.min() >= 0 and u.raw.max() < 1
    assert abs(u.raw.mean() - 0.5) < 0.02 and abs(u.raw.var() - 1 / 12) < 0.01
    assert abs(g.raw.mean()) < 0.06 and abs(g.raw.var() - 1) < 0.1 and len(np.unique(u.raw)) > n * 0.99

"""Low-memory dropout: the mask is a function of a seed (Philox 4x32-10), so nothing but the seed is kept for the
backward pass."""

import common
import numpy as np

import triton
import triton.language as tl


@triton.jit
def dropout_kernel(x_ptr, out_ptr, n, p, seed, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    x = tl.load(x_ptr + offsets, mask=inside)
    keep = tl.rand(seed, offsets) > p
    tl.store(out_ptr + offsets, tl.where(keep, x / (1 - p), 0.0), mask=inside)


def dropout(x: np.ndarray, out: np.ndarray, p: float, seed: int, block: int = 4096) -> np.ndarray:
    dropout_kernel[(triton.cdiv(x.size, block),)](x, out, x.size, p, seed, BLOCK=block)
    return out


def philox_numpy(seed: int, counter: np.ndarray) -> np.ndarray:
    """First word of Philox 4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC'11, section
    3.3)."""
    c0, zero = counter.astype(np.uint64), np.zeros(counter.shape, dtype=np.uint64)
    c1, c2, c3 = zero, zero, zero
    k0, k1 = seed & 0xFFFFFFFF, seed >> 32
    low = np.uint64(0xFFFFFFFF)
    for _ in range(10):
        a, b = c0 * np.uint64(0xD2511F53), c2 * np.uint64(0xCD9E8D57)
        c0, c1, c2, c3 = (
            (b >> np.uint64(32)) ^ c1 ^ np.uint64(k0),
            b & low,
            (a >> np.uint64(32)) ^ c3 ^ np.uint64(k1),
            a & low,
        )
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return c0.astype(np.uint32)


def dropout_numpy(x: np.ndarray, p: float, seed: int) -> np.ndarray:
    words = philox_numpy(seed, np.arange(x.size)).view(np.int32)
    uniform = np.where(words < 0, -words - 1, words).astype(np.float32) * np.float32(4.6566127342e-10)
    return np.where(uniform > np.float32(p), x / np.float32(1 - p), np.float32(0))


def run() -> list[common.Row]:
    x = np.random.default_rng(0).standard_normal(1_000_003, dtype=np.float32)
    out = np.empty_like(x)
    error = common.check("dropout", dropout(x, out, 0.3, 1234), dropout_numpy(x, 0.3, 1234), 1e-5)
    with_torch = None
    if common.torch is not None:
        tx = common.torch.from_numpy(x)
        with_torch = lambda: common.torch.nn.functional.dropout(tx, 0.3, True)  # noqa: E731
    ours, numpy = lambda: dropout(x, out, 0.3, 1234), lambda: dropout_numpy(x, 0.3, 1234)
    return [common.compare("low-memory dropout", f"{x.size} f32", error, ours, numpy, with_torch)]


if __name__ == "__main__":
    common.print_table(run())

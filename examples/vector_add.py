"""Vector addition: one program adds one block; the last block is masked."""

import common
import numpy as np

import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    x = tl.load(x_ptr + offsets, mask=inside)
    y = tl.load(y_ptr + offsets, mask=inside)
    tl.store(out_ptr + offsets, x + y, mask=inside)


def add(x: np.ndarray, y: np.ndarray, out: np.ndarray, block: int = 8192) -> np.ndarray:
    add_kernel[(triton.cdiv(x.size, block),)](x, y, out, x.size, BLOCK=block)
    return out


def run() -> list[common.Row]:
    rng = np.random.default_rng(0)
    n = (1 << 22) + 3
    x, y = rng.standard_normal((2, n), dtype=np.float32)
    out = np.empty_like(x)
    error = common.check("vector add", add(x, y, out), x + y, 0.0)
    with_torch = None
    if common.torch is not None:
        tx, ty, tout = map(common.torch.from_numpy, (x, y, np.empty_like(x)))
        with_torch = lambda: common.torch.add(tx, ty, out=tout)  # noqa: E731
    spare = np.empty_like(x)
    return [
        common.compare("vector add", f"{n} f32", error, lambda: add(x, y, out), lambda: np.add(x, y, spare), with_torch)
    ]


if __name__ == "__main__":
    common.print_table(run())

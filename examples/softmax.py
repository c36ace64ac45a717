"""Softmax over rows, fused: each program reads its row once and writes it once."""

import common
import numpy as np

import triton
import triton.language as tl


@triton.jit
def softmax_kernel(out_ptr, x_ptr, row_stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    inside = offsets < columns
    x = tl.load(x_ptr + row * row_stride + offsets, mask=inside, other=-float("inf"))
    powers = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * row_stride + offsets, powers / tl.sum(powers, axis=0), mask=inside)


def softmax(x: np.ndarray, out: np.ndarray) -> np.ndarray:
    rows, columns = x.shape
    softmax_kernel[(rows,)](out, x, x.shape[1], columns, BLOCK=triton.next_power_of_2(columns))
    return out


def softmax_numpy(x: np.ndarray) -> np.ndarray:
    powers = np.exp(x - x.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def run() -> list[common.Row]:
    x = np.random.default_rng(0).standard_normal((2048, 781), dtype=np.float32)
    out = np.empty_like(x)
    error = common.check("softmax", softmax(x, out), softmax_numpy(x), 1e-6)
    with_torch = None
    if common.torch is not None:
        tx = common.torch.from_numpy(x)
        with_torch = lambda: common.torch.softmax(tx, dim=1)  # noqa: E731
    return [
        common.compare(
            "softmax", "2048 x 781 f32", error, lambda: softmax(x, out), lambda: softmax_numpy(x), with_torch
        )
    ]


if __name__ == "__main__":
    common.print_table(run())

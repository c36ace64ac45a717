"""Convolutions of two and three dimensions without an im2col matrix.

A program computes a piece of one output line for all output channels: for each tap of the filter it multiplies the
[outputs, inputs] matrix of weights with an [inputs, width] piece of the picture, read where it lies. Tile sizes are the
real sizes (3 input channels, for instance): they need not be powers of two.
"""

import common
import numpy as np

import triton
import triton.language as tl


@triton.jit
def conv2d_kernel(
    x_ptr,
    w_ptr,
    out_ptr,
    H,
    W,
    CI: tl.constexpr,
    CO: tl.constexpr,
    R: tl.constexpr,
    S: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """x [CI, H, W], w [R, S, CO, CI], out [CO, H, W]; zero padding keeps the size."""
    y = tl.program_id(1)
    columns = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ci, co = tl.arange(0, CI), tl.arange(0, CO)
    acc = tl.zeros((CO, BLOCK), dtype=tl.float32)
    for r in range(R):
        line = y + r - R // 2
        for s in tl.static_range(S):
            at = columns + (s - S // 2)
            inside = (at >= 0) & (at < W) & (line >= 0) & (line < H)
            x = tl.load(x_ptr + ci[:, None] * (H * W) + line * W + at[None, :], mask=inside[None, :], other=0.0)
            w = tl.load(w_ptr + (r * S + s) * (CO * CI) + co[:, None] * CI + ci[None, :])
            acc = tl.dot(w, x, acc)
    tl.store(out_ptr + co[:, None] * (H * W) + y * W + columns[None, :], acc, mask=columns[None, :] < W)


@triton.jit
def conv3d_kernel(x_ptr, w_ptr, out_ptr, D, H, W, CO: tl.constexpr, T: tl.constexpr, BLOCK: tl.constexpr):
    """x [D, H, W], w [CO, T, T, T], out [CO, D, H, W]; zero padding keeps the size."""
    y, z = tl.program_id(1), tl.program_id(2)
    columns = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    co = tl.arange(0, CO)
    acc = tl.zeros((CO, BLOCK), dtype=tl.float32)
    for tap in range(T * T):
        plane, line = z + tap // T - T // 2, y + tap % T - T // 2
        for s in tl.static_range(T):
            at = columns + (s - T // 2)
            inside = (at >= 0) & (at < W) & (line >= 0) & (line < H) & (plane >= 0) & (plane < D)
            x = tl.load(x_ptr + (plane * H + line) * W + at, mask=inside, other=0.0)
            w = tl.load(w_ptr + co * (T * T * T) + tap * T + s)
            acc += w[:, None] * x[None, :]
    place = ((co[:, None] * D + z) * H + y) * W + columns[None, :]
    tl.store(out_ptr + place, acc, mask=columns[None, :] < W)


def conv2d(x, w, out, block=128):
    """w is [CO, CI, R, S]."""
    (ci, h, width), (co, _, r, s) = x.shape, w.shape
    block = min(block, triton.next_power_of_2(width))
    taps_first = np.ascontiguousarray(w.transpose(2, 3, 0, 1))
    conv2d_kernel[(triton.cdiv(width, block), h)](x, taps_first, out, h, width, CI=ci, CO=co, R=r, S=s, BLOCK=block)
    return out


def conv3d(x, w, out, block=64):
    (d, h, width), co, t = x.shape, w.shape[0], w.shape[-1]
    conv3d_kernel[(triton.cdiv(width, block), h, d)](x, w, out, d, h, width, CO=co, T=t, BLOCK=block)
    return out


def conv_numpy(x, w):
    """x [CI, ...], w [CO, CI, ...]: windows of the padded input times the filter (im2col)."""
    taps = w.shape[2:]
    padded = np.pad(x, [(0, 0), *((t // 2, t // 2) for t in taps)])
    axes = tuple(range(1, x.ndim))
    windows = np.lib.stride_tricks.sliding_window_view(padded, taps, axis=axes)
    return np.tensordot(w, windows, axes=(tuple(range(1, w.ndim)), (0, *range(x.ndim, windows.ndim))))


def torch_conv(name, x, w):
    if common.torch is None:
        return None
    tx, tw = common.torch.from_numpy(x)[None], common.torch.from_numpy(w)
    step = getattr(common.torch.nn.functional, name)
    return lambda: step(tx, tw, padding=tuple(t // 2 for t in w.shape[2:]))


def run() -> list[common.Row]:
    rng = np.random.default_rng(0)
    image = np.ascontiguousarray(common.sample_image().transpose(2, 0, 1))
    w2 = rng.standard_normal((16, 3, 5, 5), dtype=np.float32) / 5
    out2 = np.empty((16, *image.shape[1:]), dtype=np.float32)
    error2 = common.check("conv2d", conv2d(image, w2, out2), conv_numpy(image, w2), 1e-3)

    volume = common.sample_volume()
    w3 = rng.standard_normal((8, 1, 3, 3, 3), dtype=np.float32) / 3
    out3 = np.empty((8, *volume.shape), dtype=np.float32)
    error3 = common.check("conv3d", conv3d(volume, w3, out3), conv_numpy(volume[None], w3), 1e-3)

    shape2, shape3 = "x".join(map(str, image.shape)), "x".join(map(str, volume.shape))
    return [
        common.compare("conv2d, photograph", f"{shape2} f32, 16 of 5x5", error2, lambda: conv2d(image, w2, out2),
                       lambda: conv_numpy(image, w2), torch_conv("conv2d", image, w2)),
        common.compare("conv3d, scan", f"{shape3} f32, 8 of 3x3x3", error3, lambda: conv3d(volume, w3, out3),
                       lambda: conv_numpy(volume[None], w3), torch_conv("conv3d", volume[None], w3)),
    ]  # fmt: skip


if __name__ == "__main__":
    common.print_table(run())

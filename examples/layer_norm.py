"""Layer normalisation, forward and backward. Rows may be longer than a block.

Backward: dx needs two sums over each row; the gradients of weight and bias are sums over rows, made in two steps: each
program adds up a stripe of rows, then a second kernel adds the stripes.
"""

import common
import numpy as np

import triton
import triton.language as tl


@triton.jit
def forward_kernel(x_ptr, y_ptr, w_ptr, b_ptr, mean_ptr, rstd_ptr, stride, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    x_ptr += row * stride
    y_ptr += row * stride
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, columns, BLOCK):
        c = start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + c, mask=c < columns, other=0.0).to(tl.float32)
    mean = tl.sum(total, axis=0) / columns
    squares = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, columns, BLOCK):
        c = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + c, mask=c < columns, other=0.0).to(tl.float32)
        centred = tl.where(c < columns, x - mean, 0.0)
        squares += centred * centred
    rstd = 1 / tl.sqrt(tl.sum(squares, axis=0) / columns + eps)
    tl.store(mean_ptr + row, mean)
    tl.store(rstd_ptr + row, rstd)
    for start in range(0, columns, BLOCK):
        c = start + tl.arange(0, BLOCK)
        inside = c < columns
        x = tl.load(x_ptr + c, mask=inside, other=0.0).to(tl.float32)
        w = tl.load(w_ptr + c, mask=inside)
        b = tl.load(b_ptr + c, mask=inside)
        tl.store(y_ptr + c, (x - mean) * rstd * w + b, mask=inside)


@triton.jit
def backward_kernel(
    dy_ptr,
    x_ptr,
    w_ptr,
    mean_ptr,
    rstd_ptr,
    dx_ptr,
    dw_ptr,
    db_ptr,
    rows,
    columns,
    STRIPE: tl.constexpr,
    BLOCK: tl.constexpr,
):
    stripe = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    inside = c < columns
    w = tl.load(w_ptr + c, mask=inside, other=0.0)
    dw = tl.zeros((BLOCK,), dtype=tl.float32)
    db = tl.zeros((BLOCK,), dtype=tl.float32)
    for row in range(stripe * STRIPE, min(stripe * STRIPE + STRIPE, rows)):
        x = tl.load(x_ptr + row * columns + c, mask=inside, other=0.0)
        dy = tl.load(dy_ptr + row * columns + c, mask=inside, other=0.0)
        rstd = tl.load(rstd_ptr + row)
        normal = tl.where(inside, (x - tl.load(mean_ptr + row)) * rstd, 0.0)
        weighted = dy * w
        along = tl.sum(normal * weighted, axis=0) / columns
        level = tl.sum(weighted, axis=0) / columns
        tl.store(dx_ptr + row * columns + c, (weighted - normal * along - level) * rstd, mask=inside)
        dw += dy * normal
        db += dy
    tl.store(dw_ptr + stripe * columns + c, dw, mask=inside)
    tl.store(db_ptr + stripe * columns + c, db, mask=inside)


@triton.jit
def sum_stripes_kernel(parts_ptr, out_ptr, stripes, columns, BLOCK: tl.constexpr):
    c = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for stripe in range(stripes):
        total += tl.load(parts_ptr + stripe * columns + c, mask=c < columns, other=0.0)
    tl.store(out_ptr + c, total, mask=c < columns)


def forward(x, w, b, y, mean, rstd, eps=1e-5):
    rows, columns = x.shape
    forward_kernel[(rows,)](x, y, w, b, mean, rstd, columns, columns, eps, BLOCK=1024)
    return y


def backward(dy, x, w, mean, rstd, dx, dw, db, stripe=64):
    rows, columns = x.shape
    stripes = triton.cdiv(rows, stripe)
    parts = np.empty((2, stripes, columns), dtype=np.float32)
    block = triton.next_power_of_2(columns)
    backward_kernel[(stripes,)](dy, x, w, mean, rstd, dx, parts[0], parts[1], rows, columns, STRIPE=stripe, BLOCK=block)
    for part, out in zip(parts, (dw, db), strict=True):
        sum_stripes_kernel[(triton.cdiv(columns, 256),)](part, out, stripes, columns, BLOCK=256)
    return dx


def forward_numpy(x, w, b, eps=1e-5):
    centred = x - x.mean(axis=1, keepdims=True)
    return centred / np.sqrt((centred * centred).mean(axis=1, keepdims=True) + np.float32(eps)) * w + b


def backward_numpy(dy, x, w, mean, rstd):
    normal = (x - mean[:, None]) * rstd[:, None]
    weighted = dy * w
    along = (normal * weighted).mean(axis=1, keepdims=True)
    dx = (weighted - normal * along - weighted.mean(axis=1, keepdims=True)) * rstd[:, None]
    return dx, (dy * normal).sum(axis=0), dy.sum(axis=0)


def run() -> list[common.Row]:
    rng = np.random.default_rng(0)
    rows, columns = 1024, 1500
    x, dy = rng.standard_normal((2, rows, columns), dtype=np.float32)
    w, b = rng.standard_normal((2, columns), dtype=np.float32)
    y, dx = np.empty_like(x), np.empty_like(x)
    mean, rstd = np.empty((2, rows), dtype=np.float32)
    dw, db = np.empty((2, columns), dtype=np.float32)
    error = common.check("layer norm forward", forward(x, w, b, y, mean, rstd), forward_numpy(x, w, b), 1e-4)
    backward(dy, x, w, mean, rstd, dx, dw, db)
    expected = backward_numpy(dy, x, w, mean, rstd)
    back_error = max(
        common.check(f"layer norm {name}", got, want, 2e-3)
        for name, got, want in zip(("dx", "dw", "db"), (dx, dw, db), expected, strict=True)
    )
    forward_torch = backward_torch = None
    if common.torch is not None:
        tx, tw, tb, tdy = map(common.torch.from_numpy, (x, w, b, dy))
        forward_torch = lambda: common.torch.layer_norm(tx, (columns,), tw, tb)  # noqa: E731
        _, tm, tr = common.torch.native_layer_norm(tx, (columns,), tw, tb, 1e-5)
        step = common.torch.ops.aten.native_layer_norm_backward
        backward_torch = lambda: step(tdy, tx, (columns,), tm, tr, tw, tb, [True, True, True])  # noqa: E731
    size = f"{rows} x {columns} f32"
    return [
        common.compare("layer norm forward", size, error, lambda: forward(x, w, b, y, mean, rstd), lambda: forward_numpy(x, w, b), forward_torch),
        common.compare("layer norm backward", size, back_error, lambda: backward(dy, x, w, mean, rstd, dx, dw, db),
                       lambda: backward_numpy(dy, x, w, mean, rstd), backward_torch),
    ]  # fmt: skip


if __name__ == "__main__":
    common.print_table(run())

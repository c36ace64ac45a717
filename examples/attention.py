"""Flash attention, forward: softmax(q k^T / sqrt(d)) v without the matrix of scores ever in memory.

Each program keeps one block of queries and runs over the keys, rescaling its accumulator when the running maximum grows
(Dao et al., "FlashAttention", NeurIPS 2022, algorithm 1).
"""

import common
import numpy as np

import triton
import triton.language as tl


@triton.jit
def attention_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    out_ptr,
    scale,
    length,
    CAUSAL: tl.constexpr,
    D: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
):
    head = tl.program_id(1).to(tl.int64) * length * D
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.arange(0, BN)
    d = tl.arange(0, D)
    q = tl.load(q_ptr + head + m[:, None] * D + d[None, :], mask=m[:, None] < length, other=0.0)
    q = q * (scale * 1.4426950408889634)
    top = tl.full((BM,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    acc = tl.zeros((BM, D), dtype=tl.float32)
    end = min(length, (tl.program_id(0) + 1) * BM) if CAUSAL else length
    for start in range(0, end, BN):
        inside = start + n < length
        k = tl.load(k_ptr + head + (start + n)[:, None] * D + d[None, :], mask=inside[:, None], other=0.0)
        scores = tl.dot(q, k.T)
        visible = inside[None, :]
        if CAUSAL:
            visible = visible & (m[:, None] >= start + n[None, :])
        scores = tl.where(visible, scores, -float("inf"))
        new_top = tl.maximum(top, tl.max(scores, axis=1))
        powers = tl.exp2(scores - new_top[:, None])
        shrink = tl.exp2(top - new_top)
        total = total * shrink + tl.sum(powers, axis=1)
        v = tl.load(v_ptr + head + (start + n)[:, None] * D + d[None, :], mask=inside[:, None], other=0.0)
        acc = tl.dot(powers.to(v.dtype), v, acc * shrink[:, None])
        top = new_top
    acc = acc / total[:, None]
    tl.store(out_ptr + head + m[:, None] * D + d[None, :], acc, mask=m[:, None] < length)


def attention(q, k, v, out, causal: bool, bm: int = 64, bn: int = 64):
    heads, length, d = q.shape
    grid = (triton.cdiv(length, bm), heads)
    attention_kernel[grid](q, k, v, out, d**-0.5, length, CAUSAL=causal, D=d, BM=bm, BN=bn)
    return out


def attention_numpy(q, k, v, causal: bool):
    scores = q @ k.transpose(0, 2, 1) * np.float32(q.shape[-1] ** -0.5)
    if causal:
        scores = np.where(np.tri(q.shape[1], dtype=bool), scores, -np.float32(np.inf))
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return (powers / powers.sum(axis=-1, keepdims=True)) @ v


def run() -> list[common.Row]:
    q, k, v = np.random.default_rng(0).standard_normal((3, 8, 700, 64), dtype=np.float32)
    out = np.empty_like(q)
    rows = []
    for causal in (False, True):
        name = "attention" + (" causal" if causal else "")
        error = common.check(name, attention(q, k, v, out, causal), attention_numpy(q, k, v, causal), 1e-4)
        with_torch = None
        if common.torch is not None:
            parts = [common.torch.from_numpy(x)[None] for x in (q, k, v)]
            step = common.torch.nn.functional.scaled_dot_product_attention
            with_torch = lambda causal=causal: step(*parts, is_causal=causal)
        rows.append(
            common.compare(name, "8 x 700 x 64 f32", error, lambda causal=causal: attention(q, k, v, out, causal),
                           lambda causal=causal: attention_numpy(q, k, v, causal), with_torch)
        )  # fmt: skip
    return rows


if __name__ == "__main__":
    common.print_table(run())

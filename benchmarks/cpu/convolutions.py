"""Convolutions of two and three dimensions, stride 1, size kept by zero padding."""

from __future__ import annotations

import convolution
import numpy as np
from harness import Case, torch_module


def cases() -> list[Case]:
    torch = torch_module()
    rng = np.random.default_rng(0)
    found = []
    for channels, outputs, size, taps in ((3, 16, 512, 5), (16, 32, 128, 3), (64, 64, 56, 3)):
        x = rng.standard_normal((channels, size, size), dtype=np.float32)
        w = rng.standard_normal((outputs, channels, taps, taps), dtype=np.float32)
        out = np.empty((outputs, size, size), dtype=np.float32)
        calls = {
            "triton": lambda x=x, w=w, o=out: convolution.conv2d(x, w, o),
            "numpy": lambda x=x, w=w: convolution.conv_numpy(x, w),
        }
        if torch is not None:
            calls["torch"] = lambda tx=torch.from_numpy(x)[None], tw=torch.from_numpy(w), p=taps // 2: torch.conv2d(
                tx, tw, padding=p
            )[0]
        text = f"{channels}->{outputs}, {size}^2, {taps}x{taps}"
        found.append(Case("conv2d", text, calls, 1e-3, 2 * outputs * channels * taps**2 * size**2))
    x = rng.standard_normal((32, 96, 128), dtype=np.float32)
    w = rng.standard_normal((8, 1, 3, 3, 3), dtype=np.float32)
    out = np.empty((8, *x.shape), dtype=np.float32)
    calls = {"triton": lambda: convolution.conv3d(x, w, out), "numpy": lambda: convolution.conv_numpy(x[None], w)}
    if torch is not None:
        calls["torch"] = lambda tx=torch.from_numpy(x)[None, None], tw=torch.from_numpy(w): torch.conv3d(
            tx, tw, padding=1
        )[0]
    found.append(Case("conv3d", "1->8, 32x96x128, 3x3x3", calls, 1e-3, 2 * 8 * 27 * x.size))
    return found

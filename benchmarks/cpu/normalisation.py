"""Layer normalisation, forward and backward."""

from __future__ import annotations

import layer_norm
import numpy as np
from harness import Case, torch_module


def cases() -> list[Case]:
    torch = torch_module()
    rng = np.random.default_rng(0)
    found = []
    for rows, columns in ((1024, 768), (1024, 1500), (512, 4096)):
        x, dy, y, dx = rng.standard_normal((4, rows, columns), dtype=np.float32)
        w, b, dw, db = rng.standard_normal((4, columns), dtype=np.float32)
        mean, rstd = np.empty((2, rows), dtype=np.float32)
        layer_norm.forward(x, w, b, y, mean, rstd)
        ahead = {
            "triton": lambda a=(x, w, b, y, mean, rstd): layer_norm.forward(*a),
            "numpy": lambda a=(x, w, b): layer_norm.forward_numpy(*a),
        }
        back = {
            "triton": lambda a=(dy, x, w, mean, rstd, dx, dw, db): layer_norm.backward(*a),
            "numpy": lambda a=(dy, x, w, mean, rstd): layer_norm.backward_numpy(*a)[0],
        }
        if torch is not None:
            tx, tdy, tw, tb = (torch.from_numpy(v) for v in (x, dy, w, b))
            ahead["torch"] = lambda a=(tx, (columns,), tw, tb): torch.layer_norm(*a)
            _, tm, tr = torch.native_layer_norm(tx, (columns,), tw, tb, 1e-5)
            args = (tdy, tx, (columns,), tm, tr, tw, tb, [True, True, True])
            back["torch"] = lambda a=args: torch.ops.aten.native_layer_norm_backward(*a)[0]
        size = f"{rows} x {columns} f32"
        found.append(Case("layer norm forward", size, ahead, 1e-3, 8 * x.size, 8 * x.size))
        found.append(Case("layer norm backward", size, back, 1e-3, 14 * x.size, 12 * x.size))
    return found

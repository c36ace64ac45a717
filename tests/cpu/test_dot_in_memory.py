"""Products of small operands that are multiplied where they lie in memory."""

from __future__ import annotations

import numpy as np
import pytest
from tiles import build, compare

SOURCE = """module {
func @k(%p: ptr<TYPE>, %q: ptr<TYPE>, %o: ptr<TYPE>) {kernel = true} {
  %m = arange {start = 0, end = MM} : MMxi32
  %n = arange {start = 0, end = NN} : NNxi32
  %k = arange {start = 0, end = KK} : KKxi32
  %mc = expand_dims %m {axis = 1} : MMx1xi32
  %kc = expand_dims %k {axis = 1} : KKx1xi32
  %nr = expand_dims %n {axis = 0} : 1xNNxi32
  %kr = expand_dims %k {axis = 0} : 1xKKxi32
  %pa = constant {value = PITCHA} : MMx1xi32
  %pb = constant {value = PITCHB} : KKx1xi32
  %po = constant {value = NN} : MMx1xi32
  %a1 = mul %mc, %pa : MMx1xi32
  %b1 = mul %kc, %pb : KKx1xi32
  %o1 = mul %mc, %po : MMx1xi32
  %a2 = broadcast %a1 : MMxKKxi32
  %a3 = broadcast %kr : MMxKKxi32
  %b2 = broadcast %b1 : KKxNNxi32
  %b3 = broadcast %nr : KKxNNxi32
  %o2 = broadcast %o1 : MMxNNxi32
  %o3 = broadcast %nr : MMxNNxi32
  %a4 = add %a2, %a3 : MMxKKxi32
  %b4 = add %b2, %b3 : KKxNNxi32
  %o4 = add %o2, %o3 : MMxNNxi32
  %a5 = splat %p : MMxKKxptr<TYPE>
  %b5 = splat %q : KKxNNxptr<TYPE>
  %o5 = splat %o : MMxNNxptr<TYPE>
  %a6 = addptr %a5, %a4 : MMxKKxptr<TYPE>
  %b6 = addptr %b5, %b4 : KKxNNxptr<TYPE>
  %o6 = addptr %o5, %o4 : MMxNNxptr<TYPE>
  %a = load %a6 : MMxKKxTYPE
  %b = load %b6 : KKxNNxTYPE
  %zero = constant {value = ZERO} : MMxNNxTYPE
  %c = dot %a, %b, %zero : MMxNNxTYPE
  store %o6, %c
  return
}
}
"""


def source(m: int, n: int, k: int, type: str, gap: int = 0) -> str:
    text = SOURCE.replace("MM", str(m)).replace("NN", str(n)).replace("KK", str(k)).replace("TYPE", type)
    text = text.replace("ZERO", "0.0" if type[0] == "f" else "0")
    return text.replace("PITCHA", str(k + gap)).replace("PITCHB", str(n + gap))


@pytest.mark.parametrize("type", ["f32", "f64", "i32"])
@pytest.mark.parametrize("shape", [(16, 16, 16), (64, 64, 64), (5, 48, 7), (1, 32, 8), (64, 24, 33), (33, 17, 2)])
@pytest.mark.parametrize("gap", [0, 3])
def test_small_products(type: str, shape: tuple[int, int, int], gap: int) -> None:
    m, n, k = shape
    dtype = {"f32": np.float32, "f64": np.float64, "i32": np.int32}[type]
    rng = np.random.default_rng(0)
    # The last row ends with the array: nothing behind it may be read or counted.
    a = rng.integers(-4, 5, m * (k + gap) - gap).astype(dtype)
    b = rng.integers(-4, 5, k * (n + gap) - gap).astype(dtype)
    out = compare(source(m, n, k, type, gap), [a, b, np.zeros(m * n, dtype)])[2]
    wide_a = np.append(a, np.zeros(gap, dtype)).reshape(m, k + gap)[:, :k]
    wide_b = np.append(b, np.zeros(gap, dtype)).reshape(k, n + gap)[:, :n]
    np.testing.assert_array_equal(out.reshape(m, n), wide_a @ wide_b)


def test_no_room_for_what_lies_in_memory() -> None:
    packed = build(source(64, 64, 512, "f32"))  # too large: its rows would fall out of the cache
    assert build(source(64, 64, 64, "f32")).scratch < 64 * 64 * 4 + 8192 < packed.scratch

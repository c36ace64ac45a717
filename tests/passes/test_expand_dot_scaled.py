"""A scaled product written out gives what the interpreter gives for the op itself."""

import numpy as np
import pytest

from triton.interpreter import run
from triton.ir import parse_module, verify
from triton.passes.expand_dot_scaled import expand_dot_scaled

M, N, K = 4, 6, 64
TYPES = {"e4m3": "f8e4m3", "e5m2": "f8e5m2", "e2m1": "u8", "bf16": "bf16", "fp16": "f16"}


def tensor_argument(name: str, shape: tuple[int, ...], element: str) -> str:
    """IR that loads argument ``name`` as a tensor, row-major."""
    total = int(np.prod(shape))
    text = "x".join(map(str, shape))
    return (
        f"  %{name}i = arange {{start = 0, end = {total}}} : {total}xi32\n"
        f"  %{name}p = splat %{name}0 : {total}xptr<{element}>\n"
        f"  %{name}q = addptr %{name}p, %{name}i : {total}xptr<{element}>\n"
        f"  %{name}v = load %{name}q : {total}x{element}\n"
        f"  %{name} = reshape %{name}v : {text}x{element}\n"
    )


def module_text(
    a: str, b: str, a_scaled: bool, b_scaled: bool, k_pack: bool
) -> tuple[str, list[tuple[str, tuple[int, ...]]]]:
    shapes = {"a": (M, K), "b": (K, N)}
    if a == "e2m1":
        shapes["a"] = (M, K // 2) if k_pack else (M // 2, K)
    if b == "e2m1":
        shapes["b"] = (K // 2, N) if k_pack else (K, N // 2)
    elements = {"a": TYPES[a], "b": TYPES[b], "c": "f32"}
    shapes["c"] = (M, N)
    operands = "%a, %b, %c"
    for name, used, size in (("s", a_scaled, M), ("t", b_scaled, N)):
        if used:
            shapes[name], elements[name] = (size, K // 32), "u8"
            operands += f", %{name}"
    args = ", ".join(f"%{n}0: ptr<{elements[n]}>" for n in shapes)
    body = "".join(tensor_argument(n, shape, elements[n]) for n, shape in shapes.items())
    flags = f"a_scaled = {str(a_scaled).lower()}, b_scaled = {str(b_scaled).lower()}"
    packs = f"a_k_pack = {str(k_pack).lower()}, b_k_pack = {str(k_pack).lower()}"
    body += f'  %r = dot_scaled {operands} {{a_format = "{a}", b_format = "{b}", {flags}, {packs}}} : {M}x{N}xf32\n'
    body += f"  %rv = reshape %r : {M * N}xf32\n"
    body += f"  %zp = splat %z0 : {M * N}xptr<f32>\n  %zq = addptr %zp, %ci : {M * N}xptr<f32>\n"
    body += "  store %zq, %rv\n  return\n"
    text = f"module {{\nfunc @k({args}, %z0: ptr<f32>) {{kernel = true}} {{\n{body}}}\n}}\n"
    return text, [(elements[n], shape) for n, shape in shapes.items()]


@pytest.mark.parametrize("a", TYPES)
@pytest.mark.parametrize("b", ["e2m1", "e4m3", "bf16"])
@pytest.mark.parametrize("a_scaled, b_scaled", [(True, True), (True, False), (False, True)])
@pytest.mark.parametrize("k_pack", [True, False])
def test_same_as_the_op(a, b, a_scaled, b_scaled, k_pack):
    text, arguments = module_text(a, b, a_scaled, b_scaled, k_pack)
    rng = np.random.default_rng(0)
    arrays = []
    for number, (element, shape) in enumerate(arguments):
        if number > 2:
            arrays.append(rng.integers(120, 134, shape).astype(np.uint8))
        elif element == "f32":
            arrays.append(rng.standard_normal(shape).astype(np.float32))
        elif element in ("bf16", "f16"):
            values = rng.standard_normal(shape).astype(np.float32)
            arrays.append(
                (values.view(np.uint32) >> 16).astype(np.uint16) if element == "bf16" else values.astype(np.float16)
            )
        else:
            arrays.append((rng.integers(0, 256, shape) & 0xBF).astype(np.uint8))  # no NaN, no infinity, moderate size
    results = []
    for expand in (False, True):
        module = parse_module(text)
        if expand:
            module = expand_dot_scaled(module)
            verify(module)
            assert not any(op.kind == "dot_scaled" for op in module.walk())
        out = np.zeros((M, N), np.float32)
        run(module, [x.ctypes.data for x in (*arrays, out)], (1, 1, 1))
        results.append(out)
    np.testing.assert_allclose(results[1], results[0], rtol=1e-6, atol=1e-6)

"""Types of results: the documented rules of promotion."""

from __future__ import annotations

from itertools import product

import pytest
from building import build, message

import triton.language as tl

SIGNATURE = {
    "int1": "u1", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64", "uint8": "u8", "uint16": "u16",
    "uint32": "u32", "uint64": "u64", "fp16": "fp16", "bf16": "bf16", "fp32": "fp32", "fp64": "fp64",
}  # fmt: skip
KINDS = {**dict.fromkeys(SIGNATURE, 1), "int1": 0, "fp16": 2, "bf16": 2, "fp32": 2, "fp64": 2}
WIDTHS = {n: int("".join(c for c in n if c.isdigit())) for n in SIGNATURE}


def expected(a: str, b: str) -> str:
    """The documentation's four rules, in order."""
    if KINDS[a] != KINDS[b]:
        return a if KINDS[a] > KINDS[b] else b
    if WIDTHS[a] != WIDTHS[b]:
        return a if WIDTHS[a] > WIDTHS[b] else b
    if a != b and KINDS[a] == 2:
        return "fp16"
    return b if a.startswith("int") else a


def type_of_sum(left: str, right: str) -> str:
    def kernel(a, b, EXPECTED: tl.constexpr):
        tl.static_assert((a + b).dtype == EXPECTED, f"{(a + b).dtype}")

    wanted = tl.dtype(expected(left, right))
    build(kernel, SIGNATURE[left], SIGNATURE[right], EXPECTED=wanted)
    return str(wanted)


@pytest.mark.parametrize("left", SIGNATURE)
def test_two_tensors(left):
    for right in SIGNATURE:
        assert type_of_sum(left, right) == expected(left, right)


def test_examples_of_the_documentation():
    assert expected("int32", "bf16") == "bf16"
    assert expected("fp32", "fp16") == "fp32"
    assert expected("fp16", "bf16") == "fp16"
    assert expected("int32", "uint32") == "uint32"


NUMBERS = [
    # tensor, number, result
    ("uint8", 3, "uint8"),
    ("int64", 3, "int64"),
    ("fp16", 3, "fp16"),
    ("bf16", 2.5, "bf16"),
    ("fp64", 2.5, "fp64"),
    ("int8", True, "int8"),
    ("int1", True, "int1"),
    ("int1", 3, "int32"),
    ("int1", 3_000_000_000, "uint32"),
    ("int1", 5_000_000_000, "int64"),
    ("int1", 2**63, "uint64"),
    ("int8", 2.5, "fp32"),
    ("int64", 2.5, "fp32"),
    ("int32", 1e300, "fp64"),
    ("int1", 2.5, "fp32"),
]


@pytest.mark.parametrize("tensor, number, wanted", NUMBERS)
def test_numbers_beside_tensors(tensor, number, wanted):
    def kernel(a, NUMBER: tl.constexpr, EXPECTED: tl.constexpr):
        tl.static_assert((a + NUMBER).dtype == EXPECTED, f"{(a + NUMBER).dtype}")
        tl.static_assert((NUMBER + a).dtype == EXPECTED, f"{(NUMBER + a).dtype}")

    build(kernel, SIGNATURE[tensor], NUMBER=number, EXPECTED=tl.dtype(wanted))


@pytest.mark.parametrize(
    "tensor, number", [("int8", 128), ("int8", -129), ("uint8", 256), ("uint32", -1), ("int16", 40000)]
)
def test_numbers_that_do_not_fit(tensor, number):
    def kernel(a, NUMBER: tl.constexpr):
        a + NUMBER

    dtype = tl.dtype(tensor)
    low, high = dtype.get_int_min_value(), dtype.get_int_max_value()
    assert message(kernel, SIGNATURE[tensor], NUMBER=number) == (
        f"+: {number} does not fit {tensor} ({low} to {high}); cast the other operand to a wider type"
    )


DIVISIONS = [
    ("int32", "int32", "fp32"),
    ("int64", "uint8", "fp32"),
    ("int1", "int32", "fp32"),
    ("fp16", "fp16", "fp32"),
    ("bf16", "bf16", "fp32"),
    ("fp16", "int32", "fp32"),
    ("fp32", "fp16", "fp32"),
    ("fp64", "int32", "fp64"),
    ("fp64", "bf16", "fp64"),
]


@pytest.mark.parametrize("left, right, wanted", DIVISIONS)
def test_true_division(left, right, wanted):
    def kernel(a, b, EXPECTED: tl.constexpr):
        tl.static_assert((a / b).dtype == EXPECTED, f"{(a / b).dtype}")

    build(kernel, SIGNATURE[left], SIGNATURE[right], EXPECTED=tl.dtype(wanted))


def test_a_number_divides_16_bit_floats_in_float32():
    def kernel(a):
        tl.static_assert((a / 2).dtype == tl.float32)
        tl.static_assert((1.0 / a).dtype == tl.float32)
        tl.static_assert((a * 2.0).dtype == tl.float16)

    build(kernel, "fp16")


def test_comparisons_and_where():
    def kernel(a, b):
        tl.static_assert((a < b).dtype == tl.int1)
        tl.static_assert(tl.where(a > 0, a, b).dtype == tl.float16)
        tl.static_assert(tl.where(a > 0, a, 0.0).dtype == tl.float16)
        tl.static_assert((not a).dtype == tl.int1)
        tl.static_assert((a > 0 and b > 0).dtype == tl.int1)

    build(kernel, "fp16", "bf16")


REDUCED = [
    ("int1", "int32", "int32"), ("int8", "int32", "int32"), ("uint8", "uint32", "int32"), ("int32", "int32", "int32"),
    ("uint64", "uint64", "uint64"), ("fp16", "fp16", "fp32"), ("bf16", "fp32", "fp32"), ("fp32", "fp32", "fp32"),
    ("fp64", "fp64", "fp64"),
]  # fmt: skip


@pytest.mark.parametrize("element, summed, ordered", REDUCED)
def test_reductions(element, summed, ordered):
    def kernel(p, SUM: tl.constexpr, MAX: tl.constexpr):
        x = tl.load(p + tl.arange(0, 8))
        tl.static_assert(tl.sum(x, 0).dtype == SUM, f"{tl.sum(x, 0).dtype}")
        tl.static_assert(tl.cumsum(x, 0).dtype == SUM)
        tl.static_assert(tl.cumprod(x).dtype == SUM)
        tl.static_assert(tl.max(x, 0).dtype == MAX, f"{tl.max(x, 0).dtype}")
        tl.static_assert(tl.min(x).dtype == MAX)
        tl.static_assert(tl.argmax(x, 0).dtype == tl.int32)
        tl.static_assert(tl.sum(x, 0, dtype=tl.float64).dtype == tl.float64)

    build(kernel, "*" + SIGNATURE[element], SUM=tl.dtype(summed), MAX=tl.dtype(ordered))


def test_dot():
    def kernel(p, OUT: tl.constexpr, WANTED: tl.constexpr):
        x = tl.load(p + tl.arange(0, 16)[:, None] * 16 + tl.arange(0, 16)[None, :])
        tl.static_assert(tl.dot(x, x, out_dtype=OUT).dtype == WANTED)

    for element, out, wanted in [
        ("fp16", None, "fp32"), ("fp16", tl.float16, "fp16"), ("bf16", None, "fp32"), ("fp32", None, "fp32"),
        ("fp64", None, "fp64"), ("i8", None, "int32"), ("fp8e4nv", None, "fp32"),
    ]:  # fmt: skip
        build(kernel, "*" + element, OUT=out, WANTED=tl.dtype(wanted))


def test_shapes_of_pairs():
    def kernel(ROWS: tl.constexpr, COLUMNS: tl.constexpr):
        a = tl.zeros((ROWS, 1), tl.int32)
        b = tl.zeros((COLUMNS,), tl.int32)
        tl.static_assert((a + b).shape == (ROWS, COLUMNS))
        tl.static_assert((a + 1).shape == (ROWS, 1))

    for rows, columns in product((1, 3, 8), (1, 5)):
        build(kernel, ROWS=rows, COLUMNS=columns)

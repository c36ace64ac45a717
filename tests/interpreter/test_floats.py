"""Number formats against a search over all their values in exact arithmetic."""

from bisect import bisect_left
from fractions import Fraction

import numpy as np
import pytest

from triton.interpreter.floats import FORMATS, RAW, decode, encode, exact_integers

EIGHT = sorted(RAW - {"bf16"})


def values_of(name):
    """Sorted finite values >= 0 with their codes, from the definition of the format."""
    fmt = FORMATS[name]
    table = []
    for code in range(fmt.largest + 1):
        exponent, mantissa = code >> fmt.mantissa, code & (1 << fmt.mantissa) - 1
        lead = 0 if exponent == 0 else 1 << fmt.mantissa
        table.append((Fraction(lead + mantissa) * Fraction(2) ** (max(exponent, 1) - fmt.bias - fmt.mantissa), code))
    return table


def expected_code(x, name, table, toward_zero):
    """The code of ``x`` by comparison with its neighbours."""
    fmt = FORMATS[name]
    if x != x:
        return fmt.nan
    sign = (1 << fmt.bits - 1) if np.signbit(x) else 0
    if abs(x) == np.inf:
        code = fmt.largest if fmt.saturates else fmt.infinity
    else:
        magnitude = Fraction(abs(float(x)))
        at = bisect_left(table, (magnitude, -1))
        if at == len(table):
            step = table[-1][0] - table[-2][0]
            beyond = magnitude >= table[-1][0] + step / 2
            code = fmt.infinity if beyond and not toward_zero and not fmt.saturates else fmt.largest
        elif table[at][0] == magnitude:
            code = table[at][1]
        else:
            (low, low_code), (high, high_code) = table[at - 1], table[at]
            up = magnitude - low > high - magnitude or (magnitude - low == high - magnitude and low_code & 1)
            code = high_code if up and not toward_zero else low_code
    return code if not fmt.signed_zero and code == 0 else code | sign


def awkward(name, rng):
    """Values, midpoints, near misses, huge and tiny numbers, specials."""
    table = values_of(name)
    step = max(1, len(table) // 400)
    exact = np.array([float(v) for v, _ in table[::step]])
    middle = (exact[1:] + exact[:-1]) / 2
    points = np.concatenate([exact, middle, np.nextafter(middle, 0), np.nextafter(middle, np.inf)])
    largest = float(table[-1][0])
    last_step = largest - float(table[-2][0])
    edge = np.array([largest + last_step * f for f in (0.25, 0.499, 0.5, 0.501, 1, 2)] + [1e300, 1e-300, 5e-324])
    specials = np.array([0.0, np.inf, np.nan])
    noise = np.exp(rng.uniform(np.log(float(table[1][0])) - 2, np.log(largest) + 2, 200))
    half = np.concatenate([points, edge, specials, noise])
    return np.concatenate([half, -half])


@pytest.mark.parametrize("toward_zero", [False, True])
@pytest.mark.parametrize("name", [*EIGHT, "bf16", "f16", "f32"])
def test_encode(name, toward_zero):
    if name == "f32":
        x = np.random.default_rng(0).standard_normal(2000) * 10.0 ** np.random.default_rng(1).integers(-44, 38, 2000)
        nearest = x.astype(np.float32)
        if toward_zero:
            over = np.abs(nearest.astype(np.float64)) > np.abs(x)
            nearest = np.where(over, np.nextafter(nearest, np.float32(0)), nearest).astype(np.float32)
        assert np.array_equal(encode(x, name, toward_zero), nearest.view(np.uint32))
        return
    table = values_of(name)
    x = awkward(name, np.random.default_rng(0))
    got = encode(x, name, toward_zero)
    expected = [expected_code(v, name, table, toward_zero) for v in x]
    wrong = [(v, hex(g), hex(e)) for v, g, e in zip(x, got, expected, strict=True) if g != e]
    assert not wrong, wrong[:5]


@pytest.mark.parametrize("name", sorted(RAW))
def test_decode_then_encode_is_the_identity(name):
    fmt = FORMATS[name]
    codes = np.arange(1 << fmt.bits).astype(fmt.storage)
    values = decode(codes, name)
    finite = np.isfinite(values)
    with np.errstate(invalid="ignore"):
        again = encode(values, name)
    assert np.array_equal(again[finite], codes[finite])
    assert np.isnan(decode(again, name)[np.isnan(values)]).all()


def test_special_codes():
    def one(code, name):
        return float(decode(np.array([code], dtype=FORMATS[name].storage), name)[0])

    assert one(0x7C, "f8e5m2") == np.inf and one(0xFC, "f8e5m2") == -np.inf
    assert all(np.isnan(one(c, "f8e5m2")) for c in (0x7D, 0x7E, 0x7F, 0xFF))
    assert np.isnan(one(0x7F, "f8e4m3")) and np.isnan(one(0xFF, "f8e4m3")) and one(0x7E, "f8e4m3") == 448
    assert np.isnan(one(0x80, "f8e4b8")) and one(0x7F, "f8e4b8") == 240 and one(0xFF, "f8e4b8") == -240
    assert np.isnan(one(0x80, "f8e5b16")) and one(0x7F, "f8e5b16") == 57344
    assert one(0x7F, "f8e4b15") == 1.875 and one(0x01, "f8e4b15") == 2.0**-17
    assert one(0x3F80, "bf16") == 1 and one(0x7F80, "bf16") == np.inf and np.isnan(one(0x7FC0, "bf16"))


@pytest.mark.parametrize("name", ["bf16", "f16", "f8e4m3", "f8e5m2"])
@pytest.mark.parametrize("dtype", [np.int64, np.uint64])
def test_large_integers_are_rounded_once(name, dtype):
    rng = np.random.default_rng(0)
    x = (rng.integers(0, 2**63, 500, dtype=np.uint64) >> rng.integers(0, 63, 500).astype(np.uint64)).astype(dtype)
    bf16_halfway = np.array([(k << 53) + d for k in (257, 259) for d in (-1, 0, 1)], dtype=np.uint64)
    x = np.concatenate([x, bf16_halfway.astype(dtype)])
    if dtype is np.int64:
        x = np.concatenate([x, -x])
    table = values_of(name)
    got = encode(exact_integers(x), name)
    for value, code in zip(x, got, strict=True):
        fmt = FORMATS[name]
        magnitude = Fraction(abs(int(value)))
        at = bisect_left(table, (magnitude, -1))
        if at == len(table):
            continue
        if table[at][0] == magnitude:
            expected = table[at][1]
        else:
            (low, low_code), (high, high_code) = table[at - 1], table[at]
            up = magnitude - low > high - magnitude or (magnitude - low == high - magnitude and low_code & 1)
            expected = high_code if up else low_code
        assert code == expected | ((1 << fmt.bits - 1) if value < 0 else 0), int(value)

"""Types, specialisation, addresses and extents of arguments."""

from __future__ import annotations

import ctypes
from collections import namedtuple
from typing import Any

import numpy as np
import pytest

from triton.runtime.arguments import (
    ArgumentError,
    address_of,
    as_array,
    byte_range,
    is_readonly,
    mangle_type,
    native_specialize_impl,
    specialize_argument,
)
from triton.runtime.jit import MockTensor, TensorWrapper, reinterpret


@pytest.mark.parametrize(
    ("value", "plain", "specialized"),
    [
        (1, "i32", "constexpr"),
        (16, "i32", "i32"),
        (2**31, "i64", "i64"),
        (-(2**31), "i32", "i32"),
        (2**63, "u64", "u64"),
        (1.0, "fp32", "fp32"),
        (True, "u1", "u1"),
        (None, "constexpr", "constexpr"),
        ((None, 1.5), ("constexpr", "fp32"), ("constexpr", "fp32")),
    ],
)
def test_mangled_types_of_values(value: Any, plain: Any, specialized: Any) -> None:
    assert mangle_type(value) == plain
    assert mangle_type(value, specialize=True) == specialized


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("float16", "*fp16"),
        ("bfloat16", "*bf16"),
        ("float32", "*fp32"),
        ("float64", "*fp64"),
        ("int8", "*i8"),
        ("int64", "*i64"),
        ("uint8", "*u8"),
        ("uint64", "*u64"),
        ("bool", "*u1"),
        ("float8_e4m3fn", "*fp8e4nv"),
        ("float8_e5m2", "*fp8e5"),
        ("float8_e4m3fnuz", "*fp8e4b8"),
        ("float8_e5m2fnuz", "*fp8e5b16"),
    ],
)
def test_mangled_types_of_torch_tensors(name: str, expected: str, torch: Any) -> None:
    assert mangle_type(torch.zeros(4, dtype=torch.uint8).to(getattr(torch, name))) == expected


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?"])
def test_numpy_arrays_have_the_types_of_torch_tensors(dtype: str, torch: Any) -> None:
    array = np.zeros(4, dtype=dtype)
    assert mangle_type(array) == mangle_type(torch.from_numpy(array))


def test_specialization_keys() -> None:
    room = np.zeros(68, "f4")
    whole = room[-address_of(room) // 4 % 4 :]  # begins at a multiple of 16 bytes
    assert native_specialize_impl(None, 1) == ("constexpr", 1)
    assert native_specialize_impl(None, 16) == ("i32", "D")
    assert native_specialize_impl(None, 24) == ("i32", "E")
    assert native_specialize_impl(None, 7) == ("i32", "")
    assert native_specialize_impl(None, 24, align=False) == ("i32", "")
    assert native_specialize_impl(None, 16, align=False) == ("i32", "")
    assert native_specialize_impl(None, whole) == ("*fp32", "D")
    assert native_specialize_impl(None, whole[1:]) == ("*fp32", "")
    assert native_specialize_impl(None, whole, is_const=True) == ("*kfp32", "D")
    assert native_specialize_impl(None, 1.0) == ("fp32", None)
    assert native_specialize_impl(None, True) == ("u1", None)
    assert native_specialize_impl(None, None) == ("constexpr", None)
    assert specialize_argument(16, specialize=False) == ("i32", None)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.int32(16), ("i32", "D")),
        (np.int64(2**40 + 1), ("i64", "")),
        (np.float32(2.5), ("fp32", None)),
        (np.float64(2.5), ("fp32", None)),
        (np.bool_(True), ("u1", None)),
    ],
)
def test_numpy_scalars_are_numbers_not_arrays(value: Any, expected: Any) -> None:
    assert specialize_argument(value) == expected


def test_tuples_keep_their_names() -> None:
    Pair = namedtuple("Pair", ["left", "right"])
    kinds, keys = specialize_argument(Pair(1, (np.zeros(4, "f4"), 3.0)))
    assert type(kinds) is Pair
    assert kinds.left == "constexpr" and kinds.right == ("*fp32", "fp32")
    assert keys.left == 1


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (2**64, "does not fit 64 bits"),
        (object(), "a value of type object cannot be passed"),
        (np.zeros(3, "c8"), "dtype complex64 cannot be passed"),
        (np.zeros(3, ">f4"), "byte order"),
    ],
)
def test_what_cannot_be_passed_says_so(value: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        specialize_argument(value)


def test_text_is_no_type() -> None:
    with pytest.raises(TypeError, match="constexpr"):
        mangle_type("text")


def test_byte_ranges_of_strided_arrays() -> None:
    base = np.zeros((10, 8), "f4")
    start = address_of(base)
    assert byte_range(base) == (start, start + 320)
    assert byte_range(base[2:4, ::2]) == (start + 64, start + 124)
    assert byte_range(base[::-1]) == (start, start + 320)
    assert byte_range(base[:0])[0] == byte_range(base[:0])[1]


def test_byte_ranges_of_strided_tensors(torch: Any) -> None:
    base = np.zeros((10, 8), "f4")
    start = address_of(base)
    tensor = torch.from_numpy(base)
    assert byte_range(tensor) == byte_range(base)
    assert byte_range(tensor.t()[1:3]) == (start + 4, start + 4 + 9 * 32 + 8)


def test_arrays_by_interface_and_dlpack() -> None:
    base = np.arange(6, dtype="i2").reshape(2, 3)

    class ByInterface:
        __array_interface__ = base.__array_interface__

    class ByDLPack:
        def __dlpack__(self, **kwargs: Any) -> Any:
            return base.__dlpack__()

    for holder in (ByInterface(), ByDLPack()):
        array = as_array(holder)
        assert address_of(array) == address_of(base)
        assert byte_range(array) == byte_range(base)
        assert specialize_argument(holder)[0] == "*i16"


def test_interface_of_a_cuda_array_names_its_device() -> None:
    class OnCuda:
        __cuda_array_interface__ = {  # noqa: RUF012
            "shape": (4,),
            "typestr": "<f4",
            "data": (4096, False),
            "version": 3,
        }

    assert as_array(OnCuda()).device == "cuda"
    assert specialize_argument(OnCuda()) == ("*fp32", "D")


def test_readonly_arrays_are_told() -> None:
    array = np.zeros(4)
    assert not is_readonly(array)
    array.flags.writeable = False
    assert is_readonly(array)


def test_tensors_are_never_readonly(torch: Any) -> None:
    assert not is_readonly(torch.zeros(4))


def test_reinterpret_changes_the_type_only(torch: Any) -> None:
    raw = torch.zeros(4, dtype=torch.uint8)
    seen = reinterpret(raw, torch.float8_e5m2)
    assert isinstance(seen, TensorWrapper)
    assert specialize_argument(seen)[0] == "*fp8e5"
    assert seen.data_ptr() == raw.data_ptr()
    assert byte_range(seen) == byte_range(raw)
    assert reinterpret(seen, torch.uint8) is raw
    with pytest.raises(TypeError, match="int"):
        reinterpret(3, torch.int8)


def test_mock_tensors_stand_for_types(torch: Any) -> None:
    assert specialize_argument(MockTensor.wrap_dtype(torch.float16)) == ("*fp16", "D")
    assert specialize_argument(MockTensor.wrap_dtype(np.dtype("i4"))) == ("*i32", "D")
    assert MockTensor.wrap_dtype(5) == 5
    assert MockTensor(torch.int64).element_size() == 8
    assert MockTensor(torch.float32, [2, 3, 4]).stride() == [12, 4, 1]


def test_ctypes_integers_are_not_silently_accepted() -> None:
    with pytest.raises(ArgumentError, match=ctypes.c_int.__name__):  # c_long on Windows
        specialize_argument(ctypes.c_int(3))

"""Dispatcher: binding, classes of arguments, keys, argument blocks, launching."""

from __future__ import annotations

import enum
import gc
import struct
import time
import weakref
from collections import namedtuple
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from triton._C import libtriton

CONSTEXPR, NO_SPECIALIZE, NO_ALIGN, CONST = 1, 2, 4, 8
DTYPES = {
    "float32": "fp32",
    "float64": "fp64",
    "float16": "fp16",
    "int32": "i32",
    "int64": "i64",
    "bool": "u1",
    "uint8": "u8",
}
Load = Callable[..., libtriton.Code]


class Constexpr:
    def __init__(self, value: object) -> None:
        self.value = value


def resolve(dtype: object) -> str:
    name = str(dtype).rsplit(".", 1)[-1]
    if name not in DTYPES:
        raise TypeError(f"arrays of dtype {name} cannot be passed")
    return DTYPES[name]


class Foreign:
    """What an adapter makes of an array that has no data_ptr()."""

    def __init__(self, array: np.ndarray, device: str = "cpu", dtype: str = "float32") -> None:
        self.array, self.device, self.dtype = array, device, dtype
        self.readonly = not array.flags.writeable

    def data_ptr(self) -> int:
        return self.array.ctypes.data

    def byte_range(self) -> tuple[int, int]:
        return self.data_ptr(), self.data_ptr() + self.array.nbytes


class Interface:
    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return self.array.__array_interface__


@pytest.fixture(autouse=True)
def hooks() -> Iterator[None]:
    before = (
        libtriton.set_dtype_resolver(resolve),
        libtriton.set_array_adapter(lambda arg: Foreign(arg.array)),
        libtriton.set_constexpr_type(Constexpr),
    )
    yield
    libtriton.set_dtype_resolver(before[0])
    libtriton.set_array_adapter(before[1])
    libtriton.set_constexpr_type(before[2])


def never(*args: object) -> object:
    raise AssertionError("on_miss was called")


def dispatcher(*parameters: Any, on_miss: Callable[..., Any] = never, name: str = "k") -> libtriton.Dispatcher:
    """Parameters are names or (name, flags[, type[, default]])."""
    full = [(p, 0, None, ...) if isinstance(p, str) else (*p, *(0, None, ...)[len(p) - 1 :]) for p in parameters]
    return libtriton.Dispatcher(name, *(tuple(column) for column in zip(*full, strict=True)), on_miss)


def class_of(value: object, flags: int = 0, annotation: str | None = None) -> Any:
    return dispatcher(("x", flags, annotation)).classify((value,), {})[2][0]


def key_of(value: object, flags: int = 0) -> bytes:
    return dispatcher(("x", flags)).classify((value,), {})[0]


def aligned_array(offset: int = 0, dtype: type = np.float32) -> np.ndarray:
    memory = np.zeros(4096, np.uint8)
    start = -memory.ctypes.data % 64 + offset
    return memory[start : start + 256].view(dtype)


# ---- classes ----


@pytest.mark.parametrize(
    ("value", "flags", "expected"),
    [
        (1, 0, ("constexpr", 1)),
        (1, NO_SPECIALIZE, ("i32", False)),
        (1, NO_ALIGN, ("constexpr", 1)),
        (0, 0, ("i32", True)),
        (32, 0, ("i32", True)),
        (32, NO_ALIGN, ("i32", False)),
        (32, NO_SPECIALIZE, ("i32", False)),
        (-16, 0, ("i32", True)),
        (17, 0, ("i32", False)),
        (2**31 - 1, 0, ("i32", False)),
        (2**31, 0, ("i64", True)),
        (-(2**31), 0, ("i32", True)),
        (-(2**31) - 1, 0, ("i64", False)),
        (2**63 - 1, 0, ("i64", False)),
        (2**63, 0, ("u64", True)),
        (2**64 - 1, 0, ("u64", False)),
        (True, 0, ("u1", False)),
        (1.0, 0, ("fp32", False)),
        (None, 0, ("constexpr", None)),
        ("text", 0, ("constexpr", "text")),
        (np.int32(48), 0, ("i32", True)),
        (np.float32(1), 0, ("fp32", False)),
        (np.float64(1), 0, ("fp32", False)),
        (np.bool_(True), 0, ("u1", False)),
        (Constexpr(5), 0, ("constexpr", 5)),
        (5, CONSTEXPR, ("constexpr", 5)),
        (Constexpr(Constexpr("s")), CONSTEXPR, ("constexpr", "s")),
        ((1, 2, (None, 16)), 0, (("constexpr", 1), ("i32", False), (("constexpr", None), ("i32", True)))),
        ([3], 0, (("i32", False),)),
        ((), 0, ()),
    ],
)
def test_classes_of_values(value: object, flags: int, expected: object) -> None:
    assert class_of(value, flags) == expected


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "bool", "uint8"])
def test_classes_of_arrays(dtype: str) -> None:
    assert class_of(aligned_array(0, np.dtype(dtype).type)) == ("*" + DTYPES[dtype], True)
    assert class_of(aligned_array(8, np.dtype(dtype).type)) == ("*" + DTYPES[dtype], False)


def test_array_flags() -> None:
    array = aligned_array()
    assert class_of(array, NO_SPECIALIZE) == ("*fp32", False)
    assert class_of(array, NO_ALIGN) == ("*fp32", False)
    assert class_of(array, CONST) == ("*kfp32", True)
    assert class_of(array, 0, "*fp16") == ("*fp16", True)
    array.flags.writeable = False
    assert class_of(array) == ("*fp32", True, "readonly")


def test_adapted_arrays() -> None:
    array = aligned_array()
    assert class_of(Interface(array)) == ("*fp32", True)
    array.flags.writeable = False
    assert class_of(Interface(array)) == ("*fp32", True, "readonly")


def test_arrays_of_another_device() -> None:
    assert class_of(Foreign(aligned_array(), "cuda")) == ("*fp32", True, "cuda")


def test_subclasses_of_ndarray() -> None:
    class Mine(np.ndarray):
        pass

    assert class_of(aligned_array().view(Mine)) == ("*fp32", True)


class Descriptor:
    def __init__(
        self, base: object, shape: list[int], strides: list[int], block: list[int], padding: str = "zero"
    ) -> None:
        self.base, self.shape, self.strides, self.block_shape, self.padding = base, shape, strides, block, padding


def test_a_descriptor_is_its_base_sizes_and_strides() -> None:
    x = aligned_array()
    descriptor = Descriptor(x, [3, 5], [16, 1], [2, 4])
    assert class_of(descriptor) == ("descriptor", descriptor, True)
    packed = dispatcher("x", "n").pack((descriptor, 7), {})
    assert struct.unpack("<6q", packed) == (x.ctypes.data, 3, 5, 16, 1, 7)


def test_what_tells_descriptors_apart() -> None:
    """Element type, box, padding and whether boxes can be copied, not sizes and strides."""
    x = aligned_array()
    d = dispatcher("x")

    def key(*parts: object) -> bytes:
        return d.classify((Descriptor(*parts),), {})[0]  # type: ignore[arg-type]

    plain = key(x, [3, 5], [16, 1], [2, 4])
    assert plain == key(x, [1, 16], [32, 1], [2, 4]) == key(x, [3, 5], [16, 1], (2, 4))
    others = [
        key(x, [3, 5], [16, 1], [4, 2]),
        key(x, [3, 5], [16, 1], [2, 4], "nan"),
        key(x.view(np.int32), [3, 5], [16, 1], [2, 4]),
        key(x, [3, 5], [15, 1], [2, 4]),
    ]
    assert len({plain, *others}) == 5
    for shape, strides in (([0, 5], [16, 1]), ([3, 2**31], [16, 1]), ([3, 5], [-16, 1]), ([3, 5], [16, 2])):
        assert key(x, shape, strides, [2, 4]) == others[-1]


def test_descriptors_that_are_none() -> None:
    x = aligned_array()
    with pytest.raises(TypeError, match="argument 'x': shape and strides of a tensor descriptor differ in length"):
        class_of(Descriptor(x, [3], [16, 1], [2]))
    with pytest.raises(TypeError, match="argument 'x': the base of a tensor descriptor must be an array"):
        class_of(Descriptor(5, [3], [1], [2]))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (object(), "argument 'x': a value of type object cannot be passed to a kernel"),
        ((1, (2, object())), r"argument 'x\[1\]\[1\]': a value of type object cannot be passed to a kernel"),
        (2**64, "argument 'x': the integer 18446744073709551616 does not fit 64 bits"),
        (-(2**63) - 1, "argument 'x': the integer -9223372036854775809 does not fit 64 bits"),
        (1j, "argument 'x': a value of type complex cannot be passed to a kernel"),
        (np.zeros(2, complex), "argument 'x': arrays of dtype complex128 cannot be passed"),
    ],
)
def test_unsupported_arguments_are_named(value: object, expected: str) -> None:
    with pytest.raises(TypeError, match=f"^{expected}$"):
        class_of(value)


# ---- parameters with a type ----


@pytest.mark.parametrize(
    ("annotation", "value", "expected", "slot"),
    [
        ("i32", 1, ("i32", False), struct.pack("<q", 1)),
        ("i8", -128, ("i8", True), struct.pack("<q", -128)),
        ("u8", 255, ("u8", False), struct.pack("<q", 255)),
        ("i64", 5, ("i64", False), struct.pack("<q", 5)),
        ("u64", 2**64 - 16, ("u64", True), struct.pack("<Q", 2**64 - 16)),
        ("u1", 1, ("u1", False), struct.pack("<q", 1)),
        ("u1", np.bool_(True), ("u1", False), struct.pack("<q", 1)),
        ("fp32", 3, ("fp32", False), struct.pack("<fi", 3, 0)),
        ("fp64", 0.1, ("fp64", False), struct.pack("<d", 0.1)),
        ("fp16", 0.1, ("fp16", False), struct.pack("<eHi", 0.1, 0, 0)),
        ("bf16", 1.0, ("bf16", False), struct.pack("<Hhi", 0x3F80, 0, 0)),
    ],
)
def test_annotated_numbers(annotation: str, value: object, expected: object, slot: bytes) -> None:
    d = dispatcher(("x", 0, annotation))
    assert d.classify((value,), {})[2] == (expected,)
    assert d.pack((value,), {}) == slot


@pytest.mark.parametrize(
    ("annotation", "value", "expected"),
    [
        ("i8", 300, "argument 'x': 300 does not fit type i8"),
        ("u32", -1, "argument 'x': -1 does not fit type u32"),
        ("u1", 2, "argument 'x': 2 does not fit type u1"),
        ("i64", 2**63, "argument 'x': 9223372036854775808 does not fit type i64"),
        ("i32", 1.5, "argument 'x': expected an integer for type i32, got 1.5"),
    ],
)
def test_annotated_numbers_are_checked(annotation: str, value: object, expected: str) -> None:
    with pytest.raises(TypeError, match=f"^{expected}$"):
        class_of(value, 0, annotation)


def test_an_address_may_be_given_as_a_number() -> None:
    d = dispatcher(("x", 0, "*fp32"))
    assert d.classify((0x1000,), {})[2] == (("*fp32", True),)
    assert d.pack((0x1001,), {}) == struct.pack("<Q", 0x1001)


# ---- keys ----


class Colour(enum.IntEnum):
    RED = 1


class Unhashable:
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


Pair = namedtuple("Pair", "a b")
CONSTANTS = [
    0, 1, -1, 2**70, True, False, 0.0, -0.0, 1.0, float("inf"), None, "", "1", "a", (), (1,), (1.0,), ((1,),), (1, 2),
    Pair(1, 2), Colour.RED, np.float32, np.float64, Unhashable("u"), Unhashable("v"), len, b"1",
]  # fmt: skip


def test_different_constants_have_different_keys() -> None:
    d = dispatcher(("x", CONSTEXPR))
    keys = [d.classify((value,), {})[0] for value in CONSTANTS]
    assert len(set(keys)) == len(CONSTANTS)
    assert [d.classify((value,), {})[0] for value in CONSTANTS] == keys


def test_equal_constants_have_one_key() -> None:
    d = dispatcher(("x", CONSTEXPR))
    pairs = [
        ("ab" * 2, "abab"),
        ((1, "a"), (1, "a")),
        ([1, 2], (1, 2)),
        (frozenset({1}), frozenset({1})),
        (Constexpr(3), 3),
    ]
    pairs += [(Unhashable("u"), Unhashable("u")), (Pair(1, 2), Pair(1, 2))]
    for first, second in pairs:
        assert d.classify((first,), {})[0] == d.classify((second,), {})[0]


def test_keyed_objects_are_their_key() -> None:
    class Function:
        def __init__(self, cache_key: str) -> None:
            self.cache_key = cache_key

    d = dispatcher("x", ("y", CONSTEXPR))
    keys = [d.classify((Function(a), Function(b)), {})[0] for a, b in ["pq", "pq", "pr", "rq"]]
    assert keys[0] == keys[1] and len(set(keys)) == 3


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        (2, 3, True),
        (16, 48, True),
        (2, 16, False),
        (8, 24, True),
        (8, 16, False),
        (8, 4, False),
        (2, 1, False),
        (2, 2**40 + 1, False),
        (2, 2.0, False),
        (2.0, 3.0, True),
        (True, False, True),
    ],
)
def test_specialisation_decides_the_key(first: object, second: object, same: bool) -> None:
    assert (key_of(first) == key_of(second)) is same


def test_array_keys() -> None:
    base = key_of(aligned_array())
    assert key_of(aligned_array(32)) == base
    assert key_of(aligned_array(4)) != base
    assert key_of(aligned_array(0, np.int32)) != base
    assert key_of(Interface(aligned_array())) == base


def test_options_are_part_of_the_key() -> None:
    d = dispatcher("x")
    plain = d.classify((5,), {})
    tuned = d.classify((5,), {"num_warps": 4})
    assert plain[3] == {} and tuned[3] == {"num_warps": 4}
    assert len({plain[0], tuned[0], d.classify((5,), {"num_warps": 8})[0], d.classify((5,), {"num_stages": 4})[0]}) == 4


# ---- overlap ----


def overlap(*arrays: object) -> bool:
    return dispatcher(*"abcdef"[: len(arrays)]).classify(arrays, {})[4]


def test_overlap_of_numpy_arrays() -> None:
    memory = np.zeros(100, np.float32)
    assert not overlap(memory[:50], memory[50:])
    assert overlap(memory[:51], memory[50:])
    assert overlap(memory, memory)
    assert overlap(memory[::2], memory[1::2])  # interleaved: the ranges meet
    assert not overlap(memory[49::-1], memory[50:])
    assert overlap(memory[50::-1], memory[50:])
    assert not overlap(memory[:0], memory)
    square = memory.reshape(10, 10)
    assert not overlap(square[:5].T, square[5:])
    assert overlap(square[:, :2], square[:, 5:])
    assert not overlap(memory[:50], np.zeros(3), memory[50:])
    assert overlap(5, (memory[:51], None), (1, (memory[50:],)))


def test_unknown_extent_counts_as_overlap() -> None:
    class Bare:
        dtype = "float32"

        def data_ptr(self) -> int:
            return 64

    assert not overlap(Bare(), 3)
    assert overlap(Bare(), np.zeros(3, np.float32))


# ---- binding ----


def test_binding() -> None:
    d = dispatcher("a", ("b", CONSTEXPR, None, 7), ("c", 0, None, None))
    assert d.classify((5,), {})[1] == (5, 7, None)
    assert d.classify((5, 6), {"c": 8})[1] == (5, 6, 8)
    assert d.classify((), {"".join(["a"]): 5, "c": 1})[1] == (5, 7, 1)


@pytest.mark.parametrize(
    ("args", "kwargs", "expected"),
    [
        ((), {}, r"add\(\) missing 2 required positional arguments: 'a' and 'b'"),
        ((1,), {}, r"add\(\) missing 1 required positional argument: 'b'"),
        ((1, 2, 3, 4), {}, r"add\(\) takes 3 positional arguments but 4 were given"),
        ((1,), {"a": 2}, r"add\(\) got multiple values for argument 'a'"),
    ],
)
def test_binding_errors(args: tuple[int, ...], kwargs: dict[str, int], expected: str) -> None:
    with pytest.raises(TypeError, match=f"^{expected}$"):
        dispatcher("a", "b", ("c", 0, None, None), name="add").classify(args, kwargs)


# ---- launching ----

FILL = """
define void @kernel(ptr %args, i64 %begin, i64 %end, ptr %ctx) {
entry:
  %out = load ptr, ptr %args
  %pv = getelementptr i64, ptr %args, i64 1
  %v = load float, ptr %pv
  br label %loop
loop:
  %i = phi i64 [ %begin, %entry ], [ %next, %loop ]
  %p = getelementptr float, ptr %out, i64 %i
  store float %v, ptr %p
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %end
  br i1 %more, label %loop, label %done
done:
  ret void
}
"""


@pytest.fixture
def fill(load: Load) -> tuple[libtriton.Dispatcher, list[Any]]:
    code = load(FILL)
    misses: list[Any] = []

    def on_miss(*description: Any) -> libtriton.CpuKernel:
        misses.append(description)
        return libtriton.CpuKernel(code.address("kernel"), 0, f"kernel {len(misses)}")

    # Compile-time values take no slot, wherever they stand.
    d = dispatcher(("N", CONSTEXPR), "out", "one", "value", ("M", CONSTEXPR, None, 3), on_miss=on_miss)
    # The kernel keeps nothing alive here, so the code must outlive the dispatcher.
    d_and_misses = (d, misses)
    fill_code.append(code)
    return d_and_misses


fill_code: list[libtriton.Code] = []


def test_launch(fill: tuple[libtriton.Dispatcher, list[Any]]) -> None:
    d, misses = fill
    out = np.zeros(64, np.float32)
    assert d[(64,)](8, out, 1, 2.5) == "kernel 1"
    assert (out == 2.5).all()
    assert d.run(64, (8, out, 1, -1.0), {"M": 3}) == "kernel 1"
    assert (out == -1).all()
    assert d[(2, 4, 8)](9, out, 1, 7.0) == "kernel 2"
    assert (out == 7).all()
    assert len(d) == 2 and len(misses) == 2
    key, bound, classes, options, overlaps, _ = misses[0]
    assert bound == (8, out, 1, 2.5, 3) and options == {} and overlaps is False
    assert classes[0] == ("constexpr", 8) and classes[2] == ("constexpr", 1)
    assert d.get(key).owner == "kernel 1"
    d.clear()
    assert len(d) == 0 and d.get(key) is None
    d.insert(key, libtriton.CpuKernel(fill_code[-1].address("kernel"), 0, "inserted"))
    assert d[(64,)](8, out, 1, 0.5) == "inserted"


def test_grid_function_gets_arguments_and_options(fill: tuple[libtriton.Dispatcher, list[Any]]) -> None:
    d, _ = fill
    out = np.zeros(64, np.float32)
    seen: list[dict[str, Any]] = []

    def grid(meta: dict[str, Any]) -> tuple[int]:
        seen.append(dict(meta))
        return (meta["N"] * 4,)

    d[grid](8, out, 1, 2.5, num_warps=2)
    assert (out[:32] == 2.5).all() and (out[32:] == 0).all()
    assert seen == [{"N": 8, "out": out, "one": 1, "value": 2.5, "M": 3, "num_warps": 2}]


@pytest.mark.parametrize("grid", [0, (0,), (4, 0), [1, 1, 0], lambda meta: (0,)])
def test_empty_grids_compile_and_run_nothing(fill: tuple[libtriton.Dispatcher, list[Any]], grid: Any) -> None:
    d, misses = fill
    out = np.zeros(64, np.float32)
    assert d[grid](8, out, 1, 2.5) == "kernel 1"
    assert (out == 0).all() and len(misses) == 1


@pytest.mark.parametrize(
    ("grid", "error", "expected"),
    [
        ((1, -3), ValueError, "grid dimension 1 is -3; it must lie between 0 and 2147483647"),
        (2**31, ValueError, "grid dimension 0 is 2147483648; it must lie between 0 and 2147483647"),
        (2**80, ValueError, f"grid dimension 0 is {2**80}; it must lie between 0 and 2147483647"),
        ((1, 1, 1, 1), ValueError, r"a grid has 1 to 3 dimensions, got 4: \(1, 1, 1, 1\)"),
        ((), ValueError, r"a grid has 1 to 3 dimensions, got 0: \(\)"),
        ((1.5,), TypeError, r"grid dimension 0 should be an integer, got 1\.5"),
        ("x", TypeError, "grid dimension 0 should be an integer, got 'x'"),
    ],
)
def test_bad_grids(
    fill: tuple[libtriton.Dispatcher, list[Any]], grid: Any, error: type[Exception], expected: str
) -> None:
    with pytest.raises(error, match=f"^{expected}$"):
        fill[0][grid](8, np.zeros(4, np.float32), 1, 2.5)


def test_constexpr_objects_as_grid_sizes(fill: tuple[libtriton.Dispatcher, list[Any]]) -> None:
    out = np.zeros(64, np.float32)
    fill[0][(Constexpr(16), np.int64(2))](8, out, 1, 2.5)
    assert (out[:32] == 2.5).all() and (out[32:] == 0).all()


def test_errors_of_hooks_arrive_unchanged() -> None:
    class Odd(Exception):
        pass

    def fail(*args: object) -> object:
        raise Odd("as it is")

    with pytest.raises(Odd, match="as it is"):
        dispatcher("x", on_miss=fail)[(1,)](3)
    with pytest.raises(Odd, match="as it is"):
        dispatcher("x", on_miss=lambda *a: libtriton.CpuKernel(16, 0, None))[fail](3)


def test_what_on_miss_gives_instead_of_a_kernel_is_returned_and_not_kept() -> None:
    answers = iter([None, "done by Python"])
    d = dispatcher("x", on_miss=lambda *a: next(answers))
    assert d[(1,)](3) is None
    assert d[(1,)](3) == "done by Python"
    assert len(d) == 0


def test_memory_of_another_device_is_not_launched_here() -> None:
    d = dispatcher("x", on_miss=lambda *a: libtriton.CpuKernel(16, 0, None))
    with pytest.raises(TypeError, match="an argument is in memory of 'cuda'"):
        d[(1,)](Foreign(aligned_array(), "cuda"))


def test_a_dispatcher_in_a_cycle_is_collected() -> None:
    class Owner:
        def __init__(self) -> None:
            self.dispatcher = dispatcher("x", on_miss=self.on_miss)

        def on_miss(self, *description: object) -> object:
            return self

    owner = Owner()
    watch = weakref.ref(owner)
    del owner
    gc.collect()
    assert watch() is None


def test_arguments_are_released() -> None:
    d = dispatcher("x", "y", on_miss=lambda *a: None)
    array = np.zeros(3, np.float32)
    watch = weakref.ref(array)
    d[(1,)](array, [(array,)])
    del array
    gc.collect()
    assert watch() is None


def test_constructor_checks() -> None:
    with pytest.raises(ValueError, match="of one length"):
        libtriton.Dispatcher("k", ("a",), (), (None,), (...,), never)
    with pytest.raises(ValueError, match="'fp99' is not the type of a scalar"):
        dispatcher(("x", 0, "fp99"))


def test_torch_tensors() -> None:
    torch = pytest.importorskip("torch")
    x = torch.zeros(64)
    assert class_of(x) == ("*fp32", True)
    assert class_of(x[1:]) == ("*fp32", False)
    assert class_of(x.bool()) == ("*u1", True)
    assert class_of(x.to(torch.bfloat16)) == ("*bf16", True)
    assert class_of(x.to(torch.float8_e4m3fn)) == ("*fp8e4nv", True)
    assert class_of(torch.nn.Parameter(x)) == ("*fp32", True)
    assert class_of(x.requires_grad_(True)) == ("*fp32", True)
    assert key_of(x) == key_of(aligned_array())
    assert dispatcher("x").pack((x[3:],), {}) == struct.pack("<Q", x.data_ptr() + 12)
    y = torch.zeros(10, 10)
    assert overlap(y, y[5:]) and not overlap(y[:5], y[5:]) and overlap(y[:, :5], y[:, 5:]) and not overlap(y[:0], y)
    with pytest.raises(TypeError, match="argument 'x': its element type cannot be used in a kernel"):
        class_of(torch.zeros(2, dtype=torch.complex64))


def test_torch_subclasses_go_through_their_own_methods() -> None:
    torch = pytest.importorskip("torch")

    class Mine(torch.Tensor):
        def data_ptr(self) -> int:
            return 0x40

    assert dispatcher("x").pack((torch.zeros(3).as_subclass(Mine),), {}) == struct.pack("<Q", 0x40)


def test_a_launch_takes_a_few_microseconds(load: Load) -> None:
    """Ten arguments, five of them arrays. About 2 µs; the bound leaves room for a busy machine."""
    code = load("define void @kernel(ptr %args, i64 %begin, i64 %end, ptr %ctx) {\n  ret void\n}\n")
    names = ("a", "b", "c", "d", "e", "n", "m", "scale", ("BLOCK", CONSTEXPR), ("FLAG", CONSTEXPR))
    d = dispatcher(*names, on_miss=lambda *a: libtriton.CpuKernel(code.address("kernel"), 0, code))
    arrays = [np.zeros(64, np.float32) for _ in range(5)]
    best = 1.0
    for _ in range(20):
        start = time.perf_counter()
        for _ in range(500):
            d[(4,)](*arrays, 4096, 1, 3.5, BLOCK=1024, FLAG=True, num_warps=4)
        best = min(best, (time.perf_counter() - start) / 500)
    assert best < 10e-6

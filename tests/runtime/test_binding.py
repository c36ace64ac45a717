"""Binding of calls to parameters."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest

from triton.frontend.source import KernelParam
from triton.runtime.binding import Binder, constexpr_key, convert_to_tuple_if_list, find_paths_if, signature_of


def binder(fn: Callable[..., Any], skip: tuple[str, ...] = ()) -> Binder:
    params = inspect.signature(fn).parameters.values()
    return Binder(fn.__name__, [KernelParam(i, p, p.name in skip, False) for i, p in enumerate(params)])


def kernel(a, b: tl.constexpr, n, scale=2.0):  # type: ignore[no-untyped-def]  # noqa: F821
    pass


def test_positions_names_and_defaults() -> None:
    bind = binder(kernel).bind
    assert bind((1, 2, 3), {}) == ([1, 2, 3, 2.0], {})
    assert bind((1,), {"n": 5, "b": 4}) == ([1, 4, 5, 2.0], {})
    assert bind((1, 2, 3, 4), {"num_warps": 8}) == ([1, 2, 3, 4], {"num_warps": 8})
    assert bind((), {"scale": 1, "n": 2, "b": 3, "a": 4}) == ([4, 3, 2, 1], {})


@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [
        ((1,), {}, r"kernel\(\) is missing arguments 'b', 'n'"),
        ((1, 2), {"N": 3}, r"kernel\(\) is missing argument 'n'"),
        ((1, 2), {"scal": 3}, r"missing argument 'n'"),
        ((1, 2, 3), {"n": 3}, r"kernel\(\) got argument 'n' twice"),
        ((1, 2, 3, 4, 5), {}, r"kernel\(\) takes 4 arguments, 5 were given"),
    ],
)
def test_errors_name_the_parameter(args: Any, kwargs: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        binder(kernel).bind(args, kwargs)


def test_unknown_arguments_get_a_hint() -> None:
    assert "did you mean 'num_warps'" in binder(kernel).unknown("num_warp", ["num_warps"])
    assert "parameters are a, b, n, scale" in binder(kernel).unknown("zzz", ["num_warps"])


def test_constexpr_keys_tell_apart_what_python_calls_equal() -> None:
    values = [1, 1.0, True, 0, 0.0, -0.0, False, "1", None, (1,), (1.0,), [1], {"a": 1}]
    keys = [constexpr_key(v) for v in values]
    assert len({repr(k) for k in keys}) == len(set(keys)) == len(values)
    assert constexpr_key(float("nan")) == constexpr_key(float("nan"))


def test_specialization_is_the_signature() -> None:
    b = binder(kernel)
    values, _ = b.bind((16, (1, 2), 1), {})
    spec = b.specialize(values)
    signature, constexprs, attrs = signature_of(b.params, values, spec)
    assert signature == {"a": "i32", "b": "constexpr", "n": "constexpr", "scale": "fp32"}
    assert constexprs == {(1,): (1, 2), (2,): 1}
    assert attrs == {(0,): [("tt.divisibility", 16)]}


def test_parameters_that_are_not_specialized() -> None:
    b = binder(kernel, skip=("a", "n"))
    assert b.specialize([1, 0, 16, 1.0])[0] == ("i32", None)
    assert b.specialize([7, 0, 1, 1.0]) == b.specialize([1, 0, 16, 1.0])


def annotated(x: tl.float16, y: tl.int64, z: tl.int8, w: tl.uint32):  # type: ignore[no-untyped-def]  # noqa: F821
    pass


def test_annotated_numbers_have_their_type() -> None:
    b = binder(annotated)
    assert b.specialize([42, 1, 16, 3]) == (("fp16", None), ("i64", ""), ("i8", "D"), ("u32", ""))
    with pytest.raises(TypeError, match="'z': 300 does not fit type i8"):
        b.specialize([1.0, 1, 300, 3])
    with pytest.raises(TypeError, match="'w': -1 does not fit type u32"):
        b.specialize([1.0, 1, 3, -1])
    with pytest.raises(TypeError, match="'y': expected an integer"):
        b.specialize([1.0, 1.5, 3, 1])


def test_errors_in_arguments_name_them() -> None:
    with pytest.raises(TypeError, match=r"kernel\(\) argument 'n': a value of type object"):
        binder(kernel).specialize([1, 2, object(), 1.0])


def test_lists_become_tuples_at_any_depth() -> None:
    assert convert_to_tuple_if_list([1, [2, (3, [4])]]) == (1, (2, (3, (4,))))
    assert find_paths_if((1, (2, "x")), lambda path, leaf: isinstance(leaf, int)) == [(0,), (1, 0)]

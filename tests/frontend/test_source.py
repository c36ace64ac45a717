"""Capture of functions: source text, parameters, hash."""

from __future__ import annotations

import ast
import linecache
import sys
import types

import pytest

import triton
import triton.language as tl
from triton.frontend.source import JITCallable
from triton.runtime.jit import constexpr_function


def load(path, text):
    """A module from this text, as if the program had been started anew after an edit."""
    path.write_text(text, encoding="utf-8")
    linecache.clearcache()
    # Compiled here: the import system would take the old text's .pyc for an edit of the same length in the same second.
    module = types.ModuleType(path.stem)
    module.__file__ = str(path)
    sys.modules[path.stem] = module
    exec(compile(text, str(path), "exec"), module.__dict__)
    return module


BASE = """\
import triton
import triton.language as tl
from triton.runtime.jit import constexpr_function

SCALE = tl.constexpr(2)
UNUSED = tl.constexpr(3)


@constexpr_function
def size(n):
    return n * 2


@triton.jit
def deep(x):
    return x + 1


@triton.jit
def helper(x):
    return deep(x) * SCALE


@triton.jit
def other(x):
    return x


@triton.jit
def kernel(p, KIND: tl.constexpr):
    x = tl.arange(0, size(4))
    if KIND == "a":
        x = helper(x)
    else:
        x = other(x)
    tl.store(p + x, x)
"""


@pytest.mark.parametrize(
    "old, new, changes",
    [
        ("x + 1", "x + 2", True),  # two calls away
        ("return x\n", "return x * 3\n", True),  # a helper chosen by a string
        ("n * 2", "n * 4", True),  # a compile-time helper
        ("SCALE = tl.constexpr(2)", "SCALE = tl.constexpr(5)", True),
        ("x = other(x)", "x = other(x) + 1", True),
        ("UNUSED = tl.constexpr(3)", "UNUSED = tl.constexpr(4)", False),
        ("", "", False),
    ],
)
def test_the_hash_follows_everything_the_kernel_uses(tmp_path, old, new, changes):
    first = load(tmp_path / "hashed.py", BASE).kernel.cache_key
    assert old in BASE
    second = load(tmp_path / "hashed.py", BASE.replace(old, new)).kernel.cache_key
    assert (first != second) is changes
    assert len(first) == 64


def test_globals_that_were_read_are_known(tmp_path):
    module = load(tmp_path / "hashed.py", BASE)
    assert module.kernel.cache_key
    assert {name for name, _ in module.kernel.used_global_vals} == {"SCALE"}


def test_mutual_recursion_has_a_hash(tmp_path):
    module = load(
        tmp_path / "mutual.py",
        "import triton\n@triton.jit\ndef a(x):\n    return b(x)\n@triton.jit\ndef b(x):\n    return a(x)\n",
    )
    assert module.a.cache_key != module.b.cache_key


@triton.jit
def documented(
    x,  # a comment
    n: tl.constexpr = 3,
    h: tl.float16 = 1.0,
    c: tl.const = None,
    *,
    last=(1, 2),
):
    """What it does."""
    return x


def test_attributes():
    fn = documented
    assert isinstance(fn, JITCallable)
    assert (fn.__name__, fn.__module__, fn.__doc__) == ("documented", __name__, "What it does.")
    assert fn.src.startswith("def documented(\n    x,  # a comment\n")
    assert fn.src.rstrip().endswith("return x")
    assert fn.raw_src[0] == "@triton.jit\n"
    assert fn.def_file_line_number == fn.starting_line_number + 1
    assert isinstance(fn.parse(), ast.FunctionDef)
    assert fn.parse() is fn.parse()
    assert fn.arg_names == ["x", "n", "h", "c", "last"]


def test_parameters():
    x, n, h, c, last = documented.params
    assert [p.num for p in documented.params] == [0, 1, 2, 3, 4]
    assert (n.is_constexpr, n.has_default, n.default) == (True, True, 3)
    assert (x.is_constexpr, x.has_default, x.annotation) == (False, False, "")
    assert (h.annotation_type, x.annotation_type) == ("fp16", "")
    assert (c.is_const, h.is_const) == (True, False)
    assert last.default == (1, 2)


@pytest.mark.parametrize(
    "annotation, name",
    [
        (tl.float16, "fp16"), (tl.bfloat16, "bf16"), (tl.float64, "fp64"), (tl.int8, "i8"), (tl.uint64, "u64"),
        (tl.int1, "u1"),
        ("tl.float32", "fp32"), ("int64", "i64"), ("i32", "i32"), ("bool", "u1"), (int, ""), ("whatever", ""),
    ],
)  # fmt: skip
def test_annotated_types(annotation, name):
    def fn(x):
        pass

    fn.__annotations__["x"] = annotation
    assert JITCallable(fn).params[0].annotation_type == name


def make(offset):
    @triton.jit
    def closure(x):
        return x + offset

    return closure


def test_captured_variables_are_part_of_the_hash():
    one, two = make(tl.constexpr(1)), make(tl.constexpr(2))
    assert one.get_capture_scope()["offset"].value == 1
    assert one.cache_key != two.cache_key
    assert one.cache_key == make(tl.constexpr(1)).cache_key


class Shape:
    @constexpr_function
    def doubled(self, n):
        return n * 2


def test_constexpr_functions_are_plain_functions_outside_of_kernels():
    @constexpr_function
    def add(a, b=1):
        return a + b

    assert add(2) == 3
    assert add(tl.constexpr(2), b=tl.constexpr(5)) == 7
    assert Shape().doubled(4) == 8


def test_only_functions_can_be_jitted():
    with pytest.raises(TypeError, match=r"^jit: expected a function, got int$"):
        JITCallable(3)


# fmt: off
class Holder:
    @triton.jit
    def indented(
        x, text="""
not indented
"""
    ):
        # a comment
        x = [
    1, 2,
        ]

# a comment that is not part of it

        return x

    other = 1
# fmt: on


def test_the_end_of_a_function_is_found():
    fn = Holder.__dict__["indented"]
    assert fn.raw_src[-1].strip() == "return x"
    assert [type(s).__name__ for s in fn.parse().body] == ["Assign", "Return"]
    assert fn.def_file_col_number == 5
    assert make.__code__.co_firstlineno < fn.starting_line_number
    assert make(tl.constexpr(1)).src == "def closure(x):\n    return x + offset\n"


CYCLE = """\
import triton
import triton.language as tl


@triton.jit
def down(x, n: tl.constexpr):
    if n == 0:
        return x
    else:
        return up(x, n - 1)


@triton.jit
def up(x, n: tl.constexpr):
    return down(x + 1, n)
"""


def test_hashes_of_mutually_recursive_functions_follow_both_in_any_order(tmp_path):
    keys = {}
    for old, new in (("x + 1", "x + 1"), ("x + 1", "x + 2"), ("return x\n", "return x * 2\n")):
        first = load(tmp_path / "cycle.py", CYCLE.replace(old, new))
        forward = (first.down.cache_key, first.up.cache_key)
        second = load(tmp_path / "cycle.py", CYCLE.replace(old, new))
        backward = (second.up.cache_key, second.down.cache_key)
        assert forward == backward[::-1]
        keys[new] = forward
    assert len({key for pair in keys.values() for key in pair}) == 6


AGGREGATE = """\
import triton
import triton.language as tl
from triton.language.core import _aggregate


@_aggregate
class Counter:
    value: tl.tensor

    @triton.jit
    def __init__(self, value):
        self.value = value + 0

    @triton.jit
    def next(self):
        return self.value + 1


@triton.jit
def kernel(p):
    tl.store(p, Counter(tl.load(p)).next())
"""


@pytest.mark.parametrize("old, new", [("self.value + 1", "self.value + 2"), ("value + 0", "value + 3")])
def test_the_hash_follows_methods_of_aggregates(tmp_path, old, new):
    first = load(tmp_path / "aggregates.py", AGGREGATE).kernel.cache_key
    assert first == load(tmp_path / "aggregates.py", AGGREGATE).kernel.cache_key
    assert first != load(tmp_path / "aggregates.py", AGGREGATE.replace(old, new)).kernel.cache_key


def test_many_threads_may_read_source_and_hash_at_once(tmp_path):
    from concurrent.futures import ThreadPoolExecutor

    for _ in range(10):
        module = load(tmp_path / "hashed.py", BASE)
        with ThreadPoolExecutor(8) as pool:
            keys = set(pool.map(lambda _, m=module: (m.kernel.cache_key, m.helper.src, m.kernel.src), range(16)))
        assert len(keys) == 1

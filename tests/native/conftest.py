"""Fixtures of the native tests: compile for this machine, load, launch."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator

import pytest

from triton._C import libtriton

KERNEL = "void @kernel(ptr %args, i64 %begin, i64 %end, ptr %ctx)"


@pytest.fixture
def build() -> Callable[[str], bytes]:
    """IR text -> object file for this machine."""
    triple, cpu, features = libtriton.host_target()

    def run(ir: str) -> bytes:
        return libtriton.compile_ir(ir, triple=triple, cpu=cpu, features=features, emit=("obj",))["obj"]

    return run


@pytest.fixture
def load(build: Callable[[str], bytes]) -> Callable[..., libtriton.Code]:
    """IR text -> machine code in this process."""
    return lambda ir, symbols=None: libtriton.jit_load(build(ir), symbols)


@pytest.fixture
def count_kernel(load: Callable[..., libtriton.Code]) -> Iterator[int]:
    """Address of a kernel that adds one to counts[id] for each program id, atomically."""
    code = load(
        f"""
define {KERNEL} {{
entry:
  %counts = load ptr, ptr %args
  br label %loop
loop:
  %i = phi i64 [ %begin, %entry ], [ %next, %loop ]
  %p = getelementptr i32, ptr %counts, i64 %i
  %old = atomicrmw add ptr %p, i32 1 monotonic
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %end
  br i1 %more, label %loop, label %done
done:
  ret void
}}"""
    )
    yield code.address("kernel")
    del code


@pytest.fixture
def threads() -> Iterator[Callable[[int], None]]:
    """Sets the number of pool threads; restored afterwards."""
    before = libtriton.get_num_threads()
    yield libtriton.set_num_threads
    libtriton.set_num_threads(before)


def slots(*pointers: int) -> bytes:
    return struct.pack(f"{len(pointers)}Q", *pointers)


@pytest.fixture(name="slots")
def slots_fixture() -> Callable[..., bytes]:
    """Pointers -> the kernel ABI's argument block."""
    return slots

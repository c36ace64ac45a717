"""Every op of the op table has a rule or a reason, and every example runs and gives what its types promise."""

import numpy as np
import pytest

from triton.interpreter.floats import from_python, storage_dtype
from triton.interpreter.machine import Machine
from triton.interpreter.memory import Memory
from triton.interpreter.rules import CONTROL, RULES, UNSUPPORTED, Descriptor
from triton.interpreter.shared import Barriers
from triton.ir import OPS, parse_module
from triton.ir.types import DescriptorType, PointerType, SharedType, element_of, shape_of


def test_every_op_has_a_rule_or_a_reason():
    assert set(RULES) | CONTROL == set(OPS)
    assert not CONTROL & set(RULES)
    assert all(reason.strip() for reason in UNSUPPORTED.values())


def argument(type, buffer):
    if isinstance(type, DescriptorType):
        rank = len(type.block.shape)
        return Descriptor(buffer.ctypes.data, type.block.shape, (0,) * (rank - 1) + (1,), "zero")
    if isinstance(type, SharedType):
        return np.ones((type.slots, *type.block.shape), dtype=storage_dtype(type.block))
    element = element_of(type)
    number = buffer.ctypes.data if isinstance(element, PointerType) else 1
    return np.broadcast_to(from_python(number, element), shape_of(type))


@pytest.mark.parametrize("kind", [k for k in OPS if OPS[k].example and k != "call"])
def test_example_runs(kind):
    head, ops = OPS[kind].example.split("=>", 1)
    module = parse_module(f"module {{ func @example{head.strip()} {{ {ops}\n return }} }}")
    function = module.functions["example"]
    buffer = np.zeros(4096, dtype=np.uint8)
    machine = Machine(module, Memory(), (1, 1, 1), [].append)
    args = [argument(a.type, buffer) for a in function.args]  # all integers are 1: slots 0 and 1 exist
    if kind == "while":  # the example's loop counts nothing: let it end at once
        args = [np.int32(0)]
    if kind in UNSUPPORTED:
        with pytest.raises(Exception, match=UNSUPPORTED[kind]):
            machine.run_function(function, args)
        return
    machine.run_function(function, args)
    for op in function.body.ops:
        for result in op.results:
            value = machine.values[result]
            if not isinstance(result.type, DescriptorType) and not isinstance(value, Barriers):
                slots = (result.type.slots, *result.type.block.shape) if isinstance(result.type, SharedType) else None
                assert value.shape == (slots or shape_of(result.type)), kind
                assert value.dtype == storage_dtype(result.type), kind

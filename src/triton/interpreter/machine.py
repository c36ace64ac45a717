"""Runs a function of the tile IR, one program at a time.

The machine keeps its own stack of open blocks, so neither loop trips nor nesting depth use up Python's. A value is an
array in storage form, or a ``Descriptor``; all live in one dictionary, since functions do not recurse.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from triton.ir.core import Block, Function, Module, Op, Value

from .errors import Blocked, InterpreterError
from .floats import storage_dtype
from .memory import Memory
from .rules import CONTROL, RULES


class _Frame:
    """A block being run. ``op`` is what opened it (None: the outermost); ``trips`` the counters left of a for loop."""

    __slots__ = ("at", "op", "ops", "trips")

    def __init__(self, block: Block, op: Op | None, trips: Iterator[int] | None = None) -> None:
        self.ops = block.ops
        self.at = 0
        self.op = op
        self.trips = trips


class Machine:
    """``program`` is the running program's index and ``grid`` the grid's size; ``output`` gets every printed line.

    A program that must wait for another raises ``Blocked``; ``resume`` goes on at the op that did. ``deadline`` is when
    that op gives up (None: never), ``waits`` counts the waits that are over.
    """

    __slots__ = (
        "copies", "deadline", "grid", "memory", "module", "output", "products", "program", "rules", "stack", "values",
        "waiting", "waits",
    )  # fmt: skip

    def __init__(
        self, module: Module, memory: Memory, grid: tuple[int, int, int], output: Callable[[str], object]
    ) -> None:
        self.module = module
        self.memory = memory
        self.grid = grid
        self.program = (0, 0, 0)
        self.output = output
        self.values: dict[Value, Any] = {}
        self.rules = RULES
        self.copies: list[list[Callable[[], None]]] = [[]]  # groups of copies under way; the last one is still open
        self.products: list[Callable[[], None]] = []  # asynchronous products under way
        self.stack: list[_Frame] = []
        self.waiting: Op | None = None
        self.deadline: float | None = None
        self.waits = 0

    def run_function(self, function: Function, args: Sequence[Any]) -> list[Any]:
        """The function's results, for one program."""
        self.copies, self.products = [[]], []
        self._bind(function.body.args, args)
        self.stack = [_Frame(function.body, None)]
        return self._run(self.stack)

    def resume(self) -> list[Any]:
        """Goes on with the program that was blocked: the function's results."""
        return self._run(self.stack)

    def run_region(self, block: Block, args: Sequence[Any]) -> list[Any]:
        """Binds the block's arguments, runs it and gives the operands of its terminator."""
        self._bind(block.args, args)
        return self._run([_Frame(block, None)])

    def _run(self, stack: list[_Frame]) -> list[Any]:
        values, rules = self.values, self.rules
        while True:
            frame = stack[-1]
            op = frame.ops[frame.at]
            frame.at += 1
            operands = [values[v] for v in op.operands]
            if op.kind in CONTROL:
                if frame.op is None and op.kind in ("yield", "return"):
                    return operands
                self._control(stack, frame, op, operands)
                continue
            try:
                result = rules[op.kind](self, op, operands)
            except InterpreterError as error:
                error.locate(op.loc)
                raise
            except Blocked:
                frame.at -= 1
                raise
            if len(op.results) == 1:
                values[op.results[0]] = result[0] if type(result) is list else result
            elif op.results:
                self._bind(op.results, result)

    def _bind(self, names: Sequence[Value], values: Sequence[Any]) -> None:
        for name, value in zip(names, values, strict=True):
            self.values[name] = value

    def _control(self, stack: list[_Frame], frame: _Frame, op: Op, operands: list[Any]) -> None:
        if op.kind in ("yield", "condition", "return"):
            self._leave(stack, frame, op, operands)
        elif op.kind == "if":
            stack.append(_Frame(op.regions[0 if operands[0] else 1], op))
        elif op.kind == "while":
            self._bind(op.regions[0].args, operands)
            stack.append(_Frame(op.regions[0], op))
        elif op.kind == "call":
            callee = self.module.functions[op.attrs["callee"]]
            self._bind(callee.args, operands)
            stack.append(_Frame(callee.body, op))
        else:
            low, high, step = (int(v) for v in operands[:3])
            trips = iter(range(low, high, step) if step else ())
            self._next_trip(stack, _Frame(op.regions[0], op, trips), operands[3:])

    def _next_trip(self, stack: list[_Frame], frame: _Frame, carried: list[Any]) -> None:
        """Starts the next trip of a for loop that is not on the stack, or ends the loop."""
        assert frame.op is not None and frame.trips is not None
        body = frame.op.regions[0]
        counter = next(frame.trips, None)
        if counter is None:
            self._bind(frame.op.results, carried)
            return
        self._bind(body.args, [np.array(counter, dtype=storage_dtype(body.args[0].type)), *carried])
        frame.at = 0
        stack.append(frame)

    def _leave(self, stack: list[_Frame], frame: _Frame, end: Op, operands: list[Any]) -> None:
        stack.pop()
        op = frame.op
        assert op is not None
        if op.kind == "for":
            self._next_trip(stack, frame, operands)
        elif op.kind == "while" and end.kind == "condition":
            go_on, *carried = operands
            if go_on:
                self._bind(op.regions[1].args, carried)
                stack.append(_Frame(op.regions[1], op))
            else:
                self._bind(op.results, carried)
        elif op.kind == "while":
            self._bind(op.regions[0].args, operands)
            stack.append(_Frame(op.regions[0], op))
        else:
            self._bind(op.results, operands)

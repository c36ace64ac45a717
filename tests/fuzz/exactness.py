"""How exactly two correct implementations agree on a value of a module, and by how much they may differ otherwise.

EXACT: bit for bit (NaN is NaN). SIGN_OF_ZERO: bit for bit but for the sign of zeros. INEXACT: a float that went through
a mathematical function, a float sum in free order and the like. How far an inexact value may be off is measured:
``perturbed_rules`` makes an interpreter that shakes every inexact result by some last places.
"""

from __future__ import annotations

import numpy as np

from triton.interpreter.floats import narrow, widen
from triton.interpreter.rules import RULES
from triton.ir.core import Block, Function, Module, Op, Value
from triton.ir.types import PointerType, element_of

EXACT, SIGN_OF_ZERO, INEXACT = 0, 1, 2

WRITERS = frozenset({"store", "atomic_rmw", "atomic_cas", "desc_store"})
MATHEMATICS = frozenset({"exp", "exp2", "log", "log2", "sin", "cos", "sqrt", "rsqrt", "erf", "libm"})
EXACT_FUNCTIONS = frozenset({"fabs", "trunc", "rint", "nearbyint", "copysign", "isnan", "isinf", "signbit"})
MOVES = frozenset(
    {"splat", "broadcast", "expand_dims", "reshape", "permute", "flip", "join", "split", "cat", "gather"}
    | {"select", "neg", "abs"}
)
CHOOSING = frozenset({"fmin", "fmax", "fdim"})
PRECISION = {
    "f8e4m3": 3,
    "f8e5m2": 2,
    "f8e4b15": 3,
    "f8e4b8": 3,
    "f8e5b16": 2,
    "bf16": 7,
    "f16": 10,
    "f32": 23,
    "f64": 52,
}
SMALLEST = {
    "f8e4m3": -9, "f8e5m2": -16, "f8e4b15": -17, "f8e4b8": -10, "f8e5b16": -17, "bf16": -133, "f16": -24, "f32": -149,
    "f64": -1074,
}  # fmt: skip


def is_float(value: Value) -> bool:
    return element_of(value.type).is_float


def exact_function(op: Op) -> bool:
    return op.kind == "libm" and op.attrs["function"] in EXACT_FUNCTIONS | CHOOSING


def differs_by_itself(op: Op) -> bool:
    """Whether results differ between correct implementations even where the operands agree; but see reductions."""
    if op.kind in MATHEMATICS:
        return not exact_function(op)
    return op.kind in ("dot", "dot_scaled") or (op.kind == "div" and bool(op.attrs.get("approx")))


def result_level(op: Op, levels: dict[Value, int]) -> int:
    """The level of the float results of an op without control flow. Loads count as exact here."""
    highest = max((levels.get(v, EXACT) for v in op.operands), default=EXACT)
    if differs_by_itself(op):
        return INEXACT
    if op.kind in ("reduce", "scan"):
        region = op.regions[0].ops
        chooses = all(o.kind in ("min", "max", "cmp", "select", "and", "or", "yield") for o in region)
        return max(highest, SIGN_OF_ZERO) if chooses else INEXACT
    if op.kind in ("min", "max", "sort"):
        return max(highest, SIGN_OF_ZERO)
    if op.kind == "libm" and op.attrs["function"] in CHOOSING:
        return max(highest, SIGN_OF_ZERO)
    return highest


class Levels:
    """Levels of all values of a module, and the level of what is stored in each kernel argument's memory."""

    def __init__(self, module: Module) -> None:
        self.levels: dict[Value, int] = {}
        self.stored: dict[Value, int] = {}
        for op in module.walk():
            if op.kind in WRITERS:
                self.stored.setdefault(root(op.operands[0]), EXACT)
        for function in module.functions.values():
            self.function(function)

    def function(self, function: Function) -> None:
        for arg in function.args:
            self.levels[arg] = EXACT if function.is_kernel or not is_float(arg) else INEXACT
        self.block(function.body)

    def assume_inexact(self, values: list[Value]) -> None:
        for value in values:
            self.levels[value] = INEXACT if is_float(value) else EXACT

    def block(self, block: Block) -> None:
        for op in block.ops:
            for region in op.regions:
                self.assume_inexact(region.args)
                self.block(region)
            if op.kind in ("for", "while", "call"):
                self.assume_inexact(op.results)
            elif op.kind in ("if", "map"):
                for k, result in enumerate(op.results):
                    self.levels[result] = max(self.levels[r.terminator.operands[k]] for r in op.regions)
            else:
                level = result_level(op, self.levels)
                if op.kind in ("load", "atomic_rmw", "atomic_cas", "desc_load"):
                    level = self.stored.get(root(op.operands[0]), EXACT)
                for result in op.results:
                    self.levels[result] = level if is_float(result) else EXACT
            if op.kind in WRITERS:
                level = self.levels[op.operands[1]] if op.kind in ("store", "desc_store") else INEXACT
                where = root(op.operands[0])
                self.stored[where] = max(self.stored[where], level)


def root(pointer: Value) -> Value:
    """The argument that a pointer comes from. A block's argument stands for itself: loops carry inputs only."""
    while pointer.op is not None and pointer.op.kind != "for":
        pointer = pointer.op.operands[0]
    return pointer


def ulps(values: np.ndarray, name: str) -> np.ndarray:
    """The distance between neighbours at ``values`` (float64) in a format."""
    magnitude = np.where(np.isfinite(values), np.abs(values), 0.0)
    exponent = np.where(magnitude > 0, np.frexp(magnitude)[1] - 1, -1074)
    return np.ldexp(1.0, np.maximum(exponent - PRECISION[name], SMALLEST[name]).astype(int))


def perturbed_rules(module: Module, rng: np.random.Generator) -> dict:
    """The interpreter's rules, with every inexact result of ``module`` moved by some last places.

    Never by less than one: a value that rounds back to what it was would seem exact, also after a cast to a wider type.
    By more where an op makes the difference than where it only rounds once more: the second must not undo the first.
    Not at all where an op moves values or changes their sign.
    """
    levels = Levels(module).levels

    def places(shape: tuple[int, ...], least: float) -> np.ndarray:
        return rng.uniform(least, least + 1.0, shape) * rng.choice([-1.0, 1.0], shape)

    def shake(array, value: Value, least: float = 2.0):
        element = element_of(value.type)
        if isinstance(element, PointerType) or not element.is_float:
            return array
        wide = widen(array, element).astype(np.float64)
        moved = wide + places(wide.shape, least) * ulps(wide, element.name)
        return narrow(np.where(np.isfinite(wide), moved, wide), element)

    def shake_product(rule, machine, op, args):
        """By some last places of the sum of the products' sizes: terms may cancel."""
        result, value = rule(machine, op, args), op.results[0]
        element = element_of(value.type)
        sizes = [size(a, v) if k < 3 else a for k, (a, v) in enumerate(zip(args, op.operands, strict=True))]
        wide = widen(result, element).astype(np.float64)
        largest = widen(rule(machine, op, sizes), element).astype(np.float64)
        moved = wide + places(wide.shape, 2.0) * ulps(largest, element.name)
        return narrow(np.where(np.isfinite(wide), moved, wide), element)

    def size(array, value: Value):
        element = element_of(value.type)
        if element.is_float:
            return narrow(np.abs(widen(array, element)), element)
        return array & 0x77 if element.bits == 8 else array  # pairs of e2m1, whose signs are bits 3 and 7

    def wrap(rule):
        def shaken(machine, op, args):
            inexact = any(levels.get(r) == INEXACT for r in op.results)
            if not inexact or op.kind in MOVES:
                return rule(machine, op, args)
            if op.kind in ("dot", "dot_scaled"):
                return shake_product(rule, machine, op, args)
            if op.kind in ("reduce", "scan"):
                args = [shake(a, v) for a, v in zip(args, op.operands, strict=True)]
            result = rule(machine, op, args)
            if isinstance(result, list):
                return [shake(a, v) for a, v in zip(result, op.results, strict=True)]
            return shake(result, op.results[0], 2.0 if differs_by_itself(op) else 1.0)

        return shaken

    return {kind: wrap(rule) for kind, rule in RULES.items()}

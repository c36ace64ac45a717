"""Ways to call: a C function for each lane, and helper functions of the module that hold a piece of code once."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .values import Num
from .writer import FunctionWriter, ModuleWriter, vector


def per_lane(symbol: str, args: Sequence[Num], base: str) -> Num:
    """Calls the C function ``symbol`` for each lane; the result is of LLVM type ``base``."""
    w = args[0].w
    name = w.module.c_function(symbol, base)
    callee = w.module.declare(name, base, [a.base for a in args], "nounwind willreturn memory(none)")
    return each_lane(callee, args, base)


def per_lane_in_double(symbol: str, *args: Num) -> Num:
    """``per_lane`` in double precision whatever the arguments are, rounded to the first one's type."""
    wide = [a if a.base == "double" else a.convert("fpext", "double") for a in args]
    result = per_lane(symbol, wide, "double")
    return result if args[0].base == "double" else result.convert("fptrunc", "float")


def outlined(name: str, compute: Callable[..., Num], count: int = 1) -> Callable[..., Num]:
    """``compute`` as a call of a helper function of the module, to be inlined by LLVM: its text is written once for
    each type.
    """

    def call(*args: Num) -> Num:
        x = args[0]
        symbol = f"tl.{name}.{x.base}{x.lanes or ''}"
        type = vector(x.base, x.lanes)

        def build(module: ModuleWriter) -> FunctionWriter:
            params = [f"{type} %a{i}" for i in range(count)]
            attributes = module.attributes("alwaysinline nounwind willreturn memory(none)")
            w = FunctionWriter(module, symbol, type, params, linkage="internal", attributes=attributes)
            w.ret(compute(*(Num(w, f"%a{i}", x.base, x.lanes) for i in range(count))).typed)
            return w

        callee = x.w.module.helper(symbol, build)
        return Num(x.w, x.w.call(type, callee, [a.typed for a in args]), x.base, x.lanes)

    return call


def each_lane(callee: str, args: Sequence[Num], base: str) -> Num:
    """Calls ``callee`` (an ``@name``, of scalars) for each lane; the result is of LLVM type ``base``."""
    w, lanes = args[0].w, args[0].lanes
    if not lanes:
        return Num(w, w.call(base, callee, [a.typed for a in args]), base, 0)
    result = "poison"
    for lane in range(lanes):
        scalars = [f"{a.base} {w.emit(f'extractelement {a.typed}, i64 {lane}')}" for a in args]
        value = w.call(base, callee, scalars)
        result = w.emit(f"insertelement <{lanes} x {base}> {result}, {base} {value}, i64 {lane}")
    return Num(w, result, base, lanes)


COLD = "cold noinline nounwind willreturn memory(none)"


def scalar_helper(name: str, compute: Callable[..., Num], module: ModuleWriter, count: int) -> str:
    """``@name``: ``compute`` on ``count`` doubles as a function that is not inlined."""

    def build(module: ModuleWriter) -> FunctionWriter:
        params = [f"double %a{i}" for i in range(count)]
        w = FunctionWriter(module, name, "double", params, linkage="internal", attributes=module.attributes(COLD))
        w.ret(compute(*(Num(w, f"%a{i}", "double", 0) for i in range(count))).typed)
        return w

    return module.helper(name, build)


def with_rare_lanes(
    name: str, usual: Num, test: Callable[..., Num], compute: Callable[..., Num], args: Sequence[Num]
) -> Num:
    """``usual``, except in the lanes where ``test(*args)`` (i1) holds: there ``compute`` of the arguments as doubles.

    If no lane needs it, this costs a test and a branch. ``compute`` is a scalar function, called lane by lane from a
    function kept out of the way.
    """
    w, lanes = usual.w, usual.lanes
    symbol = f"tl.{name}.rare.{usual.base}{lanes or ''}"

    def build(module: ModuleWriter) -> FunctionWriter:
        names = [f"%a{i}" for i in range(len(args))]
        params = [f"{usual.type} {n}" for n in ("%usual", *names)]
        inner = FunctionWriter(
            module, symbol, usual.type, params, linkage="internal", attributes=module.attributes(COLD)
        )
        values = [Num(inner, n, usual.base, lanes) for n in names]
        wide = [v if v.base == "double" else v.convert("fpext", "double") for v in values]
        slow = each_lane(scalar_helper(f"tl.{name}.far", compute, module, len(args)), wide, "double")
        slow = slow if usual.base == "double" else slow.convert("fptrunc", "float")
        inner.ret(test(*values).select(slow, Num(inner, "%usual", usual.base, lanes)).typed)
        return inner

    helper, rare = w.module.helper(symbol, build), test(*args)
    anywhere = rare.text
    if lanes:
        callee = w.module.declare(f"llvm.vector.reduce.or.v{lanes}i1", "i1", [rare.type])
        anywhere = w.call("i1", callee, [rare.typed])
    before = w.block
    weights = w.module.metadata('!{!"branch_weights", i32 1, i32 100000}')
    with w.branch(anywhere, "rare", f", !prof {weights}"):
        other = w.call(usual.type, helper, [usual.typed, *(a.typed for a in args)])
        inside = w.block
    return Num(w, w.emit(f"phi {usual.type} [ {usual.text}, %{before} ], [ {other}, %{inside} ]"), usual.base, lanes)

"""Running passes: verification after each, the observer, time that grows with the program only, deep nesting."""

from __future__ import annotations

import gc
import inspect
import sys
import time

import pytest

from triton.ir import IRError, Module, equal, parse_module, print_module, verify
from triton.passes.manager import Pass, run_passes
from triton.passes.pipeline import DCE, FOLD, TILE_PASSES

SMALL = "module {\nfunc @f(%p: ptr<i32>, %x: i32) {\n  %y = neg %x : i32\n  store %p, %x\n  return\n}\n}\n"


def test_observer_sees_every_pass() -> None:
    seen: list[tuple[str, int]] = []

    def observe(name: str, module: Module, seconds: float) -> None:
        assert seconds >= 0
        seen.append((name, sum(1 for _ in module.walk())))

    run_passes(parse_module(SMALL), (FOLD, DCE), observer=observe)
    assert seen == [("fold", 3), ("dce", 2)]


def test_names_are_distinct() -> None:
    names = [step.name for step in TILE_PASSES]
    assert len(set(names)) == len(names)


def test_verification_names_the_guilty_pass() -> None:
    def breaks(module: Module) -> Module:
        del module.functions["f"].body.ops[-1]
        return module

    with pytest.raises(IRError, match=r"^after pass breaks: @f: the block does not end with a terminator$"):
        run_passes(parse_module(SMALL), (FOLD, Pass("breaks", breaks), DCE), verify=True)
    with pytest.raises(IRError, match=r"^@f: "):
        run_passes(breaks(parse_module(SMALL)), (FOLD,), verify=True)


def test_a_pass_may_change_the_stage() -> None:
    def lay_out(module: Module) -> Module:
        return parse_module("module {\nfunc @f(%x: 4xf32 #L0) {\n  return\n}\n}\n")

    assert run_passes(parse_module(SMALL), (Pass("lay out", lay_out, "layout"),), verify=True)
    with pytest.raises(IRError, match="after pass lay out"):
        run_passes(parse_module(SMALL), (Pass("lay out", lay_out),), verify=True)


def test_running_twice_changes_nothing_more() -> None:
    module = run_passes(parse_module(_kernel(3)), TILE_PASSES, verify=True)
    again = run_passes(parse_module(print_module(module)), TILE_PASSES, verify=True)
    assert equal(module, again), print_module(module) + print_module(again)


def _kernel(pieces: int) -> str:
    """A kernel with ``pieces`` loops over tiles, about 30 ops each, as a front end writes them."""
    lines = []
    for i in range(pieces):
        lines.append(f"""
  %z{i} = constant {{value = 0}} : i32
  %o{i} = constant {{value = 16}} : i32
  %f{i} = constant {{value = 0.0}} : f32
  %a{i} = splat %f{i} : 32x16xf32
  %r{i} = for %z{i}, %n, %o{i}, %a{i} : 32x16xf32 (%i{i}: i32, %s{i}: 32x16xf32) {{
    %b{i} = program_id {{axis = 0}} : i32
    %c{i} = constant {{value = 32}} : i32
    %d{i} = mul %b{i}, %c{i} : i32
    %e{i} = arange {{start = 0, end = 32}} : 32xi32
    %g{i} = splat %d{i} : 32xi32
    %h{i} = add %g{i}, %e{i} : 32xi32
    %j{i} = expand_dims %h{i} {{axis = 1}} : 32x1xi32
    %k{i} = splat %n : 32x1xi32
    %l{i} = mul %j{i}, %k{i} : 32x1xi32
    %m{i} = cmp %j{i}, %k{i} {{pred = "lt"}} : 32x1xi1
    %q{i} = arange {{start = 0, end = 16}} : 16xi32
    %t{i} = splat %i{i} : 16xi32
    %u{i} = add %t{i}, %q{i} : 16xi32
    %v{i} = expand_dims %u{i} {{axis = 0}} : 1x16xi32
    %w{i} = broadcast %l{i} : 32x16xi32
    %x{i} = broadcast %v{i} : 32x16xi32
    %y{i} = add %w{i}, %x{i} : 32x16xi32
    %aa{i} = splat %p : 32x16xptr<f32>
    %ab{i} = addptr %aa{i}, %y{i} : 32x16xptr<f32>
    %ac{i} = broadcast %m{i} : 32x16xi1
    %ad{i} = constant {{value = {float(i)}}} : 32x16xf32
    %ae{i} = load %ab{i}, %ac{i}, %ad{i} : 32x16xf32
    %af{i} = add %s{i}, %ae{i} : 32x16xf32
    yield %af{i}
  }}
  %ag{i} = splat %p : 32x16xptr<f32>
  store %ag{i}, %r{i}""")
    return "module {\nfunc @f(%p: ptr<f32>, %n: i32) {kernel = true} {" + "".join(lines) + "\n  return\n}\n}\n"


def _seconds(pieces: int) -> float:
    """The least CPU time of the pipeline over some runs."""
    best = float("inf")
    for _ in range(5):
        module = parse_module(_kernel(pieces))
        gc.collect()
        start = time.process_time()
        run_passes(module, TILE_PASSES)
        best = min(best, time.process_time() - start)
    return best


def test_time_is_small_and_grows_with_the_program_only() -> None:
    small, large = _seconds(10), _seconds(80)
    assert small < 0.05, "300 ops take about 3 ms on an idle machine"
    assert large < 8 * small * 2.5, (small, large)


def test_eighty_nested_branches_fit_beside_a_deep_caller() -> None:
    opening = "".join(
        f'%c{i} = cmp %n, %k{i} {{pred = "eq"}} : i1\nif %c{i} () {{\nstore %p, %n\nyield\n}} () {{\n'
        for i in range(80)
    )
    constants = "".join(f"%k{i} = constant {{value = {i}}} : i32\n" for i in range(80))
    text = f"module {{\nfunc @f(%p: ptr<i32>, %n: i32) {{\n{constants}{opening}{'yield }' * 80}\nreturn\n}}\n}}\n"
    module = parse_module(text)
    verify(module)
    limit = sys.getrecursionlimit()
    depth = len(inspect.stack(0))
    try:
        sys.setrecursionlimit(depth + 330)
        run_passes(module, TILE_PASSES)
    finally:
        sys.setrecursionlimit(limit)
    assert sum(op.kind == "store" for op in module.walk()) == 80

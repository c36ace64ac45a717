"""Modules for the tests of the IR: every example of the op table, and a kernel with all kinds of nesting."""

from triton.ir.ops import OPS

# Terminators have no example of their own: they stand in those of for, while, if and in every function.
KINDS = [kind for kind, info in OPS.items() if not info.terminator]


def example_module(kind: str) -> str:
    """The module around one row's example: ``(arguments) => ops`` becomes a function with that body."""
    head, _, body = OPS[kind].example.partition("=>")
    body = "\n".join("  " + line for line in body.strip().splitlines())
    if kind == "call":
        return f"module {{\nfunc @example{head.strip()} -> f32 {{\n{body}\n  return %r\n}}\n}}\n"
    return f"module {{\nfunc @example{head.strip()} {{\n{body}\n  return\n}}\n}}\n"


KERNEL = """\
module {num_warps = 4} {
func @softmax(%out: ptr<f32> {divisible = 16}, %in: ptr<f32> {divisible = 16}, %n: i32) {kernel = true} {
  %row = program_id {axis = 0} : i32
  %cols = arange {start = 0, end = 100} : 100xi32
  %0 = splat %n : 100xi32
  %mask = cmp %cols, %0 {pred = "lt"} : 100xi1
  %start = mul %row, %n : i32
  %1 = addptr %in, %start : ptr<f32>
  %2 = splat %1 : 100xptr<f32>
  %3 = addptr %2, %cols : 100xptr<f32>
  %other = constant {value = -inf} : 100xf32
  %x = load %3, %mask, %other : 100xf32
  %top = reduce %x {axis = 0} : f32 (%a: f32, %b: f32) {
    %4 = max %a, %b : f32
    yield %4
  }
  %5 = splat %top : 100xf32
  %6 = sub %x, %5 : 100xf32
  %e = exp %6 : 100xf32
  %zero = constant {value = 0} : i32
  %one = constant {value = 1} : i32
  %acc = for %zero, %n, %one, %e {num_stages = 3} : 100xf32 (%i: i32, %c: 100xf32) {
    %7 = cmp %i, %row {pred = "eq"} : i1
    %8 = if %7 : 100xf32 () {
      %9 = neg %c : 100xf32
      yield %9
    } () {
      yield %c
    }
    yield %8
  }
  %last = while %row : i32 (%w: i32) {
    %10 = cmp %w, %zero {pred = "gt"} : i1
    condition %10, %w
  } (%v: i32) {
    %11 = sub %v, %one : i32
    yield %11
  }
  %12 = splat %last : 100xi32
  %13 = cast %12 : 100xf32
  %14 = add %acc, %13 : 100xf32
  %15 = splat %out : 100xptr<f32>
  %16 = addptr %15, %cols : 100xptr<f32>
  store %16, %14, %mask
  return
}

func @helper(%x: desc<8x16xf16>, %i: i32) -> 8x16xf16 {noinline = true} {
  %r = desc_load %x, %i, %i {cache = ".cg"} : 8x16xf16
  return %r
}
}
"""

"""Runs the LLVM IR of a kernel for AMD GPUs, one workgroup at a time, all work-items side by side in NumPy arrays.

It knows the instructions and intrinsics that the back end writes, and what the hardware does for them: cross-lane
moves, matrix instructions (register layouts as in the instruction set guides), shared memory, barriers. Work-items
that have gone different ways meet again because the block that comes first in the text is always run first. Accesses
to memory outside the buffers given, accesses to shared memory that race with another wave's since the last barrier,
and barriers that not all reach are errors.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import support
from emulated_values import (
    ATOMIC,
    BINARY,
    CASTS,
    COMPARE,
    FLOATS,
    INTRINSICS,
    Type,
    from_bytes,
    parse_type,
    real,
    signed,
    to_bytes,
)

FLOAT8 = {True: ("float8e4nv", "float8e5"), False: ("float8e4b8", "float8e5b16")}
SCALED = {0: "fp8", 1: "bf8", 4: "fp4"}
E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])


class EmulationError(AssertionError):
    """The kernel did what it must not do."""


def pieces(text: str) -> list[str]:
    """Split at commas that stand outside of brackets."""
    found, depth, start = [], 0, 0
    for i, c in enumerate(text):
        depth += c in "([{<"
        depth -= c in ")]}>"
        if c == "," and depth == 0:
            found.append(text[start:i].strip())
            start = i + 1
    tail = text[start:].strip()
    return [*found, tail] if tail else found


_TYPED = re.compile(r"(<\d+ x [^>]+>|ptr addrspace\(\d+\)|\{[^}]*\}|[a-z]+\d*)\s+(.*)", re.S)
_ATTRIBUTES = (
    "noundef",
    "nsw",
    "nuw",
    "inbounds",
    "exact",
    "disjoint",
    "contract",
    "nsz",
    "nnan",
    "ninf",
    "afn",
    "fast",
    "volatile",
    "nneg",
    "samesign",
    "nusw",
    "reassoc",
    "nonnull",
    "arcp",
)


def typed(text: str) -> tuple[Type, str]:
    found = _TYPED.fullmatch(text.strip())
    if not found:
        raise NotImplementedError(f"operand {text!r}")
    return parse_type(found[1]), strip_flags(found[2].strip())


def strip_flags(text: str) -> str:
    words = text.split(" ")
    while words and words[0] in _ATTRIBUTES:
        words.pop(0)
    return " ".join(words)


@dataclass
class Block:
    label: str
    phis: list[tuple[str, Type, list[tuple[str, str]]]] = field(default_factory=list)
    body: list[tuple[str, str, str]] = field(default_factory=list)  # result, opcode, rest


@dataclass
class Function:
    name: str
    result: str
    params: list[tuple[Type, str]]
    blocks: list[Block]


def parse_module(text: str) -> tuple[dict[str, Function], dict[str, str]]:
    """Functions and globals (the text after the sign of equality) by name."""
    functions: dict[str, Function] = {}
    known: dict[str, str] = {}
    current: Function | None = None
    for line in text.splitlines():
        line = re.sub(r", ![a-zA-Z.]+ !\d+|, !\w+\.[\w.]+ !\d+|\s*; preds = .*|/\*.*?\*/ ", "", line)
        if line.startswith("define"):
            head = re.match(r"define (.*?)@(\"?[\w.]+\"?)\((.*?)\)[^()]*\{", line)
            assert head, line
            params = []
            for p in pieces(head[3]):
                kind = re.match(r"<[^>]*>|ptr addrspace\(\d+\)|\w+", p)
                assert kind, p
                params.append((parse_type(kind[0]), p.rsplit(" ", 1)[1]))
            words = head[1].split()
            result = head[1].strip().split("amdgpu_kernel ")[-1].removeprefix("internal ").strip() if words else "void"
            current = functions[head[2]] = Function(head[2], result, params, [])
        elif current is not None and line.startswith("}"):
            current = None
        elif current is not None:
            _parse_line(current, line)
        elif line.startswith("@") and " = " in line:
            name, _, rest = line.partition(" = ")
            known[name] = rest
    return functions, known


def _parse_line(function: Function, line: str) -> None:
    label = re.fullmatch(r"([\w.]+):", line)
    if label:
        function.blocks.append(Block(label[1]))
        return
    line = line.strip()
    if not line or line.startswith(";"):
        return
    result, text = "", line
    assigned = re.match(r"(%[\w.]+) = (.*)", line)
    if assigned:
        result, text = assigned[1], assigned[2]
    opcode, _, rest = text.partition(" ")
    if opcode in ("tail", "musttail", "notail"):
        opcode, _, rest = rest.partition(" ")
    block = function.blocks[-1]
    if opcode == "phi":
        first = rest.index("[")
        sources = re.findall(r"\[ (.*?), %([\w.]+) \]", rest)
        block.phis.append((result, parse_type(rest[:first]), sources))
    else:
        block.body.append((result, opcode, rest))


class Memory:
    """Bytes with gaps between buffers."""

    def __init__(self, size: int, base: int) -> None:
        self.data = np.zeros(size, np.uint8)
        self.valid = np.zeros(size, bool)
        self.base, self.top = base, 256

    def add(self, content: np.ndarray) -> int:
        raw = np.frombuffer(content.tobytes(), np.uint8)
        at = self.top
        self.data[at : at + len(raw)] = raw
        self.valid[at : at + len(raw)] = True
        self.top = -(-(at + len(raw)) // 256) * 256 + 256
        assert self.top < len(self.data), "emulated memory is too small"
        return self.base + at

    def place(self, address: np.ndarray, size: int) -> np.ndarray:
        at = address.astype(np.int64)[:, None] - self.base + np.arange(size)
        if len(at) and (at.min() < 0 or at.max() >= len(self.data) or not self.valid[at].all()):
            raise EmulationError("access outside of the buffers")
        return at


class Workgroup:
    """One workgroup's state."""

    def __init__(self, machine: Emulator, group: tuple[int, int, int]) -> None:
        self.machine, self.group = machine, group
        self.threads, self.lanes = machine.threads, machine.lanes
        self.number = np.arange(self.threads)
        self.wave = self.number // self.lanes
        self.lds = np.zeros(machine.lds_bytes, np.uint8)
        self.writer = np.full(machine.lds_bytes, -1)
        self.reader = np.full(machine.lds_bytes, -1)  # -2: more than one wave
        self.copies: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []  # under way: places, waves, bytes

    # Running

    def call(self, function: Function, args: Sequence[np.ndarray], active: np.ndarray) -> Any:
        env: dict[str, Any] = {name: value for (_, name), value in zip(function.params, args, strict=True)}
        order = {block.label: i for i, block in enumerate(function.blocks)}
        at = np.where(active, 0, len(order))
        previous = np.full(self.threads, -1)
        result: Any = None
        while True:
            number = int(at.min())
            if number == len(order):
                return result
            mask = at == number
            block = function.blocks[number]
            merged = []
            for name, type, sources in block.phis:
                value = self.blank(type)
                for text, label in sources:
                    chosen = mask & (previous == order[label])
                    if chosen.any():
                        value[chosen] = self.operand(type, text, env)[chosen]
                merged.append((name, value))
            for name, value in merged:
                self.assign(env, name, value, mask)
            for name, opcode, rest in block.body:
                if opcode == "br":
                    previous[mask] = number
                    at[mask] = self.branch(rest, env, order)[mask]
                elif opcode == "ret":
                    if rest != "void":
                        type, text = typed(rest)
                        result = (
                            self.operand(type, text, env)
                            if result is None
                            else np.where(mask, self.operand(type, text, env), result)
                        )
                    at[mask] = len(order)
                    if self.copies:
                        raise EmulationError("a load to shared memory that nobody waited for")
                else:
                    value = self.step(opcode, rest, env, mask)
                    if name:
                        self.assign(env, name, value, mask)

    def assign(self, env: dict[str, Any], name: str, value: Any, mask: np.ndarray) -> None:
        if isinstance(value, np.ndarray) and name in env and not mask.all():
            wide = mask[:, None] if value.ndim > 1 else mask
            value = np.where(wide, value, env[name])
        env[name] = value

    def branch(self, rest: str, env: dict[str, Any], order: dict[str, int]) -> np.ndarray:
        labels = [order[x] for x in re.findall(r"label %([\w.]+)", rest)]
        if len(labels) == 1:
            return np.full(self.threads, labels[0])
        condition = self.operand(Type("i1"), rest.split(",")[0].removeprefix("i1 "), env)
        return np.where(condition, labels[0], labels[1])

    # Operands

    def blank(self, type: Type) -> np.ndarray:
        return np.zeros((self.threads, type.count) if type.count else self.threads, type.dtype)

    def operand(self, type: Type, text: str, env: dict[str, Any]) -> np.ndarray:
        if text.startswith("%"):
            return env[text]
        constant = self.machine.constant(type, text)
        return np.broadcast_to(constant, (self.threads, *constant.shape))

    def typed(self, text: str, env: dict[str, Any]) -> tuple[Type, np.ndarray]:
        type, name = typed(text)
        return type, self.operand(type, name, env)

    # Instructions

    def step(self, opcode: str, rest: str, env: dict[str, Any], mask: np.ndarray) -> Any:
        rest = strip_flags(rest)
        if opcode in BINARY:
            left, right = pieces(rest)
            type, a = self.typed(left, env)
            return BINARY[opcode](type, a, self.operand(type, right, env))
        if opcode in CASTS:
            source, _, target = rest.rpartition(" to ")
            type, a = self.typed(source, env)
            return CASTS[opcode](type, a, parse_type(target))
        return getattr(self, "_" + opcode)(rest, env, mask)

    def _fneg(self, rest: str, env: dict[str, Any], mask: np.ndarray) -> np.ndarray:
        return -self.typed(rest, env)[1]

    def _icmp(self, rest: str, env: dict[str, Any], mask: np.ndarray) -> np.ndarray:
        predicate, _, rest = strip_flags(rest).partition(" ")
        left, right = pieces(rest)
        type, a = self.typed(left, env)
        b = self.operand(type, right, env)
        if predicate[0] == "s":
            a, b = signed(a), signed(b)
        return COMPARE[predicate.lstrip("su") if predicate not in ("eq", "ne") else predicate](a, b)

    def _fcmp(self, rest: str, env: dict[str, Any], mask: np.ndarray) -> np.ndarray:
        words = [w for w in rest.split(" ") if w not in _ATTRIBUTES]
        predicate, rest = words[0], " ".join(words[1:])
        left, right = pieces(rest)
        type, a = self.typed(left, env)
        a, b = real(type, a), real(type, self.operand(type, right, env))
        unordered = np.isnan(a) | np.isnan(b)
        if predicate in ("ord", "uno"):
            return unordered if predicate == "uno" else ~unordered
        found = COMPARE[predicate[1:]](a, b)
        return found | unordered if predicate[0] == "u" else found & ~unordered

    def _select(self, rest: str, env: dict[str, Any], mask: np.ndarray) -> np.ndarray:
        c, x, y = (self.typed(p, env)[1] for p in pieces(rest))
        return np.where(c[:, None] if x.ndim > c.ndim else c, x, y)

    def _insertelement(self, rest: str, env: dict[str, Any], mask: np.ndarray) -> np.ndarray:
        vector, value, index = pieces(rest)
        result = self.typed(vector, env)[1].copy()
        result[:, int(index.split()[-1])] = self.typed(value, env)[1]
        return result

    def _extractelement(self, rest: str, env: dict[str, Any], mask: np.ndarray) -> np.ndarray:
        vector, index = pieces(rest)
        at = self.typed(index, env)[1].astype(np.int64)
        return self.typed(vector, env)[1][self.number, at]

    def _shufflevector(self, rest: str, env: dict[str, Any], mask: np.ndarray) -> np.ndarray:
        a, b, order = (self.typed(p, env)[1] for p in pieces(rest))
        return np.concatenate([a, b], axis=1)[:, order[0]]

    def _freeze(self, rest: str, env: dict[str, Any], mask: np.ndarray) -> np.ndarray:
        return self.typed(rest, env)[1]

    def _extractvalue(self, rest: str, env: dict[str, Any], mask: np.ndarray) -> np.ndarray:
        aggregate, index = pieces(rest)
        return env[aggregate.split()[-1]][int(index)]

    def _getelementptr(self, rest: str, env: dict[str, Any], mask: np.ndarray) -> np.ndarray:
        element, pointer, *indices = pieces(rest)
        type, base = self.typed(pointer, env)
        array = re.fullmatch(r"\[(\d+) x (.*)\]", element)
        size = parse_type(array[2] if array else element).bytes
        if array and len(indices) == 1:
            size *= int(array[1])
        index = self.typed(indices[-1], env)[1]
        offset = signed(index).astype(np.int64) * size
        return (base.astype(np.int64) + offset).astype(type.dtype)

    def _load(self, rest: str, env: dict[str, Any], mask: np.ndarray) -> np.ndarray:
        kind, pointer = pieces(rest)[:2]
        type = parse_type(kind)
        space, address = self.typed(pointer, env)
        self.check_alignment(rest, address[mask])
        result = self.blank(type)
        if space.base == "lds":
            at = self.lds_place(address[mask], type.bytes)
            self.note_read(at, self.wave[mask])
            raw = self.lds[at]
        else:
            raw = self.machine.memory.data[self.machine.memory.place(address[mask], type.bytes)]
        result[mask] = from_bytes(raw, type)
        return result

    def _store(self, rest: str, env: dict[str, Any], mask: np.ndarray) -> None:
        value, pointer = pieces(rest)[:2]
        type, data = self.typed(value, env)
        space, address = self.typed(pointer, env)
        self.check_alignment(rest, address[mask])
        raw = to_bytes(data[mask], type)
        if space.base == "lds":
            at = self.lds_place(address[mask], type.bytes)
            self.note_write(at, self.wave[mask], raw)
            self.lds[at] = raw
        else:
            self.machine.memory.data[self.machine.memory.place(address[mask], type.bytes)] = raw

    def check_alignment(self, rest: str, address: np.ndarray) -> None:
        align = re.search(r"align (\d+)", rest)
        if align and (address % np.uint64(int(align[1]))).any():
            raise EmulationError(f"misaligned access: {rest}")

    def lds_place(self, address: np.ndarray, size: int) -> np.ndarray:
        at = address.astype(np.int64)[:, None] + np.arange(size)
        if len(at) and (at.min() < 0 or at.max() >= len(self.lds)):
            raise EmulationError("access outside of shared memory")
        return at

    def copy(self, args: list[np.ndarray], mask: np.ndarray) -> None:
        """A load to shared memory: the lanes of a wave write side by side. It ends when the program waits for it; that
        other waves may still read what lies there, or that somebody reads it before, is an error."""
        source, target, size = args[0], args[1].astype(np.int64), int(args[2][0])
        lane = self.number % self.lanes
        if not mask.all() or (target != target[self.number - lane]).any():
            raise EmulationError("a load to shared memory by a part of a wave, or to places that differ in a wave")
        at = self.lds_place((target + lane * size).astype(np.uint64), size)
        raw = self.machine.memory.data[self.machine.memory.place(source, size)]
        readers = self.reader[at]
        if ((readers != -1) & (readers != self.wave[:, None])).any():
            raise EmulationError("a load to shared memory that another wave may still read")
        self.copies.append((at, self.wave, raw))

    def wait(self, left: int) -> None:
        while len(self.copies) > left:
            at, wave, raw = self.copies.pop(0)
            self.note_write(at, wave, raw)
            self.lds[at] = raw

    def note_read(self, at: np.ndarray, wave: np.ndarray) -> None:
        if any(np.isin(at, places).any() for places, _, _ in self.copies):
            raise EmulationError("shared memory is read while a load to it is under way")
        owner = self.writer[at]
        if ((owner != -1) & (owner != wave[:, None])).any():
            raise EmulationError("shared memory is read without a barrier after another wave wrote it")
        seen = self.reader[at]
        self.reader[at] = np.where((seen == -1) | (seen == wave[:, None]), wave[:, None], -2)

    def note_write(self, at: np.ndarray, wave: np.ndarray, raw: np.ndarray) -> None:
        readers = self.reader[at]
        if ((readers != -1) & (readers != wave[:, None]) & (self.lds[at] != raw)).any():
            raise EmulationError("shared memory is written without a barrier after another wave read it")
        owner = self.writer[at]
        if ((owner != -1) & (owner != wave[:, None]) & (self.lds[at] != raw)).any():
            raise EmulationError("two waves write different values to shared memory without a barrier")
        self.writer[at] = wave[:, None]

    def _fence(self, rest: str, env: dict[str, Any], mask: np.ndarray) -> None:
        return None

    def _atomicrmw(self, rest: str, env: dict[str, Any], mask: np.ndarray) -> np.ndarray:
        name, _, rest = rest.partition(" ")
        pointer, value = pieces(rest)[:2]
        space, address = self.typed(pointer, env)
        value = re.sub(r" (syncscope.*|monotonic|acquire|release|acq_rel|seq_cst).*", "", value)
        type, given = self.typed(value, env)
        old = self.blank(type)
        for i in np.flatnonzero(mask):
            read, write = self.cell(space, address[i : i + 1], type)
            old[i] = read()
            write(ATOMIC[name](type, old[i : i + 1], given[i : i + 1]))
        return old

    def _cmpxchg(self, rest: str, env: dict[str, Any], mask: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        pointer, expected, new = pieces(rest)[:3]
        space, address = self.typed(pointer, env)
        new = re.sub(r" (syncscope.*|monotonic|acquire|release|acq_rel|seq_cst).*", "", new)
        type, want = self.typed(expected, env)
        value = self.typed(new, env)[1]
        old = self.blank(type)
        for i in np.flatnonzero(mask):
            read, write = self.cell(space, address[i : i + 1], type)
            old[i] = read()
            if old[i] == want[i]:
                write(value[i : i + 1])
        return old, old == want

    def cell(
        self, space: Type, address: np.ndarray, type: Type
    ) -> tuple[Callable[[], Any], Callable[[np.ndarray], None]]:
        data = self.lds if space.base == "lds" else self.machine.memory.data
        at = (
            self.lds_place(address, type.bytes)
            if space.base == "lds"
            else self.machine.memory.place(address, type.bytes)
        )

        def write(value: np.ndarray) -> None:
            data[at] = to_bytes(np.asarray(value, type.dtype).reshape(1), type)

        return lambda: from_bytes(data[at], type)[0], write

    # Calls

    def _call(self, rest: str, env: dict[str, Any], mask: np.ndarray) -> Any:
        rest = re.sub(r"^(range\([^)]*\)|noundef|nonnull) ", "", rest)
        found = re.fullmatch(r"(.*?)@(\"?[\w.]+\"?)\((.*)\)[^()]*", rest, re.S)
        if not found:
            raise NotImplementedError(f"call {rest}")
        name = found[2]
        args = [self.typed(p, env) for p in pieces(found[3])]
        function = self.machine.functions.get(name)
        if function is not None:
            return self.call(function, [a for _, a in args], mask)
        values = [a for _, a in args]
        types = [t for t, _ in args]
        if name.startswith("llvm.amdgcn."):
            return self.target(name.removeprefix("llvm.amdgcn."), types, values, mask)
        base = name.removeprefix("llvm.").split(".")[0]
        if base not in INTRINSICS:
            raise NotImplementedError(name)
        return INTRINSICS[base](types[0], *values)

    def target(self, name: str, types: list[Type], args: list[np.ndarray], mask: np.ndarray) -> Any:
        every = self.threads
        if name == "workitem.id.x":
            return self.number.astype(np.uint32)
        if name.startswith("workgroup.id."):
            return np.full(every, self.group["xyz".index(name[-1])], np.uint32)
        if name == "implicitarg.ptr":
            return np.full(every, self.machine.hidden, np.uint64)
        if name == "s.barrier":
            if not mask.all():
                raise EmulationError("a barrier that not all work-items reach")
            self.writer[:], self.reader[:] = -1, -1
            return None
        if name == "global.load.lds":
            return self.copy(args, mask)
        if name == "s.waitcnt":
            return self.wait(int(args[0][0]) & 15 | (int(args[0][0]) >> 14 & 3) << 4)
        if name == "readfirstlane.p3":
            assert mask.all(), "the first lane is the lowest one that is active"
            return args[0][self.number - self.number % self.lanes]
        if name == "rsq.f32":
            return np.where(np.abs(args[0]) < 2.0**-126, np.copysign(np.inf, args[0]), 1 / np.sqrt(args[0])).astype(
                np.float32
            )
        if name in ("mbcnt.lo", "mbcnt.hi"):
            lane = self.number % self.lanes
            low = np.minimum(lane, 32) if name == "mbcnt.lo" else np.maximum(lane - 32, 0)
            return (args[1] + low).astype(np.uint32)
        if name.startswith("raw.buffer."):
            return self.buffer(name, types, args, mask)
        lane, first = self.number % self.lanes, self.number - self.number % self.lanes
        if name == "ds.bpermute":
            return self.moved(args[1], first + (args[0] >> np.uint32(2)) % np.uint32(self.lanes), mask)
        if name == "ds.swizzle":
            pattern = int(args[1][0])
            assert pattern >> 15 == 0
            inside = (lane & 31 & pattern & 31 | pattern >> 5 & 31) ^ (pattern >> 10 & 31)
            return self.moved(args[0], first + (lane & ~31) + inside, mask)
        if name == "permlanex16.i32":
            select = int(args[2][0]) | int(args[3][0]) << 32
            other = np.array([select >> 4 * i & 15 for i in range(16)])[lane % 16]
            return self.moved(args[1], first + (lane // 16 ^ 1) * 16 + other, mask)
        if name == "update.dpp.i32":
            return self.moved(args[1], first + dpp_source(int(args[2][0]), lane, self.lanes), mask)
        if name in ("fdot2", "sdot4", "udot4"):
            return neighbours(name, args)
        if name.startswith(("wmma", "mfma")):
            if not mask.all():
                raise EmulationError("a matrix instruction that not all lanes execute")
            waves = [slice(w, w + self.lanes) for w in range(0, every, self.lanes)]
            return np.concatenate([self.machine.matrix(name, types, [a[w] for a in args]) for w in waves])
        raise NotImplementedError(name)

    def buffer(self, name: str, types: list[Type], args: list[np.ndarray], mask: np.ndarray) -> Any:
        """Accesses out of a buffer's bounds give 0 or do nothing."""
        is_store = ".store." in name
        suffix = name.rsplit(".", 1)[1]
        vector = re.fullmatch(r"v(\d+)(i32)", suffix)
        type = Type(vector[2], int(vector[1])) if vector else Type(suffix)
        data, (words, offset, more) = (args[0], args[1:4]) if is_store else (None, args[:3])
        if len(np.unique(words[mask], axis=0)) > 1:
            raise EmulationError("a buffer descriptor that is not the same in all lanes")
        wanted = 0x00020000 if self.lanes == 64 else 0x31014000 if self.machine.arch < "gfx11" else 0x31004000
        assert (words[:, 3] == wanted).all(), "last word of the buffer descriptor"
        base = words[:, 0].astype(np.uint64) | (words[:, 1] & 0xFFFF).astype(np.uint64) << np.uint64(32)
        inside = mask & (offset.astype(np.int64) + type.bytes <= words[:, 2].astype(np.int64))
        at = self.machine.memory.place((base + offset + more)[inside], type.bytes)
        if data is not None:
            self.machine.memory.data[at] = to_bytes(data[inside], type)
            return None
        result = self.blank(type)
        result[inside] = from_bytes(self.machine.memory.data[at], type)
        return result

    def moved(self, value: np.ndarray, source: np.ndarray, mask: np.ndarray) -> np.ndarray:
        source = source.astype(np.int64)
        if not mask[source[mask]].all():
            raise EmulationError("a cross-lane move from a lane that is not active")
        return value[source]


def neighbours(name: str, args: list[np.ndarray]) -> np.ndarray:
    """The sum of products of two halves or four bytes, added to the third operand."""
    a, b, acc = args[:3]
    if name == "fdot2":
        total = (a.astype(np.float64) * b.astype(np.float64)).sum(axis=1)
        return (total + acc.astype(np.float64)).astype(np.float32)
    kind = np.int8 if name == "sdot4" else np.uint8
    x, y = (np.ascontiguousarray(v).view(kind).reshape(len(v), 4).astype(np.int64) for v in (a, b))
    return ((x * y).sum(axis=1) + acc.astype(np.int64) & 0xFFFFFFFF).astype(np.uint32)


def dpp_source(control: int, lane: np.ndarray, lanes: int) -> np.ndarray:
    """The lane that each lane reads (RDNA and CDNA guides, "DPP_CTRL")."""
    if control < 0x100:
        order = np.array([control >> 2 * i & 3 for i in range(4)])
        return (lane & ~3) + order[lane & 3]
    if control == 0x140:
        return lane ^ 15
    if control == 0x141:
        return lane ^ 7
    if 0x160 <= control < 0x170 and lanes == 32:
        return lane ^ control - 0x160
    raise NotImplementedError(f"DPP control {control:#x} for waves of {lanes}")


class Emulator:
    """A kernel's text made ready to run."""

    def __init__(self, text: str, arch: str, lanes: int, threads: int) -> None:
        self.functions, globals_ = parse_module(text)
        self.arch, self.lanes, self.threads = arch, lanes, threads
        self.memory = Memory(1 << 22, 0x7F0000000000)
        self.hidden = 0
        self.lds_bytes = 0
        self.addresses: dict[str, int] = {}
        self.constants: dict[tuple[Type, str], np.ndarray] = {}
        for name, body in globals_.items():
            shared = re.search(r"addrspace\(3\) global \[(\d+) x i8\]", body)
            if shared:
                self.lds_bytes, self.addresses[name] = int(shared[1]), 0
                continue
            array = re.search(r"constant \[(\d+) x (\w+)\] (.*?)(, align \d+)?$", body)
            assert array, body
            element = parse_type(array[2])
            values = (
                []
                if array[3] == "zeroinitializer"
                else [self.constant(element, p.split()[-1]) for p in pieces(array[3][1:-1])]
            )
            content = np.array(values, element.dtype) if values else np.zeros(int(array[1]), element.dtype)
            self.addresses[name] = self.memory.add(content)

    def constant(self, type: Type, text: str) -> np.ndarray:
        key = (type, text)
        if key not in self.constants:
            self.constants[key] = self._constant(type, text)
        return self.constants[key]

    def _constant(self, type: Type, text: str) -> np.ndarray:
        if text in ("zeroinitializer", "poison", "undef", "null"):
            return np.zeros((type.count,) if type.count else (), type.dtype)
        if type.count:
            splat = re.fullmatch(r"splat \((.*)\)", text)
            parts = [splat[1]] * type.count if splat else pieces(text[1:-1])
            return np.array([self.constant(Type(type.base), p.split()[-1]) for p in parts], type.dtype)
        moved = re.fullmatch(r"getelementptr [a-z ]*\(i8, ptr addrspace\(\d\) (@[\w.]+), i\d+ (\d+)\)", text)
        if moved:
            return np.array(self.addresses[moved[1]] + int(moved[2]), type.dtype)
        if text.startswith("@"):
            return np.array(self.addresses[text], type.dtype)
        if text in ("true", "false"):
            return np.array(text == "true")
        if text.startswith(("0xR", "0xH")):
            bits = np.array(int(text[3:], 16), np.uint16)
            return bits if type.base == "bfloat" else bits.view(np.float16)
        if text.startswith("f0x"):
            return np.array(int(text[3:], 16), f"uint{type.bits}").view(type.dtype)
        if text.startswith("0x"):
            return np.array(int(text[2:], 16), np.uint64).view(np.float64).astype(type.dtype)
        if type.base == "bfloat":
            return (np.array(float(text.replace("qnan", "nan")), np.float32).view(np.uint32) >> 16).astype(np.uint16)
        if type.base in FLOATS:
            return np.array(float(text.replace("qnan", "nan")), type.dtype)
        return np.array(int(text) & (1 << type.bits) - 1, type.dtype)

    def run(
        self, kernel: str, args: Sequence[np.ndarray | tuple[Type, Any]], grid: tuple[int, int, int]
    ) -> list[np.ndarray]:
        """Runs the whole grid; arrays are copied in and returned as they are after it."""
        counts = np.array([*grid, *[0] * 61], np.uint32)
        self.hidden = self.memory.add(counts)
        places = [self.memory.add(a) if isinstance(a, np.ndarray) else None for a in args]
        function = self.functions[kernel]
        values = []
        for place, given, (type, _) in zip(places, args, function.params, strict=True):
            content = place if place is not None else given  # type: ignore[assignment]
            if type.base[0] == "i":
                content = int(content) & (1 << type.bits) - 1  # type: ignore[call-overload]
            values.append(np.full(self.threads, content, type.dtype))
        with np.errstate(all="ignore"):
            for z in range(grid[2]):
                for y in range(grid[1]):
                    for x in range(grid[0]):
                        Workgroup(self, (x, y, z)).call(function, values, np.ones(self.threads, bool))
        after = []
        for place, given in zip(places, args, strict=True):
            if place is not None and isinstance(given, np.ndarray):
                at = place - self.memory.base
                after.append(np.frombuffer(self.memory.data[at : at + given.nbytes].tobytes(), given.dtype))
        return after

    # Matrix instructions, one wave at a time

    def matrix(self, name: str, types: list[Type], args: list[np.ndarray]) -> np.ndarray:
        """D = A B + C for one wave: A is 16 x K, B is K x 16. Register layouts: see each line."""
        signs = (True, True)
        if ".iu8" in name:
            signs = (bool(args[0][0]), bool(args[2][0]))
            types, args = [types[1], types[3], types[4]], [args[1], args[3], args[4]]
        shape = re.search(r"(16|32)x\1x(\d+)", name)
        assert shape, name
        side, depth = int(shape[1]), int(shape[2])
        fields = name.split(".")
        scales: list[np.ndarray | None] = [None, None]
        if "f8f6f4" in name:
            kinds = [SCALED[int(args[i][0])] for i in (3, 4)]
            assert not args[5].any() and not args[7].any(), "only the lowest byte of a scale is used"
            scales = [args[6], args[8]] if args[6].any() or args[8].any() else scales  # no scales: zeros
        else:
            kinds = fields[3:5] if "fp8" in name or "bf8" in name else ["", ""]
        a, b = (self.lane_values(t, v, s, k) for t, v, s, k in zip(types, args, signs, kinds, strict=False))
        c = args[2].astype(np.float64) if types[2].base != "i32" else args[2].astype(np.int64)
        lane = np.arange(self.lanes)
        if fields[0] == "wmma" and self.arch.startswith("gfx11"):
            if not (np.array_equal(a[:16], a[16:], equal_nan=True) and np.array_equal(b[:16], b[16:], equal_nan=True)):
                raise EmulationError(
                    "RDNA 3 wants the operands of a matrix instruction twice, in both halves of the wave"
                )
            full_a, full_b = a[:16], b[:16]  # lane l holds row or column l, all 16 k
            row = lambda i: 2 * i + lane // 16  # noqa: E731
        else:
            full_a, full_b = (
                self.scaled(self.rows_of(v, side, depth, kind), scale)
                for v, kind, scale in zip((a, b), kinds, scales, strict=True)
            )
            if fields[0] == "wmma":
                row = lambda i: i + 8 * (lane // 16)  # noqa: E731
            elif side == 32:
                row = lambda i: 8 * (i // 4) + 4 * (lane // 32) + i % 4  # noqa: E731
            elif types[2].base == "double":
                row = lambda i: 4 * i + lane // 16  # noqa: E731
            else:
                row = lambda i: 4 * (lane // 16) + i  # noqa: E731
        product = full_a @ full_b.T
        result = np.empty_like(c)
        for i in range(c.shape[1]):
            result[:, i] = product[row(i), lane % side] + c[:, i]
        if types[2].base == "i32":
            return (result & 0xFFFFFFFF).astype(np.uint32)
        return result.astype(types[2].dtype)

    def rows_of(self, values: np.ndarray, side: int, depth: int, kind: str) -> np.ndarray:
        """An operand by rows: lane l holds row l % side, and of K the run h = l / side; of the 8-bit floats that CDNA 4
        takes 32 at a time, the h-th 16 of either half of K."""
        groups, run = self.lanes // side, values.shape[1]
        assert groups * run == depth
        halves = 2 if run == 32 and kind != "fp4" else 1
        split = values.reshape(groups, side, halves, run // halves)
        return split.transpose(1, 2, 0, 3).reshape(side, depth)

    def scaled(self, rows: np.ndarray, scale: np.ndarray | None) -> np.ndarray:
        """Lane l gives the scale of row l % side and of the (l / side)-th 32 of K."""
        if scale is None:
            return rows
        codes = (scale & 255).astype(np.int64).reshape(-1, len(rows)).T
        factors = np.where(codes == 255, np.nan, np.ldexp(1.0, codes - 127))
        return rows * np.repeat(factors, 32, axis=1)

    def lane_values(self, type: Type, raw: np.ndarray, signed_bytes: bool, kind: str) -> np.ndarray:
        """What a lane's registers hold, as numbers: one column for each k."""
        if type.base in ("half", "float", "double"):
            return raw.astype(np.float64).reshape(len(raw), -1)
        if type.base in ("i16", "bfloat"):
            return (raw.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
        data = np.ascontiguousarray(raw).view(np.uint8).reshape(len(raw), -1)
        if kind == "fp4":
            return E2M1[np.stack([data & 15, data >> 4], axis=2).reshape(len(data), -1)]
        if kind:
            ocp = not self.arch.startswith("gfx94")
            return support.FLOAT8_VALUES[FLOAT8[ocp][kind == "bf8"]][data]
        return (data.view(np.int8) if signed_bytes else data).astype(np.int64)

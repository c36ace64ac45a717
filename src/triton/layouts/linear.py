"""Linear layouts: which thread holds which element of a tile.

A layout is a linear map over GF(2) from the bits of (register, lane, warp, block) to the bits of a tile coordinate.
Sizes that are not powers of two are padded up; a coordinate is one integer, the row-major index in the padded shape, so
that

    coordinate(register, lane, ...) = XOR of the basis vectors of the bits that are set.

A zero basis vector means that both values of that bit hold the same element (a replica). Every layout here is
surjective: each element is held somewhere. The algebra (products, slices, inverses, conversion planning) needs nothing
else, which is why no case of reshape, transpose, reduction or conversion is special.

Example: a 4x8 tile over 8 lanes with 2 consecutive elements in each of 4 registers:

    register [1, 16]   lane [2, 4, 8]   ->  lane 3, register 2 holds 16 ^ 2 ^ 4 = 22 = row 2, column 6
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

INPUTS = ("register", "lane", "warp", "block")


def padded(shape: Sequence[int]) -> tuple[int, ...]:
    """The shape with every size rounded up to a power of two."""
    return tuple(1 << (n - 1).bit_length() for n in shape)


def bit_counts(shape: Sequence[int]) -> tuple[int, ...]:
    """log2 of each padded size."""
    return tuple((n - 1).bit_length() for n in shape)


def _bits(value: int) -> Iterable[int]:
    while value:
        low = value & -value
        yield low.bit_length() - 1
        value ^= low


def _moved(vectors: Iterable[int], place: Mapping[int, int]) -> tuple[int, ...]:
    """The vectors with bit i at ``place[i]``."""
    return tuple(sum(1 << place[bit] for bit in _bits(vector)) for vector in vectors)


@dataclass(frozen=True)
class LinearLayout:
    """``bases[input]`` is the tuple of basis vectors of that input's bits, lowest bit first; ``shape`` is the tile's
    real shape."""

    shape: tuple[int, ...]
    register: tuple[int, ...] = ()
    lane: tuple[int, ...] = ()
    warp: tuple[int, ...] = ()
    block: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if any(v >> self.total_bits for v in self.vectors):
            raise ValueError(f"layout leaves the tile {'x'.join(map(str, self.shape))}: {self}")
        if rank_of(self.vectors) != self.total_bits:
            raise ValueError(f"layout does not reach every element of {'x'.join(map(str, self.shape))}: {self}")

    def __str__(self) -> str:
        parts = (f"{name} {list(getattr(self, name))}" for name in INPUTS if getattr(self, name))
        return f"<{'x'.join(map(str, self.shape))}: {', '.join(parts)}>"

    @cached_property
    def vectors(self) -> tuple[int, ...]:
        """All basis vectors: registers, lanes, warps, blocks."""
        return self.register + self.lane + self.warp + self.block

    @cached_property
    def outer(self) -> tuple[int, ...]:
        """The vectors of the bits of a warp's number in the whole cluster of blocks: warps, then blocks."""
        return self.warp + self.block

    @cached_property
    def total_bits(self) -> int:
        return sum(bit_counts(self.shape))

    @property
    def registers(self) -> int:
        """Registers (elements) a thread holds."""
        return 1 << len(self.register)

    @property
    def lanes(self) -> int:
        return 1 << len(self.lane)

    @property
    def warps(self) -> int:
        return 1 << len(self.warp)

    def __call__(self, register: int = 0, lane: int = 0, warp: int = 0, block: int = 0) -> int:
        """The padded row-major index of the element held there."""
        result = 0
        for basis, value in zip(
            (self.register, self.lane, self.warp, self.block), (register, lane, warp, block), strict=True
        ):
            for bit in _bits(value):
                result ^= basis[bit]
        return result

    def coordinates(self, flat: int) -> tuple[int, ...]:
        """A padded row-major index as one coordinate per axis."""
        return split_index(flat, self.shape)

    def in_range(self, flat: int) -> bool:
        """Whether the element exists in the real shape, or is padding."""
        return all(c < n for c, n in zip(self.coordinates(flat), self.shape, strict=True))

    # Products and slices ------------------------------------------------------------------------------------------

    def with_shape(self, shape: tuple[int, ...], move: Sequence[int]) -> LinearLayout:
        """The layout of a tile whose index bit ``move[i]`` is this one's bit i (-1: the bit is dropped).

        Zero vectors that appear are kept for lanes, warps and blocks (replicas) and dropped for registers.
        """

        def moved(vector: int) -> int:
            result = 0
            for bit in _bits(vector):
                if move[bit] >= 0:
                    result |= 1 << move[bit]
            return result

        register = tuple(v for v in map(moved, self.register) if v)
        others = [tuple(map(moved, getattr(self, name))) for name in INPUTS[1:]]
        return LinearLayout(shape, independent(register), *others)

    def permuted(self, order: Sequence[int]) -> LinearLayout:
        """The same placement of the transposed tile: axis i of the result is axis order[i] of this one."""
        shape = tuple(self.shape[i] for i in order)
        old, new = bit_positions(self.shape), bit_positions(shape)
        move = [0] * self.total_bits
        for axis, source in enumerate(order):
            for a, b in zip(old[source], new[axis], strict=True):
                move[a] = b
        return self.with_shape(shape, move)

    def reshaped(self, shape: tuple[int, ...]) -> LinearLayout:
        """The same placement under another shape. Both shapes must be powers of two (else elements would move)."""
        if padded(shape) != shape or padded(self.shape) != self.shape:
            raise ValueError(f"cannot reshape {self.shape} to {shape} in place: sizes are not powers of two")
        return LinearLayout(shape, self.register, self.lane, self.warp, self.block)

    def without_axis(self, axis: int) -> LinearLayout:
        """The slice that remains when ``axis`` is reduced or was broadcast: its bits are dropped."""
        shape = self.shape[:axis] + self.shape[axis + 1 :]
        old, new = bit_positions(self.shape), bit_positions(shape)
        move = [-1] * self.total_bits
        for source, target in zip(old[:axis] + old[axis + 1 :], new, strict=True):
            for a, b in zip(source, target, strict=True):
                move[a] = b
        return self.with_shape(shape, move)

    def with_axis(self, axis: int) -> LinearLayout:
        """The same placement with an axis of size 1 put in at ``axis``."""
        shape = (*self.shape[:axis], 1, *self.shape[axis:])
        return LinearLayout(shape, self.register, self.lane, self.warp, self.block)

    def narrowed(self, axis: int) -> LinearLayout:
        """The layout that an operand of size 1 along ``axis`` has when it is broadcast to this one without moving
        data."""
        return self.without_axis(axis).with_axis(axis)

    # Clusters -----------------------------------------------------------------------------------------------------

    def across(self, shape: tuple[int, ...], block: Sequence[int]) -> LinearLayout:
        """The layout of a tile of ``shape`` of which each block holds a part in this layout: a part's index bits are
        the low ones of each axis, ``block`` are the vectors that tell the parts apart."""
        place: dict[int, int] = {}
        for old, new in zip(bit_positions(self.shape), bit_positions(shape), strict=True):
            place.update(zip(old, new, strict=False))
        register, lane, warp = (_moved(getattr(self, name), place) for name in INPUTS[:3])
        return LinearLayout(shape, register, lane, warp, tuple(block))

    def within_block(self) -> LinearLayout | None:
        """The layout of the part of the tile that one block holds; None when the parts are not told apart by some bits
        of the index alone."""
        dealt = 0
        for vector in self.block:
            if vector & vector - 1 or vector & dealt:
                return None
            dealt |= vector
        if any(vector & dealt for vector in self.register + self.lane + self.warp):
            return None
        kept = [bit for bit in range(self.total_bits) if not dealt >> bit & 1]
        place = {bit: i for i, bit in enumerate(kept)}
        parts = (_moved(getattr(self, name), place) for name in INPUTS[:3])
        return LinearLayout(part_shape(self.shape, self.block), *parts)

    # Facts --------------------------------------------------------------------------------------------------------

    def axis_vectors(self, axis: int, name: str) -> tuple[int, ...]:
        """The part of each basis vector of ``name`` along one axis, as coordinates of that axis."""
        bits = bit_positions(self.shape)[axis]
        low = bits[0] if bits else 0
        mask = (1 << len(bits)) - 1
        return tuple(v >> low & mask for v in getattr(self, name))

    @cached_property
    def free_mask(self) -> dict[str, int]:
        """For each input, the bits whose basis vector is zero: threads that differ only there hold replicas."""
        names = (*INPUTS, "outer")
        return {name: sum(1 << i for i, v in enumerate(getattr(self, name)) if v == 0) for name in names}

    def consecutive(self) -> int:
        """How many consecutive elements of the last axis lie in consecutive registers (a power of two)."""
        limit = bit_counts(self.shape)[-1] if self.shape else 0
        n = 0
        while n < min(limit, len(self.register)) and self.register[n] == 1 << n:
            n += 1
        return 1 << n


def permuted_vectors(vectors: Iterable[int], shape: Sequence[int], order: Sequence[int]) -> tuple[int, ...]:
    """Vectors of the transposed tile of ``shape``, whose axis i is axis ``order[i]``, as vectors of the tile itself."""
    source = [1] * len(shape)
    for axis, size in zip(order, shape, strict=True):
        source[axis] = size
    place: dict[int, int] = {}
    for bits, axis in zip(bit_positions(shape), order, strict=True):
        place.update(zip(bits, bit_positions(source)[axis], strict=True))
    return _moved(vectors, place)


def part_shape(shape: Sequence[int], block: Iterable[int]) -> tuple[int, ...]:
    """The shape of what is left of a tile when the index bits in ``block`` (unit vectors, or 0) are taken."""
    taken = sum(block)
    sizes = []
    for bits, size in zip(bit_positions(shape), shape, strict=True):
        left = sum(1 for bit in bits if not taken >> bit & 1)
        sizes.append(size if left == len(bits) else 1 << left)
    return tuple(sizes)


def split_index(flat: int, shape: Sequence[int]) -> tuple[int, ...]:
    """A padded row-major index as coordinates."""
    result = []
    for bits in reversed(bit_counts(shape)):
        result.append(flat & (1 << bits) - 1)
        flat >>= bits
    return tuple(reversed(result))


def join_index(coordinates: Sequence[int], shape: Sequence[int]) -> int:
    """Coordinates as a padded row-major index."""
    flat = 0
    for c, bits in zip(coordinates, bit_counts(shape), strict=True):
        flat = flat << bits | c
    return flat


def bit_positions(shape: Sequence[int]) -> list[range]:
    """For each axis the positions of its bits in the padded row-major index."""
    result: list[range] = []
    at = 0
    for bits in reversed(bit_counts(shape)):
        result.append(range(at, at + bits))
        at += bits
    return result[::-1]


# Linear algebra over GF(2): a vector is an int ------------------------------------------------------------------------


def rank_of(vectors: Iterable[int]) -> int:
    """The dimension of the span."""
    return len(_echelon(vectors))


def _echelon(vectors: Iterable[int]) -> dict[int, int]:
    """Reduced rows keyed by their leading bit."""
    rows: dict[int, int] = {}
    for v in vectors:
        while v:
            lead = v.bit_length() - 1
            if lead not in rows:
                rows[lead] = v
                break
            v ^= rows[lead]
    return rows


def independent(vectors: Iterable[int]) -> tuple[int, ...]:
    """The vectors that are not sums of earlier ones, in order."""
    rows: dict[int, int] = {}
    kept: list[int] = []
    for original in vectors:
        v = original
        while v:
            lead = v.bit_length() - 1
            if lead not in rows:
                rows[lead] = v
                kept.append(original)
                break
            v ^= rows[lead]
    return tuple(kept)


def complement(vectors: Iterable[int], bits: int) -> tuple[int, ...]:
    """Unit vectors that complete the span of ``vectors`` to all of ``bits`` dimensions, lowest first."""
    rows = _echelon(vectors)
    result: list[int] = []
    for bit in range(bits):
        v = 1 << bit
        while v:
            lead = v.bit_length() - 1
            if lead not in rows:
                rows[lead] = v
                result.append(1 << bit)
                break
            v ^= rows[lead]
    return tuple(result)


def solve(vectors: Sequence[int], target: int) -> int | None:
    """A combination (bit i set: vector i takes part) whose XOR is ``target``; None when there is none. Prefers few, low
    bits."""
    rows: dict[int, tuple[int, int]] = {}
    for i, v in enumerate(vectors):
        combination = 1 << i
        while v:
            lead = v.bit_length() - 1
            if lead not in rows:
                rows[lead] = v, combination
                break
            v, combination = v ^ rows[lead][0], combination ^ rows[lead][1]
    result = 0
    while target:
        lead = target.bit_length() - 1
        if lead not in rows:
            return None
        target ^= rows[lead][0]
        result ^= rows[lead][1]
    return result


# Construction ---------------------------------------------------------------------------------------------------------


def deal_blocks(shape: tuple[int, ...], blocks: int, axes: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Shares a tile out to the blocks of a cluster: the shape of a block's part, and the vectors of the bits of a
    block's number. Each block gets a contiguous part of the first of ``axes`` while that has bits, then of the next;
    where all are used up, blocks are replicas."""
    positions = bit_positions(shape)
    left = {axis: list(positions[axis]) for axis in axes}
    vectors: list[int] = []
    for _ in range(blocks.bit_length() - 1):
        axis = next((axis for axis in axes if left[axis]), None)
        vectors.insert(0, 0 if axis is None else 1 << left[axis].pop())
    part = tuple(
        n if axis not in left or len(left[axis]) == len(positions[axis]) else 1 << len(left[axis])
        for axis, n in enumerate(shape)
    )
    return part, tuple(sorted(vectors, key=lambda v: v == 0))


def distribute(
    shape: tuple[int, ...],
    order: Sequence[int],
    per_thread: Sequence[int],
    lanes: int,
    warps: int,
    blocks: int = 1,
    block_axes: Sequence[int] | None = None,
) -> LinearLayout:
    """A blocked layout: ``per_thread`` consecutive elements along each axis, then lanes, then warps, along ``order``
    (fastest axis first); what is left repeats over registers, what is too many threads for the tile holds replicas.
    The blocks of a cluster share out the tile first, along ``block_axes`` (default: the first axis, then the next).

    ``lanes``, ``warps`` and ``blocks`` are powers of two.
    """
    if blocks > 1:
        part, dealt = deal_blocks(shape, blocks, range(len(shape)) if block_axes is None else block_axes)
        return distribute(part, order, per_thread, lanes, warps).across(shape, dealt)
    positions = bit_positions(shape)
    left = {axis: list(positions[axis]) for axis in order}

    def take(axis: int, count: int) -> list[int]:
        taken, left[axis] = left[axis][:count], left[axis][count:]
        return [1 << bit for bit in taken]

    register: list[int] = []
    for axis in order:
        register += take(axis, (per_thread[axis]).bit_length() - 1)
    parts: list[tuple[int, ...]] = []
    for count in (lanes, warps):
        wanted = count.bit_length() - 1
        vectors: list[int] = []
        for axis in order:
            vectors += take(axis, wanted - len(vectors))
        parts.append(tuple(vectors + [0] * (wanted - len(vectors))))
    for axis in order:
        register += take(axis, len(left[axis]))
    return LinearLayout(shape, tuple(register), *parts)


# Conversion planning --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Conversion:
    """How to bring a tile from one layout to another.

    ``kind``: ``none`` (same placement), ``registers`` (renaming within a thread), ``select`` (within a thread too, but
    which register it is depends on lane, warp and block), ``shuffle`` (within a warp), ``shared`` (within a block),
    ``cluster``.
    """

    kind: str


def plan_conversion(source: LinearLayout, target: LinearLayout) -> Conversion:
    """The cheapest way that moves every element of ``source`` to where ``target`` wants it.

    Registers suffice when each thread already holds all that it must hold: what the vectors of a lane, warp or block
    bit differ by is made up by registers (``select``), or is nothing (``registers``). Shuffles suffice when that holds
    for warps and blocks.
    """
    if source.shape != target.shape:
        raise ValueError(f"layouts of different tiles: {source.shape} and {target.shape}")
    if (source.register, source.lane, source.warp, source.block) == (
        target.register,
        target.lane,
        target.warp,
        target.block,
    ):
        return Conversion("none")

    def reaches(fixed: Sequence[str], moving: Sequence[str]) -> bool:
        span = [v for name in moving for v in getattr(source, name)]
        needed = [v for name in moving for v in getattr(target, name)]
        for name in fixed:
            ours, theirs = getattr(source, name), getattr(target, name)
            if len(ours) != len(theirs):
                return False
            needed += [a ^ b for a, b in zip(ours, theirs, strict=True)]
        rows = rank_of(span)
        return rank_of([*span, *needed]) == rows

    if reaches(("lane", "warp", "block"), ("register",)):
        same = (source.lane, source.warp, source.block) == (target.lane, target.warp, target.block)
        return Conversion("registers" if same else "select")
    if reaches(("warp", "block"), ("register", "lane")):
        return Conversion("shuffle")
    return Conversion("shared" if reaches(("block",), ("register", "lane", "warp")) else "cluster")


def register_sources(source: LinearLayout, target: LinearLayout) -> list[int]:
    """For a ``registers`` or ``select`` conversion: the source register of each target register at lane 0, warp 0,
    block 0."""
    result = []
    for r in range(target.registers):
        found = solve(source.register, target(r))
        assert found is not None, "not a register conversion"
        result.append(found)
    return result


def register_changes(source: LinearLayout, target: LinearLayout, name: str) -> list[int]:
    """For a ``select`` conversion: what each bit of ``name`` (lane or outer), when set, changes the source register's
    number by (XOR)."""
    result = []
    for ours, theirs in zip(getattr(source, name), getattr(target, name), strict=True):
        found = solve(source.register, ours ^ theirs)
        assert found is not None, "not a conversion within threads"
        result.append(found)
    return result

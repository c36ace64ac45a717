"""Where a tile's elements lie in shared memory while it changes layout: a linear map chosen so that banks do not
conflict.

Shared memory has 32 banks of 4 bytes. The threads of a warp that are served together must touch different banks; an
access of 8 (16) bytes a thread is served for a half (quarter) of the warp at a time. Let A and B be the spans of the
lane vectors of the writing and the reading layout (those served together), both modulo the vector that one thread
accesses. Elements whose difference lies in a space H may share a bank, so H must meet A and B in zero only. The largest
such H is

    (a complement of A + B)  +  span of a_i ^ b_i,   a_i completing A n B to A, b_i completing A n B to B,

and an address is made of, from low to high bits: the thread's vector, a complement of H (the banks), H (the rows). No
padding is needed, and where the sizes leave no such H the conflicts are the fewest possible.
"""

from __future__ import annotations

from dataclasses import dataclass

from .linear import LinearLayout, complement, independent, rank_of, solve

BANKS = 32
BANK_BYTES = 4


@dataclass(frozen=True, slots=True)
class SharedPlan:
    """``bases[i]`` is the element address of the element whose index has only bit i set; addresses combine by XOR.

    ``vector`` consecutive addresses hold what one thread writes (and reads) with one access.
    """

    bases: tuple[int, ...]
    vector: int
    elements: int

    def address(self, flat: int) -> int:
        """The address, in elements, of the element with this padded index."""
        result, bit = 0, 0
        while flat:
            if flat & 1:
                result ^= self.bases[bit]
            flat >>= 1
            bit += 1
        return result


def plan_shared(source: LinearLayout, target: LinearLayout, element_bytes: int) -> SharedPlan:
    """A placement for writing in layout ``source`` and reading in layout ``target``, each element ``element_bytes``
    wide."""
    bits = source.total_bits
    limit = max(0, (16 // element_bytes).bit_length() - 1)
    vector: list[int] = []
    for a, b in zip(source.register, target.register, strict=False):
        if a != b or len(vector) == limit:
            break
        vector.append(a)
    served = _served(element_bytes << len(vector))
    spaces = [_modulo(layout.lane[:served], vector) for layout in (source, target)]
    rows = _rows(spaces[0], spaces[1], vector, bits)
    banks = complement([*vector, *rows], bits)
    return SharedPlan(_inverse([*vector, *banks, *rows], bits), 1 << len(vector), 1 << bits)


def _served(access_bytes: int) -> int:
    """log2 of how many lanes are served together."""
    return 5 - max(0, (access_bytes // BANK_BYTES).bit_length() - 1)


def _modulo(vectors: tuple[int, ...], base: list[int]) -> list[int]:
    """Vectors that stay independent when ``base`` counts as zero."""
    return (
        list(independent([*base, *vectors])[len(base) :]) if rank_of(base) == len(base) else list(independent(vectors))
    )


def _rows(first: list[int], second: list[int], vector: list[int], bits: int) -> list[int]:
    """A largest space that meets span(first) and span(second) in zero only, modulo ``vector``."""
    extra = list(independent([*vector, *first, *second])[len(vector) + len(first) :])  # completes A to A + B, out of B
    mirror = list(
        independent([*vector, *second, *first])[len(vector) + len(second) :]
    )  # completes B to A + B, out of A
    paired = [a ^ b for a, b in zip(mirror, extra, strict=False)]
    outside = complement([*vector, *first, *second], bits)
    return [*paired, *outside]


def _inverse(basis: list[int], bits: int) -> tuple[int, ...]:
    """For each unit vector its combination of ``basis`` vectors, that is, its address."""
    result = []
    for bit in range(bits):
        found = solve(basis, 1 << bit)
        assert found is not None, "address map is not invertible"
        result.append(found)
    return tuple(result)


def conflicts(layout: LinearLayout, plan: SharedPlan, element_bytes: int) -> int:
    """The worst number of times a bank is asked for different words by lanes that are served together (1: no
    conflict)."""
    step = plan.vector * element_bytes
    worst = 1
    for register in range(0, layout.registers, plan.vector):
        for group in range(0, layout.lanes, 1 << min(_served(step), len(layout.lane))):
            words: dict[int, set[int]] = {}
            for lane in range(group, min(layout.lanes, group + (1 << _served(step)))):
                at = plan.address(layout(register, lane)) * element_bytes
                for word in range(at // BANK_BYTES, (at + max(step, 1) - 1) // BANK_BYTES + 1):
                    words.setdefault(word % BANKS, set()).add(word)
            worst = max(worst, *(len(w) for w in words.values()))
    return worst

"""Linear layouts to calculate with: maps over GF(2) between named dimensions whose sizes are powers of two.

The compiler's own layouts are in ``triton.layouts``; this class is for people who study or make layouts by hand.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence


def _bits(size: int, what: str) -> int:
    if size < 1 or size & (size - 1):
        raise ValueError(f"{what}: the size must be a power of two, got {size}")
    return size.bit_length() - 1


class LinearLayout:
    """A map that turns exclusive or into exclusive or, given by where it takes 1, 2, 4, ... of each input dimension.

    ``bases`` has, for each input dimension, the coordinates that its bits go to; ``out_dims`` has names and sizes.
    """

    __slots__ = ("bases", "out_dims")

    def __init__(
        self, bases: Iterable[tuple[str, Sequence[Sequence[int]]]], out_dims: Iterable[tuple[str, int]]
    ) -> None:
        self.bases = [(name, [list(vector) for vector in vectors]) for name, vectors in bases]
        self.out_dims = list(out_dims)
        for dim, size in self.out_dims:
            _bits(size, dim)
        for name, vectors in self.bases:
            for vector in vectors:
                if len(vector) != len(self.out_dims):
                    raise ValueError(f"{name}: expected {len(self.out_dims)} coordinates, got {vector}")
                for value, (dim, size) in zip(vector, self.out_dims, strict=True):
                    if not 0 <= value < size:
                        raise ValueError(f"{name}: {value} is outside of {dim}, which has size {size}")

    @staticmethod
    def identity_1d(size: int, in_dim: str, out_dim: str) -> LinearLayout:
        return LinearLayout.strided_1d(size, 1, in_dim, out_dim)

    @staticmethod
    def strided_1d(size: int, stride: int, in_dim: str, out_dim: str) -> LinearLayout:
        """i goes to i * stride."""
        _bits(stride, "strided_1d")
        vectors = [[stride << bit] for bit in range(_bits(size, "strided_1d"))]
        return LinearLayout([(in_dim, vectors)], [(out_dim, size * stride)])

    @staticmethod
    def zeros_1d(size: int, in_dim: str, out_dim: str, out_dim_size: int = 1) -> LinearLayout:
        """Everything goes to 0."""
        return LinearLayout([(in_dim, [[0]] * _bits(size, "zeros_1d"))], [(out_dim, out_dim_size)])

    @staticmethod
    def from_bases(
        bases: Sequence[tuple[str, Sequence[Sequence[int]]]],
        out_dim_names: Sequence[str],
        out_dim_sizes: Sequence[int] | None = None,
        require_surjective: bool = True,
    ) -> LinearLayout:
        """Without sizes, the smallest that hold the coordinates. Raises ValueError when some output is not reached
        although ``require_surjective``."""
        if out_dim_sizes is None:
            vectors = [vector for _, given in bases for vector in given]
            out_dim_sizes = [
                1 << max((v[k] for v in vectors), default=0).bit_length() for k in range(len(out_dim_names))
            ]
        layout = LinearLayout(bases, zip(out_dim_names, out_dim_sizes, strict=True))
        if require_surjective and not layout.is_surjective():
            raise ValueError(f"the layout is not surjective, some output has no input:{layout}")
        return layout

    # What it is

    @property
    def num_in_dims(self) -> int:
        return len(self.bases)

    @property
    def num_out_dims(self) -> int:
        return len(self.out_dims)

    def get_in_dim_names(self) -> list[str]:
        return [name for name, _ in self.bases]

    def get_out_dim_names(self) -> list[str]:
        return [name for name, _ in self.out_dims]

    def is_surjective(self) -> bool:
        return len(self._pivots()) == self._out_bits()

    def is_injective(self) -> bool:
        return len(self._pivots()) == len(self._columns())

    def is_invertible(self) -> bool:
        return self.is_surjective() and self.is_injective()

    def apply(self, inputs: Mapping[str, int]) -> dict[str, int]:
        """Where a point goes; only the bits that a dimension has are looked at."""
        self._same(inputs, self.get_in_dim_names())
        result = [0] * len(self.out_dims)
        for name, vectors in self.bases:
            for bit, vector in enumerate(vectors):
                if inputs[name] >> bit & 1:
                    result = [a ^ b for a, b in zip(result, vector, strict=True)]
        return dict(zip(self.get_out_dim_names(), result, strict=True))

    def get_matrix_view(self) -> list[list[int]]:
        """One row for each bit of the outputs, one column for each bit of the inputs, the lowest bits first."""
        columns = self._columns()
        return [[column >> row & 1 for column in columns] for row in range(self._out_bits())]

    # Making others of it

    def compose(self, outer: LinearLayout) -> LinearLayout:
        """This layout, then ``outer``."""
        names = self.get_out_dim_names()
        self._same(names, outer.get_in_dim_names())
        bases = [
            (name, [list(outer.apply(dict(zip(names, vector, strict=True))).values()) for vector in vectors])
            for name, vectors in self.bases
        ]
        return LinearLayout(bases, outer.out_dims)

    def invert_and_compose(self, outer: LinearLayout) -> LinearLayout:
        """This layout, then ``outer`` backwards: which input of ``outer`` lies where each of ours does."""
        self._same(self.get_out_dim_names(), outer.get_out_dim_names())
        order = [self.get_out_dim_names().index(name) for name in outer.get_out_dim_names()]
        pivots = outer._pivots()
        bases = []
        for name, vectors in self.bases:
            found = [outer._split(outer._solve(pivots, outer._flat([v[k] for k in order]))) for v in vectors]
            bases.append((name, found))
        return LinearLayout(bases, [(name, 1 << len(vectors)) for name, vectors in outer.bases])

    def invert(self) -> LinearLayout:
        if not self.is_invertible():
            raise ValueError(f"a layout must be injective and surjective to be inverted:{self}")
        return self.pseudoinvert()

    def pseudoinvert(self) -> LinearLayout:
        """For each output one of its inputs; the layout must be surjective."""
        start = LinearLayout([], [])
        for name, size in self.out_dims:
            start = start * LinearLayout.identity_1d(size, name, name)
        return start.invert_and_compose(self)

    def __mul__(self, other: LinearLayout) -> LinearLayout:
        """Both side by side: of dimensions that both have, this one takes the low bits."""
        sizes = dict(self.out_dims)
        names = list(dict.fromkeys([*self.get_out_dim_names(), *other.get_out_dim_names()]))
        bases: dict[str, list[list[int]]] = {}
        for layout, scale in ((self, dict.fromkeys(names, 1)), (other, {n: sizes.get(n, 1) for n in names})):
            for name, vectors in layout.bases:
                for vector in vectors:
                    at = dict(zip(layout.get_out_dim_names(), vector, strict=True))
                    bases.setdefault(name, []).append([at.get(n, 0) * scale[n] for n in names])
                bases.setdefault(name, [])
        theirs = dict(other.out_dims)
        return LinearLayout(bases.items(), [(n, sizes.get(n, 1) * theirs.get(n, 1)) for n in names])

    __imul__ = __mul__

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LinearLayout):
            return NotImplemented
        return self.bases == other.bases and self.out_dims == other.out_dims

    def __hash__(self) -> int:
        return hash(str(self))

    def __str__(self) -> str:
        dims = ", ".join(f"{name} (size {size})" for name, size in self.out_dims)
        if not self.bases:
            return f"\n(empty layout with out-dims [{dims}])"
        lines = []
        for name, vectors in self.bases:
            if not vectors:
                lines.append(f" - {name} is a size 1 dimension")
            for bit, vector in enumerate(vectors):
                lines.append(f" {' ' if bit else '-'} {name}={1 << bit} -> ({', '.join(map(str, vector))})")
        return "\n" + "\n".join(lines) + f"\nwhere out dims are: [{dims}]"

    __repr__ = __str__

    # Columns of bits

    @staticmethod
    def _same(given: Iterable[str], wanted: Iterable[str]) -> None:
        if set(given) != set(wanted):
            raise ValueError(f"the dimensions differ: {sorted(given)} and {sorted(wanted)}")

    def _out_bits(self) -> int:
        return sum(size.bit_length() - 1 for _, size in self.out_dims)

    def _flat(self, vector: Sequence[int]) -> int:
        result = shift = 0
        for value, (_, size) in zip(vector, self.out_dims, strict=True):
            result |= value << shift
            shift += size.bit_length() - 1
        return result

    def _columns(self) -> list[int]:
        return [self._flat(vector) for _, vectors in self.bases for vector in vectors]

    def _pivots(self) -> dict[int, tuple[int, int]]:
        """By highest bit: a reachable output and the input bits, as a mask, that reach it."""
        pivots: dict[int, tuple[int, int]] = {}
        for number, column in enumerate(self._columns()):
            mask = 1 << number
            while column:
                top = column.bit_length() - 1
                if top not in pivots:
                    pivots[top] = (column, mask)
                    break
                column, mask = column ^ pivots[top][0], mask ^ pivots[top][1]
        return pivots

    def _solve(self, pivots: dict[int, tuple[int, int]], wanted: int) -> int:
        mask = 0
        while wanted:
            top = wanted.bit_length() - 1
            if top not in pivots:
                raise ValueError(f"the outer layout does not reach everything that is needed:{self}")
            wanted, mask = wanted ^ pivots[top][0], mask ^ pivots[top][1]
        return mask

    def _split(self, mask: int) -> list[int]:
        """A mask of input bits as one number for each input dimension."""
        parts = []
        for _, vectors in self.bases:
            parts.append(mask & ((1 << len(vectors)) - 1))
            mask >>= len(vectors)
        return parts

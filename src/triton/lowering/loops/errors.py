"""What the loop lowering cannot do."""

from __future__ import annotations

from ...ir.core import Location, Op


class Unsupported(NotImplementedError):
    """An op or a form of it has no rule. ``loc`` is the place in the user's source."""

    def __init__(self, reason: str, op: Op) -> None:
        self.reason = reason
        self.op = op
        self.loc: Location | None = op.loc
        super().__init__(f"{op.loc}: {reason}" if op.loc is not None else reason)

"""The target-neutral pipeline over the tile IR, one screen. A back end puts its own passes after it.

inline    first, because every other pass sees one function at a time
fold      before cse, because equal things should look equal; it also removes branches that are not taken
dce       after fold, which leaves behind what it replaced: less work for all that follow
cse       before hoist, because one op is moved more cheaply than two
hoist     before the second fold, because an op outside of a loop may meet its like there
fold cse  again: what was shared or moved makes further equations fit (x - x, constants that met in front of a loop)
dce       last, for the same reason as before
"""

from __future__ import annotations

from .cse import cse
from .dce import dce
from .fold import fold
from .hoist import hoist
from .inline import inline
from .manager import Pass

INLINE, FOLD, CSE, HOIST, DCE = (
    Pass("inline", inline),
    Pass("fold", fold),
    Pass("cse", cse),
    Pass("hoist", hoist),
    Pass("dce", dce),
)

TILE_PASSES: tuple[Pass, ...] = (
    INLINE,
    FOLD,
    DCE,
    CSE,
    HOIST,
    Pass("fold again", fold),
    Pass("cse again", cse),
    Pass("dce again", dce),
)

"""Top-down greedy: part the rows around two far ones, again and again (Xu et al. 2006)."""

from __future__ import annotations

from typing import Literal

import numpy as np

from shoal.core.errors import UsageError
from shoal.core.table import Table
from shoal.kernels.shared.promises import Rules
from shoal.tables.base import Progress
from shoal.tables.settle import Labels, Settled


class TopDown(Settled, frozen=True, tag="topdown"):
    """Groups that keep every promise, found by parting the rows between two rows that are far apart.

    Protects against what its promises protect against; keeps k, every l and t. Does not protect against an attacker
    who compares two releases of the same people.

    ``rounds`` times a row farther from the last is sought; the last pair parts the rows, each to the side with the
    lower certainty penalty, until a part has fewer than 2k rows. ``near: row`` measures it together with the row of
    the pair, ``near: group`` with all rows that went there before (better for large k). A part below k takes rows from
    its nearest large group or joins its nearest, whichever costs less. Groups that break l or t are then suppressed
    up to the share ``suppress`` of the rows and otherwise merged with their cheapest neighbour.

    Cost: O(rows x columns x rounds) per level of parting, about log(rows / k) levels, and O(groups²) to mend small
    groups; memory two floats per cell.

    >>> import polars as pl
    >>> from shoal.core.schema import Schema
    >>> from shoal.core.table import code
    >>> from shoal.promises.k_anonymity import KAnonymity
    >>> table = code(pl.DataFrame({"age": [20, 21, 50, 52]}), Schema.build(quasi={"age": None}))
    >>> labels = TopDown().group(table, [KAnonymity(2)]).labels
    >>> bool(labels[0] == labels[1] != labels[2] == labels[3])
    True

    Reference: J. Xu et al., Utility-based anonymization using local recoding, KDD 2006.
    """

    rounds: int = 3
    near: Literal["row", "group"] = "row"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.rounds < 1:
            raise UsageError("`rounds` must be at least 1", where="topdown")

    def part(self, table: Table, rules: Rules, seed: int, progress: Progress) -> Labels:
        """See :class:`Settled`. The seed decides the order in which rows choose their side."""
        from shoal.kernels.shared.topdown import top_down

        order = np.random.default_rng(seed).permutation(table.size)
        codes = table.matrix.astype(np.float64)
        progress(0.1, "parting")
        grown = self.near == "group"
        labels: Labels = top_down(codes, codes, table.shape(), order, rules.k, self.rounds, grown).astype(np.int32)
        return labels

"""Mondrian: multidimensional k-anonymity by cutting space in two (LeFevre, DeWitt and Ramakrishnan 2006)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from shoal.core.errors import UsageError
from shoal.core.table import Table
from shoal.promises.base import Promise
from shoal.tables.base import Grouping, Progress, TableMethod, reachable, silent

HEAT = 0.1  # cuts are drawn by their loss where it differs by about this share
WHOLE = 0.15  # the chance that a small segment is not cut
FEW = 24  # groups up to which that is so; of more, both fall, so that a large table loses nothing to it


class Mondrian(TableMethod, frozen=True, tag="mondrian"):
    """Groups that keep every promise, found by cutting the rows again and again.

    Protects against what its promises protect against; keeps k, every l and t. Does not protect against an attacker
    who compares two releases of the same people.

    A segment of rows is cut where that saves most loss for the bits it spends: of numbers the ``tries`` cuts nearest
    the median are tested, columns with a hierarchy are parted by the children of the node they lie under, where
    children with too few people stay together under that node. ``strict`` keeps equal values on one side; relaxed cuts
    rows at the median even between equal values, so groups are smaller and their regions may touch. Where a promise
    looks at sensitive values, cuts of nearly the same loss are drawn by the seed, and small segments sometimes stay
    whole: someone who knows the method must not be able to tell which cuts the promise forbade.

    Cost: O(rows x columns² x tries) per level of cutting, about log₂(rows / k) levels; memory three integers per row.

    >>> import polars as pl
    >>> from shoal.core.schema import Schema
    >>> from shoal.core.table import code
    >>> from shoal.promises.k_anonymity import KAnonymity
    >>> table = code(pl.DataFrame({"age": [20, 21, 50, 52]}), Schema.build(quasi={"age": None}))
    >>> Mondrian().group(table, [KAnonymity(2)]).labels.tolist()
    [0, 0, 1, 1]
    """

    strict: bool = True
    tries: int = 8

    def __post_init__(self) -> None:
        if self.tries < 1:
            raise UsageError("`tries` must be at least 1", where="mondrian")

    def form(
        self, table: Table, promises: Sequence[Promise], *, seed: int = 0, progress: Progress = silent
    ) -> Grouping:
        """See :class:`TableMethod`. The seed draws cuts where a promise looks at sensitive values."""
        from shoal.kernels.tables.mondrian import mondrian
        from shoal.tables.improve import draws

        rules = reachable(table, promises)
        few = min(1.0, FEW * 2 * rules.k / max(1, table.size)) if len(rules.kind) else 0.0
        heat, whole = HEAT * few, WHOLE * few
        drawn = int(draws(seed, 0, 1)[0] >> np.uint64(1))
        labels, _ = mondrian(table.matrix, table.shape(), rules, self.strict, self.tries, heat, whole, drawn)
        return Grouping(labels)

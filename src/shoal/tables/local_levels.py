"""One level per column for all rows, where that would lose less than the groups at hand: what `lattice` could find.

Without suppression a choice of levels loses at most the sum of what each column loses at its level, whatever the groups
are. So only choices with a sum below a limit are looked at, and as a rule there are few.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shoal.core.table import Table
from shoal.kernels.shared.promises import Rules
from shoal.kernels.tables.repair import broken_groups
from shoal.tables.full_domain import bounds, nodes_of
from shoal.tables.improve import dense

Labels = NDArray[np.int32]
DENSE = 4  # keys per row
MOST = 1 << 16  # choices that are weighed; the cheapest ones, if there are more


def cheaper_levels(table: Table, rules: Rules, loss: float) -> Labels | None:
    """The groups of the choice of levels that keeps the rules and loses least, if its levels lose less than ``loss``.

    Levels that break k in their column alone are left out. Of the rest the one in the middle is judged, again and
    again: if it keeps the rules, dearer ones fall out, else all that are finer, as groups that keep promises keep them
    united, too.
    O(rows x columns) per choice that is judged, some dozens as a rule.

    >>> import polars as pl
    >>> from shoal.core.schema import Schema
    >>> from shoal.core.table import code
    >>> from shoal.promises.k_anonymity import KAnonymity
    >>> from shoal.promises.rules import compile_rules
    >>> table = code(pl.DataFrame({"age": [20, 21, 50, 52], "sex": list("ffmm")}),
    ...     Schema.build(quasi={"age": None, "sex": None}))
    >>> cheaper_levels(table, compile_rules(table, [KAnonymity(2)]), 8.0).tolist()
    [0, 0, 1, 1]
    """
    if not all(x.nested for x in table.levels):
        return None
    chosen = _weighed(table, int(rules.k), loss)
    best = None
    while len(chosen):
        vector = chosen[len(chosen) // 2]
        labels = _groups_at(table, vector)
        if _all_hold(rules, labels):
            best, chosen = labels, chosen[: len(chosen) // 2]
        else:
            chosen = chosen[(chosen > vector).any(1)]
    return best


def _all_hold(rules: Rules, labels: Labels) -> bool:
    sizes = np.bincount(labels)
    return sizes.min(initial=rules.k) >= rules.k and not broken_groups(rules, labels, len(sizes)).any()


def _weighed(table: Table, k: int, loss: float) -> NDArray[np.int64]:
    """The choices of levels that lose less than ``loss``, the cheapest first."""
    costs = bounds(table, nodes_of(table))
    levels = [np.arange(_large_enough(table, j, k), x.depth) for j, x in enumerate(table.levels)]
    least = [float(costs[j, open_].min()) for j, open_ in enumerate(levels)]
    chosen, total = np.zeros((1, 0), np.int64), np.zeros(1)
    for j, open_ in enumerate(levels):
        sums = total[:, None] + costs[j, open_]
        before, at = np.nonzero(sums + sum(least[j + 1 :]) < loss)
        total = sums[before, at]
        order = np.argsort(total, kind="stable")[:MOST]
        chosen, total = np.column_stack([chosen[before], open_[at]])[order], total[order]
    return chosen


def _large_enough(table: Table, column: int, k: int) -> int:
    """The lowest level at which every node that occurs has k rows: below it none of a column's levels can be taken."""
    levels = table.levels[column]
    for level in range(levels.depth - 1):
        sizes = np.bincount(levels.codes[table.matrix[:, column], level])
        if sizes[sizes > 0].min() >= k:
            return level
    return levels.depth - 1


def _groups_at(table: Table, vector: NDArray[np.int64]) -> Labels:
    """The groups of rows that agree at these levels."""
    keys, many = np.zeros(table.size, np.int64), 1
    for j, level in enumerate(vector):
        codes = table.levels[j].codes[table.matrix[:, j], level]
        if many * (int(codes.max()) + 1) >= 2**62:
            keys = np.unique(keys, return_inverse=True)[1].reshape(-1)
            many = int(keys.max()) + 1
        keys = keys * (int(codes.max()) + 1) + codes
        many *= int(codes.max()) + 1
    if many <= DENSE * table.size:  # a list of all keys costs less than to sort them
        return dense(keys.astype(np.int32))
    return np.unique(keys, return_inverse=True)[1].reshape(-1).astype(np.int32)

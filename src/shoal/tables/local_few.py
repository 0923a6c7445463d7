"""Phase 1 of `local` in a few columns of nearly distinct values: there tuples of the lattice are poor groups.

One group after another takes what is cheapest, and of values that nearly all differ it leaves gaps: rows that are then
grouped across half the column. To cut the whole, again and again, leaves none, and it costs little in few columns.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from shoal.core.table import Table
from shoal.kernels.shared.promises import Rules
from shoal.kernels.tables.local_hooks import only_counts_rows
from shoal.kernels.tables.local_pairs import Pairs
from shoal.tables.improve import loss_of

Labels = NDArray[np.int32]
FEW = 5  # columns, at most
GROWN = 3  # columns from which groups are grown, too; in more of them each saves opening tuples of a larger lattice
APART = 0.4  # of the rows differ from each other: with fewer, opening tuples is as good
QUICK = 30_000  # rows up to which cutting costs next to nothing beside phase 2, however many are equal
GROWTH = 100_000  # rows up to which groups are grown beside cutting
WORTH = 1.07  # times the loss of grown groups: cuts that lose less lose less after phase 2, too
LINE = 200_000_000  # steps of the search for the best cuts of one column


def begin_in_few(table: Table, view: Table, pairs: Pairs, rules: Rules, opened: Callable[..., Labels]) -> Labels:
    """The groups to begin with, where tuples would be ``opened``; ``view`` is the table with its columns in order.

    In one column the best groups of neighbours; in up to five those of `mondrian`, or groups grown from single rows
    where these lose clearly less. Where many rows are equal, and where promises do not only count rows, tuples are
    opened.
    """
    columns = len(table.names)
    if columns > FEW or table.size < 2 * rules.k or not only_counts_rows(rules):
        return opened()
    if columns == 1 and table.size * int(rules.k) <= LINE:
        return _along_the_line(view, pairs, int(rules.k))
    if differing(table) < APART:
        first = opened()
        cuts = _cut(table, rules) if table.size <= QUICK else first
        return min(first, cuts, key=lambda labels: loss_of(view.matrix, pairs, labels))
    cuts = _cut(table, rules)
    if columns < GROWN or table.size > GROWTH:
        return cuts
    grown = opened(grown=True)
    return grown if WORTH * loss_of(view.matrix, pairs, grown) < loss_of(view.matrix, pairs, cuts) else cuts


def differing(table: Table) -> float:
    """How many different rows there are, as a share of all.

    >>> import polars as pl
    >>> from shoal.core.schema import Schema
    >>> from shoal.core.table import code
    >>> differing(code(pl.DataFrame({"age": [20, 20, 50, 52]}), Schema.build(quasi={"age": None})))
    0.75
    """
    key = np.zeros(table.size, np.int64)
    for j, levels in enumerate(table.levels):
        if j and float(key.max(initial=0) + 1) * levels.size >= 2**62:
            key = np.unique(key, return_inverse=True)[1].reshape(-1)
        key = key * levels.size + table.matrix[:, j]
    key.sort()
    return (1 + int(np.count_nonzero(np.diff(key)))) / max(1, table.size)


def _cut(table: Table, rules: Rules) -> Labels:
    from shoal.kernels.tables.mondrian import mondrian
    from shoal.tables.mondrian import Mondrian

    usual = Mondrian()
    labels, _ = mondrian(table.matrix, table.shape(), rules, usual.strict, usual.tries, 0.0, 0.0, 0)
    return np.asarray(labels)


def _along_the_line(view: Table, pairs: Pairs, k: int) -> Labels:
    from shoal.kernels.tables.local_line import best_cuts

    order = np.argsort(view.matrix[:, 0], kind="stable")
    labels = np.empty(view.size, np.int32)
    labels[order] = best_cuts(view.matrix[order, 0], pairs, k)
    return labels

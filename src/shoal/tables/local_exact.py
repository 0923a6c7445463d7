"""The best of all groupings of a few rows, by looking at every subset once.

Local search can end beside the optimum, however long it runs: two groupings may differ in every group. Where a table
has so few rows that all subsets can be listed, nothing has to be searched.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shoal.core.table import Table
from shoal.kernels.shared.promises import Rules, holds, workspace

Labels = NDArray[np.int32]
FEW = 12  # rows: 4,096 subsets, and half a million pairs of a subset and one of its subsets


def best_of_all(table: Table, rules: Rules) -> Labels:
    """The grouping with the least loss of all that keep the rules; all rows together must keep them.

    Every grouping is the group of its first row and a grouping of the others, so the best of each subset of rows is
    found from smaller subsets. O(3^rows).

    >>> import polars as pl
    >>> from shoal.core.schema import Schema
    >>> from shoal.core.table import code
    >>> from shoal.promises.k_anonymity import KAnonymity
    >>> from shoal.promises.rules import compile_rules
    >>> ages = code(pl.DataFrame({"age": [20, 21, 22, 50, 52]}), Schema.build(quasi={"age": None}))
    >>> best_of_all(ages, compile_rules(ages, [KAnonymity(2)])).tolist()
    [0, 0, 0, 1, 1]
    """
    count = 1 << table.size
    alone = _losses(table, rules)
    best, group = np.full(count, np.inf), np.zeros(count, np.int64)
    best[0] = 0.0
    within = [np.zeros(1, np.int64)]  # per subset, its subsets
    for rows in range(1, count):
        highest = 1 << (rows.bit_length() - 1)
        smaller = within[rows ^ highest]
        within.append(np.concatenate([smaller, smaller | highest]))
        first = rows & -rows
        others = within[rows ^ first] | first  # of the group of the first row
        total = alone[others] + best[rows ^ others]
        at = int(total.argmin())
        best[rows], group[rows] = total[at], others[at]
    labels = np.zeros(table.size, np.int32)
    left, number = count - 1, 0
    while left:
        labels[[row for row in range(table.size) if group[left] >> row & 1]] = number
        left, number = left ^ int(group[left]), number + 1
    return labels


def _losses(table: Table, rules: Rules) -> NDArray[np.float64]:
    """The loss of each subset of rows as one group, by its bits; infinite if it does not keep the rules."""
    low = high = np.zeros((1, table.matrix.shape[1]), table.matrix.dtype)
    for at, row in enumerate(table.matrix):
        if at == 0:  # the empty subset has no box: its place is never looked at
            low = high = np.vstack([row, row])
            continue
        more_low, more_high = np.minimum(low, row), np.maximum(high, row)
        more_low[0] = more_high[0] = row
        low, high = np.vstack([low, more_low]), np.vstack([high, more_high])
    costs = [w * x.ncp(low[:, j], high[:, j]) for j, (w, x) in enumerate(zip(table.weights, table.levels, strict=True))]
    loss = np.bitwise_count(np.arange(len(low))) * np.sum(costs, axis=0)
    work = workspace(rules)
    for bits in range(len(low)):
        rows = np.array([row for row in range(table.size) if bits >> row & 1], np.int32)
        if not len(rows) or not holds(rules, rows, 0, len(rows), work):
            loss[bits] = np.inf
    return np.asarray(loss, np.float64)

"""Rows that found no tuple of the lattice: grow groups among them, then let the groups there are take in the rest."""

import numpy as np

from shoal.kernels.compile import kernel
from shoal.kernels.shared.promises import workspace
from shoal.kernels.tables.local_groups import new_draft
from shoal.kernels.tables.local_hooks import KEPT, clear, failing
from shoal.kernels.tables.local_index import nearest
from shoal.kernels.tables.local_pairs import joined_cost, pair_cost, stretch
from shoal.kernels.tables.local_rebuild import grow

NEAR = 16


@kernel
def grow_region(codes, ids, pairs, rules, plain, label, first, state):
    """Groups grown from random rows among ``codes`` until none can be finished: their number.

    Into ``label``, counted from ``first``; -1 for rows left over. O(rows² x columns / k).
    """
    n, m = codes.shape
    draft = new_draft(n, m)
    pool, rest = np.empty(n, np.int32), np.empty(n, np.int32)
    part, price = np.empty((m, n), np.int32), np.empty(n)
    rows = np.empty(n + 1, np.int32)
    work = workspace(rules)
    count = np.zeros(work.count.shape[0])
    for y in range(n):
        pool[y] = y
        rest[y] = y
        label[y] = -1
        for j in range(m):
            part[j, y] = codes[y, j]
    left = np.int64(n)
    made = np.int64(0)
    failures = 0
    while left >= rules.k and failures < 3:
        members, after, _ = grow(
            pairs, ids, rules, plain, pool, rest, left, part, price, draft, made, rows, work, count, state
        )
        if members == 0:
            failures += 1  # another first row may fare better
            continue
        for at in range(after, left):
            label[rest[at]] = first + made
        left = after
        made += 1
    return made


@kernel
def absorb(codes, ids, rest, groups, index, pairs, rules, growing):
    """Each row of ``rest`` joins the group whose loss grows least and that still keeps the promises; else stays out."""
    best, score = np.empty(NEAR, np.int32), np.empty(NEAR)
    work = workspace(rules)
    count = np.zeros(work.count.shape[0])
    rows = np.empty(codes.shape[0] + 1, np.int32)
    for at in range(rest.shape[0]):
        row = rest[at]
        found = nearest(index, pairs, groups.size, codes, row, -1, 1.0, best, score)
        for z in range(found):
            g = best[z]
            if not growing and not _keeps(ids, groups, g, row, rules, rows, work, count):
                continue
            groups.cost[g] = joined_cost(pairs, groups.low, groups.high, g, codes, row, np.inf)
            stretch(groups.low, groups.high, g, codes, row)
            groups.size[g] += 1
            groups.label[row] = g
            groups.next[row] = groups.head[g]
            groups.head[g] = row
            break


@kernel
def _keeps(ids, groups, g, row, rules, rows, work, count):
    members = np.int64(1)
    rows[0] = ids[row]
    at = groups.head[g]
    while at >= 0:
        rows[members] = ids[at]
        members += 1
        at = groups.next[at]
    lack = failing(rules, rows, 0, members, work, count)
    if lack >= 0:
        clear(rules, lack, rows, 0, members, count)
    return lack == KEPT


@kernel
def union_costs(pairs, low, high, group):
    """What a row would cost in the union of ``group``'s box with each of the boxes."""
    out = np.zeros(low.shape[0])
    for g in range(low.shape[0]):
        for j in range(low.shape[1]):
            out[g] += pair_cost(pairs, j, min(low[g, j], low[group, j]), max(high[g, j], high[group, j]))
    return out

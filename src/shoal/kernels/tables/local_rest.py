"""Rows that found no tuple of the lattice: grow groups among them, then let the groups there are take in the rest."""

import numpy as np

from shoal.kernels.compile import bare, kernel
from shoal.kernels.shared.promises import workspace
from shoal.kernels.shared.sorting import ascend
from shoal.kernels.tables.local_groups import new_draft
from shoal.kernels.tables.local_hooks import KEPT, clear, failing
from shoal.kernels.tables.local_index import nearest
from shoal.kernels.tables.local_pairs import below, joined_cost, pair_cost, stretch
from shoal.kernels.tables.local_rebuild import _begin, grow

NEAR = 16  # groups that may take in a row
NEAREST, LEAST = 6, 32  # rows among which a group is grown: times k, and at least


def _steps(codes, ids, pairs, rules, *_):
    n, m = codes.shape
    return n * n * (m + 2) / rules.k + 60 * n * m


@kernel(steps=_steps)
def grow_region(codes, ids, pairs, rules, plain, label, first, state):
    """Groups grown from random rows among ``codes`` until none can be finished: their number.

    Into ``label``, counted from ``first``; -1 for rows left over. A group grows among the rows nearest to its first
    one: NEAREST times k of them, four times as many if these do not suffice, and so on. O(rows² x columns / k), of
    which the innermost loop is one sum.
    """
    n, m = codes.shape
    draft = new_draft(1, m)
    part, price = np.empty((m, n), np.int32), np.empty(n)
    line = np.arange(n).astype(np.int32)  # the rows left come first
    room = n if not plain else min(n, max(LEAST, NEAREST * rules.k))
    near, spare = np.empty(n, np.int64), np.empty(n, np.int64)
    pool, rest = np.empty(n, np.int32), np.empty(n, np.int32)
    own, cost = np.empty((m, room), np.int32), np.empty(n)
    inside = new_draft(n, m)
    rows = np.empty(n + 1, np.int32)
    work = workspace(rules)
    count = np.zeros(work.count.shape[0])
    held = np.zeros((rules.kind.shape[0], work.count.shape[0]))
    for y in range(n):
        label[y] = -1
        for j in range(m):
            part[j, y] = codes[y, j]
    left = np.int64(n)
    made = np.int64(0)
    failures = 0
    while left >= rules.k and failures < 3:
        seed = below(state, left)
        for j in range(m):
            draft.low[0, j] = part[j, seed]
        _begin(pairs, part, draft.low[0], left, price)
        price[seed] = -1.0
        members = np.int64(0)
        size = np.int64(0)
        want = max(LEAST, NEAREST * rules.k)
        while members == 0 and size < left:
            size = min(left, want)
            _nearest_rows(price, left, size, near, cost)
            for z in range(size):
                y = near[z]
                pool[z] = line[y]
                rest[z] = z
                for j in range(m):
                    own[j, z] = part[j, y]
            members, after, _ = grow(
                pairs, ids, rules, plain, pool, rest, size, own, cost, inside, 0, 0, np.inf, rows, work,
                count, held, state,
            )  # fmt: skip
            want *= 4
        if members == 0:
            failures += 1  # another first row may fare better
            continue
        for z in range(after, size):
            label[pool[rest[z]]] = first + made
        made += 1
        kept = np.int64(0)
        for z in range(size):  # of the places taken, the last ones first
            if label[pool[z]] >= 0:
                near[kept] = near[z]
                kept += 1
        ascend(near[:kept], spare)
        for z in range(kept - 1, -1, -1):
            left -= 1
            y = near[z]
            line[y] = line[left]
            for j in range(m):
                part[j, y] = part[j, left]
    return made


@kernel
def _nearest_rows(price, left, size, near, cost):
    """The places of the ``size`` least prices into ``near``, the least one first; a heap in ``cost``."""
    for z in range(size):
        at = z
        while at > 0 and cost[(at - 1) // 2] < price[z]:
            near[at], cost[at] = near[(at - 1) // 2], cost[(at - 1) // 2]
            at = (at - 1) // 2
        near[at], cost[at] = z, price[z]
    for z in range(size, left):
        value = price[z]
        if value >= cost[0]:
            continue
        at = 0
        while 2 * at + 1 < size:
            below_it = 2 * at + 1
            if below_it + 1 < size and cost[below_it + 1] > cost[below_it]:
                below_it += 1
            if cost[below_it] <= value:
                break
            near[at], cost[at] = near[below_it], cost[below_it]
            at = below_it
        near[at], cost[at] = z, value
    least = 0
    for z in range(1, size):
        if cost[z] < cost[least]:
            least = z
    near[0], near[least] = near[least], near[0]


@kernel(steps=lambda codes, ids, rest, groups, *_: rest.size * (groups.low.size + 200))
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


@bare
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


@kernel(steps=lambda pairs, low, high, group: 4 * low.size)
def union_costs(pairs, low, high, group):
    """What a row would cost in the union of ``group``'s box with each of the boxes."""
    out = np.zeros(low.shape[0])
    for g in range(low.shape[0]):
        for j in range(low.shape[1]):
            out[g] += pair_cost(pairs, j, min(low[g, j], low[group, j]), max(high[g, j], high[group, j]))
    return out

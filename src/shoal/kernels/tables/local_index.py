"""Which groups would take a row in most cheaply: branch and bound over the groups' cells, sorted column by column."""

from typing import NamedTuple

import numpy as np

from shoal.kernels.compile import kernel
from shoal.kernels.shared.boxes import meet
from shoal.kernels.tables.local_pairs import pair_cost


class Index(NamedTuple):
    """Groups sorted by their cells; ``skip[at, j]`` is the next group that differs in one of the columns 0 to j."""

    group: np.ndarray  # int32[g]
    low: np.ndarray  # int32[g, m]
    high: np.ndarray  # int32[g, m]
    cell: np.ndarray  # float64[g, m]: cost of each cell
    skip: np.ndarray  # int32[g, m]


@kernel(steps=lambda pairs, low, high, size: 2 * low.size)
def cell_keys(pairs, low, high, size):
    """A number per group and column, int64[m, g], equal where cells read alike; and the groups with ``size`` > 0."""
    m = low.shape[1]
    used = 0
    for g in range(size.shape[0]):
        used += size[g] > 0
    group = np.empty(used, np.int32)
    key = np.empty((m, used), np.int64)
    shape = pairs.shape
    at = 0
    for g in range(size.shape[0]):
        if size[g] == 0:
            continue
        group[at] = g
        for j in range(m):
            a, b = low[g, j], high[g, j]
            if shape.hull[j]:
                key[j, at] = a * shape.size[j] + b
            else:
                level = meet(shape, j, a, b)
                key[j, at] = level * shape.size[j] + shape.codes[shape.offset[j] + a * shape.depth[j] + level]
        at += 1
    return key, group


@kernel(steps=lambda pairs, low, high, key, group: 4 * key.size)
def fill_index(pairs, low, high, key, group):
    """The index of groups that are already sorted by their keys. O(groups x columns)."""
    m, g = key.shape
    lows = np.empty((g, m), np.int32)
    highs = np.empty((g, m), np.int32)
    cell = np.empty((g, m))
    skip = np.empty((g, m), np.int32)
    for at in range(g - 1, -1, -1):
        same = at < g - 1
        for j in range(m):
            lows[at, j] = low[group[at], j]
            highs[at, j] = high[group[at], j]
            cell[at, j] = pair_cost(pairs, j, lows[at, j], highs[at, j])
            same = same and key[j, at] == key[j, at + 1]
            skip[at, j] = skip[at + 1, j] if same else at + 1
    return Index(group, lows, highs, cell, skip)


@kernel
def nearest(index, pairs, size, codes, row, but, crowd, best, score):
    """The groups (not ``but``) with the least cost of taking in a row; into ``best``, cheapest first; how many.

    The cost is that of the row's new cells plus the growth of the group's cells, for at least ``crowd`` members: a
    group of k would not stay small. Groups emptied since the index was made are left out by the caller.
    """
    g, m = index.low.shape
    room = best.shape[0]
    found = 0
    worst = np.inf
    depth = 0
    at = 0
    stop = np.empty(m + 1, np.int64)
    bound = np.zeros(m + 1)
    cells = np.zeros(m + 1)
    stop[0] = g
    while True:
        if at >= stop[depth]:
            if depth == 0:
                return found
            depth -= 1
            continue
        code = codes[row, depth]
        cost = pair_cost(pairs, depth, min(index.low[at, depth], code), max(index.high[at, depth], code))
        total = bound[depth] + cost + crowd * (cost - index.cell[at, depth])
        if total >= worst:
            at = index.skip[at, depth]
        elif depth < m - 1:
            stop[depth + 1] = index.skip[at, depth]
            bound[depth + 1] = total
            cells[depth + 1] = cells[depth] + cost
            depth += 1
        else:
            end = index.skip[at, depth]
            own = cells[depth] + cost
            growth = (total - own) / crowd
            while at < end:
                group = index.group[at]
                price = own + growth * max(crowd, size[group])
                at += 1
                if group == but or price >= worst:
                    continue
                if found < room:
                    found += 1
                z = found - 1
                while z > 0 and score[z - 1] > price:
                    score[z] = score[z - 1]
                    best[z] = best[z - 1]
                    z -= 1
                score[z] = price
                best[z] = group
                if found == room:
                    worst = score[room - 1]

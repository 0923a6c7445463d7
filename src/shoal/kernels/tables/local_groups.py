"""Groups of rows as boxes and linked lists, and drafts of what some of them could become."""

from typing import NamedTuple

import numpy as np

from shoal.kernels.compile import bare, kernel
from shoal.kernels.tables.local_pairs import stretch, weighted_cost


class Groups(NamedTuple):
    """Groups as boxes and as linked lists of rows; an unused group has size 0."""

    low: np.ndarray  # int32[room, m]
    high: np.ndarray  # int32[room, m]
    size: np.ndarray  # int64[room]
    cost: np.ndarray  # float64[room]: of one row
    head: np.ndarray  # int32[room]
    next: np.ndarray  # int32[n]
    back: np.ndarray  # int32[n]
    label: np.ndarray  # int32[n]


@kernel(steps=lambda codes, pairs, label, room: codes.size)
def make_groups(codes, pairs, label, room):
    """Groups from labels, rows labelled -1 left out. O(rows x columns)."""
    n, m = codes.shape
    low = np.zeros((room, m), np.int32)
    high = np.zeros((room, m), np.int32)
    size = np.zeros(room, np.int64)
    head = np.full(room, -1, np.int32)
    follow = np.full(n, -1, np.int32)
    back = np.full(n, -1, np.int32)
    for i in range(n):
        g = label[i]
        if g < 0:
            continue
        if size[g] == 0:
            for j in range(m):
                low[g, j] = codes[i, j]
                high[g, j] = codes[i, j]
        stretch(low, high, g, codes, i)
        size[g] += 1
        follow[i] = head[g]
        head[g] = i
        if follow[i] >= 0:
            back[follow[i]] = i
    cost = np.zeros(room)
    for g in range(room):
        if size[g]:
            cost[g] = weighted_cost(pairs, low[g], high[g])
    return Groups(low, high, size, cost, head, follow, back, label)


@bare
def move(groups, row, new):
    """Take a row from its group's list to the list of another."""
    before, after = groups.back[row], groups.next[row]
    if before >= 0:
        groups.next[before] = after
    else:
        groups.head[groups.label[row]] = after
    if after >= 0:
        groups.back[after] = before
    first = groups.head[new]
    groups.next[row] = first
    groups.back[row] = -1
    groups.head[new] = row
    groups.label[row] = new
    if first >= 0:
        groups.back[first] = row


class Draft(NamedTuple):
    """A rebuilt version of some groups: the pool's rows, their labels, and the boxes of the new groups."""

    label: np.ndarray  # int32[pool]
    low: np.ndarray  # int32[pool, m]
    high: np.ndarray  # int32[pool, m]
    size: np.ndarray  # int64[pool]
    cost: np.ndarray  # float64[pool]


@kernel
def new_draft(room, m):
    """Room for a draft of ``room`` rows."""
    return Draft(
        np.empty(room, np.int32),
        np.empty((room, m), np.int32),
        np.empty((room, m), np.int32),
        np.empty(room, np.int64),
        np.empty(room),
    )


@bare
def copy_draft(source, target, pool, count):
    """The first ``pool`` labels and ``count`` groups of a draft."""
    for y in range(pool):
        target.label[y] = source.label[y]
    for g in range(count):
        target.size[g] = source.size[g]
        target.cost[g] = source.cost[g]
        for j in range(source.low.shape[1]):
            target.low[g, j] = source.low[g, j]
            target.high[g, j] = source.high[g, j]


@bare
def settle_draft(groups, chosen, taken, picked, pool, size, keep, kept, real, free, frees):
    """Make a draft real; the new number of free groups."""
    cores = 0
    for z in range(picked):
        g = chosen[z]
        if taken[z] < groups.size[g]:
            real[cores] = g
            cores += 1
        else:
            free[frees] = g
            frees += 1
            groups.size[g] = 0
    for g in range(cores, kept):
        frees -= 1
        real[g] = free[frees]
    for g in range(kept):
        to = real[g]
        groups.size[to] = keep.size[g]
        groups.cost[to] = keep.cost[g]
        for j in range(keep.low.shape[1]):
            groups.low[to, j] = keep.low[g, j]
            groups.high[to, j] = keep.high[g, j]
    for y in range(size):
        move(groups, pool[y], real[keep.label[y]])
    return frees

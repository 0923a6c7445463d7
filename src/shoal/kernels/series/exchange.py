"""Exchange of records between groups: less value loss, the same patterns.

A *cell* is what an observer of a release can tell apart: the records of one group with one word. Records move to, or
swap with, a cell of the same word in another group, so that no cell falls below ``p`` and no group below ``k``.
"""

from typing import NamedTuple

import numpy as np

from shoal.kernels.compile import kernel

LEAST = 1e-9  # the share of a group's loss that a change must gain: rounding alone must not move anyone
SLACK = 1e-9  # sums of squares are given up only when they exceed their limit by more than rounding


class Chains(NamedTuple):
    """Records of each group and of each cell in chains, so that a change costs no copying."""

    group: np.ndarray  # first record of each group
    cell: np.ndarray  # first record of each cell
    next_in_group: np.ndarray  # per record
    next_in_cell: np.ndarray


class Widths(NamedTuple):
    """The two least and greatest values per group and instant: what its envelope is, and is without one record."""

    low: np.ndarray  # [group, 2, instant]
    high: np.ndarray
    loss: np.ndarray  # value loss of each group
    without: np.ndarray  # per record: the loss of its group if it were replaced by one that does not stand out


@kernel()
def _loss(values, low, high, size, without, added, most):
    """The value loss of a group of ``size`` after one record leaves and one joins (-1: none); infinity if > most."""
    instants = values.shape[1]
    limit = most / size
    limit = limit * limit * instants * (1.0 + SLACK)
    total = 0.0
    for i in range(instants):
        bottom = low[0, i]
        top = high[0, i]
        if without >= 0:
            # equal extremes: the second one stands in for the first
            if values[without, i] == bottom:
                bottom = low[1, i]
            if values[without, i] == top:
                top = high[1, i]
        if added >= 0:
            bottom = min(bottom, values[added, i])
            top = max(top, values[added, i])
        total += (top - bottom) ** 2
        if total > limit:
            return np.inf
    return size * np.sqrt(total / instants)


@kernel()
def _measure(values, g, size, chains, widths):
    """Compute the widths of one group anew."""
    low = widths.low[g]
    high = widths.high[g]
    low[:] = np.inf
    high[:] = -np.inf
    record = chains.group[g]
    while record >= 0:
        for i in range(values.shape[1]):
            value = values[record, i]
            if value < low[0, i]:
                low[1, i] = low[0, i]
                low[0, i] = value
            elif value < low[1, i]:
                low[1, i] = value
            if value > high[0, i]:
                high[1, i] = high[0, i]
                high[0, i] = value
            elif value > high[1, i]:
                high[1, i] = value
        record = chains.next_in_group[record]
    widths.loss[g] = _loss(values, low, high, size, -1, -1, np.inf)
    record = chains.group[g]
    while record >= 0:
        # alone in its group it has no second extreme to stand in
        widths.without[record] = _loss(values, low, high, size, record, -1, np.inf) if size > 1 else 0.0
        record = chains.next_in_group[record]


@kernel()
def _link(group, cell, groups, cells):
    n = len(group)
    chains = Chains(
        np.full(groups, -1, np.int64), np.full(cells, -1, np.int64), np.full(n, -1, np.int64), np.full(n, -1, np.int64)
    )
    for record in range(n - 1, -1, -1):
        if group[record] >= 0:
            chains.next_in_group[record] = chains.group[group[record]]
            chains.group[group[record]] = record
            chains.next_in_cell[record] = chains.cell[cell[record]]
            chains.cell[cell[record]] = record
    return chains


@kernel()
def _transfer(record, label, target, first, following):
    """Take a record out of its chain and put it at the head of another."""
    source = label[record]
    if first[source] == record:
        first[source] = following[record]
    else:
        before = first[source]
        while following[before] != record:
            before = following[before]
        following[before] = following[record]
    following[record] = first[target]
    first[target] = record
    label[record] = target


@kernel()
def _best_change(values, record, g, own, size, held, cell_group, near, chains, widths, k, p, mark, free):
    """The cell to go to and the record to swap with (-1: none) that save most; cell -1 if nothing does."""
    best = LEAST * widths.loss[g]
    target = -1
    partner = -1
    may_leave = free and size[g] > k and held[own] > p
    leaving = np.inf
    if may_leave:
        leaving = widths.loss[g] - widths.without[record] / size[g] * (size[g] - 1)
    for other in near:
        if other < 0:
            break
        h = cell_group[other]
        both = widths.loss[g] + widths.loss[h]
        if may_leave and held[other] >= p:
            most = leaving + widths.loss[h] - best
            saved = leaving + widths.loss[h]
            saved -= _loss(values, widths.low[h], widths.high[h], size[h] + 1, -1, record, most)
            if saved > best:
                best, target, partner = saved, other, -1
        q = chains.cell[other]
        while q >= 0:
            # what is left of both groups without either record is the least a swap can reach
            if mark[q] == mark[record] and both - widths.without[record] - widths.without[q] > best:
                most = both - best - widths.without[q]
                after = _loss(values, widths.low[g], widths.high[g], size[g], record, q, most)
                if after < np.inf:
                    after += _loss(values, widths.low[h], widths.high[h], size[h], q, record, both - best - after)
                if both - after > best:
                    best, target, partner = both - after, other, q
            q = chains.next_in_cell[q]
    return target, partner


@kernel()
def exchange(values, cell, cell_group, neighbours, group, k, p, mark, free):
    """One pass over all records, in order; returns how many moved or were swapped. Changes ``cell`` and ``group``.

    ``neighbours[c]`` lists cells with the same word as cell ``c`` in other groups, nearest first, -1 when no more.
    Records swap with others of the same ``mark`` only, and move only if ``free``.
    """
    n, instants = values.shape
    groups = cell_group.max() + 1
    size = np.zeros(groups, np.int64)
    held = np.zeros(len(cell_group), np.int64)
    for record in range(n):
        if group[record] >= 0:
            size[group[record]] += 1
            held[cell[record]] += 1
    chains = _link(group, cell, groups, len(cell_group))
    widths = Widths(np.empty((groups, 2, instants)), np.empty((groups, 2, instants)), np.empty(groups), np.zeros(n))
    for g in range(groups):
        _measure(values, g, size[g], chains, widths)
    changes = 0
    for record in range(n):
        g = group[record]
        if g < 0 or size[g] < 2:
            continue
        own = cell[record]
        near = neighbours[own]
        target, partner = _best_change(
            values, record, g, own, size, held, cell_group, near, chains, widths, k, p, mark, free
        )
        if target < 0:
            continue
        h = cell_group[target]
        _transfer(record, group, h, chains.group, chains.next_in_group)
        _transfer(record, cell, target, chains.cell, chains.next_in_cell)
        if partner >= 0:
            _transfer(partner, group, g, chains.group, chains.next_in_group)
            _transfer(partner, cell, own, chains.cell, chains.next_in_cell)
        else:
            size[g] -= 1
            size[h] += 1
            held[own] -= 1
            held[target] += 1
        _measure(values, g, size[g], chains, widths)
        _measure(values, h, size[h], chains, widths)
        changes += 1
    return changes

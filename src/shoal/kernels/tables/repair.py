"""Groups that break a promise are merged with their cheapest neighbour until none is left."""

import numpy as np

from shoal.kernels.compile import kernel
from shoal.kernels.shared.boxes import box_cost, group_boxes
from shoal.kernels.shared.promises import holds, workspace


@kernel(steps=lambda rules, labels, groups: 5 * (1 + rules.kind.size) * labels.size)
def broken_groups(rules, labels, groups):
    """Whether each group breaks a promise (an empty group does not); rows labelled -1 are left out."""
    rows, start = _by_group(labels, groups)
    work = workspace(rules)
    broken = np.zeros(groups, np.bool_)
    for g in range(groups):
        if start[g] < start[g + 1]:
            broken[g] = not holds(rules, rows, start[g], start[g + 1], work)
    return broken


@kernel
def _by_group(labels, groups):
    """Rows sorted by group, and where each group starts."""
    start = np.zeros(groups + 1, np.int64)
    for row in range(labels.shape[0]):
        if labels[row] >= 0:
            start[labels[row] + 1] += 1
    for g in range(groups):
        start[g + 1] += start[g]
    # a counting sort: two passes, and rows keep their order inside a group
    rows = np.empty(start[groups], np.int32)
    at = start[:-1].copy()
    for row in range(labels.shape[0]):
        if labels[row] >= 0:
            rows[at[labels[row]]] = row
            at[labels[row]] += 1
    return rows, start


@kernel
def cheapest_partner(shape, low, high, size, cost, g):
    """The group (one that is not empty) with which group g loses least in a union, or -1. O(groups x columns)."""
    groups, m = low.shape
    wide_low, wide_high = np.empty(m, np.int32), np.empty(m, np.int32)
    best, chosen = np.inf, -1
    for h in range(groups):
        if h == g or not size[h]:
            continue
        for j in range(m):
            wide_low[j] = min(low[g, j], low[h, j])
            wide_high[j] = max(high[g, j], high[h, j])
        both = size[g] + size[h]
        # what all rows of both lose more than now: a small group beside a large one is cheap to take in
        grown = both * box_cost(shape, wide_low, wide_high) - size[g] * cost[g] - size[h] * cost[h]
        if grown < best:
            best, chosen = grown, h
    return chosen


@kernel
def pair_up(shape, low, high, size, broken):
    """Labels in which every broken group is united with its cheapest partner; a group in one union only.

    One round of merging for promises that only Python can judge. Groups that were chosen take no part again, so one
    call halves the broken groups at most, and the caller judges anew.
    """
    groups = low.shape[0]
    cost = np.zeros(groups)
    for g in range(groups):
        cost[g] = box_cost(shape, low[g], high[g])
    united = np.arange(groups)
    free = size.copy()
    for g in range(groups):
        if broken[g] and free[g]:
            h = cheapest_partner(shape, low, high, free, cost, g)
            if h < 0:  # all others were taken in this round: one of them it is
                h = cheapest_partner(shape, low, high, size, cost, g)
            if h < 0:
                break
            united[g] = united[h]
            free[g] = 0
            free[h] = 0
    return united


def _steps(matrix, shape, rules, labels, groups):
    """Rows are looked at once; each broken group, at worst all, looks at all others."""
    return 5 * (1 + rules.kind.size) * matrix.size + groups * groups * matrix.shape[1]


@kernel(steps=_steps)
def merge_broken(matrix, shape, rules, labels, groups):
    """Labels in which every group keeps the promises, unless one group is left that does not.

    A broken group joins the group with which the loss grows least; the two are looked at again, for promises that
    count people need not survive a union. Costs O(broken x groups x columns + rows of the merged groups).
    """
    n, m = matrix.shape
    labels = labels.copy()
    low, high = group_boxes(matrix, labels, groups)
    # linked lists with a tail: uniting two groups costs one step, however large they are
    head, tail = np.full(groups, -1, np.int64), np.full(groups, -1, np.int64)
    following = np.full(n, -1, np.int64)
    size = np.zeros(groups, np.int64)
    for row in range(n - 1, -1, -1):
        g = labels[row]
        if g >= 0:
            following[row] = head[g]
            head[g] = row
            if tail[g] < 0:
                tail[g] = row
            size[g] += 1
    cost = np.zeros(groups)
    alive = 0
    for g in range(groups):
        if size[g]:
            cost[g] = box_cost(shape, low[g], high[g])
            alive += 1
    work = workspace(rules)
    rows = np.empty(n, np.int32)
    queue = np.flatnonzero(broken_groups(rules, labels, groups))
    for g in queue:
        # it may have been taken in by an earlier one (size 0), or grow until nobody else is left
        while alive > 1 and size[g]:
            count = 0
            at = head[g]
            while at >= 0:
                rows[count] = at
                count += 1
                at = following[at]
            # the promises of the union are asked anew: what was broken in one may be mended by the other, or not
            if holds(rules, rows, 0, count, work):
                break
            h = cheapest_partner(shape, low, high, size, cost, g)
            for j in range(m):
                low[g, j] = min(low[g, j], low[h, j])
                high[g, j] = max(high[g, j], high[h, j])
            cost[g] = box_cost(shape, low[g], high[g])
            following[tail[g]] = head[h]
            tail[g] = tail[h]
            size[g] += size[h]
            size[h] = 0
            alive -= 1
    for g in range(groups):
        if size[g]:
            at = head[g]
            while at >= 0:
                labels[at] = g
                at = following[at]
    return labels

"""Tuples of a stream and the boxes that generalize them.

A stream's values are not known beforehand, so there are no codes. A tuple carries, per column, either a number or the
*path* of its value: one keyed fingerprint per level, the value first, the root last. The box of some tuples is per
column the hull of their numbers, or the lowest level at which their paths meet and the node found there.
"""

from typing import NamedTuple

import numpy as np

from shoal.kernels.compile import bare

HULL, MISSING, ROOT = 0, 1, 2  # levels of a column of numbers: an interval, only missing values, everything


class Tuples(NamedTuple):
    """Tuples as arrays; q columns, paths of at most L levels."""

    number: np.ndarray  # float64[n, q]: as published, not-a-number where missing
    scaled: np.ndarray  # float64[n, q]: weight x share of the domain, -1 where missing
    node: np.ndarray  # int64[n, q, L]
    cost: np.ndarray  # float64[n, q, L]: loss of publishing the value at a level, weighted
    tree: np.ndarray  # bool[q]: a path, not a number
    depth: np.ndarray  # int64[q]
    weight: np.ndarray  # float64[q], together 1
    least: np.ndarray  # float64[q]: where the domain of a number begins
    width: np.ndarray  # float64[q]


@bare
def spread_paths(nodes, costs, at, weight, j, node, cost):
    """Write into column j of ``node`` and ``cost`` the path of each tuple, row ``at`` of the paths known."""
    for i in range(at.shape[0]):
        for level in range(nodes.shape[1]):
            node[i, j, level] = nodes[at[i], level]
            cost[i, j, level] = costs[at[i], level] * weight


@bare
def box_of(tuples, members, start, stop, low, high, level, node):
    """The box of ``members[start:stop]``, into the last four arguments; its loss, 0 to 1. O(members x columns)."""
    loss = 0.0
    first = members[start]
    for j in range(tuples.tree.shape[0]):
        low[j] = np.nan
        high[j] = np.nan
        node[j] = 0
        if tuples.tree[j]:
            at = 0
            for m in range(start + 1, stop):
                while tuples.node[members[m], j, at] != tuples.node[first, j, at]:
                    at += 1
            level[j] = at
            node[j] = tuples.node[first, j, at]
            loss += tuples.cost[first, j, at]
            continue
        missing = False
        least = np.inf
        most = -np.inf
        for m in range(start, stop):
            scaled = tuples.scaled[members[m], j]
            if scaled < 0:
                missing = True
                continue
            least = min(least, scaled)
            most = max(most, scaled)
            value = tuples.number[members[m], j]
            if not low[j] <= value:
                low[j] = value
            if not high[j] >= value:
                high[j] = value
        if not missing:
            level[j] = HULL
            loss += most - least
        elif least > most:
            level[j] = MISSING
        else:
            level[j] = ROOT
            loss += tuples.weight[j]
    return loss


@bare
def covers(tree, number, scaled, path, row, low, high, level, node, box):
    """Whether box number ``box`` contains tuple number ``row``. O(columns)."""
    for j in range(tree.shape[0]):
        at = level[box, j]
        if tree[j]:
            if path[row, j, at] != node[box, j]:
                return False
        elif at == HULL:
            if not low[box, j] <= number[row, j] <= high[box, j]:
                return False
        elif at == MISSING and scaled[row, j] >= 0:
            return False
    return True


@bare
def pair_cost(tree, weight, scaled, path, cost, a, b):
    """The loss of the smallest box around two tuples: how far apart they are. O(columns x levels)."""
    total = 0.0
    for j in range(tree.shape[0]):
        if tree[j]:
            at = 0
            while path[a, j, at] != path[b, j, at]:
                at += 1
            total += cost[a, j, at]
            continue
        x = scaled[a, j]
        y = scaled[b, j]
        if x >= 0 and y >= 0:
            total += abs(x - y)
        elif x >= 0 or y >= 0:
            total += weight[j]
    return total

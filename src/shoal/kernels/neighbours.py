"""The nearest row to a row, on demand: branch and bound over sorted distinct tuples, never a matrix of distances.

The distance of two rows is the cost of an edge of seed 004, section 2.3.1: the sum over columns of the lowest level at
which both values share a node, over the highest level, times the column's weight.
"""

from typing import NamedTuple

import numpy as np

from shoal.kernels.boxes import meet
from shoal.kernels.compile import kernel

TABLED = 512  # columns of at most so many codes have the cost of every pair at hand


class Crowd(NamedTuple):
    """Distinct tuples in sorted order, and the rows behind each."""

    tuples: np.ndarray  # int32[u, m], sorted; the columns most expensive to mismatch come first
    skip: np.ndarray  # int32[u, m]: the next tuple that differs in the first columns up to this one
    first: np.ndarray  # int64[u + 1]: rows of tuple t are members[first[t]:first[t + 1]]
    members: np.ndarray  # int32[n]
    of_row: np.ndarray  # int32[n]: the tuple of each row
    column: np.ndarray  # int64[m]: which column of the table stands at each place


@kernel
def pair_costs(shape):
    """The cost of every pair of codes of every small column, flat, and where each column starts (-1: not tabled)."""
    m = shape.depth.shape[0]
    start = np.full(m, -1, np.int64)
    total = 0
    for j in range(m):
        if shape.size[j] <= TABLED:
            start[j] = total
            total += shape.size[j] * shape.size[j]
    cost = np.zeros(total)
    for j in range(m):
        if start[j] >= 0:
            for a in range(shape.size[j]):
                for b in range(shape.size[j]):
                    cost[start[j] + a * shape.size[j] + b] = edge_part(shape, j, a, b)
    return start, cost


@kernel
def edge_part(shape, j, a, b):
    """What one column adds to the cost of an edge. O(levels)."""
    if a == b or shape.depth[j] < 2:
        return 0.0
    return shape.weight[j] * meet(shape, j, a, b) / (shape.depth[j] - 1)


@kernel
def edge_cost(shape, one, other):
    """The cost of the edge between two rows of codes."""
    total = 0.0
    for j in range(one.shape[0]):
        total += edge_part(shape, j, one[j], other[j])
    return total


@kernel
def prefix_skip(tuples):
    """For each tuple and column: where the next tuple stands that differs in one of the columns up to this one."""
    u, m = tuples.shape
    skip = np.full((u, m), u, np.int32)
    for i in range(u - 2, -1, -1):
        same = True
        for d in range(m):
            same = same and tuples[i, d] == tuples[i + 1, d]
            skip[i, d] = skip[i + 1, d] if same else i + 1
    return skip


@kernel
def _part(shape, start, cost, j, a, b):
    if start[j] >= 0:
        return cost[start[j] + a * shape.size[j] + b]
    return edge_part(shape, j, a, b)


@kernel
def _outside(crowd, component, t, own):
    """A row of tuple t that lies in another component, or -1."""
    for at in range(crowd.first[t], crowd.first[t + 1]):
        row = crowd.members[at]
        if component[row] != own:
            return row
    return -1


@kernel
def nearest_outside(crowd, shape, start, cost, component, row):
    """The nearest row in another component than ``row``'s, and the distance; (-1, inf) if there is none.

    Ties go to an equal tuple, then to the tuples beside it, then to the first in order.
    """
    u, m = crowd.tuples.shape
    own = component[row]
    here = crowd.of_row[row]
    mine = crowd.tuples[here]
    found = _outside(crowd, component, here, own)
    if found >= 0:
        return found, 0.0
    best = np.inf
    # a good first bound: the tuples beside this one in the order
    for side in (-1, 1):
        t = here + side
        while 0 <= t < u and abs(t - here) <= 8:
            distance = 0.0
            for d in range(m):
                distance += _part(shape, start, cost, crowd.column[d], mine[d], crowd.tuples[t, d])
            if distance < best:
                other = _outside(crowd, component, t, own)
                if other >= 0:
                    best, found = distance, other
            t += side
    bound = np.zeros(m + 1)
    end = np.empty(m + 1, np.int64)
    end[0] = u
    d = 0
    at = 0
    while True:
        if at >= end[d]:
            if d == 0:
                return found, best
            d -= 1
            continue
        reached = bound[d] + _part(shape, start, cost, crowd.column[d], mine[d], crowd.tuples[at, d])
        if reached >= best:
            at = crowd.skip[at, d]
        elif d < m - 1:
            end[d + 1] = crowd.skip[at, d]
            bound[d + 1] = reached
            d += 1
        else:
            other = _outside(crowd, component, at, own)
            if other >= 0:
                best, found = reached, other
            at += 1

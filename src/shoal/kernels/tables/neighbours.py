"""The nearest row to a row, on demand: branch and bound over sorted distinct tuples, never a matrix of distances.

The distance of two rows is the cost of an edge in Garai 2019, section 2.3.1: the sum over columns of the lowest level
at which both values share a node, over the highest level, times the column's weight.
"""

from typing import NamedTuple

import numpy as np

from shoal.kernels.compile import bare, kernel
from shoal.kernels.shared.boxes import meet

TABLED = 512  # columns of at most so many codes have the cost of every pair at hand
LOOKS = 4  # a search that has visited one value for so many tuples goes on by looking at all of them in turn


class Crowd(NamedTuple):
    """Distinct tuples in sorted order, and the rows behind each."""

    tuples: np.ndarray  # int32[u, m], sorted; the columns most expensive to mismatch come first
    first_alike: np.ndarray  # int32[u, m]: the first tuple that agrees in the columns up to this one
    after_alike: np.ndarray  # int32[u, m]: the next one that does not
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


@bare
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
def alike_runs(tuples):
    """For each tuple and column: where the run of tuples that agree in the columns up to this one begins and ends."""
    u, m = tuples.shape
    first = np.zeros((u, m), np.int32)
    after = np.full((u, m), u, np.int32)
    for i in range(1, u):
        same = True
        for d in range(m):
            same = same and tuples[i, d] == tuples[i - 1, d]
            first[i, d] = first[i - 1, d] if same else i
    for i in range(u - 2, -1, -1):
        for d in range(m):
            after[i, d] = after[i + 1, d] if first[i + 1, d] < i + 1 else i + 1
    return first, after


@bare
def _part(shape, start, cost, j, a, b):
    if start[j] >= 0:
        return cost[start[j] + a * shape.size[j] + b]
    return edge_part(shape, j, a, b)


@bare
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

    Column by column, values are visited outwards from the row's own: nodes are runs of codes, so a value farther away
    in the order is never nearer, and a side is left as soon as it cannot win. Ties go to what is visited first. Where
    rows have little in common, most values would be visited: then all tuples are held against the row, with the same
    result (:func:`_scan`).
    """
    m = crowd.tuples.shape[1]
    return _search(crowd, shape, start, cost, component, row, np.empty((4, m), np.int64), np.zeros(m + 1))


@bare
def _search(crowd, shape, start, cost, component, row, room, bound):
    u, m = crowd.tuples.shape
    own = component[row]
    mine = crowd.tuples[crowd.of_row[row]]
    found, best = -1, np.inf
    low, high = room[0], room[1]  # the run under search at each depth
    left, right = room[2], room[3]  # what of it has been visited
    low[0], high[0] = 0, u
    left[0] = right[0] = _place(crowd.tuples, 0, 0, u, mine[0])
    d = 0
    looks = u // LOOKS
    while d >= 0:
        if looks == 0:
            return _scan(crowd, shape, start, cost, component, row, found, best)
        looks -= 1
        column = crowd.column[d]
        to_right, to_left = np.inf, np.inf
        if right[d] < high[d]:
            to_right = bound[d] + _part(shape, start, cost, column, mine[d], crowd.tuples[right[d], d])
        if left[d] > low[d]:
            to_left = bound[d] + _part(shape, start, cost, column, mine[d], crowd.tuples[left[d] - 1, d])
        reached = min(to_right, to_left)
        if reached >= best:
            d -= 1
            continue
        if to_right <= to_left:
            first, after = right[d], crowd.after_alike[right[d], d]
            right[d] = after
        else:
            first, after = crowd.first_alike[left[d] - 1, d], left[d]
            left[d] = first
        if d < m - 1:
            d += 1
            bound[d] = reached
            low[d], high[d] = first, after
            left[d] = right[d] = _place(crowd.tuples, d, first, after, mine[d])
        else:
            other = _outside(crowd, component, first, own)
            if other >= 0:
                best, found = reached, other
    return found, best


@bare
def _scan(crowd, shape, start, cost, component, row, found, best):
    """What :func:`nearest_outside` finds, from a row ``found`` (or -1) at distance ``best`` on. O(tuples x columns)."""
    u, m = crowd.tuples.shape
    mine = crowd.tuples[crowd.of_row[row]]
    for t in range(u):
        total = 0.0
        for d in range(m):
            total += _part(shape, start, cost, crowd.column[d], mine[d], crowd.tuples[t, d])
            if total > best:
                break
        if total > best:
            continue
        if total == best and found >= 0 and not _sooner(crowd, shape, start, cost, mine, t, crowd.of_row[found]):
            continue
        other = _outside(crowd, component, t, component[row])
        if other >= 0:
            best, found = total, other
    return found, best


@bare
def _sooner(crowd, shape, start, cost, mine, one, other):
    """Whether :func:`nearest_outside` would visit tuple ``one`` before ``other``, which is as far from ``mine``.

    In the first column that tells them apart: the nearer value, then the one that is not before the row's own, then
    the one beside it.
    """
    bound = 0.0
    for d in range(mine.shape[0]):
        a, b = crowd.tuples[one, d], crowd.tuples[other, d]
        to_a = bound + _part(shape, start, cost, crowd.column[d], mine[d], a)
        if a != b:
            to_b = bound + _part(shape, start, cost, crowd.column[d], mine[d], b)
            if to_a != to_b:
                return to_a < to_b
            if (a >= mine[d]) != (b >= mine[d]):
                return a >= mine[d]
            return abs(a - mine[d]) < abs(b - mine[d])
        bound = to_a
    return False


@bare
def _place(tuples, d, low, high, code):
    """The first tuple from ``low`` on whose column d is at least ``code``: there the columns before it agree."""
    while low < high:
        middle = (low + high) // 2
        if tuples[middle, d] < code:
            low = middle + 1
        else:
            high = middle
    return low

"""A window of tuples made ready for planning: numbers side by side, paths as codes in the order of their tree.

Within a window the values are known, so paths become codes such that every node is a run of codes. The loss of a run
is read from a table of all pairs or, where that would grow too large, found by comparing paths. A missing number
stands one whole domain below all others; that overrates it a little here, never in what is published.

The functions below are called for every pair of tuples: they take plain arrays, because a tuple of arrays is copied
at each call.
"""

from typing import NamedTuple

import numpy as np

from shoal.kernels.compile import bare, kernel
from shoal.kernels.shared.fingerprint import distinct

TABLE = 128  # most distinct values of a column that get a table of all pairs
NUMBER, TABLED, STEPPED = 0, 1, 2


class Window(NamedTuple):
    """m tuples, column by column."""

    x: np.ndarray  # float32[q, m]: weighted share of the domain, or code
    kind: np.ndarray  # int64[q]
    size: np.ndarray  # int64[q]: codes, 1 for numbers
    table: np.ndarray  # float32[q, TABLE, TABLE]: loss of a run of codes
    steps: np.ndarray  # float32[q, codes, 2 L]: the path of each code, as numbers, and its loss at each level
    weight: np.ndarray  # float32[q]


@kernel
def window_of(tuples, start, stop, table):
    """The window of tuples ``start`` to ``stop``; ``table`` is space for the pairs. O(m log m x columns x levels)."""
    q = tuples.tree.shape[0]
    m = stop - start
    x = np.empty((q, m), np.float32)
    kind = np.zeros(q, np.int64)
    size = np.ones(q, np.int64)
    rows = np.empty((q, m), np.int64)
    large = 1
    for j in range(q):
        if tuples.tree[j]:
            size[j] = _code(tuples, j, start, stop, x[j], rows[j])
            if size[j] <= TABLE:
                kind[j] = TABLED
                _tabulate(tuples.node, tuples.cost, j, rows[j], size[j], table[j])
            else:
                kind[j] = STEPPED
                large = max(large, size[j])
        else:
            missing = -np.float32(tuples.weight[j])
            for i in range(m):
                value = np.float32(tuples.scaled[start + i, j])
                x[j, i] = value if value >= 0 else missing
    levels = tuples.node.shape[2]
    steps = np.zeros((q, large, 2 * levels), np.float32)
    for j in range(q):
        if kind[j] == STEPPED:
            _step(tuples.node, tuples.cost, tuples.depth[j], j, rows[j], size[j], steps[j])
    return Window(x, kind, size, table, steps, tuples.weight.astype(np.float32))


@kernel
def _code(tuples, j, start, stop, x, rows):
    """Codes of column j in the order of the tree; how many there are."""
    codes = np.empty(stop - start, np.int32)
    first = np.empty(stop - start, np.int32)
    leaves = np.empty(stop - start, np.int64)
    for i in range(stop - start):
        leaves[i] = tuples.node[start + i, j, 0]
    count = distinct(leaves, codes, first)
    order = np.arange(count)
    nodes = np.empty(count, np.int64)
    for level in range(tuples.depth[j] - 1):
        for c in range(count):
            nodes[c] = tuples.node[start + first[order[c]], j, level]
        order = order[np.argsort(nodes, kind="mergesort")]
    place = np.empty(count, np.float32)
    for c in range(count):
        rows[c] = start + first[order[c]]
        place[order[c]] = c
    for i in range(stop - start):
        x[i] = place[codes[i]]
    return count


@bare
def _tabulate(node, cost, j, rows, size, table):
    for a in range(size):
        table[a, a] = 0.0
        level = 0
        for b in range(a + 1, size):
            while node[rows[a], j, level] != node[rows[b], j, level]:
                level += 1
            table[a, b] = cost[rows[a], j, level]


@bare
def _step(node, cost, depth, j, rows, size, steps):
    levels = steps.shape[1] // 2
    for level in range(depth):
        number = 0
        for c in range(size):
            if c > 0 and node[rows[c], j, level] != node[rows[c - 1], j, level]:
                number += 1
            steps[c, level] = number
            steps[c, levels + level] = cost[rows[c], j, level]


@bare
def width(kind, table, steps, j, low, high):
    """The loss of one cell of column j from ``low`` to ``high``, weighted."""
    if kind[j] == NUMBER:
        return high - low
    a = int(low)
    b = int(high)
    if kind[j] == TABLED:
        return table[j, a, b]
    level = 0
    while steps[j, a, level] != steps[j, b, level]:
        level += 1
    return steps[j, a, steps.shape[2] // 2 + level]


@bare
def runs(kind, size, table, steps, j, low, high, into):
    """``into[v]``: loss of the run of codes that spans low, high and v. O(codes)."""
    a = int(low)
    b = int(high)
    if kind[j] == TABLED:
        for v in range(a):
            into[v] = table[j, v, b]
        for v in range(a, b):
            into[v] = table[j, a, b]
        for v in range(b, size[j]):
            into[v] = table[j, a, v]
        return
    levels = steps.shape[2] // 2
    inside = 0
    while steps[j, a, inside] != steps[j, b, inside]:
        inside += 1
    for v in range(a, b + 1):
        into[v] = steps[j, a, levels + inside]
    level = inside
    for v in range(a - 1, -1, -1):
        while steps[j, a, level] != steps[j, v, level]:
            level += 1
        into[v] = steps[j, a, levels + level]
    level = inside
    for v in range(b + 1, size[j]):
        while steps[j, a, level] != steps[j, v, level]:
            level += 1
        into[v] = steps[j, a, levels + level]


@bare
def widen(kind, size, table, steps, j, low, high, column, into, count, scratch):
    """Add to ``into[c]`` the loss of column j from low to high once ``column[c]`` is in, for every c. O(count)."""
    if kind[j] == NUMBER:
        for c in range(count):
            into[c] += max(high, column[c]) - min(low, column[c])
    else:
        runs(kind, size, table, steps, j, low, high, scratch)
        for c in range(count):
            into[c] += scratch[np.uint32(np.int32(column[c]))]  # unsigned: nobody asks whether it is below zero


@bare
def widen_more(kind, size, table, steps, j, low, high, low0, high0, column, into, count, scratch, scratch0):
    """The same, less what it was for low0 to high0."""
    if kind[j] == NUMBER:
        for c in range(count):
            v = column[c]
            into[c] += (max(high, v) - min(low, v)) - (max(high0, v) - min(low0, v))
    elif width(kind, table, steps, j, low, high) != width(kind, table, steps, j, low0, high0):
        # equal: the node is the same, and so is every node above it
        runs(kind, size, table, steps, j, low, high, scratch)
        runs(kind, size, table, steps, j, low0, high0, scratch0)
        for v in range(size[j]):
            scratch[v] -= scratch0[v]
        for c in range(count):
            into[c] += scratch[np.uint32(np.int32(column[c]))]

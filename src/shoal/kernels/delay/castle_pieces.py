"""Cutting a very large cluster of CASTLE before it is split: a split costs the square of what it splits."""

import numpy as np

from shoal.kernels.compile import bare, kernel
from shoal.kernels.delay.published import ZERO
from shoal.kernels.shared.promises import holds, people_in


@kernel
def pieces(tuples, rules, work, rows, count, most):
    """Order ``rows[:count]`` so that pieces of at most ``most`` tuples stand together; where each of them ends.

    A piece is halved at the middle of the column that loses most, as long as each half has people for two groups and
    keeps every promise. O(count log count x columns). Nothing changes where there are not more than ``most``.
    """
    ends = np.empty(count // 2 + 1, np.int64)
    if count <= most:
        ends[0] = count
        return ends[:1]
    open_ends = np.empty(64, np.int64)  # of the pieces still to be looked at, the first last
    open_ends[0] = count
    waiting = 1
    found = 0
    start = ZERO
    while waiting > 0:
        end = open_ends[waiting - 1]
        middle = _halve(tuples, rules, work, rows, start, end) if end - start > most and waiting < 64 else ZERO - 1
        if middle > 0:
            open_ends[waiting] = middle
            waiting += 1
            continue
        ends[found] = end
        found += 1
        start = end
        waiting -= 1
    return ends[:found]


@kernel
def _halve(tuples, rules, work, rows, start, end):
    """Order rows by the first column, of those that lose most, that parts them well; where the halves meet, or -1."""
    q = tuples.tree.shape[0]
    size = end - start
    loss = np.empty(q)
    level = np.empty(q, np.int64)
    for j in range(q):
        loss[j] = -_spread(tuples, rows, start, end, j, level)
    key = np.empty(size, np.float64)
    for j in np.argsort(loss, kind="mergesort"):
        if loss[j] == 0.0:
            break
        for z in range(size):
            row = rows[start + z]
            key[z] = tuples.node[row, j, level[j] - 1] if tuples.tree[j] else tuples.scaled[row, j]
        order = np.argsort(key, kind="mergesort")
        middle = _boundary(key, order, size)
        if middle < 0:
            continue
        mine = rows[start:end].copy()
        for z in range(size):
            rows[start + z] = mine[order[z]]
        middle += start
        if _stands(rules, work, rows, start, middle) and _stands(rules, work, rows, middle, end):
            return middle
    return ZERO - 1


@bare
def _spread(tuples, rows, start, end, j, level):
    """What publishing all these rows alike would lose in column j; into ``level`` the lowest they have in common."""
    first = rows[start]
    if tuples.tree[j]:
        at = 0
        for z in range(start, end):
            while tuples.node[rows[z], j, at] != tuples.node[first, j, at]:
                at += 1
        level[j] = at
        return tuples.cost[first, j, at] if at > 0 else 0.0
    least = tuples.scaled[first, j]
    most = least
    for z in range(start, end):
        least = min(least, tuples.scaled[rows[z], j])
        most = max(most, tuples.scaled[rows[z], j])
    return most - least


@bare
def _boundary(key, order, size):
    """Where the key changes nearest to the middle, at least an eighth from both ends; -1 if it does not."""
    for off in range(size // 2 - size // 8):
        for at in (size // 2 - off, size // 2 + off):
            if key[order[at - 1]] != key[order[at]]:
                return at
    return ZERO - 1


@kernel
def _stands(rules, work, rows, start, end):
    return people_in(rules, rows, start, end, work) >= 2 * rules.k and holds(rules, rows, start, end, work)

"""Optimal univariate microaggregation (Hansen and Mukherjee): groups of at least k neighbours, least squared error.

The shortest path through the graph of Allgöwer 2023, Algorithm 1, without building the graph: position j is reached
from i, j-2k < i <= j-k, at the cost of the group between them. Where a path is cheapest never moves back while j
moves on, so each scan starts at the last answer. Costs O(kn) at worst, O(n) memory.
"""

import numpy as np

from shoal.kernels.compile import kernel


@kernel()
def microaggregate(x, k):
    """The group (int32, ascending from 0) of each of the ascending numbers ``x``; one group if fewer than 2k."""
    n = len(x)
    labels = np.zeros(n, np.int32)
    if n < 2 * k:
        return labels
    best = np.full(n + 1, np.inf)
    best[0] = 0.0
    cut = np.zeros(n + 1, np.int64)
    # divisions are most of the cost of the inner loop, and there are only a few sizes
    inverse = 1.0 / np.maximum(np.arange(3 * k + 1), 1)
    sums = np.zeros(3 * k + 1)
    squares = np.zeros(3 * k + 1)
    left = 0
    for first in range(k, n + 1, k):
        last = min(first + k, n + 1)
        low = max(0, first - 2 * k + 1)
        # sums from a near origin: over the whole array they would cancel each other's digits away
        origin = x[(low + last - 1) // 2]
        for i in range(low, last - 1):
            centred = x[i] - origin
            sums[i - low + 1] = sums[i - low] + centred
            squares[i - low + 1] = squares[i - low] + centred * centred
        for j in range(first, last):
            left = max(left, j - 2 * k + 1)
            at_sum, at_square = sums[j - low], squares[j - low]
            least, at = np.inf, left
            for i in range(left, j - k + 1):
                total = at_sum - sums[i - low]
                cost = best[i] + (at_square - squares[i - low]) - total * total * inverse[j - i]
                if cost < least:
                    least, at = cost, i
            best[j], cut[j] = least, at
            left = at
    # the path is read from its end; counted first, so that groups are numbered from the lowest
    groups = 0
    at = n
    while at > 0:
        groups += 1
        at = cut[at]
    at = n
    while at > 0:
        groups -= 1
        for i in range(cut[at], at):
            labels[i] = groups
        at = cut[at]
    return labels


@kernel()
def squared_error(x, labels):
    """The sum over all groups of the squared distances to their means; labels ascend."""
    n = len(x)
    total = 0.0
    start = 0
    for i in range(1, n + 1):
        if i == n or labels[i] != labels[start]:
            mean = 0.0
            for j in range(start, i):
                # a running mean: the plain sum of large numbers would lose their differences
                mean += (x[j] - mean) / (j - start + 1)
            for j in range(start, i):
                total += (x[j] - mean) ** 2
            start = i
    return total

"""The best groups of neighbours of one column: rows in the order of their codes, cut where that costs least."""

import numpy as np

from shoal.kernels.compile import kernel
from shoal.kernels.tables.local_pairs import pair_cost


@kernel(steps=lambda codes, pairs, k: codes.size * k)
def best_cuts(codes, pairs, k):
    """A label per row of ascending ``codes``: groups of k to 2k - 1 neighbours with the least loss; one group below 2k.

    Larger groups need not be tried: in two halves they cost no more. Groups that read alike have one label.
    O(rows x k).
    """
    n = len(codes)
    labels = np.zeros(n, np.int32)
    if n < 2 * k:
        return labels
    best = np.full(n + 1, np.inf)
    best[0] = 0.0
    cut = np.zeros(n + 1, np.int64)
    for end in range(k, n + 1):
        for begin in range(max(0, end - 2 * k + 1), end - k + 1):
            cost = best[begin] + (end - begin) * pair_cost(pairs, 0, codes[begin], codes[end - 1])
            if cost < best[end]:
                best[end], cut[end] = cost, begin
    first = np.zeros(n + 1, np.bool_)  # where a group begins
    end = n
    while end > 0:
        end = cut[end]
        first[end] = True
    label, begin = 0, 0
    for row in range(1, n):
        if first[row]:
            alike = codes[begin] == codes[row - 1] == codes[row]
            begin = row
            stop = row + 1
            while stop < n and not first[stop]:
                stop += 1
            if not (alike and codes[stop - 1] == codes[row]):
                label += 1
        labels[row] = label
    return labels

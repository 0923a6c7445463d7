"""Sorting inside kernels. The compiler's own sorts cost it seconds for every kind of array, once per kernel."""

import numpy as np

from shoal.kernels.compile import kernel

RUN = 16  # so few are sorted by insertion


@kernel
def ascend(keys, other):
    """Sort ``keys`` in place, the least first, equal ones as they came; ``other`` is room for as many. O(n log n)."""
    n = keys.shape[0]
    for start in range(0, n, RUN):
        for at in range(start + 1, min(n, start + RUN)):
            key = keys[at]
            while at > start and keys[at - 1] > key:
                keys[at] = keys[at - 1]
                at -= 1
            keys[at] = key
    width = RUN
    while width < n:
        for start in range(0, n, 2 * width):
            middle, stop = min(n, start + width), min(n, start + 2 * width)
            left, right = start, middle
            for at in range(start, stop):
                if right >= stop or (left < middle and keys[left] <= keys[right]):
                    other[at] = keys[left]
                    left += 1
                else:
                    other[at] = keys[right]
                    right += 1
        for at in range(n):
            keys[at] = other[at]
        width *= 2


@kernel
def largest_first(count, n, order):
    """The places of the first ``n`` counts into ``order``, the largest count first, equal ones as they stand."""
    keys = np.empty(n, np.int64)
    for at in range(n):
        keys[at] = at - count[at] * n
    ascend(keys, np.empty(n, np.int64))
    for at in range(n):
        order[at] = keys[at] % n

"""A binary heap of numbered keys: the least key first, of equal keys the least number. Numbers differ."""

import numpy as np

from shoal.kernels.compile import bare

_TOP = np.int64(0)  # typed, because a literal would compile every kernel once more


@bare
def sink(keys, numbers, at, count):
    """Move the pair at place ``at`` down to where it belongs among the first ``count``. O(log count)."""
    key = keys[at]
    number = numbers[at]
    while True:
        below = 2 * at + 1
        if below >= count:
            break
        other = below + 1
        if other < count:
            if keys[other] < keys[below] or (keys[other] == keys[below] and numbers[other] < numbers[below]):
                below = other
        if keys[below] > key or (keys[below] == key and numbers[below] > number):
            break
        keys[at] = keys[below]
        numbers[at] = numbers[below]
        at = below
    keys[at] = key
    numbers[at] = number


@bare
def heapify(keys, numbers, count):
    """Make a heap of the first ``count`` pairs. O(count)."""
    for z in range(count // 2):
        sink(keys, numbers, _TOP + (count // 2 - 1 - z), count)


@bare
def drop(keys, numbers, count):
    """Take the least pair off; how many are left. O(log count)."""
    keys[0] = keys[count - 1]
    numbers[0] = numbers[count - 1]
    sink(keys, numbers, _TOP, count - 1)
    return count - 1

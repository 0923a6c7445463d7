"""The latest tuples of a stream: they say which boxes will be wanted again."""

from typing import NamedTuple

import numpy as np

from shoal.kernels.compile import bare
from shoal.kernels.delay.stream_boxes import HULL, MISSING


class Recent(NamedTuple):
    """The latest W tuples, column by column, with the price each would pay now."""

    number: np.ndarray  # float64[q, W]: not-a-number where missing
    node: np.ndarray  # int64[q, L, W]
    price: np.ndarray  # float32[W]
    count: np.ndarray  # int64[1]: how many tuples ever entered
    ceiling: np.ndarray  # float32[1]: the most a price counts, follows the usual loss of a group


@bare
def remember(tree, number, path, start, price, recent_number, recent_node, recent_price, count, ceiling):
    """Tuples from ``start`` on, with their prices, take the place of the oldest."""
    for i in range(price.shape[0]):
        at = count[0] % recent_price.shape[0]
        for j in range(tree.shape[0]):
            recent_number[j, at] = number[start + i, j]
            for level in range(path.shape[2]):
                recent_node[j, level, at] = path[start + i, j, level]
        recent_price[at] = min(price[i], ceiling[0])
        count[0] += 1


@bare
def wanting(tree, number, node, price, known, loss, low, high, level, meet, picked):
    """The recent tuples inside a box that would pay more than its loss, into ``picked``; how many.

    O(W), less where a column leaves few.
    """
    left = np.int64(0)
    for z in range(known):
        picked[left] = z
        left += price[z] > loss
    for j in range(tree.shape[0]):
        count = left
        left = np.int64(0)
        if tree[j]:
            column = node[j, level[j]]
            for p in range(count):
                z = picked[p]
                picked[left] = z
                left += column[z] == meet[j]
        elif level[j] == HULL:
            values = number[j]
            a = low[j]
            b = high[j]
            for p in range(count):
                z = picked[p]
                picked[left] = z
                left += (a <= values[z]) & (values[z] <= b)
        elif level[j] == MISSING:
            values = number[j]
            for p in range(count):
                z = picked[p]
                picked[left] = z
                left += values[z] != values[z]
        else:
            left = count
        if left == 0:
            return left
    return left


@bare
def saved(tree, number, node, price, known, loss, low, high, level, meet, picked):
    """What recent tuples would have saved with a box, on average."""
    count = wanting(tree, number, node, price, known, loss, low, high, level, meet, picked)
    total = np.float32(0)
    for p in range(count):
        total += price[picked[p]] - loss
    return total / np.float32(max(1, known))


@bare
def cheapen(tree, number, node, price, known, loss, low, high, level, meet, picked):
    """A new box is cheaper for the recent tuples it holds."""
    count = wanting(tree, number, node, price, known, loss, low, high, level, meet, picked)
    for p in range(count):
        price[picked[p]] = loss

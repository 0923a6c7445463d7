"""What a box costs, by table: most columns are small enough to hold the cost of every pair (low, high) of codes.

Also the generator of random numbers of the `local` kernels: a counter, so that two threads never share a state and
every machine draws the same numbers.
"""

from functools import partial
from typing import NamedTuple

import numpy as np

from shoal.kernels.compile import bare, kernel
from shoal.kernels.shared.boxes import Shape, cell_cost

# a call that hands over some twenty arrays costs more than the few sums it does
inlined = partial(kernel, inline="always")
GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # from one state of the generator to the next
SMALL = 256  # codes: a table of 65,536 costs still fits a cache


class Pairs(NamedTuple):
    """Weighted cost of the box (low, high) of each column; columns with many codes are computed instead."""

    start: np.ndarray  # int64[m], -1: not in the table
    size: np.ndarray  # int64[m], number of codes
    table: np.ndarray  # float64
    shape: Shape


@kernel(steps=lambda shape: (shape.size[shape.size <= SMALL] ** 2).sum())
def make_pairs(shape):
    """The table, both ways round. O(codes² x levels) per small column."""
    m = shape.size.shape[0]
    start = np.full(m, -1, np.int64)
    total = 0
    for j in range(m):
        if shape.size[j] <= SMALL:
            start[j] = total
            total += shape.size[j] * shape.size[j]
    table = np.zeros(total)
    for j in range(m):
        if start[j] < 0:
            continue
        size = shape.size[j]
        for low in range(size):
            for high in range(low + 1, size):
                table[start[j] + low * size + high] = shape.weight[j] * cell_cost(shape, j, low, high)
                table[start[j] + high * size + low] = table[start[j] + low * size + high]
    return Pairs(start, shape.size, table, shape)


@inlined
def pair_cost(pairs, j, low, high):
    """Weighted cost of one cell."""
    if pairs.start[j] >= 0:
        return pairs.table[pairs.start[j] + low * pairs.size[j] + high]
    return pairs.shape.weight[j] * cell_cost(pairs.shape, j, low, high)


@inlined
def joined_cost(pairs, low, high, g, codes, row, most):
    """Weighted cost of box ``g`` after taking in a row; stops early, at ``most`` or above.

    The innermost loop of `local`: it takes whole arrays and two positions, because a slice costs more than a sum.
    """
    total = 0.0
    for j in range(codes.shape[1]):
        code = codes[row, j]
        total += pair_cost(pairs, j, min(low[g, j], code), max(high[g, j], code))
        if total >= most:
            break
    return total


@bare
def stretch(low, high, g, codes, row):
    """Take a row into box ``g``."""
    for j in range(codes.shape[1]):
        code = codes[row, j]
        if code < low[g, j]:
            low[g, j] = code
        if code > high[g, j]:
            high[g, j] = code


@kernel
def weighted_cost(pairs, low, high):
    """Weighted cost of a box."""
    total = 0.0
    for j in range(low.shape[0]):
        total += pair_cost(pairs, j, low[j], high[j])
    return total


@kernel
def mixed(number):
    """A well-mixed 64-bit number from a 64-bit number (the finalizer of SplitMix64)."""
    z = number
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@kernel
def draw(state):
    """A uniform number in [0, 1); ``state`` is one uint64."""
    state[0] += GOLDEN
    return np.float64(mixed(state[0]) >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@kernel
def below(state, count):
    """A uniform whole number from 0 to count - 1."""
    return min(count - 1, int(draw(state) * count))

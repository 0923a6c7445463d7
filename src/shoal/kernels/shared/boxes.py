"""Boxes over coded columns: what it costs to publish the codes ``low`` to ``high`` of a column as one cell.

A :class:`Shape` is a table's levels as flat arrays. Column ``j`` has ``depth[j]`` levels; the node of code ``c`` at
level ``l`` is ``codes[offset[j] + c * depth[j] + l]``, its cost ``cost[cost_offset[j, l] + node]``.
"""

from typing import NamedTuple

import numpy as np

from shoal.kernels.compile import kernel


class Shape(NamedTuple):
    """Levels of all columns, flat."""

    offset: np.ndarray  # int64[m]
    depth: np.ndarray  # int64[m]
    size: np.ndarray  # int64[m], number of codes
    codes: np.ndarray  # int32
    cost_offset: np.ndarray  # int64[m, most levels]
    cost: np.ndarray  # float64
    hull: np.ndarray  # bool[m]: published as the interval of its numbers
    number_offset: np.ndarray  # int64[m]
    numbers: np.ndarray  # float64
    width: np.ndarray  # float64[m]
    missing: np.ndarray  # int64[m], code of a missing value or -1
    weight: np.ndarray  # float64[m]


@kernel
def meet(shape, j, low, high):
    """The lowest level at which two codes of column j share a node. O(levels)."""
    depth = shape.depth[j]
    a = shape.offset[j] + low * depth
    b = shape.offset[j] + high * depth
    for level in range(depth - 1):
        if shape.codes[a + level] == shape.codes[b + level]:
            return level
    return depth - 1


@kernel
def cell_cost(shape, j, low, high):
    """Normalized certainty penalty of one cell, 0 to 1, without the column's weight. O(1) for hulls, else O(levels)."""
    if low == high:
        return 0.0
    if shape.hull[j] and high != shape.missing[j]:
        start = shape.number_offset[j]
        return (shape.numbers[start + high] - shape.numbers[start + low]) / shape.width[j]
    level = meet(shape, j, low, high)
    return shape.cost[shape.cost_offset[j, level] + shape.codes[shape.offset[j] + low * shape.depth[j] + level]]


@kernel(steps=lambda shape, low, high: 4 * low.size)
def box_cost(shape, low, high):
    """Weighted cost of a whole box: the sum over columns."""
    total = 0.0
    for j in range(low.shape[0]):
        total += shape.weight[j] * cell_cost(shape, j, low[j], high[j])
    return total


@kernel
def bound(matrix, rows, start, stop, low, high):
    """The box of ``rows[start:stop]``, into ``low`` and ``high``."""
    m = matrix.shape[1]
    first = rows[start]
    for j in range(m):
        low[j] = matrix[first, j]
        high[j] = matrix[first, j]
    for at in range(start + 1, stop):
        row = rows[at]
        for j in range(m):
            code = matrix[row, j]
            if code < low[j]:
                low[j] = code
            elif code > high[j]:
                high[j] = code


@kernel(steps=lambda matrix, labels, count: matrix.size)
def group_boxes(matrix, labels, count):
    """The box of every group: two int32 arrays [count, m]; rows labelled -1 are left out."""
    n, m = matrix.shape
    low = np.full((count, m), np.iinfo(np.int32).max, np.int32)
    high = np.full((count, m), -1, np.int32)
    for row in range(n):
        group = labels[row]
        if group < 0:
            continue
        for j in range(m):
            code = matrix[row, j]
            if code < low[group, j]:
                low[group, j] = code
            if code > high[group, j]:
                high[group, j] = code
    return low, high

"""Cuts of a column with a hierarchy, by node: the children of the node that a segment lies under part it."""

import numpy as np

from shoal.kernels.compile import kernel
from shoal.kernels.shared.boxes import meet
from shoal.kernels.shared.promises import holds
from shoal.kernels.shared.sorting import largest_first


@kernel
def by_node(matrix, shape, rules, rows, other, start, stop, j, low, high, work, count, order, ends):
    """Part ``rows[start:stop]`` by the children of the node that covers codes ``low`` to ``high`` of column j.

    A child whose rows keep the promises is a part of its own; the rows of all others are one more, which stays under
    the node, and takes in the smallest parts until it keeps them, too. Rows are reordered, part after part;
    ``ends[p]`` is where part p begins. Returns the number of parts, 0 if there are not two.
    """
    at = meet(shape, j, low, high) - 1
    offset, depth = shape.offset[j], shape.depth[j]
    first = shape.codes[offset + low * depth + at]
    children = shape.codes[offset + high * depth + at] - first + 1
    for c in range(children):
        count[c] = 0
    for i in range(start, stop):
        count[shape.codes[offset + matrix[rows[i], j] * depth + at] - first] += 1
    # the largest first, so that those too small to stand alone come last and lie side by side
    largest_first(count, children, order)
    _lay(matrix, shape, rows, other, start, stop, j, at, first, children, count, order, ends)
    # children that break a promise although they are large go behind those that keep it, in the same order
    kept, broken = 0, 0
    later = np.empty(children, np.int64)
    moved = False
    for c in range(children):
        if ends[c + 1] - ends[c] < rules.k or not holds(rules, rows, ends[c], ends[c + 1], work):
            later[broken] = order[c]
            broken += 1
        else:
            moved = moved or broken > 0
            order[kept] = order[c]
            kept += 1
    for c in range(broken):
        order[kept + c] = later[c]
    if moved:
        _lay(matrix, shape, rows, other, start, stop, j, at, first, children, count, order, ends)
    while kept and ends[kept] < stop and not holds(rules, rows, ends[kept], stop, work):
        kept -= 1
    parts = kept + 1 if ends[kept] < stop else kept
    ends[parts] = stop
    return parts if parts > 1 else 0


@kernel
def _lay(matrix, shape, rows, other, start, stop, j, at, first, children, count, order, ends):
    """Lay the rows out child after child in ``order``; within a child their order stays."""
    offset, depth = shape.offset[j], shape.depth[j]
    ends[0] = start
    place = np.empty(children, np.int64)
    for c in range(children):
        place[order[c]] = ends[c]
        ends[c + 1] = ends[c] + count[order[c]]
    for i in range(start, stop):
        child = shape.codes[offset + matrix[rows[i], j] * depth + at] - first
        other[place[child] - start] = rows[i]
        place[child] += 1
    for i in range(start, stop):
        rows[i] = other[i - start]

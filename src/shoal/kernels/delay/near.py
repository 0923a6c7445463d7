"""The held tuples nearest to one of them, without looking at each exactly.

A *sketch* has the tuples column by column in single precision, nodes cut to 32 bits. From it a bound on how far apart
two tuples are is read for thousands of them at a time; only who may be near enough is looked at exactly. Two nodes that
look alike in 32 bits only make the bound smaller.
"""

from typing import NamedTuple

import numpy as np

from shoal.kernels.compile import bare, kernel
from shoal.kernels.delay.published import HELD, ZERO
from shoal.kernels.delay.stream_boxes import pair_cost
from shoal.kernels.shared.address import prefetch
from shoal.kernels.shared.heap import heapify

BLOCK = 2048  # tuples whose bounds are reckoned at a time: they stay in the nearest cache
SAMPLE = 256  # of each block, by which it is guessed who is near
STEPS = 4096  # of a histogram of their bounds
SOON = 8  # tuples ahead that the memory is asked for
SLACK = np.float32(1e-5)  # per column: single precision only


class Sketch(NamedTuple):
    """m tuples, column by column."""

    row: np.ndarray  # int64[m]: which they are, in their order
    value: np.ndarray  # float32[q, m]: scaled numbers, -1 where missing
    node: np.ndarray  # int32[q, L, m]
    bound: np.ndarray  # float32[BLOCK]: space
    part: np.ndarray  # float32[BLOCK]
    often: np.ndarray  # int64[STEPS]


@kernel
def sketch_of(tuples, box):
    """A sketch of the tuples that are held now; nobody else will be near anyone. O(n x columns x levels)."""
    q, levels = tuples.tree.shape[0], tuples.node.shape[2]
    row = np.flatnonzero(box == HELD)
    m = row.shape[0]
    value = np.empty((q, m), np.float32)
    node = np.empty((q, levels, m), np.int32)
    for start in range(0, m, BLOCK):
        stop = min(m, start + BLOCK)
        for j in range(q):
            if tuples.tree[j]:
                for level in range(tuples.depth[j] - 1):
                    for at in range(start, stop):
                        node[j, level, at] = np.int32(tuples.node[row[at], j, level] & 0x7FFFFFFF)
            else:
                for at in range(start, stop):
                    value[j, at] = tuples.scaled[row[at], j]
    return Sketch(row, value, node, np.empty(BLOCK, np.float32), np.empty(BLOCK, np.float32), np.empty(STEPS, np.int64))


@bare
def _bounds(tuples, sketch, row, start, count):
    """At least how far the tuples of a sketch from ``start`` on are from one. O(count x columns x levels)."""
    bound, part = sketch.bound, sketch.part
    for r in range(count):
        bound[r] = 0
    for j in range(tuples.tree.shape[0]):
        if tuples.tree[j]:
            top = tuples.depth[j] - 1
            whole = np.float32(tuples.cost[row, j, top])
            for r in range(count):
                part[r] = whole
            for z in range(top):
                level = top - 1 - z
                here = sketch.node[j, level, start : start + count]
                wanted = np.int32(tuples.node[row, j, level] & 0x7FFFFFFF)
                cost = np.float32(tuples.cost[row, j, level])
                for r in range(count):
                    part[r] = cost if here[r] == wanted else part[r]
            for r in range(count):
                bound[r] += part[r]
            continue
        column = sketch.value[j, start : start + count]
        own = np.float32(tuples.scaled[row, j])
        weight = np.float32(tuples.weight[j])
        other = weight if own >= 0 else np.float32(0)  # of two missing numbers neither costs anything
        for r in range(count):
            apart = abs(column[r] - own) if own >= 0 else weight
            bound[r] += other if column[r] < 0 else apart


@bare
def _guess(tuples, sketch, box, row, first, last, most):
    """How far the nearest ``most`` probably are, rather too far than too near; infinite if there are few. O(known)."""
    for step in range(STEPS):
        sketch.often[step] = 0
    for start in range(first, last, BLOCK):
        size = min(last, start + SAMPLE) - start
        _bounds(tuples, sketch, row, start, size)
        for at in range(size):
            step = min(int(sketch.bound[at] * np.float32(STEPS - 1)), STEPS - 1)  # all weights together are 1
            sketch.often[step] += box[sketch.row[start + at]] == HELD
    share = most * SAMPLE / BLOCK
    wanted = share + 3.0 * np.sqrt(share)
    found = ZERO
    for step in range(STEPS - 1):
        found += sketch.often[step]
        if found >= wanted:
            return (step + 1.0) / (STEPS - 1)
    return np.inf


@bare
def closest(tuples, sketch, box, row, known, reach, most, near, number):
    """The held tuples after ``row`` within ``reach`` of it, or about ``most`` of them and no nearer one left out.

    Their number, and within which distance that are all. ``near`` and ``number`` become a heap of how far they are and
    of their rows. O(known x columns x levels), many at a time.
    """
    tree, weight, scaled, path, cost = tuples.tree, tuples.weight, tuples.scaled, tuples.node, tuples.cost
    first, last = np.searchsorted(sketch.row, row + 1), np.searchsorted(sketch.row, known)
    within = min(reach, _guess(tuples, sketch, box, row, first, last, most))
    limit = np.float32(within) + SLACK * np.float32(tree.shape[0])
    likely = ZERO
    for start in range(first, last, BLOCK):
        size = min(last, start + BLOCK) - start
        _bounds(tuples, sketch, row, start, size)
        for at in range(size):
            number[likely] = sketch.row[start + at]
            likely += (sketch.bound[at] < limit) & (box[number[likely]] == HELD)
    count = ZERO
    rank, deep = scaled.shape[1], path.shape[2]
    for z in range(likely):
        soon = number[min(z + SOON, likely - 1)]
        prefetch(scaled, soon * rank)
        prefetch(path, soon * rank * deep)
        prefetch(path, (soon + 1) * rank * deep - 1)
        apart = pair_cost(tree, weight, scaled, path, cost, row, number[z])
        near[count] = apart
        number[count] = number[z]
        count += apart < within
    heapify(near, number, count)
    return count, within

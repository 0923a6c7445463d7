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
from shoal.kernels.shared.heap import heapify

BLOCK = 2048  # tuples whose bounds are reckoned at a time: they stay in the nearest cache
SAMPLE = 256  # of each block, by which it is guessed who is near
STEPS = 4096  # of a histogram of their bounds
SLACK = np.float32(1e-5)  # per column: single precision only


class Sketch(NamedTuple):
    """Tuples, column by column."""

    value: np.ndarray  # float32[q, n]: scaled numbers, -1 where missing
    node: np.ndarray  # int32[q, L, n]
    bound: np.ndarray  # float32[BLOCK]: space
    part: np.ndarray  # float32[BLOCK]
    often: np.ndarray  # int64[STEPS]


@kernel
def sketch_of(tuples):
    """A sketch of all tuples. O(n x columns x levels)."""
    n, q = tuples.scaled.shape
    levels = tuples.node.shape[2]
    value = np.empty((q, n), np.float32)
    node = np.empty((q, levels, n), np.int32)
    for start in range(0, n, BLOCK):
        stop = min(n, start + BLOCK)
        for j in range(q):
            if tuples.tree[j]:
                for level in range(tuples.depth[j] - 1):
                    for r in range(start, stop):
                        node[j, level, r] = np.int32(tuples.node[r, j, level] & 0x7FFFFFFF)
            else:
                for r in range(start, stop):
                    value[j, r] = tuples.scaled[r, j]
    return Sketch(value, node, np.empty(BLOCK, np.float32), np.empty(BLOCK, np.float32), np.empty(STEPS, np.int64))


@bare
def _bounds(tuples, sketch, row, start, count):
    """At least how far tuples ``start`` and on are from one. O(count x columns x levels), many at a time."""
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
def _guess(tuples, sketch, box, row, known, most):
    """How far the nearest ``most`` probably are, rather too far than too near; infinite if there are few. O(known)."""
    for step in range(STEPS):
        sketch.often[step] = 0
    for start in range(row + 1, known, BLOCK):
        size = min(known, start + SAMPLE) - start
        _bounds(tuples, sketch, row, start, size)
        for at in range(size):
            step = min(int(sketch.bound[at] * np.float32(STEPS - 1)), STEPS - 1)  # all weights together are 1
            sketch.often[step] += box[start + at] == HELD
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
    within = min(reach, _guess(tuples, sketch, box, row, known, most))
    limit = np.float32(within) + SLACK * np.float32(tree.shape[0])
    likely = ZERO
    for start in range(row + 1, known, BLOCK):
        size = min(known, start + BLOCK) - start
        _bounds(tuples, sketch, row, start, size)
        for at in range(size):
            number[likely] = start + at
            likely += (sketch.bound[at] < limit) & (box[start + at] == HELD)
    count = ZERO
    for z in range(likely):
        apart = pair_cost(tree, weight, scaled, path, cost, row, number[z])
        near[count] = apart
        number[count] = number[z]
        count += apart < within
    heapify(near, number, count)
    return count, within

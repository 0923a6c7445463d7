"""The held tuples nearest to one of them, without looking at each.

A *sketch* has the tuples column by column in single precision, nodes cut to 32 bits, in blocks of tuples that lie near
each other. Blocks come in the order of a bound on how far they are, until none of the rest can matter; in a block a
bound is read for all tuples at a time; only who may be near enough is looked at exactly. Two nodes that look alike in
32 bits only make a bound smaller.
"""

from typing import NamedTuple

import numpy as np

from shoal.kernels.compile import bare, kernel
from shoal.kernels.delay.published import HELD, ZERO
from shoal.kernels.delay.stream_boxes import pair_cost
from shoal.kernels.shared.address import prefetch
from shoal.kernels.shared.heap import drop, heapify

BLOCK = 256  # tuples whose bounds are reckoned at a time
BITS = 12  # of the key by which tuples are ordered
MOST_COLUMNS = 4  # that the key is of
PAIRS = 256  # by which it is told in which columns tuples lie apart
STEPS = 4096  # of a histogram of bounds
SOON = 8  # tuples ahead that the memory is asked for
SLACK = np.float32(1e-5)  # per column: single precision only
MIXED = np.int32(-1)


class Sketch(NamedTuple):
    """m tuples, column by column, and what blocks of them have in common."""

    size: np.ndarray  # int64[1]: m; there is room for more
    row: np.ndarray  # int64[m]: which they are; below 0 who has left for ever
    value: np.ndarray  # float32[q, m]: scaled numbers, -1 where missing
    node: np.ndarray  # int32[q, L, m]
    low: np.ndarray  # float32[q, blocks]: of the numbers there are
    high: np.ndarray  # float32[q, blocks]: below low if there are none
    gap: np.ndarray  # bool[q, blocks]: a number is missing
    common: np.ndarray  # int32[q, L, blocks]: the node of all tuples, or MIXED
    bound: np.ndarray  # float32[BLOCK]: space
    part: np.ndarray  # float32[BLOCK]
    away: np.ndarray  # float64[blocks]: a heap of how far blocks are
    number: np.ndarray  # int64[blocks]
    often: np.ndarray  # int64[STEPS]


@kernel
def sketch_of(tuples, box):
    """A sketch of the tuples that are held now, with room for a quarter more. O(n x columns x levels)."""
    q, levels = tuples.tree.shape[0], tuples.node.shape[2]
    row = np.flatnonzero(box == HELD)
    m = row.shape[0]
    if m > 2 * BLOCK:
        row = _ordered(tuples, row)
    blocks = (m + m // 4 + BLOCK - 1) // BLOCK + 1
    most = blocks * BLOCK
    rows = np.empty(most, np.int64)
    rows[:m] = row
    made = Sketch(
        np.zeros(1, np.int64),
        rows,
        np.empty((q, most), np.float32),
        np.empty((q, levels, most), np.int32),
        np.full((q, blocks), np.inf, np.float32),
        np.full((q, blocks), -np.inf, np.float32),
        np.zeros((q, blocks), np.bool_),
        np.empty((q, levels, blocks), np.int32),
        np.empty(BLOCK, np.float32),
        np.empty(BLOCK, np.float32),
        np.empty(blocks),
        np.empty(blocks, np.int64),
        np.empty(STEPS, np.int64),
    )
    _extend(tuples, made, m)
    return made


@bare
def goes_on(sketch, box, left, known):
    """Rows have other numbers, as ``left`` of them left for ever; whether the sketch serves still, with all new ones.

    ``known`` rows were there when it was last used. It does not if there is no room, or if most have left.
    """
    if sketch.size[0] + box.shape[0] - known > sketch.row.shape[0]:
        return False
    held = 0
    for row in range(box.shape[0]):
        held += box[row] == HELD
    if 2 * held < sketch.size[0]:
        return False
    for at in range(sketch.size[0]):
        sketch.row[at] -= left
    return True


@bare
def add_to(tuples, sketch, known):
    """Rows from ``known`` on join the sketch, in their order. O(their columns x levels)."""
    size = sketch.size[0]
    for row in range(known, tuples.scaled.shape[0]):
        sketch.row[size] = row
        size += 1
    _extend(tuples, sketch, size)


@bare
def _extend(tuples, sketch, size):
    """The rows up to ``size`` are written now: describe those that are new."""
    start = sketch.size[0]
    while start < size:
        stop = min(size, (start // BLOCK + 1) * BLOCK)
        _describe(tuples, sketch, start // BLOCK, start, stop)
        start = stop
    sketch.size[0] = size


@bare
def _describe(tuples, sketch, block, start, stop):
    """Write the columns of new tuples of a block, and what all its tuples have in common."""
    rank, deep = tuples.scaled.shape[1], tuples.node.shape[2]
    for j in range(rank):
        if tuples.tree[j]:
            for level in range(tuples.depth[j] - 1):
                for at in range(start, stop):
                    if level == 0:
                        soon = sketch.row[min(at + SOON, stop - 1)]
                        prefetch(tuples.node, (soon * rank + j) * deep)
                    sketch.node[j, level, at] = np.int32(tuples.node[sketch.row[at], j, level] & 0x7FFFFFFF)
                first = sketch.node[j, level, block * BLOCK]
                alike = start == block * BLOCK or sketch.common[j, level, block] != MIXED
                for at in range(start, stop):
                    alike &= sketch.node[j, level, at] == first
                sketch.common[j, level, block] = first if alike else MIXED
            continue
        low, high = sketch.low[j, block], sketch.high[j, block]
        for at in range(start, stop):
            if j == 0:
                prefetch(tuples.scaled, sketch.row[min(at + SOON, stop - 1)] * rank)
            value = np.float32(tuples.scaled[sketch.row[at], j])
            sketch.value[j, at] = value
            if value < 0:
                sketch.gap[j, block] = True
            else:
                low, high = min(low, value), max(high, value)
        sketch.low[j, block] = low
        sketch.high[j, block] = high


@kernel
def _ordered(tuples, row):
    """Rows, so that those near each other stand together: by classes of the columns that part them most. O(rows)."""
    q, m = tuples.tree.shape[0], row.shape[0]
    apart = np.zeros(q)
    step = max(1, m // PAIRS)
    for z in range(0, m - step, step):
        for j in range(q):
            apart[j] -= _apart(tuples, row[z], row[z + step], j)
    chosen = np.argsort(apart, kind="mergesort")[:MOST_COLUMNS]
    bits = BITS // chosen.shape[0]
    key = np.zeros(m, np.int64)
    for j in chosen:
        if tuples.tree[j]:
            _classes_of_nodes(tuples, row, j, bits, key)
        else:
            _classes_of_numbers(tuples, row, j, bits, key)
    often = np.zeros((1 << BITS) + 1, np.int64)
    for z in range(m):
        often[key[z] + 1] += 1
    for cell in range(1 << BITS):
        often[cell + 1] += often[cell]
    ordered = np.empty_like(row)
    for z in range(m):
        ordered[often[key[z]]] = row[z]
        often[key[z]] += 1
    return ordered


@bare
def _apart(tuples, a, b, j):
    """How far two tuples are apart in one column."""
    if tuples.tree[j]:
        at = 0
        while tuples.node[a, j, at] != tuples.node[b, j, at]:
            at += 1
        return tuples.cost[a, j, at]
    x, y = tuples.scaled[a, j], tuples.scaled[b, j]
    if x >= 0 and y >= 0:
        return abs(x - y)
    return tuples.weight[j] if x >= 0 or y >= 0 else 0.0


@bare
def _classes_of_nodes(tuples, row, j, bits, key):
    """Append to each key the branch of a column, by some bits of its nodes: of the highest first, then of the next."""
    top = tuples.depth[j] - 2
    below = max(top - 1, 0)
    lower = bits // 2
    for z in range(row.shape[0]):
        branch = tuples.node[row[z], j, top] & ((1 << (bits - lower)) - 1)
        key[z] = (((key[z] << (bits - lower)) | branch) << lower) | (tuples.node[row[z], j, below] & ((1 << lower) - 1))


@kernel
def _classes_of_numbers(tuples, row, j, bits, key):
    """Append to each key the class of a number: about as many tuples in each."""
    m = row.shape[0]
    step = np.empty(m, np.int64)
    often = np.zeros(STEPS + 1, np.int64)
    scale = (STEPS - 1) / tuples.weight[j] if tuples.weight[j] > 0 else 0.0
    for z in range(m):
        step[z] = min(int(max(tuples.scaled[row[z], j], 0.0) * scale), STEPS - 1)
        often[step[z] + 1] += 1
    for at in range(STEPS):
        often[at + 1] += often[at]
    for z in range(m):
        key[z] = (key[z] << bits) | (often[step[z]] << bits) // m


@bare
def _distances(tuples, sketch, row):
    """A heap of blocks by how far their tuples are from one at least; how many. O(blocks x columns x levels)."""
    blocks = (sketch.size[0] + BLOCK - 1) // BLOCK
    away = sketch.away[:blocks]
    for b in range(away.shape[0]):
        away[b] = 0
    for j in range(tuples.tree.shape[0]):
        if tuples.tree[j]:
            for b in range(away.shape[0]):
                away[b] += _branch_apart(tuples, sketch, row, j, b)
            continue
        own = np.float32(tuples.scaled[row, j])
        weight = np.float32(tuples.weight[j])
        for b in range(away.shape[0]):
            low, high, gap = sketch.low[j, b], sketch.high[j, b], sketch.gap[j, b]
            if own < 0:
                away[b] += np.float32(0) if gap else weight
            elif low > high:
                away[b] += weight
            else:
                apart = max(np.float32(0), max(low - own, own - high))
                away[b] += min(apart, weight) if gap else apart
    for b in range(away.shape[0]):
        sketch.number[b] = b
    heapify(away, sketch.number, blocks)
    return blocks


@bare
def _branch_apart(tuples, sketch, row, j, b):
    """At least how far the nodes of a block are from a tuple's."""
    top = tuples.depth[j] - 1
    found = np.float32(tuples.cost[row, j, top])
    for z in range(top):
        level = top - 1 - z
        here = sketch.common[j, level, b]
        if here == MIXED:
            return np.float32(0)  # one of them may be its own
        if here != np.int32(tuples.node[row, j, level] & 0x7FFFFFFF):
            return found
        found = np.float32(tuples.cost[row, j, level])
    return found


@bare
def _bounds(tuples, sketch, row, start, count):
    """At least how far tuples of a sketch from ``start`` on are from one. O(count x columns x levels)."""
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
def _likely(tuples, sketch, box, row, known, reach, most, near, number):
    """Who may be among the nearest ``most`` within ``reach``, with bounds; how many, and within which distance.

    Blocks end with the one that is farther than ``most`` tuples are that were seen. ``near`` and ``number`` need room
    for a block more than tuples are held.
    """
    slack = SLACK * np.float32(tuples.tree.shape[0])
    often = sketch.often
    for step in range(STEPS):
        often[step] = 0
    left = _distances(tuples, sketch, row)
    within = reach
    last = STEPS - 1  # the step up to which tuples are counted
    found = inside = ZERO
    while left > 0 and sketch.away[0] < within + slack:
        start = sketch.number[0] * BLOCK
        left = drop(sketch.away, sketch.number, left)
        size = min(sketch.size[0], start + BLOCK) - start
        _bounds(tuples, sketch, row, start, size)
        limit = np.float32(within) + slack
        likely = found
        for at in range(size):
            near[likely] = sketch.bound[at]
            number[likely] = sketch.row[start + at]
            likely += sketch.bound[at] < limit
        for z in range(found, likely):
            other = number[z]
            if other <= row or other >= known or box[other] != HELD:
                continue
            bound = near[z]
            near[found] = bound
            number[found] = other
            found += 1
            step = min(int(bound * (STEPS - 1)), STEPS - 1)  # all weights together are 1
            often[step] += 1
            inside += step <= last
        while last > 0 and inside - often[last] >= most:
            inside -= often[last]
            last -= 1
        if inside >= most and last < STEPS - 1:
            within = min(within, (last + 1.0) / (STEPS - 1))
    return found, within


@bare
def closest(tuples, sketch, box, row, known, reach, most, near, number):
    """The held tuples after ``row`` within ``reach`` of it, or about ``most`` of them and no nearer one left out.

    Their number, and within which distance that are all. ``near`` and ``number`` become a heap of how far they are and
    of their rows. O(blocks x columns x levels), and the same for the tuples of the blocks that are near enough.
    """
    tree, weight, scaled, path, cost = tuples.tree, tuples.weight, tuples.scaled, tuples.node, tuples.cost
    found, within = _likely(tuples, sketch, box, row, known, reach, most, near, number)
    limit = np.float32(within) + SLACK * np.float32(tree.shape[0])
    likely = ZERO
    for z in range(found):
        number[likely] = number[z]
        likely += near[z] < limit
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

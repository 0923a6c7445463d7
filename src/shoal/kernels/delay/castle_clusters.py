"""Who is held in which cluster of CASTLE, and the boxes of those who are.

Gamma's boxes are of all who ever joined a cluster; what may be published is the hull of those still held. The lists
are made anew at every call of :func:`~shoal.kernels.delay.castle.castle`. Hulls are kept from call to call and grow
with who joins; after someone has left alone, or a restart, one is made again when a merge asks for it.
"""

from typing import NamedTuple

import numpy as np

from shoal.kernels.compile import bare, kernel
from shoal.kernels.delay.published import HELD, ZERO
from shoal.kernels.shared.heap import drop, heapify, sink
from shoal.kernels.shared.promises import holds

STALE = 32  # once one cluster of so many was reckoned again for a single step, all are, many at a time
SPARED = 1024  # a group of more tuples is judged only when it has grown by a 32nd: else a hard promise costs the square


class Hulls(NamedTuple):
    """The hulls of β clusters that are known; nothing is lost if they are forgotten."""

    whole: np.ndarray  # bool[β]: whether the hull is that of the members
    low: np.ndarray  # float64[q, β]: as in Gamma
    high: np.ndarray  # float64[q, β]
    gap: np.ndarray  # bool[q, β]
    level: np.ndarray  # int64[q, β]
    node: np.ndarray  # int64[q, L, β]: the path of a member


def no_hulls(count: int, q: int, levels: int) -> Hulls:
    """Of ``count`` clusters none is known."""
    return Hulls(
        np.zeros(count, np.bool_),
        np.zeros((q, count)),
        np.zeros((q, count)),
        np.zeros((q, count), np.bool_),
        np.zeros((q, count), np.int64),
        np.zeros((q, levels, count), np.int64),
    )


class Clusters(NamedTuple):
    """Held tuples by cluster, in the order of arrival, and hulls."""

    first: np.ndarray  # int64[β]: -1 for nobody
    last: np.ndarray  # int64[β]
    size: np.ndarray  # int64[β]: tuples
    after: np.ndarray  # int64[n]: the next member of the same cluster
    whole: np.ndarray  # of the hulls, as the next five
    low: np.ndarray
    high: np.ndarray
    gap: np.ndarray
    level: np.ndarray
    node: np.ndarray
    key: np.ndarray  # float64[β]: space for a heap of clusters
    number: np.ndarray  # int64[β]
    cost: np.ndarray  # float64[β]: of each cluster beside another
    part: np.ndarray  # float64[β]


@kernel
def clusters_of(mark, box, known, hulls):
    """The clusters of the first ``known`` tuples. O(known + β)."""
    count = hulls.whole.shape[0]
    made = Clusters(
        np.full(count, -1, np.int64),
        np.full(count, -1, np.int64),
        np.zeros(count, np.int64),
        np.full(mark.shape[0], -1, np.int64),
        hulls.whole,
        hulls.low,
        hulls.high,
        hulls.gap,
        hulls.level,
        hulls.node,
        np.zeros(count),
        np.zeros(count, np.int64),
        np.zeros(count),
        np.zeros(count),
    )
    for r in range(known):
        if box[r] == HELD:
            _append(made, mark[r], r)
    return made


@bare
def _append(clusters, c, row):
    if clusters.first[c] < 0:
        clusters.first[c] = row
    else:
        clusters.after[clusters.last[c]] = row
    clusters.last[c] = row
    clusters.size[c] += 1


@bare
def join(tuples, clusters, c, row):
    """A tuple that arrived joins a cluster."""
    _append(clusters, c, row)
    if clusters.size[c] == 1:
        _begin_hull(tuples, clusters, c, row)
    elif clusters.whole[c]:
        _stretch(tuples, clusters, c, row)


@bare
def leave(clusters, c):
    """The oldest tuple of a cluster leaves it alone."""
    row = clusters.first[c]
    clusters.first[c] = clusters.after[row]
    clusters.size[c] -= 1
    clusters.whole[c] = False


@bare
def dissolve(clusters, c):
    """All tuples of a cluster have left."""
    clusters.first[c] = -1
    clusters.size[c] = 0
    clusters.whole[c] = False


@bare
def has(prints, clusters, c, person):
    """Whether someone has a held tuple in cluster c. O(members)."""
    row = clusters.first[c]
    while row >= 0:
        if prints[row] == person:
            return True
        row = clusters.after[row]
    return False


@bare
def members(clusters, c, rows, count):
    """Append the tuples of cluster c to ``rows``; how many there are then."""
    row = clusters.first[c]
    while row >= 0:
        rows[count] = row
        count += 1
        row = clusters.after[row]
    return count


@bare
def _stretch(tuples, clusters, c, row):
    """The hull of cluster c takes in a tuple."""
    for j in range(tuples.tree.shape[0]):
        value = tuples.scaled[row, j]
        if tuples.tree[j]:
            while clusters.node[j, clusters.level[j, c], c] != tuples.node[row, j, clusters.level[j, c]]:
                clusters.level[j, c] += 1
        elif value < 0:
            clusters.gap[j, c] = True
        else:
            clusters.low[j, c] = min(clusters.low[j, c], value)
            clusters.high[j, c] = max(clusters.high[j, c], value)


@bare
def _begin_hull(tuples, clusters, c, row):
    """The hull of one tuple."""
    for j in range(tuples.tree.shape[0]):
        clusters.low[j, c] = np.inf
        clusters.high[j, c] = -np.inf
        clusters.gap[j, c] = False
        clusters.level[j, c] = 0
        for level in range(tuples.node.shape[2]):
            clusters.node[j, level, c] = tuples.node[row, j, level]
    _stretch(tuples, clusters, c, row)
    clusters.whole[c] = True


@bare
def _hull(tuples, clusters, c):
    """The hull of a cluster's members, if it is not known. O(members x columns)."""
    if clusters.whole[c]:
        return
    row = clusters.first[c]
    _begin_hull(tuples, clusters, c, row)
    while row >= 0:
        _stretch(tuples, clusters, c, row)
        row = clusters.after[row]


@kernel
def merge(tuples, rules, work, alive, people, clusters, own, rows):
    """merge_clusters: add the cluster that costs least until every promise holds; 0 and no change if none is enough.

    Merged clusters are left with -1 people. The box only grows, and with it what every other cluster would cost: so a
    cost of before is a bound, and only those whose bound is least are reckoned again. O(β x columns) for each cluster
    added at worst.
    """
    key, number = clusters.key, clusters.number
    for c in range(alive.shape[0]):
        if alive[c]:
            _hull(tuples, clusters, c)
    _beside(tuples, clusters, own)
    left = ZERO
    for c in range(alive.shape[0]):
        if alive[c] and c != own:
            key[left] = clusters.cost[c]
            number[left] = c
            left += 1
    heapify(key, number, left)
    often = ZERO + alive.shape[0] // STALE
    count = members(clusters, own, rows, ZERO)
    merged = ZERO  # who was merged stands behind the heap, the first last
    judged = ZERO
    while count < judged or not holds(rules, rows, ZERO, count, work):
        if left == 0:
            if count < judged and holds(rules, rows, ZERO, count, work):
                break
            clusters.whole[own] = False
            return ZERO
        if count >= judged:
            judged = count + (count // 32 if count > SPARED else 0)
        again = ZERO
        cost = _together(tuples, clusters, own, number[0])
        while cost > key[0] and again < often:
            key[0] = cost
            sink(key, number, ZERO, left)
            cost = _together(tuples, clusters, own, number[0])
            again += 1
        if cost > key[0]:
            _beside(tuples, clusters, own)
            for z in range(left):
                key[z] = clusters.cost[number[z]]
            heapify(key, number, left)
        best = number[0]
        left = drop(key, number, left)
        number[left] = best
        merged += 1
        _unite(tuples, clusters, own, best)
        count = members(clusters, best, rows, count)
    people[own] = -1
    for z in range(merged):
        people[number[left + z]] = -1
    clusters.whole[own] = False
    return count


@bare
def _beside(tuples, clusters, own):
    """``cost[c]``: the loss of one box around clusters ``own`` and c. O(β x columns x levels), many at a time."""
    cost, part = clusters.cost, clusters.part
    count = cost.shape[0]
    for c in range(count):
        cost[c] = 0.0
    for j in range(tuples.tree.shape[0]):
        if tuples.tree[j]:
            _meeting(tuples, clusters.node[j], clusters.level[j], clusters.first[own], own, j, part)
        else:
            _spanning(clusters.low[j], clusters.high[j], clusters.gap[j], tuples.weight[j], own, part)
        for c in range(count):
            cost[c] += part[c]


@bare
def _meeting(tuples, node, level, row, own, j, part):
    """Per cluster the loss of the lowest node of column j that it shares with cluster ``own``, of which a row is."""
    top = tuples.depth[j] - 1
    whole = tuples.cost[row, j, top]
    for c in range(part.shape[0]):
        part[c] = whole
    for z in range(top - level[own]):
        at = top - 1 - z
        here = node[at]
        wanted = here[own]
        cost = tuples.cost[row, j, at]
        for c in range(part.shape[0]):
            part[c] = cost if (here[c] == wanted) & (level[c] <= at) else part[c]


@bare
def _spanning(low, high, gap, weight, own, part):
    """Per cluster the loss of a column of numbers in one box with cluster ``own``."""
    least, most, missing = low[own], high[own], gap[own]
    for c in range(part.shape[0]):
        wide = max(high[c], most) - min(low[c], least)
        mixed = weight if gap[c] | missing else wide
        part[c] = mixed if wide >= 0 else 0.0  # below it neither has a number


@bare
def _meet(clusters, a, b, j):
    """The lowest level of column j at which clusters a and b share a node."""
    at = max(clusters.level[j, a], clusters.level[j, b])
    while clusters.node[j, at, a] != clusters.node[j, at, b]:
        at += 1
    return at


@bare
def _together(tuples, clusters, a, b):
    """The loss of one box around clusters a and b. O(columns x levels)."""
    total = 0.0
    for j in range(tuples.tree.shape[0]):
        if tuples.tree[j]:
            total += tuples.cost[clusters.first[a], j, _meet(clusters, a, b, j)]
            continue
        wide = max(clusters.high[j, a], clusters.high[j, b]) - min(clusters.low[j, a], clusters.low[j, b])
        if wide >= 0:
            total += tuples.weight[j] if clusters.gap[j, a] or clusters.gap[j, b] else wide
    return total


@bare
def _unite(tuples, clusters, a, b):
    """The hull of cluster a takes in that of cluster b."""
    for j in range(tuples.tree.shape[0]):
        if tuples.tree[j]:
            clusters.level[j, a] = _meet(clusters, a, b, j)
            continue
        clusters.low[j, a] = min(clusters.low[j, a], clusters.low[j, b])
        clusters.high[j, a] = max(clusters.high[j, a], clusters.high[j, b])
        clusters.gap[j, a] |= clusters.gap[j, b]

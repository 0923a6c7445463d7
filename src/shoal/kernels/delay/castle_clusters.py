"""Who is held in which cluster of CASTLE, and the boxes of those who are.

Gamma's boxes are of all who ever joined a cluster; what may be published is the hull of those still held. The lists and
hulls here are made anew at every call of :func:`shoal.kernels.delay.castle.castle`, a hull when a merge first asks.
"""

from typing import NamedTuple

import numpy as np

from shoal.kernels.compile import bare, kernel
from shoal.kernels.delay.castle_split import stretch
from shoal.kernels.delay.published import HELD, ZERO
from shoal.kernels.shared.heap import drop, heapify, sink
from shoal.kernels.shared.promises import holds

SPARED = 1024  # a group of more tuples is judged only when it has grown by a 32nd: else a hard promise costs the square


class Clusters(NamedTuple):
    """Held tuples by cluster, in the order of arrival, and hulls."""

    first: np.ndarray  # int64[β]: -1 for nobody
    last: np.ndarray  # int64[β]
    size: np.ndarray  # int64[β]: tuples
    after: np.ndarray  # int64[n]: the next member of the same cluster
    whole: np.ndarray  # bool[β]: whether the hull is that of the members
    low: np.ndarray  # float64[β, q]: as in Gamma
    high: np.ndarray  # float64[β, q]
    gap: np.ndarray  # bool[β, q]
    level: np.ndarray  # int64[β, q]
    node: np.ndarray  # int64[β, q, L]: the path of a member
    key: np.ndarray  # float64[β]: space for a heap of clusters
    number: np.ndarray  # int64[β]


@kernel
def clusters_of(mark, box, known, count, q, levels):
    """The clusters of the first ``known`` tuples. O(known + β)."""
    made = Clusters(
        np.full(count, -1, np.int64),
        np.full(count, -1, np.int64),
        np.zeros(count, np.int64),
        np.full(mark.shape[0], -1, np.int64),
        np.zeros(count, np.bool_),
        np.zeros((count, q)),
        np.zeros((count, q)),
        np.zeros((count, q), np.bool_),
        np.zeros((count, q), np.int64),
        np.empty((count, q, levels), np.int64),
        np.zeros(count),
        np.zeros(count, np.int64),
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
    if clusters.whole[c]:
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
    low, high, gap, level = clusters.low, clusters.high, clusters.gap, clusters.level
    stretch(tuples.tree, tuples.scaled, tuples.node, low, high, gap, level, clusters.first, c, row)


@bare
def _hull(tuples, clusters, c):
    """The hull of a cluster's members, if it is not known. O(members x columns)."""
    if clusters.whole[c]:
        return
    for j in range(tuples.tree.shape[0]):
        clusters.low[c, j] = np.inf
        clusters.high[c, j] = -np.inf
        clusters.gap[c, j] = False
        clusters.level[c, j] = 0
        for level in range(tuples.node.shape[2]):
            clusters.node[c, j, level] = tuples.node[clusters.first[c], j, level]
    row = clusters.first[c]
    while row >= 0:
        _stretch(tuples, clusters, c, row)
        row = clusters.after[row]
    clusters.whole[c] = True


@kernel
def merge(tuples, rules, work, alive, people, clusters, own, rows):
    """merge_clusters: add the cluster that costs least until every promise holds; 0 and no change if none is enough.

    Merged clusters are left with -1 people. The box only grows, and with it what every other cluster would cost: so a
    cost of before is a bound, and only those whose bound is least are reckoned again. O(β x columns), and some more for
    each cluster added.
    """
    key, number = clusters.key, clusters.number
    _hull(tuples, clusters, own)
    left = ZERO
    for c in range(alive.shape[0]):
        if alive[c] and c != own:
            _hull(tuples, clusters, c)
            key[left] = _together(tuples, clusters, own, c)
            number[left] = c
            left += 1
    heapify(key, number, left)
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
        cost = _together(tuples, clusters, own, number[0])
        while cost > key[0]:
            key[0] = cost
            sink(key, number, ZERO, left)
            cost = _together(tuples, clusters, own, number[0])
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
def _meet(clusters, a, b, j):
    """The lowest level of column j at which clusters a and b share a node."""
    at = max(clusters.level[a, j], clusters.level[b, j])
    while clusters.node[a, j, at] != clusters.node[b, j, at]:
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
        least = min(clusters.low[a, j], clusters.low[b, j])
        most = max(clusters.high[a, j], clusters.high[b, j])
        if least <= most:
            total += tuples.weight[j] if clusters.gap[a, j] or clusters.gap[b, j] else most - least
    return total


@bare
def _unite(tuples, clusters, a, b):
    """The hull of cluster a takes in that of cluster b."""
    for j in range(tuples.tree.shape[0]):
        if tuples.tree[j]:
            clusters.level[a, j] = _meet(clusters, a, b, j)
            continue
        clusters.low[a, j] = min(clusters.low[a, j], clusters.low[b, j])
        clusters.high[a, j] = max(clusters.high[a, j], clusters.high[b, j])
        clusters.gap[a, j] |= clusters.gap[b, j]

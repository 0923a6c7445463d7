"""CASTLE: tuples cluster as they arrive; a cluster leaves when its oldest tuple is due (Cao et al. 2011).

Names are the paper's: Γ are the clusters not yet released, Ω the released boxes, τ the usual loss of a released
cluster, β the most clusters in Γ, μ how many released clusters make τ.
"""

from typing import NamedTuple

import numpy as np

from shoal.kernels.compile import bare, kernel
from shoal.kernels.delay.castle_split import split, stretch
from shoal.kernels.delay.held import count_arrival, horizon_of, is_due, refresh
from shoal.kernels.delay.published import HELD, WITHHELD, ZERO, Horizon, cheapest, release_again, release_group
from shoal.kernels.delay.stream_boxes import box_of
from shoal.kernels.shared.promises import holds


class Gamma(NamedTuple):
    """At most β clusters."""

    alive: np.ndarray  # bool[β]
    people: np.ndarray  # int64[β]
    loss: np.ndarray  # float64[β]
    low: np.ndarray  # float64[β, q]: scaled, above high if it has no number
    high: np.ndarray  # float64[β, q]
    gap: np.ndarray  # bool[β, q]: a number is missing
    level: np.ndarray  # int64[β, q]
    node: np.ndarray  # int64[β, q, L]: the path of a member
    cost: np.ndarray  # float64[β, q, L]
    recent: np.ndarray  # float64[μ]: losses of the latest released clusters
    count: np.ndarray  # int64[3]: clusters ever released, tuples arrived, salt


@kernel
def castle(tuples, prints, rules, work, published, released, counts, gamma, mark, clock, finish):
    """Run CASTLE over events; ``mark`` is the cluster of each held tuple. O(β x columns + δ) per tuple."""
    n = mark.shape[0]
    head = ZERO
    rows = np.empty(n, np.int64)
    known = ZERO  # tuples before this one have arrived
    while known < n and mark[known] >= 0:
        known += 1
    for at in range(clock.number.shape[0]):
        row = clock.row[at]
        if row >= 0:
            count_arrival(rules, counts, row)
            gamma.count[1] += 1
            known = row + 1
            _insert(tuples, prints, gamma, mark, released.box, head, row)
        last = finish and at == clock.number.shape[0] - 1
        while head < known and (released.box[head] != HELD or last or is_due(clock, head, at)):
            if released.box[head] == HELD:
                refresh(rules, counts)
                released.count[2] = clock.number[at]
                horizon = horizon_of(clock, at, gamma.count[1])
                _expire(tuples, prints, rules, work, published, horizon, released, gamma, mark, head, known, rows)
                released.count[1] += 1
            head += 1


@bare
def _enlarged(tree, weight, scaled, path, gamma, c, row):
    """The loss of cluster c with a tuple in it. O(columns x levels)."""
    total = 0.0
    for j in range(tree.shape[0]):
        if tree[j]:
            at = gamma.level[c, j]
            while gamma.node[c, j, at] != path[row, j, at]:
                at += 1
            total += gamma.cost[c, j, at]
            continue
        low = gamma.low[c, j]
        high = gamma.high[c, j]
        gap = gamma.gap[c, j]
        value = scaled[row, j]
        if value < 0:
            gap = True
        else:
            low = min(low, value)
            high = max(high, value)
        if low <= high:
            total += weight[j] if gap else high - low
    return total


@bare
def _insert(tuples, prints, gamma, mark, box, head, row):
    """best_selection: the cluster that grows least; a new one if it would lose more than τ and there is room."""
    tree, weight, scaled, path = tuples.tree, tuples.weight, tuples.scaled, tuples.node
    tau = _tau(gamma)
    room = -1
    least = 1e9
    best = -1  # of those that grow least, the smallest; of these, one within τ goes first
    fine = -1
    for c in range(gamma.alive.shape[0]):
        if not gamma.alive[c]:
            if room < 0:
                room = c
            continue
        loss = _enlarged(tree, weight, scaled, path, gamma, c, row)
        grown = loss - gamma.loss[c]
        if grown < least - 1e-12:
            least = grown
            best = -1
            fine = -1
        if grown <= least + 1e-12:
            if best < 0 or gamma.people[c] < gamma.people[best]:
                best = c
            if loss <= tau and (fine < 0 or gamma.people[c] < gamma.people[fine]):
                fine = c
    chosen = fine
    if chosen < 0:
        chosen = room if room >= 0 else best
    if not gamma.alive[chosen]:
        _found(tuples, gamma, chosen, row)
    else:
        _widen(tree, scaled, path, gamma, chosen, row)
        gamma.loss[chosen] = _enlarged(tree, weight, scaled, path, gamma, chosen, row)
    if not _has(prints, mark, box, head, row, chosen, prints[row]):
        gamma.people[chosen] += 1
    mark[row] = chosen


@bare
def _tau(gamma):
    known = min(gamma.count[0], gamma.recent.shape[0])
    total = 0.0
    for z in range(known):
        total += gamma.recent[z]
    return total / max(1, known)


@bare
def _found(tuples, gamma, c, row):
    gamma.alive[c] = True
    gamma.people[c] = 0
    gamma.loss[c] = 0.0
    for j in range(tuples.tree.shape[0]):
        value = tuples.scaled[row, j]
        gamma.gap[c, j] = value < 0
        gamma.low[c, j] = value if value >= 0 else np.inf
        gamma.high[c, j] = value if value >= 0 else -np.inf
        gamma.level[c, j] = 0
        for level in range(tuples.node.shape[2]):
            gamma.node[c, j, level] = tuples.node[row, j, level]
            gamma.cost[c, j, level] = tuples.cost[row, j, level]


@bare
def _widen(tree, scaled, path, gamma, c, row):
    for j in range(tree.shape[0]):
        if tree[j]:
            while gamma.node[c, j, gamma.level[c, j]] != path[row, j, gamma.level[c, j]]:
                gamma.level[c, j] += 1
        elif scaled[row, j] < 0:
            gamma.gap[c, j] = True
        else:
            gamma.low[c, j] = min(gamma.low[c, j], scaled[row, j])
            gamma.high[c, j] = max(gamma.high[c, j], scaled[row, j])


@bare
def _has(prints, mark, box, start, stop, c, person):
    """Whether someone has a held tuple in cluster c."""
    for r in range(start, stop):
        if mark[r] == c and box[r] == HELD and prints[r] == person:
            return True
    return False


@kernel
def _expire(tuples, prints, rules, work, published, horizon, released, gamma, mark, row, known, rows):
    """delay_constraint: release its cluster, or the tuple with a box of Ω, or merged clusters; else withhold it."""
    own = mark[row]
    count = _members(mark, released.box, row, known, own, rows, ZERO)
    if holds(rules, rows, ZERO, count, work):
        _output(tuples, prints, rules, work, published, horizon, released, gamma, rows, count)
        gamma.alive[own] = False
        return
    one = np.full(1, row, np.int64)
    slot = np.full(1, -1, np.int64)
    if horizon.usable:
        cheapest(tuples, prints, rules, work, published, horizon, row, row + 1, slot)
        if release_again(tuples, prints, rules, work, published, horizon, released, one, slot, ZERO + 1) > 0:
            _leave(prints, gamma, mark, released.box, row, known, own)
            return
    larger = 0
    clusters = 0
    for c in range(gamma.alive.shape[0]):
        if gamma.alive[c]:
            clusters += 1
            if gamma.people[c] > gamma.people[own]:
                larger += 1
    if 2 * larger <= clusters:  # else the tuple is an outlier: merging would cost many for one
        count = _merge(tuples, rules, work, released.box, gamma, mark, row, known, own, rows)
        if count > 0:
            _output(tuples, prints, rules, work, published, horizon, released, gamma, rows, count)
            for c in range(gamma.alive.shape[0]):
                if gamma.people[c] < 0:
                    gamma.alive[c] = False
            return
    released.box[row] = WITHHELD
    _leave(prints, gamma, mark, released.box, row, known, own)


@bare
def _members(mark, box, start, stop, c, rows, count):
    """Append the held tuples of cluster c."""
    for r in range(start, stop):
        if mark[r] == c and box[r] == HELD:
            rows[count] = r
            count += 1
    return count


@bare
def _leave(prints, gamma, mark, box, row, known, c):
    """A tuple left its cluster alone."""
    if not _has(prints, mark, box, row, known, c, prints[row]):
        gamma.people[c] -= 1
    if gamma.people[c] == 0:
        gamma.alive[c] = False


@kernel
def _merge(tuples, rules, work, box, gamma, mark, row, known, own, rows):
    """merge_clusters: add the cluster that costs least until every promise holds; 0 and no change if none is enough.

    Merged clusters are left with -1 people. O(δ x columns) for the boxes, O(β x columns x levels) per cluster added.
    """
    tree, scaled, path = tuples.tree, tuples.scaled, tuples.node
    q = tree.shape[0]
    clusters = gamma.alive.shape[0]
    low = np.full((clusters, q), np.inf)
    high = np.full((clusters, q), -np.inf)
    gap = np.zeros((clusters, q), np.bool_)
    level = np.zeros((clusters, q), np.int64)
    first = np.full(clusters, -1, np.int64)  # a member; the boxes are those of who is still held
    for r in range(row, known):
        if box[r] == HELD:
            if first[mark[r]] < 0:
                first[mark[r]] = r
            stretch(tree, scaled, path, low, high, gap, level, first, mark[r], r)
    merged = np.zeros(clusters, np.bool_)
    merged[own] = True
    count = _members(mark, box, row, known, own, rows, ZERO)
    while not holds(rules, rows, ZERO, count, work):
        best = -1
        least = np.inf
        for c in range(clusters):
            if gamma.alive[c] and not merged[c]:
                loss = _together(tuples, low, high, gap, level, first, own, c)
                if loss < least:
                    least = loss
                    best = c
        if best < 0:
            return ZERO
        merged[best] = True
        _unite(tree, path, low, high, gap, level, first, own, best)
        count = _members(mark, box, row, known, best, rows, count)
    for c in range(clusters):
        if merged[c]:
            gamma.people[c] = -1
    return count


@bare
def _meet(path, level, first, a, b, j):
    """The lowest level of column j at which clusters a and b share a node."""
    at = max(level[a, j], level[b, j])
    while path[first[a], j, at] != path[first[b], j, at]:
        at += 1
    return at


@bare
def _together(tuples, low, high, gap, level, first, a, b):
    """The loss of one box around clusters a and b. O(columns x levels)."""
    total = 0.0
    for j in range(tuples.tree.shape[0]):
        if tuples.tree[j]:
            total += tuples.cost[first[a], j, _meet(tuples.node, level, first, a, b, j)]
            continue
        least = min(low[a, j], low[b, j])
        most = max(high[a, j], high[b, j])
        if least <= most:
            total += tuples.weight[j] if gap[a, j] or gap[b, j] else most - least
    return total


@bare
def _unite(tree, path, low, high, gap, level, first, a, b):
    """Cluster a takes in cluster b."""
    for j in range(tree.shape[0]):
        if tree[j]:
            level[a, j] = _meet(path, level, first, a, b, j)
            continue
        low[a, j] = min(low[a, j], low[b, j])
        high[a, j] = max(high[a, j], high[b, j])
        gap[a, j] |= gap[b, j]


@kernel
def _output(tuples, prints, rules, work, published, horizon, released, gamma, rows, count):
    """output_cluster: split what is large enough, release the parts, and note their losses in τ."""
    label = np.zeros(count, np.int64)
    parts = split(tuples, prints, rules, work, rows, count, gamma.count[2], label)
    part = np.empty(count, np.int64)
    q = tuples.tree.shape[0]
    low = np.empty(q)
    high = np.empty(q)
    level = np.empty(q, np.int8)
    node = np.empty(q, np.int64)
    for p in range(parts):
        size = ZERO
        for z in range(count):
            if label[z] == p:
                part[size] = rows[z]
                size += 1
        loss = box_of(tuples, part, ZERO, size, low, high, level, node)
        gamma.recent[gamma.count[0] % gamma.recent.shape[0]] = loss
        gamma.count[0] += 1
        keep = Horizon(horizon.usable and loss < _tau(gamma), horizon.now, horizon.since)
        if not release_group(tuples, prints, rules, work, published, keep, released, part, size):
            for z in range(size):
                released.box[part[z]] = WITHHELD

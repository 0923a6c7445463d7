"""CASTLE: tuples cluster as they arrive; a cluster leaves when its oldest tuple is due (Cao et al. 2011).

Names are the paper's: Γ are the clusters not yet released, Ω the released boxes, τ the usual loss of a released
cluster, β the most clusters in Γ, μ how many released clusters make τ.
"""

from typing import NamedTuple

import numpy as np

from shoal.kernels.compile import bare, kernel
from shoal.kernels.delay.castle_clusters import clusters_of, dissolve, has, join, leave, members, merge
from shoal.kernels.delay.castle_pieces import pieces
from shoal.kernels.delay.castle_split import split
from shoal.kernels.delay.held import count_arrival, horizon_of, is_due, refresh
from shoal.kernels.delay.published import HELD, WITHHELD, ZERO, Horizon, cheapest, release_again, release_group
from shoal.kernels.delay.stream_boxes import box_of
from shoal.kernels.shared.promises import holds


class Gamma(NamedTuple):
    """At most β clusters, column by column: every tuple is held against all of them, many at a time."""

    alive: np.ndarray  # bool[β]
    people: np.ndarray  # int64[β]
    loss: np.ndarray  # float64[β]
    low: np.ndarray  # float64[q, β]: scaled, above high if it has no number
    high: np.ndarray  # float64[q, β]
    gap: np.ndarray  # bool[q, β]: a number is missing
    level: np.ndarray  # int64[q, β]
    node: np.ndarray  # int64[q, L, β]: the path of a member
    recent: np.ndarray  # float64[μ]: losses of the latest released clusters
    count: np.ndarray  # int64[4]: clusters ever released, tuples arrived, salt, slots that were ever used


class Limits(NamedTuple):
    """How large things may grow, so that no call takes long."""

    most: int  # a cluster of so many tuples leaves at once
    piece: int  # a cluster of more tuples is cut before it is split


class Room(NamedTuple):
    """Space for one call: members as rows; per cluster the loss with one more tuple, in all and of one column."""

    rows: np.ndarray  # int64[n]
    loss: np.ndarray  # float64[β]
    part: np.ndarray  # float64[β]


@kernel
def castle(tuples, prints, rules, work, published, released, counts, gamma, hulls, mark, clock, limits, finish):
    """Run CASTLE over events; ``mark`` is the cluster of each held tuple.

    O(β x columns + members) per tuple, O(δ + β) per call.
    """
    n = mark.shape[0]
    size = gamma.alive.shape[0]
    head = ZERO
    room = Room(np.empty(n, np.int64), np.zeros(size), np.zeros(size))
    known = ZERO  # tuples before this one have arrived
    while known < n and mark[known] >= 0:
        known += 1
    clusters = clusters_of(mark, released.box, known, hulls)
    single = rules.people == n  # nobody comes twice
    for at in range(clock.number.shape[0]):
        row = clock.row[at]
        if row >= 0:
            count_arrival(rules, counts, row)
            gamma.count[1] += 1
            known = row + 1
            chosen = _insert(tuples, prints, gamma, clusters, room, row, single)
            mark[row] = chosen
            # what a large cluster gains by waiting is little, and to split it later would be a long pause
            if clusters.size[chosen] % limits.most == 0:
                _open(rules, counts, released, clock, at)
                horizon = horizon_of(clock, at, gamma.count[1])
                _whole(
                    tuples,
                    prints,
                    rules,
                    work,
                    published,
                    horizon,
                    released,
                    gamma,
                    clusters,
                    chosen,
                    limits,
                    room.rows,
                )
        last = finish and at == clock.number.shape[0] - 1
        while head < known and (released.box[head] != HELD or last or is_due(clock, head, at)):
            if released.box[head] == HELD:
                _open(rules, counts, released, clock, at)
                horizon = horizon_of(clock, at, gamma.count[1])
                own = mark[head]
                _expire(
                    tuples,
                    prints,
                    rules,
                    work,
                    published,
                    horizon,
                    released,
                    gamma,
                    clusters,
                    own,
                    head,
                    limits,
                    room.rows,
                )
            head += 1


@bare
def _open(rules, counts, released, clock, at):
    """An emission begins."""
    refresh(rules, counts)
    released.count[1] += 1
    released.count[2] = clock.number[at]


@bare
def _enlarge(tuples, gamma, row, slots, loss, part):
    """``loss[c]``: that of cluster c with a tuple in it, for the first ``slots``. O(slots x columns x levels)."""
    for c in range(slots):
        loss[c] = 0.0
    for j in range(tuples.tree.shape[0]):
        if tuples.tree[j]:
            _meet(tuples, gamma.node[j], gamma.level[j], row, j, slots, part)
        else:
            _hull(gamma.low[j], gamma.high[j], gamma.gap[j], tuples.scaled[row, j], tuples.weight[j], slots, part)
        for c in range(slots):
            loss[c] += part[c]


@bare
def _meet(tuples, node, level, row, j, slots, part):
    """Per cluster the loss of the lowest node of column j, at its level or above it, that a tuple lies under."""
    top = tuples.depth[j] - 1
    whole = tuples.cost[row, j, top]
    for c in range(slots):
        part[c] = whole
    for z in range(top):
        at = top - 1 - z
        here = node[at]
        wanted = tuples.node[row, j, at]
        cost = tuples.cost[row, j, at]
        for c in range(slots):
            part[c] = cost if (here[c] == wanted) & (level[c] <= at) else part[c]


@bare
def _hull(low, high, gap, value, weight, slots, part):
    """Per cluster the loss of a column of numbers with one more of them, below 0 if it is missing."""
    if value < 0:
        for c in range(slots):
            part[c] = weight if low[c] <= high[c] else 0.0
        return
    for c in range(slots):
        wide = max(high[c], value) - min(low[c], value)
        part[c] = weight if gap[c] else wide


@bare
def _insert(tuples, prints, gamma, clusters, room, row, single):
    """best_selection: the cluster that grows least; a new one if it would lose more than τ and there is room."""
    tau = _tau(gamma)
    slots = gamma.count[3]
    losses = room.loss
    _enlarge(tuples, gamma, row, slots, losses, room.part)
    free = slots if slots < gamma.alive.shape[0] else ZERO - 1
    least = 1e9
    best = ZERO - 1  # of those that grow least, the smallest; of these, one within τ goes first
    fine = ZERO - 1
    for c in range(slots):
        if not gamma.alive[c]:
            if free < 0 or c < free:
                free = ZERO + c
            continue
        grown = losses[c] - gamma.loss[c]
        if grown > least + 1e-12:
            continue
        if grown < least - 1e-12:
            least = grown
            best = ZERO - 1
            fine = ZERO - 1
        if best < 0 or gamma.people[c] < gamma.people[best]:
            best = ZERO + c
        if losses[c] <= tau and (fine < 0 or gamma.people[c] < gamma.people[fine]):
            fine = ZERO + c
    chosen = fine
    if chosen < 0:
        chosen = free if free >= 0 else best
    if chosen == slots or not gamma.alive[chosen]:
        _found(tuples, gamma, chosen, row)
    else:
        _widen(tuples.tree, tuples.scaled, tuples.node, gamma, chosen, row)
        gamma.loss[chosen] = losses[chosen]
    if single or not has(prints, clusters, chosen, prints[row]):
        gamma.people[chosen] += 1
    join(tuples, clusters, chosen, row)
    return chosen


@bare
def _tau(gamma):
    known = min(gamma.count[0], gamma.recent.shape[0])
    total = 0.0
    for z in range(known):
        total += gamma.recent[z]
    return total / max(1, known)


@bare
def _found(tuples, gamma, c, row):
    gamma.count[3] = max(gamma.count[3], c + 1)
    gamma.alive[c] = True
    gamma.people[c] = 0
    gamma.loss[c] = 0.0
    for j in range(tuples.tree.shape[0]):
        value = tuples.scaled[row, j]
        gamma.gap[j, c] = value < 0
        gamma.low[j, c] = value if value >= 0 else np.inf
        gamma.high[j, c] = value if value >= 0 else -np.inf
        gamma.level[j, c] = 0
        for level in range(tuples.node.shape[2]):
            gamma.node[j, level, c] = tuples.node[row, j, level]


@bare
def _widen(tree, scaled, path, gamma, c, row):
    for j in range(tree.shape[0]):
        if tree[j]:
            while gamma.node[j, gamma.level[j, c], c] != path[row, j, gamma.level[j, c]]:
                gamma.level[j, c] += 1
        elif scaled[row, j] < 0:
            gamma.gap[j, c] = True
        else:
            gamma.low[j, c] = min(gamma.low[j, c], scaled[row, j])
            gamma.high[j, c] = max(gamma.high[j, c], scaled[row, j])


@kernel
def _whole(tuples, prints, rules, work, published, horizon, released, gamma, clusters, own, limits, rows):
    """Release a cluster, if it keeps every promise; whether it did."""
    count = members(clusters, own, rows, ZERO)
    if not holds(rules, rows, ZERO, count, work):
        return False
    _output(tuples, prints, rules, work, published, horizon, released, gamma, rows, count, limits.piece)
    gamma.alive[own] = False
    dissolve(clusters, own)
    return True


@kernel
def _expire(tuples, prints, rules, work, published, horizon, released, gamma, clusters, own, row, limits, rows):
    """delay_constraint: release its cluster, or the tuple with a box of Ω, or merged clusters; else withhold it."""
    if _whole(tuples, prints, rules, work, published, horizon, released, gamma, clusters, own, limits, rows):
        return
    one = np.full(1, row, np.int64)
    slot = np.full(1, -1, np.int64)
    if horizon.usable:
        cheapest(tuples, prints, rules, work, published, horizon, row, row + 1, slot)
        if release_again(tuples, prints, rules, work, published, horizon, released, one, slot, ZERO + 1) > 0:
            _leave(prints, gamma, clusters, own, row)
            return
    larger = 0
    alive = 0
    for c in range(gamma.count[3]):
        if gamma.alive[c]:
            alive += 1
            if gamma.people[c] > gamma.people[own]:
                larger += 1
    if 2 * larger <= alive:  # else the tuple is an outlier: merging would cost many for one
        count = merge(tuples, rules, work, gamma.alive, gamma.people, clusters, own, rows)
        if count > 0:
            _output(tuples, prints, rules, work, published, horizon, released, gamma, rows, count, limits.piece)
            for c in range(gamma.count[3]):
                if gamma.alive[c] and gamma.people[c] < 0:
                    gamma.alive[c] = False
                    dissolve(clusters, c)
            return
    released.box[row] = WITHHELD
    _leave(prints, gamma, clusters, own, row)


@bare
def _leave(prints, gamma, clusters, c, row):
    """The oldest tuple left its cluster alone."""
    leave(clusters, c)
    if not has(prints, clusters, c, prints[row]):
        gamma.people[c] -= 1
    if gamma.people[c] == 0:
        gamma.alive[c] = False


@kernel
def _output(tuples, prints, rules, work, published, horizon, released, gamma, rows, count, piece):
    """output_cluster: split what is large enough, release the parts, and note their losses in τ."""
    label = np.zeros(count, np.int64)
    ends = pieces(tuples, rules, work, rows, count, piece)
    parts = ZERO
    start = ZERO
    for end in ends:
        some = label[start:end]
        more = split(tuples, prints, rules, work, rows[start:end], end - start, gamma.count[2], some)
        some += parts
        parts += more
        start = end
    order = np.argsort(label, kind="mergesort")
    part = np.empty(count, np.int64)
    q = tuples.tree.shape[0]
    low = np.empty(q)
    high = np.empty(q)
    level = np.empty(q, np.int8)
    node = np.empty(q, np.int64)
    at = ZERO
    for p in range(parts):
        size = ZERO
        while at < count and label[order[at]] == p:
            part[size] = rows[order[at]]
            size += 1
            at += 1
        loss = box_of(tuples, part, ZERO, size, low, high, level, node)
        gamma.recent[gamma.count[0] % gamma.recent.shape[0]] = loss
        gamma.count[0] += 1
        keep = Horizon(horizon.usable and loss < _tau(gamma), horizon.now, horizon.since)
        if not release_group(tuples, prints, rules, work, published, keep, released, part, size):
            for z in range(size):
                released.box[part[z]] = WITHHELD

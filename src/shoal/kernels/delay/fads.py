"""FADS: a due tuple leaves with its k - 1 nearest, or with a published box that costs less (Guo and Zhang 2013)."""

from typing import NamedTuple

import numpy as np

from shoal.kernels.compile import bare, kernel
from shoal.kernels.delay.castle_split import stretch
from shoal.kernels.delay.held import count_arrival, horizon_of, is_due, refresh
from shoal.kernels.delay.near import BLOCK, add_to, closest, goes_on, sketch_of
from shoal.kernels.delay.published import HELD, WITHHELD, ZERO, cheapest, release_again, release_group, retire
from shoal.kernels.shared.heap import drop
from shoal.kernels.shared.promises import holds

BESIDE = 64  # tuples looked at beyond k, for those of people who come again
SPARED = 1024  # a group of more tuples is judged only when it has grown by a 32nd: else a hard promise costs the square


class Room(NamedTuple):
    """Space for one call."""

    rows: np.ndarray  # int64[n]: a group
    near: np.ndarray  # float64[n + BLOCK]: the heap of who is near
    number: np.ndarray  # int64[n + BLOCK]
    seen: np.ndarray  # int64[people]: the turn in which a person was last seen
    turn: np.ndarray  # int64[1]
    low: np.ndarray  # float64[1, q]: the box of a group, numbers scaled
    high: np.ndarray  # float64[1, q]
    gap: np.ndarray  # bool[1, q]
    level: np.ndarray  # int64[1, q]


@kernel
def sketched(tuples, box, sketch, left, known):
    """The sketch brought up to date, or a new one: see :func:`goes_on`. ``known`` below 0: there was none."""
    if known < 0 or not goes_on(sketch, box, left, known):
        return sketch_of(tuples, box)
    add_to(tuples, sketch, known)
    return sketch


@kernel
def fads(tuples, prints, rules, work, published, released, counts, seq, clock, fresh, sketch, finish):
    """Run FADS over events. O(δ) per call, per due tuple what is near it and k log k.

    ``sketch`` has all held tuples; it is not looked at if nothing is due.
    """
    n, q = released.box.shape[0], tuples.tree.shape[0]
    head = ZERO
    known = ZERO + fresh
    if not finish and not any_due(released.box, clock):
        for at in range(clock.number.shape[0]):
            if clock.row[at] >= 0:
                count_arrival(rules, counts, clock.row[at])
                seq[0] += 1
        return
    room = Room(
        np.empty(n, np.int64),
        np.empty(n + BLOCK),
        np.empty(n + BLOCK, np.int64),
        np.zeros(rules.people, np.int64),
        np.zeros(1, np.int64),
        np.empty((1, q)),
        np.empty((1, q)),
        np.empty((1, q), np.bool_),
        np.empty((1, q), np.int64),
    )
    for at in range(clock.number.shape[0]):
        row = clock.row[at]
        if row >= 0:
            count_arrival(rules, counts, row)
            seq[0] += 1
            known = row + 1
        last = finish and at == clock.number.shape[0] - 1
        # tuples are due in the order in which they came, so one pointer is enough
        while head < known and (released.box[head] != HELD or last or is_due(clock, head, at)):
            if released.box[head] == HELD:
                refresh(rules, counts)
                released.count[2] = clock.number[at]
                horizon = horizon_of(clock, at, seq[0])
                _publish(tuples, prints, rules, work, published, horizon, released, sketch, head, known, room)
                released.count[1] += 1
            head += 1


@kernel
def any_due(box, clock):
    """Whether the oldest held tuple must leave at one of the events; whoever came later is due later."""
    for row in range(box.shape[0]):
        if box[row] == HELD:
            return is_due(clock, row, clock.number.shape[0] - 1)
    return False


@kernel
def _publish(tuples, prints, rules, work, published, horizon, released, sketch, row, known, room):
    """Release the tuple with the cheaper of a published box and its nearest held tuples; withhold it if neither is."""
    one = np.full(1, row, np.int64)
    slot = np.full(1, -1, np.int64)
    if horizon.usable:
        retire(tuples, published, horizon.since)
        cheapest(tuples, prints, rules, work, published, horizon, row, row + 1, slot)
    # a box around the tuple and another costs at least as much as the two are apart: whoever is farther than a
    # published box costs cannot be of a group that is cheaper
    reach = published.loss[slot[0]] if slot[0] >= 0 else np.inf
    count = _nearest(tuples, sketch, rules, work, released.box, row, known, reach, room)
    # a new group serves others, too, but the paper lets the due tuple alone decide
    if count > 0:
        if release_group(tuples, prints, rules, work, published, horizon, released, room.rows, count):
            return
    if slot[0] >= 0:
        if release_again(tuples, prints, rules, work, published, horizon, released, one, slot, ZERO + 1) > 0:
            return
        # the box was refused in the meantime: better a dearer group than nothing
        count = _nearest(tuples, sketch, rules, work, released.box, row, known, np.inf, room)
    if count == 0 or not release_group(tuples, prints, rules, work, published, horizon, released, room.rows, count):
        released.box[row] = WITHHELD


@kernel
def _nearest(tuples, sketch, rules, work, box, row, known, reach, room):
    """The tuple and its nearest held tuples of other people, until every promise holds.

    Their number; 0 if their box would lose ``reach`` or more, or there are not enough.
    """
    if reach <= 0.0:
        return ZERO
    rows, seen = room.rows, room.seen
    most = rules.k + BESIDE
    while True:
        left, within = closest(tuples, sketch, box, row, known, reach, most, room.near, room.number)
        rows[0] = row
        count = ZERO + 1
        judged = ZERO + rules.k
        room.turn[0] += 1
        seen[rules.person[row]] = room.turn[0]
        _begin_box(tuples, room, row)
        while True:
            # where others could still come, who is at hand must not decide where to judge: it hangs on the sketch
            if count >= judged or (left == 0 and within == reach and count >= rules.k):
                if holds(rules, rows, ZERO, count, work):
                    return count
                judged = count + (count // 32 if count > SPARED else 1)
            if left == 0:
                break
            best = room.number[0]
            left = drop(room.near, room.number, left)
            # a second tuple of a person adds nobody to the crowd
            if seen[rules.person[best]] != room.turn[0]:
                seen[rules.person[best]] = room.turn[0]
                rows[count] = best
                count += 1
                # a box only grows: what it loses already, it loses with whoever comes still
                if reach < np.inf and _grown(tuples, room, best) >= reach:
                    return ZERO
        if within == reach:  # there are no others
            return ZERO
        most *= 4


@bare
def _begin_box(tuples, room, row):
    for j in range(tuples.tree.shape[0]):
        room.low[0, j] = np.inf
        room.high[0, j] = -np.inf
        room.gap[0, j] = False
        room.level[0, j] = 0
    stretch(tuples.tree, tuples.scaled, tuples.node, room.low, room.high, room.gap, room.level, room.rows, ZERO, row)


@bare
def _grown(tuples, room, row):
    """The loss of the box of a group with one more member, summed as :func:`box_of` does. O(columns)."""
    stretch(tuples.tree, tuples.scaled, tuples.node, room.low, room.high, room.gap, room.level, room.rows, ZERO, row)
    loss = 0.0
    for j in range(tuples.tree.shape[0]):
        if tuples.tree[j]:
            loss += tuples.cost[room.rows[0], j, room.level[0, j]]
        elif room.low[0, j] <= room.high[0, j]:
            loss += tuples.weight[j] if room.gap[0, j] else room.high[0, j] - room.low[0, j]
    return loss

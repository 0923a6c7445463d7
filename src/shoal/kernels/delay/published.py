"""Boxes that were published and who got them; and the only two ways a tuple of a stream is released.

:func:`release_group` releases tuples together, :func:`release_again` releases one tuple with a box published before.
Both check every promise first and release nothing otherwise. No other kernel writes ``Released.box``.

Which boxes may contain a tuple is read off bitsets: one bit per box, for each of 64 cells of a number's domain and
for each level and 64 hashes of a path's nodes. What they let through is then checked exactly.
"""

from typing import NamedTuple

import numpy as np

from shoal.kernels.compile import bare, kernel
from shoal.kernels.delay.crowds import (
    SEVERAL,
    admits,
    count_values,
    crowd_since,
    first_crowd,
    note_values,
    nothing,
    rank,
    use,
)
from shoal.kernels.delay.stream_boxes import HULL, MISSING, box_of, covers
from shoal.kernels.shared.promises import DISTINCT, T_EQUAL, holds, is_void, judge_counts, people_in

CELLS = 64
HELD, WITHHELD, LEFT = -1, -2, -3  # the last: it left before and still has its place
ZERO = np.int64(0)  # typed, because a literal would compile every kernel once more
_ZERO, _ONE, _MULTIPLY, _SHIFT = np.uint64(0), np.uint64(1), np.uint64(0x03F79D71B4CB0A89), np.uint64(58)
_PLACE = np.zeros(64, np.int64)
for _z in range(64):
    _PLACE[((0x03F79D71B4CB0A89 << _z) & (2**64 - 1)) >> 58] = _z


class Published(NamedTuple):
    """At most R boxes, each with the last people who got it, at most K of them."""

    low: np.ndarray  # float64[R, q]
    high: np.ndarray  # float64[R, q]
    level: np.ndarray  # int8[R, q]
    node: np.ndarray  # int64[R, q]
    loss: np.ndarray  # float64[R]
    alive: np.ndarray  # bool[R]
    person: np.ndarray  # int64[R, K]: fingerprints, 0 for none
    stamp: np.ndarray  # int64[R, K]: when they last got it
    value: np.ndarray  # int32[R, K, s]: with which sensitive values; SEVERAL if there were different ones
    tally: np.ndarray  # int32[R, s, values]: of all who ever got it; one row only if no promise needs it
    last: np.ndarray  # int64[R]: last use
    kth: np.ndarray  # int64[R]: the use by the k-th latest person
    cells: np.ndarray  # uint64[q, CELLS + 1, R / 64]; the last cell is for missing numbers
    branches: np.ndarray  # uint64[q, L, CELLS, R / 64]
    words: np.ndarray  # int64[3]: words of a bitset in use; below which slot all are in use; whether people come again
    named: np.ndarray  # int64[R]: its number in ``Released``, -1 if it was not released with since the last push


class Released(NamedTuple):
    """What became of n tuples, and the boxes they were released with."""

    box: np.ndarray  # int64[n]: HELD, WITHHELD, LEFT, or the number of its box
    when: np.ndarray  # int64[n]: number of the emission
    low: np.ndarray  # float64[n, q]
    high: np.ndarray  # float64[n, q]
    level: np.ndarray  # int8[n, q]
    node: np.ndarray  # int64[n, q]
    loss: np.ndarray  # float64[n]
    people: np.ndarray  # int64[n]: how many people each tuple hides among, at once or within the horizon
    again: np.ndarray  # bool[n]: released with a box published before
    cause: np.ndarray  # int64[n]: number of the event that caused the release
    slot: np.ndarray  # int64[n]: of a box published before, its slot when it was used again; another may be there since
    count: np.ndarray  # int64[3]: boxes, emissions, number of the event being answered


class Horizon(NamedTuple):
    """How long a published box stays usable: the k-th latest person must have got it after ``since``."""

    usable: bool
    now: int
    since: int


@kernel
def release_group(tuples, prints, rules, work, published, horizon, released, members, count):
    """Release ``members[:count]`` with their common box, if every promise holds; whether it did.

    The box may be used again within the horizon. O(members x columns), and O(R) to keep it.
    """
    if not holds(rules, members, ZERO, count, work):
        return False
    b = released.count[0]
    released.count[0] += 1
    released.loss[b] = box_of(
        tuples, members, ZERO, count, released.low[b], released.high[b], released.level[b], released.node[b]
    )
    people = people_in(rules, members, ZERO, count, work)
    for m in range(count):
        row = members[m]
        released.box[row] = b
        released.when[row] = released.count[1]
        released.people[row] = people
        released.again[row] = False
        released.cause[row] = released.count[2]
    if horizon.usable and not _forgetful(rules, published, people):
        _keep(tuples, prints, rules, work, published, horizon, released, b, members, count)
    return True


@kernel
def release_again(tuples, prints, rules, work, published, horizon, released, rows, slots, count):
    """Release each of ``rows[:count]`` with the box in its slot, if that box's crowd keeps every promise; how many.

    The others stay held. O(columns + K) per tuple.
    """
    tree, number, scaled, path = tuples.tree, tuples.number, tuples.scaled, tuples.node
    low, high, level, node = published.low, published.high, published.level, published.node
    done = 0
    for z in range(count):
        row, slot = rows[z], slots[z]
        if not horizon.usable or slot < 0 or not published.alive[slot]:
            continue
        if not covers(tree, number, scaled, path, row, low, high, level, node, slot):
            continue
        crowd = crowd_since(published.person, published.stamp, slot, horizon.since)
        if crowd < rules.k:
            continue
        if rules.kind.shape[0] > 0 and not _diverse(rules, work, published, horizon.since, slot, row, prints[row]):
            continue
        if published.named[slot] < 0:
            published.named[slot] = released.count[0]
            released.slot[released.count[0]] = slot
            _copy_box(published, slot, released, released.count[0])
            released.count[0] += 1
        released.box[row] = published.named[slot]
        released.when[row] = released.count[1]
        released.again[row] = True
        released.people[row] = crowd
        released.cause[row] = released.count[2]
        again = use(published.person, published.stamp, published.last, slot, prints[row], horizon.now)
        if rules.kind.shape[0] > 0:
            note_values(rules, published, slot, row, prints[row], again)
            count_values(rules, published, slot, row)
        rank(published.stamp, published.kth, rules.k, slot)
        done += 1
    return done


@bare
def _copy_box(published, slot, released, b):
    for j in range(published.low.shape[1]):
        released.low[b, j] = published.low[slot, j]
        released.high[b, j] = published.high[slot, j]
        released.level[b, j] = published.level[slot, j]
        released.node[b, j] = published.node[slot, j]
    released.loss[b] = published.loss[slot]


@kernel
def _diverse(rules, work, published, since, slot, row, who):
    """Whether the crowd of a box, this tuple included, keeps the promises about sensitive values.

    Where people come again, only those who are remembered can be counted once: a box that has no room to remember
    another is not given to another, and all whom it was given to are judged, each once. Where every tuple is a person,
    kinds other than distinct are judged by the tally of all it was given.
    """
    for s in range(rules.kind.shape[0]):
        if is_void(rules, s):
            continue
        if published.words[2] and not admits(published.person, slot, who):
            return False
        size = rules.size[s]
        value = rules.value[s, row]
        total = 0.0
        if not _people_diverse(rules, s, work, published, since, slot, value, who):
            return False
        if rules.kind[s] == DISTINCT or published.words[2]:
            continue
        if published.tally.shape[0] == 1 or published.tally.shape[2] < size:
            return False  # too many values to count for every box: fail closed
        for v in range(size):
            work.count[v] = published.tally[slot, s, v]
            total += work.count[v]
        work.count[value] += 1.0
        total += 1.0
        fine = judge_counts(rules, s, work.count, total, total)
        for v in range(size):
            work.count[v] = 0.0
        if not fine:
            return False
    return True


@kernel
def _people_diverse(rules, s, work, published, since, slot, value, who):
    """Whether the people remembered with a box, and ``who`` with ``value``, are diverse.

    Which values someone with several holds is forgotten, so they are counted as holders of every value; for closeness,
    where that could also help, nobody may hold several. Distinct is judged of the people within the horizon: whoever
    came before them can only add to it.
    """
    several, single = 0.0, 0.0
    known = False
    none = nothing(rules, s)
    judged = rules.kind[s] == DISTINCT or published.words[2] != 0
    for e in range(published.person.shape[1]):
        if published.person[slot, e] == 0 or (rules.kind[s] == DISTINCT and published.stamp[slot, e] <= since):
            continue
        had = published.value[slot, e, s]
        if published.person[slot, e] == who:
            known = True
            if had == none:
                had = np.int32(value)
            elif value != none and had != value:
                had = np.int32(SEVERAL)
        if had == SEVERAL:
            several += 1.0
        elif had != none:
            work.count[had] += 1.0
            single += 1.0
    if not known and value != none:
        work.count[value] += 1.0
        single += 1.0
    fine = True
    if several > 0.0 or judged:
        for v in range(rules.size[s]):
            work.count[v] += several
        total = single + several * rules.size[s]
        fine = judge_counts(rules, s, work.count, total, single + several)
        if rules.kind[s] >= T_EQUAL and several > 0.0:
            fine = False
    for v in range(rules.size[s]):
        work.count[v] = 0.0
    return fine


@kernel
def _forgetful(rules, published, people):
    """Whether so many people could not all be remembered, where that is needed to count each once."""
    if published.words[2] == 0 or people <= published.person.shape[1]:
        return False
    for s in range(rules.kind.shape[0]):
        if not is_void(rules, s):
            return True
    return False


@kernel
def _keep(tuples, prints, rules, work, published, horizon, released, b, members, count):
    slot = _free_slot(published.alive, published.last, published.words)
    if published.alive[slot]:
        forget(tuples, published, slot)
    for j in range(published.low.shape[1]):
        published.low[slot, j] = released.low[b, j]
        published.high[slot, j] = released.high[b, j]
        published.level[slot, j] = released.level[b, j]
        published.node[slot, j] = released.node[b, j]
    published.loss[slot] = released.loss[b]
    for e in range(published.person.shape[1]):
        published.person[slot, e] = 0
        published.stamp[slot, e] = -1
    if published.tally.shape[0] > 1:
        for s in range(published.tally.shape[1]):
            for v in range(published.tally.shape[2]):
                published.tally[slot, s, v] = 0
    first_crowd(rules, work, published, slot, prints, members, count, horizon.now)
    for m in range(count):
        if rules.people and rules.kind.shape[0] > 0:  # whoever has several rows in the group
            note_values(rules, published, slot, members[m], prints[members[m]], True)
        count_values(rules, published, slot, members[m])
    published.last[slot] = horizon.now
    rank(published.stamp, published.kth, rules.k, slot)
    published.alive[slot] = True
    published.named[slot] = b
    published.words[0] = max(published.words[0], slot // 64 + 1)
    _mark(tuples, published, slot, True)


@bare
def _free_slot(alive, last, words):
    """A slot without a box, else that of the box used longest ago."""
    for z in range(words[1], alive.shape[0]):
        if not alive[z]:
            words[1] = z + 1
            return z
    words[1] = alive.shape[0]
    slot = 0
    for z in range(alive.shape[0]):
        if last[z] < last[slot]:
            slot = z
    return slot


@bare
def forget(tuples, published, slot):
    """Take a box out of use."""
    published.alive[slot] = False
    published.words[1] = min(published.words[1], slot)
    _mark(tuples, published, slot, False)


@bare
def retire(tuples, published, since):
    """Forget every box whose k-th latest person got it at ``since`` or before."""
    for slot in range(min(published.words[0] * 64, published.alive.shape[0])):
        if published.alive[slot] and published.kth[slot] <= since:
            forget(tuples, published, slot)


@bare
def _cell(value, least, width):
    return min(CELLS - 1, max(0, int((value - least) / width * (CELLS - 0.01))))


@bare
def _mark(tuples, published, slot, on):
    word = slot // 64
    bit = _ONE << np.uint64(slot % 64)
    for j in range(tuples.tree.shape[0]):
        level = published.level[slot, j]
        if tuples.tree[j]:
            cell = published.node[slot, j] & (CELLS - 1)
            if on:
                published.branches[j, level, cell, word] |= bit
            else:
                published.branches[j, level, cell, word] &= ~bit
            continue
        first = 0
        last = CELLS
        if level == HULL:
            first = _cell(published.low[slot, j], tuples.least[j], tuples.width[j])
            last = _cell(published.high[slot, j], tuples.least[j], tuples.width[j])
        elif level == MISSING:
            first = CELLS
        for c in range(first, last + 1):
            if on:
                published.cells[j, c, word] |= bit
            else:
                published.cells[j, c, word] &= ~bit


@bare
def reindex(tuples, published):
    """The bitsets of all boxes anew, after a snapshot was read."""
    for slot in range(published.alive.shape[0]):
        if published.alive[slot]:
            published.words[0] = slot // 64 + 1
            _mark(tuples, published, slot, True)


@kernel
def cheapest(tuples, prints, rules, work, published, horizon, start, stop, slots):
    """The slot of the cheapest usable box that contains each of tuples start to stop; -1 if none does.

    O(R / 64 x columns) per tuple.
    """
    tree, depth, number, scaled, path = tuples.tree, tuples.depth, tuples.number, tuples.scaled, tuples.node
    low, high, level, node = published.low, published.high, published.level, published.node
    cells, branches, losses, kth = published.cells, published.branches, published.loss, published.kth
    q = tree.shape[0]
    cell = np.zeros(q, np.int64)
    for row in range(start, stop):
        best = -1
        loss = 2.0
        for j in range(q):
            if not tree[j]:
                cell[j] = CELLS
                if scaled[row, j] >= 0:
                    cell[j] = _cell(number[row, j], tuples.least[j], tuples.width[j])
        for word in range(published.words[0]):
            bits = ~_ZERO
            for j in range(q):
                if tree[j]:
                    here = _ZERO
                    for at in range(depth[j]):
                        here |= branches[j, at, path[row, j, at] & (CELLS - 1), word]
                    bits &= here
                else:
                    bits &= cells[j, cell[j], word]
                if bits == _ZERO:
                    break
            while bits != _ZERO:
                slot = word * 64 + _PLACE[((bits & (~bits + _ONE)) * _MULTIPLY) >> _SHIFT]
                bits &= bits - _ONE
                if losses[slot] >= loss or kth[slot] <= horizon.since:
                    continue
                if not covers(tree, number, scaled, path, row, low, high, level, node, slot):
                    continue
                if rules.kind.shape[0] == 0 or _diverse(rules, work, published, horizon.since, slot, row, prints[row]):
                    loss = losses[slot]
                    best = slot
        slots[row - start] = best

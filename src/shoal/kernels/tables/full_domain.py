"""A whole table at one level vector: how its rows group, which groups break a promise, and what is lost."""

from typing import NamedTuple

import numpy as np

from shoal.kernels.compile import kernel
from shoal.kernels.shared.promises import DISTINCT, T_EQUAL, count_values, holds, people_in

MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


class Nodes(NamedTuple):
    """Distinct rows, and what each level of each column makes of them.

    The cell of code c in column j at level l stands at ``offset[j] + c * depth[j] + l`` of ``codes`` and ``cost``.
    """

    tuples: np.ndarray  # int32[u, m]
    first: np.ndarray  # int64[u + 1]: rows of tuple t are first[t]:first[t + 1]
    offset: np.ndarray  # int64[m]
    depth: np.ndarray  # int64[m]
    codes: np.ndarray  # int32: the node
    cost: np.ndarray  # float64: what the cell loses, weighted
    dropped: np.ndarray  # float64[u]: what a suppressed row of each tuple loses


class Room(NamedTuple):
    """Scratch space of one search."""

    stride: np.ndarray  # uint64[m]: a tuple's key is the sum of node x stride
    exact: np.ndarray  # bool[1]: whether the nodes are the digits of the key, so that equal keys are equal nodes
    level: np.ndarray  # int64[m]: the level vector that ``keys`` stand for
    keys: np.ndarray  # uint64[u]
    key: np.ndarray  # uint64[slots]
    stamp: np.ndarray  # int64[slots]
    at_slot: np.ndarray  # int64[slots]: the group
    now: np.ndarray  # int64[1]
    group: np.ndarray  # int64[u]: the group of each tuple
    size: np.ndarray  # int64[u]: rows of each group
    sample: np.ndarray  # int64[u]: a tuple of each group
    fails: np.ndarray  # bool[u]
    start: np.ndarray  # int64[u + 1]: rows of a group
    rows: np.ndarray  # int32[n]: rows by group


class Outcome(NamedTuple):
    """What one level vector gives."""

    groups: int
    suppressed: int  # rows
    weak: int  # rows in groups that break k or distinct l: below this vector there are at least as many
    cells: float  # loss of the released cells and of the suppressed rows
    squares: float  # sum of the squared sizes of the released groups
    kept: int  # released groups


@kernel(steps=lambda nodes: 10 * nodes.offset.size)
def room_for(nodes):
    """Scratch space."""
    u, m = nodes.tuples.shape
    slots = 1024
    while slots < 2 * u:
        slots *= 2
    stride = np.ones(m, np.uint64)
    choices = 1.0
    for j in range(m):
        end = nodes.offset[j + 1] if j + 1 < m else nodes.codes.shape[0]
        values = (end - nodes.offset[j]) // nodes.depth[j]  # no level has more nodes than there are codes
        if j + 1 < m:
            stride[j + 1] = stride[j] * np.uint64(values)
        choices *= values
    exact = np.array([choices < 2.0**63])
    if not exact[0]:
        for j in range(m):
            stride[j] = MULTIPLIER * np.uint64(2 * j + 1) ^ (MULTIPLIER >> np.uint64(j % 32)) | np.uint64(1)
    return Room(
        stride,
        exact,
        np.full(m, -1, np.int64),
        np.zeros(u, np.uint64),
        np.zeros(slots, np.uint64),
        np.zeros(slots, np.int64),
        np.zeros(slots, np.int64),
        np.zeros(1, np.int64),
        np.zeros(u, np.int64),
        np.zeros(u, np.int64),
        np.zeros(u, np.int64),
        np.zeros(u, np.bool_),
        np.zeros(u + 1, np.int64),
        np.zeros(nodes.first[u], np.int32),
    )


@kernel
def group_at(nodes, level, room):
    """Group the tuples by their nodes at ``level``; how many groups. O(tuples x columns)."""
    u = nodes.tuples.shape[0]
    _move_keys(nodes, level, room)
    room.now[0] += 1
    now = room.now[0]
    mask = np.uint64(room.key.shape[0] - 1)
    exact = room.exact[0]
    groups = 0
    for t in range(u):
        key = room.keys[t]
        at = (key * MULTIPLIER >> np.uint64(32)) & mask
        while room.stamp[at] == now:
            if room.key[at] == key and (exact or _same(nodes, level, t, room.sample[room.at_slot[at]])):
                break
            at = (at + np.uint64(1)) & mask
        if room.stamp[at] != now:
            room.stamp[at] = now
            room.key[at] = key
            room.at_slot[at] = groups
            room.sample[groups] = t
            room.size[groups] = 0
            groups += 1
        g = room.at_slot[at]
        room.group[t] = g
        room.size[g] += nodes.first[t + 1] - nodes.first[t]
    return groups


@kernel
def _move_keys(nodes, level, room):
    """Bring the keys to another level vector: only columns whose level changed are looked at."""
    for j in range(level.shape[0]):
        new, old = level[j], room.level[j]
        if new == old:
            continue
        room.level[j] = new
        stride, depth, start = room.stride[j], nodes.depth[j], nodes.offset[j]
        for t in range(nodes.tuples.shape[0]):
            at = start + nodes.tuples[t, j] * depth
            node = np.uint64(nodes.codes[at + new])
            if old >= 0:
                node -= np.uint64(nodes.codes[at + old])
            room.keys[t] += node * stride


@kernel
def _same(nodes, level, a, b):
    for j in range(nodes.tuples.shape[1]):
        depth = nodes.depth[j]
        start = nodes.offset[j] + level[j]
        if nodes.codes[start + nodes.tuples[a, j] * depth] != nodes.codes[start + nodes.tuples[b, j] * depth]:
            return False
    return True


@kernel(steps=lambda nodes, rules, level, *_: 4 * nodes.tuples.size + 4 * (1 + rules.kind.size) * nodes.first[-1])
def judge_level(nodes, rules, level, room, work, limit):
    """Everything about one level vector; ``room`` then holds its groups and which of them are suppressed.

    t is judged on released rows only: after groups are suppressed the whole's distribution is taken anew, until no
    further group breaks it. Stops early once more than ``limit`` rows break k or distinct l.
    """
    groups = group_at(nodes, level, room)
    u, m = nodes.tuples.shape
    plain = rules.people == 0 and rules.kind.shape[0] == 0
    weak = 0
    if plain:
        for g in range(groups):
            room.fails[g] = room.size[g] < rules.k
            if room.fails[g]:
                weak += room.size[g]
        suppressed = weak
    else:
        _rows_by_group(nodes, room, groups)
        for g in range(groups):
            room.fails[g] = not _weakly_holds(rules, room.rows, room.start[g], room.start[g + 1], work)
            if room.fails[g]:
                weak += room.size[g]
        suppressed = weak
        if weak <= limit:
            suppressed = _suppress(rules, room, groups, work, weak)
    if suppressed > limit or suppressed == nodes.first[u]:
        return Outcome(groups, max(suppressed, limit + 1), weak, np.inf, np.inf, 0)
    cells = 0.0
    for t in range(u):
        count = nodes.first[t + 1] - nodes.first[t]
        if room.fails[room.group[t]]:
            cells += count * nodes.dropped[t]
        else:
            for j in range(m):
                cells += count * nodes.cost[nodes.offset[j] + nodes.tuples[t, j] * nodes.depth[j] + level[j]]
    squares, kept = 0.0, 0
    for g in range(groups):
        if not room.fails[g]:
            squares += float(room.size[g]) * room.size[g]
            kept += 1
    return Outcome(groups, suppressed, weak, cells, squares, kept)


@kernel
def _rows_by_group(nodes, room, groups):
    room.start[0] = 0
    for g in range(groups):
        room.start[g + 1] = room.start[g] + room.size[g]
    for t in range(nodes.tuples.shape[0]):
        g = room.group[t]
        at = room.start[g]
        for row in range(nodes.first[t], nodes.first[t + 1]):
            room.rows[at] = row
            at += 1
        room.start[g] = at
    for g in range(groups, 0, -1):
        room.start[g] = room.start[g - 1]
    room.start[0] = 0


@kernel
def _weakly_holds(rules, rows, start, stop, work):
    """k and l different values: what more rows can never break."""
    if stop - start < rules.k or people_in(rules, rows, start, stop, work) < rules.k:
        return False
    for s in range(rules.kind.shape[0]):
        if rules.kind[s] == DISTINCT:
            # of people with several values only the number of different values can never fall
            count_values(rules, s, rows, start, stop, work, work.count)
            fine = max(1, np.sum(work.count[: rules.size[s]] > 0)) >= rules.bound[s]
            for at in range(start, stop):
                work.count[rules.value[s, rows[at]]] = 0.0
            if not fine:
                return False
    return True


@kernel
def _suppress(rules, room, groups, work, suppressed):
    """Suppress every group that breaks any promise, until the released rows keep them; how many rows in all."""
    about_whole = False
    for s in range(rules.kind.shape[0]):
        about_whole = about_whole or rules.kind[s] >= T_EQUAL
    before = rules.overall.copy()
    while True:
        if about_whole and suppressed:
            _released_distribution(rules, room, groups, work)
        more = 0
        for g in range(groups):
            if not room.fails[g] and not holds(rules, room.rows, room.start[g], room.start[g + 1], work):
                room.fails[g] = True
                more += room.size[g]
        suppressed += more
        if not more or not about_whole:
            rules.overall[:] = before
            return suppressed


@kernel
def _released_distribution(rules, room, groups, work):
    released = np.empty(room.rows.shape[0], np.int32)
    count = 0
    for g in range(groups):
        if not room.fails[g]:
            for at in range(room.start[g], room.start[g + 1]):
                released[count] = room.rows[at]
                count += 1
    for s in range(rules.kind.shape[0]):
        _, holders = count_values(rules, s, released, 0, count, work, work.count)
        for v in range(rules.size[s]):
            rules.overall[s, v] = work.count[v] / max(1.0, holders)
        work.count[:] = 0.0

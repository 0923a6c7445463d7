"""A rising price over level vectors: a generalized tuple opens as soon as it is cheap enough and covers enough people.

Equal rows are one *unit*. A unit's key at a level vector is the sum of one random 64-bit number per column and node,
so it needs no bound on the number of nodes; ``keys`` holds these sums for blocks of columns. Two tuples whose keys
collide would only share a group, which breaks no promise.
"""

from typing import NamedTuple

import numpy as np

from shoal.kernels.compile import bare, kernel
from shoal.kernels.tables.local_hooks import KEPT, clear, failing, trim
from shoal.kernels.tables.local_pairs import mixed, pair_cost

LOW32 = (1 << 32) - 1


class Tree(NamedTuple):
    """Per column the levels that differ, flat: entry ``offset[j] + code * depth[j] + level``."""

    offset: np.ndarray  # int64[m]
    depth: np.ndarray  # int64[m]
    mark: np.ndarray  # int64: the random number of the node
    cost: np.ndarray  # float64: the weighted cost of the node


class Units(NamedTuple):
    """Equal rows counted once; ``rows[first[u]:first[u + 1]]`` are the rows of unit u."""

    codes: np.ndarray  # int32[units, m]
    count: np.ndarray  # int64[units]
    first: np.ndarray  # int64[units + 1]


@kernel(steps=lambda pairs, chosen, depth: 4 * (pairs.size * depth).sum())
def make_tree(pairs, chosen, depth):
    """The marks and costs of the ``chosen[j, :depth[j]]`` levels of each column. O(codes x levels)."""
    m = depth.shape[0]
    offset = np.zeros(m, np.int64)
    total = 0
    for j in range(m):
        offset[j] = total
        total += pairs.size[j] * depth[j]
    mark = np.empty(total, np.int64)
    cost = np.empty(total)
    shape = pairs.shape
    for j in range(m):
        for at in range(depth[j]):
            level = chosen[j, at]
            start = 0
            for code in range(pairs.size[j]):
                node = shape.codes[shape.offset[j] + code * shape.depth[j] + level]
                last = code + 1 == pairs.size[j]
                if not last and shape.codes[shape.offset[j] + (code + 1) * shape.depth[j] + level] == node:
                    continue
                number = np.int64(mixed(mixed(np.uint64(j * 64 + at)) + np.uint64(start)))
                price = pair_cost(pairs, j, start, code)
                for inside in range(start, code + 1):
                    mark[offset[j] + inside * depth[j] + at] = number
                    cost[offset[j] + inside * depth[j] + at] = price
                start = code + 1
    return Tree(offset, depth, mark, cost)


@kernel(steps=lambda tree, codes, first, stop, combinations: codes.shape[0] * combinations * (stop - first))
def block_keys(tree, codes, first, stop, combinations):
    """The keys of all level vectors of columns ``first`` to ``stop - 1``, the last column's level running fastest."""
    n = codes.shape[0]
    keys = np.zeros((combinations, n), np.int64)
    for number in range(combinations):
        rest = number
        for j in range(stop - 1, first - 1, -1):
            level = rest % tree.depth[j]
            rest //= tree.depth[j]
            base = tree.offset[j] + level
            for u in range(n):
                keys[number, u] += tree.mark[base + codes[u, j] * tree.depth[j]]
    return keys


@kernel(steps=lambda tree, units: units.codes.shape[0] * tree.depth.sum())
def mean_costs(tree, units):
    """Mean cost of each column at each level, over all rows: float64[m, most levels]."""
    m = tree.depth.shape[0]
    most = 1
    for j in range(m):
        most = max(most, tree.depth[j])
    out = np.zeros((m, most))
    total = max(1, units.first[-1])
    for j in range(m):
        for u in range(units.codes.shape[0]):
            base = tree.offset[j] + units.codes[u, j] * tree.depth[j]
            for level in range(tree.depth[j]):
                out[j, level] += tree.cost[base + level] * (units.count[u] / total)
    return out


class Vectors(NamedTuple):
    """Level vectors, cheapest first."""

    level: np.ndarray  # int8[v, m]
    part: np.ndarray  # int32[v, blocks]: which row of the keys each block takes
    gate: np.ndarray  # float64[v]: not looked at below this price
    best: np.ndarray  # float64[v]: the cheapest tuple that may still open


class Table(NamedTuple):
    """A hash table that empties by its stamp: the high half of ``count`` says which scan wrote it."""

    key: np.ndarray  # int64
    count: np.ndarray  # int64
    stamp: np.ndarray  # int64[1]


def _steps(keys, tree, units, vectors, alive, price, rules, plain, growing, table, work, state):
    """Each level vector whose time has come looks at all units that are left."""
    left = alive[: state.sizes[2]]
    return 4.0 * (np.maximum(vectors.gate[left], vectors.best[left]) <= price).sum() * state.sizes[1]


@kernel(steps=_steps)
def raise_price(keys, tree, units, vectors, alive, price, rules, plain, growing, table, work, state):
    """One round at one price over the ``alive`` vectors.

    ``state`` = (open: int32[units] labels, place: int32[units] the still unassigned units). Returns the number of
    groups, of unassigned units, of vectors still alive, and the least price at which another tuple may open.
    """
    label, place, slot, sizes = state.label, state.place, state.slot, state.sizes
    count = np.zeros(work.count.shape[0])
    groups, left, live = sizes[0], sizes[1], sizes[2]
    kept = 0
    following = np.inf
    for at in range(live):
        v = alive[at]
        wait = max(vectors.gate[v], vectors.best[v])
        if left == 0:
            break
        if wait > price:
            alive[kept] = v
            kept += 1
            following = min(following, wait)
            continue
        if not _count(keys, vectors.part[v], units, place, left, slot, table, rules.k):
            continue  # units only leave: nothing can ever open here again
        if plain:
            before = groups
            groups, best = _open(tree, units, vectors.level[v], place, left, slot, table, rules.k, price, label, groups)
        else:
            before = groups
            groups, best = _open_checked(
                tree,
                units,
                vectors.level[v],
                place,
                left,
                slot,
                table,
                price,
                label,
                groups,
                rules,
                growing,
                work,
                count,
            )
        if groups > before:
            remaining = 0
            for z in range(left):
                if label[place[z]] < 0:
                    place[remaining] = place[z]
                    remaining += 1
            left = remaining
        if best < np.inf:
            vectors.best[v] = best
            alive[kept] = v
            kept += 1
            following = min(following, max(vectors.gate[v], best))
    sizes[0], sizes[1], sizes[2] = groups, left, kept
    return following


class State(NamedTuple):
    """What a rising price has done so far."""

    label: np.ndarray  # int32[units]
    place: np.ndarray  # int32[units]: the unassigned units come first
    slot: np.ndarray  # int32[units]: scratch
    sizes: np.ndarray  # int64[3]: groups, unassigned units, live vectors


@bare
def _count(keys, part, units, place, left, slot, table, k):
    """Count the unassigned rows of each tuple at a level vector; whether one has k."""
    size = 1024
    while size < 2 * left:
        size *= 2
    mask = size - 1
    table.stamp[0] += 1
    stamp = table.stamp[0] << 32
    enough = False
    blocks = part.shape[0]
    one = keys[part[0]]
    two = keys[part[1 % blocks]]
    three = keys[part[2 % blocks]]
    for z in range(left):
        u = place[z]
        if blocks == 3:
            key = one[u] + two[u] + three[u]
        else:
            key = np.int64(0)
            for b in range(blocks):
                key += keys[part[b], u]
        h = (key >> 24) & mask
        while True:
            held = table.count[h]
            if held & ~LOW32 != stamp:
                table.key[h] = key
                held = stamp
                break
            if table.key[h] == key:
                break
            h = (h + 1) & mask
        held += units.count[u]
        table.count[h] = held
        slot[z] = h
        if held & LOW32 >= k:
            enough = True
    return enough


@bare
def _price(tree, codes, level):
    total = 0.0
    for j in range(codes.shape[0]):
        total += tree.cost[tree.offset[j] + codes[j] * tree.depth[j] + level[j]]
    return total


@bare
def _open(tree, units, level, place, left, slot, table, k, price, label, groups):
    """Open every tuple with k rows that is cheap enough; the least cost of those that are not yet."""
    best = np.inf
    for z in range(left):
        h = slot[z]
        held = table.count[h]
        if held >= 0:
            if held & LOW32 < k:
                continue
            cost = _price(tree, units.codes[place[z]], level)
            if cost <= price:
                held = -1 - groups
                groups += 1
            else:
                held = np.int64(0)  # looked at
                best = min(best, cost)
            table.count[h] = held
        if held < 0:
            label[place[z]] = -1 - held
    return groups, best


@kernel
def _open_checked(tree, units, level, place, left, slot, table, price, label, groups, rules, growing, work, count):
    """As :func:`_open`, but a tuple opens only if its rows keep all promises, or a part of them does."""
    best = np.inf
    found = 0
    total = 0
    for z in range(left):
        h = slot[z]
        held = table.count[h]
        if held > 0 and held & LOW32 >= rules.k:
            cost = _price(tree, units.codes[place[z]], level)
            if cost <= price:
                total += held & LOW32
                found += 1
                table.count[h] = -found
            else:
                best = min(best, cost)
                table.count[h] = 0
    if found == 0:
        return groups, best
    begin = np.zeros(found + 2, np.int64)
    for z in range(left):
        held = table.count[slot[z]]
        if held < 0:
            begin[1 - held] += units.count[place[z]]
    for c in range(found + 1):
        begin[c + 1] += begin[c]
    rows = np.empty(total, np.int32)
    owner = np.empty(total, np.int32)
    for z in range(left):
        held = table.count[slot[z]]
        if held < 0:
            u = place[z]
            for row in range(units.first[u], units.first[u + 1]):
                rows[begin[-held]] = row
                owner[begin[-held]] = u
                begin[-held] += 1
    for c in range(found):
        start, stop = begin[c], begin[c + 1]
        if growing:
            lack = failing(rules, rows, start, stop, work, count)
            if lack == KEPT:
                for at in range(start, stop):
                    label[owner[at]] = groups
                groups += 1
            elif lack >= 0:
                clear(rules, lack, rows, start, stop, count)
        else:  # every row is a unit
            part = rows[start:stop]
            size = trim(rules, part, stop - start, work, count)
            for at in range(size):
                label[part[at]] = groups
            if size:
                groups += 1
    return groups, best

"""How many people share their whole set of released values with at least k - 1 others, for a given z."""

import numpy as np

from shoal.kernels.compile import kernel
from shoal.kernels.zero_delay.sliding import _COUNT, ONE, find, pair_key

FEW = 32  # nodes of a person that are compared one by one


@kernel
def content(rows, nodes, people, chains, counts):
    """One row per (person, value) of a window, with the people now counted at each level. Returns how many rows."""
    capacity = 16
    while capacity < 2 * rows.shape[0]:
        capacity *= 2
    seen = np.zeros(2 * capacity, np.int64)
    kept = 0
    for i in range(rows.shape[0]):
        # column 2 is the value itself, the most precise node: the same pair again changes no set
        key = pair_key(rows[i, 2], rows[i, 1])
        slot = find(seen, key)
        if seen[slot] != 0:
            continue
        seen[slot] = key
        people[kept] = rows[i, 1]
        for level in range(rows.shape[1] - 2):
            node = rows[i, 2 + level]
            chains[kept, level] = node
            at = find(nodes, node)
            # an expired node may have left its slot to another: whose slot it is has to be asked
            counts[kept, level] = nodes[at + ONE] & _COUNT if node != 0 and nodes[at] == node else 0
        kept += 1
    return kept


@kernel(inline="always")
def _mix(word, by):
    word = (word ^ by) * np.int64(-4417276706812531889)
    word ^= (word >> 29) & np.int64(0x7FFFFFFFF)
    word *= np.int64(-8663945395140668459)
    word ^= (word >> 32) & np.int64(0xFFFFFFFF)
    return word


@kernel
def by_person(people, size, order):
    """The rows in the order of their people, stable. O(rows)."""
    next_of = np.zeros(size + 1, np.int64)
    for i in range(people.size):
        next_of[people[i] + 1] += 1
    for person in range(size):
        next_of[person + 1] += next_of[person]
    for i in range(people.size):
        order[next_of[people[i]]] = i
        next_of[people[i]] += 1


@kernel
def set_prints(people, chains, counts, z, top, first, second):
    """A 128-bit print of the set of nodes each person would release under z: equal sets, equal prints.

    Rows stand together by person. O(rows): few nodes are compared with each other, many by a table.
    """
    depth = min(top, chains.shape[1])
    first[:] = 0
    second[:] = 0
    chosen = np.empty(FEW, np.int64)
    seen = np.zeros(2, np.int64)
    start = 0
    while start < people.size:
        person = people[start]
        stop = start
        while stop < people.size and people[stop] == person:
            stop += 1
        few = stop - start <= FEW
        if not few:
            # a table per person with many values; two words per slot and at most half full, so that probes stay short
            words = 4
            while words < 4 * (stop - start):
                words *= 2
            seen = np.zeros(words, np.int64)
        held = 0
        for i in range(start, stop):
            node = np.int64(0)
            for level in range(depth):
                if chains[i, level] == 0:
                    break
                if counts[i, level] >= z:
                    node = chains[i, level]
                    break
            if node == 0:
                continue
            new = True
            if few:
                for j in range(held):
                    new &= chosen[j] != node
                chosen[held] = node
                held += new
            else:
                slot = find(seen, node)
                new = seen[slot] == 0
                seen[slot] = node
            if new:
                # a sum, because a set has no order; two of them, because a million people may meet by chance in 64 bits
                first[person] += _mix(node, np.int64(0x5851F42D4C957F2D))
                second[person] += _mix(node, np.int64(0x14057B7EF767814F))
        start = stop


@kernel
def group_sizes(first, second, sizes):
    """The size of the group of each person; 0 for people with nothing released. Returns how many have nothing."""
    capacity = 16
    while capacity < 2 * first.size:
        capacity *= 2
    table = np.full(capacity, -1, np.int32)
    count = np.zeros(first.size, np.int32)
    group = np.full(first.size, -1, np.int32)
    mask = capacity - 1
    groups = 0
    empty = 0
    head = np.empty(first.size, np.int32)
    for i in range(first.size):
        if first[i] == 0 and second[i] == 0:
            empty += 1
            continue
        slot = (first[i] ^ (first[i] >> 32)) & mask
        # the whole print is compared, the table only says where to look
        while table[slot] >= 0 and (first[head[table[slot]]] != first[i] or second[head[table[slot]]] != second[i]):
            slot = (slot + 1) & mask
        if table[slot] < 0:
            table[slot] = groups
            head[groups] = i
            groups += 1
        group[i] = table[slot]
        count[group[i]] += 1
    for i in range(first.size):
        sizes[i] = count[group[i]] if group[i] >= 0 else 0
    return empty

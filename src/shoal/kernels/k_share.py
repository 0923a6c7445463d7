"""How many people share their whole set of released values with at least k - 1 others, for a given z."""

import numpy as np

from shoal.kernels.compile import kernel
from shoal.kernels.sliding import _COUNT, ONE, find, pair_key


@kernel
def content(rows, nodes, people, chains, counts):
    """One row per (person, value) of a window, with the people now counted at each level. Returns how many rows."""
    capacity = 16
    while capacity < 2 * rows.shape[0]:
        capacity *= 2
    seen = np.zeros(2 * capacity, np.int64)
    kept = 0
    for i in range(rows.shape[0]):
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
def set_prints(people, chains, counts, z, top, size, first, second):
    """A 128-bit print of the set of nodes each person would release under z: equal sets, equal prints. O(rows)."""
    capacity = 16
    while capacity < 2 * people.size:
        capacity *= 2
    seen = np.zeros(2 * capacity, np.int64)
    first[:size] = 0
    second[:size] = 0
    for i in range(people.size):
        for level in range(min(top, chains.shape[1])):
            node = chains[i, level]
            if node == 0:
                break
            if counts[i, level] >= z:
                key = pair_key(node, _mix(np.int64(people[i]), np.int64(77)))
                slot = find(seen, key)
                if seen[slot] == 0:
                    seen[slot] = key
                    first[people[i]] += _mix(node, np.int64(0x5851F42D4C957F2D))
                    second[people[i]] += _mix(node, np.int64(0x14057B7EF767814F))
                break


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

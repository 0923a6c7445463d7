"""How many different people showed a node in the sliding window: exact counts over fingerprints.

The state is five integer arrays, nothing else:

- ``ring``  events of the window in time order: (time, subject, chain of node fingerprints, most specific first)
- ``heap``  the same rows for events that came late, as a binary heap by time
- ``pairs`` hash table: key of (node, subject) -> last time seen << 5 | is fake << 4 | sticky level
- ``nodes`` hash table: node -> people in the window | fake people << 32
- ``wait``  rows from a future nobody has confirmed; ``meta`` holds sizes, options and totals

Every event leaves the ring when its time is over, whatever is touched then, so memory is bounded by the window.
Inserting and expiring cost O(levels) hash probes. Linear probing; deletion shifts back, so there are no tombstones.
"""

import numpy as np

from shoal.kernels.clock import WAIT
from shoal.kernels.compile import bare

(
    HEAD,
    TAIL,
    PAIRS,
    NODES,
    HEAP,
    WAITING,
    NEXT,
    CEILING,
    NEED,
    LEAST,
    STICKY,
    JITTER,
    PERIOD,
    SALT,
    COUNTED,
    TOP,
    ROWS,
    FAKED,
    TOUCHED,
) = range(19)
WORDS = 20
NEED_RING, NEED_PAIRS, NEED_NODES, NEED_HEAP, NEED_FAKES = 1, 2, 3, 4, 5
STEPS = 4096  # how far back one late or noisy event may look: a bound on its cost, the same on every machine

_SPREAD = np.int64(-7046029254386353131)  # the golden ratio's odd 64-bit neighbour
_FAKE = np.int64(16)
_FAKES = np.int64(1) << np.int64(32)
_COUNT = _FAKES - np.int64(1)


@bare(inline="always")
def pair_key(node, subject):
    """One key for a node and a person."""
    key = node + subject * _SPREAD
    key ^= (key >> 29) & np.int64(0x7FFFFFFFF)
    return key if key != 0 else np.int64(1)


@bare
def find(table, key):
    """The slot of a key, or the empty slot where it belongs."""
    mask = table.shape[0] - 1
    slot = key & mask
    while table[slot, 0] != key and table[slot, 0] != 0:
        slot = (slot + 1) & mask
    return slot


@bare
def remove(table, slot):
    """Empty a slot; the entries behind it move up."""
    mask = table.shape[0] - 1
    hole = slot
    at = slot
    while True:
        at = (at + 1) & mask
        key = table[at, 0]
        if key == 0:
            break
        if ((at - key) & mask) >= ((at - hole) & mask):
            table[hole, 0] = key
            table[hole, 1] = table[at, 1]
            hole = at
    table[hole, 0] = 0


@bare
def add(pairs, nodes, meta, node, subject, time, fake):
    """A person shows a node. Returns (slot of the pair, slot of the node, whether their last time moved)."""
    key = pair_key(node, subject)
    slot = find(pairs, key)
    at = find(nodes, node)
    moved = True
    if pairs[slot, 0] == 0:
        pairs[slot, 0] = key
        pairs[slot, 1] = (time << 5) | (_FAKE if fake else 0)
        meta[PAIRS] += 1
        if nodes[at, 0] == 0:
            nodes[at, 0] = node
            nodes[at, 1] = 0
            meta[NODES] += 1
        nodes[at, 1] += 1 + _FAKES if fake else 1
    else:
        word = pairs[slot, 1]
        if word & _FAKE and not fake:  # the real person came after all
            word &= ~_FAKE
            nodes[at, 1] -= _FAKES
        moved = time > word >> 5  # a late event never rewinds anyone
        if moved:
            word = (time << 5) | (word & 31)
        pairs[slot, 1] = word
    return slot, at, moved


@bare
def drop(pairs, nodes, meta, rows, row):
    """The time of a row is over: whoever was not seen again leaves."""
    time = rows[row, 0]
    subject = rows[row, 1]
    for level in range(2, rows.shape[1]):
        node = rows[row, level]
        if node == 0:
            break
        slot = find(pairs, pair_key(node, subject))
        if pairs[slot, 0] != 0 and pairs[slot, 1] >> 5 == time:
            at = find(nodes, node)
            nodes[at, 1] -= 1 + _FAKES if pairs[slot, 1] & _FAKE else 1
            if nodes[at, 1] & _COUNT == 0:
                remove(nodes, at)
                meta[NODES] -= 1
            remove(pairs, slot)
            meta[PAIRS] -= 1


@bare
def _copy(rows, source, target):
    for column in range(rows.shape[1]):
        rows[target, column] = rows[source, column]


@bare
def _sink(heap, size):
    """The last row takes the place of the first and sinks."""
    at = 0
    time = heap[size, 0]
    while 2 * at + 1 < size:
        child = 2 * at + 1
        if child + 1 < size and heap[child + 1, 0] < heap[child, 0]:
            child += 1
        if heap[child, 0] >= time:
            break
        _copy(heap, child, at)
        at = child
    _copy(heap, size, at)


@bare
def expire_late(limit, heap, pairs, nodes, meta):
    """Late rows whose time is over leave."""
    while meta[HEAP] > 0 and heap[0, 0] < limit:
        drop(pairs, nodes, meta, heap, 0)
        meta[HEAP] -= 1
        _sink(heap, meta[HEAP])


@bare
def expire(limit, ring, pairs, nodes, meta):
    """Everything before ``limit`` leaves the ring: globally, not only what is touched.

    This and :func:`show` are the two loops that every event pays for. They spell out ``find`` and ``remove``, because
    a call that hands arrays on costs more than the probe it makes.
    """
    ring_mask, pair_mask, node_mask = ring.shape[0] - 1, pairs.shape[0] - 1, nodes.shape[0] - 1
    head, tail = meta[HEAD], meta[TAIL]
    gone_pairs, gone_nodes = 0, 0
    while head < tail and ring[head & ring_mask, 0] < limit:
        row = head & ring_mask
        time, subject = ring[row, 0], ring[row, 1]
        head += 1
        for level in range(2, ring.shape[1]):
            node = ring[row, level]
            if node == 0:
                break
            key = pair_key(node, subject)
            slot = key & pair_mask
            while pairs[slot, 0] != key and pairs[slot, 0] != 0:
                slot = (slot + 1) & pair_mask
            if pairs[slot, 0] == 0 or pairs[slot, 1] >> 5 != time:
                continue
            at = node & node_mask
            while nodes[at, 0] != node:
                at = (at + 1) & node_mask
            nodes[at, 1] -= 1 + _FAKES if pairs[slot, 1] & _FAKE else 1
            if nodes[at, 1] & _COUNT == 0:
                gone_nodes += 1
                behind = (at + 1) & node_mask
                other = nodes[behind, 0]
                while other != 0:
                    if ((behind - other) & node_mask) >= ((behind - at) & node_mask):
                        nodes[at, 0], nodes[at, 1] = other, nodes[behind, 1]
                        at = behind
                    behind = (behind + 1) & node_mask
                    other = nodes[behind, 0]
                nodes[at, 0] = 0
            gone_pairs += 1
            behind = (slot + 1) & pair_mask
            other = pairs[behind, 0]
            while other != 0:
                if ((behind - other) & pair_mask) >= ((behind - slot) & pair_mask):
                    pairs[slot, 0], pairs[slot, 1] = other, pairs[behind, 1]
                    slot = behind
                behind = (behind + 1) & pair_mask
                other = pairs[behind, 0]
            pairs[slot, 0] = 0
    meta[HEAD] = head
    meta[PAIRS] -= gone_pairs
    meta[NODES] -= gone_nodes


@bare
def show(time, subject, chains, row, pairs, nodes, meta, counts, i):
    """A person shows a value: count them at every level. Returns (slot of the most specific pair, who moved)."""
    pair_mask, node_mask = pairs.shape[0] - 1, nodes.shape[0] - 1
    new_pairs, new_nodes = 0, 0
    moved = False
    leaf = 0
    for level in range(chains.shape[1]):
        node = chains[row, level]
        if node == 0:
            break
        key = pair_key(node, subject)
        slot = key & pair_mask
        while pairs[slot, 0] != key and pairs[slot, 0] != 0:
            slot = (slot + 1) & pair_mask
        at = node & node_mask
        while nodes[at, 0] != node and nodes[at, 0] != 0:
            at = (at + 1) & node_mask
        if pairs[slot, 0] == 0:
            new_pairs += 1
            pairs[slot, 0], pairs[slot, 1] = key, time << 5
            if nodes[at, 0] == 0:
                new_nodes += 1
                nodes[at, 0], nodes[at, 1] = node, 0
            nodes[at, 1] += 1
            moved = True
        else:
            word = pairs[slot, 1]
            if word & _FAKE:  # the real person came after all
                word &= ~_FAKE
                nodes[at, 1] -= _FAKES
            if time > word >> 5:  # a late event never rewinds anyone
                word = (time << 5) | (word & 31)
                moved = True
            pairs[slot, 1] = word
        counts[i, level] = nodes[at, 1] & _COUNT
        if level == 0:
            leaf = slot
    meta[PAIRS] += new_pairs
    meta[NODES] += new_nodes
    return leaf, moved


@bare
def _raise(heap, size, time, subject, chains, row, first):
    """A new row rises to its place."""
    at = size
    while at > 0 and heap[(at - 1) // 2, 0] > time:
        _copy(heap, (at - 1) // 2, at)
        at = (at - 1) // 2
    write(heap, at, time, subject, chains, row, first, chains.shape[1] - first)


@bare
def write(rows, at, time, subject, chains, row, first, width):
    """Write the row of an event; its chain stands in ``chains[row]`` from column ``first`` on."""
    rows[at, 0] = time
    rows[at, 1] = subject
    for level in range(width):
        rows[at, 2 + level] = chains[row, first + level]
    for level in range(2 + width, rows.shape[1]):
        rows[at, level] = 0


@bare
def remember_late(heap, meta, time, subject, chains, row, first):
    """Keep a late event until its time is over."""
    _raise(heap, meta[HEAP], time, subject, chains, row, first)
    meta[HEAP] += 1


@bare
def wait_for(wait, meta, time, subject, chains, row):
    """Keep an event of an unconfirmed future; the oldest gives way."""
    at = meta[NEXT]
    if wait[at, 1] == 0:
        meta[WAITING] += 1
    write(wait, at, time, subject, chains, row, 0, chains.shape[1])
    meta[NEXT] = (at + 1) % WAIT


@bare
def absorb(wait, heap, pairs, nodes, meta, now, limit):
    """What waited and is no longer ahead counts from now on."""
    for i in range(WAIT):
        time, subject = wait[i, 0], wait[i, 1]
        if subject == 0 or time > now:
            continue
        if time >= limit and meta[PAIRS] + wait.shape[1] - 2 <= meta[CEILING]:
            moved = False
            for level in range(2, wait.shape[1]):
                if wait[i, level] != 0:
                    moved |= add(pairs, nodes, meta, wait[i, level], subject, time, False)[2]
            if moved:
                remember_late(heap, meta, time, subject, wait, i, 2)
        wait[i, 1] = 0
        meta[WAITING] -= 1


@bare
def certain(ring, heap, pairs, meta, time, subject, chains, row, counts, i):
    """For a late event: take from the counts whoever was last seen after it. False if that is too far to look.

    What is left were seen between the window's start and the event's time: never more than the truth.
    """
    mask = ring.shape[0] - 1
    left = STEPS - meta[HEAP]
    for j in range(meta[HEAP] if left > 0 else 0):
        _newer(heap, j, pairs, time, subject, chains, row, counts, i)
    at = meta[TAIL] - 1
    while at >= meta[HEAD] and ring[at & mask, 0] > time:
        if left <= 0:
            return False
        _newer(ring, at & mask, pairs, time, subject, chains, row, counts, i)
        at -= 1
        left -= 1
    return left > 0


@bare
def _newer(rows, j, pairs, time, subject, chains, row, counts, i):
    if rows[j, 0] <= time or rows[j, 1] == subject:
        return
    for level in range(chains.shape[1]):
        node = chains[row, level]
        for other in range(2, rows.shape[1]):
            if node != 0 and rows[j, other] == node:
                slot = find(pairs, pair_key(node, rows[j, 1]))
                if pairs[slot, 0] != 0 and pairs[slot, 1] >> 5 == rows[j, 0]:
                    counts[i, level] -= 1


@bare
def rehash(old, new):
    """Move a table's entries into another, empty one."""
    for i in range(old.shape[0]):
        if old[i, 0] != 0:
            slot = find(new, old[i, 0])
            new[slot, 0], new[slot, 1] = old[i, 0], old[i, 1]

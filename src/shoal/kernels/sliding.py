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
from shoal.kernels.compile import kernel

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
) = range(17)
WORDS = 20
NEED_RING, NEED_PAIRS, NEED_NODES, NEED_HEAP, NEED_FAKES = 1, 2, 3, 4, 5
STEPS = 4096  # how far back one late or noisy event may look: a bound on its cost, the same on every machine

_SPREAD = np.int64(-7046029254386353131)  # the golden ratio's odd 64-bit neighbour
_FAKE = np.int64(16)
_FAKES = np.int64(1) << np.int64(32)
_COUNT = _FAKES - np.int64(1)


@kernel(inline="always")
def pair_key(node, subject):
    """One key for a node and a person."""
    key = node + subject * _SPREAD
    key ^= (key >> 29) & np.int64(0x7FFFFFFFF)
    return key if key != 0 else np.int64(1)


@kernel(inline="always")
def find(table, key):
    """The slot of a key, or the empty slot where it belongs."""
    mask = table.shape[0] - 1
    slot = key & mask
    while table[slot, 0] != key and table[slot, 0] != 0:
        slot = (slot + 1) & mask
    return slot


@kernel
def remove(table, slot):
    """Empty a slot; the entries behind it move up."""
    mask = table.shape[0] - 1
    at = slot
    while True:
        at = (at + 1) & mask
        key = table[at, 0]
        if key == 0:
            break
        if ((at - key) & mask) >= ((at - slot) & mask):
            table[slot, 0], table[slot, 1] = key, table[at, 1]
            slot = at
    table[slot, 0] = 0


@kernel
def add(pairs, nodes, meta, node, subject, time, fake):
    """A person shows a node. Returns (slot of the pair, slot of the node, whether their last time moved)."""
    key = pair_key(node, subject)
    slot = find(pairs, key)
    at = find(nodes, node)
    if pairs[slot, 0] == 0:
        pairs[slot, 0] = key
        pairs[slot, 1] = (time << 5) | (_FAKE if fake else 0)
        meta[PAIRS] += 1
        if nodes[at, 0] == 0:
            nodes[at, 0], nodes[at, 1] = node, 0
            meta[NODES] += 1
        nodes[at, 1] += 1 + _FAKES if fake else 1
        return slot, at, True
    word = pairs[slot, 1]
    if word & _FAKE and not fake:  # the real person came after all
        word &= ~_FAKE
        nodes[at, 1] -= _FAKES
    moved = time > word >> 5  # a late event never rewinds anyone
    if moved:
        word = (time << 5) | (word & 31)
    pairs[slot, 1] = word
    return slot, at, moved


@kernel
def drop(pairs, nodes, meta, row):
    """The time of a row is over: whoever was not seen again leaves."""
    for level in range(2, row.size):
        node = row[level]
        if node == 0:
            break
        slot = find(pairs, pair_key(node, row[1]))
        if pairs[slot, 0] == 0 or pairs[slot, 1] >> 5 != row[0]:
            continue
        at = find(nodes, node)
        nodes[at, 1] -= 1 + _FAKES if pairs[slot, 1] & _FAKE else 1
        if nodes[at, 1] & _COUNT == 0:
            remove(nodes, at)
            meta[NODES] -= 1
        remove(pairs, slot)
        meta[PAIRS] -= 1


@kernel
def expire(limit, ring, heap, pairs, nodes, meta):
    """Everything before ``limit`` leaves: globally, not only what is touched."""
    mask = ring.shape[0] - 1
    while meta[HEAD] < meta[TAIL] and ring[meta[HEAD] & mask, 0] < limit:
        drop(pairs, nodes, meta, ring[meta[HEAD] & mask])
        meta[HEAD] += 1
    while meta[HEAP] > 0 and heap[0, 0] < limit:
        drop(pairs, nodes, meta, heap[0])
        meta[HEAP] -= 1
        _sink(heap, meta[HEAP])


@kernel
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
        heap[at, :] = heap[child, :]
        at = child
    heap[at, :] = heap[size, :]


@kernel
def _raise(heap, size, time, subject, chain):
    """A new row rises to its place."""
    at = size
    while at > 0 and heap[(at - 1) // 2, 0] > time:
        heap[at, :] = heap[(at - 1) // 2, :]
        at = (at - 1) // 2
    _write(heap[at], time, subject, chain)


@kernel(inline="always")
def _write(row, time, subject, chain):
    row[0], row[1] = time, subject
    for level in range(chain.size):
        row[2 + level] = chain[level]
    for level in range(2 + chain.size, row.size):
        row[level] = 0


@kernel
def remember(ring, heap, meta, time, subject, chain, on_time):
    """Keep an event until its time is over."""
    if on_time:
        _write(ring[meta[TAIL] & (ring.shape[0] - 1)], time, subject, chain)
        meta[TAIL] += 1
    else:
        _raise(heap, meta[HEAP], time, subject, chain)
        meta[HEAP] += 1


@kernel
def wait_for(wait, meta, time, subject, chain):
    """Keep an event of an unconfirmed future; the oldest gives way."""
    row = wait[meta[NEXT]]
    if row[1] == 0:
        meta[WAITING] += 1
    _write(row, time, subject, chain)
    meta[NEXT] = (meta[NEXT] + 1) % WAIT


@kernel
def absorb(wait, ring, heap, pairs, nodes, meta, now, limit):
    """What waited and is no longer ahead counts from now on."""
    for i in range(WAIT):
        row = wait[i]
        if row[1] == 0 or row[0] > now:
            continue
        if row[0] >= limit and meta[PAIRS] + row.size - 2 <= meta[CEILING]:
            moved = False
            for level in range(2, row.size):
                if row[level] != 0:
                    moved |= add(pairs, nodes, meta, row[level], row[1], row[0], False)[2]
            if moved:
                remember(ring, heap, meta, row[0], row[1], row[2:], False)
        row[1] = 0
        meta[WAITING] -= 1


@kernel
def certain(ring, heap, pairs, meta, time, subject, chain, counts):
    """For a late event: take from the counts whoever was last seen after it. False if that is too far to look.

    What is left were seen between the window's start and the event's time: never more than the truth.
    """
    mask = ring.shape[0] - 1
    left = STEPS - meta[HEAP]
    for i in range(meta[HEAP] if left > 0 else 0):
        _newer(heap[i], pairs, time, subject, chain, counts)
    at = meta[TAIL] - 1
    while at >= meta[HEAD] and ring[at & mask, 0] > time:
        if left <= 0:
            return False
        _newer(ring[at & mask], pairs, time, subject, chain, counts)
        at -= 1
        left -= 1
    return left > 0


@kernel
def _newer(row, pairs, time, subject, chain, counts):
    if row[0] <= time or row[1] == subject:
        return
    for level in range(chain.size):
        for other in range(2, row.size):
            if chain[level] != 0 and row[other] == chain[level]:
                slot = find(pairs, pair_key(chain[level], row[1]))
                if pairs[slot, 0] != 0 and pairs[slot, 1] >> 5 == row[0]:
                    counts[level] -= 1


@kernel
def rehash(old, new):
    """Move a table's entries into another, empty one."""
    for i in range(old.shape[0]):
        if old[i, 0] != 0:
            slot = find(new, old[i, 0])
            new[slot, 0], new[slot, 1] = old[i, 0], old[i, 1]

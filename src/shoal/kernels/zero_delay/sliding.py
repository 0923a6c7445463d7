"""How many different people showed a node in the sliding window: exact counts over fingerprints.

The state is six integer arrays, nothing else:

- ``ring``  events of the window in time order: (time, subject, chain of node fingerprints, most specific first)
- ``heap``  the same rows for events that came late, as a binary heap by time
- ``pairs`` hash table: key of (node, subject) -> last time seen << 5 | is fake << 4 | sticky level
- ``nodes`` hash table: node -> people in the window | fake people << 32
- ``wait``  rows from a future nobody has confirmed, as a heap by time, too; ``meta`` holds sizes, options and totals

Every event leaves the ring when its time is over, whatever is touched then, so memory is bounded by the window.
Inserting and expiring cost O(levels) hash probes. Linear probing; deletion shifts back, so there are no tombstones.

All arrays are flat: a row is ``meta[STRIDE]`` words, an entry of a table two, its key and its word, and a *slot* is
the place of the key. Indices are unsigned: the compiler then need not ask at every access whether one is negative.
"""

import numpy as np

from shoal.kernels.compile import bare

(
    HEAD,
    TAIL,
    PAIRS,
    NODES,
    HEAP,
    WAITING,
    PLACES,
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
    STRIDE,
) = range(19)
WORDS = 20
NEED_RING, NEED_PAIRS, NEED_NODES, NEED_HEAP, NEED_FAKES, NEED_LOG, NEED_WAIT = 1, 2, 3, 4, 5, 6, 7
STEPS = 4096  # how far back one late event may look: a bound on its cost, the same on every machine
LOOKED = 64  # where nothing more can wait: of so many rows, the one furthest ahead gives way

_SPREAD = np.int64(-7046029254386353131)  # the golden ratio's odd 64-bit neighbour
_FAKE = np.int64(16)
_MARK = np.int64(15)  # of a pair: how precisely it was released last, 15 if it was withheld
_FAKES = np.int64(1) << np.int64(32)
_COUNT = _FAKES - np.int64(1)
U = np.uint64
ONE, TWO = U(1), U(2)


@bare(inline="always")
def key_of(node, spread):
    """One key for a node and a person, whose fingerprint times ``_SPREAD`` is ``spread``."""
    key = node + spread
    key ^= (key >> 29) & np.int64(0x7FFFFFFFF)
    return key if key != 0 else np.int64(1)


@bare(inline="always")
def pair_key(node, subject):
    """One key for a node and a person."""
    return key_of(node, subject * _SPREAD)


@bare
def find(table, key):
    """The slot of a key, or the empty slot where it belongs."""
    mask = U(table.size - 2)
    slot = (U(key) << ONE) & mask
    while table[slot] != key and table[slot] != 0:
        slot = (slot + TWO) & mask
    return slot


@bare(inline="always")
def remove(table, mask, slot):
    """Empty a slot; the entries behind it move up."""
    at = (slot + TWO) & mask
    key = table[at]
    while key != 0:
        if ((at - (U(key) << ONE)) & mask) >= ((at - slot) & mask):
            table[slot] = key
            table[slot + ONE] = table[at + ONE]
            slot = at
        at = (at + TWO) & mask
        key = table[at]
    table[slot] = 0


@bare
def add(pairs, nodes, meta, node, subject, time, fake):
    """A person shows a node. Returns whether their last time moved."""
    key = pair_key(node, subject)
    slot = find(pairs, key)
    at = find(nodes, node)
    moved = True
    if pairs[slot] == 0:
        pairs[slot] = key
        pairs[slot + ONE] = (time << 5) | (_FAKE if fake else 0)
        meta[PAIRS] += 1
        if nodes[at] == 0:
            nodes[at] = node
            nodes[at + ONE] = 0
            meta[NODES] += 1
        nodes[at + ONE] += 1 + _FAKES if fake else 1
    else:
        word = pairs[slot + ONE]
        if word & _FAKE and not fake:  # the real person came after all
            word &= ~_FAKE
            nodes[at + ONE] -= _FAKES
        moved = time > word >> 5  # a late event never rewinds anyone
        if moved:
            word = (time << 5) | (word & 31)
        pairs[slot + ONE] = word
    return moved


@bare(inline="always")
def drop(rows, base, width, pairs, nodes):
    """The time of a row is over: whoever was not seen again leaves. Returns how many pairs and nodes are gone."""
    pair_mask, node_mask = U(pairs.size - 2), U(nodes.size - 2)
    gone_pairs, gone_nodes = np.int64(0), np.int64(0)
    time = rows[base]
    spread = rows[base + ONE] * _SPREAD
    for level in range(width):
        node = rows[base + TWO + U(level)]
        if node == 0:
            break
        key = key_of(node, spread)
        slot = (U(key) << ONE) & pair_mask
        found = pairs[slot]
        while found != key and found != 0:
            slot = (slot + TWO) & pair_mask
            found = pairs[slot]
        word = pairs[slot + ONE]
        # only the row of a person's last time takes them out; an older row finds a newer time
        if found != 0 and word >> 5 == time:
            at = (U(node) << ONE) & node_mask
            # it is there: somebody in the window shows it
            while nodes[at] != node:
                at = (at + TWO) & node_mask
            left = nodes[at + ONE] - (1 + _FAKES if word & _FAKE else 1)
            nodes[at + ONE] = left
            if left & _COUNT == 0:
                remove(nodes, node_mask, at)
                gone_nodes += 1
            remove(pairs, pair_mask, slot)
            gone_pairs += 1
    return gone_pairs, gone_nodes


@bare(inline="always")
def show(time, subject, chains, base, width, z, pairs, nodes, counts, place):
    """A person shows a value: count them at every level.

    Returns the slot of the most specific pair, whether a last time moved, the most specific level that z people
    share (or -1) and how many of them are real, new pairs and new nodes. :func:`drop` and this are what every event
    pays for; they spell out ``find``, because a call that hands arrays on costs more than the probe it makes.
    """
    pair_mask, node_mask = U(pairs.size - 2), U(nodes.size - 2)
    new_pairs, new_nodes = np.int64(0), np.int64(0)
    moved = False
    leaf = U(0)
    best, real = np.int64(-1), np.int64(0)
    spread, stamp = subject * _SPREAD, time << 5
    for level in range(width):
        node = chains[base + U(level)]
        if node == 0:
            break
        key = key_of(node, spread)
        slot = (U(key) << ONE) & pair_mask
        found = pairs[slot]
        while found != key and found != 0:
            slot = (slot + TWO) & pair_mask
            found = pairs[slot]
        at = (U(node) << ONE) & node_mask
        known = nodes[at]
        while known != node and known != 0:
            at = (at + TWO) & node_mask
            known = nodes[at]
        people = nodes[at + ONE]
        if found == 0:
            new_pairs += 1
            pairs[slot], pairs[slot + ONE] = key, stamp
            if known == 0:
                new_nodes += 1
                nodes[at] = node
                people = np.int64(0)
            people += 1
            nodes[at + ONE] = people
            moved = True
        else:
            word = pairs[slot + ONE]
            if word & _FAKE:  # the real person came after all
                word &= ~_FAKE
                people -= _FAKES
                nodes[at + ONE] = people
            if time > word >> 5:  # a late event never rewinds anyone
                word = stamp | (word & 31)
                moved = True
            pairs[slot + ONE] = word
        fakes = people >> 32
        people &= _COUNT
        counts[place + U(level)] = people
        if best < 0 and people >= z:
            best, real = np.int64(level), people - fakes
        if level == 0:
            leaf = slot
    return leaf, moved, best, real, new_pairs, new_nodes


@bare
def expire(limit, ring, pairs, nodes, meta):
    """Everything before ``limit`` leaves the ring: globally, not only what is touched."""
    stride, width = U(meta[STRIDE]), meta[STRIDE] - 2
    mask = U(ring.size) // stride - ONE
    while meta[HEAD] < meta[TAIL]:
        base = (U(meta[HEAD]) & mask) * stride
        if ring[base] >= limit:
            break
        gone_pairs, gone_nodes = drop(ring, base, width, pairs, nodes)
        meta[HEAD] += 1
        meta[PAIRS] -= gone_pairs
        meta[NODES] -= gone_nodes


@bare
def expire_late(limit, heap, pairs, nodes, meta):
    """Late rows whose time is over leave."""
    stride, width = U(meta[STRIDE]), meta[STRIDE] - 2
    while meta[HEAP] > 0 and heap[0] < limit:
        gone_pairs, gone_nodes = drop(heap, U(0), width, pairs, nodes)
        meta[PAIRS] -= gone_pairs
        meta[NODES] -= gone_nodes
        meta[HEAP] -= 1
        _sink(heap, stride, U(meta[HEAP]))


@bare(inline="always")
def _copy(rows, stride, source, target):
    for column in range(stride):
        rows[target * stride + U(column)] = rows[source * stride + U(column)]


@bare
def _sink(heap, stride, size):
    """The last row takes the place of the first and sinks."""
    at = U(0)
    time = heap[size * stride]
    while TWO * at + ONE < size:
        child = TWO * at + ONE
        if child + ONE < size and heap[(child + ONE) * stride] < heap[child * stride]:
            child += ONE
        if heap[child * stride] >= time:
            break
        _copy(heap, stride, child, at)
        at = child
    _copy(heap, stride, size, at)


@bare(inline="always")
def write(rows, stride, at, time, subject, chains, base, width):
    """Write the row of an event; its chain are ``width`` words of ``chains`` from ``base`` on."""
    first = at * stride
    rows[first] = time
    rows[first + ONE] = subject
    for level in range(width):
        rows[first + TWO + U(level)] = chains[base + U(level)]
    for level in range(width + 2, stride):
        rows[first + U(level)] = 0


@bare
def remember(ring, meta, time, subject, chains, base, width):
    """Keep an event until its time is over."""
    stride = U(meta[STRIDE])
    write(ring, stride, U(meta[TAIL]) & (U(ring.size) // stride - ONE), time, subject, chains, base, width)
    meta[TAIL] += 1


@bare
def remember_late(heap, meta, time, subject, chains, base, width):
    """Keep a late event until its time is over."""
    _rise(heap, U(meta[STRIDE]), U(meta[HEAP]), time, subject, chains, base, width)
    meta[HEAP] += 1


@bare
def _rise(heap, stride, at, time, subject, chains, base, width):
    """The row of an event rises from place ``at`` of a heap to where it belongs."""
    while at > U(0) and heap[((at - ONE) >> ONE) * stride] > time:
        _copy(heap, stride, (at - ONE) >> ONE, at)
        at = (at - ONE) >> ONE
    write(heap, stride, at, time, subject, chains, base, width)


@bare
def wait_for(wait, meta, time, subject, chains, base, width):
    """Keep an event of an unconfirmed future. Where all places are taken, one that is further ahead gives way.

    So somebody whose clock is years ahead cannot take the places of those who are the first after a silent night.
    """
    stride = U(meta[STRIDE])
    at = meta[WAITING]
    if at >= meta[PLACES]:
        # the later half of a heap are its leaves, where the furthest stand; which of them is as good as drawn by lot
        half = at >> 1
        first = half + np.int64(U(pair_key(chains[base], subject)) % U(max(at - half - LOOKED, 1)))
        at = first
        for place in range(first, min(first + LOOKED, meta[WAITING])):
            if wait[U(place) * stride] > wait[U(at) * stride]:
                at = np.int64(place)
        if wait[U(at) * stride] <= time:
            return
    else:
        meta[WAITING] += 1
    _rise(wait, stride, U(at), time, subject, chains, base, width)


@bare
def absorb(wait, ring, heap, pairs, nodes, meta, now, limit, z):
    """What waited and is no longer ahead counts from now on; it stands in the ring if it is the newest there."""
    stride, width = U(meta[STRIDE]), meta[STRIDE] - 2
    mask = U(ring.size) // stride - ONE
    while meta[WAITING] > 0 and wait[0] <= now:
        time, subject = wait[0], wait[1]
        if time >= limit and meta[PAIRS] + width <= meta[CEILING]:
            moved = False
            for level in range(width):
                if wait[TWO + U(level)] != 0:
                    moved |= add(pairs, nodes, meta, wait[TWO + U(level)], subject, time, False)
            if meta[STICKY] != 0 and z > 1:
                # it was withheld when it came: without a mark, the same value would be released next time
                leaf = find(pairs, pair_key(wait[TWO], subject))
                if pairs[leaf + ONE] & _MARK == 0:
                    pairs[leaf + ONE] |= _MARK
            # the ring must stay in the order of time, or rows behind an older one would expire late
            newest = meta[TAIL] == meta[HEAD] or ring[(U(meta[TAIL] - 1) & mask) * stride] <= time
            if moved and newest:
                remember(ring, meta, time, subject, wait, TWO, width)
            elif moved:
                remember_late(heap, meta, time, subject, wait, TWO, width)
        meta[WAITING] -= 1
        _sink(wait, stride, U(meta[WAITING]))


@bare
def certain(ring, heap, pairs, meta, time, subject, chains, base, width, counts, place):
    """For a late event: take from the counts whoever was last seen after it. False if that is too far to look.

    What is left were seen between the window's start and the event's time: never more than the truth.
    """
    stride = U(meta[STRIDE])
    mask = U(ring.size) // stride - ONE
    # a bound on the work of one event: whoever sends late events on purpose must not stop the stream
    left = STEPS - meta[HEAP]
    for j in range(meta[HEAP] if left > 0 else 0):
        _newer(heap, U(j) * stride, meta[STRIDE], pairs, time, subject, chains, base, width, counts, place)
    at = meta[TAIL] - 1
    while at >= meta[HEAD] and ring[(U(at) & mask) * stride] > time:
        if left <= 0:
            return False
        row = (U(at) & mask) * stride
        _newer(ring, row, meta[STRIDE], pairs, time, subject, chains, base, width, counts, place)
        at -= 1
        left -= 1
    return left > 0


@bare
def _newer(rows, row, stride, pairs, time, subject, chains, base, width, counts, place):
    if rows[row] <= time or rows[row + ONE] == subject:
        return
    for level in range(width):
        node = chains[base + U(level)]
        for other in range(2, stride):
            if node != 0 and rows[row + U(other)] == node:
                slot = find(pairs, pair_key(node, rows[row + ONE]))
                # a person has several rows; only that of their last time counts them, so they are taken off once
                if pairs[slot] != 0 and pairs[slot + ONE] >> 5 == rows[row]:
                    counts[place + U(level)] -= 1


@bare
def rehash(old, new):
    """Move a table's entries into another, empty one."""
    for i in range(old.size // 2):
        if old[2 * i] != 0:
            slot = find(new, old[2 * i])
            new[slot], new[slot + ONE] = old[2 * i], old[2 * i + 1]

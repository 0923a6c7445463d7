"""The z-anonymity decision for a batch of events: count all levels, release the most specific with enough people."""

import numpy as np

from shoal.kernels.clock import BAD, BEHIND, FUTURE, NOW, ON_TIME, TOO_LATE, tell
from shoal.kernels.compile import kernel
from shoal.kernels.sliding import (
    _COUNT,
    CEILING,
    COUNTED,
    HEAD,
    HEAP,
    JITTER,
    LEAST,
    NEED,
    NEED_FAKES,
    NEED_HEAP,
    NEED_NODES,
    NEED_PAIRS,
    NEED_RING,
    NODES,
    PAIRS,
    PERIOD,
    ROWS,
    SALT,
    STEPS,
    STICKY,
    TAIL,
    TOP,
    WAITING,
    absorb,
    add,
    certain,
    expire,
    find,
    pair_key,
    remember,
    wait_for,
)

RARE, LATE, UNKNOWN, FULL, HELD = 1, 2, 6, 7, 9
_WITHHELD = np.int64(15)


@kernel
def short_of(ring, heap, pairs, nodes, meta, width, most):
    """Which array must grow before the next event, or 0."""
    rows = 1 + meta[WAITING] + most
    if meta[TAIL] - meta[HEAD] + rows > ring.shape[0]:
        return NEED_RING
    if meta[HEAP] + rows > heap.shape[0]:
        return NEED_HEAP
    if 3 * (meta[PAIRS] + rows * width) > 2 * pairs.shape[0]:
        return NEED_PAIRS
    if 3 * (meta[NODES] + rows * width) > 2 * nodes.shape[0]:
        return NEED_NODES
    return 0


@kernel(inline="always")
def threshold(z, node, now, meta):
    """z, plus the node's own jitter of this period if the threshold is noisy: never less than z."""
    if meta[JITTER] == 0:
        return z
    word = (node ^ meta[SALT]) + (now // meta[PERIOD]) * np.int64(-4417276706812531889)
    word ^= (word >> 31) & np.int64(0x1FFFFFFFF)
    word *= np.int64(-8663945395140668459)
    word ^= (word >> 31) & np.int64(0x1FFFFFFFF)
    return z + (word & np.int64(0x7FFFFFFFFFFFFFFF)) % (meta[JITTER] + 1)


@kernel
def decide_one(verdict, time, now, limit, subject, chain, z, ring, heap, pairs, nodes, wait, meta, counts):
    """Count one event and decide it: (level, 0), or (-1, why not). ``counts`` receives the people per level."""
    if verdict == FUTURE:
        wait_for(wait, meta, time, subject, chain)
        counts[:] = 1
        if z <= 1:  # only the person is certain
            return 0, 0
        return -1, RARE if now < 0 else FUTURE
    counts[:] = 0
    if verdict == BAD or verdict == TOO_LATE:
        return -1, verdict
    expire(limit, ring, heap, pairs, nodes, meta)
    on_time = verdict == ON_TIME
    if on_time and meta[WAITING] > 0:
        absorb(wait, ring, heap, pairs, nodes, meta, now, limit)
    if time < limit:
        return -1, LATE
    if meta[PAIRS] + chain.size > meta[CEILING] or meta[TAIL] - meta[HEAD] + meta[HEAP] >= meta[ROWS]:
        return -1, FULL
    moved = False
    leaf = np.int64(0)
    for level in range(chain.size):
        if chain[level] == 0:
            break
        slot, at, more = add(pairs, nodes, meta, chain[level], subject, time, False)
        moved |= more
        counts[level] = nodes[at, 1] & _COUNT
        if level == 0:
            leaf = slot
    if moved:
        remember(ring, heap, meta, time, subject, chain, on_time)
    if not on_time and not certain(ring, heap, pairs, meta, time, subject, chain, counts):
        counts[:] = 0
        return -1, LATE
    first = 0
    if meta[STICKY] != 0:
        mark = pairs[leaf, 1] & 15
        if mark == _WITHHELD:
            return -1, HELD
        first = max(0, mark - 1)
    best = -1
    for level in range(first, min(chain.size, meta[TOP])):
        if chain[level] == 0:
            break
        if counts[level] >= threshold(z, chain[level], now, meta):
            best = level
            break
    if meta[STICKY] != 0:
        pairs[leaf, 1] = (pairs[leaf, 1] & ~np.int64(15)) | (_WITHHELD if best < 0 else min(best + 1, 14))
    if best >= 0:
        slot = find(nodes, chain[best])
        real = counts[best] - (nodes[slot, 1] >> 32)
        meta[LEAST] = min(meta[LEAST], real)
        return best, 0
    return -1, RARE if on_time else LATE


@kernel
def fakes_for(ring, pairs, meta, subject, chain, need, out):
    """Most recent people of the same category who did not show the attribute (seed 000, Algorithm 5). How many."""
    mask = ring.shape[0] - 1
    found = 0
    at = meta[TAIL] - 1
    last = max(meta[HEAD], meta[TAIL] - STEPS)
    while at >= last and found < need:
        row = ring[at & mask]
        at -= 1
        if row[1] == subject:
            continue
        same = False
        for level in range(2, row.size):
            if row[level] == chain[1]:
                same = True
        for i in range(found):
            if out[i] == row[1]:
                same = False
        if same and pairs[find(pairs, pair_key(chain[0], row[1])), 0] == 0:
            out[found] = row[1]
            found += 1
    return found


@kernel
def decide_all(
    start, verdicts, nows, times, subjects, codes, chains, limits, zs, mosts,
    ring, heap, pairs, nodes, wait, meta,
    levels, reasons, counts, fake_events, fake_subjects, fakes,
):  # fmt: skip
    """Decide events ``start`` onward. Returns how far it came; ``meta[NEED]`` says which array must grow first."""
    width = chains.shape[1]
    used = fakes[0]
    for i in range(start, times.size):
        most = mosts[i]
        need = short_of(ring, heap, pairs, nodes, meta, width, most)
        if need == 0 and used + most > fake_events.size:
            need = NEED_FAKES
        if need != 0:
            meta[NEED] = need
            fakes[0] = used
            return i
        if codes[i] < 0:
            levels[i], reasons[i] = -1, UNKNOWN if verdicts[i] <= BEHIND else verdicts[i]
            counts[i, :] = 0
            continue
        chain = chains[codes[i]]
        level, reason = decide_one(
            verdicts[i], times[i], nows[i], limits[i], subjects[i], chain, zs[i],
            ring, heap, pairs, nodes, wait, meta, counts[i],
        )  # fmt: skip
        missing = zs[i] - counts[i, 0]
        if level != 0 and verdicts[i] == ON_TIME and 0 < missing <= most and counts[i, 0] > 0 and width > 1:
            room = fake_subjects[used : used + missing]
            if chain[1] != 0 and fakes_for(ring, pairs, meta, subjects[i], chain, missing, room) == missing:
                level, reason = 0, 0
                fake_events[used : used + missing] = i
                slot = find(nodes, chain[0])
                meta[LEAST] = min(meta[LEAST], counts[i, 0] - (nodes[slot, 1] >> 32))
                if meta[COUNTED] != 0:
                    for j in range(missing):
                        add(pairs, nodes, meta, chain[0], room[j], times[i], True)
                        remember(ring, heap, meta, times[i], room[j], chain[:1], True)
                used += missing
        levels[i], reasons[i] = level, reason
    meta[NEED] = 0
    fakes[0] = used
    return times.size


@kernel
def decide_next(clock, time, subject, chain, span, z, ring, heap, pairs, nodes, wait, meta, counts):
    """Clock and decision of a single event, for the one-by-one door. (-2, what must grow) before anything changed."""
    need = short_of(ring, heap, pairs, nodes, meta, chain.size, 0)
    if need != 0:
        return -2, need
    verdict = tell(clock, time, subject)
    now = clock[NOW]
    return decide_one(verdict, time, now, now - span, subject, chain, z, ring, heap, pairs, nodes, wait, meta, counts)

"""The z-anonymity decision for a batch of events: count all levels, release the most specific with enough people."""

import numpy as np

from shoal.kernels.address import table_at, words_at
from shoal.kernels.clock import BAD, BEHIND, FUTURE, NOW, ON_TIME, tell
from shoal.kernels.compile import bare, kernel
from shoal.kernels.sliding import (
    CEILING,
    COUNTED,
    FAKED,
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
    TOUCHED,
    WAITING,
    absorb,
    add,
    certain,
    expire,
    expire_late,
    find,
    pair_key,
    remember_late,
    show,
    wait_for,
    write,
)

RARE, LATE, UNKNOWN, FULL, HELD = 1, 2, 6, 7, 9
_WITHHELD = np.int64(15)
AHEAD = 16  # events looked ahead for


@bare
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


@bare
def threshold(z, node, now, meta):
    """z, plus the node's own jitter of this period if the threshold is noisy: never less than z."""
    if meta[JITTER] == 0:
        return z
    word = (node ^ meta[SALT]) + (now // meta[PERIOD]) * np.int64(-4417276706812531889)
    word ^= (word >> 31) & np.int64(0x1FFFFFFFF)
    word *= np.int64(-8663945395140668459)
    word ^= (word >> 31) & np.int64(0x1FFFFFFFF)
    return z + (word & np.int64(0x7FFFFFFFFFFFFFFF)) % (meta[JITTER] + 1)


@bare
def fill(counts, i, value):
    """All levels of an event alike."""
    for level in range(counts.shape[1]):
        counts[i, level] = value


@bare
def decide_one(
    verdict, time, now, limit, subject, chains, row, z, ring, heap, pairs, nodes, wait, meta, counts, i
):  # fmt: skip
    """Count one event and decide it: (level, 0), or (-1, why not). ``counts[i]`` receives the people per level."""
    width = chains.shape[1]
    fill(counts, i, 0)
    if verdict != ON_TIME and verdict != BEHIND:
        if verdict != FUTURE:
            return -1, verdict
        wait_for(wait, meta, time, subject, chains, row)
        fill(counts, i, 1)  # only the person is certain
        if z <= 1:
            return 0, 0
        return -1, RARE if now < 0 else FUTURE
    expire(limit, ring, pairs, nodes, meta)
    if meta[HEAP] > 0:
        expire_late(limit, heap, pairs, nodes, meta)
    on_time = verdict == ON_TIME
    if on_time and meta[WAITING] > 0:
        absorb(wait, heap, pairs, nodes, meta, now, limit)
    if time < limit:
        return -1, LATE
    if meta[PAIRS] + width > meta[CEILING] or meta[TAIL] - meta[HEAD] + meta[HEAP] >= meta[ROWS]:
        return -1, FULL
    leaf, moved = show(time, subject, chains, row, pairs, nodes, meta, counts, i)
    if moved and on_time:
        write(ring, meta[TAIL] & (ring.shape[0] - 1), time, subject, chains, row, 0, width)
        meta[TAIL] += 1
    elif moved:
        remember_late(heap, meta, time, subject, chains, row, 0)
    if not on_time and not certain(ring, heap, pairs, meta, time, subject, chains, row, counts, i):
        fill(counts, i, 0)
        return -1, LATE
    first = 0
    if meta[STICKY] != 0:
        mark = pairs[leaf, 1] & 15
        if mark == _WITHHELD:
            return -1, HELD
        first = max(0, mark - 1)
    best = -1
    for level in range(first, min(width, meta[TOP])):
        if chains[row, level] == 0:
            break
        if counts[i, level] >= threshold(z, chains[row, level], now, meta):
            best = level
            break
    if meta[STICKY] != 0:
        pairs[leaf, 1] = (pairs[leaf, 1] & ~np.int64(15)) | (_WITHHELD if best < 0 else min(best + 1, 14))
    if best >= 0:
        real = np.int64(counts[i, best])
        if real <= meta[LEAST] + meta[FAKED]:
            meta[LEAST] = min(meta[LEAST], real - (nodes[find(nodes, chains[row, best]), 1] >> 32))
        return best, 0
    return -1, RARE if on_time else LATE


@bare
def fakes_for(ring, pairs, meta, subject, leaf, category, need, out, first):
    """Most recent people of the same category who did not show the attribute (seed 000, Algorithm 5). How many."""
    mask = ring.shape[0] - 1
    found = 0
    at = meta[TAIL] - 1
    last = max(meta[HEAD], meta[TAIL] - STEPS)
    while at >= last and found < need:
        j = at & mask
        at -= 1
        if ring[j, 1] == subject:
            continue
        same = False
        for level in range(2, ring.shape[1]):
            if ring[j, level] == category:
                same = True
        for other in range(found):
            if out[first + other] == ring[j, 1]:
                same = False
        if same and pairs[find(pairs, pair_key(leaf, ring[j, 1])), 0] == 0:
            out[first + found] = ring[j, 1]
            found += 1
    return found


@bare
def invent(time, subject, chains, row, missing, ring, pairs, nodes, meta, counts, i, events, subjects, used):
    """Find the fakes that lift an event to z; book them. Whether there were enough."""
    leaf, category = chains[row, 0], chains[row, 1]
    if category == 0 or fakes_for(ring, pairs, meta, subject, leaf, category, missing, subjects, used) < missing:
        return False
    real = counts[i, 0] - (nodes[find(nodes, leaf), 1] >> 32)
    meta[LEAST] = min(meta[LEAST], real)
    for j in range(used, used + missing):
        events[j] = i
        if meta[COUNTED] != 0:
            add(pairs, nodes, meta, leaf, subjects[j], time, True)
            write(ring, meta[TAIL] & (ring.shape[0] - 1), time, subjects[j], chains, row, 0, 1)
            meta[TAIL] += 1
            meta[FAKED] += 1
    return True


@bare
def touch(start, subjects, codes, chains, ring, pairs, meta):
    """Look at the table where the next events will, all at once: the memory then answers in parallel."""
    mask, ring_mask = pairs.shape[0] - 1, ring.shape[0] - 1
    seen = np.int64(0)
    for i in range(start, min(start + AHEAD, codes.size)):
        if codes[i] >= 0:
            for level in range(chains.shape[1]):
                seen ^= pairs[pair_key(chains[codes[i], level], subjects[i]) & mask, 0]
    for at in range(meta[HEAD], min(meta[HEAD] + AHEAD, meta[TAIL])):
        row = at & ring_mask
        for level in range(2, ring.shape[1]):
            seen ^= pairs[pair_key(ring[row, level], ring[row, 1]) & mask, 0]
    meta[TOUCHED] = seen  # or the compiler would see that nobody wants to know


@bare
def decide_all(
    start, verdicts, nows, times, subjects, codes, chains, limits, zs, mosts,
    ring, heap, pairs, nodes, wait, meta,
    levels, reasons, counts, fake_events, fake_subjects, fakes,
):  # fmt: skip
    """Decide events ``start`` onward. Returns how far it came; ``meta[NEED]`` says which array must grow first."""
    width = chains.shape[1]
    used = fakes[0]
    for i in range(start, times.size):
        if i % AHEAD == 0:
            touch(i, subjects, codes, chains, ring, pairs, meta)
        most = mosts[i]
        need = short_of(ring, heap, pairs, nodes, meta, width, most)
        if need == 0 and used + most > fake_events.size:
            need = NEED_FAKES
        if need != 0:
            meta[NEED] = need
            fakes[0] = used
            return i
        if codes[i] < 0:  # -1: the hierarchy does not know it, -2: no usable value
            levels[i] = -1
            reasons[i] = BAD if codes[i] < -1 or verdicts[i] == BAD else UNKNOWN
            fill(counts, i, 0)
            continue
        row = codes[i]
        level, reason = decide_one(
            verdicts[i], times[i], nows[i], limits[i], subjects[i], chains, row, zs[i],
            ring, heap, pairs, nodes, wait, meta, counts, i,
        )  # fmt: skip
        if most > 0 and level != 0 and verdicts[i] == ON_TIME and width > 1 and counts[i, 0] > 0:
            missing = zs[i] - counts[i, 0]
            if 0 < missing <= most and invent(
                times[i], subjects[i], chains, row, missing, ring, pairs, nodes, meta, counts, i,
                fake_events, fake_subjects, used,
            ):  # fmt: skip
                level, reason = 0, 0
                used += missing
        levels[i], reasons[i] = level, reason
    meta[NEED] = 0
    fakes[0] = used
    return times.size


@kernel
def decide_next(handle, time, subject, row):
    """Clock and decision of a single event whose chain is ``row`` of the chains at hand; counts it in the totals.

    Returns the level, or -1 - reason, or -100 - what must grow first (then nothing has changed).
    """
    ring, heap, pairs = table_at(handle, 0), table_at(handle, 3), table_at(handle, 6)
    nodes, wait, meta = table_at(handle, 9), table_at(handle, 12), words_at(handle, 15)
    clock, chains, counts = words_at(handle, 18), table_at(handle, 21), table_at(handle, 24)
    totals, fixed = words_at(handle, 27), words_at(handle, 30)
    need = short_of(ring, heap, pairs, nodes, meta, chains.shape[1], 0)
    if need != 0:
        return -100 - need
    verdict = tell(clock, time, subject)
    now = clock[NOW]
    level, reason = decide_one(
        verdict, time, now, now - fixed[0], subject, chains, row, fixed[1],
        ring, heap, pairs, nodes, wait, meta, counts, 0,
    )  # fmt: skip
    totals[16 + level if level >= 0 else reason] += 1
    return level if level >= 0 else -1 - reason

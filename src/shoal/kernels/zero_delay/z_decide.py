"""The z-anonymity decision for a batch of events: count all levels, release the most specific with enough people."""

import numpy as np

from shoal.kernels.compile import bare, kernel
from shoal.kernels.shared.address import floats_at, words_at
from shoal.kernels.shared.clock import BAD, BEHIND, FUTURE, LIMIT, NOW, ON_TIME, tell
from shoal.kernels.zero_delay.sliding import (
    _COUNT,
    _SPREAD,
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
    NEED_LOG,
    NEED_NODES,
    NEED_PAIRS,
    NEED_RING,
    NEED_WAIT,
    NODES,
    ONE,
    PAIRS,
    PERIOD,
    PLACES,
    ROWS,
    SALT,
    STICKY,
    STRIDE,
    TAIL,
    TOP,
    TWO,
    WAITING,
    U,
    absorb,
    add,
    certain,
    expire,
    expire_late,
    find,
    pair_key,
    remember,
    remember_late,
    show,
    wait_for,
)
from shoal.kernels.zero_delay.z_run import AHEAD, fetch, fetch_rows, run

RARE, LATE, UNKNOWN, FULL, HELD = 1, 2, 6, 7, 9
_WITHHELD = np.int64(15)
LOGGED = 3  # words of a decision in the log before its chain
BEHINDS, TIES = 30, 31  # of the totals: late but within the bound, at the very time of the clock


@bare
def short_of(ring, heap, pairs, nodes, wait, meta, width, events, most):
    """Which array must grow before the next events, or 0. Tables stay half empty: then a probe ends soon."""
    # the worst that may come in: the events, those that wait for the clock, and every invented one
    rows = events + meta[WAITING] + most
    if min(meta[WAITING] + events, meta[PLACES]) * meta[STRIDE] > wait.size:
        return NEED_WAIT
    if (meta[TAIL] - meta[HEAD] + rows) * meta[STRIDE] > ring.size:
        return NEED_RING
    if (meta[HEAP] + rows) * meta[STRIDE] > heap.size:
        return NEED_HEAP
    if 4 * (meta[PAIRS] + rows * width) > pairs.size:
        return NEED_PAIRS
    if 4 * (meta[NODES] + rows * width) > nodes.size:
        return NEED_NODES
    return 0


@bare
def threshold(z, node, now, meta):
    """z, plus the node's own jitter of this period if the threshold is noisy: never less than z."""
    if meta[JITTER] == 0:
        return z
    # from the node and the period, not drawn: whoever repeats an event meets the same threshold and learns nothing
    word = (node ^ meta[SALT]) + (now // meta[PERIOD]) * np.int64(-4417276706812531889)
    word ^= (word >> 31) & np.int64(0x1FFFFFFFF)
    word *= np.int64(-8663945395140668459)
    word ^= (word >> 31) & np.int64(0x1FFFFFFFF)
    return z + (word & np.int64(0x7FFFFFFFFFFFFFFF)) % (meta[JITTER] + 1)


@bare(inline="always")
def fill(counts, place, width, value):
    """All levels of an event alike."""
    for level in range(width):
        counts[place + U(level)] = value


@bare
def decide_one(
    verdict, time, now, limit, subject, chains, base, width, z, ring, heap, pairs, nodes, wait, meta, counts, place
):  # fmt: skip
    """Count one event and decide it: (level, 0), or (-1, why not). ``counts`` receives the people per level."""
    fill(counts, place, width, 0)
    if verdict != ON_TIME and verdict != BEHIND:
        # too late or unreadable: it counts for nobody
        if verdict != FUTURE:
            return -1, verdict
        wait_for(wait, meta, time, subject, chains, base, width)
        fill(counts, place, width, 1)  # only the person is certain
        if z <= 1:
            return 0, 0
        # before the first confirmed time there is no clock it could be ahead of
        return -1, RARE if now < 0 else FUTURE
    expire(limit, ring, pairs, nodes, meta)
    if meta[HEAP] > 0:
        expire_late(limit, heap, pairs, nodes, meta)
    on_time = verdict == ON_TIME
    # the clock has moved: some of those who waited are no longer ahead of it
    if on_time and meta[WAITING] > 0:
        absorb(wait, ring, heap, pairs, nodes, meta, now, limit, z)
    if time < limit:
        return -1, LATE
    # memory is bounded: an event that cannot be remembered may not be released, either
    if meta[PAIRS] + width > meta[CEILING] or meta[TAIL] - meta[HEAD] + meta[HEAP] >= meta[ROWS]:
        return -1, FULL
    leaf, moved, best, real, new_pairs, new_nodes = show(
        time, subject, chains, base, min(width, meta[STRIDE] - 2), z, pairs, nodes, counts, place
    )
    meta[PAIRS] += new_pairs
    meta[NODES] += new_nodes
    if moved and on_time:
        remember(ring, meta, time, subject, chains, base, width)
    elif moved:
        remember_late(heap, meta, time, subject, chains, base, width)
    # a late event looks back: people counted now may have come after it, only those certain to be in its window do
    if not on_time and not certain(ring, heap, pairs, meta, time, subject, chains, base, width, counts, place):
        fill(counts, place, width, 0)
        return -1, LATE
    if best >= meta[TOP]:
        best = -1
    # the level that show() found is right only for a plain threshold; here it is sought again
    if not on_time or meta[STICKY] != 0 or meta[JITTER] != 0:
        first = 0
        if meta[STICKY] != 0:
            mark = pairs[leaf + ONE] & 15
            if mark == _WITHHELD:
                return -1, HELD
            # never more precise than what this person was released as before: the two could be compared
            first = max(0, mark - 1)
        best = -1
        for level in range(first, min(width, meta[TOP])):
            node = chains[base + U(level)]
            if node == 0:
                break
            if counts[place + U(level)] >= threshold(z, node, now, meta):
                best = level
                real = counts[place + U(level)] - (nodes[find(nodes, node) + ONE] >> 32)
                break
        if meta[STICKY] != 0:
            mark = _WITHHELD if best < 0 else min(best + 1, 14)
            pairs[leaf + ONE] = (pairs[leaf + ONE] & ~np.int64(15)) | mark
    if best >= 0:
        meta[LEAST] = min(meta[LEAST], real)
        return best, 0
    return -1, RARE if on_time else LATE


@bare
def fakes_for(ring, pairs, nodes, meta, subject, leaf, category, need, out, first):
    """Most recent people of the same category who did not show the attribute (Bacconi 2021, Algorithm 5). How many.

    Whoever showed the attribute is of its category, so that two counts say whether there can be enough. Only then it
    looks, as far back as the window goes. O(1) if there are too few, else O(events since the last of them).
    """
    real = nodes[find(nodes, leaf) + ONE]
    # the upper half counts invented people
    real = (real & _COUNT) - (real >> 32)
    if (nodes[find(nodes, category) + ONE] & _COUNT) - real < need:
        return 0
    stride = U(meta[STRIDE])
    mask = U(ring.size) // stride - ONE
    found = 0
    at = meta[TAIL] - 1
    while at >= meta[HEAD] and found < need:
        row = (U(at) & mask) * stride
        at -= 1
        other = ring[row + ONE]
        # the person of the event supports it already
        if other == subject:
            continue
        same = False
        for level in range(TWO, stride):
            if ring[row + U(level)] == category:
                same = True
        for j in range(found):
            if out[first + j] == other:
                same = False
        # whoever really showed it in the window would be counted twice
        if same and pairs[find(pairs, pair_key(leaf, other))] == 0:
            out[first + found] = other
            found += 1
    return found


@bare
def invent(time, subject, chains, base, missing, people, ring, pairs, nodes, meta, i, events, subjects, used):
    """Find the fakes that lift an event of ``people`` to z; book them. Whether there were enough."""
    leaf, category = chains[base], chains[base + ONE]
    if category == 0 or fakes_for(ring, pairs, nodes, meta, subject, leaf, category, missing, subjects, used) < missing:
        return False
    real = people - (nodes[find(nodes, leaf) + ONE] >> 32)
    meta[LEAST] = min(meta[LEAST], real)
    for j in range(used, used + missing):
        events[j] = i
        if meta[COUNTED] != 0:
            # counted like real people from here on, as in the paper, and marked, so that reports tell them apart
            add(pairs, nodes, meta, leaf, subjects[j], time, True)
            remember(ring, meta, time, subjects[j], chains, base, 1)
            meta[FAKED] += 1
    return True


@bare
def decide_all(
    start, verdicts, nows, times, subjects, codes, chains, width, limits, zs, mosts,
    ring, heap, pairs, nodes, wait, meta,
    levels, reasons, counts, fake_events, fake_subjects, fakes,
):  # fmt: skip
    """Decide events ``start`` onward. Returns how far it came; ``meta[NEED]`` says which array must grow first."""
    used = fakes[0]
    plain = meta[STICKY] == 0 and meta[JITTER] == 0 and meta[TOP] >= width
    i = start
    while i < times.size:
        most = mosts[i]
        # asked before anything changes: arrays grow outside, and the event is decided anew from the same state
        need = short_of(ring, heap, pairs, nodes, wait, meta, width, AHEAD, most)
        if need == 0 and used + most > fake_events.size:
            need = NEED_FAKES
        if need != 0:
            meta[NEED] = need
            fakes[0] = used
            return i
        stop = min(i + AHEAD, times.size)
        # nearly all events of nearly all streams go this way; who waits for a time far ahead keeps nobody from it
        if plain and most == 0 and meta[HEAP] == 0 and (meta[WAITING] == 0 or wait[0] > nows[stop - 1]):
            i = run(
                i, stop, verdicts, times, subjects, codes, chains, width, limits, zs,
                ring, pairs, nodes, meta, levels, reasons, counts, i == start,
            )  # fmt: skip
            if i == stop:
                continue
        place = U(i) * U(width)
        if codes[i] < 0:  # -1: the hierarchy does not know it, -2: no usable value
            levels[i] = -1
            reasons[i] = BAD if codes[i] < -1 or verdicts[i] == BAD else UNKNOWN
            fill(counts, place, width, 0)
            i += 1
            continue
        base = U(codes[i]) * U(width)
        level, reason = decide_one(
            verdicts[i], times[i], nows[i], limits[i], subjects[i], chains, base, width, zs[i],
            ring, heap, pairs, nodes, wait, meta, counts, place,
        )  # fmt: skip
        # noise helps an event that would lose detail; a late one is not worth inventing people for
        if most > 0 and level != 0 and verdicts[i] == ON_TIME and width > 1 and counts[place] > 0:
            missing = zs[i] - counts[place]
            if 0 < missing <= most and invent(
                times[i], subjects[i], chains, base, missing, counts[place], ring, pairs, nodes, meta, i,
                fake_events, fake_subjects, used,
            ):  # fmt: skip
                level, reason = 0, 0
                used += missing
        levels[i], reasons[i] = level, reason
        i += 1
    meta[NEED] = 0
    fakes[0] = used
    return times.size


@bare
def write_log(log, time, subject, level, chains, base, counts, width):
    """Append a decision: time, person, level, the chain, the people at each level. ``log[0]`` is where it ends."""
    at = log[0]
    log[at], log[at + 1], log[at + 2] = time, subject, level
    for step in range(width):
        log[at + LOGGED + step] = chains[base + U(step)]
        log[at + LOGGED + width + step] = counts[U(step)]
    log[0] = at + LOGGED + 2 * width


@kernel
def decide_next(address, time, subject, row):
    """Clock and decision of a single event whose chain is ``row`` of the chains at hand; counts it in the totals.

    Returns the level, or -1 - reason, or -100 - what must grow first (then nothing has changed).
    """
    ring, heap, pairs = words_at(address, 0), words_at(address, 1), words_at(address, 2)
    nodes, wait, meta = words_at(address, 3), words_at(address, 4), words_at(address, 5)
    clock, chains, counts = words_at(address, 6), words_at(address, 7), words_at(address, 8)
    totals, fixed, log = words_at(address, 9), words_at(address, 10), words_at(address, 12)
    width = meta[STRIDE] - 2
    base = U(row) * U(width)
    for level in range(width):
        fetch(chains[base + U(level)], subject * _SPREAD, pairs, nodes)
    need = short_of(ring, heap, pairs, nodes, wait, meta, width, 1, 0)
    if log.size > 1 and log[0] + LOGGED + 2 * width > log.size:
        need = NEED_LOG
    if need != 0:
        return -100 - need
    before = clock[NOW]
    verdict = tell(clock, time, subject)
    now = clock[NOW]
    if verdict == BEHIND:
        totals[BEHINDS] += 1
    elif verdict == ON_TIME and time == before:
        totals[TIES] += 1
    # never back: a longer window later cannot bring back who has expired
    clock[LIMIT] = max(clock[LIMIT], now - fixed[0])
    level, reason = decide_one(
        verdict, time, now, clock[LIMIT], subject, chains, base, width, fixed[1],
        ring, heap, pairs, nodes, wait, meta, counts, U(0),
    )  # fmt: skip
    totals[16 + level if level >= 0 else reason] += 1
    if log.size > 1:
        write_log(log, time, subject, level, chains, base, counts, width)
    # the next event will find these gone: until it comes there is time to fetch them
    fetch_rows(ring, meta[HEAD], min(meta[HEAD] + 2, meta[TAIL]), U(meta[STRIDE]), pairs, nodes)
    return level if level >= 0 else -1 - reason


@kernel
def decide_at(address, time, subject, row):
    """The same for a time that is a float; array 11 holds its factor, the greatest that is accepted, and the factor
    and divisor of whole numbers."""
    form = floats_at(address, 11)
    when = np.int64(-1)
    # outside, the conversion to an integer is undefined; -1 is no time and is withheld
    if 0.0 <= time <= form[1]:
        whole = np.int64(time)
        when = whole * np.int64(form[2]) // np.int64(form[3]) if whole == time else np.int64(time * form[0] + 0.5)
    return decide_next(address, when, subject, row)

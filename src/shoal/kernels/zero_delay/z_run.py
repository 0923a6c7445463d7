"""The fast lane of z-anonymity: a run of events that came in order, with nothing special about any of them.

The same decisions as :func:`shoal.kernels.zero_delay.z_decide.decide_one` makes one at a time; only the memory is
asked in advance, and the totals stay in registers.
"""

from shoal.kernels.compile import bare
from shoal.kernels.shared.address import prefetch
from shoal.kernels.shared.clock import ON_TIME
from shoal.kernels.zero_delay.sliding import (
    _SPREAD,
    CEILING,
    HEAD,
    LEAST,
    NODES,
    ONE,
    PAIRS,
    ROWS,
    STRIDE,
    TAIL,
    TWO,
    U,
    drop,
    key_of,
    show,
    write,
)

RARE, FULL = 1, 7
AHEAD = 32  # events for which room is made at a time
EVENTS_AHEAD, ROWS_AHEAD = 20, 12  # events looked ahead for, and rows to expire


@bare(inline="always")
def fetch(node, spread, pairs, nodes):
    """Ask for the entries of a node and of its pair with a person."""
    prefetch(pairs, (U(key_of(node, spread)) << ONE) & U(pairs.size - 2))
    prefetch(nodes, (U(node) << ONE) & U(nodes.size - 2))


@bare(inline="always")
def fetch_events(start, stop, subjects, codes, chains, width, pairs, nodes):
    """Ask for what the next events will look up, all at once: the memory then answers in parallel."""
    for i in range(start, stop):
        if codes[i] >= 0:
            base, spread = U(codes[i]) * U(width), subjects[i] * _SPREAD
            for level in range(width):
                fetch(chains[base + U(level)], spread, pairs, nodes)


@bare(inline="always")
def fetch_rows(ring, head, last, stride, pairs, nodes):
    """Ask for what the next rows to expire will look up."""
    mask = U(ring.size) // stride - ONE
    at = U(head)
    while at < U(last):
        base = (at & mask) * stride
        spread = ring[base + ONE] * _SPREAD
        for level in range(TWO, stride):
            fetch(ring[base + U(level)], spread, pairs, nodes)
        at += ONE


@bare
def run(
    start, stop, verdicts, times, subjects, codes, chains, width, limits, zs,
    ring, pairs, nodes, meta, levels, reasons, counts, first,
):  # fmt: skip
    """Decide events until one is special. Returns which, or ``stop``. There must be room for all of them."""
    stride = U(meta[STRIDE])
    longest = meta[STRIDE] - 2
    ring_mask = U(ring.size) // stride - ONE
    # as locals: through the array the compiler would write each of them back at every step
    head, tail, pair_count, node_count = meta[HEAD], meta[TAIL], meta[PAIRS], meta[NODES]
    least, ceiling, most_rows = meta[LEAST], meta[CEILING], meta[ROWS]
    if first:
        fetch_events(start, min(start + EVENTS_AHEAD, times.size), subjects, codes, chains, width, pairs, nodes)
        fetch_rows(ring, head, min(head + ROWS_AHEAD, tail), stride, pairs, nodes)
    i = start
    while i < stop and verdicts[i] == ON_TIME and codes[i] >= 0:
        # one event each time, so that the memory answers while others are decided
        fetch_events(
            i + EVENTS_AHEAD, min(i + EVENTS_AHEAD + 1, times.size), subjects, codes, chains, width, pairs, nodes
        )
        while head < tail:
            base = (U(head) & ring_mask) * stride
            # rows stand in the order of time, so the first that stays ends the search
            if ring[base] >= limits[i]:
                break
            fetch_rows(ring, head + ROWS_AHEAD, min(head + ROWS_AHEAD + 1, tail), stride, pairs, nodes)
            gone_pairs, gone_nodes = drop(ring, base, longest, pairs, nodes)
            pair_count -= gone_pairs
            node_count -= gone_nodes
            head += 1
        if pair_count + width > ceiling or tail - head >= most_rows:
            place = U(i) * U(width)
            for level in range(width):
                counts[place + U(level)] = 0
            levels[i], reasons[i] = -1, FULL
            i += 1
            continue
        base, place = U(codes[i]) * U(width), U(i) * U(width)
        for level in range(width):
            counts[place + U(level)] = 0
        _, moved, best, real, new_pairs, new_nodes = show(
            times[i], subjects[i], chains, base, width, zs[i], pairs, nodes, counts, place
        )
        pair_count += new_pairs
        node_count += new_nodes
        # a second event of the same person at the same time leaves no row: it would expire the first one's
        if moved:
            write(ring, stride, U(tail) & ring_mask, times[i], subjects[i], chains, base, width)
            tail += 1
        levels[i] = best
        reasons[i] = 0 if best >= 0 else RARE
        if best >= 0:
            least = min(least, real)
        i += 1
    meta[HEAD], meta[TAIL], meta[PAIRS], meta[NODES], meta[LEAST] = head, tail, pair_count, node_count, least
    return i

"""The kernels of z-anonymity beside slow and obvious twins, and SipHash beside its authors' vectors."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from shoal.kernels.shared import clock as clocks
from shoal.kernels.shared.fingerprint import distinct, fingerprint, path_cuts
from shoal.kernels.zero_delay import sliding as kernel
from shoal.kernels.zero_delay.k_share import by_person
from shoal.streams.texts import Near

# Aumasson and Bernstein, reference implementation: key 00 01 … 0f, message 00 01 … of each length
SIPHASH = {
    0: 0x726FDB47DD0E0E31,
    1: 0x74F839C593DC67FD,
    2: 0x0D6C8009D9A94F5A,
    3: 0x85676696D7FB7E2D,
    7: 0xAB0200F58B01D137,
    8: 0x93F5F5799A932462,
    15: 0xA129CA6149BE45E5,
}


@pytest.mark.parametrize(("length", "expected"), SIPHASH.items())
def test_siphash_2_4_by_the_authors_vectors(length: int, expected: int) -> None:
    key = np.frombuffer(bytes(range(16)), "<u8")
    data = np.concatenate([np.full(3, 255, np.uint8), np.arange(max(length, 1), dtype=np.uint8)])
    assert int(np.uint64(fingerprint(data, 3, length, key[0], key[1]) & 0xFFFFFFFFFFFFFFFF)) == expected
    assert Near(key).print(bytes(range(length))) & 0xFFFFFFFFFFFFFFFF == expected


# few home slots, so that entries collide, wrap around the end and move up when one before them leaves
keys = st.integers(1, 40).map(lambda k: (k % 5) + 8 * k)


@given(st.lists(st.tuples(keys, st.booleans()), max_size=60))
def test_a_table_is_a_dictionary(steps: list[tuple[int, bool]]) -> None:
    table, slow = np.zeros(2 * 64, np.int64), {}
    for number, (key, put) in enumerate(steps):
        slot = kernel.find(table, key)
        assert bool(table[slot]) == (key in slow)
        if put:
            table[slot], table[slot + 1] = key, number
            slow[key] = number
        elif key in slow:
            _remove(table, slot)
            del slow[key]
    held = table.reshape(-1, 2)
    assert {int(k): int(v) for k, v in held[held[:, 0] != 0]} == slow
    assert all(table[kernel.find(table, k)] == k for k in slow)
    larger = np.zeros(2 * 256, np.int64)
    kernel.rehash(table, larger)
    assert all(larger[kernel.find(larger, k) + 1] == v for k, v in slow.items())


@kernel.bare
def _remove(table, slot):  # type: ignore[no-untyped-def]
    kernel.remove(table, kernel.U(table.size - 2), kernel.U(slot))


WIDTH = 2
events = st.lists(
    st.tuples(st.integers(0, 4), st.integers(1, 5), st.integers(1, 6), st.integers(0, 12), st.booleans()), max_size=60
)


@kernel.bare
def _show(time, subject, chain, pairs, nodes, meta, counts):  # type: ignore[no-untyped-def]
    _, moved, best, _, new_pairs, new_nodes = kernel.show(
        time, subject, chain, kernel.U(0), chain.size, 2, pairs, nodes, counts, kernel.U(0)
    )
    meta[kernel.PAIRS] += new_pairs
    meta[kernel.NODES] += new_nodes
    return moved, best


@given(events)
@settings(max_examples=150)
def test_a_window_counts_whoever_was_seen_in_it(rows: list[tuple[int, int, int, int, bool]]) -> None:
    """Ring and heap beside a list that is scanned: distinct people per node, after every step."""
    meta = np.zeros(kernel.WORDS, np.int64)
    meta[kernel.STRIDE], meta[kernel.CEILING] = WIDTH + 2, 1000
    ring, heap = np.zeros(64 * (WIDTH + 2), np.int64), np.zeros(128 * (WIDTH + 2), np.int64)
    pairs, nodes = np.zeros(2 * 512, np.int64), np.zeros(2 * 128, np.int64)
    counts = np.zeros(WIDTH, np.int32)
    seen: list[tuple[int, int, tuple[int, ...]]] = []
    now, limit = 100, 0
    for gap, who, leaf, late, is_late in rows:
        now += gap
        limit = now - 12
        time = now - late if is_late else now
        kernel.expire(limit, ring, pairs, nodes, meta)
        kernel.expire_late(limit, heap, pairs, nodes, meta)
        chain = np.array([leaf, 10 + leaf % 2], np.int64)
        seen.append((time, who, tuple(chain.tolist())))
        moved, best = _show(time, who, chain, pairs, nodes, meta, counts)
        if moved and time == now:
            kernel.remember(ring, meta, time, who, chain, kernel.U(0), WIDTH)
        elif moved:
            kernel.remember_late(heap, meta, time, who, chain, kernel.U(0), WIDTH)
        people = {node: {u for t, u, c in seen if t >= limit and node in c} for node in (*range(1, 7), 10, 11)}
        assert counts.tolist() == [len(people[n]) for n in chain.tolist()]
        assert best == next((i for i, n in enumerate(chain.tolist()) if len(people[n]) >= 2), -1)
        assert meta[kernel.NODES] == sum(bool(p) for p in people.values())
        assert meta[kernel.PAIRS] == sum(len(p) for p in people.values())
        for node, alive in people.items():
            slot = kernel.find(nodes, node)
            assert (int(nodes[slot + 1]) if nodes[slot] else 0) == len(alive)
        times = heap[: meta[kernel.HEAP] * (WIDTH + 2) : WIDTH + 2]
        assert len(times) == 0 or times[0] == times.min()
    kernel.expire(now + 1, ring, pairs, nodes, meta)
    kernel.expire_late(now + 1, heap, pairs, nodes, meta)
    assert not pairs[::2].any()
    assert not nodes[::2].any()
    assert meta[kernel.PAIRS] == meta[kernel.NODES] == meta[kernel.HEAP] == 0
    assert meta[kernel.HEAD] == meta[kernel.TAIL]


class SlowClock:
    """The greatest time that was confirmed; what runs further ahead waits for other people."""

    def __init__(self, late: int, ahead: int, witnesses: int) -> None:
        self.now, self.late, self.ahead, self.witnesses = -1, late, ahead, witnesses
        self.waiting: list[tuple[int, int, int]] = []  # time, person, clock when it came
        self.run: list[tuple[int, int]] = []  # events ahead, one after the other

    def tell(self, time: int, subject: int) -> int:
        if time < 0 or subject == 0:
            return clocks.BAD
        if self.now >= 0 and time <= self.now + self.ahead:
            self.run = []
            if time < self.now:
                return clocks.BEHIND if time >= self.now - self.late else clocks.TOO_LATE
            if time > self.now:  # a witness that the clock has reached confirms nothing, and goes when it moves
                self.move(time)
            return clocks.ON_TIME
        near = {u for t, u, _ in self.waiting if abs(t - time) <= self.ahead} | {subject}
        if len(near) >= self.witnesses:
            self.run = []
            self.move(time)
            return clocks.ON_TIME
        self.run = [*self.run, (time, subject)] if self.run and time >= self.run[-1][0] else [(time, subject)]
        if len(self.run) >= clocks.STEPS and len({u for _, u in self.run}) > 1 and self.witnesses <= 2:
            self.move(max(self.now, self.run[-2][0]))
        mine = next((w for w in self.waiting if w[1] == subject and abs(w[0] - time) <= self.ahead), None)
        if mine is not None:
            self.waiting.remove(mine)
            time = max(time, mine[0])
        self.waiting.append((time, subject, self.now))
        return clocks.FUTURE

    def move(self, now: int) -> None:
        self.now = now
        known = [(t, u, now if born < 0 else born) for t, u, born in self.waiting]
        self.waiting = [(t, u, born) for t, u, born in known if t > now and now <= born + self.ahead]


@given(
    st.lists(st.tuples(st.integers(-1, 60), st.integers(0, 4)), max_size=60),
    st.integers(0, 8),
    st.integers(0, 12),
    st.integers(1, 3),
)
@example([(0, 2), (0, 2), (1, 1), (1, 1), (1, 1)], 0, 0, 2)  # the fourth in a row sets the clock to its own time
@settings(max_examples=200)
def test_the_clock_beside_its_slow_twin(rows: list[tuple[int, int]], late: int, ahead: int, witnesses: int) -> None:
    clock, slow = clocks.new(late, ahead, witnesses), SlowClock(late, ahead, witnesses)
    for time, subject in rows:
        assert clocks.tell(clock, time, subject) == slow.tell(time, subject)
        assert clock[clocks.NOW] == slow.now
        assert clock[clocks.WAITING] == len(slow.waiting)
    again = clocks.new(late, ahead, witnesses)
    verdicts, nows = np.empty(len(rows), np.int8), np.empty(len(rows), np.int64)
    times, people = (np.array([r[i] for r in rows], np.int64) for i in (0, 1))
    clocks.tell_all(again, times, people, verdicts, nows)
    assert (again == clock).all()


@given(st.lists(st.text("ab.é", max_size=12), max_size=20), st.integers(0, 4), st.booleans(), st.integers(1, 4))
def test_cuts_of_paths_by_splitting(values: list[str], depth: int, reverse: bool, width: int) -> None:
    raw = [v.encode() for v in values]
    lengths = np.array([len(r) for r in raw], np.int64)
    cuts = np.zeros((len(raw), width), np.int64)
    data = np.frombuffer(b"".join(raw) or b"\0", np.uint8)
    most = path_cuts(data, np.cumsum(lengths) - lengths, lengths, np.frombuffer(b".", np.uint8), depth, reverse, cuts)
    longest = 0
    for row, text in enumerate(raw):
        steps = text.split(b".") if text else []
        counts = list(range(min(len(steps), depth or len(steps)), 0, -1))
        longest = max(longest, len(counts))
        if len(counts) > width:  # the whole, and the most general ones
            counts = [counts[0], *counts[len(counts) - width + 1 :]]
        kept = [len(b".".join(steps[-n:] if reverse else steps[:n])) for n in counts]
        kept = [k for k in kept if k]
        assert cuts[row].tolist() == kept + [0] * (width - len(kept))
    assert most == longest


@given(st.lists(st.integers(0, 6), max_size=40))
def test_numbering_and_ordering_by_person(prints: list[int]) -> None:
    array, codes, first = np.array(prints, np.int64), np.empty(len(prints), np.int32), np.empty(len(prints), np.int32)
    count = distinct(array, codes, first)
    known = list(dict.fromkeys(p for p in prints if p))
    assert count == len(known)
    assert codes.tolist() == [known.index(p) if p else -1 for p in prints]
    assert first[:count].tolist() == [prints.index(p) for p in known]
    order = np.empty(len(prints), np.int64)
    by_person(array.astype(np.int32), 7, order)
    assert order.tolist() == sorted(range(len(prints)), key=lambda i: prints[i])

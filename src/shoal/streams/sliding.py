"""The sliding window of one column: the arrays of ``kernels.zero_delay.sliding``, grown and shrunk as needed."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.core.errors import InputError
from shoal.kernels.zero_delay import sliding as kernel
from shoal.kernels.zero_delay.k_share import content
from shoal.kernels.zero_delay.z_decide import decide_all

Ints = NDArray[np.int64]
LEAST = 1 << 10
WAIT, MOST_WAIT = 1 << 8, 1 << 16  # rows of an unconfirmed future: at first, and at most
NOTHING = np.int64(2**62)


class Asked(NamedTuple):
    """What a batch brings to a window: per event its verdict, clock, time, person, limit, z and most fakes."""

    verdicts: NDArray[np.int8]
    nows: Ints
    times: Ints
    subjects: Ints
    limits: Ints
    zs: Ints
    mosts: Ints


class Decided(NamedTuple):
    """Per event: released level or -1, reason or 0, people per level; and the fakes as (event, person)."""

    levels: NDArray[np.int8]
    reasons: NDArray[np.uint8]
    counts: NDArray[np.int32]
    fake_events: Ints
    fake_subjects: Ints


class SlidingWindow:
    """Distinct people per node over a sliding window. ``ceiling`` bounds the bytes; beyond it, events are withheld."""

    def __init__(self, ceiling: int, options: dict[int, int] | None = None) -> None:
        self.ceiling = ceiling
        self.meta = np.zeros(kernel.WORDS, np.int64)
        self.meta[kernel.LEAST] = NOTHING
        self.meta[kernel.TOP] = 64
        self.meta[kernel.PERIOD] = 1
        for word, value in (options or {}).items():
            self.meta[word] = value
        self.ring = np.zeros((LEAST, 3), np.int64)
        self.heap = np.zeros((64, 3), np.int64)
        self.wait = np.zeros((WAIT, 3), np.int64)
        self.pairs = np.zeros(2 * LEAST, np.int64)
        self.nodes = np.zeros(2 * LEAST, np.int64)
        self._limit()

    @property
    def width(self) -> int:
        """Levels a row of the window can hold."""
        return int(self.ring.shape[1]) - 2

    @property
    def bytes(self) -> int:
        """Memory of the state now."""
        return sum(a.nbytes for a in (self.ring, self.heap, self.wait, self.pairs, self.nodes))

    @property
    def events(self) -> int:
        """Rows remembered now."""
        return int(self.meta[kernel.TAIL] - self.meta[kernel.HEAD] + self.meta[kernel.HEAP])

    @property
    def least(self) -> int | None:
        """The fewest real people any released event had, so far."""
        return None if self.meta[kernel.LEAST] == NOTHING else int(self.meta[kernel.LEAST])

    def decide(self, asked: Asked, codes: NDArray[np.int32], chains: Ints) -> Decided:
        """Count and decide a batch, in order. O(levels) per event."""
        n, width = len(codes), chains.shape[1]
        self.widen(width)
        out = Decided(
            np.empty(n, np.int8),
            np.empty(n, np.uint8),
            np.empty((n, width), np.int32),
            np.empty(0, np.int64),
            np.empty(0, np.int64),
        )
        used = np.zeros(1, np.int64)
        at = 0
        # compiled code cannot allocate: it stops where an array runs short, and goes on at the same event when it is
        # larger
        while at < n:
            at = decide_all(
                at, *asked[:4], codes, chains.reshape(-1), width, *asked[4:], *self.arrays,
                out.levels, out.reasons, out.counts.reshape(-1), out.fake_events, out.fake_subjects, used,
            )  # fmt: skip
            if at < n:
                if self.meta[kernel.NEED] == kernel.NEED_FAKES:
                    more = 2 * len(out.fake_events) + int(asked.mosts[at]) + 64
                    out = out._replace(
                        fake_events=_longer(out.fake_events, more), fake_subjects=_longer(out.fake_subjects, more)
                    )
                else:
                    self.grow(int(self.meta[kernel.NEED]))
        self.shrink()
        return out._replace(fake_events=out.fake_events[: used[0]], fake_subjects=out.fake_subjects[: used[0]])

    @property
    def arrays(self) -> tuple[Ints, Ints, Ints, Ints, Ints, Ints]:
        """The state as the kernels take it: flat."""
        ring, heap, wait = (rows.reshape(-1) for rows in (self.ring, self.heap, self.wait))
        return ring, heap, self.pairs, self.nodes, wait, self.meta

    def widen(self, width: int) -> None:
        """Make room for longer chains."""
        if width <= self.width:
            return
        for name in ("ring", "heap", "wait"):
            old = getattr(self, name)
            new = np.zeros((old.shape[0], width + 2), np.int64)
            new[:, : old.shape[1]] = old
            setattr(self, name, new)
        self._limit()

    def grow(self, need: int) -> None:
        """Double the array that ran short."""
        if need == kernel.NEED_RING:
            self._resize_ring(2 * len(self.ring))
        elif need == kernel.NEED_HEAP:
            self.heap = np.vstack([self.heap, np.zeros_like(self.heap)])
        elif need == kernel.NEED_WAIT:
            self.wait = np.vstack([self.wait, np.zeros_like(self.wait)])
        elif need == kernel.NEED_PAIRS:
            self.pairs = _rehashed(self.pairs, 2 * len(self.pairs))
        else:
            self.nodes = _rehashed(self.nodes, 2 * len(self.nodes))

    def shrink(self) -> None:
        """Give back what a past rush needed: an array seven eighths empty is quartered."""
        # to a quarter, not to a half: right after it there is room to grow, so that a steady stream never resizes twice
        if len(self.ring) > LEAST and 8 * (self.meta[kernel.TAIL] - self.meta[kernel.HEAD]) < len(self.ring):
            self._resize_ring(max(LEAST, len(self.ring) // 4))
        if len(self.heap) > LEAST and 8 * self.meta[kernel.HEAP] < len(self.heap):
            self.heap = self.heap[: len(self.heap) // 4].copy()
        if len(self.wait) > 4 * WAIT and 8 * self.meta[kernel.WAITING] < len(self.wait):
            self.wait = self.wait[: len(self.wait) // 4].copy()
        if len(self.pairs) > 2 * LEAST and 16 * self.meta[kernel.PAIRS] < len(self.pairs) // 2:
            self.pairs = _rehashed(self.pairs, max(2 * LEAST, len(self.pairs) // 4))
        if len(self.nodes) > 2 * LEAST and 16 * self.meta[kernel.NODES] < len(self.nodes) // 2:
            self.nodes = _rehashed(self.nodes, max(2 * LEAST, len(self.nodes) // 4))

    def rows(self) -> Ints:
        """The rows in the window, late ones last."""
        place = np.arange(self.meta[kernel.HEAD], self.meta[kernel.TAIL]) & (len(self.ring) - 1)
        return np.vstack([self.ring[place], self.heap[: self.meta[kernel.HEAP]]])

    def content(self, limit: int) -> tuple[Ints, Ints, NDArray[np.int32]]:
        """Who showed what since ``limit``: person, chain and people per level, one row per (person, value)."""
        rows = self.rows()
        rows = np.ascontiguousarray(rows[rows[:, 0] >= limit])
        people, chains = np.empty(len(rows), np.int64), np.empty((len(rows), self.width), np.int64)
        counts = np.empty((len(rows), self.width), np.int32)
        kept = content(rows, self.nodes, people, chains, counts)
        return people[:kept], chains[:kept], counts[:kept]

    def state(self) -> dict[str, Any]:
        """Plain data for a snapshot."""
        place = np.arange(self.meta[kernel.HEAD], self.meta[kernel.TAIL]) & (len(self.ring) - 1)
        return {
            "width": self.width,
            "meta": self.meta.tobytes(),
            "ring": self.ring[place].tobytes(),
            "heap": self.heap[: self.meta[kernel.HEAP]].tobytes(),
            "wait": self.wait[: self.meta[kernel.WAITING]].tobytes(),
            "pairs": _entries(self.pairs).tobytes(),
            "nodes": _entries(self.nodes).tobytes(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a snapshot's plain data; options stay those of this window, so a policy may change."""
        try:
            width = int(state["width"])
            shapes = {"ring": width + 2, "heap": width + 2, "wait": width + 2, "pairs": 2, "nodes": 2}
            read = {name: np.frombuffer(state[name], np.int64).reshape(-1, size) for name, size in shapes.items()}
            meta = np.frombuffer(state["meta"], np.int64)
            # a state of another version would be read shifted, and counts would belong to other people
            if len(meta) != kernel.WORDS or len(read["wait"]) != meta[kernel.WAITING]:
                raise ValueError
        except (KeyError, ValueError, TypeError):
            raise InputError("the snapshot's window cannot be read", where="snapshot") from None
        self.ring = _power(read["ring"], 1)
        self.heap = _power(read["heap"], 1)
        self.wait = _power(read["wait"], WAIT)
        # tables are written without their gaps and hashed anew: a snapshot's size follows what it holds
        self.pairs = _rehashed(read["pairs"].reshape(-1), 2 * _capacity(2 * len(read["pairs"])))
        self.nodes = _rehashed(read["nodes"].reshape(-1), 2 * _capacity(2 * len(read["nodes"])))
        self.meta[kernel.HEAD], self.meta[kernel.TAIL] = 0, len(read["ring"])
        for word in (kernel.PAIRS, kernel.NODES, kernel.HEAP, kernel.WAITING, kernel.LEAST):
            self.meta[word] = meta[word]
        self._limit()

    def _resize_ring(self, capacity: int) -> None:
        count = int(self.meta[kernel.TAIL] - self.meta[kernel.HEAD])
        place = np.arange(self.meta[kernel.HEAD], self.meta[kernel.TAIL]) & (len(self.ring) - 1)
        new = np.zeros((capacity, self.ring.shape[1]), np.int64)
        new[:count] = self.ring[place]
        self.ring = new
        self.meta[kernel.HEAD], self.meta[kernel.TAIL] = 0, count

    def _limit(self) -> None:
        # half for remembered rows, half for the tables; an array may be twice its content, a table four times
        self.meta[kernel.ROWS] = max(self.ceiling // 2 // (2 * 8 * (2 + self.width)), 1)
        self.meta[kernel.CEILING] = max(self.ceiling // 2 // (2 * 4 * 16), self.width)
        self.meta[kernel.PLACES] = min(MOST_WAIT, max(self.meta[kernel.ROWS] // 4, WAIT))
        self.meta[kernel.STRIDE] = self.width + 2


def _capacity(size: int) -> int:
    return max(LEAST, 1 << (size - 1).bit_length()) if size > 0 else LEAST


def _power(rows: Ints, slack: int) -> Ints:
    new = np.zeros((_capacity(len(rows) + slack), rows.shape[1]), np.int64)
    new[: len(rows)] = rows
    return new


def _rehashed(old: Ints, words: int) -> Ints:
    new = np.zeros(words, np.int64)
    kernel.rehash(old, new)
    return new


def _entries(table: Ints) -> Ints:
    entries: Ints = table.reshape(-1, 2)
    used: Ints = entries[entries[:, 0] != 0]
    return used


def _longer(old: Ints, size: int) -> Ints:
    new = np.empty(size, np.int64)
    new[: len(old)] = old
    return new

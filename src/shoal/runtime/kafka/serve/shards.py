"""A shard: one stateful view of one partition at work, and what the changelog keeps of it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec
import numpy as np

from shoal.runtime.kafka.serve import stateful
from shoal.runtime.kafka.serve.dressed import Dressed
from shoal.runtime.kafka.serve.source_records import Record, Records
from shoal.runtime.kafka.state.changelog import (
    VERSION,
    Position,
    Seal,
    Snapshot,
    Stand,
    Tick,
    key_of,
    name_of,
    pieces_of,
)

QUIET = 1.0  # seconds without a record after which the clock is moved on
EVERY = 100_000  # records between two snapshots of a small state
OFTEN = 60.0  # seconds between two of them, while records come
LIGHT = 10_000_000  # bytes: a state ten times as large is written a tenth as often
TICKS = 1000  # ticks between two snapshots, at most


@dataclass
class Shard:
    """One stateful view of one partition at work."""

    role: str
    view: str  # its topic: the name of its state
    partition: int
    work: stateful.Stateful
    seal: Seal
    next: int = 0
    ticks: int = 0
    since: int = -1  # where in the changelog the newest snapshot begins
    unsaved: int = 0  # records since the newest snapshot
    ticked: int = 0  # ticks since
    newest: int = 0  # the number of the newest tick that was logged
    size: int = 0  # its bytes
    dirty: bool = False
    ended: bool = False  # whether all input there is was read
    moved: float = field(default_factory=time.monotonic)  # when the last record or tick came, or the end was reached
    saved: float = field(default_factory=time.monotonic)

    def push(self, records: Sequence[Record]) -> tuple[Dressed, list[Record]]:
        """Take records of this partition; those it has seen before it skips."""
        new = Records.of(records)
        if len(new) and new.offsets[0] < self.next:
            new = new.take(np.flatnonzero(new.offsets >= self.next))
        if not len(new):
            return Dressed(), []
        out = self.work.push(new.full())
        self.next = int(new.offsets[-1]) + 1
        self.unsaved += len(new)
        self.dirty, self.ended, self.moved = True, False, time.monotonic()
        return out

    def reach_end(self) -> None:
        """All input there is was read: from now on it is quiet."""
        self.ended, self.moved = True, time.monotonic()

    def due(self) -> Tick | None:
        """The tick to log now, if records wait for the clock and none came for a while.

        The clock goes on from where the records left it, by the time that has passed since: a jump of this machine's
        clock moves nothing.
        """
        clock, quiet = self.work.clock, time.monotonic() - self.moved
        if clock is None or not self.ended or quiet < QUIET:
            return None
        return Tick(self.ticks + 1, self.next, clock + int(quiet * 1_000_000))

    def tick(self, tick: Tick) -> Dressed:
        """Act on a tick that is committed."""
        out = self.work.tick(tick.now)
        self.ticks = tick.number
        self.ticked += 1
        self.dirty, self.moved = True, time.monotonic()
        return out

    def wants_snapshot(self) -> bool:
        """Whether the log since the newest snapshot has grown long."""
        if self.since < 0 or self.ticked >= TICKS:
            return True
        worth = 1 + self.size / LIGHT  # reading the log again costs less than writing a large state all the time
        waited = time.monotonic() - self.saved
        return self.unsaved >= EVERY * worth or (self.unsaved + self.ticked > 0 and waited > OFTEN * worth)

    def snapshot(self) -> list[tuple[bytes, bytes]]:
        """The changelog records of a snapshot of now."""
        taken = Snapshot(VERSION, self.next, self.ticks, self.work.snapshot())
        out = [self._sealed(*piece) for piece in pieces_of(self.view, name_of(self.view, taken), taken)]
        self.unsaved, self.ticked, self.size, self.saved = 0, 0, len(taken.data), time.monotonic()
        return out

    def position(self) -> tuple[bytes, bytes]:
        """The changelog record that says how far the published output stands."""
        at = Position(self.next, self.ticks, self.since)
        return self._sealed(key_of(self.view, "position"), msgspec.msgpack.encode(at))

    def stand(self) -> Stand:
        """What the note of a commit says of it."""
        return Stand(self.next, self.ticks, max(self.ticks, self.newest))

    def logged(self, tick: Tick) -> tuple[bytes, bytes]:
        """The changelog record of a tick. Keys come round again, so that ticks of old snapshots are written over."""
        self.newest = tick.number
        return self._sealed(key_of(self.view, "tick", tick.number % (4 * TICKS)), msgspec.msgpack.encode(tick))

    def _sealed(self, key: bytes, value: bytes) -> tuple[bytes, bytes]:
        return key, self.seal.close(value, key, self.partition)

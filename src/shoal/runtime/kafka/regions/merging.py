"""The second stage: a view at work on one region, whose records come out of many partitions of the source.

Partitions are read at their own speeds, so records of one region arrive in no order of time: a method's clock would run
ahead with the fastest, and withhold the others as late. So records wait here until every partition that is not at its
end has been read as far as theirs; then they go on in the order of their partitions' times. A record is never later
among all than it was in its own partition.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING

import msgspec

from shoal.runtime.kafka.regions.blocks import UNTIMED, Block, Entry, Mark, SealedError, block_of
from shoal.runtime.kafka.serve.dressed import Dressed
from shoal.runtime.kafka.serve.output import Record

if TYPE_CHECKING:
    from shoal.runtime.kafka.serve.stateful import MethodRunner

MOST_WAITING = 100_000  # records that wait for a slower partition, of one region
PATIENCE = 30  # ticks (of a second or more, without any block) until nobody is waited for any more
END = 1 << 62
_AT = attrgetter("at")


class State(msgspec.Struct, frozen=True, array_like=True):
    """Everything a region knows."""

    inner: bytes
    waiting: list[Entry]
    marks: list[Mark]
    passed: int
    quiet: int
    refused: list[Entry]


class RegionRunner:
    """A view with promises on one region: blocks in; the records inside go to ``inner`` in the order of their times.

    ``view`` is the name of its state: blocks of other views, or of former versions, are passed by.
    """

    def __init__(self, inner: MethodRunner, view: str, region: int, state: State | None) -> None:
        self.inner = inner
        self._view, self._region = view, region
        self._waiting = list(state.waiting) if state is not None else []
        self._marks = {mark.partition: mark for mark in state.marks} if state is not None else {}
        self._passed = state.passed if state is not None else UNTIMED  # the time up to which records went on
        self._quiet = state.quiet if state is not None else 0
        self._refused = list(state.refused) if state is not None else []  # by a tick, which cannot say so

    def push(self, records: Sequence[Record]) -> tuple[Dressed, list[Record]]:
        """See :class:`~shoal.runtime.kafka.serve.stateful.Stateful`."""
        ready: list[Entry] = []
        for record in records:
            block = block_of(record.value)
            if self._view and block.view != self._view:
                continue
            if block.region != self._region:
                raise SealedError("a block stands in another region's partition", where="the topic of regions")
            ready += self._taken(block)
        out, bad = self.inner.push(ready)
        bad, self._refused = [*self._refused, *bad], []
        return out, bad

    def tick(self, now: int) -> Dressed:
        """See :class:`~shoal.runtime.kafka.serve.stateful.Stateful`."""
        released: list[Entry] = []
        if self._waiting:
            self._quiet += 1
            released = self._released(END) if self._quiet >= PATIENCE else []
        out, bad = self.inner.push(released)
        odd = {(r.partition, r.offset) for r in bad}
        self._refused += [e for e in released if (e.partition, e.offset) in odd]
        if self.inner.clock is not None:
            out += self.inner.tick(now)
        return out

    def snapshot(self) -> bytes:
        """See :class:`~shoal.runtime.kafka.serve.stateful.Stateful`."""
        marks = list(self._marks.values())
        state = State(self.inner.snapshot(), self._waiting, marks, self._passed, self._quiet, self._refused)
        return msgspec.msgpack.encode(state)

    @property
    def held(self) -> int:
        """See :class:`~shoal.runtime.kafka.serve.stateful.Stateful`."""
        return self.inner.held + len(self._waiting)

    @property
    def clock(self) -> int | None:
        """See :class:`~shoal.runtime.kafka.serve.stateful.Stateful`."""
        now = self.inner.clock
        return max(0, self._passed) if now is None and self._waiting else now

    @property
    def withheld(self) -> int:
        """See :class:`~shoal.runtime.kafka.serve.stateful.Stateful`."""
        return self.inner.withheld

    @property
    def reasons(self) -> Mapping[str, int]:
        """See :class:`~shoal.runtime.kafka.serve.stateful.Stateful`."""
        return self.inner.reasons

    @property
    def smallest(self) -> int | None:
        """See :class:`~shoal.runtime.kafka.serve.stateful.Stateful`."""
        return self.inner.smallest

    @property
    def oldest(self) -> int | None:
        """See :class:`~shoal.runtime.kafka.serve.stateful.Stateful`."""
        times = [self._waiting[0].timestamp] if self._waiting else []
        return min([*times, *([] if self.inner.oldest is None else [self.inner.oldest])], default=None)

    @property
    def judged(self) -> tuple[int, int]:
        """See :class:`~shoal.runtime.kafka.serve.stateful.Stateful`."""
        return self.inner.judged

    def _taken(self, block: Block) -> list[Entry]:
        """Take one block; answers what goes on now. By blocks, not by batches of them: a replay must do the same."""
        known = self._marks
        # exactly once, whoever wrote it how often: what a partition's mark has passed was here before
        new = [e for e in block.entries if (mark := known.get(e.partition)) is None or e.offset >= mark.next]
        # a partition that has ended goes on by further records, or by a new reader, who may find some: others wait for
        # it again, or they would outrun it after every restart. An older word, said again, does not wake it
        known |= {
            m.partition: m for m in block.marks if (old := known.get(m.partition)) is None or _age(m) >= _age(old)
        }
        self._quiet = 0
        if new and new[0].at == UNTIMED and not self._waiting and all(e.at == UNTIMED for e in new):
            return new  # without a time there is no order to keep
        self._waiting += new
        self._waiting.sort(key=_AT)  # stable: records of one partition keep their order
        live = [mark.at for mark in known.values() if not mark.ended]
        return self._released(UNTIMED if len(known) < block.of else min(live, default=END))

    def _released(self, upto: int) -> list[Entry]:
        """Those that wait, up to this time; and the oldest, if too many wait."""
        count = max(bisect_right(self._waiting, upto, key=_AT), len(self._waiting) - MOST_WAITING)
        out, self._waiting = self._waiting[:count], self._waiting[count:]
        if out:
            self._passed = max(self._passed, out[-1].at)
        return out


def _age(mark: Mark) -> tuple[int, int, bool]:
    """Of two words about a partition the newer one is larger.

    The clocks of two readers may disagree: then a new one is not waited for until it has read a record. That makes
    records late, never wrong.
    """
    return mark.next, mark.begun, mark.ended


def state_of(snapshot: bytes) -> State:
    """A snapshot of :class:`RegionRunner`, opened."""
    return msgspec.msgpack.decode(snapshot, type=State)

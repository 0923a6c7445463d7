"""The second stage: a view at work on one region, whose records come out of many partitions of the source.

Partitions are read at their own speeds, so records of one region arrive in no order of time: a method's clock would run
ahead with the fastest, and withhold the others as late. So records wait here until every partition that is not at its
end has been read as far as theirs; then they go on in the order of their partitions' times. A record is never later
among all than it was in its own partition.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from shoal.core.lines import Numbers
from shoal.runtime.kafka.regions.blocks import UNTIMED, Entries, Entry, Mark, Opened, Packed, SealedError, block_of
from shoal.runtime.kafka.serve.dressed import Dressed
from shoal.runtime.kafka.serve.source_records import Record, Records

if TYPE_CHECKING:
    from shoal.runtime.kafka.serve.stateful import MethodRunner

MOST_WAITING = 100_000  # records that wait for a slower partition, of one region
PATIENCE = 30  # ticks (of a second or more, without any block) until nobody is waited for any more
END = 1 << 62
NONE = Entries.joined([])


class State(msgspec.Struct, frozen=True, array_like=True):
    """Everything a region knows."""

    inner: bytes
    # packed; former versions wrote them one by one, and refuse to read them so: they would lose what they cannot see
    waiting: bytes | list[Entry]
    marks: list[Mark]
    passed: int
    quiet: int
    refused: list[Entry]

    def entries(self) -> Entries:
        """Those that wait."""
        if isinstance(self.waiting, list):
            return Entries.of(self.waiting)
        return msgspec.msgpack.decode(self.waiting, type=Packed).entries()


class RegionRunner:
    """A view with promises on one region: blocks in; the records inside go to ``inner`` in the order of their times.

    ``view`` is the name of its state: blocks of other views, or of former versions, are passed by. ``unsealed`` opens
    them.
    """

    def __init__(
        self, inner: MethodRunner, view: str, region: int, state: State | None, unsealed: Callable[[bytes], bytes]
    ) -> None:
        self.inner, self._unsealed = inner, unsealed
        self._view, self._region = view, region
        self._waiting = NONE if state is None else state.entries()
        self._marks = {mark.partition: mark for mark in state.marks} if state is not None else {}
        self._passed = state.passed if state is not None else UNTIMED  # the time up to which records went on
        self._quiet = state.quiet if state is not None else 0
        self._refused = list(state.refused) if state is not None else []  # by a tick, which cannot say so

    def push(self, records: Sequence[Record]) -> tuple[Dressed, list[Record]]:
        """See :class:`~shoal.runtime.kafka.serve.stateful.Stateful`."""
        blocks: list[Opened] = []
        for value in Records.of(records).values:
            block = block_of(self._unsealed(value))
            if self._view and block.view != self._view:
                continue
            if block.region != self._region:
                raise SealedError("a block stands in another region's partition", where="the topic of regions")
            blocks.append(block)
        out, bad = self.inner.push(self._taken(blocks))
        bad, self._refused = [*self._refused, *bad], []
        return out, bad

    def tick(self, now: int) -> Dressed:
        """See :class:`~shoal.runtime.kafka.serve.stateful.Stateful`."""
        released = NONE
        if len(self._waiting):
            self._quiet += 1
            released = self._released(END) if self._quiet >= PATIENCE else released
        out, bad = self.inner.push(released)
        self._refused += [record for record in bad if isinstance(record, Entry)]
        if self.inner.clock is not None:
            out += self.inner.tick(now)
        return out

    def snapshot(self) -> bytes:
        """See :class:`~shoal.runtime.kafka.serve.stateful.Stateful`."""
        marks = list(self._marks.values())
        packed = Packed.of_entries(self._view, self._region, 0, [], self._waiting)
        waiting = msgspec.msgpack.encode(packed)
        state = State(self.inner.snapshot(), waiting, marks, self._passed, self._quiet, self._refused)
        return msgspec.msgpack.encode(state)

    @property
    def held(self) -> int:
        """See :class:`~shoal.runtime.kafka.serve.stateful.Stateful`."""
        return self.inner.held + len(self._waiting)

    @property
    def clock(self) -> int | None:
        """See :class:`~shoal.runtime.kafka.serve.stateful.Stateful`."""
        now = self.inner.clock
        return max(0, self._passed) if now is None and len(self._waiting) else now

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
        times = self._waiting.timestamps[:1].tolist()
        return min([*times, *([] if self.inner.oldest is None else [self.inner.oldest])], default=None)

    @property
    def judged(self) -> tuple[int, int]:
        """See :class:`~shoal.runtime.kafka.serve.stateful.Stateful`."""
        return self.inner.judged

    def _taken(self, blocks: Sequence[Opened]) -> Entries:
        """Take blocks; answers what goes on now. By blocks, not by batches of them: a replay must do the same."""
        if not blocks:
            return NONE
        # where each stands among all; the records themselves are moved once, when all is decided
        every = Entries.joined([self._waiting, *(block.entries for block in blocks)])
        waiting, begin = np.arange(len(self._waiting)), len(self._waiting)
        ready = [waiting[:0]]
        for block in blocks:
            new = begin + self._new(block)
            begin += len(block.entries)
            if len(new) and not len(waiting) and (every.ats[new] == UNTIMED).all():
                ready.append(new)  # without a time there is no order to keep
                continue
            waiting = np.concatenate([waiting, new])
            if (np.diff(every.ats[waiting]) < 0).any():
                # stable: records of one partition keep their order
                waiting = waiting[np.argsort(every.ats[waiting], kind="stable")]
            live = [mark.at for mark in self._marks.values() if not mark.ended]
            upto = UNTIMED if len(self._marks) < block.of else min(live, default=END)
            count = self._count(every.ats[waiting], upto)
            ready.append(waiting[:count])
            waiting = waiting[count:]
        self._waiting = every.take(waiting).packed()
        return every.take(np.concatenate(ready))

    def _new(self, block: Opened) -> Numbers:
        """Which records of a block were not here before; what it says of partitions is known then."""
        known, entries = self._marks, block.entries
        # exactly once, whoever wrote it how often: what a partition's mark has passed was here before
        passed = np.zeros(int(entries.partitions.max(initial=0)) + 1, np.int64)
        for partition in set(entries.partitions.tolist()) & known.keys():
            passed[partition] = known[partition].next
        # a partition that has ended goes on by further records, or by a new reader, who may find some: others wait for
        # it again, or they would outrun it after every restart. An older word, said again, does not wake it
        known |= {
            m.partition: m for m in block.marks if (old := known.get(m.partition)) is None or _age(m) >= _age(old)
        }
        self._quiet = 0
        return np.flatnonzero(entries.offsets >= passed[entries.partitions])

    def _count(self, ats: Numbers, upto: int) -> int:
        """How many of those that wait go on, up to this time; and the oldest, if too many wait."""
        count = max(int(np.searchsorted(ats, upto, "right")), len(ats) - MOST_WAITING)
        if count:
            self._passed = max(self._passed, int(ats[count - 1]))
        return count

    def _released(self, upto: int) -> Entries:
        """Those that wait, up to this time."""
        count = self._count(self._waiting.ats, upto)
        out = self._waiting.take(slice(count))
        self._waiting = self._waiting.take(slice(count, None)).packed()
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

"""Batches: k-anonymity with bounded delay by planning all held tuples together. The default with delay."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.core.errors import UsageError
from shoal.core.schema import Schema
from shoal.kernels.delay.batches import Knobs, plan_windows
from shoal.kernels.delay.published import HELD, WITHHELD
from shoal.kernels.delay.recent import Recent
from shoal.kernels.delay.stream_boxes import Tuples
from shoal.kernels.delay.window import TABLE
from shoal.kernels.shared.promises import T_EQUAL
from shoal.promises.base import Promise
from shoal.streams.bounds import FOREVER, LEAST_BOXES, Bounds, Delayed, bounds_of
from shoal.streams.holding import Events, Holding, Portion, Task, clock_of
from shoal.streams.spread import COUNTED, DECIDED, Held, Spread

LATEST = 1 << 62
RECENT = 1000  # latest tuples that say which boxes will be wanted again


class Batches(Delayed, frozen=True, tag="batches"):
    """Every tuple leaves within the delay, with a generalization shared by at least k people at that moment.

    With ``reuse``, a tuple may instead get a box that at least k people got within the last ``reuse`` tuples (a
    number), or within a time (``"10m"``), or ever (``"forever"``, as CASTLE does); ``"never"`` forbids it. Protects
    against finding a person's record by quasi values, and as l-diversity and t-closeness do if promised. Does not
    protect against someone who follows one person over several records, nor, with reuse, against someone who knows
    *when* a person's record came: a box reused for one tuple is a group of one in time.

    It holds tuples until the oldest must leave: after ``delay`` further events or after ``delay_time``, whichever
    is first. Then all held tuples are planned together: groups grow around outliers, members move and swap while that
    saves loss, and a published box is taken where it is cheaper. What cannot be released is withheld and counted.

    A window of more than 2,048 tuples (4 k, if that is more) is closed when three quarters of its delay are over and
    planned block by block until it is due, so that no pause grows with the plan.

    Cost: O(columns x 2,048) per tuple for small k, O(delay) memory, ``boxes`` published boxes. The longest pause:
    ``figures()["longest_pause"]``.

    >>> import polars as pl
    >>> from shoal.core.hierarchy.range import Range
    >>> from shoal.promises.k_anonymity import KAnonymity
    >>> from shoal.streams.base import Batch
    >>> schema = Schema.build(quasi={"age": Range(min=0, max=100)})
    >>> stream = Batches(delay=3).start(schema, [KAnonymity(2)], key=bytes(32))
    >>> out = stream.push(Batch(pl.DataFrame({"age": [21, 64, 22, 60]}), np.arange(4)))
    >>> sorted(out.released["age"])
    ['[21, 22]', '[21, 22]', '[60, 64]', '[60, 64]']

    Reference: this project; the promise is that of Cao, Carminati, Ferrari and Tan (TDSC 2011).
    """

    delay: int = 1000
    delay_time: str | None = None
    reuse: int | str | None = None
    boxes: int = 4096

    def __post_init__(self) -> None:
        if self.bounds().reuse >= FOREVER and self.boxes < LEAST_BOXES:
            raise UsageError(
                f"`boxes` must be at least {LEAST_BOXES} where they are used forever, found {self.boxes}",
                where="batches",
                hint="with fewer, most are forgotten before they are used again",
            )

    def bounds(self) -> Bounds:
        """The bounds, checked."""
        return bounds_of(self.delay, self.delay_time, self.reuse, self.boxes, "batches")

    def start(
        self, schema: Schema, promises: Sequence[Promise], *, key: bytes, seed: int = 0, snapshot: bytes | None = None
    ) -> RunningBatches:
        """See :class:`StreamMethod`. Nothing is random but the order inside an emission, which the key decides."""
        return RunningBatches(self.bounds(), schema, promises, key, snapshot)


class RunningBatches(Holding):
    """Batches at work."""

    method = "batches"
    _wait = False  # whether what a plan leaves over may wait for the next block
    _blocks = False  # whether what is planned are blocks, whose sensitive values were counted when they came

    def opened(self) -> None:
        """See :class:`Holding`."""
        q, deep, trees = len(self.coder.names), int(self.coder.depth.max()), bool(self.coder.tree.any())
        forever = self.bounds.reuse >= FOREVER
        self._knobs = Knobs(
            lean=0.25 / q,
            passes=1 if trees else 5 if forever else 3,
            near=0.8,
            future=1000.0 if forever else 0.0,
            skip=1.0 if trees else 0.25 if forever else 0.5,
            candidates=16 if trees else 32,
        )
        count = RECENT if forever else 1
        self._recent = Recent(
            np.zeros((q, count)),
            np.zeros((q, deep, count), np.int64),
            np.zeros(count, np.float32),
            np.zeros(1, np.int64),
            np.full(1, 0.5, np.float32),
        )
        self._spread = Spread(self.bounds, self.sensitive.crowd)
        self.patient = self._blocks = not self._spread.small
        self._table = np.zeros((q, TABLE, TABLE) if trees else (1, 1, 1), np.float32)

    def own_arrays(self) -> dict[str, NDArray[Any]]:
        """See :class:`Holding`."""
        return {**dict(zip(Recent._fields, self._recent, strict=True)), "spread": self._spread.state}

    def waits(self, events: Events) -> bool:
        """See :class:`Holding`."""
        return self._spread.due(self._marked, events.number, events.now, finish=False) is None

    def _marked(self) -> Held:
        """The tuples that wait; their marks are written where they stand by :meth:`portions`."""
        waiting, rows = self.waiting, self.waiting.rows
        every = len(rows) == waiting.size
        event, arrived, mark, prints = (
            waiting.column(name) if every else waiting.column(name)[rows]
            for name in ("event", "arrived", "mark", "prints")
        )
        return Held(event, arrived, mark, prints, rows)

    def _tuples(self) -> Tuples:
        return self.coder.tuples(self.waiting.coded)

    def portions(self, events: Events, *, finish: bool) -> Iterator[Portion]:
        """See :class:`Holding`. A window at a time, or a block of a large one; what a block cannot release goes on.

        Where no window can be large, the kernel goes from window to window: that spares what each call costs.
        """
        spread, marks, gone = self._spread, self.waiting.column("mark"), self.waiting.gone
        start, state = 0, spread.state
        if spread.small:
            self.seq = int(state[DECIDED])
            yield Portion(np.arange(self.waiting.size), None, finish)
            state[DECIDED] = self.seq
            return
        while True:
            at = spread.due(self._marked, events.number[start:], events.now[start:], finish=finish)
            if at is None:
                return
            start += at
            until = int(events.number[start]) if not finish or start < len(events.number) - 1 else LATEST
            held = self._marked()
            some, following = spread.portion(held, self._tuples, until)
            marks[held.row] = held.mark
            if not len(some):
                continue
            rows = held.row[some]
            here = held.event <= events.number[start]
            arrived = int(state[DECIDED]) + int(np.count_nonzero(here))
            self.seq = arrived - len(rows)  # a box is as old as the tuples that came since, decided or not
            fresh = held.row[(held.event > state[COUNTED]) & here]
            self.sensitive.count(self.waiting.codes(fresh))
            state[COUNTED] = max(state[COUNTED], events.number[start])
            self._wait = following is not None
            yield Portion(rows, start, True)
            if following is not None:
                marks[rows[~gone[rows]]] = following
            state[DECIDED] += int(np.count_nonzero(gone[rows]))

    def decide(self, task: Task, events: Events, *, finish: bool) -> None:
        """Plan these tuples together."""
        counts = self.sensitive.counts(task.rules)
        # they were counted when they came, and the kernel counts them
        for s in np.flatnonzero(task.rules.kind >= T_EQUAL) if self._blocks else ():
            counts[s] -= np.bincount(task.rules.value[s], minlength=counts.shape[1])
        seq = np.array([self.seq], np.int64)
        plan_windows(
            task.tuples, task.prints, task.rules, task.work, self.kept.published, task.released, counts,
            self._recent, self._knobs, self._table, seq, clock_of(task, events, self.bounds), finish,
        )  # fmt: skip
        self.seq = int(seq[0])
        self.sensitive.take_counts(counts)
        if self._wait:
            task.released.box[task.released.box == WITHHELD] = HELD

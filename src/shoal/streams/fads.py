"""FADS: a fast clustering algorithm for k-anonymizing data streams (Guo and Zhang, KBS 2013), with the delay kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.core.schema import Schema
from shoal.kernels.delay.fads import any_due, fads, sketched
from shoal.kernels.delay.near import Sketch, sketch_of
from shoal.promises.base import Promise
from shoal.streams.bounds import FOREVER, Bounds, Delayed, bounds_of
from shoal.streams.holding import Events, Holding, Task, clock_of

AHEAD = 8  # the sketch is made before the last of so many parts of the delay


class Fads(Delayed, frozen=True, tag="fads"):
    """Every tuple leaves within the delay, with a generalization that at least k people have got.

    Protects against finding a person's record by quasi values, and as l-diversity and t-closeness do if promised.
    Does not protect against someone who knows when a person's record came, as published boxes are used again:
    the last ``boxes`` of them, within ``reuse``; on a topic none, unless ``reuse`` is said.

    When a tuple is due (``delay`` further events, or ``delay_time``), it leaves together with its k - 1 nearest held
    tuples of other people, or alone with a published box that contains it and loses less. The published figures of
    other implementations bound the number of held tuples instead of the delay; here every tuple leaves in time.

    Cost: O(delay x columns) per due tuple at most. Memory O(delay + boxes).

    >>> import polars as pl
    >>> from shoal.core.hierarchy.range import Range
    >>> from shoal.promises.k_anonymity import KAnonymity
    >>> from shoal.streams.base import Batch
    >>> schema = Schema.build(quasi={"age": Range(min=0, max=100)})
    >>> stream = Fads(delay=3).start(schema, [KAnonymity(2)], key=bytes(32))
    >>> stream.push(Batch(pl.DataFrame({"age": [21, 64, 22, 60]}), np.arange(4))).released["age"].to_list()
    ['[21, 22]', '[21, 22]']

    Reference: Guo and Zhang, Fast clustering-based anonymization approaches with time constraints for data streams,
    Knowledge-Based Systems 46, 2013.
    """

    delay: int = 1000
    delay_time: str | None = None
    reuse: int | str | None = None
    boxes: int = 50

    def __post_init__(self) -> None:
        self.bounds()

    def bounds(self) -> Bounds:
        """The bounds, checked."""
        return bounds_of(self.delay, self.delay_time, self.reuse, self.boxes, "fads", usual=FOREVER)

    def start(
        self, schema: Schema, promises: Sequence[Promise], *, key: bytes, seed: int = 0, snapshot: bytes | None = None
    ) -> RunningFads:
        """See :class:`StreamMethod`. Nothing is random but the order inside an emission, which the key decides."""
        return RunningFads(self.bounds(), schema, promises, key, snapshot)


class RunningFads(Holding):
    """FADS at work."""

    method = "fads"
    patient = True

    def opened(self) -> None:
        """See :class:`Holding`."""
        self._seq = np.zeros(1, np.int64)
        self._sketch: Sketch | None = None
        self._sketched = (0, 0, -1)  # of whom: how many had left for ever, had been moved, and had a place then

    def own_arrays(self) -> dict[str, NDArray[Any]]:
        """See :class:`Holding`. The sketch is none: which tuples are near does not hang on it."""
        return {"seq": self._seq}

    def decide(self, task: Task, events: Events, *, finish: bool) -> None:
        """See :class:`Holding`."""
        counts = self.sensitive.counts(task.rules)
        new = int((events.row >= 0).sum())
        clock = clock_of(task, events, self.bounds)
        # soon something will be due: to look at all tuples for the first time is better done before
        soon = self._sketch is None and AHEAD * self.waiting.left >= (AHEAD - 1) * self.bounds.delay
        if finish or soon or any_due(task.released.box, clock):
            self._look(task)
        sketch = self._sketch if self._sketch is not None else sketch_of(task.tuples, task.released.box[:0])
        fads(
            task.tuples, task.prints, task.rules, task.work, self.kept.published, task.released, counts,
            self._seq, clock, self.waiting.size - new, sketch, finish,
        )  # fmt: skip
        self.sensitive.take_counts(counts)

    def _look(self, task: Task) -> None:
        """Bring the sketch of all tuples up to date; a new one where rows were moved."""
        waiting, box = self.waiting, task.released.box
        trimmed, moves, known = self._sketched
        before = self._sketch
        if before is None or moves != waiting.moves:
            self._sketch = sketch_of(task.tuples, box)
        else:
            gone = waiting.trimmed - trimmed
            self._sketch = sketched(task.tuples, box, before, gone, known - gone)
        self._sketched = (waiting.trimmed, waiting.moves, waiting.size)

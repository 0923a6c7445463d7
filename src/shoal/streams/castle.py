"""CASTLE: continuously anonymizing streaming data via adaptive clustering (Cao, Carminati, Ferrari, Tan; TDSC 2011)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.core.errors import UsageError
from shoal.core.schema import Schema
from shoal.kernels.delay.castle import Gamma, Limits, castle
from shoal.kernels.delay.castle_clusters import no_hulls
from shoal.promises.base import Promise
from shoal.streams.bounds import FOREVER, LEAST_BOXES, Bounds, Delayed, bounds_of
from shoal.streams.holding import Events, Holding, Task, clock_of
from shoal.streams.texts import Printer

MOST_CLUSTERS = 10_000
SMALL = 2048  # up to this delay clusters are those of the paper, however large: splitting them is no long pause
LARGE = 8192  # beyond it a cluster of so many tuples leaves at once,
PIECE, PEOPLE = 256, 8  # and one of more than this, or of more than times k, is cut before it is split
LATER = 1 << 62


class Castle(Delayed, frozen=True, tag="castle"):
    """Every tuple leaves within the delay, with a generalization that at least k people have got.

    Protects against finding a person's record by quasi values, and as l-diversity and t-closeness do if promised.
    Does not protect against someone who knows when a person's record came: CASTLE uses published boxes again,
    forever by default as in the paper, so a box may be given to one tuple at a time. ``reuse`` bounds that; on a topic,
    where everyone sees when a record comes, it is ``"never"`` unless something is said.

    A tuple joins the cluster whose loss grows least; if that exceeds τ, the mean loss of the last ``mu`` released
    clusters, and there are fewer than ``beta`` clusters, it starts a new one. When a tuple is due (``delay`` further
    events, or ``delay_time``) its cluster is released, split if it has 2k people; else the tuple gets a published box
    that contains it; else its cluster is merged with others; an outlier is withheld. Two deliberate differences
    from the paper: of several published boxes the cheapest is taken, not a random one, and what the paper publishes
    suppressed is withheld and counted.

    With a delay of more than 2,048 a cluster of 8,192 tuples (8 k, if that is more) leaves at once, and one of more
    than 256 (8 k) is cut before it is split: no pause grows with the square of a cluster.

    Cost: O(beta x columns) per tuple, O(delay) per push. Memory O(delay + beta + boxes). Loss is VInfoLoss, as in the
    paper.

    >>> import polars as pl
    >>> from shoal.core.hierarchy.range import Range
    >>> from shoal.promises.k_anonymity import KAnonymity
    >>> from shoal.streams.base import Batch
    >>> schema = Schema.build(quasi={"age": Range(min=0, max=100)})
    >>> stream = Castle(delay=4, beta=2).start(schema, [KAnonymity(2)], key=bytes(32))
    >>> held = stream.push(Batch(pl.DataFrame({"age": [21, 64, 22, 60]}), np.arange(4)))
    >>> sorted(stream.flush().released["age"])
    ['[21, 22]', '[21, 22]', '[60, 64]', '[60, 64]']

    Reference: Cao et al., CASTLE, IEEE TDSC 8(3), 2011; Allgöwer 2023, section CASTLE.
    """

    delay: int = 1000
    beta: int | None = None
    mu: int = 100
    delay_time: str | None = None
    reuse: int | str | None = None
    boxes: int = 4096

    def __post_init__(self) -> None:
        if not 1 <= self.clusters <= MOST_CLUSTERS:
            raise UsageError(f"`beta` must lie between 1 and {MOST_CLUSTERS:,}", where="castle")
        if self.mu < 1:
            raise UsageError("`mu` must be at least 1", where="castle")
        if self.boxes < LEAST_BOXES:
            raise UsageError(f"`boxes` must be at least {LEAST_BOXES}", where="castle")
        self.bounds()

    @property
    def clusters(self) -> int:
        """β: half the delay, at least 50, if not given. Fewer clusters are faster and lose more."""
        return self.beta if self.beta is not None else min(MOST_CLUSTERS, max(50, self.delay // 2))

    def bounds(self) -> Bounds:
        """The bounds, checked."""
        return bounds_of(self.delay, self.delay_time, self.reuse, self.boxes, "castle", usual=FOREVER)

    def start(
        self, schema: Schema, promises: Sequence[Promise], *, key: bytes, seed: int = 0, snapshot: bytes | None = None
    ) -> RunningCastle:
        """See :class:`StreamMethod`. Random choices are drawn from the key and the record."""
        return RunningCastle(self, schema, promises, key, snapshot, seed)


class RunningCastle(Holding):
    """CASTLE at work."""

    method = "castle"
    leafless = True
    patient = True

    def __init__(
        self, spec: Castle, schema: Schema, promises: Sequence[Promise], key: bytes, snapshot: bytes | None, seed: int
    ) -> None:
        self._spec = spec
        self._salt = Printer(key, "castle").one(str(seed))
        super().__init__(spec.bounds(), schema, promises, key, snapshot)

    def opened(self) -> None:
        """See :class:`Holding`."""
        room = PEOPLE * self.sensitive.crowd
        large = self.bounds.delay > SMALL
        self._limits = Limits(max(LARGE, room), max(PIECE, room)) if large else Limits(LATER, LATER)
        b, q, deep = self._spec.clusters, len(self.coder.names), int(self.coder.depth.max())
        self._gamma = Gamma(
            np.zeros(b, np.bool_),
            np.zeros(b, np.int64),
            np.zeros(b),
            np.zeros((q, b)),
            np.zeros((q, b)),
            np.zeros((q, b), np.bool_),
            np.zeros((q, b), np.int64),
            np.zeros((q, deep, b), np.int64),
            np.zeros(self._spec.mu),
            np.array([0, 0, self._salt, 0], np.int64),
        )
        self._hulls = no_hulls(b, q, deep)

    def own_arrays(self) -> dict[str, NDArray[Any]]:
        """See :class:`Holding`."""
        return dict(zip(Gamma._fields, self._gamma, strict=True))

    def decide(self, task: Task, events: Events, *, finish: bool) -> None:
        """See :class:`Holding`."""
        counts = self.sensitive.counts(task.rules)
        castle(
            task.tuples, task.prints, task.rules, task.work, self.kept.published, task.released, counts,
            self._gamma, self._hulls, task.mark, clock_of(task, events, self.bounds), self._limits, finish,
        )  # fmt: skip
        self.sensitive.take_counts(counts)

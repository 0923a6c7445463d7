"""Counters and live figures of a method with delay."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.kernels.delay.published import Released
from shoal.streams.base import Reason

COUNTS = ("events", "released", "withheld", "groups", "again", "emissions", "smallest", "delay_most", "wait_most")
SECOND = 1_000_000  # microseconds


class Tally:
    """What happened so far. Never a value of a person.

    >>> tally = Tally()
    >>> tally.withheld(np.array([1], np.uint8))
    >>> tally.counters["rare"]
    1
    """

    def __init__(self) -> None:
        self.counts = dict.fromkeys(COUNTS, 0)
        self.reasons = np.zeros(max(Reason) + 1, np.int64)
        self.sums = {"loss": 0.0, "delay": 0.0, "wait": 0.0}
        self.pause = 0.0  # CPU seconds; of this run only, no part of a snapshot

    def released(self, out: NDArray[np.int64], event: NDArray[np.int64], released: Released) -> None:
        """Count released tuples."""
        if not len(out):
            return
        box, again = released.box[out], released.again[out]
        late = released.cause[out] - event[out]
        people = int(released.people[out].min())
        self.counts["released"] += len(out)
        self.counts["again"] += int(again.sum())
        self.counts["groups"] += len(np.unique(box[~again]))
        self.counts["smallest"] = min(self.counts["smallest"] or people, people)
        self.counts["delay_most"] = max(self.counts["delay_most"], int(late.max()))
        self.sums["loss"] += float(released.loss[box].sum())
        self.sums["delay"] += float(late.sum())

    def waited(self, spans: NDArray[np.int64]) -> None:
        """Count how long released tuples were held, in microseconds of the stream's clock."""
        self.sums["wait"] += float(spans.sum())
        self.counts["wait_most"] = max(self.counts["wait_most"], int(spans.max(initial=0)))

    def withheld(self, reasons: NDArray[np.uint8]) -> None:
        """Count withheld events by reason."""
        self.counts["withheld"] += len(reasons)
        np.add.at(self.reasons, reasons, 1)

    @property
    def counters(self) -> Mapping[str, int]:
        """Totals since the start."""
        shown = {name: self.counts[name] for name in ("events", "released", "withheld", "groups", "again", "emissions")}
        return {**shown, **{reason.name.lower(): int(self.reasons[reason]) for reason in Reason}}

    def figures(self, held: int, boxes: int, *, timed: bool) -> Mapping[str, Any]:
        """Loss per released tuple, the fewest people anyone hides among, delay in events and in seconds, shares."""
        released = max(1, self.counts["released"])
        waits = {"wait_mean": self.sums["wait"] / released / SECOND, "wait_most": self.counts["wait_most"] / SECOND}
        return {
            "loss": self.sums["loss"] / released,
            "smallest_group": self.counts["smallest"],
            "delay_mean": self.sums["delay"] / released,
            "delay_most": self.counts["delay_most"],
            **(waits if timed else {}),
            "withheld_share": self.counts["withheld"] / max(1, self.counts["released"] + self.counts["withheld"]),
            "again_share": self.counts["again"] / released,
            "boxes": boxes,
            "held": held,
            "longest_pause": self.pause,
        }

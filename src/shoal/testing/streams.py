"""Laws of stream methods: the four rules of :mod:`shoal.streams.base`, and that the verifier accepts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from shoal.core.groups import Finding
from shoal.core.hierarchy.path import Path
from shoal.core.hierarchy.range import Range
from shoal.core.schema import Column, Schema
from shoal.promises.base import Promise, those_about
from shoal.promises.k_anonymity import KAnonymity
from shoal.streams.base import Batch, Outcomes, Running, StreamMethod
from shoal.testing.law import law
from shoal.testing.stand_ins import ListSink
from shoal.verifier import verify

EVENTS = 60
QUIET = 3_600_000_000  # an hour without events
KEY = bytes(range(32))
TIME = Column("time", unit="us", ahead="1d")
GROUPS = Schema(
    {
        "who": Column("subject"),
        "age": Column("quasi", hierarchy=Range(min=0, max=40), type="int"),
        "site": Column("quasi", hierarchy=Path(depth=2)),
        "at": TIME,
    }
)


@dataclass
class _Told:
    """Everything a method answered: what it released, for which events, and what it withheld."""

    sink: ListSink = field(default_factory=ListSink)
    events: list[int] = field(default_factory=list)
    withheld: list[tuple[int, int]] = field(default_factory=list)
    joined: list[int] = field(default_factory=list)

    def hear(self, out: Outcomes) -> None:
        if out.released is not None and out.released.height:
            self.sink(out.released)
        self.events += out.events.tolist()
        self.joined += out.joined.tolist()
        self.withheld += zip(out.withheld.tolist(), out.reasons.tolist(), strict=True)

    def same(self, other: _Told) -> bool:
        """Whether all was decided alike; in which call an event was withheld is nobody's business."""
        decided = (self.events, sorted(self.joined)) == (other.events, sorted(other.joined)) and sorted(
            self.withheld
        ) == sorted(other.withheld)
        return decided and self.sink.frame.equals(other.sink.frame)


def check_stream_method(spec: StreamMethod, promises: Sequence[Promise] = (KAnonymity(2),)) -> None:
    """Hold a stream method to its laws, on small random streams; ``promises`` are those it can keep.

    >>> from shoal.streams.batches import Batches
    >>> check_stream_method(Batches(delay=10))
    """
    for seed in range(2):
        frame = _events(seed)
        before = frame.clone()
        whole = _play(spec, promises, frame, EVENTS)
        law(frame.equals(before), spec, "the input is untouched")
        _outcomes(spec, whole)
        _verified(spec, promises, frame, whole)
        law(whole.same(_play(spec, promises, frame, EVENTS)), spec, "the same input, key and seed, the same outcomes")
        law(whole.same(_play(spec, promises, frame, 1)), spec, "events one by one are decided as in a batch")
        law(whole.same(_play(spec, promises, frame, 7, restart=True)), spec, "a snapshot continues as if nothing was")
        half = EVENTS // 2
        later = frame.with_columns(pl.col("at") + pl.when(pl.int_range(pl.len()) < half).then(0).otherwise(QUIET))
        ticked = _play(spec, promises, later, half, ticks=True)
        _outcomes(spec, ticked)
        _verified(spec, promises, later, ticked)


def _events(seed: int) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    people = [None if i == 7 else f"p{rng.integers(12)}" for i in range(EVENTS)]  # one event has no subject
    sites = rng.choice(["a.x", "a.y", "b.x"], EVENTS)
    times = 1_000_000 + np.cumsum(rng.integers(1, 1000, EVENTS))
    return pl.DataFrame({"who": people, "age": rng.integers(0, 40, EVENTS), "site": sites, "at": times})


def _play(
    spec: StreamMethod,
    promises: Sequence[Promise],
    frame: pl.DataFrame,
    size: int,
    *,
    restart: bool = False,
    ticks: bool = False,
) -> _Told:
    """The stream in batches; after each, ``restart`` continues from a snapshot, ``ticks`` says that time has passed."""

    def start(snapshot: bytes | None = None) -> Running:
        return spec.start(GROUPS, promises, key=KEY, snapshot=snapshot)

    # only z-anonymity is judged by the time of each event; with groups, a shown time would be a quasi column
    hidden = ["who"] if _is_z(promises) else ["who", "site"] if _is_of_curves(promises) else ["who", "at"]
    shown = frame.drop(hidden)
    told, running = _Told(), start()
    for first in range(0, frame.height, size):
        times = frame["at"][first : first + size].to_numpy()
        told.hear(running.push(Batch(shown[first : first + size], times, frame["who"][first : first + size], first)))
        if ticks:
            told.hear(running.tick(int(times[-1]) + QUIET))
        if restart:
            state = running.snapshot()
            law(isinstance(state, bytes) and KEY not in state, spec, "a snapshot is bytes without the key")
            running = start(state)
    told.hear(running.flush())
    law(running.held == 0, spec, "at the end nothing is held")
    counted = (running.counters["events"], running.counters["released"], running.counters["withheld"])
    told_of = sum(event >= 0 for event in told.events) + len(told.joined)
    law(counted == (frame.height, told_of, len(told.withheld)), spec, "the counters say what became of events")
    return told


def _is_z(promises: Sequence[Promise]) -> bool:
    return bool(those_about(promises, "events"))


def _is_of_curves(promises: Sequence[Promise]) -> bool:
    return bool(those_about(promises, "curves"))


def _outcomes(spec: StreamMethod, told: _Told) -> None:
    decided = sorted([*(e for e in told.events if e >= 0), *told.joined, *(event for event, _ in told.withheld)])
    law(decided == list(range(EVENTS)), spec, "every event is released once or withheld once")
    law(told.sink.frame.height == len(told.events), spec, "every released row stands for an event")
    law(all(reason > 0 for _, reason in told.withheld), spec, "every withheld event has a reason")
    law(7 not in [*told.events, *told.joined], spec, "an event without a subject is withheld")


def _verified(spec: StreamMethod, promises: Sequence[Promise], frame: pl.DataFrame, told: _Told) -> None:
    if not told.events:
        return
    released, findings = told.sink.frame, list[Finding]()
    quasi = spec.judged(GROUPS, released.columns)
    people = frame["who"].gather(told.events)
    for promise in promises:
        if promise.about == "curves":
            findings += promise.judge_curves(released, [p for p in promises if p is not promise])[0]
        elif promise.about == "events":
            hierarchies = {name: GROUPS[name].hierarchy for name in GROUPS.quasi}
            findings += promise.judge_events(frame, released, time="at", subject="who", quasi=hierarchies, unit="us")
        else:
            findings += verify(released, quasi, [promise], people=people, every_row=True).findings
    law(all(f.kept for f in findings), spec, "the verifier accepts what it releases")

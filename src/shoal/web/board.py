"""How a run goes, kept for whoever looks: a few figures twice a second, bounded, and never a value.

The run's own loop calls :meth:`Board.look`; between two samples that is one look at the clock, so a page costs the run
nearly nothing. Everything else (markup, pictures) is made in the server's thread, when a page asks.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from shoal.core.errors import ShoalError

EVERY = 0.5  # seconds between two samples
MOST_SAMPLES = 600  # samples that are kept: older ones are thinned, so that the history of a long run fits
ERRORS = 20
AT_MOST = 0.005  # of a run's time, to measure how many people are hidden
ONCE = (
    0.3 * EVERY
)  # seconds saved up for the first measurement; one that needs more is given up and saves up twice that
MOST_HELD = 10_000_000  # decisions that measuring may keep: a fuller window is not measured at all


class Sample(msgspec.Struct, frozen=True):
    """One look at a run. What a run does not know is left out."""

    at: float  # seconds since it began
    events: int = 0
    released: int = 0
    withheld: int = 0
    levels: dict[str, int] = {}
    reasons: dict[str, int] = {}
    figures: dict[str, float] = {}  # z, goal, p_k, smallest group, delay, held, lag, memory
    views: dict[str, tuple[int, int, int]] = {}  # of a service: written, withheld, held


class Board:
    """The history of one run.

    >>> board = Board("visits", lambda: Sample(0.0, events=3), clock=iter([0.0, 0.1, 2.0]).__next__)
    >>> board.look(), board.look(), len(board.history)
    (None, None, 1)
    """

    def __init__(self, title: str, sample: Callable[[], Sample], clock: Callable[[], float] = time.monotonic) -> None:
        self.title = title
        self.history: list[Sample] = []
        self.errors: list[tuple[float, str]] = []
        self.changed = 0
        self.ended = False
        self.listeners = 0
        self._sample, self._clock = sample, clock
        self._began = clock()
        self._next = self._began + EVERY

    def look(self, *, now: bool = False) -> None:
        """Take a sample if it is time to."""
        at = self._clock()
        if at < self._next and not now:
            return
        self._next = at + EVERY
        taken = msgspec.structs.replace(self._sample(), at=at - self._began)
        if len(self.history) >= MOST_SAMPLES:
            self.history = self.history[::2]
        self.history.append(taken)
        self.changed += 1

    def failed(self, words: str) -> None:
        """Remember an error; whoever calls this gives no value away."""
        self.errors = [*self.errors[-ERRORS + 1 :], (self._clock() - self._began, words)]
        self.changed += 1

    def broke(self, error: BaseException) -> None:
        """Remember what ended a run: our errors say what was found without a value; of others the kind is told."""
        known = isinstance(error, ShoalError)
        self.failed(error.message if known else f"an unexpected {type(error).__name__}")  # type: ignore[attr-defined]

    def end(self) -> None:
        """The run is over."""
        self.look(now=True)
        self.ended = True
        self.changed += 1

    def rates(self) -> list[tuple[float, float]]:
        """Events per second between samples."""
        pairs = zip(self.history, self.history[1:], strict=False)
        # the last sample of a run comes at once: so short a time says nothing of its rate
        return [(b.at, (b.events - a.events) / (b.at - a.at)) for a, b in pairs if b.at - a.at > EVERY / 2]


class Hidden:
    """p_k of a z-anonymous stream that no tuner measures: whole windows, and pauses so that it costs one two-hundredth.

    ``engine`` is the stream's; k is two: a person is hidden if somebody else showed just the same. Time is saved up
    before it is spent: a measurement that needs more than was saved ends, and the next one waits for twice as much.
    """

    def __init__(self, engine: Any, clock: Callable[[], float] = time.monotonic) -> None:
        self.p_k: float | None = None
        self.spent = 0.0
        self._engine, self._clock, self._began = engine, clock, clock()
        self._watch: Any = None
        self._saves = ONCE

    def look(self) -> None:
        """Begin to measure, take what was measured, give up, or pause."""
        watch = self._watch
        if watch is None:
            if self._engine.watching is None and self.spent + self._saves <= AT_MOST * (self._clock() - self._began):
                window = int(self._engine.promise.spans(np.zeros(1, np.int64))[0])
                self._watch = self._engine.watch(window, 2)
            return
        # the first mark falls into a window whose beginning was not seen
        if len(watch.rows) > 1:
            self.p_k = watch.rows[-1]["p_k"]
        elif watch.held > MOST_HELD:
            self._saves = float("inf")
        elif watch.spent > self._saves:
            self._saves *= 2
        else:
            return
        self.spent += watch.spent
        self._watch = self._engine.watching = None


def memory() -> float:
    """Megabytes this process has in use, where the system tells."""
    try:
        with open("/proc/self/statm", "rb") as told:  # noqa: PTH123 - no file, an answer of the system
            return int(told.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
    except (OSError, ValueError, IndexError):
        return 0.0


def of_stream(
    counters: Mapping[str, int], found: Mapping[str, Any], goal: float | None = None, p_k: float | None = None
) -> Sample:
    """A sample of a stream method's own counters and figures; ``p_k`` where no tuner measures it.

    >>> of_stream({"events": 5, "released": 3, "withheld": 2, "level_0": 3, "rare": 2}, {"z": 4}).reasons
    {'shown by too few people': 2}
    """
    from shoal.report.stream_page import level_words, reasons

    decision = found.get("decision")
    told = {
        "z": found.get("z"),
        "goal reached": None if decision is None else float(decision.reached),
        "goal": goal,
        "p_k": p_k if decision is None else decision.p,
        "smallest group": found.get("smallest_group", found.get("least_real")),
        "delay": found.get("delay_mean"),
        "longest delay": found.get("delay_most"),
        "held": found.get("held"),
        "memory": memory(),
    }
    return Sample(
        0.0,
        int(counters.get("events", 0)),
        int(counters.get("released", 0)),
        int(counters.get("withheld", 0)),
        {level_words(name): int(n) for name, n in counters.items() if name.startswith("level_")},
        dict(reasons(counters)),
        {name: float(value) for name, value in told.items() if value is not None},
    )


# what a service counts that its operator should look at
LOSSES = {
    "dead": "records could not be read and are dead letters",
    "lost": "records were gone from the source before they were read",
    "fresh": "views began without their state",
}


def of_service(counters: Any) -> Sample:
    """A sample of the counters of a Kafka worker."""
    figures = {"lag": float(sum(counters.lag.values())), "dead letters": float(counters.dead), "memory": memory()}
    if counters.smallest:
        figures["smallest group"] = float(min(counters.smallest.values()))
    figures["delay"] = counters.commit_seconds
    why: dict[str, int] = {}
    for (_, reason), count in dict(counters.reasons).items():
        why[reason] = why.get(reason, 0) + count
    views = {
        role: (n, counters.withheld.get(role, 0), counters.held.get(role, 0))
        for role, n in dict(counters.written).items()
    }
    return Sample(
        0.0,
        counters.read,
        sum(n for n, _, _ in views.values()),
        sum(n for _, n, _ in views.values()),
        reasons=why,
        figures=figures,
        views=views,
    )


def tail(pairs: Sequence[tuple[float, float]], most: int = 160) -> list[tuple[float, float]]:
    """As many points as a picture shows, the newest among them.

    >>> tail([(1, 0), (2, 0), (3, 0), (4, 0)], most=2)
    [(2, 0), (4, 0)]
    """
    step = -(-len(pairs) // most) or 1
    return list(pairs[::-step][::-1])

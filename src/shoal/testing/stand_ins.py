"""Stand-ins for the two ends of a stream: a sink that remembers, and a clock that a test moves by hand."""

from __future__ import annotations

import polars as pl


class ListSink:
    """A write function that collects what was released, frame by frame.

    >>> sink = ListSink()
    >>> sink(pl.DataFrame({"age": ["[20, 29]"]}))
    >>> sink(pl.DataFrame({"age": ["[30, 39]"]}))
    >>> len(sink.frames), sink.frame["age"].to_list()
    (2, ['[20, 29]', '[30, 39]'])
    """

    def __init__(self) -> None:
        self.frames: list[pl.DataFrame] = []

    def __call__(self, frame: pl.DataFrame) -> None:
        """Take a frame."""
        self.frames.append(frame)

    @property
    def frame(self) -> pl.DataFrame:
        """Everything that was written, in order."""
        return pl.concat(self.frames) if self.frames else pl.DataFrame()


class HandClock:
    """A clock in seconds that stands still until it is moved, for whatever takes ``time.monotonic``.

    >>> clock = HandClock()
    >>> clock.move(1.5)
    >>> clock(), clock.micros
    (1.5, 1500000)
    """

    def __init__(self, now: float = 0.0) -> None:
        self.now = now

    def __call__(self) -> float:
        """What the clock says, in seconds."""
        return self.now

    @property
    def micros(self) -> int:
        """What the clock says in microseconds, as stream methods count time."""
        return round(self.now * 1_000_000)

    def move(self, seconds: float) -> None:
        """Let time pass. A clock that goes back would hide mistakes, so it cannot."""
        if seconds < 0:
            raise ValueError("time does not go back")
        self.now += seconds

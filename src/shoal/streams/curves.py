"""Curves of a running stream: the events of a window, a curve per person, released with (k,P) when the window ends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, get_args

import polars as pl

from shoal.core.errors import PolicyError, UsageError
from shoal.core.schema import Schema
from shoal.core.time import period
from shoal.promises.base import Promise
from shoal.promises.kp_anonymity import GROUP, LEVEL, PATTERN, RECORD, WINDOW
from shoal.series import PATTERNS, SERIES_METHODS, Pattern, SeriesMethod
from shoal.series.input import Missing
from shoal.series.long import Aggregate, in_zone
from shoal.streams.base import StreamMethod
from shoal.streams.curve_windows import RunningCurves

MOST_INSTANTS = 10_000  # of a window
DAY, WEEK_BEGINS = 86_400_000_000, 4  # windows of whole weeks begin on Mondays, and 1970 began on a Thursday


class Curves(StreamMethod, frozen=True, tag="curves", dict=True):
    """A window of events as curves: k people under one envelope, P of them with one pattern, window by window.

    Each person's events of a window (``window``, for example ``1d``) become a curve with an instant per ``every``,
    brought together by ``aggregate``. When the window is over, its curves are released as ``shoal anonymize --series``
    would release a long table of them: a row per curve and instant, all rows of a window at once. So an event waits for
    one window at most, and as long as events may be late. Curves with gaps fall to ``missing``; events of curves that
    find no company are withheld.

    Protects, inside each window, as (k,P)-anonymity does. Does not protect against following one person from window to
    window: curves have new numbers in each, but who knows someone's values in many windows may recognize the groups.

    Windows begin at multiples of their length since 1970, weeks on Mondays, in the time zone ``zone`` if one is named.
    ``by`` is the series method with its parameters, ``most`` the events held at once; further ones are withheld.

    Cost: that of the series method per window; memory grows with the events of a window, up to ``most``.

    >>> import numpy as np
    >>> from shoal.core.schema import Column
    >>> from shoal.promises.kp_anonymity import KPAnonymity
    >>> from shoal.streams.base import Batch
    >>> schema = Schema({"who": Column("subject"), "at": Column("time"), "watt": Column("quasi")})
    >>> stream = Curves(window="2s", every="1s").start(schema, [KPAnonymity(2, 2)], key=bytes(32))
    >>> events = pl.DataFrame({"at": [0, 0, 1, 1], "watt": [10, 20, 30, 50]})
    >>> who, times = pl.Series(["ada", "bob"] * 2), np.array([0, 0, 1, 1]) * 1_000_000
    >>> stream.push(Batch(events, times, who)).released is None, stream.tick(2_000_000).released.rows()[0][2:6]
    (True, (0, 0, 10.0, 20.0))

    Reference: this project; the promise is that of Shou, Shang, Chen, Chen and Zhang (TKDE 2013).
    """

    window: str = "1d"
    every: str = "1h"
    by: str | dict[str, Any] = "kapra"
    pattern: str | dict[str, Any] = "sax"
    aggregate: Aggregate = "mean"
    missing: Missing = "drop"
    zone: str | None = None
    most: int = 1_000_000

    def __post_init__(self) -> None:
        window, every = (period(text, where=f"curves: {name}") for name, text in self._lengths())
        begins = WEEK_BEGINS * DAY if self.window.endswith("w") else 0
        if window % every or begins % every:
            raise UsageError(
                "a window must hold whole instants",
                where="curves: every",
                hint="for example window: 1d and every: 1h",
            )
        instants = window // every
        if not 1 <= instants <= MOST_INSTANTS:
            raise UsageError(
                f"a window has up to {MOST_INSTANTS:,} instants, found {instants:,}", where="curves: every"
            )
        if self.missing not in get_args(Missing) or self.missing == "error":
            known = [rule for rule in get_args(Missing) if rule != "error"]
            raise UsageError(
                "a stream does not end at a gap: say what becomes of a curve that has one",
                where="curves: missing",
                hint=f"one of: {', '.join(known)}",
            )
        if self.aggregate not in get_args(Aggregate):
            kinds = ", ".join(get_args(Aggregate))
            raise UsageError("there is no such aggregate", where="curves: aggregate", hint=f"one of: {kinds}")
        if self.most < 1:
            raise UsageError(f"`most` must be at least 1, found {self.most}", where="curves")
        in_zone(pl.Series([], dtype=pl.Datetime("us", "UTC")), self.zone)
        letters = getattr(self.shape, "word", None)
        if letters is not None and letters > instants:
            raise UsageError(
                f"a word of {letters} letters needs as many instants, and a window has {instants}",
                where="curves: pattern",
            )
        _ = self.grouping

    def _lengths(self) -> list[tuple[str, str]]:
        both = [("window", self.window), ("every", self.every)]
        for name, text in both:
            if not text[:-1].strip().isdigit() and not text[:-2].strip().isdigit():
                raise UsageError(
                    "expected one whole length", where=f"curves: {name}", hint="for example 15m, 1h, 1d, 1w"
                )
        return both

    @cached_property
    def shape(self) -> Pattern:
        """The pattern."""
        return PATTERNS.decode(self.pattern, "curves: pattern")

    @cached_property
    def grouping(self) -> SeriesMethod:
        """The series method."""
        return SERIES_METHODS.decode(self.by, "curves: by")

    def published(self, schema: Schema, shown: Sequence[str]) -> tuple[str, ...]:
        """See :class:`StreamMethod`. As of a long table of curves, and before it the window."""
        values = [name for name in schema.quasi if name in shown]
        times = [name for name in schema.of("time") if name in shown]
        if not values or not times:
            raise PolicyError(
                "curves need a time and a value that are shown",
                where="curves",
                hint="show the column with `role: time` and a quasi column of numbers",
            )
        ends = [f"{name}_{end}" for name in values for end in ("low", "high")]
        beside = [name for name in schema.sensitive if name in shown]
        made = (WINDOW, RECORD, GROUP, PATTERN, LEVEL, *ends)
        clash = [name for name in (*times, *beside) if name in made]
        if clash:
            raise PolicyError(
                f"the release has a column of its own called {clash[0]!r}", where="curves", hint="rename the column"
            )
        return (WINDOW, RECORD, GROUP, times[0], *ends, PATTERN, LEVEL, *beside)

    def judged(self, schema: Schema, shown: Sequence[str]) -> tuple[str, ...]:
        """See :class:`StreamMethod`. Envelopes are judged by the promise itself; a group is found by its number."""
        return (WINDOW, GROUP)

    def start(
        self, schema: Schema, promises: Sequence[Promise], *, key: bytes, seed: int = 0, snapshot: bytes | None = None
    ) -> RunningCurves:
        """See :class:`StreamMethod`."""
        reading: Mapping[str, Any] = {
            "every": self.every,
            "aggregate": self.aggregate,
            "missing": self.missing,
            "zone": self.zone,
            "method": self.grouping,
            "pattern": self.shape,
            "seed": seed,
        }
        return RunningCurves(self, schema, promises, reading, key, snapshot)

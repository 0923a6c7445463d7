"""The events of one window as released rows: a row per curve and instant, and which events each of them tells."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.core.errors import PromiseError, ShoalError
from shoal.core.schema import Schema
from shoal.core.time import NUMBER, PER_SECOND, SECOND, Unit
from shoal.promises.base import Promise
from shoal.promises.kp_anonymity import WINDOW, KPAnonymity, judge_curves
from shoal.series.release import SeriesRelease, anonymize_series
from shoal.streams.base import Numbers, Outcomes, Reason

EVENT, TIME, AT, WHO = "\0event", "\0time", "\0at", "\0who"  # names that no column of an event has
EPOCH, MICRO = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC), datetime.timedelta(microseconds=1)
ISO = "%Y-%m-%dT%H:%M:%S%.fZ"


class Form(msgspec.Struct, frozen=True):
    """How points in time are written: as those of the events were.

    >>> Form.of(pl.Series([1_600_000_000]), "s").write(np.array([7_000_000])).to_list()
    [7]
    """

    kind: str
    unit: Unit

    @classmethod
    def of(cls, times: pl.Series, unit: Unit) -> Form:
        """The form of a time column."""
        kind = times.dtype
        if kind.is_integer():
            return cls("int", unit)
        if kind.is_numeric():
            return cls("float", unit)
        if kind == pl.String:
            first = times.drop_nulls()
            number = len(first) > 0 and bool(first.head(1).str.strip_chars().str.contains(NUMBER)[0])
            return cls("number text" if number else "text", unit)
        return cls("date" if kind == pl.Date else "datetime", unit)

    def write(self, times: Numbers) -> pl.Series:
        """Points in time (microseconds) in this form."""
        when = pl.Series(times, dtype=pl.Int64)
        per = PER_SECOND[self.unit]
        if self.kind in ("int", "number text"):
            whole = when * (per // SECOND) if per >= SECOND else when // (SECOND // per)
            return whole if self.kind == "int" else whole.cast(pl.String)
        if self.kind == "float":
            return when.cast(pl.Float64) * (per / SECOND)
        moments = when.cast(pl.Datetime("us"))
        if self.kind == "date":
            return moments.cast(pl.Date)
        return moments if self.kind == "datetime" else moments.dt.to_string(ISO)


def released_window(
    events: pl.DataFrame,
    start: int,
    form: Form,
    schema: Schema,
    promise: KPAnonymity,
    others: Sequence[Promise],
    reading: Mapping[str, Any],
    time: str,
) -> Outcomes:
    """The curves of the people of a window; what the promises do not allow is withheld."""
    beside = [name for name in schema.sensitive if name in events.columns]
    values = [name for name in schema.quasi if name in events.columns]
    several = _several(events, beside)
    usable = events.filter(~several) if several.any() else events
    reasons = np.where(several.to_numpy(), np.uint8(Reason.BAD), np.uint8(0))
    table = usable.select(
        WHO, pl.col(AT).cast(pl.Datetime("us")).dt.replace_time_zone("UTC").alias(time), *values, *beside
    )
    try:
        made = anonymize_series(
            table, k=promise.k, p=promise.p, id=WHO, time=time, value=values, sensitive=beside, promises=list(others),
            **reading,
        )  # fmt: skip
    except PromiseError:  # too few people, or too few different values among them
        return _none(events, reasons, Reason.RARE)
    except ShoalError:  # instants too far apart for this pattern
        return _none(events, reasons, Reason.GAPS)
    released = made.data
    # by its text, before a row leaves: as a batch release is
    _demand(released, promise, others, beside)
    at = pl.Series([(t - EPOCH) // MICRO for t in made.curves.instants], dtype=pl.Int64)
    return _told(events, usable, made, released, at, reasons, start, form, time)


def _told(
    events: pl.DataFrame,
    usable: pl.DataFrame,
    made: SeriesRelease,
    released: pl.DataFrame,
    at: pl.Series,
    reasons: NDArray[np.uint8],
    start: int,
    form: Form,
    time: str,
) -> Outcomes:
    """Which events each released row tells, and what is withheld."""
    people = usable[WHO].gather(made.rows)
    record = np.repeat(np.arange(len(people)), len(at))
    instants = at.gather(np.tile(np.arange(len(at)), len(people)))
    cells = pl.DataFrame({WHO: people.gather(record), AT: instants, "row": np.arange(len(record))})
    of_cell = events.select(EVENT, WHO, AT).with_columns(pl.Series("why", reasons))
    placed = of_cell.join(cells, on=[WHO, AT], how="left", maintain_order="left")
    row, number = placed["row"], placed[EVENT].to_numpy()
    # an event of a person whose rows were refused is told by none of them
    told = row.is_not_null().to_numpy() & (placed["why"].to_numpy() == 0)
    first = placed.select(pl.col("row").is_first_distinct()).to_series().to_numpy() & told
    events_of = np.full(len(record), -1, np.int64)
    events_of[row.filter(pl.Series(first)).to_numpy()] = number[first]
    gone = ~told
    # who has a curve and is not among the released found no company; who has none lacked instants
    curves = usable[WHO].gather(made.curves.rows)
    alone = placed[WHO].is_in(curves.implode()).to_numpy()
    why = np.where(alone, np.uint8(Reason.DUE), np.uint8(Reason.GAPS))
    why = np.where(placed["why"].to_numpy() > 0, placed["why"].to_numpy(), why)
    frame = released.with_columns(form.write(instants.to_numpy()).alias(time))
    window = form.write(np.full(frame.height, start, np.int64)).alias(WINDOW)
    return Outcomes(
        frame.select(window, *frame.columns) if frame.height else None,
        events_of,
        number[gone],
        why[gone].astype(np.uint8),
        number[told & ~first],
    )


def _several(events: pl.DataFrame, beside: Sequence[str]) -> pl.Series:
    """Events of people who show more than one value in a sensitive column: a curve has one."""
    if not beside:
        return pl.Series([False] * events.height, dtype=pl.Boolean)
    return events.select(pl.any_horizontal([pl.col(name).n_unique().over(WHO) > 1 for name in beside])).to_series()


def _demand(released: pl.DataFrame, promise: KPAnonymity, others: Sequence[Promise], beside: Sequence[str]) -> None:
    """A window that breaks a promise is not released, and the stream ends."""
    findings, _ = judge_curves(released, promise, others, sensitive=beside)
    broken = next((f for f in findings if not f.kept), None)
    if broken is not None and released.height:
        raise PromiseError(
            f"a window was not released: {broken}", where="curves", hint="this is a defect of the method"
        )


def _none(events: pl.DataFrame, reasons: NDArray[np.uint8], reason: Reason) -> Outcomes:
    return Outcomes(
        withheld=events[EVENT].to_numpy(), reasons=np.where(reasons > 0, reasons, np.uint8(reason)).astype(np.uint8)
    )


def joined_outcomes(parts: Sequence[Outcomes]) -> Outcomes:
    """What several windows answered, as one answer."""
    frames = [part.released for part in parts if part.released is not None]
    return Outcomes(
        pl.concat(frames, how="vertical_relaxed") if frames else None,
        np.concatenate([np.zeros(0, np.int64), *[part.events for part in parts]]),
        np.concatenate([np.zeros(0, np.int64), *[part.withheld for part in parts]]),
        np.concatenate([np.zeros(0, np.uint8), *[part.reasons for part in parts]]),
        np.concatenate([np.zeros(0, np.int64), *[part.joined for part in parts]]),
    )

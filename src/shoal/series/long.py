"""Long input: a row per subject and point in time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, cast

import numpy as np
import polars as pl

from shoal.core.errors import InputError, UsageError
from shoal.core.frames import require
from shoal.core.schema import one_role_each
from shoal.series.input import MADE, Curves, Missing, complete_blocks, number_column, refuse_kind

Aggregate = Literal["mean", "sum", "min", "max", "last", "count", "median", "p10", "p25", "p75", "p90", "p95"]
EXACT = ("sum", "min", "max", "last")  # whole numbers stay whole
VOID = 1000  # instants up to which no share of empty ones is refused
MOST_VOID = 10  # instants to one at which somebody has a value


def from_long(
    frame: pl.DataFrame,
    *,
    id: str,  # noqa: A002 - the word of the command line
    time: str,
    value: str | Sequence[str],
    sensitive: Sequence[str] = (),
    every: str | float | None = None,
    aggregate: Aggregate = "mean",
    missing: Missing = "error",
    zone: str | None = None,
) -> Curves:
    """Curves from a long table; ``every`` (``1h``, or a number for numeric time) makes regular instants by averaging.

    Several ``value`` columns make a panel. Text in the time column is read as numbers, ISO dates or times where all of
    it can be. ``zone`` is the time zone whose days and hours ``every`` means; times must say theirs.

    Without ``every`` the instants are the points in time that occur; two values of a subject at one of them are an
    error. ``sensitive`` columns must say the same in every row of a subject.

    >>> long = pl.DataFrame({"who": [1, 1, 2, 2], "at": [0, 1, 0, 1], "value": [3.0, 5.0, 4.0, 6.0]})
    >>> from_long(long, id="who", time="at", value="value").values.tolist()
    [[3.0, 5.0], [4.0, 6.0]]
    """
    values = [value] if isinstance(value, str) else list(value)
    one_role_each({"id": [id], "time": [time], "value": values, "sensitive": sensitive}, "series")
    require(frame, (id, time, *values, *sensitive), "series")
    if not values:
        raise UsageError("expected one or more columns of values", where="value")
    for name in (id, time, *sensitive):
        refuse_kind(frame[name], f"column {name!r}")
    for name in (id, time):
        if frame[name].null_count():
            first = int(frame[name].is_null().arg_true()[0]) + 1
            raise InputError(
                f"{frame[name].null_count():,} rows have no value; the first is row {first}", where=f"column {name!r}"
            )
    numbers = [number_column(frame[name], "series") for name in values]
    whole = all(kind for _, kind in numbers)
    known = {f"value {at}": pl.Series(column).fill_nan(None) for at, (column, _) in enumerate(numbers)}
    # before they are cut into instants: a day begins at midnight there, not in UTC
    times = in_zone(_read(frame[time]), zone)
    flat = pl.DataFrame({"id": frame[id], "time": times, "row": np.arange(frame.height), **known})
    if every is not None:
        flat = flat.with_columns(time=_bucket(flat["time"], every))
        # the mean of whole numbers need not be whole
        whole = aggregate == "count" or (whole and aggregate in EXACT)
    elif flat.select(pl.struct("id", "time").is_duplicated().any()).item():
        first = int(flat.select(pl.struct("id", "time").is_duplicated().arg_true())["id"][0]) + 1
        raise InputError(
            f"a subject has two values at one point in time; the first is row {first}",
            where=f"column {time!r}",
            hint="declare `every` and how values are brought together, for example every='1h', aggregate='mean'",
        )
    # by id: how the rows of a long table happen to stand must not decide anything
    subjects = flat.group_by("id").agg(pl.col("row").min()).sort("id")
    beside = _beside(frame, id, sensitive, subjects["row"].to_numpy())
    times = _instants(flat["time"], every)
    matrix = np.hstack([_pivot(flat, name, subjects["id"], times, aggregate) for name in known])
    labels = [str(t) for t in times.to_list()]
    filled, kept = complete_blocks(matrix, missing, labels, len(values), at=_places(times))
    return Curves(
        np.ascontiguousarray(filled),
        times.to_list(),
        beside.filter(pl.Series(kept)) if sensitive else pl.DataFrame(),
        subjects["row"].to_numpy()[kept],
        whole and missing not in MADE,
        tuple(c for c in frame.columns if c not in (time, *values, *sensitive)),
        dropped=int((~kept).sum()),
        variables=tuple(values) if len(values) > 1 else (),
    )


def _read(times: pl.Series) -> pl.Series:
    """Points in time; text that reads as numbers, dates or times throughout is taken as such, other text as it is."""
    if times.dtype != pl.String:
        return times
    for kind in (pl.Int64, pl.Float64):
        numbers = times.cast(kind, strict=False)
        if not numbers.null_count():
            return numbers
    for form in ("%FT%T%.f%#z", "%F %T%.f%#z"):
        when = times.str.to_datetime(form, strict=False, time_unit="us", time_zone="UTC")
        if not when.null_count():
            return when
    for form in ("%F", "%FT%T%.f", "%F %T%.f", "%FT%R", "%F %R"):
        when = times.str.to_datetime(form, strict=False, time_unit="us")
        if not when.null_count():
            return when.cast(pl.Date) if form == "%F" else when
    return times


def in_zone(times: pl.Series, zone: str | None) -> pl.Series:
    """Points in time as clocks of a zone show them, if one is named.

    >>> times = pl.Series(["2024-07-01T00:00:00Z"]).str.to_datetime(time_zone="UTC")
    >>> in_zone(times, "Europe/Berlin").dt.hour().to_list()
    [2]
    """
    if zone is None:
        return times
    if times.dtype != pl.Datetime or times.dtype.time_zone is None:  # type: ignore[attr-defined]
        raise UsageError(
            f"expected times that say their zone, found {times.dtype}",
            where="zone",
            hint="for example 2024-03-31T01:30:00+01:00; leave `zone` out for times that do not",
        )
    try:
        return times.dt.convert_time_zone(zone)
    except pl.exceptions.PolarsError:
        raise UsageError("there is no such time zone", where="zone", hint="for example Europe/Berlin") from None


def _places(times: pl.Series) -> Any:
    """How far instants are from the first: gaps between uneven ones are filled by time, not by count."""
    if times.dtype == pl.String:
        return np.arange(len(times), dtype=np.float64)
    numbers = times if times.dtype.is_numeric() else times.to_physical()
    return (numbers - numbers.min()).cast(pl.Float64).to_numpy() if len(times) else np.zeros(0)


def _bucket(times: pl.Series, every: str | float) -> pl.Series:
    try:
        if times.dtype.is_temporal():
            return times.dt.truncate(str(every))
        step = float(every)
    except (ValueError, pl.exceptions.PolarsError):
        step = 0.0
    if step <= 0 or not times.dtype.is_numeric():
        raise UsageError(
            f"`every` does not fit a time column of type {times.dtype}",
            where="every",
            hint="a duration such as 1h or 1d for dates and times, a positive number for numbers",
        )
    floors = (times / step).floor() * step
    return floors.cast(times.dtype) if times.dtype.is_integer() and step == int(step) else floors


def _instants(times: pl.Series, every: str | float | None) -> pl.Series:
    """All instants; with a step also those between the first and the last at which nobody has a value."""
    if every is None or not len(times):
        return times.unique().sort()
    _refuse_void(times, every)
    if times.dtype.is_temporal():
        pick = pl.datetime_range if times.dtype == pl.Datetime else pl.date_range
        # not as Python times: these cannot tell the two hours of a night in which clocks go back
        first, last = (pl.lit(times.sort()[[at]]).first() for at in (0, -1))
        return pl.select(pick(first, last, interval=str(every))).to_series().cast(times.dtype)
    low, high, step = float(times.min()), float(times.max()), float(every)  # type: ignore[arg-type]
    return pl.Series(low + step * np.arange(round((high - low) / step) + 1)).cast(times.dtype)


def _refuse_void(times: pl.Series, every: str | float) -> None:
    """One wrong date (1970 in data of this year) would make thousands of instants at which nobody has a value."""
    first, last = cast("Any", times.min()), cast("Any", times.max())
    when = times.dtype.is_temporal()
    step = pl.Series([first]).dt.offset_by(str(every))[0] - first if when else float(every)
    steps = int((last - first) / step) + 1
    known = times.n_unique()
    if steps > VOID and known * MOST_VOID < steps:
        raise InputError(
            f"from the first to the last point in time there are {steps:,} instants, but values at {known:,} only",
            where="every",
            hint="look for a wrong date, or choose a longer `every`",
        )


def _pivot(flat: pl.DataFrame, name: str, ids: pl.Series, times: pl.Series, aggregate: Aggregate) -> Any:
    flat = flat.select("id", "time", pl.col(name).alias("value"))
    how = {
        "mean": pl.col("value").mean(),
        # the sum of nothing is 0 to polars, and would be a measured value here
        "sum": pl.when(pl.col("value").count() > 0).then(pl.col("value").sum()),
        "min": pl.col("value").min(),
        "max": pl.col("value").max(),
        "last": pl.col("value").drop_nulls().last(),
        "count": pl.col("value").count(),
        "median": pl.col("value").median(),
        **{f"p{q}": pl.col("value").quantile(q / 100, "linear") for q in (10, 25, 75, 90, 95)},
    }
    if aggregate not in how:
        raise UsageError(f"there is no aggregate {aggregate!r}", where="aggregate", hint=f"one of: {', '.join(how)}")
    cells = flat.group_by("id", "time", maintain_order=True).agg(how[aggregate].alias("value"))
    row = cells.join(pl.DataFrame({"id": ids, "at": np.arange(len(ids))}), on="id", how="left", maintain_order="left")
    spot = pl.DataFrame({"time": times, "instant": np.arange(len(times))})
    both = row.join(spot, on="time", how="inner", maintain_order="left")
    matrix = np.full((len(ids), len(times)), np.nan)
    matrix[both["at"].to_numpy(), both["instant"].to_numpy()] = both["value"].fill_null(np.nan).to_numpy()
    return matrix


def _beside(frame: pl.DataFrame, id: str, sensitive: Sequence[str], first: Any) -> pl.DataFrame:  # noqa: A002
    for name in sensitive:
        kinds = frame.group_by(id).agg(pl.col(name).n_unique().alias("kinds"))["kinds"]
        if (kinds > 1).any():
            raise InputError(
                f"{int((kinds > 1).sum()):,} subjects have more than one value in a sensitive column",
                where=f"column {name!r}",
                hint="a sensitive column says one thing per subject; aggregate it first",
            )
    return frame.select(sensitive)[first] if sensitive else pl.DataFrame()

"""Points in time lose their seconds, minutes, hours, days, months."""

from __future__ import annotations

from typing import Literal

import polars as pl

from shoal.core.cells import SUPPRESSED
from shoal.core.errors import UsageError
from shoal.core.hierarchy.base import Hierarchy
from shoal.core.levels import Codes, Levels, code_of, nest
from shoal.core.time import NUMBER, micros

Unit = Literal["second", "minute", "hour", "day", "month", "quarter", "year", "decade"]

FORMATS: dict[Unit, str] = {
    "second": "%Y-%m-%d %H:%M:%S",
    "minute": "%Y-%m-%d %H:%M",
    "hour": "%Y-%m-%d %Hh",
    "day": "%Y-%m-%d",
    "month": "%Y-%m",
    "year": "%Y",
}
ORDER: tuple[Unit, ...] = ("second", "minute", "hour", "day", "month", "quarter", "year", "decade")


class Calendar(Hierarchy, frozen=True, tag="calendar"):
    """Dates and times, coarser level by level; ``levels`` names the steps, finest first.

    By default dates go day, month, year and times second, minute, hour, day, month, year.

    >>> import datetime, polars as pl
    >>> Calendar().preview(pl.Series([datetime.date(1984, 5, 17)])).row(0)
    ('1984-05-17', '1984-05', '1984', '*')
    """

    levels: tuple[Unit, ...] = ()

    def __post_init__(self) -> None:
        at = [ORDER.index(u) for u in self.levels]
        if at != sorted(set(at)):
            raise UsageError("`levels` must go from fine to coarse, each once", where="calendar")

    def readable(self, values: pl.Series) -> pl.Series:
        """See :class:`Hierarchy`: dates and times, also as ISO texts."""
        if values.dtype in (pl.Date, pl.Datetime):
            return values
        if values.dtype != pl.String:
            return pl.Series(values.name, [None] * len(values), dtype=pl.Datetime("us"))
        at = pl.Series(values.name, micros(values.set(values.str.contains(NUMBER).fill_null(True), None)))
        return at.set(at < 0, None).cast(pl.Datetime("us"))

    def compile(self, values: pl.Series, *, where: str = "hierarchy") -> tuple[Levels, Codes]:
        """See :class:`Hierarchy`."""
        if not values.dtype.is_temporal() or values.dtype in (pl.Time, pl.Duration):
            raise UsageError(
                f"expected dates or times, found {values.dtype}",
                where=where,
                hint="declare `type: date` or `type: datetime`",
            )
        units = self.levels or self._default(values.dtype)
        labels = [_label(values, unit) for unit in units]
        labels.append(pl.Series([SUPPRESSED] * len(values), dtype=pl.String))
        distinct = pl.DataFrame([s.alias(f"{i}") for i, s in enumerate(labels)]).unique()
        columns = [distinct[c] for c in distinct.columns]
        levels = nest(columns[0], columns, where=where)
        return levels, code_of(levels, labels[0])

    @staticmethod
    def _default(dtype: pl.DataType) -> tuple[Unit, ...]:
        return ("day", "month", "year") if dtype == pl.Date else ("second", "minute", "hour", "day", "month", "year")


def _label(values: pl.Series, unit: Unit) -> pl.Series:
    if unit in FORMATS:
        return values.dt.to_string(FORMATS[unit])
    year = values.dt.year().cast(pl.String)
    if unit == "decade":
        return (values.dt.year() // 10 * 10).cast(pl.String) + pl.Series(["s"])
    return year + pl.Series(["-Q"]) + values.dt.quarter().cast(pl.String)

"""What may be published of curves, in the form they came in: envelopes, patterns with their level, sensitive values.

Rows are ordered by group, pattern and sensitive values, never by the input: whoever knows the order of the input must
not know whose row it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.core.cells import interval
from shoal.core.errors import UsageError
from shoal.core.release import taken
from shoal.series.pattern import Floats

GROUP, PATTERN, LEVEL, RECORD = "group", "pattern", "level", "series"


class SeriesArrays(NamedTuple):
    """A release of a plain matrix: a row per published record."""

    low: Floats
    high: Floats
    pattern: NDArray[Any]
    level: NDArray[np.int16]
    group: NDArray[np.int32]
    sensitive: dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Published:
    """Envelopes per group, and per published record its group, its word, and what stands beside it."""

    instants: Sequence[Any]
    low: Floats  # [group, instant]
    high: Floats
    group: NDArray[np.int32]  # per record, in the order of publication
    pattern: pl.Series
    level: NDArray[np.int16]
    sensitive: pl.DataFrame
    whole: bool
    variables: tuple[str, ...] = ()  # of a panel: as many blocks of instants stand side by side

    @property
    def names(self) -> list[str]:
        """A name per column of the envelopes."""
        times = [str(i) for i in self.instants]
        return [f"{name} {time}" for name in self.variables for time in times] if self.variables else times

    def wide(self, *, typed: bool = False) -> pl.DataFrame:
        """A row per record: its envelope as text ``[low, high]``, or as a struct of two numbers if ``typed``."""
        _refuse_names(self.names, self.sensitive.columns)
        make = self._structs if typed else self._texts
        envelope = [make(at).gather(self.group).alias(name) for at, name in enumerate(self.names)]
        return pl.DataFrame(
            [
                pl.Series(GROUP, self.group),
                *envelope,
                self.pattern.alias(PATTERN),
                pl.Series(LEVEL, self.level),
                # without a byte of suppressed records in its memory
                *map(taken, self.sensitive.get_columns()),
            ]
        )

    def long(self, time: str, value: str) -> pl.DataFrame:
        """A row per record and instant; ``series`` numbers the records of this release."""
        values = self.variables or (value,)
        ends = [f"{name}_{end}" for name in values for end in ("low", "high")]
        _refuse_names([RECORD, time, *ends], self.sensitive.columns)
        records, instants = len(self.group), len(self.instants)
        kind = pl.Int64 if self.whole else pl.Float64
        record = np.repeat(np.arange(records), instants)
        return pl.DataFrame(
            [
                pl.Series(RECORD, record),
                pl.Series(GROUP, self.group[record]),
                pl.Series(time, list(self.instants)).gather(np.tile(np.arange(instants), records)),
                *[
                    pl.Series(f"{name}_{end}", part[self.group].ravel()).cast(kind)
                    for block, name in enumerate(values)
                    for end, part in zip(("low", "high"), self._block(block), strict=True)
                ],
                self.pattern.gather(record).alias(PATTERN),
                pl.Series(LEVEL, self.level[record]),
                *[taken(column, record) for column in self.sensitive.get_columns()],
            ]
        )

    def _block(self, block: int) -> tuple[Floats, Floats]:
        """The envelopes of one variable."""
        width = len(self.instants)
        part = slice(block * width, (block + 1) * width)
        return self.low[:, part], self.high[:, part]

    def arrays(self) -> SeriesArrays:
        """Plain arrays; of a panel with a third dimension for its variables."""
        low, high = self.low[self.group], self.high[self.group]
        if self.variables:
            shape = (len(self.group), len(self.variables), len(self.instants))
            low, high = (ends.reshape(shape).transpose(0, 2, 1) for ends in (low, high))
        return SeriesArrays(
            low,
            high,
            self.pattern.to_numpy(),
            self.level,
            self.group,
            {name: self.sensitive[name].to_numpy() for name in self.sensitive.columns},
        )

    def _texts(self, at: int) -> pl.Series:
        ends = zip(self.low[:, at].tolist(), self.high[:, at].tolist(), strict=True)
        return pl.Series([interval(low, high, whole=self.whole) for low, high in ends], dtype=pl.String)

    def _structs(self, at: int) -> pl.Series:
        kind = pl.Int64 if self.whole else pl.Float64
        ends = {"low": pl.Series(self.low[:, at]).cast(kind), "high": pl.Series(self.high[:, at]).cast(kind)}
        return pl.DataFrame(ends).to_struct()


def _refuse_names(columns: Sequence[str], sensitive: Sequence[str]) -> None:
    """The release adds columns of its own; they must not hide the data's."""
    clash = sorted({GROUP, PATTERN, LEVEL} & {*columns, *sensitive} | {*columns} & {*sensitive})
    if clash:
        raise UsageError(
            f"the release has columns of its own called {', '.join(clash)}",
            where="series",
            hint="rename these columns of the input",
        )


def order_of_publication(
    group: NDArray[np.int32], level: NDArray[np.int16], pattern: pl.Series, sensitive: pl.DataFrame
) -> NDArray[np.int64]:
    """Positions sorted by what is published, and by nothing else.

    >>> group, level = np.array([1, 0], np.int32), np.array([2, 2], np.int16)
    >>> order_of_publication(group, level, pl.Series(["ab", "ab"]), pl.DataFrame({"s": ["x", "y"]})).tolist()
    [1, 0]
    """
    beside: Mapping[str, pl.Series] = {f"s{i}": column for i, column in enumerate(sensitive.get_columns())}
    frame = pl.DataFrame({"group": group, "level": level, "pattern": pattern, **beside})
    return frame.with_row_index("at").sort(frame.columns, nulls_last=True)["at"].to_numpy().astype(np.int64)

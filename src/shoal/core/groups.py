"""Groups of released rows, as a promise judges them, and what it finds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.core.comparable import comparable
from shoal.core.levels import Levels


@dataclass(frozen=True)
class Groups:
    """Rows that read alike in every quasi column share a label; labels are dense from 0.

    Without ``people`` every row is one person, and findings say that rows were counted.

    >>> groups = Groups(np.array([0, 0, 1], np.int32))
    >>> groups.count, groups.sizes().tolist()
    (2, [2, 1])
    """

    labels: NDArray[np.int32]
    sensitive: Mapping[str, pl.Series] = field(default_factory=dict)
    people: NDArray[np.int32] | None = None
    levels: Mapping[str, Levels] = field(default_factory=dict)  # hierarchies of sensitive columns

    @property
    def count(self) -> int:
        """Number of groups."""
        return int(self.labels.max()) + 1 if len(self.labels) else 0

    @property
    def unit(self) -> str:
        """What was counted."""
        return "rows" if self.people is None else "people"

    def sizes(self) -> NDArray[np.int64]:
        """People (or rows) in each group."""
        if self.people is None:
            return np.bincount(self.labels, minlength=self.count)
        pairs = np.unique(self.labels.astype(np.int64) << 32 | self.people)
        return np.bincount(pairs >> 32, minlength=self.count)

    def everyone(self) -> int:
        """How many people (or rows) there are in all: who is in two groups counts once."""
        return len(self.labels) if self.people is None else len(np.unique(self.people))

    def counts(self, column: str) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], pl.Series]:
        """How many people (or rows) of each group have each value: group, value code and count, and the values."""
        frame, values = self._coded(column)
        if self.people is not None:  # a person who has a value twice has it once
            frame = frame.unique()
        found = frame.group_by("group", "value").len().sort("group", "value")
        return (
            found["group"].to_numpy().astype(np.int64),
            found["value"].to_numpy().astype(np.int64),
            found["len"].to_numpy().astype(np.int64),
            values,
        )

    def known(self, column: str) -> NDArray[np.int64]:
        """How many people (or rows) of each group have a value at all: one that is not missing."""
        frame, values = self._coded(column)
        frame = frame.filter(pl.Series(values.is_not_null()).gather(frame["value"]))
        if self.people is not None:
            frame = frame.select("group", "person").unique()
        return np.bincount(frame["group"].to_numpy().astype(np.int64), minlength=self.count)

    def totals(self, column: str) -> NDArray[np.int64]:
        """How many people (or rows) have each value, whatever their groups: who is in two groups counts once."""
        frame, values = self._coded(column)
        if self.people is not None:
            frame = frame.select("value", "person").unique()
        return np.bincount(frame["value"].to_numpy().astype(np.int64), minlength=len(values))

    def _coded(self, column: str) -> tuple[pl.DataFrame, pl.Series]:
        series = comparable(self.sensitive[column])
        values = series.unique().sort(nulls_last=True)
        codes = series.replace_strict(values, pl.int_range(len(values), eager=True), return_dtype=pl.Int64)
        codes = codes.fill_null(len(values) - 1)
        frame = pl.DataFrame({"group": self.labels, "value": codes})
        return (frame if self.people is None else frame.with_columns(person=pl.Series(self.people))), values


class Finding(msgspec.Struct, frozen=True):
    """What a verifier found about one promise.

    >>> str(Finding("5-anonymity", True, 5, 7, 12, 0, "people"))
    '5-anonymity: kept; asked 5, reached 7 (people counted)'
    """

    promise: str  # as a person says it: "5-anonymity"
    kept: bool
    asked: float
    reached: float  # the worst group's
    groups: int
    broken: int  # groups that break it
    unit: str = "rows"  # what was counted
    note: str = ""

    def __str__(self) -> str:
        state = "kept" if self.kept else f"broken in {self.broken:,} of {self.groups:,} groups"
        text = f"{self.promise}: {state}; asked {self.asked:g}, reached {self.reached:.4g} ({self.unit} counted)"
        return f"{text}; {self.note}" if self.note else text

"""Groups of released rows, as a promise judges them, and what it finds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.core.comparable import comparable
from shoal.core.levels import Levels


@dataclass(frozen=True)
class Coverage:
    """Which people of a register each group's cells may stand for, as who reads the release would count them.

    ``people`` says how many people stand behind each entry of the register; ``covered()`` goes over the groups in their
    order and gives the entries each of them covers.

    >>> one = Coverage(np.array([2, 3]), lambda: iter([np.array([True, False]), np.array([True, True])]))
    >>> one.counts().tolist()
    [2, 5]
    """

    people: NDArray[np.int64]
    covered: Callable[[], Iterator[NDArray[np.bool_]]]

    def counts(self) -> NDArray[np.int64]:
        """How many people of the register each group covers."""
        return np.array([int(self.people[entries].sum()) for entries in self.covered()], np.int64)

    def beliefs(self, sizes: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
        """How sure a reader is that a person of the register was released: per group the highest and the lowest.

        Each group of ``sizes[g]`` people took them evenly among those it covers. Where cells of groups overlap, a
        person may be in any of them: the shares add up for the highest belief, and the largest of them is the lowest.
        The last number is the lowest belief of all people of the register; 0 where no group covers somebody.
        """
        counts = self.counts()
        share = sizes / np.maximum(counts, 1)
        summed, largest = np.zeros(len(self.people)), np.zeros(len(self.people))
        for group, entries in enumerate(self.covered()):
            summed[entries] += share[group]
            largest[entries] = np.maximum(largest[entries], share[group])
        most, least = np.zeros(len(counts)), np.zeros(len(counts))
        for group, entries in enumerate(self.covered()):
            # whom the register does not know is found by nobody in it; but then it is not the register that was meant
            most[group] = summed[entries].max(initial=0.0 if counts[group] else 1.0)
            least[group] = largest[entries].min(initial=1.0) if counts[group] else 0.0
        return np.minimum(most, 1.0), np.minimum(least, 1.0), float(largest.min(initial=1.0))


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
    register: Coverage | None = None
    # of a part of a release: the values of sensitive columns in the whole, and the share of all people who hold each
    whole: Mapping[str, tuple[pl.Series, NDArray[np.float64]]] = field(default_factory=dict)

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

    def together(self) -> Groups:
        """The same rows by people instead of one by one: whose rows stand in the same groups, each as often, are alike.

        >>> rows = Groups(np.array([0, 1, 0, 1, 1], np.int32), people=np.array([0, 0, 1, 1, 2], np.int32))
        >>> rows.together().labels.tolist()
        [0, 0, 0, 0, 1]
        """
        rows = pl.DataFrame({"person": self.people, "group": self.labels})
        paths = rows.sort("person", "group").group_by("person").agg(pl.col("group").cast(pl.String).str.join(","))
        numbered = paths.select("person", (pl.col("group").rank("dense") - 1).alias("crowd"))
        crowds = rows.join(numbered, on="person", how="left", maintain_order="left")["crowd"]
        return replace(self, labels=crowds.to_numpy().astype(np.int32))

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

    def shares(self, column: str) -> NDArray[np.float64]:
        """The share of all people (or rows) who have each value: of the whole release, if these groups are a part."""
        if column in self.whole:
            return self.whole[column][1]
        out: NDArray[np.float64] = self.totals(column) / max(1, self.everyone())
        return out

    def _coded(self, column: str) -> tuple[pl.DataFrame, pl.Series]:
        series = comparable(self.sensitive[column])
        values = self.whole[column][0] if column in self.whole else series.unique().sort(nulls_last=True)
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

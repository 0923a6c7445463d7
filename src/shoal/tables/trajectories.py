"""People with many rows: any method that forms groups of rows, made to form groups of people.

A person with n rows is one row of a wide table that has every quasi column n times; rows of a person stand in the order
of their codes, so that like is laid beside like. Groups of the wide table, formed by the ordinary method, are people
whose first rows share a box, whose second rows share one, and so on: all their rows, taken together, read alike. What
is promised about sensitive values holds of the first rows, of the second ones, and of the people with all their values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.core.errors import PromiseError, UsageError
from shoal.core.groups import Groups
from shoal.core.table import Sensitive, Table
from shoal.promises.base import Promise
from shoal.promises.k_anonymity import KAnonymity
from shoal.promises.rules import least_people
from shoal.tables.base import Grouping, Progress, TableMethod, groups_of, reachable
from shoal.tables.uphold import uphold

Ids = NDArray[np.int64]
Pool = tuple[int, Ids]  # so many rows of each of these people


def group_people(
    method: TableMethod, table: Table, promises: Sequence[Promise], *, seed: int, progress: Progress
) -> Grouping:
    """Groups of rows such that at least k people stand in the same groups with all of their rows.

    People with equally many rows are grouped together. Where there are too few of them, those with more rows are cut to
    fewer: rows beyond are withheld. Costs what the method costs on as many wide tables as there are numbers of rows.
    """
    if table.people is None:
        promise = next(p for p in promises if p.follows_people)
        raise UsageError(
            "follows people through their rows, and nothing says whose a row is",
            where=promise.use,
            hint="declare the column that does: `subject`",
        )
    if not method.local_recoding:
        raise UsageError(
            f"{method.use} gives whole columns one level, whatever the people",
            where="method",
            hint="use local, topdown, mondrian, forest or microaggregation",
        )
    reachable(table, [*(p for p in promises if not p.follows_people), KAnonymity(least_people(promises))])
    people = _People(table, promises)
    labels, filled = np.full(table.size, -1, np.int32), 0
    for number, (length, who) in enumerate(_pools(people.counts, least_people(promises), people.enough)):
        rows = people.rows(who, length)
        wide, about, together = people.wide(rows)
        found = method.group(wide, about, seed=seed + number, progress=progress)
        formed = (uphold(wide, [*about, *together], found) if together else found).labels
        whose = formed[np.argsort(wide.rows, kind="stable")]  # wide rows were sorted by their codes
        groups = filled + whose[:, None].astype(np.int64) * length + np.arange(length)
        labels[rows] = np.where(whose[:, None] >= 0, groups, -1)
        filled += (int(formed.max(initial=-1)) + 1) * length
    return Grouping(labels)


@dataclass(frozen=True)
class _Together:
    """A promise about a sensitive column, of people with what they have in all of their rows.

    Two values in each of two rows of k people may be such that all of them have one of the two: who puts their rows
    together would know it of everyone.
    """

    promise: Promise
    column: str
    length: int

    def measure(self, groups: Groups) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """As :meth:`Promise.measure`, for groups of people with a copy of the column for each of their rows."""
        copies = [f"{at} {self.column}" for at in range(self.length)]
        rows = Groups(
            np.tile(groups.labels, self.length),
            {self.column: pl.concat([groups.sensitive[copy] for copy in copies])},
            np.tile(np.arange(len(groups.labels), dtype=np.int32), self.length),
            {self.column: groups.levels[copies[0]]} if copies[0] in groups.levels else {},
            None,
            {self.column: groups.whole[copies[0]]},
        )
        return self.promise.measure(rows)


@dataclass
class _People:
    table: Table
    promises: Sequence[Promise]

    def __post_init__(self) -> None:
        assert self.table.people is not None
        self._order = np.argsort(self.table.people, kind="stable")  # rows of a person stay in the order of their codes
        _, self._start, self.counts = np.unique(self.table.people[self._order], return_index=True, return_counts=True)

    def rows(self, who: Ids, length: int) -> Ids:
        """The first rows of some people, a line each."""
        return np.asarray(self._order[self._start[who][:, None] + np.arange(length)])

    def enough(self, who: Ids, length: int) -> bool:
        """Whether these people can keep the promises among themselves."""
        wide, about, together = self.wide(self.rows(who, length))
        try:
            reachable(wide, about)
        except PromiseError:
            return False
        whole = groups_of(wide, np.zeros(wide.size, np.int32))
        return all(bool(promise.measure(whole)[1].all()) for promise in together)

    def wide(self, rows: Ids) -> tuple[Table, list[Promise], list[_Together]]:
        """One row per person, every column as often as they have rows; what is promised of it, and of all rows."""
        table, length = self.table, rows.shape[1]
        matrix = np.ascontiguousarray(table.matrix[rows].reshape(len(rows), -1))
        order = np.lexsort(matrix.T[::-1])
        about: list[Promise] = [KAnonymity(least_people(self.promises))]
        together: list[_Together] = []
        sensitive: dict[str, Sensitive] = {}
        whole = {}
        for promise in self.promises:
            # what cannot be said of one row of each person is upheld afterwards, over all rows
            name = getattr(promise, "column", None)
            if promise.follows_people or promise.about != "groups" or name is None or name != promise.sensitive:
                continue
            column = table.sensitive[name]
            if length > 1:
                together.append(_Together(promise, name, length))
            for at in range(length):
                copy = f"{at} {name}"
                about.append(msgspec.structs.replace(promise, column=copy))
                sensitive[copy] = Sensitive(column.codes[rows[order, at]], column.values, column.levels)
                whole[copy] = self._shares(name)
        return (
            replace(
                table,
                names=tuple(f"{at} {name}" for at in range(length) for name in table.names),
                matrix=matrix[order],
                levels=table.levels * length,
                weights=np.tile(table.weights, length),
                rows=order,
                people=None,
                sensitive=sensitive,
                withheld={},
                known={},
                register=None,
                whole=whole,
            ),
            about,
            together,
        )

    def _shares(self, name: str) -> NDArray[np.float64]:
        """The share of all people who hold each value of a sensitive column, in any of their rows."""
        if name in self.table.whole:
            return self.table.whole[name]
        assert self.table.people is not None
        column = self.table.sensitive[name]
        pairs = np.unique(self.table.people.astype(np.int64) * len(column.values) + column.codes)
        return np.asarray(np.bincount(pairs % len(column.values), minlength=len(column.values)) / self.table.crowd)


def _pools(counts: Ids, k: int, enough: Callable[[Ids, int], bool]) -> list[Pool]:
    """Everyone in a pool of people, cut to so many rows that all of its people have.

    From those with the most rows down: who is too few waits for those with fewer. Whoever waits at the end draws as
    many as are needed from the pool that was closed last, or all of it.
    """
    pools: list[Pool] = []
    waiting = np.zeros(0, np.int64)
    for length in np.unique(counts)[::-1]:
        waiting = np.concatenate([waiting, np.flatnonzero(counts == length)])
        if len(waiting) >= k and enough(waiting, int(length)):
            pools.append((int(length), waiting))
            waiting = np.zeros(0, np.int64)
    while len(waiting) and pools:
        least = int(counts[waiting].min())
        length, pool = pools.pop()
        take = max(1, k - len(waiting))
        while take < len(pool):
            rest, drawn = pool[:-take], np.concatenate([waiting, pool[-take:]])
            if len(rest) >= k and enough(rest, length) and enough(drawn, least):
                return [*pools, (length, rest), (least, drawn)]
            take *= 2
        waiting = np.concatenate([waiting, pool])
        if enough(waiting, least):
            return [*pools, (least, waiting)]
    if len(waiting):
        raise PromiseError(
            "the promises cannot be kept by whole people, cut to their fewest rows",
            where="promises",
            hint="ask for less, or leave out people with few rows",
        )
    return pools

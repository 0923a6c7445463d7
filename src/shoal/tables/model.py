"""A release applied to new rows: who falls into a published box joins its group, within the promises."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.core.groups import Groups
from shoal.core.levels import code_of
from shoal.core.release import Boxes
from shoal.core.schema import Schema
from shoal.core.table import Table, factorize, require
from shoal.measures.loss import node_range
from shoal.promises.base import Promise


@dataclass(frozen=True)
class Model:
    """The boxes of a release and the people behind them.

    Does not protect against someone who compares the two releases and knows who is new: a new row hides among the
    people who were there before.
    """

    schema: Schema
    table: Table
    labels: NDArray[np.int32]
    boxes: Boxes
    promises: Sequence[Promise]

    def apply(self, frame: pl.DataFrame) -> tuple[pl.DataFrame, dict[str, int]]:
        """New rows as the release would show them, and why the others are withheld.

        A row is released if a published box covers it (the tightest, if several do) and the group still keeps every
        promise with its new members; a group that would break takes none of them. Costs O(rows x groups).
        """
        require(frame, [*self.table.names, *self.schema.sensitive, *self.schema.of("subject")], "new rows")
        codes = np.empty((frame.height, len(self.table.names)), np.int64)
        for j, name in enumerate(self.table.names):
            codes[:, j] = self._codes(frame[name], j)
        joined = self._covering(codes)
        uncovered = int((joined < 0).sum())
        breaking = self._breaking(frame, joined)
        joined[np.isin(joined, breaking)] = -1
        withheld = {
            "no published group covers it": uncovered,
            "its group would break": int((joined < 0).sum()) - uncovered,
        }
        kept = np.flatnonzero(joined >= 0)
        columns = []
        for name in frame.columns:
            if name in self.table.names:
                j = self.table.names.index(name)
                columns.append(self.table.levels[j].text(*self.boxes.column(j)).gather(joined[kept]).alias(name))
            elif name in self.schema.columns and self.schema[name].role in ("sensitive", "plain", "time"):
                columns.append(frame[name].gather(kept))
        return pl.DataFrame(columns), {reason: n for reason, n in withheld.items() if n}

    def _codes(self, series: pl.Series, j: int) -> NDArray[np.int32]:
        levels = self.table.levels[j]
        try:
            wanted = series.cast(levels.values.dtype)
        except pl.exceptions.InvalidOperationError:
            return np.full(len(series), -1, np.int32)
        found = code_of(levels, wanted)
        if levels.numbers is not None:  # a number between two known ones lies in the same intervals as both
            known = levels.numbers[~np.isnan(levels.numbers)]
            numbers = wanted.cast(pl.Float64).fill_null(np.nan).to_numpy()
            at = np.searchsorted(known, numbers)
            inside = (at > 0) & (at < len(known)) & (found < 0)
            # halfway codes are doubled below, so that "between a and b" needs a box that holds both
            return np.where(found >= 0, 2 * found, np.where(inside, 2 * at - 1, -1)).astype(np.int32)
        return np.where(found >= 0, 2 * found, -1).astype(np.int32)

    def _covering(self, codes: NDArray[np.int64]) -> NDArray[np.int64]:
        """The group with the least loss whose cells cover each row, or -1."""
        ranges = [node_range(levels, self.boxes, j) for j, levels in enumerate(self.table.levels)]
        cost = np.zeros(len(self.boxes.low))
        for j, levels in enumerate(self.table.levels):
            cost += levels.ncp(*self.boxes.column(j)) * self.table.weights[j]
        order = np.argsort(cost, kind="stable")
        out = np.full(len(codes), -1, np.int64)
        for group in order:
            free = np.flatnonzero(out < 0)
            if not len(free):
                break
            fits = np.ones(len(free), np.bool_)
            for j, (first, last) in enumerate(ranges):
                fits &= (
                    (codes[free, j] >= 2 * first[group]) & (codes[free, j] <= 2 * last[group]) & (codes[free, j] >= 0)
                )
            out[free[fits]] = group
        return out

    def _breaking(self, frame: pl.DataFrame, joined: NDArray[np.int64]) -> NDArray[np.int64]:
        """Groups that would break a promise with their new members: they get none."""
        refused = np.zeros(len(self.boxes.low), np.bool_)
        while True:
            new = np.flatnonzero((joined >= 0) & ~refused[joined])
            groups = self._together(frame, new, joined[new])
            broken = np.zeros(groups.count, np.bool_)
            for promise in self.promises:
                broken |= ~promise.measure(groups)[1]
            if not broken.any():
                return np.flatnonzero(refused)
            guilty = np.unique(joined[new][broken[joined[new]]])
            # newcomers elsewhere may have shifted the whole distribution: then none is taken
            refused[guilty if len(guilty) else np.arange(len(refused))] = True

    def _together(self, frame: pl.DataFrame, new: NDArray[np.int64], joined: NDArray[np.int64]) -> Groups:
        old = np.flatnonzero(self.labels >= 0)
        sensitive = {}
        for name, column in self.table.sensitive.items():
            before = column.values.gather(column.codes[old])
            sensitive[name] = pl.concat([before, frame[name].gather(new).cast(before.dtype)])
        people = None
        if self.schema.subject is not None and self.table.people is not None:
            arrivals = factorize(frame[self.schema.subject].gather(new))[0] + int(self.table.people.max(initial=-1)) + 1
            people = np.concatenate([self.table.people[old], arrivals]).astype(np.int32)
        labels = np.concatenate([self.labels[old], joined]).astype(np.int32)
        levels = {name: s.levels for name, s in self.table.sensitive.items() if s.levels is not None}
        return Groups(labels, sensitive, people, levels)

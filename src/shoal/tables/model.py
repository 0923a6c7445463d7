"""A release applied to new rows: who falls into a published box joins its group, within the promises."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.core.comparable import comparable
from shoal.core.errors import UsageError
from shoal.core.frames import require
from shoal.core.groups import Groups
from shoal.core.release import Boxes, taken
from shoal.core.schema import Schema
from shoal.core.table import Table, by_value, factorize, hierarchy_for
from shoal.measures.loss import node_range, published_level
from shoal.promises.base import Promise, those_about

Spans = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int8]]  # first and last code, least level to cover it


@dataclass(frozen=True)
class Model:
    """The boxes of a release and the people behind them, with everyone who joined since.

    Who joined in an earlier call of :meth:`apply` counts in the next one, because an outsider reads all of them
    together. Only the sensitive values and the people of those rows are kept, in memory, like those of the input.

    Does not protect against someone who compares the two releases and knows who is new: a new row hides among the
    people who were there before.

    >>> import shoal
    >>> release = shoal.anonymize(pl.DataFrame({"age": [20, 29, 50, 58]}), quasi=["age"], k=2, method="mondrian")
    >>> release.model.apply(pl.DataFrame({"age": [25]}))[0].rows()
    [('[20, 29]',)]
    """

    schema: Schema
    table: Table
    labels: NDArray[np.int32]
    boxes: Boxes
    promises: Sequence[Promise]
    subjects: pl.Series | None = None  # whose the rows of the input were: who comes back is not a second person
    arrived: list[tuple[pl.DataFrame, NDArray[np.int64]]] = field(default_factory=list, repr=False, compare=False)

    def apply(self, frame: pl.DataFrame) -> tuple[pl.DataFrame, dict[str, int]]:
        """New rows as the release would show them, and why the others are withheld.

        A row is released if a published box covers it (the tightest, if several do) and the group still keeps every
        promise with its new members, those of earlier calls among them; a group that would break takes none of these
        rows. Costs O(rows x groups).
        """
        if beside := those_about(self.promises, "register"):
            raise UsageError(
                f"{beside[0].use} is about a register, and who is new in it is not known",
                where="model",
                hint="release all rows again",
            )
        require(frame, [*self.table.names, *self.schema.sensitive, *self.schema.of("subject")], "new rows")
        joined = self._covering([self._spans(frame[name], j) for j, name in enumerate(self.table.names)])
        uncovered = int((joined < 0).sum())
        breaking = self._breaking(frame, joined)
        joined[np.isin(joined, breaking)] = -1
        withheld = {
            "no published group covers it": uncovered,
            "its group would break": int((joined < 0).sum()) - uncovered,
        }
        kept = np.flatnonzero(joined >= 0)
        if len(kept):
            about = [*self.table.sensitive, *self.schema.of("subject")]
            self.arrived.append((pl.DataFrame([taken(frame[name], kept) for name in about]), joined[kept]))
        columns = []
        for name in frame.columns:
            if name in self.table.names:
                j = self.table.names.index(name)
                columns.append(self.table.levels[j].text(*self.boxes.column(j)).gather(joined[kept]).alias(name))
            elif name in self.schema.columns and self.schema[name].role in ("sensitive", "plain", "time"):
                columns.append(taken(frame[name], kept))
        return pl.DataFrame(columns), {reason: n for reason, n in withheld.items() if n}

    def _spans(self, series: pl.Series, j: int) -> Spans:
        """Where new values lie among the codes of a column: a cell covers them if it covers the place.

        A value seen before lies at its code; a number between two, between theirs; an unseen value in the lowest
        known node its own labels name, and only cells of that level or above cover it.
        """
        values = comparable(series)
        distinct = values.unique().sort(nulls_last=True)
        levels = self.table.levels[j]
        n = len(distinct)
        first, last, level = np.full(n, -1, np.int64), np.full(n, -1, np.int64), np.zeros(n, np.int8)
        if levels.numbers is not None and distinct.dtype.is_numeric():
            known = levels.numbers[: levels.size - (levels.missing >= 0)]
            # coded ends stand for everything beyond them
            numbers = distinct.cast(pl.Float64).clip(*levels.ends).fill_null(np.nan).to_numpy()
            inside = (numbers >= known[0]) & (numbers <= known[-1]) if len(known) else np.zeros(n, np.bool_)
            first[inside] = np.searchsorted(known, numbers[inside], side="right") - 1
            last[inside] = np.searchsorted(known, numbers[inside], side="left")
            first[np.isnan(numbers)] = last[np.isnan(numbers)] = levels.missing
        else:
            self._by_labels(distinct, j, first, last, level)
        if self.schema[self.table.names[j]].missing == "suppress":
            first[distinct.is_null().to_numpy()] = -1
        at = factorize(values)[0]
        return first[at], last[at], level[at]

    def _by_labels(
        self,
        distinct: pl.Series,
        j: int,
        first: NDArray[np.int64],
        last: NDArray[np.int64],
        level: NDArray[np.int8],
    ) -> None:
        name, levels = self.table.names[j], self.table.levels[j]
        hierarchy = hierarchy_for(distinct, self.schema[name])
        try:
            own, codes = hierarchy.compile(distinct, where=f"column {name!r}")
        except UsageError:  # another type, or beyond the declared domain: nothing covers it
            return
        if own.depth != levels.depth or not own.size:  # nothing here, or nothing the hierarchy knows
            return
        free = (codes >= 0) & (codes != own.missing)
        if own.missing >= 0 and levels.missing >= 0:
            first[codes == own.missing] = last[codes == own.missing] = levels.missing
        for at in range(levels.depth):
            nodes = {label: node for node, label in enumerate(levels.labels(at).to_list())}
            labels = own.labels(at).gather(own.codes[codes.clip(0), at]).to_list()
            found = np.array([nodes.get(label, -1) for label in labels])
            here = free & (found >= 0)
            column = levels.codes[:, at]
            first[here] = np.searchsorted(column, found[here], side="left")
            last[here] = np.searchsorted(column, found[here], side="right") - 1
            level[here] = at
            free &= found < 0

    def _covering(self, spans: Sequence[Spans]) -> NDArray[np.int64]:
        """The group with the least loss whose cells cover each row, or -1."""
        ranges = [node_range(levels, self.boxes, j) for j, levels in enumerate(self.table.levels)]
        shown = [published_level(levels, self.boxes, j) for j, levels in enumerate(self.table.levels)]
        cost = np.zeros(len(self.boxes.low))
        for j, levels in enumerate(self.table.levels):
            cost += levels.ncp(*self.boxes.column(j)) * self.table.weights[j]
        out = np.full(len(spans[0][0]), -1, np.int64)
        for group in np.argsort(cost, kind="stable"):
            free = np.flatnonzero(out < 0)
            if not len(free):
                break
            fits = np.ones(len(free), np.bool_)
            for (low, high), at, (first, last, level) in zip(ranges, shown, spans, strict=True):
                fits &= (first[free] >= low[group]) & (last[free] <= high[group]) & (first[free] >= 0)
                fits &= level[free] <= at[group]
            out[free[fits]] = group
        return out

    def _breaking(self, frame: pl.DataFrame, joined: NDArray[np.int64]) -> NDArray[np.int64]:
        """Groups that would break a promise with their new members: they get none."""
        refused = np.zeros(len(self.boxes.low), np.bool_)
        while True:
            new = np.flatnonzero((joined >= 0) & ~refused[joined])
            groups = self._together(frame, new, joined[new])
            broken = np.zeros(groups.count, np.bool_)
            for promise in those_about(self.promises, "groups"):
                broken |= ~promise.measure(groups)[1]
            if not broken.any():
                return np.flatnonzero(refused)
            guilty = np.unique(joined[new][broken[joined[new]]])
            # newcomers elsewhere may have shifted the whole distribution: then none is taken
            refused[guilty if len(guilty) else np.arange(len(refused))] = True

    def _together(self, frame: pl.DataFrame, new: NDArray[np.int64], joined: NDArray[np.int64]) -> Groups:
        """The released rows, those that joined before and the new ones, by group."""
        old = np.flatnonzero(self.labels >= 0)
        later = [*(rows for rows, _ in self.arrived), frame[new]]

        def extended(before: pl.Series, name: str) -> pl.Series:
            return pl.concat([before, *(rows[name].cast(before.dtype) for rows in later)])

        sensitive = {n: extended(c.values.gather(c.codes[old]), n) for n, c in self.table.sensitive.items()}
        people = None
        if self.schema.subject is not None and self.table.people is not None:
            assert self.subjects is not None
            people = factorize(extended(self.subjects.gather(self.table.rows[old]), self.schema.subject))[0]
        labels = np.concatenate([self.labels[old], *(groups for _, groups in self.arrived), joined]).astype(np.int32)
        levels = {
            name: by_value(hierarchy, factorize(values)[1], f"column {name!r} of the new rows")  # may be new to us
            for name, values in sensitive.items()
            if (hierarchy := self.schema[name].hierarchy) is not None
        }
        return Groups(labels, sensitive, people, levels)

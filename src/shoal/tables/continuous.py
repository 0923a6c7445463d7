"""Continuous mode (Garai 2019, section 3.7): a table that arrives in chunks, anonymized as it grows."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import polars as pl

from shoal.core.errors import PromiseError, UsageError
from shoal.core.frames import require
from shoal.core.groups import Groups
from shoal.core.levels import Levels
from shoal.core.release import read_alike, recode
from shoal.core.schema import Schema, refuse_limits
from shoal.core.table import Table, code, factorize
from shoal.promises.base import Promise
from shoal.promises.k_anonymity import KAnonymity
from shoal.promises.rules import least_people
from shoal.tables.base import TableMethod
from shoal.tables.forest import Forest
from shoal.tables.growing import Growing


@dataclass(frozen=True)
class Increment:
    """What one chunk gave: the data to publish (nothing, if all is held back), and a word on it.

    >>> Increment(None, released=0, held=3, word="held back").held
    3
    """

    data: pl.DataFrame | None
    released: int  # rows released now for the first time
    held: int  # rows kept until more people come
    word: str
    withheld: Mapping[str, int] = field(default_factory=dict)


class Continuous:
    """Chunks in; after each, a release that keeps every promise.

    ``publish="whole"`` is the mode of Garai 2019: every call releases all rows so far, and published cells only ever
    become more general. An observer of two versions sees which rows are new, and a new row may be alone among the old
    rows of its group: k holds of each version, not of their difference. ``publish="new"`` releases only new rows, each
    group with at least k people who were never published before: no row is published twice, and the union of all
    increments keeps the promises, too. All rows whose subject is missing are one person's. Neither mode protects a
    person whose sensitive value stays the same against someone who knows two of their groups.

    Rows that cannot be released yet are held, never lost. Cost: as the method's, over all rows (whole) or the new.

    >>> import polars as pl
    >>> from shoal.core.hierarchy.range import Range
    >>> growing = Continuous(Schema.build(quasi={"age": Range(min=0, max=50)}), [KAnonymity(2)])
    >>> print(growing.push(pl.DataFrame({"age": [27]})).word)
    held back 1 row: 2-anonymity cannot be reached: asked 2, the whole table as one group reaches 1 (rows counted)
    >>> growing.push(pl.DataFrame({"age": [30]})).data["age"].to_list()
    ['[25, 30]', '[25, 30]']
    """

    def __init__(
        self,
        schema: Schema,
        promises: Sequence[Promise],
        method: TableMethod | None = None,
        *,
        publish: Literal["whole", "new"] = "whole",
    ) -> None:
        self.method = method or Forest()
        if publish not in ("whole", "new"):
            raise UsageError("expected `whole` or `new`", where="publish")
        if getattr(self.method, "suppress", 0):
            raise UsageError(
                "a method that suppresses rows cannot be used here: what was published stays", where="continuous mode"
            )
        refuse_limits(schema, "what was published stays, and later rows may find no group within it")
        self.schema = schema
        self.promises = list(promises)
        self.publish = publish
        self.chunks = 0
        self.pending: pl.DataFrame | None = None
        self.growing = Growing(schema, {}) if publish == "whole" else None
        self.released: pl.DataFrame | None = None  # all increments and whose rows they are (new)

    @property
    def shown(self) -> list[str]:
        """The columns of a release."""
        return self.schema.of("quasi", "sensitive", "plain", "time")

    def push(self, frame: pl.DataFrame, *, seed: int = 0) -> Increment:
        """Take a chunk; what may be published now."""
        require(frame, list(self.schema.columns), "chunk")
        chunk = frame.select(list(self.schema.columns))
        rows = chunk if self.pending is None else pl.concat([self.pending, chunk])
        self.chunks += 1
        if not rows.height:
            return Increment(None, 0, 0, "nothing new to release")
        try:
            return self._whole(rows, seed) if self.growing is not None else self._new(rows, seed)
        except PromiseError as error:
            self.pending = rows
            return Increment(None, 0, rows.height, f"held back {_rows(rows.height)}: {error.message}")

    def _whole(self, rows: pl.DataFrame, seed: int) -> Increment:
        assert self.growing is not None
        grown, withheld = self.growing.with_rows(rows)
        table = grown.table()
        grouping = self.method.group(table, self.promises, seed=seed)
        labels, boxes = read_alike(table, grouping.labels, grouping.floor)
        new = grown.size - self.growing.size
        self.growing, data = grown.published(table, labels, boxes)
        self.pending = None
        word = f"released {_rows(data.height)}, {new:,} of them new"
        return Increment(data.select(self.shown), new, 0, word, withheld)

    def _new(self, rows: pl.DataFrame, seed: int) -> Increment:
        table = code(rows, self.schema)
        asked, counted = self._newcomers(rows, table)
        grouping = self.method.group(counted, asked, seed=seed)
        labels, boxes = read_alike(table, grouping.labels, grouping.floor)
        data, groups = recode(rows, self.schema, table, labels, boxes)
        subject = self.schema.subject
        whose = [rows[subject].filter(pl.Series(groups >= 0))] if subject else []
        increment = data.select(self.shown).with_columns(whose)
        union = increment if self.released is None else pl.concat([self.released, increment])
        self._check(union)
        self.released, self.pending = union, None
        return Increment(
            data.select(self.shown), data.height, 0, f"released {_rows(data.height)}", dict(table.withheld)
        )

    def _newcomers(self, rows: pl.DataFrame, table: Table) -> tuple[list[Promise], Table]:
        """Promises and a table in which people who were published before do not count towards k.

        All of them count as one person, and one more person is asked for. Rows without a subject are all one person's,
        in every increment the same.
        """
        subject = self.schema.subject
        if subject is None or self.released is None or table.people is None:
            return self.promises, table
        again = rows[subject].is_in(self.released[subject].implode(), nulls_equal=True).to_numpy()[table.rows]
        if not again.any():
            return self.promises, table
        k = least_people(self.promises)
        people = np.where(again, table.people.max() + 1, table.people)
        people = np.unique(people, return_inverse=True)[1].astype(np.int32)
        return [*self.promises, KAnonymity(k + 1)], dataclasses.replace(table, people=people)

    def _check(self, union: pl.DataFrame) -> None:
        """All increments together keep the promises, or nothing is published."""
        quasi = self.schema.quasi
        labels = union.select(pl.struct(quasi).rank("dense") - 1).to_series().to_numpy().astype(np.int32)
        people = None if self.schema.subject is None else factorize(union[self.schema.subject])[0]
        levels: dict[str, Levels] = {}
        for name in self.schema.sensitive:
            hierarchy = self.schema[name].hierarchy
            if hierarchy is not None:
                levels[name] = hierarchy.compile(union[name].unique().sort(nulls_last=True))[0]
        groups = Groups(labels, {name: union[name] for name in self.schema.sensitive}, people, levels)
        for promise in self.promises:
            finding = promise.judge(groups)
            if not finding.kept:
                raise PromiseError(f"together with what was published before, {finding}", where="continuous mode")


def _rows(count: int) -> str:
    return f"{count:,} row{'' if count == 1 else 's'}"

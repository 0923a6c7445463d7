"""The rows of continuous mode: their cells as published so far, and new rows beside them, as one table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.core.comparable import comparable
from shoal.core.levels import Codes, Levels
from shoal.core.release import Boxes, taken
from shoal.core.schema import Schema
from shoal.core.table import Sensitive, Table, code, hierarchy_for
from shoal.tables.generalized import Widened, with_nodes


@dataclass(frozen=True)
class Cells:
    """One quasi column as published: the node of ``values[leaf]`` at ``level``, per row.

    The leaf is the first value under the node that was ever seen, not the row's own: that is forgotten.
    """

    values: pl.Series
    leaf: Codes
    level: NDArray[np.int8]


@dataclass(frozen=True)
class Growing:
    """All rows so far: their published cells, and their other columns."""

    schema: Schema
    cells: Mapping[str, Cells]
    rest: pl.DataFrame | None = None

    @property
    def size(self) -> int:
        """Number of rows."""
        return 0 if self.rest is None else self.rest.height

    def with_rows(self, rows: pl.DataFrame) -> tuple[Growing, dict[str, int]]:
        """These rows and new ones, whose cells are exact; and how many new ones had to be withheld, why."""
        keep = np.ones(rows.height, np.bool_)
        withheld: dict[str, int] = {}
        cells = {}
        for name in self.schema.quasi:
            column = self.schema[name]
            cells[name] = self._extend(name, rows[name])
            new = cells[name].leaf[self.size :]
            unknown = self._compile(name, cells[name].values)[1][new] < 0
            missing = rows[name].is_null().to_numpy() & (column.missing == "suppress")
            for reason, bad in (("missing", missing), ("unknown", unknown & ~missing)):
                if (bad & keep).any():
                    withheld[f"{reason} {name}"] = int((bad & keep).sum())
                keep &= ~bad
        every = np.concatenate([np.ones(self.size, np.bool_), keep])
        cells = {n: Cells(c.values, c.leaf[every], c.level[every]) for n, c in cells.items()}
        others = [c for c in self.schema.columns if c not in cells]
        kept = np.flatnonzero(keep)
        new_rest = pl.DataFrame([taken(rows[c], kept) for c in others]) if others else pl.DataFrame({"": kept})
        rest = new_rest if self.rest is None else pl.concat([self.rest, new_rest])
        return Growing(self.schema, cells, rest), withheld

    def _extend(self, name: str, series: pl.Series) -> Cells:
        series = comparable(series)
        old = self.cells.get(name)
        values = series if old is None else pl.concat([old.values, series.cast(old.values.dtype)])
        known = values.unique().sort(nulls_last=True)
        numbered = pl.DataFrame({"value": known, "at": np.arange(len(known), dtype=np.int32)})
        at = (
            pl.DataFrame({"value": values})
            .join(numbered, on="value", how="left", nulls_equal=True, maintain_order="left")["at"]
            .to_numpy()
        )
        if old is None:
            return Cells(known, at, np.zeros(len(series), np.int8))
        seen = len(old.values)
        leaf = np.concatenate([at[:seen][old.leaf], at[seen:]])
        return Cells(known, leaf, np.concatenate([old.level, np.zeros(len(series), np.int8)]))

    def _compile(self, name: str, values: pl.Series) -> tuple[Levels, Codes]:
        where = f"column {name!r}"
        return hierarchy_for(values, self.schema[name]).fixed(where).compile(values, where=where)

    def _widened(self, name: str) -> tuple[Widened, Codes, NDArray[np.int64]]:
        """A column's levels with its nodes as values, the code of every row, and which value each plain code is."""
        cells = self.cells[name]
        levels, codes = self._compile(name, cells.values)
        general = cells.level > 0
        leaf = codes[cells.leaf]
        nodes = np.stack([cells.level[general], levels.codes[leaf[general], cells.level[general]]], 1).astype(np.int64)
        unique, inverse = np.unique(nodes, axis=0, return_inverse=True)
        widened = with_nodes(levels, unique[:, 0].astype(np.int8), unique[:, 1].astype(np.int32))
        column = widened.values[leaf]
        column[general] = widened.nodes[inverse.reshape(-1)]
        known = np.flatnonzero(codes >= 0)
        value_of = np.zeros(levels.size, np.int64)
        value_of[codes[known][::-1]] = known[::-1]
        return widened, column, value_of

    def table(self) -> Table:
        """All rows as a table for any method."""
        columns = [self._widened(name)[:2] for name in self.schema.quasi]
        matrix = np.stack([codes for _, codes in columns], 1) if columns else np.zeros((self.size, 0), np.int32)
        assert self.rest is not None
        # the sensitive columns and the people are coded as in any table; only their order is undone
        about = Schema({n: c for n, c in self.schema.columns.items() if c.role in ("sensitive", "subject")})
        beside = code(self.rest, about)
        back = np.argsort(beside.rows, kind="stable")
        people = None if beside.people is None else beside.people[back]
        sensitive = {n: Sensitive(s.codes[back], s.values, s.levels) for n, s in beside.sensitive.items()}
        keys = [*([] if people is None else [people]), *[s.codes for s in sensitive.values()][::-1], *matrix.T[::-1]]
        order = np.lexsort(keys) if keys else np.arange(self.size)
        return Table(
            tuple(self.schema.quasi),
            np.ascontiguousarray(matrix[order]),
            tuple(widened.levels for widened, _ in columns),
            np.array([self.schema[n].weight for n in self.schema.quasi], np.float64),
            order,
            None if people is None else people[order],
            {n: Sensitive(s.codes[order], s.values, s.levels) for n, s in sensitive.items()},
        )

    def published(self, table: Table, labels: NDArray[np.int32], boxes: Boxes) -> tuple[Growing, pl.DataFrame]:
        """These rows with the cells of their groups, and the frame that is published."""
        assert self.rest is not None
        group = np.empty(self.size, np.int64)
        group[table.rows] = labels
        cells, columns = {}, []
        for j, name in enumerate(table.names):
            widened, _, value_of = self._widened(name)
            low, high, floor, _ = boxes.column(j)  # sets do not grow, and were refused
            level = np.maximum(widened.levels.meet(low, high), floor).astype(np.int8)
            leaf, height = widened.published(low, level)
            # exact values nobody needs to name a node by are forgotten, those of withheld rows among them
            own = value_of[leaf][group]
            missing = np.flatnonzero(self.cells[name].values.is_null().to_numpy())  # its presence decides on labels
            used = np.union1d(own, missing).astype(np.int64)
            at = np.searchsorted(used, own).astype(np.int32)
            cells[name] = Cells(taken(self.cells[name].values, used), at, height[group])
            columns.append(table.levels[j].text(low, high, floor).gather(group).alias(name))
        return replace(self, cells=cells), self.rest.with_columns(columns)

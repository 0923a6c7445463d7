"""A release applied to new rows: who falls into a published cell joins its group, within the promises.

A model knows what the release tells, and no more: the text of its cells, the sensitive values of each group (which are
published), and of people a keyed fingerprint. The values that rows had before are not in it.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.core.errors import InputError, UsageError
from shoal.core.frames import from_any, require
from shoal.core.groups import Groups
from shoal.core.release import Boxes, taken
from shoal.core.schema import Schema
from shoal.core.table import Table, by_value, factorize
from shoal.promises.base import Promise, those_about
from shoal.tables.cover import covers

GROUP, PERSON = "\0group", "\0person"


@dataclass
class Model:
    """The cells of a release and the people behind them, with everyone who joined since.

    Who joined in an earlier call of :meth:`apply` counts in the next one, because an outsider reads all of them
    together. :mod:`shoal.tables.model_file` keeps a model in a sealed file.

    Does not protect against someone who compares the two releases and knows who is new: a new row hides among the
    people who were there before.

    >>> import shoal
    >>> release = shoal.anonymize(pl.DataFrame({"age": [20, 29, 50, 58]}), quasi=["age"], k=2, method="mondrian")
    >>> release.model.apply(pl.DataFrame({"age": [25]}))[0].rows()
    [('[20, 29]',)]
    """

    schema: Schema
    cells: pl.DataFrame  # the published texts, a row per group
    cost: NDArray[np.float64]  # what each group loses: the tightest that covers a row is its group
    promises: Sequence[Promise]
    rows: pl.DataFrame  # of everyone released: group, sensitive values, fingerprint of the person
    types: Mapping[str, str] = field(default_factory=dict)  # of the columns, as whoever reads new rows must read them
    key: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)

    @classmethod
    def of(
        cls,
        schema: Schema,
        table: Table,
        labels: NDArray[np.int32],
        boxes: Boxes,
        promises: Sequence[Promise],
        people: pl.Series | None = None,
        beside: pl.DataFrame | None = None,
    ) -> Model:
        """The model of a release; ``people`` says whose the rows of the input were, ``beside`` what else was shown."""
        cells = pl.DataFrame(
            [levels.text(*boxes.column(j)).alias(table.names[j]) for j, levels in enumerate(table.levels)]
        )
        cost = np.zeros(len(boxes.low))
        for j, levels in enumerate(table.levels):
            cost += levels.ncp(*boxes.column(j)) * table.weights[j]
        kept = np.flatnonzero(labels >= 0)
        about = [taken(s.values.gather(s.codes[kept])).alias(name) for name, s in table.sensitive.items()]
        rows = pl.DataFrame([pl.Series(GROUP, labels[kept]), *about])
        kinds = {name: _kind(levels.values.dtype) for name, levels in zip(table.names, table.levels, strict=True)}
        if beside is not None:
            kinds |= {name: _kind(dtype) for name, dtype in beside.schema.items() if name not in kinds}
        types = {name: kind for name, kind in kinds.items() if kind}
        model = cls(schema, cells, cost, tuple(promises), rows, types)
        if people is not None and table.people is not None:
            model.rows = model.rows.with_columns(model._prints(people.gather(table.rows[kept])))
        return model

    def apply(self, data: Any) -> tuple[Any, dict[str, int]]:
        """New rows as the release would show them, in the kind of frame that came, and why the others are withheld.

        A row is released if a published cell of every column covers it (the tightest group, if several do) and the
        group still keeps every promise with its new members, those of earlier calls among them; a group that would
        break takes none of these rows. Where groups are compared with all released rows (t-closeness, beta-likeness),
        newcomers move the whole: there a group takes as many as it can, and those leave whose values are too many.
        Costs O(rows x groups).
        """
        if beside := those_about(self.promises, "register"):
            raise UsageError(
                f"{beside[0].use} is about a register, and who is new in it is not known",
                where="model",
                hint="release all rows again",
            )
        frame, back = from_any(data)
        require(frame, [*self.cells.columns, *self.schema.sensitive, *self.schema.of("subject")], "new rows")
        self._hold_to_types(frame)
        joined = self._covering(frame)
        uncovered = int((joined < 0).sum())
        arrived = self._arrived(frame)
        joined = self._within(arrived, joined)
        withheld = {
            "no published group covers it": uncovered,
            "its group would break": int((joined < 0).sum()) - uncovered,
        }
        kept = np.flatnonzero(joined >= 0)
        if len(kept):
            self.rows = self._together(arrived, joined, kept)
        columns = []
        for name in frame.columns:
            if name in self.cells.columns:
                columns.append(self.cells[name].gather(joined[kept]).alias(name))
            elif name in self.schema.columns and self.schema[name].role in ("sensitive", "plain", "time"):
                columns.append(taken(frame[name], kept))
        shown = pl.DataFrame(columns)
        untouched = [name for name in shown.columns if name not in self.cells.columns]
        return back(shown, kept, untouched), {reason: n for reason, n in withheld.items() if n}

    def released(self) -> tuple[pl.DataFrame, pl.Series | None]:
        """Everything that was released so far as it reads, plain columns left out, and whose rows they are."""
        whole = pl.concat([self.cells[self.rows[GROUP]], self.rows.drop(GROUP, PERSON, strict=False)], how="horizontal")
        return whole, self.rows[PERSON] if PERSON in self.rows.columns else None

    def _hold_to_types(self, frame: pl.DataFrame) -> None:
        """A column that was shown as numbers takes no texts: what nobody looked at would leave in clear."""
        for name, kind in self.types.items():
            if name not in frame.columns or name in self.cells.columns:  # a cell covers values of its own kind only
                continue
            found = frame.schema[name]
            if found != pl.Null and _kind(found) != kind and not (kind == "float" and found.is_integer()):
                raise InputError(
                    f"column {name!r} had values of the type {kind} in the release, and has others here",
                    where="new rows",
                    hint="give rows of the same kind, or release all rows again",
                )

    def _covering(self, frame: pl.DataFrame) -> NDArray[np.int64]:
        """The group with the least loss whose cells cover each row, or -1."""
        fits, value, cell = [], [], []
        for name in self.cells.columns:
            codes, distinct = factorize(frame[name])
            texts, which = np.unique(self.cells[name].fill_null("\0").to_numpy(), return_inverse=True)
            shown = [None if text == "\0" else str(text) for text in texts]
            fits.append(covers(distinct, self.schema[name], shown, f"column {name!r}"))
            value.append(codes)
            cell.append(which)
        out = np.full(frame.height, -1, np.int64)
        for group in np.argsort(self.cost, kind="stable"):
            free = np.flatnonzero(out < 0)
            if not len(free):
                break
            for j, fit in enumerate(fits):
                free = free[fit[value[j][free], cell[j][group]]]
            out[free] = group
        return out

    def _arrived(self, frame: pl.DataFrame) -> pl.DataFrame:
        about = [frame[name].cast(self.rows[name].dtype) for name in self.rows.columns if name in self.schema.sensitive]
        who = [] if PERSON not in self.rows.columns else [self._prints(frame[str(self.schema.subject)])]
        return pl.DataFrame([taken(column) for column in [*about, *who]]) if about or who else pl.DataFrame()

    def _prints(self, people: pl.Series) -> pl.Series:
        """Whose rows they are, without saying who."""
        distinct = people.cast(pl.String).unique()
        made = [
            None if who is None else hashlib.blake2b(who.encode(), key=self.key, digest_size=16).hexdigest()
            for who in distinct.to_list()
        ]
        texts = pl.Series(made, dtype=pl.String)
        return people.cast(pl.String).replace_strict(distinct, texts, return_dtype=pl.String).alias(PERSON)

    def _within(self, arrived: pl.DataFrame, joined: NDArray[np.int64]) -> NDArray[np.int64]:
        """The groups of new rows that may join them, -1 for the others."""
        joined = joined.copy()
        promises = those_about(self.promises, "groups")
        if any(p.follows_people for p in promises):
            raise UsageError(
                "later rows would change what the rows of their people tell together",
                where="model",
                hint="release the whole table anew",
            )
        relative = [p for p in promises if p.compares_with_all]
        while (joined >= 0).any():
            groups = self._groups(arrived, joined)
            broken = np.zeros(groups.count, np.bool_)
            for promise in promises:
                if not promise.compares_with_all:
                    broken |= ~promise.measure(groups)[1]
            new = np.flatnonzero(joined >= 0)
            guilty = new[broken[joined[new]]]
            if len(guilty):
                joined[guilty] = -1
                continue
            leave = self._surplus(arrived, joined, groups, relative)
            if not len(leave):
                return joined
            joined[leave] = -1
        return joined

    def _surplus(
        self, arrived: pl.DataFrame, joined: NDArray[np.int64], groups: Groups, promises: Sequence[Promise]
    ) -> NDArray[np.int64]:
        """New rows that must leave before groups are like the whole again: a quarter of what is too much, each time."""
        new = np.flatnonzero(joined >= 0)
        leave: list[NDArray[np.int64]] = []
        for promise in promises:
            broken = ~promise.measure(groups)[1]
            if not broken.any():
                continue
            assert promise.sensitive is not None
            values = pl.concat([self.rows[promise.sensitive], arrived[promise.sensitive]])
            codes = factorize(values)[0]
            size = int(codes.max()) + 1
            before, after = codes[: self.rows.height], codes[self.rows.height :][new]
            whole = np.bincount(np.append(before, after), minlength=size) / (len(before) + len(after))
            rest = broken.copy()
            for group in np.flatnonzero(broken):
                mine = new[joined[new] == group]
                inside = np.append(before[self.rows[GROUP].to_numpy() == group], codes[self.rows.height :][mine])
                over = np.bincount(inside, minlength=size) - whole * len(inside)
                out = _most_over(codes[self.rows.height :][mine], over)
                rest[group] = not len(out)
                leave.append(mine[out])
            if rest.any() and not any(map(len, leave)):
                # no newcomer is too much in a group: they have moved the whole away from groups they did not join
                old = np.bincount(before, minlength=size) / max(1, len(before))
                out = _most_over(after, (whole - old) * (len(before) + len(after)))
                leave.append(new[out] if len(out) else new)
        return np.unique(np.concatenate(leave)) if leave else np.zeros(0, np.int64)

    def _together(self, arrived: pl.DataFrame, joined: NDArray[np.int64], kept: NDArray[np.int64]) -> pl.DataFrame:
        group = pl.Series(GROUP, joined[kept].astype(np.int32))
        new = [column.gather(kept) for column in arrived.get_columns()]
        return pl.concat([self.rows, pl.DataFrame([group, *new]).select(self.rows.columns)])

    def _groups(self, arrived: pl.DataFrame, joined: NDArray[np.int64]) -> Groups:
        """The released rows, those that joined before and the new ones, by group."""
        new = np.flatnonzero(joined >= 0)
        whole = self._together(arrived, joined, new)
        sensitive = {name: whole[name] for name in self.schema.sensitive}
        people = factorize(whole[PERSON])[0] if PERSON in whole.columns else None
        levels = {
            name: by_value(hierarchy, factorize(values)[1], f"column {name!r} of the new rows")  # may be new to us
            for name, values in sensitive.items()
            if (hierarchy := self.schema[name].hierarchy) is not None
        }
        return Groups(whole[GROUP].to_numpy(), sensitive, people, levels)


def _kind(dtype: pl.DataType) -> str:
    """The type that a policy would declare for such values."""
    if dtype.is_integer() or dtype.is_float():
        return "int" if dtype.is_integer() else "float"
    return {pl.String: "str", pl.Boolean: "bool", pl.Date: "date"}.get(dtype.base_type(), "")


def _most_over(values: NDArray[np.int32], over: NDArray[np.float64]) -> NDArray[np.int64]:
    """Which of these rows leave: of the value that is most over its share, a quarter of the surplus, the last first."""
    if not len(values):
        return np.zeros(0, np.int64)
    present = np.unique(values)
    worst = present[int(np.argmax(over[present]))]
    if over[worst] <= 0:
        return np.zeros(0, np.int64)
    mine = np.flatnonzero(values == worst)
    return mine[-max(1, int(over[worst] / 4)) :]

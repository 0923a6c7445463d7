"""Views on columns: the same masks as polars expressions, the same results as on JSON records."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from shoal.core.cells import SUPPRESSED
from shoal.core.columns import require_columns
from shoal.core.errors import InputError, PolicyError
from shoal.core.keys import KeyRing
from shoal.core.release import cleaned
from shoal.core.schema import Type
from shoal.core.time import EventTime, micros
from shoal.masks.base import Running, dtype_of, type_of
from shoal.masks.window_mask import RunningWindow
from shoal.masks.windows import AnyWindow, Assigner
from shoal.policy.paths import EACH, Node, steps
from shoal.views.derived import has_sources, place_of, with_derived
from shoal.views.fitting import admit, fit, nested_dtype, nested_forms
from shoal.views.role_view import RoleView
from shoal.views.sampling import sampled

FOREVER = 1 << 62


@dataclass(frozen=True)
class Masked:
    """One role's view of a frame.

    ``rows`` says which rows of the frame these are (rows of too small windows are withheld), ``subjects`` whose they
    are: unmasked, for a method to count people by, never to be published.

    >>> from shoal.core.schema import Column, Schema
    >>> frame = pl.DataFrame({"pid": [7], "age": [30]})
    >>> view = RoleView.resolve("ward", Schema({"pid": Column("subject"), "age": Column("quasi")}), ["age"])
    >>> made = FrameGate(view, frame.schema).apply(frame)
    >>> made.data.rows(), made.subjects.to_list()
    ([('*', 30)], ['7'])
    """

    data: pl.DataFrame
    rows: pl.Series
    subjects: pl.Series | None
    withheld: int
    unsampled: int = 0  # rows of people who are not in the sample


class FrameGate:
    """A role's view, compiled for frames with one schema.

    >>> from shoal.core.schema import Column, Schema
    >>> schema = Schema({"pid": Column("subject"), "name": Column("identifier"), "diag": Column("sensitive")})
    >>> frame = pl.DataFrame({"pid": [7], "name": ["F. Ott"], "diag": ["E10"], "iban": ["DE02"]})
    >>> FrameGate(RoleView.resolve("ward", schema, ["diag"]), frame.schema).apply(frame).data.rows(named=True)
    [{'pid': '*', 'name': '*', 'diag': 'E10'}]
    """

    def __init__(self, view: RoleView, frame: pl.Schema, keys: KeyRing | None = None) -> None:
        self.view = view
        made = {c: dtype_of(d.makes) for c, d in view.schema.derived.items() if has_sources(d, frame)}
        derived = view.schema.derived
        self._dtypes = {c: made.get(c) if c in derived else _dtype_at(frame, c) for c in view.schema.columns}
        self._need(frame)
        types: dict[str, Type | None] = {
            c: view.schema[c].type or (type_of(d) if d is not None else None) for c, d in self._dtypes.items()
        }
        self._types = types
        self._is_flat = all(c in frame or c in made or d is None for c, d in self._dtypes.items())
        self._flat = {c for c in view.schema.given if c in frame} | set(made)
        self._keys = keys or KeyRing()
        self._masks = view.start(self._keys, types)
        self._admit()
        # masks were started with the types as they came; what they read is fitted to the declared ones
        self._dtypes = {
            c: None if d is None else nested_dtype(Node(leaf=c), d, view.schema) for c, d in self._dtypes.items()
        }

    def expressions(self) -> list[pl.Expr]:
        """The view as expressions, one per top-level column; window masks come after them."""
        out: list[pl.Expr] = []
        for name, node in self._top().items():
            out.append(self._expressed(node, pl.col(name)).alias(name))
        return out

    def apply(self, frame: pl.DataFrame, windows: Sequence[tuple[int, int]] | None = None) -> Masked:
        """The view of a frame; if it is windows of a stream one after the other, ``windows`` are (number, rows)."""
        if self.view.sample is None:
            return self._applied(frame, windows)
        # before the masks: a window or a vault must not see people who are not in the sample
        kept = sampled(frame, self.view, self._keys).arg_true()
        made = self._applied(frame[kept], windows)
        rows = kept.cast(pl.Int64)[made.rows].alias("row")
        return Masked(made.data, rows, made.subjects, made.withheld, frame.height - len(kept))

    def _applied(self, frame: pl.DataFrame, windows: Sequence[tuple[int, int]] | None) -> Masked:
        try:
            frame = self.fit(frame)
            data = self._viewed(frame)
        except pl.exceptions.PolarsError as error:
            # the engine quotes values in its errors: say what, not which
            raise InputError(
                f"a column does not hold what it is declared to ({type(error).__name__})",
                where=f"views.{self.view.role}",
                hint="compare `type` in the policy with the data",
            ) from None
        rows = pl.Series("row", np.arange(frame.height, dtype=np.int64))
        subject = self.view.schema.subject
        people = self._people(frame, subject) if subject and self._has(subject) else None
        # a vault must hold its tokens before anybody reads one
        self._settle()
        if not self.view.windows:
            return Masked(data, rows, people.cast(pl.String) if people is not None else None, 0)
        if windows is not None:
            kept, data = self._stretches(data, people, windows)
        else:
            kept, data = self._windows(frame, data, people)
        subjects = people[kept].cast(pl.String) if people is not None else None
        return Masked(cleaned(data[kept]), rows[kept], subjects, frame.height - len(kept))

    def _viewed(self, frame: pl.DataFrame) -> pl.DataFrame:
        """The columns that the role sees.

        To plan an expression costs more than to mask a few thousand values, so columns that need none have none.
        """
        top = self._top()
        made = {name: found for name, node in top.items() if (found := self._column(node, frame)) is not None}
        others = [self._expressed(n, pl.col(name)).alias(name) for name, n in top.items() if name not in made]
        # beside the frame: a select of constants alone would forget how many rows there are
        beside = frame.lazy().with_columns(others).collect() if others else frame
        return pl.DataFrame([made[name] if name in made else beside[name] for name in top])

    def _column(self, node: Node, frame: pl.DataFrame) -> pl.Series | None:
        """What a role sees of a column, where that takes no expression."""
        name = node.leaf
        if name is None or name not in self._flat or name not in frame:
            return None
        if self.view.is_hidden(node):
            text = pl.Series(name, [None if self.view.hidden == "null" else SUPPRESSED], dtype=pl.String)
            return text.new_from_index(0, frame.height)
        mask = self._masks.get(name)
        if mask is None or isinstance(mask, RunningWindow):
            return frame[name]
        if type(mask).expression is not Running.expression or not self._flat.issuperset(mask.by):
            return None
        return mask.many(frame[name], *(frame[other] for other in mask.by)).alias(name)

    def _people(self, frame: pl.DataFrame, subject: str) -> pl.Series:
        # a column that is there costs less than an expression about it
        return frame[subject] if subject in self._flat else frame.select(self._source(subject))[subject]

    def _need(self, frame: pl.Schema) -> None:
        seen = {*self.view.shown, *self.view.masks}
        derived = self.view.schema.derived
        needed = {*seen, *(source for c, d in derived.items() if c in seen for source in d.sources)} - set(derived)
        lacking = [c for c in self.view.schema.columns if self._dtypes[c] is None and c in needed]
        require_columns(lacking, frame, f"views.{self.view.role}", error=PolicyError)

    def _has(self, column: str) -> bool:
        return self._dtypes[column] is not None

    def _top(self) -> dict[str, Node]:
        """The columns of the frame the view publishes; in a flat frame a column may really be called ``a.b``."""
        if self._is_flat:
            hides = self.view.hides if self.view.hidden == "drop" else ()
            return {c: Node(leaf=c) for c in self.view.schema.columns if c not in hides}
        return self.view.node().fields

    def notes(self, frame: pl.DataFrame) -> list[str]:
        """What masks could not do as they were asked: counts by column, never values."""
        fitted, out = self.fit(frame), []
        for column, mask in self._masks.items():
            if EACH not in column:  # items of lists are masked one by one, and nothing is known of a column of them
                read = [fitted.select(self._source(name)).to_series() for name in (column, *mask.by)]
                out += [f"{column}: {words}" for words in mask.notes(*read)]
        return out

    def fit(self, frame: pl.DataFrame, *, null_rows: bool = False) -> pl.DataFrame:
        """Declared columns in their declared types. A value that does not fit is an error, which says where but not
        what; or, for streams, a reason to make its whole row null, as a line that cannot be read.
        """
        fitted: list[pl.Series] = []
        unfit: pl.Series | None = None
        derived = self.view.schema.derived
        for column in self._needed & self._flat - set(derived):
            declared = self.view.schema[column]
            made = fit(frame[column], declared.type, declared.format)
            if made is frame[column] or made.dtype == frame[column].dtype:
                continue  # it was of its type, so nothing is lost
            lost = made.is_null() & frame[column].is_not_null()
            if lost.any() and not null_rows:
                raise self._unfit(column, lost)
            unfit = lost if unfit is None else unfit | lost
            fitted.append(made)
        for name, node in self.view.node().fields.items():
            if node.leaf is None and name in frame.columns:
                values = nested_forms(frame[name], node, self.view.schema)
                lost = values.is_null() & frame[name].is_not_null()
                if lost.any() and not null_rows:
                    raise self._unfit(name, lost)
                unfit = lost if unfit is None else unfit | lost
                wanted = nested_dtype(node, values.dtype, self.view.schema)
                if wanted != frame[name].dtype:
                    fitted.append(values.cast(wanted))
        out = frame.with_columns(fitted) if fitted else frame
        if derived:
            out = with_derived(out, self.view.schema, self._needed & set(derived))
        # without `otherwise` every cell of such a row is null: no part of it leaves
        return out if unfit is None or not unfit.any() else out.with_columns(pl.when(~unfit).then(pl.all()))

    def _unfit(self, column: str, lost: pl.Series) -> InputError:
        kind = f"type {self.view.schema[column].type}" if column in self.view.schema.columns else "their declared form"
        return InputError(
            f"{int(lost.sum()):,} values are not of {kind}; the first is in row {lost.arg_max()}",
            where=f"columns.{column}",
            hint="correct the data or the declared type",
        )

    @property
    def _needed(self) -> set[str]:
        """The columns the role sees, or that masks, windows and methods read."""
        # a column that nobody sees or reads may hold anything: it is not held to its type
        reads = {name for mask in self._masks.values() for name in mask.by}
        named = {*self.view.shown, *self.view.masks, *reads, *self.view.schema.of("subject", "time")}
        return named | {s for c, d in self.view.schema.derived.items() if c in named for s in d.sources}

    def _admit(self) -> None:
        for column in self._needed:
            dtype = self._dtypes[column]
            if dtype is not None:
                declared = self.view.schema[column]
                admit(column, declared.type, dtype, declared.format)

    def _source(self, column: str) -> pl.Expr:
        return place_of(column, self._flat)

    def _expressed(self, node: Node, at: pl.Expr) -> pl.Expr:
        if self.view.is_hidden(node):
            return pl.lit(None if self.view.hidden == "null" else SUPPRESSED, dtype=pl.String())
        if node.leaf is not None:
            return self._leaf(node.leaf, at)
        if node.element is not None:
            return self._list(node, at)
        fields = [self._expressed(below, at.struct.field(name)).alias(name) for name, below in node.fields.items()]
        # an object that is not there stays so: one full of nulls would say that there is one
        return pl.when(at.is_not_null()).then(pl.struct(fields))

    def _leaf(self, column: str, at: pl.Expr) -> pl.Expr:
        mask = self._masks.get(column)
        if mask is None or isinstance(mask, RunningWindow):  # a window is masked when all of its rows are there
            return at
        return mask.expression(at, *(self._source(name) for name in mask.by))

    def _list(self, node: Node, at: pl.Expr) -> pl.Expr:
        """Inside lists expressions cannot see other columns, so items are masked one by one."""
        by = list(dict.fromkeys(b for c in node.leaves() if c in self._masks for b in self._masks[c].by))
        convert = self._convert(node, by)
        dtype = self._made(node)

        def apply(columns: Sequence[pl.Series]) -> pl.Series:
            rows = zip(*(c.to_list() for c in columns), strict=True)
            return pl.Series(columns[0].name, [convert(row[0], row[1:]) for row in rows], dtype=dtype)

        return pl.map_batches([at, *(self._source(b) for b in by)], apply, return_dtype=dtype)

    def _convert(self, node: Node, by: list[str]) -> Callable[[Any, tuple[Any, ...]], Any]:
        if self.view.is_hidden(node):
            hidden = None if self.view.hidden == "null" else SUPPRESSED
            return lambda value, others: hidden
        if node.leaf is not None:
            mask = self._masks.get(node.leaf)
            return _masked(mask, [by.index(b) for b in mask.by]) if mask else lambda value, others: value
        if node.element is not None:
            inner = self._convert(node.element, by)
            return lambda value, others: None if value is None else [inner(v, others) for v in value]
        parts = {name: self._convert(below, by) for name, below in node.fields.items()}
        return lambda value, others: (
            None if value is None else {name: part(value.get(name), others) for name, part in parts.items()}
        )

    def _made(self, node: Node) -> pl.DataType:
        if self.view.is_hidden(node):
            return pl.String()
        if node.leaf is not None:
            mask, dtype = self._masks.get(node.leaf), self._dtypes[node.leaf]
            return dtype_of(mask.type) if mask else dtype or pl.String()
        if node.element is not None:
            return pl.List(self._made(node.element))
        return pl.Struct({name: self._made(below) for name, below in node.fields.items()})

    def _stretches(
        self, data: pl.DataFrame, people: pl.Series | None, windows: Sequence[tuple[int, int]]
    ) -> tuple[pl.Series, pl.DataFrame]:
        """Window masks over windows that stand one after the other."""
        keep = [True] * len(windows)
        for column in self.view.windows:
            running, values = self._running(column), data[column]
            dtype, made, place = _dtype_made(running, values.dtype), [], 0
            for count, rows, out in running.apply_all(values, people, windows):
                if out is None:  # too few people in it: its rows are withheld, not shown as null
                    keep[place : place + count] = [False] * count
                    out = pl.repeat(None, rows, dtype=dtype, eager=True)
                made.append(out if out.dtype == dtype else out.cast(dtype))
                place += count
            data = data.with_columns(pl.concat(made).alias(column) if made else values.cast(dtype))
        kept = [k for k, (_, size) in zip(keep, windows, strict=True) for _ in range(size)]
        return pl.Series("row", kept, dtype=pl.Boolean).arg_true(), data

    def _running(self, column: str) -> RunningWindow:
        running = self._masks[column]
        assert isinstance(running, RunningWindow)
        return running

    def _windows(
        self, frame: pl.DataFrame, data: pl.DataFrame, people: pl.Series | None
    ) -> tuple[pl.Series, pl.DataFrame]:
        keep = pl.Series("row", [True] * frame.height, dtype=pl.Boolean)
        for column, spec in self.view.windows.items():
            running, values = self._running(column), data[column]
            made = pl.Series(column, [None] * len(values), dtype=_dtype_made(running, values.dtype))
            for number, (rows, context) in enumerate(self._cut(frame, spec.window)):
                out = running.apply(values[context], people[context] if people is not None else None, number)
                if out is None:
                    keep = keep.scatter(rows, False)
                else:
                    # windows may overlap: each row is answered by its own, with the others as its context
                    place = {row: at for at, row in enumerate(context)}
                    made = made.scatter(rows, out[[place[row] for row in rows]])
            data = data.with_columns(made.alias(column))
        return keep.arg_true(), data

    def _cut(self, frame: pl.DataFrame, window: AnyWindow | None) -> list[tuple[list[int], list[int]]]:
        if window is None:
            return [(list(range(frame.height)), list(range(frame.height)))] if frame.height else []
        # a file may be in any order: nothing in it is late
        assigner: Assigner[int] = Assigner(window, late=FOREVER)
        for row, time in enumerate(self.times(frame)):
            assigner.push(time, row)
        return [([e.item for e in w.events], [e.item for e in w.context]) for w in assigner.flush()]

    def times(self, frame: pl.DataFrame) -> list[int]:
        """Event time in microseconds; without a time column, the number of the row. What is no time comes first."""
        time = EventTime.of(self.view.schema)
        if time.name is None:
            return list(range(frame.height))
        read = micros(frame.select(self._source(time.name))[time.name], time.unit)
        return [at if at >= 0 else -FOREVER for at in read.tolist()]

    def _settle(self) -> None:
        for mask in self._masks.values():
            mask.settle()


def _masked(mask: Running, places: list[int]) -> Callable[[Any, tuple[Any, ...]], Any]:
    return lambda value, others: (
        None if value is None and not mask.nulls else mask.one(value, *(others[p] for p in places))
    )


def _dtype_made(running: RunningWindow, dtype: pl.DataType) -> pl.DataType:
    """The type of what a window mask makes: a column whose kind stays the same keeps its exact type."""
    return dtype if running.type is None or running.type == type_of(dtype) else dtype_of(running.type)


def _dtype_at(frame: pl.Schema, column: str) -> pl.DataType | None:
    """The type of a column's values, nested ones too; nothing if the frame lacks it."""
    if column in frame:
        return frame[column]
    at: Any = None
    for number, step in enumerate(steps(column)):
        if number == 0:
            at = frame.get(step)
        elif step == EACH:
            at = at.inner if isinstance(at, pl.List) else None
        else:
            fields = {f.name: f.dtype for f in at.fields} if isinstance(at, pl.Struct) else {}
            at = fields.get(step)
        if at is None:
            return None
    return at  # type: ignore[no-any-return]

"""A table as integers: what every table method sees.

Rows are sorted by their codes before a method sees them. So the same rows in another order give the same release,
and equal rows stand together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.core.comparable import comparable
from shoal.core.domain import Domain
from shoal.core.errors import InputError, UsageError
from shoal.core.frames import require
from shoal.core.hierarchy import HIERARCHIES
from shoal.core.hierarchy.base import Hierarchy
from shoal.core.levels import FEW_ROWS, Codes, Levels
from shoal.core.scale import scale_for
from shoal.core.schema import Column, Schema

if TYPE_CHECKING:
    from shoal.kernels.shared.boxes import Shape


@dataclass(frozen=True)
class Sensitive:
    """A sensitive column as codes; codes follow the order of the values, a missing value is the last.

    >>> codes, values = factorize(pl.Series(["flu", "cold"]))
    >>> Sensitive(codes, values).codes.tolist()
    [1, 0]
    """

    codes: Codes
    values: pl.Series
    levels: Levels | None = None  # if the column has a hierarchy


@dataclass(frozen=True)
class Register:
    """People of a register as codes of the same levels: different entries, and how many people have each.

    >>> int(Register(np.array([[0], [2]], np.int32), np.array([5, 1])).people.sum())
    6
    """

    matrix: Codes
    people: NDArray[np.int64]


@dataclass(frozen=True)
class Table:
    """The quasi columns as a matrix of codes, whose rows they are, and the sensitive columns beside.

    ``rows[i]`` is the position of row i in the input; rows that cannot be released (a missing or an unknown value)
    are not in the matrix but counted in ``withheld``.

    >>> table = code(pl.DataFrame({"age": [20, 21, 20]}), Schema({"age": Column("quasi")}))
    >>> table.size, table.crowd, table.names
    (3, 3, ('age',))
    """

    names: tuple[str, ...]
    matrix: Codes
    levels: tuple[Levels, ...]
    weights: NDArray[np.float64]
    rows: NDArray[np.int64]
    people: Codes | None = None
    sensitive: Mapping[str, Sensitive] = field(default_factory=dict)
    withheld: Mapping[str, int] = field(default_factory=dict)
    known: Mapping[str, tuple[int, int]] = field(default_factory=dict)  # rows whose value its hierarchy knows, and all
    register: Register | None = None
    whole: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)  # of a part: see Domain.shares
    limits: Mapping[int, int] = field(default_factory=dict)  # the highest level that a column may be published at
    parts: int = 1  # this table is one of so many that are released by themselves

    @property
    def size(self) -> int:
        """Number of rows a method may group."""
        return int(self.matrix.shape[0])

    @property
    def crowd(self) -> int:
        """Number of people among them."""
        return self.size if self.people is None else len(np.unique(self.people))

    def shape(self) -> Shape:
        """The levels as flat arrays for kernels."""
        from shoal.kernels.shared.boxes import Shape

        m = len(self.levels)
        depth = np.array([x.depth for x in self.levels], np.int64)
        size = np.array([x.size for x in self.levels], np.int64)
        cost_offset = np.zeros((m, int(depth.max(initial=1))), np.int64)
        costs: list[NDArray[np.float64]] = []
        filled = 0
        for j, column in enumerate(self.levels):
            for level in range(column.depth):
                # a hull needs no node but the root, where a missing value meets a number
                skip = column.numbers is not None and level < column.depth - 1
                part = np.zeros(0) if skip else column.costs(level)
                cost_offset[j, level] = filled
                costs.append(part)
                filled += len(part)
        lines = [(np.zeros(0), x.width) if x.numbers is None else x.line for x in self.levels]
        return Shape(
            _starts(size * depth),
            depth,
            size,
            np.concatenate([np.zeros(0, np.int32), *[x.codes.ravel() for x in self.levels]]),
            cost_offset,
            np.concatenate([np.zeros(0), *costs]),
            np.array([x.numbers is not None for x in self.levels], np.bool_),
            _starts(np.array([len(places) for places, _ in lines], np.int64)),
            np.concatenate([np.zeros(0), *[places for places, _ in lines]]),
            np.array([width for _, width in lines], np.float64),
            np.array([x.missing for x in self.levels], np.int64),
            self.weights,
        )


def code(frame: pl.DataFrame, schema: Schema, *, where: str = "table", domain: Domain | None = None) -> Table:
    """Code the quasi and sensitive columns of a frame. Costs O(rows x columns) and one sort.

    Where the frame is a part of a table, ``domain`` has the values of the whole: codes then mean the same in all parts.

    >>> table = code(pl.DataFrame({"age": [30, 20, 20]}), Schema({"age": Column("quasi")}))
    >>> table.matrix.tolist(), table.rows.tolist()
    ([[0], [0], [1]], [1, 2, 0])
    """
    names = tuple(schema.quasi)
    require(frame, [*names, *schema.sensitive, *schema.of("subject")], where)
    matrix, levels, withheld, reasons, counts = _matrix(frame, schema, domain)
    sensitive = {name: _sensitive(frame[name], schema[name], f"column {name!r}", domain) for name in schema.sensitive}
    people = None if schema.subject is None else factorize(frame[schema.subject])[0]
    more = [s.codes for s in sensitive.values()] + ([] if people is None else [people])
    order = _order(matrix, more, ~withheld, frame.select(c for c in schema.of("plain", "time") if c in frame.columns))
    return Table(
        names,
        matrix[order],
        levels,
        np.array([schema[name].weight for name in names], np.float64),
        order,
        None if people is None else people[order],
        {name: Sensitive(s.codes[order], s.values, s.levels) for name, s in sensitive.items()},
        reasons,
        counts,
        whole={} if domain is None else domain.shares,
        limits=_limits(schema, levels),
    )


def _limits(schema: Schema, levels: tuple[Levels, ...]) -> dict[int, int]:
    """The limits of columns, by their places; the root is none."""
    out = {}
    for j, (name, compiled) in enumerate(zip(schema.quasi, levels, strict=True)):
        limit = schema[name].at_most
        if limit is not None and compiled.size and limit >= compiled.depth:
            raise UsageError(
                f"`at_most: {limit}` is above the highest level, {compiled.depth - 1}",
                where=f"column {name!r}",
                hint="0 is the value itself, the highest level is `*`",
            )
        if limit is not None and limit < compiled.depth - 1:
            out[j] = limit
    return out


def hierarchy_for(series: pl.Series, column: Column) -> Hierarchy:
    """The declared hierarchy, or the natural one: intervals for numbers, periods for dates, else all or nothing.

    >>> hierarchy_for(pl.Series([20, 30]), Column("quasi")).use
    'range'
    """
    if column.hierarchy is not None:
        return column.hierarchy
    if series.dtype.is_numeric():
        name = "range"
    elif series.dtype in (pl.Date, pl.Datetime):
        name = "calendar"
    else:
        name = "suppress"
    return HIERARCHIES.decode(name)


def factorize(series: pl.Series) -> tuple[Codes, pl.Series]:
    """Dense codes in the order of the values, a missing value last; and the values.

    >>> codes, values = factorize(pl.Series(["b", "a", None, "b"]))
    >>> codes.tolist(), values.to_list()
    ([1, 0, 2, 1], ['a', 'b', None])
    """
    values = series.unique().sort(nulls_last=True)
    return _positions(series, values, np.arange(len(values), dtype=np.int32)), values


def coded(frame: pl.DataFrame, schema: Schema, domain: Domain) -> tuple[Codes, NDArray[np.bool_], dict[str, int]]:
    """A part of a table: its codes, which rows cannot be released, and why. O(rows x columns).

    >>> domain = Domain({"age": pl.Series([20, 30])}, {"age": np.array([1, 1])})
    >>> coded(pl.DataFrame({"age": [30]}), Schema({"age": Column("quasi")}), domain)[0].tolist()
    [[1]]
    """
    matrix, _, withheld, reasons, _ = _matrix(frame, schema, domain)
    return matrix, withheld, reasons


def _matrix(
    frame: pl.DataFrame, schema: Schema, domain: Domain | None
) -> tuple[Codes, tuple[Levels, ...], NDArray[np.bool_], dict[str, int], dict[str, tuple[int, int]]]:
    """Codes of the quasi columns, their levels, which rows are withheld and why, and what hierarchies know."""
    names = schema.quasi
    withheld = np.zeros(frame.height, np.bool_)
    reasons: dict[str, int] = {}
    counts: dict[str, tuple[int, int]] = {}
    matrix = np.empty((frame.height, len(names)), np.int32)
    levels: list[Levels] = []
    for j, name in enumerate(names):
        column = schema[name]
        compiled, codes = _compile(frame[name], column, f"column {name!r}", domain)
        levels.append(compiled)
        matrix[:, j] = codes
        missing = codes == compiled.missing if compiled.missing >= 0 else np.zeros(0, np.bool_)
        if column.missing == "suppress" and missing.any():
            _note(reasons, f"missing {name}", missing & ~withheld)
            withheld |= missing
        unknown = codes < 0
        _note(reasons, f"unknown {name}", unknown & ~withheld)
        withheld |= unknown
        counts[name] = (frame.height - int(unknown.sum()), frame.height)
    return matrix, tuple(levels), withheld, reasons, counts


def _compile(series: pl.Series, column: Column, where: str, domain: Domain | None) -> tuple[Levels, Codes]:
    if series.dtype.is_nested() or series.dtype == pl.Object:
        raise InputError(f"expected plain values, found {series.dtype}", where=where, hint="unnest the column first")
    if series.dtype in (pl.Binary, pl.Duration):
        raise InputError(f"expected text, numbers or dates, found {series.dtype}", where=where, hint="convert it first")
    name, series = series.name, comparable(series)
    if domain is None:
        distinct = series.unique().sort(nulls_last=True)
        levels, codes = hierarchy_for(series, column).compile(distinct, where=where)
        codes = _positions(series, distinct, codes)
        return _on_scale(levels, codes, None, column, where), codes
    distinct = domain.values[name]
    if name not in domain.compiled:
        levels, codes = hierarchy_for(series, column).compile(distinct, where=where)
        domain.compiled[name] = _on_scale(levels, codes, domain.rows[name], column, where), codes
    levels, codes = domain.compiled[name]
    return levels, codes[_places(series, distinct, where)]


def _on_scale(levels: Levels, codes: Codes, rows: NDArray[np.int64] | None, column: Column, where: str) -> Levels:
    """The levels with the scale on which the loss of their numbers is measured; ``rows`` says how often codes stand."""
    if levels.numbers is None:
        if column.loss in ("rank", "log"):
            raise UsageError(
                f"`loss: {column.loss}` is for numbers that are published as intervals of their own",
                where=where,
                hint="leave it out, or use the hierarchy `range` without `snap`",
            )
        return levels
    known = codes >= 0
    weights = None if rows is None else rows[known].astype(np.float64)
    often = np.bincount(codes[known], weights, minlength=levels.size).astype(np.float64)
    return replace(levels, scale=scale_for(levels.numbers, often, column.loss))


def _in_numpy(series: pl.Series) -> bool:
    """Whether these are numbers that numpy has, too: it has no whole ones of 128 bits."""
    return series.dtype.is_numeric() and not (series.dtype.is_integer() and "128" in str(series.dtype))


def _positions(series: pl.Series, distinct: pl.Series, codes: Codes) -> Codes:
    """``codes`` of the sorted distinct values, spread over the rows."""
    if _in_numpy(series) and not series.null_count():
        return codes[np.searchsorted(distinct.to_numpy(), series.to_numpy())]
    if len(series) <= FEW_ROWS and series.dtype == pl.String:
        known = dict(zip(distinct.to_list(), codes.tolist(), strict=True))
        return np.array([known[text] for text in series.to_list()], np.int32)
    spread = series.replace_strict(distinct, pl.Series(codes), return_dtype=pl.Int32)
    filled = spread.fill_null(int(codes[-1]) if len(codes) and distinct[-1] is None else -1)
    return filled.to_numpy().astype(np.int32, copy=False)  # of no rows, polars forgets the type


def _places(series: pl.Series, distinct: pl.Series, where: str) -> Codes:
    """Where the values of a part stand among those of the whole table; all of them must."""
    if _in_numpy(series):
        known = distinct.drop_nulls().to_numpy()
        plain = series.fill_null(known[0]) if len(known) and series.null_count() else series
        at = (
            np.searchsorted(known, plain.to_numpy()).astype(np.int32) if len(known) else np.zeros(len(series), np.int32)
        )
        there = series.is_null().to_numpy()
        lacking = (at >= len(known)) & ~there
        if len(known):
            lacking |= (known[np.minimum(at, len(known) - 1)] != plain.to_numpy()) & ~there
        at[there] = len(distinct) - 1
    else:
        places = pl.int_range(len(distinct), dtype=pl.Int32, eager=True)
        found = series.replace_strict(distinct, places, return_dtype=pl.Int32, default=-1)
        at = found.to_numpy().astype(np.int32, copy=False) if not found.null_count() else found.fill_null(-1).to_numpy()
        lacking = at < 0
    if lacking.any():
        raise InputError(
            f"{int(lacking.sum()):,} values were not there when the table was counted",
            where=where,
            hint="the table changed while it was read: nothing was released; try again when nobody writes to it",
        )
    return at


def _sensitive(series: pl.Series, column: Column, where: str, domain: Domain | None) -> Sensitive:
    name, series = series.name, comparable(series)
    if domain is None:
        codes, values = factorize(series)
    else:
        values = domain.values[name]
        codes = _places(series, values, where)
    return Sensitive(codes, values, None if column.hierarchy is None else by_value(column.hierarchy, values, where))


def by_value(hierarchy: Hierarchy, values: pl.Series, where: str) -> Levels:
    """The levels of a sensitive column, a row per distinct value as it stands.

    A hierarchy may cut its values already at level 0; what is published, and so what is counted, is the value.

    >>> from shoal.core.hierarchy.prefix import Prefix
    >>> by_value(Prefix(length=2), pl.Series(["ab", "ac"]), "diag").depth
    3
    """
    levels, codes = hierarchy.compile(values, where=where)
    if (codes < 0).any():
        raise UsageError(
            f"{int((codes < 0).sum())} distinct values are unknown to the hierarchy",
            where=where,
            hint="add them to the tree, or name a `default` node",
        )
    return replace(levels, values=values, codes=levels.codes[codes])


def _order(matrix: Codes, more: Sequence[Codes], keep: NDArray[np.bool_], rest: pl.DataFrame) -> NDArray[np.int64]:
    """Positions of the kept rows, sorted by all codes: packed into as few integers as they need."""
    keys: list[NDArray[np.int64]] = []
    room = 0
    for column in [*matrix.T, *more]:
        span = int(column.max(initial=0)) + 2
        if not keys or room * span >= 2**62:
            keys.append(column.astype(np.int64))
            room = span
        else:
            keys[-1] *= span
            keys[-1] += column
            room *= span
    if not keys:
        return np.flatnonzero(keep)
    order = np.argsort(keys[0], kind="stable") if len(keys) == 1 else np.lexsort(keys[::-1])
    order = order[keep[order]] if not keep.all() else order
    return _untie(order, keys, rest) if rest.width else order


def _untie(order: NDArray[np.int64], keys: Sequence[NDArray[np.int64]], rest: pl.DataFrame) -> NDArray[np.int64]:
    """Rows with equal codes, ordered by what else is released: a method may part them, and the input's order must not
    decide which of them goes where."""
    new = np.zeros(len(order), np.bool_)
    for key in keys:
        ordered = key[order]
        new[1:] |= ordered[1:] != ordered[:-1]
    tied = np.flatnonzero(~new | ~np.append(new[1:], True))
    names = [c for c in rest.columns if not rest[c].dtype.is_nested() and rest[c].dtype != pl.Object]
    if not len(tied) or not names:
        return order
    runs = rest.select(names)[order[tied]].with_columns(pl.Series("\0run", np.cumsum(new)[tied]))
    within = runs.select(pl.arg_sort_by("\0run", *names, nulls_last=True)).to_series().to_numpy()
    out = order.copy()
    out[tied] = order[tied][within]
    return out


def _starts(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)[:-1]]) if len(lengths) else lengths


def _note(reasons: dict[str, int], reason: str, rows: NDArray[np.bool_]) -> None:
    if rows.any():
        reasons[reason] = int(rows.sum())

"""Derived columns of a frame: made after their sources are read as declared, and before anything else sees the row."""

from __future__ import annotations

from collections.abc import Collection

import polars as pl

from shoal.core.derive import Derive
from shoal.core.errors import PolicyError
from shoal.core.schema import Schema
from shoal.masks.base import dtype_of
from shoal.policy.paths import steps
from shoal.views.fitting import fit
from shoal.views.role_view import RoleView


def place_of(column: str, flat: Collection[str]) -> pl.Expr:
    """Where the values of a column stand: in a column of this very name, or inside an object.

    >>> pl.DataFrame({"a": [{"b": 7}]}).select(place_of("a.b", ["a"])).to_series().to_list()
    [7]
    """
    # a file may have a column that is really called `a.b`
    if column in flat:
        return pl.col(column)
    first, *rest = steps(column)
    at = pl.col(first)
    for step in rest:
        at = at.struct.field(step)
    return at.alias(column)


def with_derived(frame: pl.DataFrame, schema: Schema, names: Collection[str] | None = None) -> pl.DataFrame:
    """The frame with its derived columns (all, or those named), if their sources are there.

    >>> from shoal.core.derive import Join
    >>> from shoal.core.schema import Column
    >>> schema = Schema({"a": Column("plain"), "b": Column("plain"), "ab": Column("quasi", derive=Join(("a", "b")))})
    >>> with_derived(pl.DataFrame({"a": ["x", None], "b": [1, 2]}), schema)["ab"].to_list()
    ['x.1', None]
    """
    made: list[pl.Series] = []
    for name, derive in schema.derived.items():
        if (names is None or name in names) and has_sources(derive, frame.schema):
            made.append(_derived(frame, schema, derive).alias(name))
    return frame.with_columns(made) if made else frame


def has_sources(derive: Derive, frame: pl.Schema) -> bool:
    """Whether a frame brings everything a derived column is made from.

    >>> from shoal.core.derive import Join
    >>> has_sources(Join(("a", "b")), pl.DataFrame({"a": [1], "b": [2]}).schema)
    True
    """
    return all(steps(source)[0] in frame or source in frame for source in derive.sources)


def _derived(frame: pl.DataFrame, schema: Schema, derive: Derive) -> pl.Series:
    values = [frame.select(place_of(source, frame.columns)).to_series() for source in derive.sources]
    columns = [schema[source] for source in derive.sources]
    fitted = [fit(v, column.type, column.format) for v, column in zip(values, columns, strict=True)]
    made = derive.many(schema.columns, *fitted)
    return made if len(made) == frame.height else pl.Series([], dtype=dtype_of(derive.makes))


def refuse_sources_in_clear(view: RoleView) -> None:
    """In a view with promises, a derived quasi column says nothing new if what it is made from is shown as it is.

    >>> from shoal.core.schema import Column
    >>> from shoal.core.derive import Join
    >>> schema = Schema({"a": Column("plain"), "b": Column("plain"), "ab": Column("quasi", derive=Join(("a", "b")))})
    >>> refuse_sources_in_clear(RoleView.resolve("ward", schema, ["a", "ab"]))
    Traceback (most recent call last):
    shoal.core.errors.PolicyError: views.ward.show: the column 'a' is shown in clear, and 'ab'...
    """
    for name, derive in view.schema.derived.items():
        seen = view.schema[name].role == "quasi" and (name in view.shown or name in view.masks)
        for source in derive.sources:
            if seen and source in view.shown and view.schema[source].role != "quasi":
                raise PolicyError(
                    f"the column {source!r} is shown in clear, and {name!r}, which is made from it, is generalized",
                    where=f"views.{view.role}.show",
                    hint="mask it, or do not show it",
                )

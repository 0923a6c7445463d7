"""Records of a stream as columns of their declared types, and what is not declared as what it is."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Any

import msgspec
import polars as pl

from shoal.core.errors import UsageError
from shoal.core.schema import Schema
from shoal.masks.base import dtype_of, text_of
from shoal.policy.paths import Node, tree
from shoal.views.types import in_utc


def plain(record: Any) -> Any:
    """A decoded record, or a part of one, as plain values, dates still dates."""
    return msgspec.to_builtins(record, builtin_types=(datetime.date, datetime.datetime))


def told_in_utc(value: Any) -> Any:
    """A record with its moments in UTC. ``OverflowError`` for one that UTC has no year for.

    >>> zone = datetime.timezone(datetime.timedelta(hours=2))
    >>> told_in_utc({"at": datetime.datetime(2024, 5, 1, 2, tzinfo=zone)})
    {'at': datetime.datetime(2024, 5, 1, 0, 0)}
    """
    if isinstance(value, datetime.datetime):
        return in_utc(value)
    if isinstance(value, dict):
        return {name: told_in_utc(part) for name, part in value.items()}
    return [told_in_utc(part) for part in value] if isinstance(value, list) else value


def frame_of(rows: Sequence[dict[str, Any]], schema: Schema) -> pl.DataFrame:
    """Records as columns of their declared types; an undeclared column of mixed values becomes text.

    >>> from shoal.core.schema import Column
    >>> frame_of([{"age": 3}, {"age": None}], Schema({"age": Column("quasi", type="int")})).rows()
    [(3,), (None,)]
    """
    columns: list[pl.Series] = []
    for name, node in tree(schema.given).fields.items():
        columns.append(column_of(name, [row.get(name) for row in rows], node, schema))
    return pl.DataFrame(columns)


def column_of(name: str, values: list[Any], node: Node, schema: Schema) -> pl.Series:
    """One column of :func:`frame_of`."""
    try:
        return pl.Series(name, values, dtype=schema_of(node, schema))
    except (TypeError, pl.exceptions.PolarsError):
        return pl.Series(name, [None if v is None else text_of(v) for v in values], dtype=pl.String)


def schema_of(node: Node, schema: Schema) -> pl.DataType | None:
    """The type of a column by what is declared; the first record alone must not decide which parts there are."""
    if node.leaf is not None:
        kind = schema[node.leaf].type
        return None if kind is None else dtype_of(kind)
    below = {name: schema_of(part, schema) for name, part in node.fields.items()}
    inner = schema_of(node.element, schema) if node.element is not None else None
    if (node.element is not None and inner is None) or any(kind is None for kind in below.values()):
        undeclared = next(leaf for leaf in node.leaves() if schema[leaf].type is None)
        raise UsageError("nested columns of a stream need a type", where=f"columns.{undeclared}", hint="type: str")
    return pl.List(inner) if inner is not None else pl.Struct({n: k for n, k in below.items() if k is not None})


def told(value: Any) -> Any:
    """A part of a record as plain values, its moments in UTC."""
    return told_in_utc(plain(value))

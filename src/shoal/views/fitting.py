"""Columns held to their declared types: the rule of :mod:`shoal.views.types`, for frames."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from shoal.core.errors import InputError
from shoal.core.schema import Schema, Type
from shoal.masks.base import dtype_of, type_of
from shoal.policy.paths import EACH, Node

FROM: Mapping[Type, tuple[Type, ...]] = {  # what a column may be stored as, to be read as the declared type
    "int": ("int", "float", "str"),
    "float": ("float", "int", "str"),
    "str": ("str", "int", "float", "bool", "date", "datetime"),
    "bool": ("bool", "str"),
    "date": ("date", "datetime", "str"),
    "datetime": ("datetime", "date", "str"),
}
INEXACT = ("int", "float")  # numbers with a fraction are no whole numbers, and a cast would cut them


def admit(column: str, kind: Type | None, dtype: pl.DataType) -> None:
    """Refuse a column whose storage cannot hold the declared type, or that holds more than single values."""
    found = type_of(dtype)
    if kind is None:
        fits = found is not None or isinstance(dtype, pl.Time | pl.Duration)
    else:
        fits = dtype == pl.Null() or found in FROM[kind]
        fits = fits and not (EACH in column and (kind, found) == INEXACT)
    if not fits:
        expected = f"values of type {kind}" if kind else "single values"
        raise InputError(
            f"expected {expected}, found {_name(dtype)}",
            where=f"columns.{column}",
            hint="declare the fields inside that may be seen, for example `insurance.company`"
            if dtype.is_nested()
            else "compare `type` in the policy with the data",
        )


def fit(values: pl.Series, kind: Type | None) -> pl.Series:
    """A column as its declared type, null where a value does not fit; categories become plain text.

    The list of categories of a polars ``Categorical`` or ``Enum`` travels with every part of the column, also those
    that only withheld rows have.

    >>> fit(pl.Series(["7", "x"]), "int").to_list(), fit(pl.Series([2.0, 2.5]), "int").to_list()
    ([7, None], [2, None])
    """
    dtype = values.dtype
    if isinstance(dtype, pl.Categorical | pl.Enum):
        return values.cast(pl.String)
    found = type_of(dtype)
    if kind is None or found == kind:
        return values if kind is None or dtype != pl.Null() else values.cast(dtype_of(kind))
    if found == "str" and dtype == pl.String():
        return _from_text(values, kind)
    # null where it does not fit: the caller counts those, and no message of the engine quotes one
    made = values.cast(dtype_of(kind), strict=False)
    # a cast would cut 2.5 to 2 and say nothing
    if (kind, found) == INEXACT:
        exact = pl.DataFrame({"was": values, "is": made}).select(
            pl.when(pl.col("is").cast(pl.Float64) == pl.col("was")).then(pl.col("is")).alias(values.name)
        )
        return exact[values.name]
    return made


def _from_text(values: pl.Series, kind: Type) -> pl.Series:
    if kind in ("date", "datetime"):
        try:
            if kind == "date":
                return values.str.to_date(strict=False)
            made = values.str.to_datetime(strict=False, time_unit="us")
        except pl.exceptions.ComputeError:  # not one of them looks like a date
            return pl.repeat(None, len(values), dtype=dtype_of(kind), eager=True).alias(values.name)
        zone = getattr(made.dtype, "time_zone", None)
        return made if zone is None else made.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
    if kind == "bool":
        lower = values.str.to_lowercase()
        return lower.replace_strict({"true": True, "false": False}, default=None, return_dtype=pl.Boolean)
    return values.cast(dtype_of(kind), strict=False)


def nested_dtype(node: Node, dtype: pl.DataType, schema: Schema) -> pl.DataType:
    """The type of an object or a list with its declared parts in their declared types, others as they are."""
    if node.leaf is not None:
        kind = schema[node.leaf].type
        if isinstance(dtype, pl.Categorical | pl.Enum):
            return pl.String()
        return dtype if kind is None or type_of(dtype) == kind else dtype_of(kind)
    if node.element is not None and isinstance(dtype, pl.List):
        return pl.List(nested_dtype(node.element, dtype.inner, schema))  # type: ignore[arg-type]
    if node.fields and isinstance(dtype, pl.Struct):
        parts = {f.name: f.dtype for f in dtype.fields}
        known = {n: nested_dtype(node.fields[n], d, schema) for n, d in parts.items() if n in node.fields}  # type: ignore[arg-type]
        return pl.Struct({**parts, **known})
    return dtype


def _name(dtype: pl.DataType) -> str:
    """The kind of a stored type, without the names of its fields or its categories: those are data."""
    if isinstance(dtype, pl.Struct):
        return "objects"
    if isinstance(dtype, pl.List | pl.Array):
        return "lists"
    return type_of(dtype) or type(dtype).__name__

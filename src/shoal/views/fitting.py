"""Columns held to their declared types: the rule of :mod:`shoal.views.types`, for frames."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import polars as pl

from shoal.connect.types import Declared, fitted
from shoal.core.errors import InputError
from shoal.core.schema import Column, Schema, Type
from shoal.core.time import PER_SECOND
from shoal.masks.base import dtype_of, type_of
from shoal.policy.paths import EACH, Node
from shoal.views.forms import form_of, read_form

FROM: Mapping[Type, tuple[Type, ...]] = {  # what a column may be stored as, to be read as the declared type
    "int": ("int", "float", "str"),
    "float": ("float", "int", "str"),
    "str": ("str", "int", "float", "bool", "date", "datetime"),
    "bool": ("bool", "str"),
    "date": ("date", "datetime", "str"),
    "datetime": ("datetime", "date", "str"),
}
INEXACT = ("int", "float")  # numbers with a fraction are no whole numbers, and a cast would cut them


def admit(column: str, kind: Type | None, dtype: pl.DataType, form: str | None = None) -> None:
    """Refuse a column whose storage cannot hold the declared type, or that holds more than single values.

    >>> admit("age", "int", pl.List(pl.Int64))
    Traceback (most recent call last):
    shoal.core.errors.InputError: columns.age: expected values of type int, found lists...
    """
    found = type_of(dtype)
    if kind is None:
        fits = found is not None or isinstance(dtype, pl.Time | pl.Duration)
    else:
        fits = dtype == pl.Null() or found in FROM[kind]
        fits = fits or (form in PER_SECOND and found in INEXACT)  # numbers since 1970
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


def fit(values: pl.Series, kind: Type | None, form: str | None = None) -> pl.Series:
    """A column as its declared type, null where a value does not fit; categories become plain text.

    Texts and numbers of a column with a declared ``form`` are read by it, and by nothing else: ``03/04/2020`` is a day
    in March or in April.

    The list of categories of a polars ``Categorical`` or ``Enum`` travels with every part of the column, also those
    that only withheld rows have.

    >>> fit(pl.Series(["7", "x"]), "int").to_list(), fit(pl.Series([2.0, 2.5]), "int").to_list()
    ([7, None], [2, None])
    """
    dtype = values.dtype
    if isinstance(dtype, pl.Categorical | pl.Enum):
        return values.cast(pl.String)
    found = type_of(dtype)
    # what was read already, as from a file, is of its type and has no form any more
    if kind is not None and form is not None and found != kind:
        return fitted(values, Declared(kind, form))
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


def nested_forms(values: pl.Series, node: Node, schema: Schema) -> pl.Series:
    """Objects or lists whose parts with a declared form are read by it; null where one has another form.

    >>> from shoal.core.schema import Column
    >>> from shoal.policy.paths import tree
    >>> schema = Schema({"a.born": Column("quasi", "date", "%d.%m.%Y")})
    >>> nested_forms(pl.Series([{"born": "31.12.2020"}]), tree(["a.born"]).fields["a"], schema).to_list()
    [{'born': datetime.date(2020, 12, 31)}]
    """
    formed = {name: schema[name] for name in node.leaves() if schema[name].format is not None}
    if not formed:
        return values
    only = Schema({name: formed.get(name, Column("plain")) for name in node.leaves()})
    read = _reading(node, {name: form_of(column) for name, column in formed.items()})
    out: list[Any] = []
    for value in values.to_list():
        try:
            out.append(read(value))
        except ValueError:  # this row does not fit; the error would quote its text
            out.append(None)
    return pl.Series(values.name, out, dtype=nested_dtype(node, values.dtype, only))


def _reading(node: Node, forms: Mapping[str, Any]) -> Callable[[Any], Any]:
    if node.leaf is not None:
        form = forms.get(node.leaf)
        return lambda value: value if form is None or value is None else read_form(form, value)
    if node.element is not None:
        item = _reading(node.element, forms)
        return lambda value: None if value is None else [item(each) for each in value]
    fields = {name: _reading(below, forms) for name, below in node.fields.items()}
    return lambda value: None if value is None else {n: fields[n](v) if n in fields else v for n, v in value.items()}


def _name(dtype: pl.DataType) -> str:
    """The kind of a stored type, without the names of its fields or its categories: those are data."""
    if isinstance(dtype, pl.Struct):
        return "objects"
    if isinstance(dtype, pl.List | pl.Array):
        return "lists"
    return type_of(dtype) or type(dtype).__name__

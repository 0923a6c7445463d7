"""Texts as values of a declared type: what does not fit is counted and located, never quoted and never bent to fit."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Mapping
from typing import NamedTuple, get_args

import polars as pl

from shoal.core.errors import InputError, UsageError
from shoal.core.schema import Type
from shoal.core.time import PER_SECOND

Tell = Callable[[str, str], None]  # what is told about a column: its name, and a sentence

TYPES: Mapping[Type, type[pl.DataType] | pl.DataType] = {
    "int": pl.Int64,
    "float": pl.Float64,
    "str": pl.String,
    "bool": pl.Boolean,
    "date": pl.Date,
    "datetime": pl.Datetime("us"),
}
MARKS = ("na", "n/a", "n.a.", "#n/a", "nan", "null", "none", "nil", "unknown", "missing", "?", "-", "--", ".")
TRUE, FALSE = ("true", "t", "yes", "y", "1"), ("false", "f", "no", "n", "0")
COMMA = r"^[+-]?([0-9]{1,3}(\.[0-9]{3})+|[0-9]+)(,[0-9]+)?$"
ISO_DATE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
ISO_TIME = (
    r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}([.,][0-9]{1,6})?)?"
    r"( ?(Z|UTC|[+-][0-9]{2}:?[0-9]{2}))?$"
)

FORM = re.compile(r"(?:[^%]|%[-_0:.#369]*[aAbBcCdDeFfgGhHIjklmMnpPqrRsStTuUvVwWxXyYzZ%+])*")  # of strftime


def quiet(column: str, words: str) -> None:
    """Tell nobody.

    >>> quiet("born", "read as dates")
    """


class Declared(NamedTuple):
    """A type as declared, with the form of its texts: ``date`` and ``%d.%m.%Y``.

    >>> str(Declared("date", "%d.%m.%Y"))
    'date (%d.%m.%Y)'
    """

    type: Type
    format: str | None = None

    def __str__(self) -> str:
        return self.type if self.format is None else f"{self.type} ({self.format})"


def declared(text: str, where: str = "type") -> Declared:
    """A declaration from its text: a type, and after a colon the form its texts have.

    >>> declared("date:%d.%m.%Y"), declared("int")
    (Declared(type='date', format='%d.%m.%Y'), Declared(type='int', format=None))
    """
    name, colon, form = text.partition(":")
    if name not in get_args(Type) or (colon and not form):
        raise UsageError(
            "expected a type, and after a colon the form of its texts",
            where=where,
            hint=f"{', '.join(get_args(Type))}; for example date:%d.%m.%Y, datetime:ms, float:,",
        )
    found = Declared(name, form or None)  # type: ignore[arg-type]
    if found.format is None:
        return found
    if name in ("int", "float") and form == ",":
        return found
    if (name == "datetime" and form in PER_SECOND) or (name in ("date", "datetime") and "%" in form):
        if form not in PER_SECOND and not FORM.fullmatch(form):
            raise UsageError("this is no form of a date", where=where, hint="for example date:%d.%m.%Y")
        return found
    raise UsageError(
        f"a column of type {name} has no such form",
        where=where,
        hint="dates and times take %d.%m.%Y and the like, times also s, ms, us, ns since 1970; numbers `,` for a comma",
    )


def declarations(types: Mapping[str, str] | None) -> dict[str, Declared]:
    """Declarations by column, from their texts.

    >>> declarations({"born": "date:%d.%m.%Y"})["born"].format
    '%d.%m.%Y'
    """
    return {name: declared(text, f"type of column {name!r}") for name, text in (types or {}).items()}


def cast(frame: pl.DataFrame, types: Mapping[str, Declared], where: str, tell: Tell = quiet) -> pl.DataFrame:
    """Columns as their declared types; what does not fit is counted and located, and nothing is read.

    >>> cast(pl.DataFrame({"age": ["34", "51"]}), {"age": Declared("int")}, "table")["age"].to_list()
    [34, 51]
    """
    for name, kind in types.items():
        if name not in frame.columns:
            continue
        column = frame[name]
        found = fitted(column, kind)
        lost = found.is_null() & column.is_not_null()
        # marks that people write for a missing value are no wrong values
        if lost.any() and column.dtype == pl.String:
            marked = lost & is_mark(column)
            if marked.any():
                tell(name, f"{int(marked.sum()):,} cells with a mark for a missing value are read as missing")
                lost &= ~marked
        if lost.any():
            rows = ", ".join(f"{at + 1:,}" for at in lost.arg_true().head(5).to_list())
            raise InputError(
                f"column {name!r}: {int(lost.sum()):,} values are not of type {kind}; first: row {rows}",
                where=where,
                hint="correct the data, or declare the type and the form the values have (--type, `type:`, `format:`)",
            )
        frame = frame.with_columns(found.alias(name))
    return frame


def fitted(column: pl.Series, kind: Declared) -> pl.Series:
    """The values that are of the declared type; null where one is not.

    >>> fitted(pl.Series(["1.234,5", "many"]), Declared("float", ",")).to_list()
    [1234.5, None]
    """
    wanted = TYPES[kind.type]
    if column.dtype == pl.String:
        if kind.type in ("date", "datetime"):
            return _of_calendar(_dates(column, kind))
        if kind.type == "bool":
            words = dict.fromkeys(TRUE, True) | dict.fromkeys(FALSE, False)
            lower = column.str.to_lowercase()
            return lower.replace_strict(words, default=None, return_dtype=pl.Boolean)
        if kind.type in ("int", "float") and kind.format == ",":
            column = without_comma(column)
        return column.cast(wanted, strict=False)
    if kind.type == "datetime" and kind.format in PER_SECOND and column.dtype.is_numeric():
        return _of_calendar(_epoch(column, kind.format))
    found = column.cast(wanted, strict=False)
    if column.dtype.is_numeric() and wanted in (pl.Int64, pl.Float64):
        same = found.cast(column.dtype, strict=False).eq_missing(column)
        return pl.select(pl.when(same).then(found)).to_series()  # a fraction or a digit that would be lost
    return found


def _of_calendar(times: pl.Series) -> pl.Series:
    """Without days before the year 1 or after 9999, which no record could be read with."""
    first, last = datetime.date.min, datetime.date.max
    inside = times.cast(pl.Date).is_between(first, last)
    return pl.select(pl.when(inside).then(times)).to_series().alias(times.name)


def _dates(column: pl.Series, kind: Declared) -> pl.Series:
    if kind.type == "datetime" and kind.format in PER_SECOND:
        return _epoch(column.cast(pl.Int64, strict=False), kind.format)
    if kind.type == "datetime":
        found = column.str.to_datetime(kind.format, strict=False) if kind.format else _iso_times(column)
        zoned = isinstance(found.dtype, pl.Datetime) and found.dtype.time_zone is not None
        # columns hold moments in UTC without a zone
        found = found.dt.convert_time_zone("UTC").dt.replace_time_zone(None) if zoned else found
        return found.cast(pl.Datetime("us"))
    if kind.format:
        return column.str.to_date(kind.format, strict=False)
    iso = pl.select(pl.when(column.str.contains(ISO_DATE)).then(column)).to_series()
    return iso.str.to_date("%Y-%m-%d", strict=False)


def _epoch(numbers: pl.Series, unit: str | None) -> pl.Series:
    """Whole or broken numbers of seconds (or parts of them) since 1970."""
    per = PER_SECOND[unit or "s"]
    micros = numbers * (1_000_000 // per) if per <= 1_000_000 else numbers // (per // 1_000_000)
    return micros.cast(pl.Int64, strict=False).cast(pl.Datetime("us"))


def _iso_times(column: pl.Series) -> pl.Series:
    """ISO 8601 in its common forms, in UTC where a zone is given; a date alone is its midnight."""
    text = pl.select(
        pl.when(column.str.contains(ISO_DATE))
        .then(column + pl.lit(" 00:00:00"))
        .when(column.str.contains(ISO_TIME))
        .then(
            column.str.replace("T", " ", literal=True)
            .str.replace(r" ?(Z|UTC)$", "+00:00")
            .str.replace(r" ?([+-]\d\d):?(\d\d)$", "${1}:${2}")
            .str.replace(",", ".", literal=True)
            .str.replace(r"^(.{10} \d\d:\d\d)($|[+-])", "${1}:00${2}")
        )
    ).to_series()
    zoned = text.str.contains(r"[+-]\d\d:\d\d$")
    plain = pl.select(pl.when(~zoned).then(text)).to_series()
    found = plain.str.to_datetime("%Y-%m-%d %H:%M:%S%.f", strict=False, time_unit="us")
    if not zoned.any():
        return found
    with_zone = pl.select(pl.when(zoned).then(text)).to_series()
    parsed = with_zone.str.to_datetime("%Y-%m-%d %H:%M:%S%.f%:z", strict=False, time_unit="us", time_zone="UTC")
    return pl.select(pl.coalesce(found, parsed.dt.replace_time_zone(None))).to_series()


def without_comma(column: pl.Series) -> pl.Series:
    """``1.234,5`` as ``1234.5``; null where a text is not of this form."""
    kept = pl.select(pl.when(column.str.contains(COMMA)).then(column)).to_series()
    return kept.str.replace_all(".", "", literal=True).str.replace(",", ".", literal=True)


def is_mark(column: pl.Series) -> pl.Series:
    """Which texts are marks that people write where a value is missing.

    >>> is_mark(pl.Series(["34", "unknown", "?", None])).to_list()
    [False, True, True, False]
    """
    return column.str.strip_chars().str.to_lowercase().is_in(MARKS).fill_null(False)

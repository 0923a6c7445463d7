"""Types where nobody declared one: numbers, dates, times and marks for missing values, recognised in columns of texts.

A column is never read as something that loses digits: whole numbers of any length, codes with leading zeros and
decimals beyond double precision stay text. What is not plain to see (dates, numbers among marks for missing values) is
told, so that a person can say otherwise. Messages name columns, never a cell.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import polars as pl

from shoal.connect.types import COMMA, ISO_DATE, ISO_TIME, Declared, Tell, fitted, is_mark, quiet, without_comma

MOST_DIGITS = 15  # a decimal of so many digits is one double-precision number and no other
WHOLE = r"^-?(0|[1-9][0-9]*)$"
NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
CODE = r"^[+-]?0[0-9]"  # a number does not begin like this; a code does
THOUSANDS = r"^[+-]?[0-9]{1,3}(,[0-9]{3})+$"
OTHER_DATE = r"^[0-9]{1,2}([./-])[0-9]{1,2}[./-][0-9]{4}$"


def infer(
    frame: pl.DataFrame, keep: Collection[str] = frozenset(), exact: Collection[str] = frozenset(), tell: Tell = quiet
) -> pl.DataFrame:
    """Text columns as the values they hold.

    Columns to ``keep`` stay text. A column that must come out ``exact`` is read as something else only if every value
    is written again as it stood. What is told: dates, times, marks for missing values, decimal commas.
    """
    columns = []
    for column in frame.iter_columns():
        if column.dtype != pl.String or column.name in keep or column.null_count() == len(column):
            columns.append(column)
            continue
        found = proposal(column, exact=column.name in exact)
        if found.words is not None:
            tell(column.name, found.words)
        columns.append((column if found.kind is None else found.apply(column)).alias(column.name))
    return pl.DataFrame(columns)


def _written(values: pl.Series) -> pl.Series:
    """Values as a file gets them: times have a T between day and hour there, and six digits behind the seconds."""
    if isinstance(values.dtype, pl.Datetime):
        return values.dt.to_string("%Y-%m-%dT%H:%M:%S%.6f")
    return values.cast(pl.String)


def propose(column: pl.Series) -> tuple[pl.Series, str | None]:
    """What a column of texts holds, and a sentence about it where it is not plain to see.

    >>> propose(pl.Series(["34", "unknown", "51"]))[0].to_list()
    [34, None, 51]
    >>> propose(pl.Series(["12345678901234567890"]))[0].dtype
    String
    """
    found = proposal(column)
    return (column if found.kind is None else found.apply(column)), found.words


@dataclass(frozen=True)
class Proposal:
    """What a column of texts holds: its type, if it is another than text, and whether marks stand for missing values.

    >>> proposal(pl.Series(["34", "unknown", "51"])).apply(pl.Series(["7", "unknown"])).to_list()
    [7, None]
    """

    kind: Declared | None = None
    words: str | None = None
    marked: bool = False

    def apply(self, column: pl.Series) -> pl.Series:
        """The values of some of its texts."""
        assert self.kind is not None
        cleared = pl.select(pl.when(~is_mark(column)).then(column)).to_series() if self.marked else column
        return fitted(cleared, self.kind)


def proposal(column: pl.Series, rows: pl.Series | None = None, *, exact: bool = False) -> Proposal:
    """What a column of texts holds; an ``exact`` one stays text unless every value is written again as it stood.

    Where only the distinct texts are at hand, ``rows`` says how often each occurs.

    >>> proposal(pl.Series(["1.50", "2"]), exact=True).kind is None
    True
    """
    found = _proposal(column, rows)
    # 01.50 is a number, and would leave as 1.5
    if exact and found.kind is not None and not _written(found.apply(column)).eq_missing(column).all():
        return Proposal()
    return found


def _proposal(column: pl.Series, rows: pl.Series | None) -> Proposal:
    if column.null_count() == len(column):
        return Proposal()
    found = _values(column.drop_nulls())
    if found is not None:
        return Proposal(*found)
    marks = is_mark(column)
    rest = column.filter(~marks).drop_nulls()
    count, others = int(marks.sum()), len(rest)
    if rows is not None:
        count, others = int(rows.filter(marks).sum()), int(rows.filter(~marks & column.is_not_null()).sum())
    # more marks than values: then nobody knows what the column is
    if not count or others < count:
        return Proposal(None, _doubt(column))
    found = _values(rest)
    if found is None:
        return Proposal(None, _doubt(rest))
    kind, words = found
    seen = sorted(set(column.filter(marks).str.strip_chars().str.to_lowercase().to_list()))
    told = f"{count:,} cells are marks for a missing value ({' '.join(seen)}) and read as missing; type str keeps them"
    return Proposal(kind, f"{words}; {told}" if words else told, marked=True)


def _values(known: pl.Series) -> tuple[Declared, str | None] | None:
    """The type of which every text is, and what to say; nothing if there is none that keeps every digit."""
    if _is_whole(known):
        return Declared("int"), None
    if _is_number(known):
        return Declared("float"), None
    if known.str.contains(ISO_DATE).all():
        return (Declared("date"), "read as dates") if _all(known, Declared("date")) else None
    if known.str.contains(ISO_TIME).all():
        return (Declared("datetime"), "read as times") if _all(known, Declared("datetime")) else None
    if known.str.contains(OTHER_DATE).all():
        forms = [form for form in _date_forms(known) if _all(known, Declared("date", form))]
        # two readings fit: a person has to say which
        if len(forms) == 1:
            return Declared("date", forms[0]), f"read as dates of the form {forms[0]}"
    if known.str.contains(COMMA).all() and not known.str.contains(CODE).any() and _decimal_comma(known):
        return Declared("float", ","), "read as numbers with a decimal comma"
    return None


def _all(known: pl.Series, kind: Declared) -> bool:
    return not fitted(known, kind).null_count()


def _is_whole(known: pl.Series) -> bool:
    if not known.str.contains(WHOLE).all():
        return False
    # 18 digits fit in 64 bits whatever they are
    return bool((known.str.len_bytes() <= 18).all()) or not known.cast(pl.Int64, strict=False).null_count()


def _is_number(known: pl.Series) -> bool:
    """Whether every text is a number that double precision holds with all its digits."""
    if not known.str.contains(NUMBER).all() or known.str.contains(CODE).any():
        return False
    digits = known.str.replace(r"[eE].*$", "").str.replace_all(r"[^0-9]", "").str.strip_chars_start("0").str.len_bytes()
    numbers = known.cast(pl.Float64, strict=False)
    same = numbers.cast(pl.String) == known
    return bool((((digits <= MOST_DIGITS) | same) & numbers.is_finite().fill_null(False)).all())


def _decimal_comma(known: pl.Series) -> bool:
    """A comma that can only be a decimal one: not every comma may stand before three digits."""
    with_comma = known.filter(known.str.contains(",", literal=True))
    plain = without_comma(known)
    return bool(len(with_comma)) and not with_comma.str.contains(THOUSANDS).all() and _is_number(plain)


def _date_forms(known: pl.Series) -> list[str]:
    """Day first or month first, with the separator of the first text; with dots the day is first."""
    mark = str(known.str.extract(OTHER_DATE)[0])
    day, month = (f"%{first}{mark}%{second}{mark}%Y" for first, second in ("dm", "md"))
    return [day] if mark == "." else [day, month]


def _doubt(known: pl.Series) -> str | None:
    """What a person has to say, where texts look like something and could be two things."""
    if not len(known):
        return None
    if known.str.contains(OTHER_DATE).all():
        return "looks like dates, but day or month may be first: declare the type, for example date:%d/%m/%Y"
    if known.str.contains(THOUSANDS).all():
        return "looks like numbers, but the comma may be decimal or not: declare the type, for example float:,"
    return None

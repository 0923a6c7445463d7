"""Conditions on a tuple: match, range, regular expression; and, or, not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from shoal.core.errors import UsageError
from shoal.core.schema import Type
from shoal.masks.base import as_text, is_number, text_of
from shoal.masks.patterns import finder, for_columns, pattern

if TYPE_CHECKING:
    import polars as pl

Scalar = str | int | float | bool
Test = Callable[[tuple[Any, ...]], bool | None]


class Condition(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One test of a column (its own, unless ``column`` names another), or several tests combined.

    ``equals`` and ``in`` compare as text, ``between`` includes both ends (null: no end), ``matches`` looks for a
    regular expression anywhere in the text, in an engine whose time grows with the text alone (RE2: no
    back-references, no catastrophe). A missing value passes no test. Where ``between`` asks for a number and something
    else stands, nobody can tell (none): a mask then hides, as it hides where the condition holds.

    >>> test = Condition(between=(0, 17)).test({None: 0})
    >>> test((12,)), test((30,))
    (True, False)
    """

    column: str | None = None
    equals: Scalar | None = None
    among: tuple[Scalar, ...] | None = msgspec.field(default=None, name="in")
    between: tuple[float | None, float | None] | None = None
    matches: str | None = None
    all: tuple[Condition, ...] | None = None
    any: tuple[Condition, ...] | None = None
    none: Condition | None = msgspec.field(default=None, name="not")

    def __post_init__(self) -> None:
        tests = (self.equals, self.among, self.between, self.matches, self.all, self.any, self.none)
        if sum(t is not None for t in tests) != 1:
            raise UsageError("a condition is exactly one of equals, in, between, matches, all, any, not")
        if self.column is not None and (self.all is not None or self.any is not None or self.none is not None):
            raise UsageError("`column` belongs to a single test, not to all, any or not")
        # compiled now: a wrong expression is told when the policy is read, not at the first record
        if self.matches is not None:
            pattern(self.matches)

    def columns(self) -> list[str]:
        """The other columns it reads, each once."""
        parts = [*(self.all or ()), *(self.any or ()), *([self.none] if self.none else [])]
        found = [self.column] if self.column else []
        for part in parts:
            found += part.columns()
        return list(dict.fromkeys(found))

    def test(self, place: Mapping[str | None, int]) -> Test:
        """A function of a row of values; ``place`` says where each column stands in it."""
        if self.all is not None:
            parts = [c.test(place) for c in self.all]
            return lambda row: _and(p(row) for p in parts)
        if self.any is not None:
            parts = [c.test(place) for c in self.any]
            # by `all`, so that what cannot be told is treated alike in both
            return lambda row: _not(_and(_not(p(row)) for p in parts))
        if self.none is not None:
            part = self.none.test(place)
            return lambda row: _not(part(row))
        at, accepts = place[self.column], self._accepts()
        return lambda row: False if row[at] is None else accepts(row[at])

    def express(self, column: Mapping[str | None, pl.Expr], kind: Mapping[str | None, Type | None]) -> pl.Expr:
        """The same as a polars expression."""
        import polars as pl

        # polars' null in these three is what `_and` and `_not` make of "cannot be told"
        if self.all is not None:
            return pl.all_horizontal([c.express(column, kind) for c in self.all])
        if self.any is not None:
            return pl.any_horizontal([c.express(column, kind) for c in self.any])
        if self.none is not None:
            return ~self.none.express(column, kind)
        here = column[self.column]
        if self.equals is not None or self.among is not None:
            wanted = [text_of(v) for v in (self.among if self.among is not None else (self.equals,))]
            return as_text(here, kind.get(self.column)).is_in(wanted).fill_null(False)
        # both engines agree whether nothing is found somewhere; where, they do not
        if self.matches is not None and (alike := for_columns(self.matches, empty=True)) is not None:
            return as_text(here, kind.get(self.column)).str.contains(alike).fill_null(False)
        accepts = self._accepts()
        return here.map_batches(lambda s: _each(s, accepts), return_dtype=pl.Boolean())

    def _accepts(self) -> Callable[[Any], bool | None]:
        if self.between is not None:
            low, high = (
                float("-inf") if e is None and not i else float("inf") if e is None else e
                for i, e in enumerate(self.between)
            )
            return lambda v: low <= v <= high if is_number(v) else None
        if self.matches is not None:
            found = finder(self.matches)
            return lambda v: found(text_of(v))
        wanted = {text_of(v) for v in (self.among if self.among is not None else (self.equals,))}
        return lambda v: text_of(v) in wanted


def _and(parts: Iterable[bool | None]) -> bool | None:
    """False if a part is, else none if one cannot be told, else true."""
    found = list(parts)
    return False if False in found else None if None in found else True


def _not(part: bool | None) -> bool | None:
    return None if part is None else not part


def _each(values: pl.Series, accepts: Callable[[Any], bool | None]) -> pl.Series:
    import polars as pl

    # columns repeat their values: each is judged once
    distinct = values.unique()
    good = pl.Series([False if v is None else accepts(v) for v in distinct.to_list()], dtype=pl.Boolean)
    table = pl.DataFrame({"was": distinct, "is": good})
    found = pl.DataFrame({"was": values}).join(table, on="was", how="left", nulls_equal=True, maintain_order="left")
    return found["is"].alias(values.name)

"""JSON lines held to types: every value is one of its column's type, or its event cannot be read."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Annotated, Any, NamedTuple

import msgspec
import polars as pl

from shoal.core.schema import Type
from shoal.core.texts import text_of

Whole = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
EXACT = 2**53  # whole numbers up to here are floats without a loss
# what a line must hold to be taken as it is; a text may stand for any single value
TAKEN: Mapping[pl.DataType, Any] = {
    pl.Int64(): Whole | None, pl.Float64(): float | None, pl.Boolean(): bool | None,
    pl.String(): str | int | float | bool | None, pl.Binary(): str | int | float | bool | None,
}  # fmt: skip
CALENDAR = ("date", "datetime")


class Needs(NamedTuple):
    """What becomes of a value that is not of its column's type.

    In a column that is ``held`` to it, it makes its event unreadable. A ``loose`` column becomes one of texts, from
    that event on; a ``free`` one among them is published as it came, so it becomes one of JSON values. Nobody sees or
    counts the other columns: there it is missing.

    >>> made = needs_of([Needs({"age"}, {"note"}, {"note"}), Needs({"note"}, set(), set())])
    >>> sorted(made.held), made.loose
    (['age', 'note'], set())
    """

    held: Collection[str]
    loose: Collection[str]
    free: Collection[str]


def needs_of(each: Sequence[Needs]) -> Needs:
    """What several views of the same events need of them."""
    held = {name for one in each for name in one.held}
    loose = {name for one in each for name in one.loose} - held
    free = {name for name in loose if all(name in one.free for one in each if name in one.loose)}
    return Needs(held, loose, free)


class TypedLines:
    """Reads lines as columns of a schema; ``kinds`` are the declared types.

    >>> lines = TypedLines({"age": pl.Int64()}, {"age": "int"}, Needs({"age"}, set(), set()))
    >>> lines.read([b'{"age": 36}', b'{}']).rows()
    [(36,), (None,)]
    >>> lines.read([b'{"age": "36"}']) is None
    True
    """

    def __init__(self, schema: Mapping[str, pl.DataType], kinds: Mapping[str, Type | None], needs: Needs) -> None:
        self.schema, self._kinds, self._needs = dict(schema), kinds, needs
        fields = [(f"f{at}", self._taken(name), None) for at, name in enumerate(schema)]
        rename = {f"f{at}": name for at, name in enumerate(schema)}
        try:
            made = msgspec.defstruct("Line", fields, rename=rename, gc=False)
        except ValueError:  # a name that JSON writes with an escape
            self._decode = None
        else:
            self._decode = msgspec.json.Decoder(made).decode

    def read(self, lines: Sequence[bytes]) -> pl.DataFrame | None:
        """All lines as a frame; None if one of them does not hold what it should."""
        if self._decode is None or not self.schema:
            return None
        try:
            rows = list(map(self._decode, lines))
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
            return None
        names = {name: f"f{at}" for at, name in enumerate(self.schema)}
        columns = {name: [getattr(row, field) for row in rows] for name, field in names.items()}
        if any(self._strays(name, columns[name]) for name in self.schema):
            return None
        return self.frame(columns)

    def frame(self, columns: Mapping[str, Sequence[Any]]) -> pl.DataFrame:
        """Values that fit, as a frame."""
        return pl.DataFrame([column_of(name, columns[name], dtype) for name, dtype in self.schema.items()])

    def fits(self, name: str, value: Any) -> bool:
        """Whether a value is of its column's type."""
        dtype, declared = self.schema[name], self._kinds.get(name) is not None
        if value is None:
            return True
        if isinstance(value, list | dict):  # as text, it would carry out fields that nobody declared
            return False
        if dtype in (pl.String(), pl.Binary()):
            texts = self._kinds.get(name) in CALENDAR or (dtype == pl.String() and name in self._needs.free)
            return isinstance(value, str) or not texts
        if isinstance(value, bool | str):
            return isinstance(value, bool) and dtype == pl.Boolean()
        if dtype == pl.Int64():
            return isinstance(value, int) and -(2**63) <= value < 2**63
        # a float that nobody declared must not take a digit from a whole number
        return dtype == pl.Float64() and (isinstance(value, float) or abs(value) <= (10**300 if declared else EXACT))

    def _taken(self, name: str) -> Any:
        return str | None if self._kinds.get(name) in CALENDAR else TAKEN[self.schema[name]]

    def _strays(self, name: str, values: Sequence[Any]) -> bool:
        """Whether a column that may hold more than the decoder asks for holds what it should not."""
        if self.schema[name] == pl.String() and name in self._needs.free:
            return any(v.__class__ is not str and v is not None for v in values)
        untyped = self.schema[name] == pl.Float64() and self._kinds.get(name) is None
        return untyped and any(v is not None and v.is_integer() and abs(v) > EXACT for v in values)


def column_of(name: str, values: Sequence[Any], dtype: pl.DataType) -> pl.Series:
    """A column of values that fit: of texts by the one text of each value, of JSON values as they are written.

    >>> column_of("who", ["ada", 7.0], pl.String()).to_list(), column_of("n", [7, "b"], pl.Binary()).to_list()
    (['ada', '7'], [b'7', b'"b"'])
    """
    if dtype == pl.String():
        values = [v if v is None or v.__class__ is str else text_of(v) for v in values]
    elif dtype == pl.Binary():
        values = [None if v is None else msgspec.json.encode(v) for v in values]
    return pl.Series(name, values, dtype=dtype)

"""Records of the plainest kind, many at a time: single values, texts without escapes, numbers as all write them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import polars as pl

from shoal.connect.ndjson import Flat
from shoal.core.lines import Lines
from shoal.core.schema import Column
from shoal.masks.base import dtype_of
from shoal.policy.paths import steps

Kind = pl.DataType | Literal["spelled", "written"]
LEAST = 32  # records: fewer are read sooner one by one
TYPES = ("int", "float", "str", "bool", None)


class FlatRecords:
    """Reads records by a compiled loop that reads as a decoder does, or leaves all of them to one.

    A column without a type is text, unless ``kinds`` says otherwise.

    >>> flat = FlatRecords({"age": Column("quasi", type="int"), "at": Column("time")})
    >>> flat.read([b'{"at": 7.5, "age": 30}'] * LEAST).row(0)
    (30, '7.5')
    >>> flat.read([b'{"at": 7.5, "age": "30"}'] * LEAST) is None
    True
    """

    def __init__(self, columns: Mapping[str, Column], kinds: Mapping[str, Kind] | None = None) -> None:
        wanted: dict[str, Kind] = {
            n: dtype_of(c.type) if c.type is not None and c.type in TYPES else "spelled" for n, c in columns.items()
        }
        # a name with a dot is a place inside an object; of dates and declared forms only a decoder knows
        plain = all(steps(n) == [n] and c.type in TYPES and c.format is None for n, c in columns.items())
        self._flat = Flat({**wanted, **(kinds or {})}) if plain and columns else None

    def read(self, values: Sequence[bytes]) -> pl.DataFrame | None:
        """The columns of these records, or none if one of them is not of the plain kind, or they are few."""
        if self._flat is None or len(values) < LEAST:
            return None
        # each with a line end of its own, so that one inside a record makes a line too many, or an empty one
        frame = self._flat.read_buffer(Lines.of(values).packed().data)
        return frame if frame is not None and frame.height == len(values) else None

"""JSON records as a frame for a stream method, and released rows as JSON again.

Every value is read by itself, by what is declared, so that the size of a batch changes nothing: a replay in other
batches must decide alike. A column without a declared type is text, except two: what a role sees in clear and nobody
counts stays the single value it came as (text, number or boolean, written as JSON), and a time column that is masked is
a number in its unit. Times without a type may be numbers or ISO texts, record by record (``core/time.py`` reads both).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import polars as pl

from shoal.connect.json_out import Cells, rows_of
from shoal.core.arrow import FEW, raw_texts
from shoal.core.cells import SUPPRESSED
from shoal.core.columns import CARRIED
from shoal.core.errors import PolicyError
from shoal.core.keys import KeyRing
from shoal.core.lines import Lines
from shoal.core.schema import Column, Schema
from shoal.core.time import PER_SECOND, SECOND, scale
from shoal.kernels.shared.decimal_texts import json_numbers
from shoal.masks.base import dtype_of, text_of
from shoal.policy.paths import EACH, Node, tree
from shoal.runtime.kafka.formats.flat_records import FlatRecords
from shoal.runtime.kafka.serve.output import ROOM
from shoal.views.records import UNREADABLE
from shoal.views.role_view import RoleView
from shoal.views.types import decoder, getters, in_utc

TOKEN = 128  # bytes by which a masked or generalized value may be longer than twice its own


class RecordFrames:
    """Reads and writes the records of one view; ``made`` are the columns of a method that publishes others."""

    def __init__(self, view: RoleView, keys: KeyRing, made: Sequence[str] | None = None) -> None:
        self._view = view
        columns = {n: c for n, c in view.schema.columns.items() if not n.startswith(CARRIED)}
        seen = {*view.shown, *view.masks}
        refuse_lists(view)
        read = {name for mask in view.start(keys).values() for name in mask.by}
        read |= {source for derive in view.schema.derived.values() for source in derive.sources}
        # what nobody sees, counts or needs is skipped; derived columns are made by the gate, as everywhere
        needed = seen | read | set(view.schema.of("subject", "time"))
        self._columns = {n: c for n, c in columns.items() if EACH not in n and c.derive is None and n in needed}
        self._free = {n for n, c in columns.items() if c.type is None and c.role in _FREE and n in view.shown} - read
        root = tree(self._columns)
        self._decode = decoder(root, Schema(self._columns))
        self._getters = dict(getters(root))
        timed = {n for n, c in self._columns.items() if c.type is None and c.role == "time" and n in view.masks}
        # a time that is masked is a number, which only the slow road makes of it
        plain: Mapping[str, Column] = {} if timed else self._columns
        self._flat = FlatRecords(plain, {n: "written" for n in plain if n in self._free})
        self._moments = [self._getters[n] for n, c in self._columns.items() if c.type == "datetime"]
        shown = [n for n in columns if view.hidden != "drop" or n in seen]
        self._made = frozenset(made or ())
        self._output = tree(made if made is not None else shown)
        self._encoder = msgspec.json.Encoder()
        self._encode = self._encoder.encode
        # a token is twice as long as its value, and a little longer
        self._most = ROOM // 2 - TOKEN * len(columns) if view.masks else ROOM - TOKEN * len(columns)
        self._structs: dict[int, Any] = {}

    def read(self, values: Sequence[bytes]) -> tuple[pl.DataFrame, list[int]]:
        """The records that can be read, and the positions of those that cannot."""
        rows: list[Any] = []
        refused: list[int] = []
        values = Lines.of(values)
        if not self._moments and values.longest <= self._most:
            frame = self._flat.read(values)
            if frame is not None:
                return frame, refused
            try:  # nearly always all can be read
                rows = list(map(self._decode, values))
                return self._framed(rows), refused
            except UNREADABLE:
                rows = []
        for at, value in enumerate(values):
            if len(value) > self._most:  # once it is in a group, the group needs it
                refused.append(at)
                continue
            try:
                row = self._decode(value)
                for get in self._moments:
                    in_utc(get(row))
                rows.append(row)
            except UNREADABLE:
                refused.append(at)
        return self._framed(rows), refused

    def write(self, frame: pl.DataFrame) -> Lines:
        """One JSON record per row."""
        if not frame.height:
            return Lines.of([])
        fields = self._output.fields.items()
        # few rows are not worth compiling anything
        if fields and frame.height >= FEW:
            made = rows_of([self._cells(name, below, frame) for name, below in fields])
            if made is not None:
                return made
        # no line end stands in a line: all at once, and parted again, costs less than one by one
        return Lines.split(self._encoder.encode_lines(self._objects(self._output, frame)))

    def _cells(self, name: str, node: Node, frame: pl.DataFrame) -> Cells:
        """The values of a field, as :meth:`_values` has them."""
        made = node.leaf in self._made and node.leaf not in self._columns
        if node.leaf is None or not (made or not self._view.is_hidden(node)):
            return Cells.of(name, self._values(node, frame))
        if node.leaf in self._free and not made:
            return Cells(self._encode(name), frame[node.leaf], False)
        column = frame[node.leaf]
        if self._as_it_came(node.leaf):
            # a missing one is written as one in any case
            return (
                Cells(self._encode(name), column, False)
                if _all_numbers(column)
                else Cells.of(name, self._values(node, frame))
            )
        return Cells.of(name, column if column.dtype != pl.Float64 else self._values(node, frame))

    def _as_it_came(self, name: str) -> bool:
        """Whether a column holds times whose spelling says whether they are numbers."""
        column = self._columns.get(name)
        return column is not None and column.type is None and column.role == "time" and name not in self._view.masks

    def _framed(self, rows: list[Any]) -> pl.DataFrame:
        return pl.DataFrame([self._column(name, column, rows) for name, column in self._columns.items()])

    def _column(self, name: str, column: Column, rows: list[Any]) -> pl.Series:
        values = list(map(self._getters[name], rows))
        if name in self._free:
            return pl.Series(name, [str(self._encode(v), "utf-8") for v in values], dtype=pl.String)
        if column.type is None and column.role == "time" and name in self._view.masks:
            read, per = scale(column.unit), PER_SECOND[column.unit] / SECOND
            known = [at * per if (at := read(value)) >= 0 else None for value in values]
            return pl.Series(name, known, dtype=pl.Float64)
        if column.type is None:
            return pl.Series(name, [None if v is None else text_of(v) for v in values], dtype=pl.String)
        if column.type == "datetime":
            values = list(map(in_utc, values))
        return pl.Series(name, values, dtype=dtype_of(column.type))

    def _objects(self, node: Node, frame: pl.DataFrame) -> list[Any]:
        columns = [self._values(below, frame) for below in node.fields.values()]
        made = self._structs.get(id(node))
        if made is None:
            rename = {f"f{at}": name for at, name in enumerate(node.fields)}
            made = msgspec.defstruct("Record", [(f, Any) for f in rename], rename=rename, gc=False)
            self._structs[id(node)] = made
        return list(map(made, *columns)) if columns else [{}] * frame.height

    def _values(self, node: Node, frame: pl.DataFrame) -> list[Any]:
        if node.leaf in self._made and node.leaf not in self._columns:
            return frame[node.leaf].to_list()
        if self._view.is_hidden(node):
            return [None if self._view.hidden == "null" else SUPPRESSED] * frame.height
        if node.leaf is None:
            return self._objects(node, frame)
        values = frame[node.leaf].to_list()
        if node.leaf in self._free:
            return list(map(msgspec.Raw, values))
        column = self._view.schema[node.leaf]
        if frame.schema[node.leaf] == pl.Float64 and column.type is None:
            return [int(v) if v is not None and v.is_integer() else v for v in values]
        if self._as_it_came(node.leaf):
            return _times(frame[node.leaf], values)
        return values


def _times(texts: pl.Series, values: list[Any]) -> list[Any]:
    """Times without a type as they came: those that are numbers as numbers, in their own spelling."""
    if texts.str.contains(_SHORT_WHOLE).all():  # a missing one is written as one in any case
        return texts.cast(pl.Int64).to_list()
    if not texts.has_nulls() and _all_numbers(texts):
        return list(map(msgspec.Raw, values))
    return [msgspec.Raw(v) if v is not None and _JSON_NUMBER.fullmatch(v) else v for v in values]


def _all_numbers(texts: pl.Series) -> bool:
    """Whether all texts that are there are numbers in JSON."""
    # most are without exponents, and a loop costs less than an expression
    return bool(json_numbers(*raw_texts(texts))) or texts.str.contains(f"^(?:{_JSON_NUMBER.pattern})$").all()


def refuse_lists(view: RoleView) -> None:
    """A group of people has one value per column: what stands inside lists cannot be shown beside a promise."""
    lists = [n for n in (*view.shown, *view.masks) if EACH in n]
    if lists:
        raise PolicyError("a view with promises cannot show values inside lists", where=f"columns.{lists[0]}")


_SHORT_WHOLE = r"^(?:0|-?[1-9][0-9]{0,14})$"
_FREE = ("plain", "identifier")
_JSON_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")

"""JSON lines as frames: those of the plainest kind by a kernel; others are left to a decoder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.core.arrow import pieces
from shoal.core.texts import text_of
from shoal.kernels.shared.json_flat import (
    BOOL,
    DOUBTFUL,
    FLOAT,
    INT,
    MISSING,
    NEWLINE,
    SPELLED,
    TEXT,
    WRITTEN,
    flat_lines,
)

ANY: dict[Literal["spelled", "written"], int] = {"spelled": SPELLED, "written": WRITTEN}
KINDS: dict[pl.DataType, int] = {pl.Int64(): INT, pl.Float64(): FLOAT, pl.Boolean(): BOOL, pl.String(): TEXT}


def as_json(frame: pl.DataFrame) -> pl.DataFrame:
    """A frame whose points in time are texts as JSON records have them: ISO 8601 with a T, as on a topic.

    >>> import datetime
    >>> as_json(pl.DataFrame({"at": [datetime.datetime(2024, 2, 29, 7, 30)]})).item()
    '2024-02-29T07:30:00'
    """
    return frame.with_columns(
        _moments(name, "%:z" if dtype.time_zone else "")
        for name, dtype in frame.schema.items()
        if isinstance(dtype, pl.Datetime)
    )


def _moments(name: str, zone: str) -> pl.Expr:
    at = pl.col(name).dt.cast_time_unit("us")
    whole, more = (at.dt.to_string(f"%Y-%m-%dT%H:%M:%S{part}{zone}") for part in ("", "%.6f"))
    # whole seconds without decimals, as the encoder of records writes them
    return pl.when(at.dt.microsecond() == 0).then(whole).otherwise(more).alias(name)


def record_of(line: bytes) -> dict[str, object] | None:
    """A line as an object, if it is one."""
    try:
        record = msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


class Flat:
    """Lines of the plainest kind as a frame: an object per line, a single value per column, texts without escapes.

    >>> flat = Flat({"who": pl.String(), "age": pl.Int64()})
    >>> flat.read(b'{"who": "ada", "age": 36}\\n{"who": "bob"}\\n').rows()
    [('ada', 36), ('bob', None)]
    >>> flat.read(b'{"who": {"name": "ada"}}\\n') is None
    True

    A column of values of any kind is text: ``spelled`` as itself, or ``written`` as JSON, a missing one as null.

    >>> Flat({"who": "spelled", "at": "written"}).read(b'{"who": 7.0, "at": "noon"}\\n{"who": "ada"}\\n').rows()
    [('7', '"noon"'), ('ada', 'null')]
    """

    def __init__(self, schema: Mapping[str, pl.DataType | Literal["spelled", "written"]]) -> None:
        raw = [name.encode(errors="replace") for name in schema]
        self._schema = schema
        self._names = np.frombuffer(b"".join(raw) or b"\0", np.uint8)
        self._starts = np.cumsum([0, *map(len, raw)], dtype=np.int64)
        self._kinds = np.array([ANY[d] if isinstance(d, str) else KINDS[d] for d in schema.values()], np.int64)

    def read(self, lines: bytes) -> pl.DataFrame | None:
        """The frame; None if a line is of another kind, or is no line, or no column is asked for."""
        # the kernel looks for the end of each line
        return self.read_buffer(np.frombuffer(lines if lines.endswith(b"\n") else lines + b"\n", np.uint8))

    def read_buffer(self, data: NDArray[np.uint8]) -> pl.DataFrame | None:
        """:meth:`read` of lines that all have their ends."""
        if not self._schema:
            return None
        shape = len(self._kinds), int(np.count_nonzero(data == NEWLINE))  # thrice as fast as bytes.count
        values, lengths = np.empty(shape, np.int64), np.empty(shape, np.int64)
        numbers = values.view(np.float64)
        read, ascii_only = flat_lines(data, self._names, self._starts, self._kinds, values, numbers, lengths)
        # what is no UTF-8 is judged line by line
        if read != shape[1] or not (ascii_only or is_utf8(data.tobytes())):
            return None
        try:
            columns = [
                _column(kind, data, numbers[j] if kind == FLOAT else values[j], lengths[j]).alias(name)
                for j, (name, kind) in enumerate(zip(self._schema, self._kinds.tolist(), strict=True))
            ]
        except msgspec.MsgspecError:  # a number that no decoder takes
            return None
        return pl.DataFrame(columns)


def _column(kind: int, data: NDArray[np.uint8], values: NDArray[Any], lengths: NDArray[np.int64]) -> pl.Series:
    if kind >= TEXT:
        doubtful = np.flatnonzero(lengths <= DOUBTFUL) if kind > TEXT else values[:0]
        told = None
        if len(doubtful):
            sizes = DOUBTFUL - lengths[doubtful]
            told = _spelled(kind, data, values[doubtful], sizes)
            lengths[doubtful] = sizes if told is None else 0
        found = pieces(data, values, lengths)  # memory of its own: what is not published must not lie beside what is
        if told is not None:
            found = found.scatter(doubtful, told)
        return found.fill_null("null") if kind == WRITTEN and found.null_count() else found
    missing = lengths == MISSING
    found = pl.Series(values != 0 if kind == BOOL else values)
    return found.set(pl.Series(missing), None) if missing.any() else found


def _spelled(kind: int, data: NDArray[np.uint8], starts: NDArray[Any], lengths: NDArray[np.int64]) -> list[str] | None:
    """Numbers in unusual spellings, each by itself, as the decoder and the encoder of records have them.

    None if that is how they are spelled, as nearly always those are that are only long.
    """
    raw = data.tobytes()
    each = [raw[at : at + long] for at, long in zip(starts.tolist(), lengths.tolist(), strict=True)]
    together = b"[%s]" % b",".join(each)
    read = _SINGLES.decode(together)
    if kind == WRITTEN:
        same = msgspec.json.encode(read) == together
    else:  # a whole number is told without its .0
        same = b".0," not in together and b".0]" not in together and f"{read}".replace(" ", "") == together.decode()
    if same:
        return None
    return [str(msgspec.json.encode(value), "utf-8") if kind == WRITTEN else text_of(value) for value in read]


_SINGLES = msgspec.json.Decoder(list[str | int | float | bool | None])


def is_utf8(lines: bytes) -> bool:
    """Whether bytes are text.

    >>> is_utf8("é".encode()), is_utf8(b"\\xff")
    (True, False)
    """
    try:
        lines.decode()
    except UnicodeDecodeError:
        return False
    return True


def first_part(frame: pl.DataFrame, lines: bytes) -> int | None:
    """The first line where a text is really an object or a list.

    The fast road writes those as text, and with them fields that nobody declared. Lines and rows must be one to one.
    """
    texts = [c for c, dtype in frame.schema.items() if dtype == pl.String]
    # only such a text can be one: few have to be decoded again
    looks = frame.select(pl.any_horizontal(pl.lit(False), *(pl.col(c).str.contains(r"^[\[{]") for c in texts)))
    suspects = looks.to_series().fill_null(False).arg_true()
    if not len(suspects):
        return None
    every = lines.split(b"\n")
    for at in suspects:
        record = record_of(every[at])
        if record is not None and any(isinstance(record.get(c), list | dict) for c in texts):
            return int(at)
    return None

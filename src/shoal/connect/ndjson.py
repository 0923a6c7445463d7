"""JSON lines beside the frame that a fast reader made of them: where it took an object or a list for text."""

from __future__ import annotations

import msgspec
import polars as pl


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
    return pl.when(at.dt.microsecond() == 0).then(whole).otherwise(more).alias(name)


def record_of(line: bytes) -> dict[str, object] | None:
    """A line as an object, if it is one."""
    try:
        record = msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def first_part(frame: pl.DataFrame, lines: bytes) -> int | None:
    """The first line where a text is really an object or a list.

    The fast road writes those as text, and with them fields that nobody declared. Lines and rows must be one to one.
    """
    texts = [c for c, dtype in frame.schema.items() if dtype == pl.String]
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

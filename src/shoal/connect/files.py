"""Files in and out: CSV (also compressed), Parquet, NDJSON, and ``-`` for standard input and output.

A file is written beside its place and renamed when it is whole, so that nobody ever reads half of one.
"""

from __future__ import annotations

import csv
import gzip
import io
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Set
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Literal
from typing import cast as static_cast

import polars as pl

from shoal.core.errors import InputError, OutputError, UsageError
from shoal.core.schema import Type

Format = Literal["csv", "parquet", "ndjson"]
TYPES: Mapping[Type, type[pl.DataType] | pl.DataType] = {
    "int": pl.Int64,
    "float": pl.Float64,
    "str": pl.String,
    "bool": pl.Boolean,
    "date": pl.Date,
    "datetime": pl.Datetime("us"),
}
ENDINGS: Mapping[str, Format] = {
    ".csv": "csv",
    ".tsv": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".ndjson": "ndjson",
    ".jsonl": "ndjson",
}
COMPRESSED = (".gz",)


def format_of(path: str) -> Format:
    """What a file is, by its name; standard input and output are CSV."""
    if path == "-":
        return "csv"
    name = Path(path)
    suffix = name.with_suffix("").suffix if name.suffix in COMPRESSED else name.suffix
    if suffix.lower() not in ENDINGS:
        raise UsageError(
            "cannot tell the format from the name",
            where=path,
            hint=f"use one of {', '.join(ENDINGS)} (CSV and NDJSON also with .gz)",
        )
    return ENDINGS[suffix.lower()]


def read(
    path: str, *, separator: str | None = None, types: Mapping[str, Type] | None = None, kind: Format | None = None
) -> pl.DataFrame:
    """A table from a file, with declared column types; errors say what is wrong and where, never a cell."""
    kind = kind or format_of(path)
    raw = _bytes(path)
    if not raw.strip():
        raise InputError("the file is empty", where=path, hint="expected a header line and rows")
    try:
        if kind == "parquet":
            frame = pl.read_parquet(io.BytesIO(raw))
        elif kind == "ndjson":
            frame = pl.read_ndjson(io.BytesIO(_decoded(raw, path)), infer_schema_length=None)
        else:
            frame = _read_csv(_decoded(raw, path), path, separator, types or {})
    except (pl.exceptions.PolarsError, OSError) as error:
        raise InputError(
            f"cannot be read as {kind} ({_kind(error)})", where=path, hint="is the file whole, and of this format?"
        ) from None
    return cast(frame, types or {}, path)


def read_released(path: str, quasi: Iterable[str], *, separator: str | None = None) -> pl.DataFrame:
    """A released table with the cells of its quasi columns as they read: 1e2 and 100 are one number, and two cells."""
    types: dict[str, Type] = dict.fromkeys(quasi, "str") if format_of(path) == "csv" else {}
    return read(path, separator=separator, types=types)


def cast(frame: pl.DataFrame, types: Mapping[str, Type], where: str) -> pl.DataFrame:
    """Columns as their declared types; a value that does not fit is an error with its row, not its text."""
    for name, declared in types.items():
        if name not in frame.columns:
            continue
        column = frame[name]
        wanted = TYPES[declared]
        if column.dtype == pl.String and declared in ("date", "datetime"):
            fitted = column.str.to_date(strict=False) if declared == "date" else column.str.to_datetime(strict=False)
        elif column.dtype == pl.String and declared == "bool":
            lower = column.str.to_lowercase()
            fitted = lower.replace_strict({"true": True, "false": False}, default=None, return_dtype=pl.Boolean)
        else:
            fitted = column.cast(wanted, strict=False)
        lost = fitted.is_null() & column.is_not_null()
        if lost.any():
            raise InputError(
                f"column {name!r}: {int(lost.sum()):,} values are not of type {declared}; first: row {lost.arg_max()}",
                where=where,
                hint="correct the data or the declared type",
            )
        frame = frame.with_columns(fitted.alias(name))
    return frame


def write(frame: pl.DataFrame, path: str, *, separator: str = ",", kind: Format | None = None) -> None:
    """Write a table whole, or not at all."""
    kind = kind or format_of(path)
    if path == "-":
        _write(frame, sys.stdout.buffer, kind, separator)
        sys.stdout.buffer.flush()
        return
    with replacing(Path(path)) as out:
        if Path(path).suffix == ".gz":
            with gzip.open(out, "wb", compresslevel=6) as stream:
                _write(frame, static_cast(IO[bytes], stream), kind, separator)
        else:
            with out.open("wb") as stream:
                _write(frame, stream, kind, separator)


def write_text(text: str, path: str) -> None:
    """Write a text whole, or not at all."""
    with replacing(Path(path)) as out:
        out.write_text(text, encoding="utf-8")


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary file beside ``path`` that takes its place when the block ends well, and vanishes otherwise."""
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    except OSError as error:
        raise OutputError(
            f"cannot be written ({error.strerror})", where=str(path), hint="does the folder exist?"
        ) from None
    os.close(handle)
    part = Path(name)
    try:
        yield part
        umask = os.umask(0)
        os.umask(umask)
        part.chmod(0o666 & ~umask)
        part.replace(path)
    except OSError as error:
        raise OutputError(f"cannot be written ({error.strerror})", where=str(path)) from None
    finally:
        part.unlink(missing_ok=True)


def _bytes(path: str) -> bytes:
    try:
        return sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    except FileNotFoundError:
        raise InputError("there is no such file", where=path, hint="check the path") from None
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror})", where=path) from None


def _decoded(raw: bytes, path: str) -> bytes:
    """Uncompressed, and checked to be UTF-8 without making a string of it."""
    if raw[:2] == b"\x1f\x8b":
        try:
            raw = gzip.decompress(raw)
        except (OSError, EOFError):
            raise InputError("the compressed file is damaged", where=path, hint="is the download complete?") from None
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise InputError("not UTF-8 text", where=f"{path}, line {line}", hint="convert the file to UTF-8") from None
    return raw.removeprefix(b"\xef\xbb\xbf")


def _read_csv(raw: bytes, path: str, separator: str | None, types: Mapping[str, Type]) -> pl.DataFrame:
    first = raw.split(b"\n", 1)[0].decode().rstrip("\r")
    chosen = separator or ("\t" if ".tsv" in path else ",")
    header = next(csv.reader([first], delimiter=chosen))
    if len(header) == 1 and separator is None:
        other = max(";\t|", key=first.count)
        if first.count(other):
            raise InputError(
                "the header is one column: the separator seems to be another",
                where=f"{path}, line 1",
                hint=f"try --separator {'TAB' if other == chr(9) else repr(other)}",
            )
    twice = sorted({name for name in header if header.count(name) > 1})
    if twice:
        raise InputError(f"two columns are called {twice[0]!r}", where=f"{path}, line 1", hint="rename one of them")
    frame = pl.read_csv(io.BytesIO(raw), separator=chosen, infer_schema=False)
    return infer(frame, {name for name, declared in types.items() if declared == "str"})


def infer(frame: pl.DataFrame, keep: Set[str] = frozenset()) -> pl.DataFrame:
    """Text columns as numbers where every value is one; a code with leading zeros, or one to ``keep``, stays text."""
    columns = []
    for column in frame.iter_columns():
        known = column.drop_nulls()
        if not len(known) or column.dtype != pl.String or column.name in keep:
            columns.append(column)
        elif known.str.contains(r"^-?(0|[1-9][0-9]{0,17})$").all():
            columns.append(column.cast(pl.Int64))
        elif (
            known.str.contains(r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$").all()
            and not known.str.contains(r"^[+-]?0[0-9]").any()
        ):
            columns.append(column.cast(pl.Float64))
        else:
            columns.append(column)
    return pl.DataFrame(columns)


def _write(frame: pl.DataFrame, out: IO[bytes], kind: Format, separator: str) -> None:
    if kind == "parquet":
        frame.write_parquet(out)
    elif kind == "ndjson":
        frame.write_ndjson(out)
    else:
        frame.write_csv(out, separator=separator)


def _kind(error: Exception) -> str:
    """The class of a reader's error: its message may quote a cell."""
    return type(error).__name__

"""Events by the batch: NDJSON, CSV (also .gz) and Parquet in, as they come; NDJSON or CSV out, line by line.

A line that cannot be read becomes a row of nulls: its event is withheld and counted, and the stream goes on. With
``strict`` it stops there and says which line it was, never what stood in it.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from select import select
from typing import IO, cast

import numpy as np
import polars as pl

from shoal.connect.files import LONGEST, too_long
from shoal.connect.formats import format_of
from shoal.connect.ndjson import first_part, record_of
from shoal.connect.types import declarations, fitted
from shoal.core.columns import require_columns
from shoal.core.errors import InputError, OutputError, UsageError
from shoal.core.originals import refuse, register
from shoal.core.schema import Type

CHUNK = 8 << 20
FAR = 1000  # lines that one quoted text may take
NEWLINE = 10
FIRST = 3  # unreadable lines whose numbers are told
# what JSON has no type for comes as text, and is read as declared by whoever knows the policy
DTYPES: dict[Type, pl.DataType] = {
    "int": pl.Int64(), "float": pl.Float64(), "bool": pl.Boolean(),
    "str": pl.String(), "date": pl.String(), "datetime": pl.String(),
}  # fmt: skip


class Events:
    """A source of frames with the columns asked for. ``bad`` counts lines that could not be read.

    A column with a declared form (``date:%d.%m.%Y``) comes as the values that its texts stand for.

    With a ``beat``, a pipe that is quiet for so many seconds gives a frame without rows, again and again. ``types`` are
    declared; of other columns the first lines tell. ``unseen`` are the columns that no event had a value in, so far.
    """

    def __init__(
        self,
        path: str,
        columns: Sequence[str],
        *,
        strict: bool = False,
        chunk: int = CHUNK,
        beat: float | None = None,
        types: Mapping[str, str] | None = None,
    ) -> None:
        register(path)
        self.path = path
        self.columns = list(columns)
        self.strict = strict
        self.bad = 0
        self.first_bad: list[int] = []  # numbers of the first lines (of Parquet: events) that could not be read
        self._chunk = chunk
        self._beat = beat
        self.waiting = False  # for the next bytes: the one moment when a stop signal may break in
        self._lines = 0
        known = declarations(types)
        self._forms = {name: kind for name, kind in known.items() if kind.format is not None}
        self._types = {n: pl.String() if n in self._forms else DTYPES[kind.type] for n, kind in known.items()}
        self._seen = 0  # events, for their numbers
        self._header = 0  # lines before the first event
        self.unseen = set(self.columns)
        self._schema: dict[str, pl.DataType] | None = None

    def __iter__(self) -> Iterator[pl.DataFrame]:
        for raw in self._frames():
            frame = self._formed(raw)
            self.unseen -= {n for n in self.unseen if frame.height and frame[n].null_count() < frame.height}
            yield frame

    def _formed(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Columns with a declared form as what they stand for; an event that has another form is unusable."""
        lost = pl.repeat(False, frame.height, eager=True)
        values = {}
        for name, kind in self._forms.items():
            if name in frame.columns and frame.height:
                values[name] = fitted(frame[name], kind).alias(name)
                lost |= values[name].is_null() & frame[name].is_not_null()
        if self.strict and lost.any():
            at = self._seen + int(lost.arg_max() or 0) + 1
            raise InputError("a value has not the form that is declared", where=f"{self.path}, event {at:,}")
        for at in lost.arg_true().head(FIRST).to_list():
            self._mark(self._seen + at + 1 + self._header)
        self._seen += frame.height
        self.bad += int(lost.sum()) - min(FIRST, int(lost.sum()))
        formed = frame.with_columns(values.values())
        return formed.with_columns(pl.when(~lost).then(pl.all()).name.keep()) if lost.any() else formed

    def _mark(self, line: int) -> None:
        """A line that cannot be read: counted, and the first ones located."""
        self.bad += 1
        if len(self.first_bad) < FIRST:
            self.first_bad.append(line)

    def _frames(self) -> Iterator[pl.DataFrame]:
        kind = "ndjson" if self.path == "-" else format_of(self.path)
        if kind == "parquet":
            yield from self._parquet()
            return
        with _open(self.path) as stream:
            header = b""
            if kind == "csv":
                header = stream.readline()
                self._header = 1
            for lines in self._whole_lines(stream, _end_of_rows if kind == "csv" else _end_of_lines):
                if lines is None:
                    yield pl.DataFrame()
                    continue
                frame = self._csv(header + lines) if kind == "csv" else self._ndjson(lines)
                self._lines += frame.height
                if frame.height:
                    yield frame

    def _parquet(self) -> Iterator[pl.DataFrame]:
        try:
            frame = pl.scan_parquet(self.path).select(self.columns)
            rows = int(frame.select(pl.len()).collect().item())
            for at in range(0, rows, 1 << 17):
                yield frame.slice(at, 1 << 17).collect()
        except (pl.exceptions.PolarsError, OSError):
            raise InputError(
                "cannot be read as Parquet", where=self.path, hint=f"expected columns {', '.join(self.columns)}"
            ) from None

    def _whole_lines(self, stream: IO[bytes], end: Callable[[bytes], int]) -> Iterator[bytes | None]:
        """What has arrived, cut behind its last line end: a quiet pipe is not kept waiting. None: nothing came."""
        read = getattr(stream, "read1", stream.read)
        rest: list[bytes] = []
        while True:
            if not self._ready(stream):
                yield None
                continue
            self.waiting = True
            try:
                data = read(self._chunk)
            except (OSError, EOFError):
                raise InputError("the input broke off", where=self.path) from None
            finally:
                self.waiting = False
            if not data:
                break
            if b"\n" not in data:
                rest.append(data)
                if sum(map(len, rest)) > LONGEST:
                    raise too_long(self.path)
                continue
            data = b"".join([*rest, data])
            cut = end(data)
            if cut:
                yield data[:cut]
            rest = [data[cut:]]
        last = b"".join(rest)
        if last.strip():
            yield last

    def _ready(self, stream: IO[bytes]) -> bool:
        """Whether something came within a beat, or nobody minds waiting."""
        if self._beat is None or self.path != "-" or os.name != "posix":
            return True
        self.waiting = True
        try:
            return bool(select([stream.fileno()], [], [], self._beat)[0])
        except (OSError, ValueError):
            return True  # no pipe: reading says what is wrong, if anything is
        finally:
            self.waiting = False

    def _csv(self, text: bytes) -> pl.DataFrame:
        try:
            frame = pl.read_csv(text, infer_schema=False, truncate_ragged_lines=not self.strict, quote_char='"')
        except pl.exceptions.PolarsError:
            frame = self._csv_line_by_line(text)
        require_columns(self.columns, frame.columns, self.path, error=InputError)
        return frame.select(self.columns)

    def _csv_line_by_line(self, text: bytes) -> pl.DataFrame:
        """The slow road for a chunk with something wrong in it: a line that is no row becomes a row of nulls."""
        head, *lines = text.decode(errors="replace").rstrip("\r\n").split("\n")
        names = next(csv.reader([head]), [])
        rows: list[list[str | None]] = []
        for at, line in enumerate(_rows(lines, len(names))):
            cells = _cells(line.rstrip("\r"))
            if cells is None or len(cells) != len(names):
                if self.strict:
                    raise InputError("not a row of this CSV", where=f"{self.path}, line {self._lines + at + 2:,}")
                self._mark(self._lines + at + 2)
                cells = []
            rows.append([cell or None for cell in cells] or [None] * len(names))
        return pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String), orient="row")

    def _ndjson(self, lines: bytes) -> pl.DataFrame:
        schema = self._schema or self._guess(lines)
        try:
            frame = pl.read_ndjson(io.BytesIO(lines), schema=schema)
            ends = int(np.count_nonzero(np.frombuffer(lines, np.uint8) == NEWLINE))  # thrice as fast as bytes.count
            if frame.height == ends + (not lines.endswith(b"\n")) and first_part(frame, lines) is None:
                return frame
        except pl.exceptions.PolarsError:
            pass
        return self._line_by_line(lines, schema)

    def _guess(self, lines: bytes) -> dict[str, pl.DataType]:
        """The type of each column, by the first lines that can be read."""
        seen: dict[str, set[type]] = {name: set() for name in self.columns}
        for line in lines.split(b"\n", 200)[:200]:
            record = record_of(line)
            for name in self.columns:
                if record is not None and record.get(name) is not None:
                    seen[name].add(type(record[name]))
        kinds: dict[frozenset[type], pl.DataType] = {
            frozenset({int}): pl.Int64(),
            frozenset({float}): pl.Float64(),
            frozenset({int, float}): pl.Float64(),
            frozenset({bool}): pl.Boolean(),
        }
        guessed = {name: kinds.get(frozenset(types), pl.String()) for name, types in seen.items()}
        self._schema = {name: self._types.get(name, kind) for name, kind in guessed.items()}
        return self._schema

    def _line_by_line(self, lines: bytes, schema: dict[str, pl.DataType]) -> pl.DataFrame:
        """The slow road for a chunk with something wrong in it."""
        rows: list[dict[str, object]] = []
        for at, line in enumerate(lines.rstrip(b"\n").split(b"\n")):
            record = record_of(line)
            if record is None:
                if self.strict:
                    raise InputError("not a JSON object", where=f"{self.path}, line {self._lines + at + 1:,}")
                self._mark(self._lines + at + 1)
                record = {}
            if any(isinstance(record.get(name), list | dict) for name in schema):
                if self.strict:
                    where = f"{self.path}, line {self._lines + at + 1:,}"
                    raise InputError("an object or a list where a single value is expected", where=where)
                self._mark(self._lines + at + 1)
                record = {}
            rows.append({name: _fitting(record.get(name), schema[name]) for name in schema})
        return pl.DataFrame(rows, schema=schema, strict=False)


def _end_of_lines(data: bytes) -> int:
    """Behind the last line end."""
    return data.rfind(b"\n") + 1


def _end_of_rows(data: bytes) -> int:
    """Behind the last line end that no quotes are open at: a text of several lines must not become rows of its own.

    Where that would be far back a quote is missing, and lines are rows again.
    """
    last = end = data.rfind(b"\n") + 1
    is_open = data.count(b'"', 0, end) % 2 == 1
    for _ in range(FAR):
        if not is_open:
            return end
        before = data.rfind(b"\n", 0, end - 1) + 1
        is_open ^= data.count(b'"', before, end) % 2 == 1
        end = before
    return last


def _rows(lines: list[str], width: int) -> Iterator[str]:
    """Rows of a CSV: a line whose quotes stay open goes on to where they close, if that makes a row."""
    at = 0
    while at < len(lines):
        line, at = lines[at], at + 1
        if line.count('"') % 2:
            close = next((i for i in range(at, min(at + FAR, len(lines))) if lines[i].count('"') % 2), at - 1)
            joined = "\n".join([line, *lines[at : close + 1]])
            if close >= at and len(_cells(joined) or ()) == width:
                line, at = joined, close + 1
        yield line


def _cells(line: str) -> list[str] | None:
    try:
        return next(csv.reader(io.StringIO(line, newline=""), strict=True), None)
    except csv.Error:
        return None


def _fitting(value: object, dtype: pl.DataType) -> object:
    if dtype == pl.String:
        return value if value is None or isinstance(value, str) else _text(value)
    if isinstance(value, bool) != (dtype == pl.Boolean):
        return None
    if dtype == pl.Int64 and isinstance(value, float) and not value.is_integer():
        return None
    if not isinstance(value, (int, float, bool)):
        return None
    return value if abs(value) < (2**63 if dtype == pl.Int64 else 10**300) else None


def _text(value: object) -> str:
    """What is no text, as the fast road writes it: 7, 7.0 and 7e0 are one person, whatever stands in other lines."""
    if isinstance(value, float):
        return np.format_float_positional(value, trim="-")
    return json.dumps(value)


def _open(path: str) -> IO[bytes]:
    if path == "-":
        return sys.stdin.buffer
    try:
        return cast(IO[bytes], gzip.open(path)) if Path(path).suffix == ".gz" else Path(path).open("rb")
    except OSError as error:
        raise InputError(f"cannot be opened ({error.strerror})", where=path) from None


def _created(path: Path, mode: str) -> IO[bytes]:
    """A file to write to, compressed if its name says so; without the time of writing, which would tell when."""
    if path.suffix != ".gz":
        return path.open(mode)
    return cast(IO[bytes], gzip.GzipFile(path, mode, mtime=0))


class Sink:
    """Released rows out, batch by batch: NDJSON, or CSV by the file's name. A resumed stream appends."""

    def __init__(self, path: str, *, append: bool = False) -> None:
        self._kind = "ndjson" if path in ("-", os.devnull) else format_of(path)
        if self._kind == "parquet":
            raise UsageError("a stream is written as NDJSON or CSV", where=path)
        refuse(path)
        self._path, self._append = path, append
        if path not in ("-", os.devnull) and not os.access(Path(path).parent, os.W_OK):
            raise OutputError("cannot be written (no such folder)", where=path, hint="does the folder exist?")
        self._out: IO[bytes] | None = sys.stdout.buffer if path == "-" else None
        self._new = True

    def _opened(self) -> IO[bytes]:
        """The file, made when there is something to write: a stream that is refused leaves nothing behind."""
        if self._out is None:
            file = Path(self._path)
            self._new = not (self._append and file.is_file() and file.stat().st_size)
            try:
                self._out = _created(file, "ab" if self._append else "wb")
            except OSError as error:
                raise OutputError(f"cannot be written ({error.strerror})", where=self._path) from None
        return self._out

    def write(self, frame: pl.DataFrame) -> None:
        """One batch."""
        out = self._opened()
        try:
            if self._kind == "csv":
                out.write(frame.write_csv(include_header=self._new).encode())
            else:
                out.write(frame.write_ndjson().encode())
            out.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            raise OutputError(f"cannot be written ({error.strerror})", where="output") from None
        self._new = False

    def close(self, *, whole: bool = True) -> None:
        """End it; a stream that came to its ``whole`` end leaves a file, even if nothing was released."""
        if self._path != "-" and (whole or self._out is not None):
            self._opened().close()

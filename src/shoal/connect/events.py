"""Events by the batch: NDJSON and CSV (also compressed, also from a pipe) and Parquet, as they come.

A line that cannot be read becomes a row of nulls: its event is withheld and counted, and the stream goes on. With
``strict`` it stops there and says which line it was, never what stood in it.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Literal

import polars as pl

from shoal.connect.csv_shape import named
from shoal.connect.files import LONGEST, too_long
from shoal.connect.formats import lines_of
from shoal.connect.ndjson import Flat, record_of
from shoal.connect.pipes import Input, is_pipe, opened
from shoal.connect.typed_lines import Needs, TypedLines
from shoal.connect.types import declarations, fitted
from shoal.core.columns import require_columns
from shoal.core.errors import InputError, UsageError
from shoal.core.originals import register
from shoal.core.schema import Type

CHUNK = 4 << 20  # what is made of so many bytes stays near the processor
FAR = 1000  # lines that one quoted text may take
NEWLINE = 10
Format = Literal["ndjson", "csv"]
FIRST = 3  # unreadable lines whose numbers are told
# what JSON has no type for comes as text, and is read as declared by whoever knows the policy
DTYPES: dict[Type, pl.DataType] = {
    "int": pl.Int64(), "float": pl.Float64(), "bool": pl.Boolean(),
    "str": pl.String(), "date": pl.String(), "datetime": pl.String(),
}  # fmt: skip


class Events:
    """A source of frames with the columns asked for. ``bad`` counts lines that could not be read.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = f"{folder}/e.ndjson"
    ...     _ = Path(path).write_text('{"time": 1, "who": "ada"}\\nno record\\n')
    ...     source = Events(path, ["time", "who"])
    ...     [frame.rows() for frame in source], source.bad
    ([[(1, 'ada'), (None, None)]], 1)

    A column with a declared form (``date:%d.%m.%Y``) comes as the values that its texts stand for.

    With a ``beat``, a pipe that is quiet for so many seconds gives a frame without rows, again and again. ``types`` are
    declared; of other columns the first lines tell, and ``needs`` says what becomes of a value of another type.
    ``unseen`` are the columns that no event had a value in, so far.
    ``kind`` says what the lines are where no name does; without it the first line of a pipe tells. With ``follow``, a
    file is read on as it grows.
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
        kind: Format | None = None,
        follow: bool = False,
        needs: Needs | None = None,
    ) -> None:
        register(path)
        self.path = path
        self.columns = list(columns)
        self.strict = strict
        self.bad = 0
        self.first_bad: list[int] = []  # numbers of the first lines (of Parquet: events) that could not be read
        self._chunk = chunk
        self._beat = beat
        self._format, self._follow = kind, follow
        self._input: Input | None = None
        self._separator = ","
        self._rows_end: Callable[[bytes], int] | None = None  # where rows end; also tells CSV from NDJSON
        self._lines = 0
        known = declarations(types)
        self._forms = {name: kind for name, kind in known.items() if kind.format is not None}
        self._types = {n: pl.String() if n in self._forms else DTYPES[kind.type] for n, kind in known.items()}
        # a declared form is judged by itself, behind this
        self._kinds: dict[str, Type | None] = {n: k.type for n, k in known.items() if n not in self._forms}
        loose = {name for name in self.columns if name not in known}
        self._needs = needs or Needs(set(known), loose, set())
        self._seen = 0  # events, for their numbers
        self._header = 0  # lines before the first event
        self.unseen = set(self.columns)
        self._typed: TypedLines | None = None
        self._mixed: set[str] = set()  # columns of texts that other single values stand among
        self._flat: Flat | None = None

    @property
    def waiting(self) -> bool:
        """Whether it waits for the next bytes: the one moment when a stop signal may break in."""
        return self._input is not None and self._input.waiting

    def __iter__(self) -> Iterator[pl.DataFrame]:
        for raw in self._frames():
            frame = self._formed(raw)
            # a column that never has a value is told at the end: most likely its name is wrong
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
        # no part of such an event is used
        return formed.with_columns(pl.when(~lost).then(pl.all()).name.keep()) if lost.any() else formed

    def _mark(self, line: int) -> None:
        """A line that cannot be read: counted, and the first ones located."""
        self.bad += 1
        if len(self.first_bad) < FIRST:
            self.first_bad.append(line)

    def _frames(self) -> Iterator[pl.DataFrame]:
        kind = self._kind()
        if kind == "parquet":
            yield from self._parquet()
            return
        with opened(self.path, size=self._chunk, beat=self._beat, follow=self._follow) as stream:
            self._input = stream
            header = b""
            for lines in self._whole_lines(stream):
                if lines is None:
                    # an empty frame: nothing came within a beat, and the clock of waiting events may go on
                    yield pl.DataFrame()
                    continue
                if not self._header and self._rows_end is _end_of_rows:  # the first line of a CSV
                    header, lines = self._cut(lines)
                if not lines:
                    continue
                for frame in [self._csv(header + lines)] if self._header else self._ndjson(lines):
                    self._lines += frame.height
                    if frame.height:
                        yield frame

    def _kind(self) -> str:
        """What the lines are; of a pipe that nobody named, its first line tells later."""
        if self._format is not None:
            kind: str = self._format
        elif is_pipe(self.path) or self.path == os.devnull:
            kind = "unknown"
        else:
            kind = lines_of(self.path)
            self._separator = "\t" if ".tsv" in self.path else ","
        if kind == "excel":
            raise UsageError("a workbook is no stream of events", where=self.path, hint="save it as CSV")
        if self._follow and is_pipe(self.path):
            raise UsageError("a pipe is read until it ends anyway", where=self.path, hint="leave --follow out")
        if self._follow and kind == "parquet":
            raise UsageError("a Parquet file does not grow", where=self.path, hint="leave --follow out")
        self._rows_end = {"csv": _end_of_rows, "unknown": None}.get(kind, _end_of_lines)
        return kind

    def _told(self, data: bytes) -> Callable[[bytes], int]:
        """CSV if the first line names the columns we look for, else NDJSON."""
        # without the mark that some programs put before UTF-8
        first = data.lstrip(b"\xef\xbb\xbf \r\n\t").split(b"\n", 1)[0]
        if first.startswith(b"{"):
            return _end_of_lines
        names = _cells(first.decode(errors="replace").rstrip("\r")) or []
        return _end_of_rows if self.columns and set(self.columns) <= set(names) else _end_of_lines

    def _cut(self, lines: bytes) -> tuple[bytes, bytes]:
        """The header of a CSV, and what comes after it."""
        self._header = 1
        header, end, rest = lines.removeprefix(b"\xef\xbb\xbf").partition(b"\n")
        return header + (end or b"\n"), rest

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

    def _whole_lines(self, stream: Input) -> Iterator[bytes | None]:
        """What has arrived, cut behind its last line end: a quiet pipe is not kept waiting. None: nothing came."""
        rest: list[bytes] = []
        while True:
            data = stream.read()
            if data is None:
                yield None
                continue
            if not data:
                break
            if b"\n" not in data:
                rest.append(data)
                if sum(map(len, rest)) > LONGEST:
                    raise too_long(self.path)
                continue
            data = b"".join([*rest, data])
            self._rows_end = self._rows_end or self._told(data)
            cut = self._rows_end(data)
            if cut:
                yield data[:cut]
            rest = [data[cut:]]
            if len(rest[0]) > LONGEST:
                raise too_long(self.path)
        last = b"".join(rest)
        if last.strip():
            self._rows_end = self._rows_end or self._told(last)
            yield last

    def _csv(self, text: bytes) -> pl.DataFrame:
        try:
            frame = pl.read_csv(
                text,
                infer_schema=False,
                # a line that is too long is located by the slow road if one asks for it
                truncate_ragged_lines=not self.strict,
                quote_char='"',
                separator=self._separator,
            )
            frame = named(frame, text, self._separator)
        except pl.exceptions.PolarsError:
            frame = self._csv_line_by_line(text)
        require_columns(self.columns, frame.columns, self.path, error=InputError)
        return frame.select(self.columns)

    def _csv_line_by_line(self, text: bytes) -> pl.DataFrame:
        """The slow road for a chunk with something wrong in it: a line that is no row becomes a row of nulls."""
        head, *lines = text.decode(errors="replace").rstrip("\r\n").split("\n")
        names = next(csv.reader([head.rstrip("\r")], delimiter=self._separator), [])
        rows: list[list[str | None]] = []
        for at, line in enumerate(_rows(lines, len(names), self._separator)):
            cells = _cells(line.rstrip("\r"), self._separator)
            if cells is None or len(cells) != len(names):
                if self.strict:
                    raise InputError("not a row of this CSV", where=f"{self.path}, line {self._lines + at + 2:,}")
                self._mark(self._lines + at + 2)
                cells = []
            rows.append([cell or None for cell in cells] or [None] * len(names))
        return pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String), orient="row")

    def _ndjson(self, lines: bytes) -> Iterator[pl.DataFrame]:
        """Frames of some lines: more than one where a column becomes another one in between."""
        if self._typed is None:
            self._open(self._guess(lines))
        rest: list[bytes] | None = None
        while lines if rest is None else rest:
            assert self._typed is not None
            assert self._flat is not None
            frame = self._flat.read(b"\n".join(rest) if rest else lines)
            if frame is not None:
                yield self._as_typed(frame)
                return
            rest = rest or lines.rstrip(b"\n").split(b"\n")
            frame = self._typed.read(rest)
            if frame is None:
                frame = self._line_by_line(rest)
            rest = rest[frame.height :]
            yield frame

    def _guess(self, lines: bytes) -> dict[str, pl.DataType]:
        """The type of each column, by the first lines that can be read."""
        seen: dict[str, set[type]] = {name: set() for name in self.columns}
        for line in islice(io.BytesIO(lines), 200):
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
        # what is published as it came cannot be of two kinds in one column; and 7 is not 7.0
        several = {name for name, types in seen.items() if len(types) > 1 or float in types}
        guessed |= {name: pl.Binary() for name in several & set(self._needs.free)}
        self._mixed = {n for n, types in seen.items() if types - {str} and self._kinds.get(n) in (None, "str")}
        return {name: self._types.get(name, kind) for name, kind in guessed.items()}

    def _open(self, schema: dict[str, pl.DataType]) -> None:
        """From here on lines are read as this."""
        self._typed = TypedLines(schema, self._kinds, self._needs)
        self._flat = Flat({name: self._plainly(name, dtype) for name, dtype in schema.items()})

    def _plainly(self, name: str, dtype: pl.DataType) -> pl.DataType | Literal["spelled", "written"]:
        """What the compiled loop takes in a column."""
        if dtype == pl.Binary():
            return "written"
        return "spelled" if dtype == pl.String() and name in self._mixed else dtype

    def _as_typed(self, frame: pl.DataFrame) -> pl.DataFrame:
        """JSON values as such: not texts, and a missing one missing."""
        assert self._typed is not None
        written = [name for name, dtype in self._typed.schema.items() if dtype == pl.Binary()]
        if not written:
            return frame
        there = {n: pl.when(pl.col(n) != "null").then(pl.col(n)) for n in written}
        return frame.with_columns(text.cast(pl.Binary).alias(name) for name, text in there.items())

    def _line_by_line(self, lines: Sequence[bytes]) -> pl.DataFrame:
        """The slow road for lines with something wrong in them: up to the one that makes a column another one."""
        typed, needs = self._typed, self._needs
        assert typed is not None
        rows: list[dict[str, object]] = []
        for at, line in enumerate(lines):
            record = record_of(line)
            if record is None:
                self._refuse(self._lines + at + 1, "not a JSON object")
                record = {}
            unfit = [name for name in typed.schema if not typed.fits(name, record.get(name))]
            nested = any(isinstance(record[name], list | dict) for name in unfit if name in needs.loose)
            if nested or any(name in needs.held for name in unfit):
                self._refuse(self._lines + at + 1, "a value that is not of its column's type", "compare it with `type`")
                record, unfit = {}, []
            if other := {name: _wider(name, needs) for name in unfit if name in needs.loose}:
                self._mixed |= set(other)
                self._open({**typed.schema, **other})
                break
            rows.append({name: None if name in unfit else record.get(name) for name in typed.schema})
        return typed.frame({name: [row[name] for row in rows] for name in typed.schema})

    def _refuse(self, line: int, why: str, hint: str | None = None) -> None:
        """A line that cannot be read: with ``strict`` the end."""
        if self.strict:
            raise InputError(why, where=f"{self.path}, line {line:,}", hint=hint)
        self._mark(line)


def _wider(name: str, needs: Needs) -> pl.DataType:
    return pl.Binary() if name in needs.free else pl.String()


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


def _rows(lines: list[str], width: int, separator: str) -> Iterator[str]:
    """Rows of a CSV: a line whose quotes stay open goes on to where they close, if that makes a row."""
    at = 0
    while at < len(lines):
        line, at = lines[at], at + 1
        if line.count('"') % 2:
            close = next((i for i in range(at, min(at + FAR, len(lines))) if lines[i].count('"') % 2), at - 1)
            joined = "\n".join([line, *lines[at : close + 1]])
            if close >= at and len(_cells(joined, separator) or ()) == width:
                line, at = joined, close + 1
        yield line


def _cells(line: str, separator: str = ",") -> list[str] | None:
    try:
        return next(csv.reader(io.StringIO(line, newline=""), strict=True, delimiter=separator), None)
    except csv.Error:
        return None

"""Files in and out: CSV (also compressed), Parquet, NDJSON, and ``-`` for standard input and output; workbooks in.

Reading loses nothing: texts become values only where no digit is lost (see :mod:`shoal.connect.types`). A file is
written beside its place, read back and compared, and renamed when it is whole, so that nobody ever reads half of one;
and never onto a file that was read.
"""

from __future__ import annotations

import errno
import gzip
import hashlib
import io
import os
import sys
import tempfile
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO
from typing import cast as static_cast

import polars as pl

from shoal.connect.csv_shape import header_of, named, shape
from shoal.connect.formats import Format, file_of, format_of, parts_of
from shoal.connect.ndjson import as_json, first_part
from shoal.connect.propose import infer
from shoal.connect.stack import stacked
from shoal.connect.types import Tell, cast, declarations, quiet
from shoal.core.columns import require_columns, require_once
from shoal.core.errors import InputError, OutputError, UsageError
from shoal.core.originals import refuse, register

# a compressed file may grow to ROOM bytes, or EXPANSION times: tables compress up to thirtyfold, bombs a thousandfold
ROOM, EXPANSION = 1 << 28, 200
PIECE = 1 << 22
LONGEST = 1 << 26  # bytes of one line of a stream: more is no record, and would fill the memory
SMALL = (pl.Int8, pl.Int16, pl.UInt8, pl.UInt16)
COMPARED = (pl.String, pl.Boolean, pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64)

TO_UTF8 = "convert the file to UTF-8, for example with iconv -f WINDOWS-1252 -t UTF-8, and look at its letters"


def read(
    path: str,
    *,
    separator: str | None = None,
    types: Mapping[str, str] | None = None,
    exact: Collection[str] = frozenset(),
    kind: Format | None = None,
    tell: Tell = quiet,
) -> pl.DataFrame:
    """A table from a file; errors say what is wrong and where, never a cell.

    ``types`` declares columns: ``int``, ``float``, ``str``, ``bool``, ``date``, ``datetime``, with the form of their
    texts after a colon (``date:%d.%m.%Y``, ``datetime:ms``, ``float:,``). Other texts become numbers, dates or times
    where every value is one and no digit is lost; ``tell`` hears of what is not plain to see. Columns that must come
    out ``exact`` stay text unless each value is written again as it stood.

    A folder, or a pattern as ``data/*.csv``, is one table: its files have the same columns, and types are recognised
    over all of them. ``book.xlsx#visits`` is a sheet of a workbook, ``env:CLINIC_URL#visits`` a table of a database.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "t.csv").write_text("born,n\\n31.12.1980,7\\n")
    ...     read(f"{folder}/t.csv", types={"born": "date:%d.%m.%Y"}).rows()
    [(datetime.date(1980, 12, 31), 7)]
    """
    parts = parts_of(path)
    kind = kind or format_of(parts[0])
    if separator is not None and kind != "csv":
        raise UsageError(f"{kind} has no separator", where="--separator", hint="leave it out")
    if kind == "table":
        from shoal.connect import sql

        return sql.read(path, types=types, exact=exact, tell=tell)
    asked = declarations(types)
    frames = [cast(_table(part, kind, separator, tell), asked, part, tell) for part in parts]
    frame = frames[0] if len(frames) == 1 else stacked(frames, parts)
    return infer(frame, asked.keys(), exact, tell) if kind in ("csv", "excel") else frame


def _table(path: str, kind: Format, separator: str | None, tell: Tell = quiet) -> pl.DataFrame:
    """One file as it stands: of CSV all cells are texts."""
    raw = _bytes(path)
    if not raw.strip():
        raise InputError("the file is empty", where=path, hint="expected a header line and rows")
    try:
        if kind == "excel":
            from shoal.connect.excel import read_sheet

            return read_sheet(raw, path, tell)
        if kind == "parquet":
            return pl.read_parquet(io.BytesIO(raw))
        if kind == "ndjson":
            return read_ndjson(decoded(raw, path), path)
        return read_csv(decoded(raw, path), path, separator)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise InputError(
            f"cannot be read as {kind} ({_kind(error)})", where=path, hint="is the file whole, and of this format?"
        ) from None


def read_released(
    path: str, quasi: Iterable[str], *, separator: str | None = None, types: Mapping[str, str] | None = None
) -> pl.DataFrame:
    """A released table with the cells of its quasi columns as they read: 1e2 and 100 are one number, and two cells.

    ``types`` are of its other columns.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = write(pl.DataFrame({"age": ["1e2", "100"]}), f"{folder}/r.csv")
    ...     read_released(f"{folder}/r.csv", ["age"])["age"].to_list()
    ['1e2', '100']
    """
    # a group is what reads alike: read as numbers, 1e2 and 100 would be one group that nobody published
    texts = dict.fromkeys(quasi, "str") if format_of(parts_of(path)[0]) == "csv" else {}
    frame = read(path, separator=separator, types={**(types or {}), **texts})
    require_columns(list(types or ()), frame.columns, "--type")
    return frame


def write(frame: pl.DataFrame, path: str, *, separator: str = ",", kind: Format | None = None) -> str | None:
    """Write a table whole, or not at all; never onto a file that this command read.

    Before the file takes its place it is read back and compared with what was to be written. Gives the SHA-256 digest
    of what was compared; none for a database or standard output.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     digest = write(pl.DataFrame({"age": ["[20, 29]"]}), f"{folder}/r.csv")
    ...     Path(folder, "r.csv").read_text()
    'age\\n"[20, 29]"\\n'
    """
    kind = kind or format_of(path)
    if kind == "excel":
        raise UsageError("workbooks are read, not written", where=path, hint="write CSV, Parquet or NDJSON")
    if kind == "table":
        from shoal.connect import sql

        sql.write(frame, path)
        return None
    if path == "-":
        _to_standard_output(frame, kind, separator)
        return None
    if kind == "csv" and any(dtype.is_nested() for dtype in frame.dtypes):
        raise UsageError("CSV has no place for cells with parts", where=path, hint="write Parquet or NDJSON")
    with replacing(Path(path)) as out:
        if Path(path).suffix == ".gz":
            with gzip.open(out, "wb", compresslevel=6) as stream:
                _write(frame, static_cast(IO[bytes], stream), kind, separator)
        else:
            with out.open("wb") as stream:
                _write(frame, stream, kind, separator)
        return _compare(frame, out, path, kind, separator)


def _to_standard_output(frame: pl.DataFrame, kind: Format, separator: str) -> None:
    """Through a buffer: a writer that meets a closed pipe or a full disk would hide which of the two it was."""
    text = io.BytesIO()
    _write(frame, text, kind, separator)
    try:
        with text.getbuffer() as whole:
            for at in range(0, len(whole), PIECE):
                # by pieces, so that a reader who has gone is noticed early
                sys.stdout.buffer.write(whole[at : at + PIECE])
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        raise  # the reader has gone: the command line ends in silence
    except OSError as error:
        raise OutputError(f"cannot be written ({error.strerror})", where="standard output") from None


def _compare(frame: pl.DataFrame, part: Path, path: str, kind: Format, separator: str) -> str:
    """Read back what was written, and give its digest; a disk that lied must not leave a release behind."""
    names = [name for name, dtype in frame.schema.items() if dtype in COMPARED]
    try:
        raw = part.read_bytes()
        if kind == "parquet":
            found = pl.read_parquet(io.BytesIO(raw))
        elif not frame.height and kind == "ndjson":
            found = frame.clear()
        elif kind == "ndjson":
            # the reader of polars panics at the smaller whole numbers
            wide = {n: pl.Int64 if frame.schema[n] in SMALL else frame.schema[n] for n in names}
            found = pl.read_ndjson(io.BytesIO(decoded(raw, path)), schema=wide)
        else:
            text = decoded(raw, path)
            found = named(pl.read_csv(io.BytesIO(text), separator=separator, infer_schema=False), text, separator)
            if not frame.width:
                found = frame
        same = found.height == frame.height and all(
            found[name].cast(frame.schema[name], strict=False).eq_missing(frame[name]).all() for name in names
        )
    # what cannot be read back is not what was to be written
    except (pl.exceptions.PolarsError, InputError):
        same = False
    if not same:
        raise OutputError(
            "what was written does not read back as it should",
            where=path,
            hint="nothing was replaced; is the disk full or failing?",
        )
    return hashlib.sha256(raw).hexdigest()


def write_text(text: str, path: str) -> None:
    """Write a text whole, or not at all.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write_text("columns: {}", f"{folder}/p.yaml")
    ...     [file.name for file in Path(folder).iterdir()]
    ['p.yaml']
    """
    with replacing(Path(path)) as out:
        out.write_text(text, encoding="utf-8")


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary file beside ``path`` that takes its place when the block ends well, and vanishes otherwise.

    A file that this command read is refused: it may be the only copy of the data.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     with replacing(Path(folder, "t.txt")) as out:
    ...         _ = out.write_text("whole")
    ...     Path(folder, "t.txt").read_text()
    'whole'
    """
    refuse(path)
    try:
        # in the same folder: a rename is one step only within a file system
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    except OSError as error:
        raise OutputError(
            f"cannot be written ({error.strerror})", where=str(path), hint="does the folder exist?"
        ) from None
    os.close(handle)
    part = Path(name)
    try:
        yield part
        # the process's mask can only be read by setting it
        umask = os.umask(0)
        os.umask(umask)
        # a temporary file is its owner's alone; a release is readable like any other file
        part.chmod(0o666 & ~umask)
        part.replace(path)
    except (OSError, pl.exceptions.PolarsError) as error:
        if is_full(error):
            raise OutputError(
                "there is no room left on the disk", where=str(path), hint="make room; nothing was written"
            ) from None
        if not isinstance(error, OSError):
            raise
        raise OutputError(f"cannot be written ({error.strerror or _kind(error)})", where=str(path)) from None
    finally:
        part.unlink(missing_ok=True)


def is_full(error: Exception) -> bool:
    """Whether the disk is full, or what a user may put there: polars says it in words only.

    >>> is_full(OSError(errno.ENOSPC, "")), is_full(pl.exceptions.ComputeError("No space left on device"))
    (True, True)
    """
    known = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
    return known or any(words in str(error) for words in ("No space left", "quota exceeded"))


def _bytes(path: str) -> bytes:
    file = file_of(path)
    register(file)
    try:
        return sys.stdin.buffer.read() if path == "-" else Path(file).read_bytes()
    except FileNotFoundError:
        raise InputError("there is no such file", where=path, hint="check the path") from None
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror})", where=path) from None


def damaged(path: str) -> InputError:
    """A compressed file that cannot be read to its end.

    >>> damaged("p.csv.gz").hint
    'is the download complete?'
    """
    return InputError("the compressed file is damaged", where=path, hint="is the download complete?")


def decoded(raw: bytes, path: str, before: int = 0) -> bytes:
    """Uncompressed, and checked to be UTF-8 without making a string of it; of a piece, ``before`` lines are added."""
    # by its bytes, not its name: a file may be compressed under any
    if raw[:2] == b"\x1f\x8b":
        try:
            raw = _unzipped(raw, path)
        except (OSError, EOFError, zlib.error):
            raise damaged(path) from None
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1 + before
        raise InputError("not UTF-8 text", where=f"{path}, line {line}", hint=TO_UTF8) from None
    return raw.removeprefix(b"\xef\xbb\xbf")


def too_long(path: str) -> InputError:
    """The error of a stream whose line does not end."""
    return InputError(
        f"a line is longer than {LONGEST:,} bytes",
        where=path,
        hint="expected a record per line: is the file of this format, and of which line ends?",
    )


def _unzipped(raw: bytes, path: str) -> bytes:
    """Decompressed piece by piece, so that a small file cannot fill the memory."""
    most = max(ROOM, EXPANSION * len(raw))
    out = bytearray()
    with gzip.GzipFile(fileobj=io.BytesIO(raw)) as stream:
        while piece := stream.read(PIECE):
            out += piece
            if len(out) > most:
                raise InputError(
                    f"the compressed file grows beyond {most:,} bytes",
                    where=path,
                    hint="tables do not compress like this; if it is one, decompress it first",
                )
    return bytes(out)


def read_ndjson(raw: bytes, path: str) -> pl.DataFrame:
    """Objects stay objects: a column that holds texts and objects would become text, with all that is inside."""
    frame = pl.read_ndjson(io.BytesIO(raw), infer_schema_length=None)
    # the reader skips blank lines, so rows and lines are compared without them
    lines = b"\n".join(line for line in raw.split(b"\n") if line.strip())
    at = first_part(frame, lines) if frame.height == lines.count(b"\n") + bool(lines) else None
    if at is not None:
        raise InputError(
            "a column holds objects or lists beside single values",
            where=f"{path}, record {at + 1:,}",
            hint="write one kind of value per column",
        )
    return frame


def read_csv(raw: bytes, path: str, separator: str | None, before: int = 0) -> pl.DataFrame:
    """All cells as texts; of a piece of a file, ``before`` lines of it stand between its header and this."""
    first = raw.split(b"\n", 1)[0].decode().rstrip("\r")
    chosen = separator or ("\t" if ".tsv" in path else ",")
    header = header_of(raw, chosen)
    if len(header) == 1 and separator is None:
        other = max(";\t|", key=first.count)
        if first.count(other):
            raise InputError(
                "the header is one column: the separator seems to be another",
                where=f"{path}, line 1",
                hint=f"try --separator {'TAB' if other == chr(9) else repr(other)}",
            )
    require_once(header, f"{path}, line 1")
    found = shape(raw, chosen, len(header), path, before)
    frame = named(pl.read_csv(io.BytesIO(raw), separator=chosen, infer_schema=False), raw, chosen)
    # the reader makes rows of nulls of them
    if len(found.blank) and frame.height == found.rows:
        blank = pl.Series(found.blank)
        frame = frame.with_row_index("\0row").filter(~pl.col("\0row").is_in(blank.implode())).drop("\0row")
    return frame


def _write(frame: pl.DataFrame, out: IO[bytes], kind: Format, separator: str) -> None:
    if kind == "parquet":
        frame.write_parquet(out)
    elif kind == "ndjson":
        as_json(frame).write_ndjson(out)
    else:
        frame.write_csv(out, separator=separator)


def _kind(error: Exception) -> str:
    """The class of a reader's error: its message may quote a cell."""
    return type(error).__name__

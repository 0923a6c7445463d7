"""A file or a folder of files as JSON records, to be continued at any record."""

from __future__ import annotations

import gzip
import hashlib
import io
from collections.abc import Iterator, Mapping
from pathlib import Path

from shoal.connect.files import LONGEST, read, too_long
from shoal.connect.formats import folder, format_of
from shoal.connect.ndjson import as_json
from shoal.core.errors import InputError

BATCH = 5_000


def files_of(path: Path) -> list[Path]:
    """A file, or the files of a folder whose format we know, by name.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "b.csv").write_text("n\\n1\\n")
    ...     [file.name for file in files_of(Path(folder))]
    ['b.csv']
    """
    if path.is_dir():
        return folder(path)
    if not path.is_file():
        raise InputError("there is no such file or folder", where=str(path))
    format_of(str(path))
    return [path]


def records(path: Path, start: int = 0, types: Mapping[str, str] | None = None) -> Iterator[list[bytes]]:
    """Batches of records from number ``start`` on: NDJSON line by line, CSV and Parquet as a whole.

    An NDJSON line is handed on as it stands, readable or not: the worker withholds what it cannot read, and a pointer
    to it goes to the dead letters.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "t.csv").write_text("n\\n1\\n2\\n")
    ...     list(records(Path(folder, "t.csv"), start=1))
    [[b'{"n":2}']]
    """
    if format_of(str(path)) == "ndjson":
        yield from _lines(path, start)
        return
    frame = read(str(path), types=types)
    for part in frame.slice(start).iter_slices(BATCH):
        out = io.BytesIO()
        as_json(part).write_ndjson(out)
        yield out.getvalue().splitlines()


def head_of(path: Path) -> str:
    """A short name of how a file begins: a file that was replaced must not be continued in its middle.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder, "t.csv")
    ...     _ = file.write_text("n\\n1\\n")
    ...     before = head_of(file)
    ...     _ = file.write_text("n\\n1\\n2\\n")
    ...     head_of(file) == before
    True
    """
    try:
        with path.open("rb") as stream:
            return hashlib.blake2b(stream.read(4096).split(b"\n", 1)[0], digest_size=8).hexdigest()
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror})", where=str(path)) from None


def _lines(path: Path, start: int) -> Iterator[list[bytes]]:
    batch: list[bytes] = []
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as stream:
            # one line without end must not fill the memory
            for number, line in enumerate(iter(lambda: stream.readline(LONGEST + 1), b"")):
                if len(line) > LONGEST:
                    raise too_long(str(path))
                if number < start:
                    continue
                batch.append(line.rstrip(b"\r\n"))
                if len(batch) == BATCH:
                    yield batch
                    batch = []
    except (OSError, EOFError):
        raise InputError("the input broke off", where=str(path)) from None
    if batch:
        yield batch

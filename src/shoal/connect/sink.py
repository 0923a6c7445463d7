"""Released rows out, batch by batch: NDJSON or CSV, also compressed; and lines for the operator beside them.

What was written can be cut back to a :class:`Mark`: a stream that died goes on from its last checkpoint, and what it
wrote after that is written again, once.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import stat
import sys
from pathlib import Path
from typing import IO, Literal

import msgspec
import polars as pl

from shoal.connect.formats import named_lines
from shoal.connect.json_out import json_lines
from shoal.core.errors import InputError, OutputError, UsageError
from shoal.core.originals import refuse
from shoal.core.texts import spelled

Format = Literal["ndjson", "csv"]
MEMBER = 1 << 20  # bytes that are compressed together, unless a checkpoint comes first
TAIL = 4096
NAMES = "use .ndjson, .jsonl, .csv or .tsv, also with .gz or .zst"
NOWHERE = ("-", os.devnull)


class Mark(msgspec.Struct, frozen=True):
    """How far a file was written: its place, its length then, and a keyed digest of its last bytes.

    >>> Mark("out.ndjson", 0, b"").length
    0
    """

    name: str
    length: int
    tail: bytes


class Lines:
    """Bytes out, line by line; compressed if the name says so. ``private`` lines only their owner may read.

    >>> import tempfile
    >>> out = Lines(str(Path(tempfile.mkdtemp()) / "reasons"))
    >>> out.write(b"one\\n")
    >>> mark = out.mark(bytes(32))
    >>> out.write(b"two\\n")
    >>> out.close()
    >>> again = Lines(out.path)
    >>> again.resume(mark, bytes(32))
    True
    >>> again.write(b"three\\n")
    >>> again.close()
    >>> Path(out.path).read_bytes()
    b'one\\nthree\\n'
    """

    def __init__(self, path: str, *, append: bool = False, private: bool = False) -> None:
        refuse(path)
        self.path, self._append, self._private = path, append, private
        # told now, not when the first event is released
        if path not in NOWHERE and not os.access(Path(path).parent, os.W_OK):
            raise OutputError("cannot be written (no such folder)", where=path, hint="does the folder exist?")
        self._out: IO[bytes] | None = sys.stdout.buffer if path == "-" else None
        self._compress = {".gz": _gzipped, ".zst": _zstd}.get(Path(path).suffix) if path not in NOWHERE else None
        self._pending: list[bytes | memoryview] = []
        self.empty = True  # nothing stands in it yet

    def open(self) -> IO[bytes]:
        """The file, made when there is something to write: a stream that is refused leaves nothing behind."""
        if self._out is None:
            file = Path(self.path)
            self.empty = not (self._append and file.is_file() and file.stat().st_size)
            try:
                self._out = file.open("ab" if self._append else "wb")
                if self._private and stat.S_ISREG(os.fstat(self._out.fileno()).st_mode):
                    os.fchmod(self._out.fileno(), 0o600)  # before anything stands in it
            except OSError as error:
                raise OutputError(f"cannot be written ({error.strerror})", where=self.path) from None
        return self._out

    def write(self, data: bytes | memoryview) -> None:
        """Some lines."""
        self.open()
        self.empty = False
        if self._compress is not None:
            self._pending.append(data)
            if sum(map(len, self._pending)) < MEMBER:
                return
            data = self._packed()
        self._written(data)

    def close(self, *, whole: bool = True) -> None:
        """End it; a stream that came to its ``whole`` end leaves a file, even if nothing was written."""
        if self.path != "-" and (whole or self._out is not None):
            out = self.open()
            try:
                self._written(self._packed())
            finally:
                out.close()

    def mark(self, key: bytes) -> Mark | None:
        """All that was written, on the disk; none for what cannot be cut back, as a pipe."""
        if self.path == "-":
            sys.stdout.buffer.flush()
            return None
        out = self.open()
        self._written(self._packed())
        if not stat.S_ISREG(os.fstat(out.fileno()).st_mode):
            return None
        try:
            os.fsync(out.fileno())
        except OSError as error:
            raise OutputError(f"cannot be written ({error.strerror})", where=self.path) from None
        length = os.fstat(out.fileno()).st_size
        return Mark(str(Path(self.path).resolve()), length, _tail(Path(self.path), length, key))

    def resume(self, mark: Mark | None, key: bytes) -> bool:
        """Go on behind a mark of this file; whether it is the file of the mark and is there. Others are appended to."""
        self._append = True
        file = Path(self.path)
        if mark is None or self.path in NOWHERE or str(file.resolve()) != mark.name or not file.is_file():
            return False
        if file.stat().st_size < mark.length or _tail(file, mark.length, key) != mark.tail:
            raise InputError(
                "this is not what was written before the checkpoint: it is shorter, or was changed",
                where=self.path,
                hint="bring it back, or give another output: the stream then goes on in that one",
            )
        os.truncate(file, mark.length)
        return True

    def _packed(self) -> bytes:
        data, self._pending = b"".join(self._pending), []
        return self._compress(data) if data and self._compress is not None else b""

    def _written(self, data: bytes | memoryview) -> None:
        out = self.open()
        try:
            out.write(data)
            out.flush()
        # the reader has gone: the command line ends in silence
        except BrokenPipeError:
            raise
        except OSError as error:
            raise OutputError(f"cannot be written ({error.strerror})", where="output") from None


class Sink:
    """Released rows out: NDJSON, or CSV by the file's name, or by ``kind`` where that says nothing.

    >>> import tempfile
    >>> sink = Sink(str(Path(tempfile.mkdtemp()) / "out.csv"))
    >>> sink.write(pl.DataFrame({"age": ["[20, 30]"]}))
    >>> sink.close()
    >>> Path(sink.lines.path).read_text()
    'age\\n"[20, 30]"\\n'
    """

    def __init__(self, path: str, *, append: bool = False, kind: Format | None = None) -> None:
        self._kind = _written_as(path, kind)
        self._separator = "\t" if ".tsv" in path else ","
        self.lines = Lines(path, append=append)

    def write(self, frame: pl.DataFrame) -> None:
        """One batch."""
        self.lines.open()
        if self._kind == "csv":
            out = io.BytesIO()
            frame = frame.with_columns(spelled(frame[n]) for n, dtype in frame.schema.items() if dtype == pl.Binary)
            # one header per file, also where a stream goes on
            frame.write_csv(out, include_header=self.lines.empty, separator=self._separator)
            self.lines.write(out.getvalue())
        else:
            self.lines.write(json_lines(frame))

    def close(self, *, whole: bool = True) -> None:
        """See :class:`Lines`."""
        self.lines.close(whole=whole)


def _written_as(path: str, kind: Format | None) -> Format:
    """What is written there: the name says it, or the ``kind`` where it says nothing; never one against the other."""
    named = None if path in NOWHERE else named_lines(path)
    if named not in (None, "ndjson", "csv"):
        raise UsageError("a stream is written as NDJSON or CSV", where=path, hint=NAMES)
    if kind is not None and named not in (None, kind):
        raise UsageError(f"the name says {named}, and {kind} was asked for", where=path, hint="name it otherwise")
    if kind is None and named is None and path not in NOWHERE:
        raise UsageError(
            "cannot tell the format from the name", where=path, hint=f"{NAMES}; --output-format says it of other names"
        )
    return kind or ("csv" if named == "csv" else "ndjson")


def _gzipped(data: bytes) -> bytes:
    return gzip.compress(data, 6, mtime=0)  # the time of writing would tell when


def _zstd(data: bytes) -> bytes:
    """One frame of zstd, by polars: a column of one long text is written as it stands."""
    out = io.BytesIO()
    text = pl.DataFrame({"text": [data.decode()]})
    text.write_csv(out, include_header=False, quote_style="never", line_terminator="", compression="zstd")
    return out.getvalue()


def _tail(file: Path, length: int, key: bytes) -> bytes:
    """A keyed digest of the bytes before ``length``: enough to tell another file, and saying nothing to others."""
    with file.open("rb") as stream:
        stream.seek(max(length - TAIL, 0))
        last = stream.read(min(TAIL, length))
    return hashlib.blake2b(last, key=key[:64], digest_size=16, person=b"shoal.tail").digest()

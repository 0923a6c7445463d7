"""Bytes as they come from a file, a growing file, a pipe or a socket; gzip and zstd are told by their first bytes.

Bytes are taken from the descriptor itself: what a buffer holds back would look like silence to whoever waits for more.
"""

from __future__ import annotations

import os
import socket
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from select import select
from typing import Any

from shoal.core.errors import InputError, UsageError

GZIP, ZSTD, PARQUET = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"PAR1"
PIECE = 1 << 20
MOST_BYTES = 8 << 20  # bytes that one piece may become: a few may stand for very many
LEAST = 4  # bytes that tell a compression
BEGINS = 4096  # bytes by which a file that is followed is known again
TCP = "tcp://"

Read = Callable[[int], bytes]  # at most so many bytes, none at the end


def is_pipe(path: str) -> bool:
    """Whether what comes cannot be read twice: standard input, or a socket (``tcp://host:port``).

    >>> is_pipe("-"), is_pipe("tcp://localhost:7000"), is_pipe("visits.ndjson")
    (True, True, False)
    """
    return path == "-" or path.startswith(TCP)


class CutOffError(InputError):
    """A file that is followed is not the one it was: what its writer did not read again may be missing."""


class Input:
    """An input by pieces. ``read`` gives what has come, ``b""`` at the end, None if nothing came within a ``beat``.

    ``follow``: the end of a file is not the end; what is written to it later comes, too.

    >>> import gzip, tempfile
    >>> file = Path(tempfile.mkdtemp()) / "events"
    >>> _ = file.write_bytes(gzip.compress(b"one") + gzip.compress(b"two"))
    >>> with opened(str(file)) as stream:
    ...     stream.read(), stream.read(), stream.read()
    (b'one', b'two', b'')
    """

    def __init__(
        self, path: str, take: Read, number: int | None, *, size: int, beat: float | None, follow: bool
    ) -> None:
        self._path, self._take, self._number = path, take, number
        self._size, self._beat, self._follow = size, beat, follow
        self._pieces: Iterator[bytes] | None = None
        self._first = b""
        self._ended = False
        self._begins, self._taken = b"", 0  # the first bytes, and how many were taken
        self.waiting = False  # for the next bytes: the one moment when a stop signal may break in

    def read(self) -> bytes | None:
        """The next piece."""
        if not self._ready():
            return None
        try:
            if self._pieces is None:
                if not self._begun():
                    return None
                self._pieces = self._opened()
            piece = next(self._pieces, b"")
        except (OSError, EOFError, zlib.error):
            raise InputError("the input broke off", where=self._path) from None
        if self._follow:
            self._refuse_another()  # also before what came is handed on: it may be of another file
        if piece or not self._follow:
            return piece
        self._wait(self._beat or 0.25)
        self._pieces, self._ended = self._opened(), False
        return None

    def _begun(self) -> bool:
        """Whether there are enough bytes to tell what they are."""
        # a pipe may bring its first bytes one by one
        while len(self._first) < LEAST and not self._ended:
            self._first += self._raw()
            if self._ended and self._follow:
                self._ended = False
                self._wait(self._beat or 0.25)
                return False
        return True

    def _raw(self) -> bytes:
        self.waiting = True
        try:
            data = self._take(self._size)
        finally:
            self.waiting = False
        self._ended = not data
        if self._follow:
            self._begins += data[: BEGINS - len(self._begins)]
            self._taken += len(data)
        # a pipe gives little at a time: what else is there now comes along, because small batches cost more
        while data and is_pipe(self._path) and len(data) < self._size and self._within(0):
            more = self._take(self._size - len(data))
            if not more:
                break
            data += more
        return data

    def _refuse_another(self) -> None:
        """A file that grows keeps its beginning and its name; of any other, what comes next would be lost unsaid."""
        try:
            with Path(self._path).open("rb") as file:
                there, size = os.fstat(file.fileno()), file.seek(0, os.SEEK_END)
                file.seek(0)
                same = size >= self._taken and file.read(len(self._begins)) == self._begins
        except OSError:
            same = False
        else:
            ours = there if self._number is None else os.fstat(self._number)
            same = same and os.path.samestat(ours, there)
        if not same:
            raise CutOffError(
                f"the file was cut off or replaced while it was followed, after its first {self._taken:,} bytes",
                where=self._path,
                hint="start again to read what stands there now, from its first event; rotate by a new name instead",
            )

    def _wait(self, seconds: float) -> None:
        self.waiting = True
        try:
            time.sleep(seconds)
        finally:
            self.waiting = False

    def _bytes(self) -> Iterator[bytes]:
        first, self._first = self._first, b""
        if first:
            yield first
        while data := self._raw():
            yield data

    def _opened(self) -> Iterator[bytes]:
        if self._follow and self._first.startswith((GZIP, ZSTD)):
            raise UsageError("a compressed file cannot be followed", where=self._path, hint="leave --follow out")
        if self._first.startswith(GZIP):
            return _inflated(self._bytes())
        if self._first.startswith(ZSTD):
            return _decompressed(self._bytes(), self._path)
        if self._first.startswith(PARQUET):
            raise UsageError("Parquet cannot be read from a pipe", where=self._path, hint="give the file by its name")
        return self._bytes()

    def _ready(self) -> bool:
        """Whether something came within a beat, or nobody minds waiting."""
        # `select` waits for pipes and sockets, on POSIX only
        if self._beat is None or not is_pipe(self._path) or self._number is None or os.name != "posix":
            return True
        self.waiting = True
        try:
            return self._within(self._beat)
        finally:
            self.waiting = False

    def _within(self, seconds: float) -> bool:
        if self._number is None or os.name != "posix":
            return False
        try:
            return bool(select([self._number], [], [], seconds)[0])
        except (OSError, ValueError):
            return seconds > 0  # no pipe: reading says what is wrong, if anything is


@contextmanager
def opened(path: str, *, size: int = PIECE, beat: float | None = None, follow: bool = False) -> Iterator[Input]:
    """The input of this name; ``-`` is standard input, ``tcp://host:port`` whoever listens there."""
    if path == "-":
        take, number = _standard()
        yield Input(path, take, number, size=size, beat=beat, follow=False)
        return
    if path.startswith(TCP):
        with _connected(path) as link:
            yield Input(path, link.recv, link.fileno(), size=size, beat=beat, follow=False)
        return
    try:
        # unbuffered: what a buffer holds back looks like silence
        file = Path(path).open("rb", buffering=0)  # noqa: SIM115 - closed below
    except OSError as error:
        raise InputError(f"cannot be opened ({error.strerror})", where=path) from None
    with file:
        yield Input(path, lambda size: file.read(size) or b"", file.fileno(), size=size, beat=beat, follow=follow)


def _connected(path: str) -> socket.socket:
    host, _, port = path.removeprefix(TCP).rpartition(":")
    if not host or not (port.isascii() and port.isdigit()):
        raise UsageError("expected tcp://host:port", where=path)
    try:
        link = socket.create_connection((host.strip("[]"), int(port)))
    except (OSError, OverflowError) as error:
        why = getattr(error, "strerror", None) or "no such port"
        raise InputError(f"cannot be opened ({why})", where=path, hint="does anybody listen there?") from None
    # without the time-out of the connection: silence is not the end
    link.setblocking(True)
    return link


def _standard() -> tuple[Read, int | None]:
    buffer: Any = sys.stdin.buffer
    raw = getattr(buffer, "raw", None)
    if raw is None:  # no descriptor behind it: something that stands for standard input
        return getattr(buffer, "read1", buffer.read), None
    return (lambda size: raw.read(size) or b""), raw.fileno()


def _inflated(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Gzip, also of several members, as files are that were appended to."""
    member = zlib.decompressobj(wbits=31)
    begun = False
    for data in pieces:
        while data:
            begun = True
            out = member.decompress(data, MOST_BYTES)
            # several members stand one behind the other, and a piece may end inside one
            data = member.unused_data or member.unconsumed_tail
            if member.eof:
                data = data.lstrip(b"\0")  # padding
                member, begun = zlib.decompressobj(wbits=31), bool(data)
            if out:
                yield out
    # it ended in the middle of a member
    if begun:
        raise EOFError


def _decompressed(pieces: Iterator[bytes], path: str) -> Iterator[bytes]:
    """Zstandard, by Python itself (from 3.14 on) or by pyarrow."""
    source = _Pulled(pieces)
    try:
        from compression import zstd  # type: ignore[import-not-found, unused-ignore]

        stream: Any = zstd.ZstdFile(source)
    except ImportError:
        try:
            import pyarrow as pa
        except ImportError:
            raise UsageError(
                "zstd cannot be read here", where=path, hint="pip install pyarrow; or: zstd -dc FILE | shoal stream"
            ) from None
        stream = pa.CompressedInputStream(pa.PythonFile(source, mode="r"), "zstd")
    try:
        while data := stream.read(PIECE):
            yield bytes(data)
    finally:
        stream.close()


class _Pulled:
    """Pieces as a file to read from, for libraries that want one."""

    closed = False

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces, self._rest = pieces, b""

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False

    def read(self, size: int = -1) -> bytes:
        while not self._rest or size < 0:
            data = next(self._pieces, None)
            if data is None:
                size = max(size, len(self._rest))
                break
            self._rest += data
        found, self._rest = self._rest[:size], self._rest[size:]
        return found

    def flush(self) -> None:
        """Nothing is held back."""

    def close(self) -> None:
        self.closed = True

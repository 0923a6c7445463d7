"""Where in its input a stream stopped: a snapshot knows which file it was and how many events were read of it.

So the same command with the same file goes on behind them, and another file (or a pipe) is read from its start. The
file is recognised by its name and its first bytes, of which only a keyed digest is kept.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec
import polars as pl

from shoal.core.errors import InputError

MAGIC = b"shoal stream\n"
FIRST = 4096


class Place(msgspec.Struct, frozen=True):
    """``read`` events were read of ``name``, whose first ``length`` bytes have this digest."""

    name: str = "-"
    read: int = 0
    length: int = 0
    digest: bytes = b""

    @classmethod
    def of(cls, path: str, key: bytes) -> Place:
        """The beginning of an input."""
        if path == "-" or not Path(path).is_file():
            return cls()
        return cls(str(Path(path).resolve()), 0, *_begins(Path(path), key, FIRST))

    def after(self, before: Place | None, key: bytes) -> Place:
        """This input, behind what was already read of it; ``before`` is the place in the snapshot."""
        if before is None or before.name == "-" or before.name != self.name:
            return self
        if _begins(Path(self.name), key, before.length) != (before.length, before.digest):
            return self
        return msgspec.structs.replace(self, read=before.read)

    def moved(self, events: int) -> Place:
        """After more events."""
        return msgspec.structs.replace(self, read=self.read + events)


def _begins(path: Path, key: bytes, most: int) -> tuple[int, bytes]:
    with path.open("rb") as file:
        first = file.read(most)
    return len(first), hashlib.blake2b(first, key=key[:64], digest_size=16, person=b"shoal.place").digest()


def behind(frames: Iterable[pl.DataFrame], read: int) -> Iterator[pl.DataFrame]:
    """The frames without their first ``read`` rows."""
    for frame in frames:
        if read and frame.height:
            skipped = min(read, frame.height)
            read -= skipped
            if skipped == frame.height:
                continue
            yield frame[skipped:]
        else:
            yield frame


def packed(place: Place, state: bytes) -> bytes:
    """The content of a snapshot file."""
    head = msgspec.msgpack.encode(place)
    return MAGIC + len(head).to_bytes(4, "little") + head + state


def unpacked(data: bytes) -> tuple[Place | None, bytes]:
    """Place and state; a snapshot of an older version has no place."""
    if not data.startswith(MAGIC):
        return None, data
    start = len(MAGIC) + 4
    end = start + int.from_bytes(data[len(MAGIC) : start], "little")
    try:
        return msgspec.msgpack.decode(data[start:end], type=Place), data[end:]
    except msgspec.DecodeError:
        raise InputError("the snapshot is damaged", where="snapshot") from None

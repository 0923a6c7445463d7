"""Where in its input a stream stopped: a snapshot knows which file it was and how many events were read of it.

So the same command with the same file goes on after them, and another file (or a pipe) is read from its start. The
file is recognised by its name and its first bytes, of which only a keyed digest is kept.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec
import polars as pl

from shoal.core.sealed_state import StateFile

# bytes by which a file is recognised
FIRST = 4096


class Position(msgspec.Struct, frozen=True):
    """``read`` events were read of ``name``, whose first ``length`` bytes have this digest.

    >>> Position.of("-", bytes(32)).moved(12).read
    12
    """

    name: str = "-"
    read: int = 0
    length: int = 0
    digest: bytes = b""

    @classmethod
    def of(cls, path: str, key: bytes) -> Position:
        """The beginning of an input."""
        # a pipe is never read twice: it goes on where it is
        if path == "-" or not Path(path).is_file():
            return cls()
        return cls(str(Path(path).resolve()), 0, *_begins(Path(path), key, FIRST))

    def after(self, before: Position | None, key: bytes, *, again: bool = False) -> Position:
        """This input, after what was already read of it; ``before`` is the position in the snapshot.

        A pipe is not known by its bytes: that it brings the same events ``again``, from the first, must be said.
        """
        if before is not None and again and self.name == before.name == "-":
            return msgspec.structs.replace(self, read=before.read)
        if before is None or before.name == "-" or before.name != self.name:
            return self
        # by as many bytes as there were then: the file may have grown since
        if _begins(Path(self.name), key, before.length) != (before.length, before.digest):
            return self
        return msgspec.structs.replace(self, read=before.read)

    def moved(self, events: int) -> Position:
        """After more events."""
        return msgspec.structs.replace(self, read=self.read + events)

    def grown(self, key: bytes) -> Position:
        """The same place, of a file known by more of its first bytes than there were: an empty one is like any other.

        >>> Position().grown(bytes(32))
        Position(name='-', read=0, length=0, digest=b'')
        """
        if self.name == "-" or self.length >= FIRST or not Path(self.name).is_file():
            return self
        if _begins(Path(self.name), key, self.length) != (self.length, self.digest):
            return self
        length, digest = _begins(Path(self.name), key, FIRST)
        return msgspec.structs.replace(self, length=length, digest=digest)


def _begins(path: Path, key: bytes, most: int) -> tuple[int, bytes]:
    with path.open("rb") as file:
        first = file.read(most)
    # keyed, because a bare hash would tell whoever has the file that it was read
    return len(first), hashlib.blake2b(first, key=key[:64], digest_size=16, person=b"shoal.place").digest()


def unread(frames: Iterable[pl.DataFrame], read: int) -> Iterator[pl.DataFrame]:
    """The frames without their first ``read`` rows.

    >>> [frame.height for frame in unread([pl.DataFrame({"a": [1, 2]}), pl.DataFrame({"a": [3, 4]})], 3)]
    [1]
    """
    for frame in frames:
        if read and frame.height:
            skipped = min(read, frame.height)
            read -= skipped
            if skipped == frame.height:
                continue
            yield frame[skipped:]
        else:
            yield frame


def snapshot_file(path: Path, key: bytes) -> StateFile:
    """The file a stream's snapshots are kept in, sealed with the stream's key.

    >>> snapshot_file(Path("state"), bytes(32)).counter.name
    'state.counter'
    """
    return StateFile(path, "stream", key)

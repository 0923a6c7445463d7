"""Snapshots of streams that hold records: MessagePack, sealed (``core/sealed_state.py``): held records are kept whole.

The key never stands beside the snapshot: without it a stolen snapshot says nothing, not even whether somebody is in it.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.core.errors import UsageError
from shoal.core.release import cleaned
from shoal.core.sealed_state import seal, unseal

VERSION = 7


class Array(msgspec.Struct, frozen=True):
    """An array as plain data.

    >>> Array.of(np.arange(3)).numpy().tolist()
    [0, 1, 2]
    """

    dtype: str
    shape: list[int]
    data: bytes

    @classmethod
    def of(cls, array: NDArray[Any]) -> Array:
        """Plain data of an array."""
        return cls(array.dtype.str, list(array.shape), np.ascontiguousarray(array).tobytes())

    def numpy(self) -> NDArray[Any]:
        """The array again."""
        # a copy: what is read from bytes cannot be written to
        return np.frombuffer(self.data, np.dtype(self.dtype)).reshape(self.shape).copy()


class Content(msgspec.Struct):
    """The inside: everything a method needs to go on."""

    names: list[str]
    k: int
    learnt: list[int]
    held: bytes  # Arrow IPC
    arrays: dict[str, Array]
    numbers: dict[str, int]
    sums: dict[str, float]
    values: list[tuple[list[tuple[int, int]], list[int]]]
    promised: str  # what was promised about whom
    meant: dict[str, str] = {}  # what its columns are, by name


def packed(content: Content, method: str, key: bytes) -> bytes:
    """A snapshot as bytes, sealed. The same state gives the same bytes."""
    return seal(msgspec.msgpack.encode(content), method, key, version=VERSION)


def unpacked(snapshot: bytes, method: str, key: bytes) -> Content:
    """The content of a snapshot, or an error that says why not."""
    return msgspec.msgpack.decode(unseal(snapshot, method, key, version=VERSION), type=Content)


def refuse_other(before: Mapping[str, str], now: Mapping[str, str], where: str) -> None:
    """An error if a column that a snapshot was made with is declared otherwise now.

    >>> refuse_other({"age": "1f"}, {"age": "1f", "zip": "2a"}, "batches")
    """
    other = sorted(name for name in before if name in now and before[name] != now[name])
    if other:
        raise UsageError(
            f"the snapshot was made with other columns or hierarchies: {', '.join(other)}",
            where=where,
            hint="go back to what it was made with, or start anew",
        )


def frame_bytes(frame: pl.DataFrame) -> bytes:
    """A frame as Arrow IPC, without texts of events that are no longer in it.

    >>> frame_of(frame_bytes(pl.DataFrame({"a": [1]}))).rows()
    [(1,)]
    """
    out = io.BytesIO()
    cleaned(frame).write_ipc(out)
    return out.getvalue()


def frame_of(data: bytes) -> pl.DataFrame:
    """The frame again."""
    return pl.read_ipc(io.BytesIO(data))

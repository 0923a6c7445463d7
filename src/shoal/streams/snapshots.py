"""Snapshots of streams that hold records: versioned MessagePack, sealed, because held records are kept whole.

The key never stands beside the snapshot: without it a stolen snapshot says nothing, not even whether somebody is in it.
"""

from __future__ import annotations

import hashlib
import io
from typing import Any

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.core.errors import InputError, UsageError

VERSION = 2


class Array(msgspec.Struct, frozen=True):
    """An array as plain data."""

    dtype: str
    shape: list[int]
    data: bytes

    @classmethod
    def of(cls, array: NDArray[Any]) -> Array:
        """Plain data of an array."""
        return cls(array.dtype.str, list(array.shape), np.ascontiguousarray(array).tobytes())

    def numpy(self) -> NDArray[Any]:
        """The array again."""
        return np.frombuffer(self.data, np.dtype(self.dtype)).reshape(self.shape).copy()


class Sealed(msgspec.Struct, frozen=True):
    """The outside of a snapshot."""

    format: str
    version: int
    method: str
    content: bytes


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
    promised: str = ""  # what was promised about whom; empty in snapshots of older programs


def seal(content: Content, method: str, key: bytes) -> bytes:
    """A snapshot as bytes. The same state gives the same bytes."""
    inside = _cipher(key).encrypt(msgspec.msgpack.encode(content), [method.encode(), bytes([VERSION])])
    return msgspec.msgpack.encode(Sealed("shoal-stream", VERSION, method, inside))


def unseal(snapshot: bytes, method: str, key: bytes) -> Content:
    """The content of a snapshot, or a clear word why not."""
    from cryptography.exceptions import InvalidTag

    try:
        outside = msgspec.msgpack.decode(snapshot, type=Sealed)
    except msgspec.MsgspecError:
        raise InputError("this is not a snapshot of a stream", where="snapshot") from None
    if outside.version != VERSION:
        raise InputError(
            f"expected version {VERSION}, found {outside.version}",
            where="snapshot",
            hint="continue with the program that wrote it, or start anew",
        )
    if outside.method != method:
        raise UsageError(f"expected a snapshot of {method}, found one of {outside.method}", where="snapshot")
    try:
        inside = _cipher(key).decrypt(outside.content, [method.encode(), bytes([VERSION])])
    except InvalidTag:
        raise InputError("the snapshot cannot be opened with this key, or was changed", where="snapshot") from None
    return msgspec.msgpack.decode(inside, type=Content)


def frame_bytes(frame: pl.DataFrame) -> bytes:
    """A frame as Arrow IPC."""
    out = io.BytesIO()
    frame.write_ipc(out)
    return out.getvalue()


def frame_of(data: bytes) -> pl.DataFrame:
    """The frame again."""
    return pl.read_ipc(io.BytesIO(data))


def _cipher(key: bytes) -> Any:
    from cryptography.hazmat.primitives.ciphers.aead import AESSIV

    return AESSIV(hashlib.blake2b(b"snapshot", key=key[:64], digest_size=64, person=b"shoal.seal").digest())

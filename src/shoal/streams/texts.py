"""Texts as bytes, and their keyed fingerprints: what is only counted enters stream state as these 64 bits."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.kernels.fingerprint import distinct, fingerprint, fingerprints

Prints = NDArray[np.int64]


class Bytes(NamedTuple):
    """Many texts in one buffer; a missing text has length -1."""

    data: NDArray[np.uint8]
    starts: NDArray[np.int64]
    lengths: NDArray[np.int64]


def bytes_of(texts: pl.Series) -> Bytes:
    """The UTF-8 bytes of a column of texts."""
    lengths = texts.str.len_bytes().fill_null(0).cast(pl.Int64).to_numpy()
    joined = texts.str.join("").item() if len(texts) else ""
    data = np.frombuffer((joined or "").encode() or b"\0", np.uint8)
    starts = np.cumsum(lengths) - lengths
    missing = texts.is_null()
    return Bytes(data, starts, np.where(missing.to_numpy(), -1, lengths) if missing.any() else lengths)


class Printer:
    """Fingerprints for one purpose: the key of the deployment, made different for every column."""

    def __init__(self, key: bytes, purpose: str) -> None:
        digest = hashlib.blake2b(purpose.encode(), key=key[:64], digest_size=16, person=b"shoal.print").digest()
        self._halves = (
            np.uint64(int.from_bytes(digest[:8], "little")),
            np.uint64(int.from_bytes(digest[8:], "little")),
        )

    def one(self, text: str) -> int:
        """The fingerprint of one text."""
        raw = text.encode()
        return int(fingerprint(np.frombuffer(raw or b"\0", np.uint8), 0, len(raw), *self._halves))

    def texts(self, texts: Sequence[str]) -> Prints:
        """The fingerprints of a few texts."""
        raw = [text.encode() for text in texts]
        lengths = np.fromiter(map(len, raw), np.int64, len(raw))
        return self.of(Bytes(np.frombuffer(b"".join(raw) or b"\0", np.uint8), np.cumsum(lengths) - lengths, lengths))

    def of(self, texts: Bytes) -> Prints:
        """The fingerprints of many texts; 0 where missing."""
        out = np.empty(len(texts.starts), np.int64)
        fingerprints(texts.data, texts.starts, texts.lengths, *self._halves, out)
        return out

    def of_numbers(self, numbers: Prints) -> Prints:
        """The fingerprints of whole numbers."""
        data = np.ascontiguousarray(numbers, np.int64).view(np.uint8)
        starts = np.arange(len(numbers), dtype=np.int64) * 8
        return self.of(Bytes(data, starts, np.full(len(numbers), 8, np.int64)))

    def column(self, texts: pl.Series) -> Prints:
        """The fingerprints of a column; 0 where missing."""
        return self.of(bytes_of(texts))


def number(prints: Prints) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Codes 0, 1, … of equal fingerprints in order of appearance (-1 for 0), and the first row of each."""
    codes = np.empty(len(prints), np.int32)
    first = np.empty(len(prints), np.int32)
    return codes, first[: distinct(prints, codes, first)]

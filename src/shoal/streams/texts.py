"""Texts as bytes, and their keyed fingerprints: what is only counted enters stream state as these 64 bits."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.core.arrow import FEW as FEW_TEXTS
from shoal.core.arrow import Views, raw_texts
from shoal.kernels.shared.address import address_of, handle_of, swift
from shoal.kernels.shared.fingerprint import MOST_STEPS, chain_next, distinct, fingerprints, print_next, prints_next
from shoal.kernels.shared.views import view_prints

Prints = NDArray[np.int64]
FEW = 64  # labels of a value that are printed by one call


class Bytes(NamedTuple):
    """Many texts in one buffer; a missing text has length -1."""

    data: NDArray[np.uint8]
    starts: NDArray[np.int64]
    lengths: NDArray[np.int64]


def bytes_of(texts: pl.Series) -> Bytes:
    """The UTF-8 bytes of a column of texts.

    >>> bytes_of(pl.Series(["ab", None, "c"])).lengths.tolist()
    [2, -1, 1]
    """
    return Bytes(*raw_texts(texts))


class Printer:
    """Fingerprints for one purpose: the key of the deployment, made different for every column.

    >>> subjects, sites = Printer(bytes(32), "subject"), Printer(bytes(32), "site")
    >>> subjects.one("ada") == int(subjects.texts(["ada"])[0]), subjects.one("ada") == sites.one("ada")
    (True, False)
    """

    def __init__(self, key: bytes, purpose: str) -> None:
        digest = hashlib.blake2b(purpose.encode(), key=key[:64], digest_size=16, person=b"shoal.print").digest()
        self._halves = np.frombuffer(digest, "<u8")
        self._one: Near | None = None  # made when first asked: most printers print columns only

    def one(self, text: str) -> int:
        """The fingerprint of one text."""
        if self._one is None:
            self._one = Near(self._halves)
        return self._one.print(text.encode())

    def few(self, texts: Sequence[str]) -> list[int]:
        """The fingerprints of the few labels of one value, by one call."""
        if self._one is None:
            self._one = Near(self._halves)
        joined = "\0".join(texts)
        # a label with the mark inside would be read as two
        if not texts or joined.count("\0") >= len(texts) or len(texts) > FEW:
            return [self.one(text) for text in texts]
        return self._one.parts(joined.encode())

    def near(self, separator: str, depth: int, reverse: bool, width: int) -> Near:
        """For the paths of single values."""
        return Near(self._halves, np.frombuffer(separator.encode(), np.uint8), depth, reverse, width)

    def texts(self, texts: Sequence[str]) -> Prints:
        """The fingerprints of a few texts."""
        raw = [text.encode() for text in texts]
        lengths = np.fromiter(map(len, raw), np.int64, len(raw))
        return self.of(Bytes(np.frombuffer(b"".join(raw) or b"\0", np.uint8), np.cumsum(lengths) - lengths, lengths))

    def of(self, texts: Bytes) -> Prints:
        """The fingerprints of many texts; 0 where missing."""
        out = np.empty(len(texts.starts), np.int64)
        fingerprints(texts.data, texts.starts, texts.lengths, self._halves[0], self._halves[1], out)
        return out

    def of_numbers(self, numbers: Prints) -> Prints:
        """The fingerprints of whole numbers."""
        data = np.ascontiguousarray(numbers, np.int64).view(np.uint8)
        starts = np.arange(len(numbers), dtype=np.int64) * 8
        return self.of(Bytes(data, starts, np.full(len(numbers), 8, np.int64)))

    def column(self, texts: pl.Series) -> Prints:
        """The fingerprints of a column; 0 where missing."""
        views = Views.of(texts) if len(texts) >= FEW_TEXTS else None
        if views is None:
            return self.of(bytes_of(texts))
        out = np.empty(len(texts), np.int64)
        view_prints(views.handle, views.lengths, self._halves[0], self._halves[1], out)
        return out


class Near:
    """Fingerprints of single texts or, with a separator, of the steps of single paths: one cheap call each."""

    def __init__(
        self,
        halves: NDArray[np.uint64],
        separator: NDArray[np.uint8] | None = None,
        depth: int = 0,
        reverse: bool = False,
        width: int = 1,
    ) -> None:
        self._text = np.zeros(64, np.uint8)
        self._cuts, self._prints = np.zeros(width, np.int64), np.zeros(width, np.int64)
        self._rest: list[NDArray[Any]] = [halves.astype(np.int64)]
        if separator is None:
            self._run = swift(print_next, 0, 0)
            self._each = swift(prints_next, 0, 0)
            self._prints = np.zeros(FEW, np.int64)
            self._rest.append(self._prints)
        else:
            form, ends = np.array([depth, reverse], np.int64), np.zeros(MOST_STEPS, np.int64)
            self._rest += [separator.copy(), form, ends, self._cuts, self._prints]
            self._run = swift(chain_next, 0, 0)
        self._hand()

    def print(self, raw: bytes) -> int:
        """The fingerprint of a text."""
        self._take(raw)
        return self._run(self._address, len(raw))

    def parts(self, raw: bytes) -> list[int]:
        """The fingerprints of texts with a zero byte between them."""
        self._take(raw)
        found: list[int] = self._prints[: self._each(self._address, len(raw))].tolist()
        return found

    def chain(self, raw: bytes) -> tuple[list[int], list[int]]:
        """Of a path, most specific first: how many bytes each label keeps, and its fingerprint."""
        self._take(raw)
        count = self._run(self._address, len(raw))
        return self._cuts[:count].tolist(), self._prints[:count].tolist()

    def _take(self, raw: bytes) -> None:
        if len(raw) > len(self._text):
            self._text = np.zeros(2 * len(raw), np.uint8)
            self._hand()
        self._view[: len(raw)] = raw

    def _hand(self) -> None:
        self._view = memoryview(self._text)  # type: ignore[arg-type]
        self._handle = handle_of([self._text, *self._rest])
        self._address = address_of(self._handle)


def number(prints: Prints) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Codes 0, 1, … of equal fingerprints in order of appearance (-1 for 0), and the first row of each.

    >>> codes, first = number(np.array([9, 4, 9, 0]))
    >>> codes.tolist(), first.tolist()
    ([0, 1, 0, -1], [0, 1])
    """
    codes = np.empty(len(prints), np.int32)
    first = np.empty(len(prints), np.int32)
    return codes, first[: distinct(prints, codes, first)]

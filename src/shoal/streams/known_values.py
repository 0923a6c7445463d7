"""Values of a stream and their chains, compiled once: a value that comes again costs a look, a new one its levels.

What is kept may be forgotten at any time, because a value's labels depend on nothing but the value. A hierarchy's files
are read when the stream starts and never again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.core.arrow import pieces
from shoal.core.hierarchy.base import Hierarchy, LabelBytes
from shoal.kernels.shared.gather import gathered
from shoal.kernels.shared.labels import ASK, NONE, steps
from shoal.kernels.zero_delay.known import NEW, enter, rows_of
from shoal.streams.texts import Bytes, Printer, Prints, bytes_of

WIDEST = 13  # levels; a longer path keeps its whole and its most general steps
KEPT = 1 << 16  # values kept; then all are forgotten at once
UNKNOWN = -1
Levels8 = NDArray[np.int8]
Values = Callable[[NDArray[np.int64]], pl.Series]  # some of the distinct values of a batch


class Coded(NamedTuple):
    """One column of a batch: ``chains[codes[i]]`` are event i's fingerprints; ``text(levels)`` reads them."""

    codes: NDArray[np.int32]
    chains: Prints
    text: Callable[[Levels8], pl.Series]


class KnownValues:
    """Chains and labels of the values seen. Amortised O(levels) per new value, O(1) per known one.

    The values a hierarchy lists itself are learnt at the start and never forgotten.
    """

    def __init__(self, hierarchy: Hierarchy, printer: Printer, column: str) -> None:
        self._hierarchy = hierarchy
        self._printer = printer
        self._column = column
        self._label = hierarchy.labeller(where=column)
        self._own = 0
        self._rows, self._used = 0, 0  # values known, and bytes of their labels
        self._data = np.zeros(1024, np.uint8)
        self._chains, self._begins = np.zeros((64, 1), np.int64), np.zeros((64, 1), np.int64)
        self._sizes = np.full((64, 1), NONE, np.int64)
        self._keys = np.zeros(64, np.int64)
        self._table = np.zeros(256, np.int64)
        leaves = hierarchy.leaves() if self._label is not None else None
        if leaves is not None and len(leaves) <= KEPT:
            texts = bytes_of(leaves)
            self._learn(printer.of(texts), texts, lambda: leaves)
            self._own = self._rows

    def code(self, codes: NDArray[np.int32], prints: Prints, few: Bytes, values: Values) -> Coded:
        """A batch: ``codes`` of its distinct values (below 0: none), with their prints and bytes."""
        rows = np.empty(len(prints), np.int32)
        if rows_of(self._table, prints, rows):
            new = np.flatnonzero(rows == NEW)
            if self._rows - self._own + len(new) > KEPT:
                self._forget()
                rows_of(self._table, prints, rows)
                new = np.flatnonzero(rows == NEW)
            some = Bytes(few.data, few.starts[new], few.lengths[new])
            self._learn(prints[new], some, lambda: values(new))
            rows_of(self._table, prints, rows)
        rows[rows >= 0] = np.where(self._sizes[rows[rows >= 0], 0] < 0, UNKNOWN, rows[rows >= 0])
        own = np.where(codes >= 0, rows[np.maximum(codes, 0)], codes) if len(rows) else codes
        labels = LabelBytes(self._data, self._begins[: self._rows], self._sizes[: self._rows])
        return Coded(own, self._chains[: self._rows], lambda levels: label_texts(own, levels, labels))

    def one(self, value: str) -> tuple[list[int], list[str]]:
        """Chain and labels of one text; both empty if the hierarchy does not know it. It is not kept."""
        if self._label is not None:
            found = self._label(value)
            labels = _steps(found[:WIDEST]) if found else []
        else:
            labels = self._compiled(pl.Series([value]))[0]
        return self._printer.few(labels), labels

    def _forget(self) -> None:
        # copies: who still reads the labels of an earlier batch keeps the arrays it was given
        self._rows, own = self._own, slice(self._own)
        self._chains, self._begins = self._chains[own].copy(), self._begins[own].copy()
        self._sizes, self._keys = self._sizes[own].copy(), self._keys[own].copy()
        self._used = int((self._begins + self._sizes).max(initial=0))
        self._data = self._data[: self._used].copy()
        self._table = np.zeros(4 * _power(self._own), np.int64)
        enter(self._table, self._keys[: self._own], np.arange(self._own))

    def _learn(self, keys: Prints, few: Bytes, values: Callable[[], pl.Series]) -> None:
        labels = self._labels(few, values)
        steps(labels.data, labels.begins, labels.sizes)
        first, last = self._rows, self._rows + len(keys)
        self._reserve(last, labels)
        here, width = slice(first, last), labels.sizes.shape[1]
        self._sizes[here], self._sizes[here, :width] = NONE, labels.sizes
        self._chains[here] = 0
        there = labels.sizes.reshape(-1)
        flat = Bytes(labels.data, labels.begins.reshape(-1), there)
        self._chains[here, :width] = self._printer.of(flat).reshape(labels.sizes.shape)
        ends = np.zeros(len(there) + 1, np.int64)
        gathered(flat.data, flat.starts, there, ends, self._data[self._used :])
        self._begins[here, :width] = self._used + ends[:-1].reshape(labels.sizes.shape)
        self._used += int(ends[-1])
        self._keys[here] = keys
        enter(self._table, keys, np.arange(first, last))
        self._rows = last

    def _reserve(self, rows: int, labels: LabelBytes) -> None:
        """Room for more; at least doubled, so that a value costs its levels and no more."""
        width = max(labels.sizes.shape[1], self._sizes.shape[1])
        if rows > len(self._keys) or width > self._sizes.shape[1]:
            height = max(rows, 2 * len(self._keys)) if rows > len(self._keys) else len(self._keys)
            self._chains, self._begins = _grown(self._chains, height, width), _grown(self._begins, height, width)
            self._sizes = _grown(self._sizes, height, width, fill=NONE)
            self._keys = _grown(self._keys, height)
        bytes_more = int(np.maximum(labels.sizes, 0).sum())
        if self._used + bytes_more > len(self._data):
            self._data = _grown(self._data, len(self._data) + max(bytes_more, len(self._data)))
        if 4 * rows > len(self._table):
            self._table = np.zeros(4 * _power(rows), np.int64)
            enter(self._table, self._keys[: self._rows], np.arange(self._rows))

    def _labels(self, few: Bytes, values: Callable[[], pl.Series]) -> LabelBytes:
        """The labels of each value below the root, the most specific first; none if it is not known."""
        if self._label is None:
            return _packed(self._compiled(values()))
        made = self._hierarchy.label_bytes(*few, WIDEST)
        if made is None:
            return _packed([self._asked(few, at) for at in range(len(few.starts))])
        left = np.flatnonzero(made.sizes[:, 0] == ASK)
        if len(left):
            asked = _packed([self._asked(few, int(at)) for at in left], made.sizes.shape[1])
            made.begins[left], made.sizes[left] = asked.begins + len(made.data), asked.sizes
            made = made._replace(data=np.concatenate([made.data, asked.data]))
        return made

    def _asked(self, few: Bytes, at: int) -> list[str]:
        assert self._label is not None
        begin, size = int(few.starts[at]), int(few.lengths[at])
        found = self._label(few.data[begin : begin + size].tobytes().decode()) if size >= 0 else None
        return found[:WIDEST] if found else []

    def _compiled(self, values: pl.Series) -> list[list[str]]:
        """The labels of values that must be compiled together."""
        series = self._hierarchy.readable(values)
        there = series.is_not_null()
        code = np.full(len(series), UNKNOWN, np.int32)
        levels, code[there.to_numpy()] = self._hierarchy.compile_levels(series.filter(there), where=self._column)
        if not levels.size:
            return [[] for _ in range(len(series))]
        below = range(min(max(levels.depth - 1, 1), WIDEST))
        at = np.where(code >= 0, code, 0)
        columns = [levels.labels(level).gather(levels.codes[at, level]).to_list() for level in below]
        return [
            _steps(list(labels)) if fine else []
            for labels, fine in zip(zip(*columns, strict=True), code >= 0, strict=True)
        ]


def _steps(labels: list[str]) -> list[str]:
    if len(set(labels)) == len(labels):
        return labels
    return [label for at, label in enumerate(labels) if at == 0 or label != labels[at - 1]]


def _packed(labels: list[list[str]], width: int = 1) -> LabelBytes:
    """Labels as bytes."""
    width = max(width, *map(len, labels)) if labels else width
    sizes = np.full((len(labels), width), NONE, np.int64)
    raw = [[label.encode() for label in one] for one in labels]
    for row, one in enumerate(raw):
        sizes[row, : len(one)] = [len(label) for label in one]
    length = np.maximum(sizes, 0).reshape(-1)
    data = np.frombuffer(b"".join(label for one in raw for label in one) or b"\0", np.uint8)
    return LabelBytes(data, (np.cumsum(length) - length).reshape(sizes.shape), sizes)


def _grown(array: NDArray[Any], *shape: int, fill: int = 0) -> NDArray[Any]:
    """A larger array that begins with this one; numpy's own way costs ten times as much where arrays are small."""
    out = np.full(shape, fill, array.dtype)
    out[tuple(map(slice, array.shape))] = array
    return out


def _power(size: int) -> int:
    return max(64, 1 << max(size - 1, 0).bit_length())


def label_texts(codes: NDArray[np.int32], levels: Levels8, labels: LabelBytes) -> pl.Series:
    """The label of each event at its level; null where the level is -1."""
    if not len(labels.sizes):
        return pl.Series([None] * len(codes), dtype=pl.String)
    at = np.maximum(codes, 0).astype(np.int64) * labels.sizes.shape[1] + np.maximum(levels, 0)
    sizes = np.where(levels >= 0, labels.sizes.reshape(-1)[at], NONE)
    return pieces(labels.data, labels.begins.reshape(-1)[at], sizes)

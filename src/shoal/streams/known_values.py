"""Values of a stream and their chains, compiled once: a value that comes again costs a look, a new one its levels.

What is kept may be forgotten at any time, because a value's labels depend on nothing but the value. A hierarchy's files
are read when the stream starts and never again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.core.hierarchy.base import Hierarchy
from shoal.core.hierarchy.tree import Tree, leaf_texts
from shoal.streams.texts import Printer, Prints

WIDEST = 13  # levels; a longer path keeps its whole and its most general steps
KEPT = 1 << 16  # values kept; then all are forgotten at once
UNKNOWN = -1
Levels8 = NDArray[np.int8]


class Coded(NamedTuple):
    """One column of a batch: ``chains[codes[i]]`` are event i's fingerprints; ``text(levels)`` reads them."""

    codes: NDArray[np.int32]
    chains: Prints
    text: Callable[[Levels8], pl.Series]


class KnownValues:
    """Chains and labels of the values seen. Amortised O(levels) per new value, O(1) per known one."""

    def __init__(self, hierarchy: Hierarchy, printer: Printer, column: str) -> None:
        self._hierarchy = hierarchy
        self._printer = printer
        self._column = column
        self._label = hierarchy.labeller(where=column)
        self._width = 1
        self._forget()

    def code(self, codes: NDArray[np.int32], prints: Prints, values: pl.Series) -> Coded:
        """A batch: ``codes`` of its distinct values (below 0: none), with their prints."""
        keys = prints.tolist()
        new = [at for at, key in enumerate(keys) if key not in self._row]
        if len(self._row) + len(new) > KEPT:
            self._forget()
            new = list(range(len(keys)))
        if new:
            self._learn([keys[at] for at in new], values.gather(new))
        row = np.fromiter(map(self._row.__getitem__, keys), np.int32, len(keys))
        own = np.where(codes >= 0, row[np.maximum(codes, 0)], codes) if len(row) else codes
        texts, width = self._texts, self._width

        def read(at: NDArray[np.int64]) -> pl.Series:
            row, level = at // width, at % width
            found = [texts[r][v] for r, v in zip(row.tolist(), level.tolist(), strict=True)]
            return pl.Series(found, dtype=pl.String)

        return Coded(own, self._chains[: len(texts)], lambda levels: gather_labels(own, levels, width, read))

    def one(self, key: int, value: str) -> tuple[list[int], list[str]]:
        """Chain and labels of one text; both empty if the hierarchy does not know it."""
        if key not in self._row:
            if len(self._row) >= KEPT:
                self._forget()
            self._learn([key], [value])
        row = self._row[key]
        if row < 0:
            return [], []
        labels = self._texts[row]
        return self._chains[row, : len(labels)].tolist(), labels

    def _forget(self) -> None:
        self._row: dict[int, int] = {}
        self._prints: dict[str, int] = {}  # of labels: those above the values themselves come again and again
        self._texts: list[list[str]] = []
        self._chains = np.zeros((64, self._width), np.int64)

    def _learn(self, keys: list[int], values: pl.Series | list[str]) -> None:
        labels = self._labels(values)
        good = [steps for steps in labels if steps]
        widest = max(map(len, good), default=1)
        first = len(self._texts)
        if first + len(good) > len(self._chains) or widest > self._width:
            self._width = max(self._width, widest)
            wanted = max(2 * len(self._chains), first + len(good)) if first + len(good) > len(self._chains) else 0
            chains = np.zeros((wanted or len(self._chains), self._width), np.int64)
            chains[:first, : self._chains.shape[1]] = self._chains[:first]
            self._chains = chains
        if len(good) == 1:
            self._chains[first, : len(good[0])] = [self._printer.one(text) for text in good[0]]
        elif good:
            flat = [text for steps in good for text in steps]
            new = list(dict.fromkeys(text for text in flat if text not in self._prints))
            self._prints.update(zip(new, self._printer.texts(new).tolist(), strict=True))
            sizes = np.fromiter(map(len, good), np.int64, len(good))
            begin = np.cumsum(sizes) - sizes
            at = np.repeat(np.arange(first, first + len(good)), sizes)
            level = np.arange(len(flat)) - np.repeat(begin, sizes)
            self._chains[at, level] = np.fromiter(map(self._prints.__getitem__, flat), np.int64, len(flat))
        place = iter(range(first, first + len(good)))
        self._row.update({key: next(place) if steps else UNKNOWN for key, steps in zip(keys, labels, strict=True)})
        self._texts.extend(good)

    def _labels(self, values: pl.Series | list[str]) -> list[list[str]]:
        """The labels of each value below the root, a step that changes nothing left out; none if it is not known."""
        if self._label is not None:
            texts = values if isinstance(values, list) else self._read(values).to_list()
            found = [None if text is None else self._label(text) for text in texts]
            return [_steps(labels[:WIDEST]) if labels else [] for labels in found]
        series = pl.Series(values) if isinstance(values, list) else values
        series = self._hierarchy.readable(series)
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

    def _read(self, values: pl.Series) -> pl.Series:
        return leaf_texts(values) if isinstance(self._hierarchy, Tree) else values.cast(pl.String)


def _steps(labels: list[str]) -> list[str]:
    return [label for at, label in enumerate(labels) if at == 0 or label != labels[at - 1]]


def gather_labels(
    codes: NDArray[np.int32], levels: Levels8, width: int, read: Callable[[NDArray[np.int64]], pl.Series]
) -> pl.Series:
    """Labels of (code, level) per event; each label that occurs is made once. Null where the level is -1."""
    keys = np.where(levels >= 0, codes.astype(np.int64) * width + levels, -1)
    if not len(keys) or keys.max() < 0:
        return pl.Series([None] * len(keys), dtype=pl.String)
    place = np.full(keys.max() + 2, -1, np.int64)  # the last entry serves key -1
    place[keys] = 0
    place[-1] = -1
    used = np.flatnonzero(place == 0)
    place[used] = np.arange(len(used))
    at = place[keys]
    labels = read(used)
    if at.min() < 0:  # no label stands behind the last one, for what is withheld
        labels = labels.append(pl.Series([None], dtype=pl.String))
        at = np.where(at < 0, len(used), at)
    return labels.gather(at)

"""Quasi columns of a stream whose values are paths of labels: every hierarchy but that of plain numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.core.cells import SUPPRESSED
from shoal.core.comparable import one_zero
from shoal.core.errors import UsageError
from shoal.core.hierarchy.base import Hierarchy, Labeller
from shoal.core.hierarchy.tree import Tree
from shoal.core.schema import Column
from shoal.streams.base import Reason
from shoal.streams.texts import Bytes, Printer

CACHE = 65_536  # distinct values of a column whose labels are remembered
LEVELS = 32  # most levels of a hierarchy

Floats = NDArray[np.float64]
Reasons = NDArray[np.uint8]
Labels = list[list[str | None]]  # per level, of each value


class Paths:
    """A column whose every value is a path of labels; the loss of a node is its level as a share of all levels.

    >>> from shoal.core.hierarchy.prefix import Prefix
    >>> zips = Paths("zip", Column("quasi"), Prefix(length=3), bytes(32))
    >>> zips.learn(pl.Series(["101"]))
    >>> zips.depth
    4
    """

    reads_text = True  # whether the hierarchy is asked about texts, not about typed values

    def __init__(self, name: str, column: Column, hierarchy: Hierarchy, key: bytes) -> None:
        self.name = name
        self.hierarchy = hierarchy
        self.missing = column.missing
        self.depth = 0
        self.epoch = 0  # how often the labels were forgotten: rows of an earlier epoch mean nothing now
        self._dtype: pl.DataType | None = {"date": pl.Date(), "datetime": pl.Datetime("us")}.get(column.type or "")
        self._label = self._labeller()
        self._printer = Printer(key, f"path {name}")
        self._row: dict[str | None, int] = {}
        self._flat: pl.Series | None = None  # all labels, level after level

    def _labeller(self) -> Labeller | None:
        return self.hierarchy.labeller(where=f"column {self.name!r}")

    def learn(self, values: pl.Series) -> None:
        """How deep the hierarchy is, from the first values that come."""
        if self._dtype is None and values.dtype.is_temporal():
            self._dtype = values.dtype
        if not self.depth:
            self.open(self._depth(values))

    def open(self, depth: int) -> None:
        """Start with a depth known from a snapshot."""
        self.depth = depth
        self._empty()

    def code(self, values: pl.Series) -> tuple[NDArray[np.int32], Reasons]:
        """The row of each value in ``nodes``, ``costs`` and ``labels``; and what is wrong with it."""
        values = one_zero(values)
        texts = values if values.dtype == pl.String else values.cast(pl.String)
        listed = texts.to_list()
        # a dictionary beats a join here: batches are small, and a join wakes all threads
        try:
            at = np.fromiter(map(self._row.__getitem__, listed), np.int32, len(listed))
        except KeyError:
            new = [v for v in dict.fromkeys(listed) if v not in self._row]
            if len(self._row) + len(new) > CACHE:
                self._empty()
                new = list(dict.fromkeys(listed))
            self._add(values, texts, new)
            at = np.fromiter(map(self._row.__getitem__, listed), np.int32, len(listed))
        reason = self._wrong[at]
        if self.missing == "suppress" and texts.null_count():
            reason = np.where(texts.is_null().to_numpy(), np.uint8(Reason.BAD), reason)
        return at, reason

    def text(self, at: NDArray[np.int32], level: NDArray[np.int8]) -> pl.Expr:
        """The label of each value at its level; ``at`` as :meth:`code` said in this epoch."""
        if self._flat is None and len(self._row) > 4 * len(at):  # a few cells are read one by one
            pairs = zip(level.tolist(), at.tolist(), strict=True)
            return pl.lit(pl.Series([self.labels[v][row] for v, row in pairs], dtype=pl.String))
        if self._flat is None:
            self._flat = pl.Series([text for labels in self.labels for text in labels], dtype=pl.String)
        return pl.lit(self._flat).gather(
            pl.Series(level.astype(np.uint32) * np.uint32(len(self._row)) + at.view(np.uint32))
        )

    def _empty(self) -> None:
        self._row.clear()
        self.epoch += 1
        self.nodes = np.zeros((0, self.depth), np.int64)
        self.costs = np.zeros((0, self.depth))
        self.labels: Labels = [[] for _ in range(self.depth)]
        self._wrong = np.zeros(0, np.uint8)
        self._flat = None

    def _add(self, values: pl.Series, texts: pl.Series, new: Sequence[str | None]) -> None:
        read = pl.Series(new, dtype=pl.String)
        few = read
        if not self.reads_text or self._dtype is not None:
            first = texts.is_in(read.implode(), nulls_equal=True)
            few = self._typed(values.filter(first).unique(maintain_order=True))
            read = texts.filter(first).unique(maintain_order=True)
        labels, wrong = self._labels(few, read)
        known = len(self._row)
        self._row |= {value: known + place for place, value in enumerate(read.to_list())}
        self._reserve(len(self._row))
        here = slice(known, len(self._row))
        self.nodes[here], self.costs[here], self._wrong[here] = self._prints(labels), self._costs(labels), wrong
        self._flat = None
        for level in range(self.depth):
            self.labels[level].extend(labels[level])

    def _reserve(self, rows: int) -> None:
        """Room for so many values; at least doubled, so that a value costs its levels and no more."""
        if rows > len(self.nodes):
            more = max(rows, 2 * len(self.nodes), 64) - len(self.nodes)
            self.nodes = np.pad(self.nodes, ((0, more), (0, 0)))
            self.costs = np.pad(self.costs, ((0, more), (0, 0)))
            self._wrong = np.pad(self._wrong, (0, more))

    def _typed(self, values: pl.Series) -> pl.Series:
        if self._dtype is not None:
            if values.dtype == pl.String:
                return values.str.strptime(self._dtype, strict=False)  # type: ignore[arg-type]
            return values.cast(self._dtype, strict=False)
        return values.cast(pl.String)

    def _labels(self, values: pl.Series, read: pl.Series) -> tuple[Labels, Reasons]:
        """Labels of distinct values at every level, the root last; null below the root for a missing value."""
        if self._label is not None:
            return self._labelled(self._label, values.cast(pl.String).to_list(), read.to_list())
        null = read.is_null().to_numpy()
        values = self.hierarchy.readable(values) if self.reads_text else values
        wrong = np.where(values.is_null().to_numpy() & ~null, np.uint8(Reason.BAD), np.uint8(0))
        inside, known = self._known(values)
        levels, codes = self.hierarchy.compile(inside.unique(maintain_order=True), where=f"column {self.name!r}")
        place = _spread(inside, inside.unique(maintain_order=True), codes)
        wrong[known] = np.where(place < 0, np.uint8(Reason.UNKNOWN), wrong[known])
        wrong[~known & ~null & (wrong == 0)] = Reason.UNKNOWN
        out = self._roots(len(read))
        good = np.flatnonzero(known)[place >= 0]
        for level in range(min(self.depth, levels.depth) - 1):
            texts = levels.labels(level).gather(levels.codes[place[place >= 0], level]).to_list()
            for at, text in zip(good.tolist(), texts, strict=True):
                out[level][at] = text
        return out, wrong

    def _labelled(
        self, label: Labeller, texts: Sequence[str | None], read: Sequence[str | None]
    ) -> tuple[Labels, Reasons]:
        """The same by one value at a time, without compiling anything."""
        out = self._roots(len(texts))
        wrong = np.zeros(len(texts), np.uint8)
        for at, text in enumerate(texts):
            found = None if text is None else label(text)
            if found is None:
                wrong[at] = Reason.UNKNOWN if text is not None else Reason.BAD if read[at] is not None else 0
                continue
            for level, step in enumerate(found[: self.depth - 1]):
                out[level][at] = step
        return out, wrong

    def _roots(self, count: int) -> Labels:
        out: Labels = [[None] * count for _ in range(self.depth)]
        out[-1] = [SUPPRESSED] * count
        return out

    def _known(self, values: pl.Series) -> tuple[pl.Series, NDArray[np.bool_]]:
        """What the hierarchy may be asked about."""
        known = ~values.is_null().to_numpy()
        return values.filter(pl.Series(known)), known

    def _prints(self, labels: Labels) -> NDArray[np.int64]:
        """A fingerprint per node, of all labels from the root down: nodes nest by construction."""
        out = np.zeros((len(labels[0]), self.depth), np.int64)
        path = ["\x1e"] * len(labels[0])
        for level in range(self.depth - 1, -1, -1):
            path = [
                f"{above}\x1f{'' if text is None else '=' + text}"
                for above, text in zip(path, labels[level], strict=True)
            ]
            out[:, level] = self._printer.of(_bytes(path))
        return out

    def _costs(self, labels: Labels) -> Floats:
        out = np.zeros((len(labels[0]), self.depth))
        for level in range(1, self.depth):
            out[:, level] = self._cost(level, labels)
        out[:, -1] = 1.0
        missing = [text is None for text in labels[0]]
        out[missing, : self.depth - 1] = 0.0
        return out

    def _cost(self, level: int, labels: Labels) -> float | list[float]:
        return level / (self.depth - 1)

    def _depth(self, values: pl.Series) -> int:
        sample = self._typed(values.drop_nulls().unique().head(1))
        sample = self._known(self.hierarchy.readable(sample) if self.reads_text else sample)[0]
        levels, _ = self.hierarchy.compile(sample, where=f"column {self.name!r}")
        return _bounded(levels.depth, self.name)


class SnapPaths(Paths):
    """Numbers published as nodes of the halved domain."""

    reads_text = False

    def _labeller(self) -> None:
        return None

    def _typed(self, values: pl.Series) -> pl.Series:
        return values.cast(pl.Float64, strict=False) if not values.dtype.is_numeric() else values

    def _known(self, values: pl.Series) -> tuple[pl.Series, NDArray[np.bool_]]:
        read = self.hierarchy.readable(values)
        known = read.is_not_null()
        return read.filter(known), known.to_numpy()


class TreePaths(Paths):
    """A tree that is known beforehand: read and checked once; the loss of a node is its share of the tree's leaves.

    ``leafless`` counts leaves as CASTLE does, one less above and below.
    """

    def __init__(self, name: str, column: Column, hierarchy: Tree, key: bytes, *, leafless: bool) -> None:
        super().__init__(name, column, hierarchy, key)
        where = f"column {name!r}"
        tree = hierarchy.paths(pl.Series([], dtype=pl.String), where=where)
        # says at the start, not in the middle of a stream, that the levels of a tree do not nest
        hierarchy.compile(pl.Series(list(tree), dtype=pl.String), where=where)
        self._known_depth = _bounded(len(next(iter(tree.values()))), name)
        self._leaves = _leaf_shares(list(tree.values()), leafless=leafless)

    def _depth(self, values: pl.Series) -> int:
        return self._known_depth

    def _cost(self, level: int, labels: Labels) -> list[float]:
        shares = self._leaves[level]
        # a leaf the tree puts under its default node fills the levels below that node
        return [
            0.0 if text is None or text == leaf else shares.get(text, 1.0)
            for text, leaf in zip(labels[level], labels[0], strict=True)
        ]


def _bounded(depth: int, name: str) -> int:
    if depth > LEVELS:
        raise UsageError(f"more than {LEVELS} levels", where=f"column {name!r}", hint="use fewer levels")
    return max(2, depth)


def _bytes(texts: Sequence[str]) -> Bytes:
    """A few texts in one buffer, without waking polars."""
    raw = [text.encode() for text in texts]
    lengths = np.fromiter(map(len, raw), np.int64, len(raw))
    return Bytes(np.frombuffer(b"".join(raw) or b"\0", np.uint8), np.cumsum(lengths) - lengths, lengths)


def _leaf_shares(paths: Sequence[Sequence[str]], *, leafless: bool) -> list[dict[str, float]]:
    """The loss of each node: its leaves over all leaves; one less above and below as VInfoLoss has it."""
    out: list[dict[str, float]] = []
    for level in zip(*paths, strict=True):
        count: dict[str, int] = {}
        for label in level:
            count[label] = count.get(label, 0) + 1
        if leafless:
            out.append({label: (n - 1) / max(1, len(paths) - 1) for label, n in count.items()})
        else:
            out.append({label: n / len(paths) if n > 1 else 0.0 for label, n in count.items()})
    return out


def _spread(values: pl.Series, distinct: pl.Series, codes: NDArray[np.int32]) -> NDArray[np.int32]:
    """``codes`` of distinct values, for every row; a missing value may be among them."""
    if not len(values):
        return np.zeros(0, np.int32)
    missing = distinct.is_null()
    null = int(codes[int(missing.arg_max() or 0)]) if missing.any() else -1
    found = values.replace_strict(distinct, pl.Series(codes), default=None, return_dtype=pl.Int32)
    return found.fill_null(null).to_numpy()

"""Quasi columns of a stream, one by one: numbers in a declared domain, and paths of labels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.core.cells import SUPPRESSED, interval
from shoal.core.errors import UsageError
from shoal.core.hierarchy.base import Hierarchy
from shoal.core.hierarchy.grid import Grid
from shoal.core.hierarchy.path import Path
from shoal.core.hierarchy.range import Range
from shoal.core.hierarchy.suppress import Suppress
from shoal.core.hierarchy.tree import Tree
from shoal.core.schema import Column
from shoal.kernels.stream_boxes import HULL, ROOT
from shoal.streams.base import Reason
from shoal.streams.texts import Printer

CACHE = 65_536  # distinct values of a column whose labels are remembered
LEVELS = 32  # most levels of a hierarchy

Floats = NDArray[np.float64]
Reasons = NDArray[np.uint8]


class Numbers:
    """A column of numbers with a declared domain, published as the hull of a group."""

    def __init__(self, name: str, column: Column, hierarchy: Range) -> None:
        if hierarchy.min is None or hierarchy.max is None:
            raise UsageError(
                "a range in a stream needs its ends: they cannot be read off data that is still to come",
                where=f"column {name!r}",
                hint="declare `min` and `max`",
            )
        self.range = hierarchy
        self.least = float(hierarchy.min)
        self.width = float(hierarchy.max) - self.least or 1.0
        self.missing = column.missing
        self.whole = column.type == "int" if column.type else None  # unknown until the first batch says

    def code(self, values: pl.Series) -> tuple[Floats, Reasons]:
        """Numbers (not-a-number where missing) and what is wrong with them."""
        if self.whole is None:
            self.whole = values.dtype.is_integer()
        if values.dtype.is_numeric() and not values.null_count():
            array = values.to_numpy().astype(np.float64)
            null = np.zeros(len(array), np.bool_)
        else:
            array = values.cast(pl.Float64, strict=False).fill_null(np.nan).to_numpy()
            null = values.is_null().to_numpy()
        reason = np.zeros(len(array), np.uint8)
        reason[np.isnan(array) & ~null] = Reason.BAD
        array = np.clip(
            array,
            -np.inf if self.range.bottom is None else self.range.bottom,
            np.inf if self.range.top is None else self.range.top,
        )
        assert self.range.min is not None
        assert self.range.max is not None
        with np.errstate(invalid="ignore"):
            reason[(array < self.range.min) | (array > self.range.max)] = Reason.UNKNOWN
            if self.whole:
                reason[~null & (reason == 0) & (array != np.floor(array))] = Reason.BAD
        if self.missing == "suppress":
            reason[null] = Reason.BAD
        return array, reason

    def text(self, low: Floats, high: Floats, level: NDArray[np.int8]) -> list[str | None]:
        """The published text of boxes."""
        bottom, top = self.range.bottom, self.range.top
        whole = bool(self.whole)
        return [
            (SUPPRESSED if at == ROOT else None)
            if at != HULL
            else interval(
                a,
                b,
                whole=whole,
                bottom=bottom is not None and a <= bottom,
                top=top is not None and b >= top,
            )
            for a, b, at in zip(low.tolist(), high.tolist(), level.tolist(), strict=True)
        ]


class Paths:
    """A column of any other hierarchy: every value a path of labels.

    The loss of a node is its share of the tree's leaves where the tree is known beforehand (``leafless`` counts them
    as CASTLE does, one less above and below), else its level as a share of all levels.
    """

    def __init__(self, name: str, column: Column, hierarchy: Hierarchy, key: bytes, *, leafless: bool) -> None:
        self.name = name
        self.hierarchy = hierarchy
        self.missing = column.missing
        self._dtype: pl.DataType | None = {"date": pl.Date(), "datetime": pl.Datetime("us")}.get(column.type or "")
        self._printer = Printer(key, f"path {name}")
        self._leaves = _leaf_shares(hierarchy, leafless=leafless) if isinstance(hierarchy, Tree) else None
        self._row: dict[str | None, int] = {}
        self._flat: pl.Series | None = None  # all labels, level after level
        self.depth = 0
        _refuse(name, hierarchy)

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

    def text(self, values: pl.Series, level: NDArray[np.int8]) -> pl.Series:
        """The label of each value at its level."""
        at, _ = self.code(values)
        if self._flat is None:
            self._flat = pl.concat([pl.Series(labels, dtype=pl.String) for labels in self.labels])
        return self._flat.gather(level.astype(np.int64) * len(self.nodes) + at)

    def _empty(self) -> None:
        self._row.clear()
        self.nodes = np.zeros((0, self.depth), np.int64)
        self.costs = np.zeros((0, self.depth))
        self.labels: list[list[str | None]] = [[] for _ in range(self.depth)]
        self._wrong = np.zeros(0, np.uint8)
        self._flat = None

    def _add(self, values: pl.Series, texts: pl.Series, new: Sequence[str | None]) -> None:
        wanted = pl.Series(list(new), dtype=pl.String)
        first = texts.is_in(wanted.implode(), nulls_equal=True)
        few = self._typed(values.filter(first).unique(maintain_order=True))
        read = texts.filter(first).unique(maintain_order=True)
        labels, wrong = self._labels(few, read)
        paths = self._prints(labels)
        costs = self._costs(labels)
        for at, value in enumerate(read.to_list()):
            self._row[value] = len(self.nodes) + at
        self.nodes = np.vstack([self.nodes, paths])
        self.costs = np.vstack([self.costs, costs])
        self._wrong = np.concatenate([self._wrong, wrong])
        self._flat = None
        for level in range(self.depth):
            self.labels[level].extend(labels[level])

    def _typed(self, values: pl.Series) -> pl.Series:
        if self._dtype is not None:
            if values.dtype == pl.String:
                return values.str.strptime(self._dtype, strict=False)  # type: ignore[arg-type]
            return values.cast(self._dtype, strict=False)
        return values.cast(pl.String)

    def _labels(self, values: pl.Series, read: pl.Series) -> tuple[list[list[str | None]], Reasons]:
        """Labels of distinct values at every level, the root last; null below the root for a missing value."""
        null = read.is_null().to_numpy()
        wrong = np.where(values.is_null().to_numpy() & ~null, np.uint8(Reason.BAD), np.uint8(0))
        inside, known = self._known(values)
        levels, codes = self.hierarchy.compile(inside.unique(maintain_order=True), where=f"column {self.name!r}")
        place = _spread(inside, inside.unique(maintain_order=True), codes)
        wrong[known] = np.where(place < 0, np.uint8(Reason.UNKNOWN), wrong[known])
        wrong[~known & ~null & (wrong == 0)] = Reason.UNKNOWN
        out: list[list[str | None]] = [[None] * len(read) for _ in range(self.depth)]
        out[-1] = [SUPPRESSED] * len(read)
        good = np.flatnonzero(known)[place >= 0]
        for level in range(min(self.depth, levels.depth) - 1):
            texts = levels.labels(level).gather(levels.codes[place[place >= 0], level]).to_list()
            for at, text in zip(good.tolist(), texts, strict=True):
                out[level][at] = text
        return out, wrong

    def _known(self, values: pl.Series) -> tuple[pl.Series, NDArray[np.bool_]]:
        """What the hierarchy may be asked about."""
        known = ~values.is_null().to_numpy()
        return values.filter(pl.Series(known)), known

    def _prints(self, labels: list[list[str | None]]) -> NDArray[np.int64]:
        """A fingerprint per node, of all labels from the root down: nodes nest by construction."""
        out = np.zeros((len(labels[0]), self.depth), np.int64)
        path = ["\x1e"] * len(labels[0])
        for level in range(self.depth - 1, -1, -1):
            path = [
                f"{above}\x1f{'' if text is None else '=' + text}"
                for above, text in zip(path, labels[level], strict=True)
            ]
            out[:, level] = self._printer.column(pl.Series(path, dtype=pl.String))
        return out

    def _costs(self, labels: list[list[str | None]]) -> Floats:
        out = np.zeros((len(labels[0]), self.depth))
        for level in range(1, self.depth):
            if self._leaves is None:
                out[:, level] = level / (self.depth - 1)
            else:
                shares = self._leaves[level]
                # a leaf the tree puts under its default node fills the levels below that node
                out[:, level] = [
                    0.0 if text is None or text == leaf else shares.get(text, 1.0)
                    for text, leaf in zip(labels[level], labels[0], strict=True)
                ]
        out[:, -1] = 1.0
        missing = [text is None for text in labels[0]]
        out[missing, : self.depth - 1] = 0.0
        return out

    def _depth(self, values: pl.Series) -> int:
        sample = self._known(self._typed(values.drop_nulls().unique().head(1)))[0]
        levels, _ = self.hierarchy.compile(sample, where=f"column {self.name!r}")
        depth = max(2, levels.depth)
        if depth > LEVELS:
            raise UsageError(f"more than {LEVELS} levels", where=f"column {self.name!r}", hint="use fewer levels")
        return depth


class SnapPaths(Paths):
    """Numbers published as nodes of the halved domain."""

    def _typed(self, values: pl.Series) -> pl.Series:
        return values.cast(pl.Float64, strict=False) if not values.dtype.is_numeric() else values

    def _known(self, values: pl.Series) -> tuple[pl.Series, NDArray[np.bool_]]:
        assert isinstance(self.hierarchy, Range)
        array = values.cast(pl.Float64).fill_null(np.nan).to_numpy()
        with np.errstate(invalid="ignore"):
            clipped = np.clip(array, self.hierarchy.bottom, self.hierarchy.top) if len(array) else array
            known = (clipped >= self.hierarchy.min) & (clipped <= self.hierarchy.max)
        return values.filter(pl.Series(known)), known


def column_of(name: str, column: Column, key: bytes, *, leafless: bool) -> Numbers | Paths:
    """How a quasi column is coded."""
    hierarchy = column.hierarchy
    if hierarchy is None and column.type in ("int", "float"):
        hierarchy = Range()  # says what it needs
    if isinstance(hierarchy, Range):
        plain = Numbers(name, column, hierarchy)
        return SnapPaths(name, column, hierarchy, key, leafless=leafless) if hierarchy.snap else plain
    return Paths(name, column, hierarchy or Suppress(), key, leafless=leafless)


def _refuse(name: str, hierarchy: Hierarchy) -> None:
    where = f"column {name!r}"
    if isinstance(hierarchy, Tree) and hierarchy.children is not None:
        raise UsageError("a tree built from its values cannot be used in a stream", where=where, hint="use `file`")
    if isinstance(hierarchy, Path) and not hierarchy.depth:
        raise UsageError("a path in a stream needs its depth", where=where, hint="declare `depth`")
    if isinstance(hierarchy, Grid) and not hierarchy.nests:
        raise UsageError("these sizes do not nest", where=where, hint="let each size divide the next")


def _leaf_shares(tree: Tree, *, leafless: bool) -> list[dict[str, float]]:
    """The loss of each node: its leaves over all leaves; one less above and below as VInfoLoss has it."""
    paths = tree.paths(pl.Series([], dtype=pl.String))
    depth = len(next(iter(paths.values())))
    out: list[dict[str, float]] = []
    for at in range(depth):
        count: dict[str, int] = {}
        for path in paths.values():
            count[path[at]] = count.get(path[at], 0) + 1
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

"""From a value to its chain: the fingerprints of the value and of everything it may be generalized to.

A node is its label, whatever level it stands at: ``a.b`` shown by itself and ``a.b`` above ``a.b.c`` are one node,
as in seed 000, Algorithm 2. A label that repeats the one below it is left out, so that a level is a real step.
The root ``*`` says nothing and is never counted: there the event is withheld.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.core.errors import UsageError
from shoal.core.hierarchy.base import Hierarchy
from shoal.core.hierarchy.path import Path
from shoal.core.hierarchy.range import Range
from shoal.core.hierarchy.suppress import Suppress
from shoal.kernels.shared.fingerprint import path_cuts
from shoal.streams.texts import Bytes, Near, Printer, Prints, bytes_of, number

WIDEST = 13  # levels; a longer path keeps its whole and its most general steps
UNKNOWN, BAD = -1, -2

Levels8 = NDArray[np.int8]


class Coded(NamedTuple):
    """One column of a batch: ``chains[codes[i]]`` are event i's fingerprints; ``text(levels)`` reads them."""

    codes: NDArray[np.int32]
    chains: Prints
    text: Callable[[Levels8], pl.Series]


class Coder:
    """Codes the values of one quasi column. ``longest`` is the most bytes a value may have."""

    def __init__(self, hierarchy: Hierarchy | None, key: bytes, column: str, longest: int = 4096) -> None:
        if isinstance(hierarchy, Range) and (hierarchy.min is None or hierarchy.max is None):
            raise UsageError(
                "a range in a stream needs its ends: they cannot be read off data that is still to come",
                where=column,
                hint="declare `min` and `max`",
            )
        self.hierarchy = hierarchy
        self.column = column
        self.longest = longest
        self._printer = Printer(key, f"column {column}")
        self._width = 1
        self._near: Near | None = None
        self._reverse = False
        if isinstance(hierarchy, Path):
            self._reverse = hierarchy.reverse
            self._near = self._printer.near(hierarchy.separator, hierarchy.depth, hierarchy.reverse, WIDEST)

    def code(self, values: pl.Series) -> Coded:
        """Codes, chains and labels of a batch. O(rows), plus the hierarchy's cost per distinct value."""
        texts = values if values.dtype == pl.String else values.cast(pl.String)
        raw = bytes_of(texts)
        bad = (raw.lengths <= 0) | (raw.lengths > self.longest)
        if bad.any():
            raw = raw._replace(lengths=np.where(bad, -1, raw.lengths))
        prints = self._printer.of(raw)
        codes, first = number(prints)
        if bad.any():
            codes[bad] = BAD
        if self.hierarchy is None or isinstance(self.hierarchy, Suppress):
            coded = Coded(codes, prints[first][:, None], lambda levels: _plain(texts, levels))
        elif isinstance(self.hierarchy, Path):
            few = Bytes(raw.data, raw.starts[first], raw.lengths[first])
            coded = self._path(self.hierarchy, codes, few, texts.gather(first))
        else:
            coded = self._any(codes, values.gather(first))
        return coded

    def one(self, value: Any) -> tuple[list[int], list[str]]:
        """Chain and labels of a single value; both empty if it is unusable. The same as :meth:`code`, for one."""
        quick = self.hierarchy is None or isinstance(self.hierarchy, (Path, Suppress))
        if not quick or not isinstance(value, str):
            coded = self.code(pl.Series([value], strict=False))
            if coded.codes[0] < 0:
                return [], []
            chain = [p for p in coded.chains[0].tolist() if p]
            return chain, [coded.text(np.array([at], np.int8))[0] for at in range(len(chain))]
        raw = value.encode()
        if not 0 < len(raw) <= self.longest:
            return [], []
        if self._near is None:
            return [self._printer.one(value)], [value]
        cuts, prints = self._near.chain(raw)
        if self._reverse:
            return prints, [raw[len(raw) - cut :].decode() for cut in cuts]
        return prints, [raw[:cut].decode() for cut in cuts]

    def _path(self, path: Path, codes: NDArray[np.int32], few: Bytes, texts: pl.Series) -> Coded:
        separator = np.frombuffer(path.separator.encode(), np.uint8)
        while True:
            cuts = np.zeros((len(few.starts), self._width), np.int64)
            steps = path_cuts(few.data, few.starts, few.lengths, separator, path.depth, path.reverse, cuts)
            if steps <= self._width or self._width == WIDEST:
                break
            self._width = min(steps, WIDEST)
        starts = np.repeat(few.starts, self._width)
        flat = cuts.reshape(-1)
        if path.reverse:
            starts = starts + np.repeat(few.lengths, self._width) - flat
        chains = self._printer.of(Bytes(few.data, starts, np.where(flat > 0, flat, -1))).reshape(cuts.shape)

        def cut(values: pl.Series, kept: NDArray[np.int64]) -> pl.Series:
            frame = pl.DataFrame({"v": values.cast(pl.Binary), "n": kept})
            start = pl.col("v").bin.size().cast(pl.Int64) - pl.col("n") if path.reverse else pl.lit(0)
            return frame.select(pl.col("v").bin.slice(start, pl.col("n")).cast(pl.String))["v"]

        def text(levels: Levels8) -> pl.Series:
            return _gather(codes, levels, self._width, lambda at: cut(texts.gather(at // cuts.shape[1]), flat[at]))

        return Coded(codes, chains, text)

    def _any(self, codes: NDArray[np.int32], values: pl.Series) -> Coded:
        labels, known = self._labels(values)
        depth = len(labels)
        column = pl.concat(labels) if labels else pl.Series([], dtype=pl.String)
        prints = self._printer.column(column).reshape(depth, len(values)).T
        prints = np.where(known[:, None], prints, 0)
        # a step that changes nothing is no step
        keep = np.ones(prints.shape, np.bool_)
        keep[:, 1:] = prints[:, 1:] != prints[:, :-1]
        keep &= prints != 0
        order = np.argsort(~keep, axis=1, kind="stable")
        chains = np.ascontiguousarray(
            np.where(np.take_along_axis(keep, order, 1), np.take_along_axis(prints, order, 1), 0)
        )
        codes = np.where((codes >= 0) & ~known[codes], UNKNOWN, codes).astype(np.int32)

        def text(levels: Levels8) -> pl.Series:
            def read(at: NDArray[np.int64]) -> pl.Series:
                row, level = at // depth, at % depth
                return column.gather(order[row, level] * len(values) + row)

            return _gather(codes, levels, depth, read)

        return Coded(codes, chains, text)

    def _labels(self, values: pl.Series) -> tuple[list[pl.Series], NDArray[np.bool_]]:
        """The label of every distinct value at every level below the root."""
        assert self.hierarchy is not None
        levels, code = self.hierarchy.compile_levels(values, where=self.column)
        known = code >= 0
        at = np.where(known, code, 0)
        if not levels.size:
            return [pl.Series([""] * len(values), dtype=pl.String)], known
        below = range(min(max(levels.depth - 1, 1), WIDEST))
        return [levels.labels(level).gather(levels.codes[at, level]) for level in below], known


def _plain(texts: pl.Series, levels: Levels8) -> pl.Series:
    if (levels >= 0).all():
        return texts
    return pl.select(pl.when(pl.Series(levels >= 0)).then(texts)).to_series()


def _gather(
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
    return read(used).gather(pl.Series(np.where(at < 0, 0, at)).set(pl.Series(at < 0), None))

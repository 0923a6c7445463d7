"""From a value to its chain: the fingerprints of the value and of everything it may be generalized to.

A node is its label, whatever level it stands at: ``a.b`` shown by itself and ``a.b`` above ``a.b.c`` are one node,
as in Bacconi 2021, Algorithm 2. A label that repeats the one below it is left out, so that a level is a real step.
The root ``*`` says nothing and is never counted: there the event is withheld.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.core.comparable import one_zero
from shoal.core.errors import UsageError
from shoal.core.hierarchy.base import Hierarchy, LabelBytes
from shoal.core.hierarchy.path import Path
from shoal.core.hierarchy.range import Range
from shoal.core.hierarchy.suppress import Suppress
from shoal.core.hierarchy.tree import Tree, leaf_texts
from shoal.kernels.shared.fingerprint import path_cuts
from shoal.streams.known_values import WIDEST, Coded, KnownValues, Levels8, label_texts
from shoal.streams.texts import Bytes, Near, Printer, bytes_of, number

BAD = -2


class Coder:
    """Codes the values of one quasi column. ``longest`` is the most bytes a value may have.

    >>> chain, labels = Coder(Path(), bytes(32), "site").one("shop.books")
    >>> len(chain), labels
    (2, ['shop.books', 'shop'])
    """

    def __init__(self, hierarchy: Hierarchy | None, key: bytes, column: str, longest: int = 4096) -> None:
        if isinstance(hierarchy, Range) and (hierarchy.min is None or hierarchy.max is None):
            raise UsageError(
                "a range in a stream needs its ends: they cannot be read off data that is still to come",
                where=column,
                hint="declare `min` and `max`",
            )
        if isinstance(
            hierarchy, Range
        ):  # says at the start, not in the middle of a stream, that it has too many levels
            for kind in (pl.Int64, pl.Float64):
                hierarchy.compile(hierarchy.readable(pl.Series([], dtype=kind)), where=column)
        self.hierarchy = hierarchy
        self.column = column
        self.longest = longest
        self._printer = Printer(key, f"column {column}")
        self._quick = hierarchy is None or isinstance(hierarchy, (Path, Suppress))
        self._known = (
            KnownValues(hierarchy, self._printer, column) if hierarchy is not None and not self._quick else None
        )
        self._width = 1
        self._near: Near | None = None
        self._reverse = False
        if isinstance(hierarchy, Path):
            self._reverse = hierarchy.reverse
            self._near = self._printer.near(hierarchy.separator, hierarchy.depth, hierarchy.reverse, WIDEST)

    def code(self, values: pl.Series) -> Coded:
        """Codes, chains and labels of a batch. O(rows), plus the hierarchy's cost per distinct value."""
        # minus zero and zero are one value
        values = one_zero(values)
        # a tree writes whole numbers without decimals
        texts = leaf_texts(values) if isinstance(self.hierarchy, Tree) else values.cast(pl.String)
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
            coded = self._path(self.hierarchy, codes, few)
        else:
            assert self._known is not None
            few = Bytes(raw.data, raw.starts[first], raw.lengths[first])
            coded = self._known.code(codes, prints[first], few, lambda new: values.gather(first[new]))
        return coded

    def one(self, value: Any) -> tuple[list[int], list[str]]:
        """Chain and labels of a single value; both empty if it is unusable. The same as :meth:`code`, for one."""
        if not self._quick and isinstance(value, str) and 0 < len(value.encode()) <= self.longest:
            assert self._known is not None
            return self._known.one(value)
        if not self._quick or not isinstance(value, str):
            coded = self.code(pl.Series([value], strict=False))
            if coded.codes[0] < 0:
                return [], []
            # 0 stands where a chain has ended
            chain = [p for p in coded.chains[coded.codes[0]].tolist() if p]
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

    def _path(self, path: Path, codes: NDArray[np.int32], few: Bytes) -> Coded:
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

        # cut at separators, so the bytes of a label are text again
        labels = LabelBytes(few.data, starts.reshape(cuts.shape), cuts)
        return Coded(codes, chains, lambda levels: label_texts(codes, levels, labels))


def _plain(texts: pl.Series, levels: Levels8) -> pl.Series:
    if (levels >= 0).all():
        return texts
    return pl.select(pl.when(pl.Series(levels >= 0)).then(texts)).to_series()

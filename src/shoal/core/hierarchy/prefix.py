"""Shorter and shorter beginnings: ``10115`` → ``1011*`` → … → ``*`` (Garai 2019, section 3.4.6, for characters too)."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.core.cells import SUPPRESSED
from shoal.core.errors import UsageError
from shoal.core.hierarchy.base import Hierarchy, LabelBytes, Labeller
from shoal.core.levels import MOST_LEVELS, Codes, Levels, code_of, in_runs, nest, run_starts, too_deep
from shoal.kernels.shared.labels import prefixes


class Prefix(Hierarchy, frozen=True, tag="prefix"):
    """Characters (or words) fall away from the end, one per level.

    ``length`` is the most characters or words that are kept; level 0 is the value itself, cut to that length. (Garai
    2019 refuses longer texts; cut, they are released with less detail instead of not at all.)
    Characters that fell away read ``*``, so that the length of a code stays visible; words just end.

    >>> import polars as pl
    >>> Prefix(5).preview(pl.Series(["10115"])).row(0)
    ('10115', '1011*', '101**', '10***', '1****', '*')
    >>> Prefix(2, words=True).preview(pl.Series(["cats are wild"])).row(0)
    ('cats are', 'cats', '*')
    """

    length: int
    words: bool = False

    def __post_init__(self) -> None:
        if self.length < 1:
            raise UsageError("`length` must be at least 1", where="prefix")

    def compile(self, values: pl.Series, *, where: str = "hierarchy") -> tuple[Levels, Codes]:
        """See :class:`Hierarchy`. Costs O(values x length)."""
        if not self.words:
            return self._compile_characters(values.cast(pl.String), where)
        text = values.cast(pl.String).to_frame("v")
        kept = text.select(self._keep(self.length - level).alias(f"{level}") for level in range(self.length))
        root = pl.Series([SUPPRESSED] * len(values), dtype=pl.String)
        distinct = kept.with_columns(root.alias(f"{self.length}")).unique()
        columns = [distinct[c] for c in distinct.columns]
        levels = nest(columns[0], columns, where=where)
        return levels, code_of(levels, kept["0"])

    def _compile_characters(self, text: pl.Series, where: str) -> tuple[Levels, Codes]:
        """In sorted texts, those that begin alike stand together: how far neighbours agree gives every level's runs."""
        if self.length >= MOST_LEVELS:
            raise too_deep(self.length + 1, where)
        order = None if text.is_sorted(nulls_last=True) else text.arg_sort(nulls_last=True)
        sorted_text = (text if order is None else text[order]).alias("v")
        known = sorted_text.drop_nulls()
        agree, long = _agreeing(known, self.length)
        equal = (agree == long[1:]) & (agree == long[:-1])
        codes = np.zeros((len(text), self.length + 1), np.int32)
        for level in range(self.length):
            count = self.length - level
            beyond = (long > count) if level else (long >= count)  # a text that ends here is a node of its own
            alike = equal | ((agree >= count) & beyond[1:] & beyond[:-1])
            codes[1 : len(known), level] = np.cumsum(~alike)
            codes[len(known) :, level] = codes[len(known) - 1, level] + 1 if len(known) else 0
        own = codes[:, 0].copy()
        first = run_starts(own)
        cut = sorted_text.str.slice(0, self.length)[first]

        def label_at(level: int, rows: NDArray[np.int64]) -> pl.Series:
            if level == self.length:
                return pl.repeat(SUPPRESSED, len(rows), dtype=pl.String, eager=True)
            return cut[rows].to_frame("v").select(self._keep(self.length - level)).to_series()

        levels = in_runs(cut, np.ascontiguousarray(codes[first]) if len(first) < len(codes) else codes, label_at)
        if order is None:
            return levels, own
        spread = np.empty_like(own)
        spread[order.to_numpy()] = own
        return levels, spread

    def labeller(self, *, where: str = "hierarchy") -> Labeller:
        """See :class:`Hierarchy`."""

        def words(text: str) -> list[str]:
            steps = text.split(" ")
            return [" ".join(steps[:count]) for count in range(self.length, 0, -1)]

        cuts = [(count, "*" * (self.length - count)) for count in range(self.length, 0, -1)]

        def characters(text: str) -> list[str]:
            long = len(text)
            return [text if long <= count else text[:count] + stars for count, stars in cuts]

        return words if self.words else characters

    def label_bytes(
        self, data: NDArray[np.uint8], starts: NDArray[np.int64], lengths: NDArray[np.int64], most: int
    ) -> LabelBytes | None:
        """See :class:`Hierarchy`."""
        if self.words:
            return None
        shape = (len(starts), min(self.length, most))
        begins, sizes = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        # a character has four bytes at most
        room = int((np.minimum(lengths, 4 * self.length) + self.length).sum()) * shape[1]
        out = np.empty(max(room, 1), np.uint8)
        prefixes(data, starts, lengths, self.length, out, begins, sizes)
        return LabelBytes(out, begins, sizes)

    def _keep(self, count: int) -> pl.Expr:
        text = pl.col("v")
        if self.words:
            return text.str.split(" ").list.head(count).list.join(" ")
        cut = text.str.slice(0, count)
        # pad to the length first: a short value must not stand out by falling away later
        padded = cut.str.pad_end(self.length, "*") if count < self.length else cut
        return pl.when(text.str.len_chars() <= count).then(text).otherwise(padded)


def _agreeing(text: pl.Series, most: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """How many first characters each text has in common with the one before it, and how long each is; up to ``most``.

    The lengths are counted one further, so that a longer text is told from one that ends there.
    """
    long = text.str.len_chars().to_numpy().astype(np.int64)
    width = int(min(most, long.max(initial=0)))
    joined = str(text.str.slice(0, width).str.pad_end(width, "\0").str.join("").item()) if len(text) else ""
    plain = joined.isascii()
    letters = np.frombuffer(joined.encode("ascii" if plain else "utf-32-le"), np.uint8 if plain else np.uint32)
    square = letters.reshape(len(text), width)
    agree = np.zeros(max(0, len(text) - 1), np.int64)
    alike = np.ones(len(agree), np.bool_)
    for at in range(width):
        alike &= square[1:, at] == square[:-1, at]
        agree += alike
    shorter = np.minimum(long[1:], long[:-1])
    return np.minimum(agree, shorter), np.minimum(long, most + 1)

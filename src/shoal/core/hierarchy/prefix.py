"""Shorter and shorter beginnings: ``10115`` → ``1011*`` → … → ``*`` (Garai 2019, section 3.4.6, for characters too)."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.core.cells import SUPPRESSED
from shoal.core.errors import UsageError
from shoal.core.hierarchy.base import Hierarchy, LabelBytes, Labeller
from shoal.core.levels import Codes, Levels, code_of, nest
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
        text = values.cast(pl.String).to_frame("v")
        kept = text.select(self._keep(self.length - level).alias(f"{level}") for level in range(self.length))
        root = pl.Series([SUPPRESSED] * len(values), dtype=pl.String)
        distinct = kept.with_columns(root.alias(f"{self.length}")).unique()
        columns = [distinct[c] for c in distinct.columns]
        levels = nest(columns[0], columns, where=where)
        return levels, code_of(levels, kept["0"])

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

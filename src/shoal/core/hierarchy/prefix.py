"""Shorter and shorter beginnings: ``10115`` → ``1011*`` → … → ``*`` (Garai 2019, section 3.4.6, for characters too)."""

from __future__ import annotations

import polars as pl

from shoal.core.cells import SUPPRESSED
from shoal.core.errors import UsageError
from shoal.core.hierarchy.base import Hierarchy, Labeller
from shoal.core.levels import Codes, Levels, code_of, nest


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
        text = values.cast(pl.String)
        kept = [self._keep(text, self.length - level) for level in range(self.length)]
        root = pl.Series([SUPPRESSED] * len(values), dtype=pl.String)
        pairs = pl.DataFrame([kept[0].alias("0"), *[s.alias(f"{i}") for i, s in enumerate([*kept[1:], root], 1)]])
        distinct = pairs.unique()
        columns = [distinct[c] for c in distinct.columns]
        levels = nest(columns[0], columns, where=where)
        return levels, code_of(levels, kept[0])

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

    def _keep(self, text: pl.Series, count: int) -> pl.Series:
        if self.words:
            return text.str.split(" ").list.head(count).list.join(" ")
        # pad to the length first: a short value must not stand out by falling away later
        frame = text.to_frame("v").select(
            pl.when(pl.col("v").str.len_chars() <= count)
            .then(pl.col("v"))
            .otherwise(
                pl.col("v").str.slice(0, count).str.pad_end(self.length, "*")
                if count < self.length
                else pl.col("v").str.slice(0, count)
            )
            .alias("v")
        )
        return frame["v"]

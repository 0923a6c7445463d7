"""A hierarchy: a day becomes a workday or the weekend, then nothing."""

from __future__ import annotations

import polars as pl

from shoal.core.hierarchy import Hierarchy
from shoal.core.levels import Codes, Levels, code_of, nest

KINDS = {d: "weekend" if d in ("sat", "sun") else "workday" for d in ("mon", "tue", "wed", "thu", "fri", "sat", "sun")}


class Weekday(Hierarchy, frozen=True, tag="weekday"):
    """``mon`` → ``workday`` → ``*``; any other text is unknown, and its row is withheld and counted.

    >>> Weekday().preview(pl.Series(["fri", "sat"])).rows()
    [('fri', 'workday', '*'), ('sat', 'weekend', '*')]
    """

    def compile(self, values: pl.Series, *, where: str = "hierarchy") -> tuple[Levels, Codes]:
        """Levels over the days that are known; ``code_of`` answers -1 for all others."""
        known = values.filter(values.is_in(list(KINDS)) | values.is_null())
        kinds = known.replace_strict(KINDS, return_dtype=pl.String)
        levels = nest(known, [known, kinds, pl.Series(["*"] * len(known), dtype=pl.String)], where=where)
        return levels, code_of(levels, values)

    def leaves(self) -> pl.Series:
        """All values it knows."""
        return pl.Series(list(KINDS))

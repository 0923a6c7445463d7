"""All or nothing: the value, or ``*`` (Garai 2019, section 3.4.3)."""

from __future__ import annotations

import polars as pl

from shoal.core.cells import SUPPRESSED
from shoal.core.hierarchy.base import Hierarchy, Labeller
from shoal.core.levels import Codes, Levels, code_of, nest


class Suppress(Hierarchy, frozen=True, tag="suppress"):
    """Two levels: the value, or ``*``.

    >>> import polars as pl
    >>> Suppress().preview(pl.Series(["F", "M"])).rows()
    [('F', '*'), ('M', '*')]
    """

    def compile(self, values: pl.Series, *, where: str = "hierarchy") -> tuple[Levels, Codes]:
        """See :class:`Hierarchy`."""
        root = pl.Series([SUPPRESSED] * len(values), dtype=pl.String)
        levels = nest(values, [values.cast(pl.String), root], where=where)
        return levels, code_of(levels, values)

    def labeller(self, *, where: str = "hierarchy") -> Labeller:
        """See :class:`Hierarchy`."""
        return lambda text: [text]

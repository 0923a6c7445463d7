"""The seam of all hierarchies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shoal.core.spec import Spec

if TYPE_CHECKING:
    import polars as pl

    from shoal.core.levels import Codes, Levels


class Hierarchy(Spec, frozen=True):
    """How a value becomes less precise, level by level, until nothing is left of it.

    A subclass says what the distinct values present become: :meth:`compile` returns the levels and the code of
    each value, -1 for a value the hierarchy does not know (its rows are withheld and counted).
    """

    def compile(self, values: pl.Series, *, where: str = "hierarchy") -> tuple[Levels, Codes]:
        """Levels over distinct ``values`` (a null may be among them), and each value's code."""
        raise NotImplementedError

    def preview(self, values: pl.Series, *, where: str = "hierarchy") -> pl.DataFrame:
        """The label of each value at each level: how it reads when published.

        >>> import polars as pl
        >>> from shoal.core.hierarchy.prefix import Prefix
        >>> Prefix(3).preview(pl.Series(["101", "102", "210"])).rows()
        [('101', '10*', '1**', '*'), ('102', '10*', '1**', '*'), ('210', '21*', '2**', '*')]
        """
        import polars as pl

        levels, _ = self.compile(values.unique(), where=where)
        columns = {f"{at}": levels.labels(at).gather(levels.codes[:, at]) for at in range(levels.depth)}
        return pl.DataFrame(columns)

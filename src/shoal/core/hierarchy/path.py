"""Values that are already paths: ``electronics.smartphone.apple`` loses its last step first."""

from __future__ import annotations

import polars as pl

from shoal.core.cells import SUPPRESSED
from shoal.core.errors import UsageError
from shoal.core.hierarchy.base import Hierarchy, Labeller
from shoal.core.levels import Codes, Levels, code_of, nest


class Path(Hierarchy, frozen=True, tag="path"):
    """One step of the path falls away per level; ``reverse`` for domain names, whose root stands last.

    ``depth`` is the most steps that are kept (0: as many as the longest value has). A short path is padded at its
    specific end: ``toys`` stays ``toys`` until the level where only the first step of a long path is left.

    >>> import polars as pl
    >>> Path().preview(pl.Series(["a.b.c", "a.d"])).sort("0").rows()
    [('a.b.c', 'a.b', 'a', '*'), ('a.d', 'a.d', 'a', '*')]
    >>> Path(reverse=True).preview(pl.Series(["mail.example.org"])).row(0)
    ('mail.example.org', 'example.org', 'org', '*')
    """

    separator: str = "."
    depth: int = 0
    reverse: bool = False

    def __post_init__(self) -> None:
        if not self.separator:
            raise UsageError("`separator` must not be empty", where="path")
        if self.depth < 0:
            raise UsageError("`depth` must not be negative", where="path")

    @property
    def grows(self) -> tuple[str, str] | None:
        """See :class:`Hierarchy`."""
        return None if self.depth else ("a path as deep as its data has no fixed levels", "give `depth`")

    def compile(self, values: pl.Series, *, where: str = "hierarchy") -> tuple[Levels, Codes]:
        """See :class:`Hierarchy`. Costs O(values x depth)."""
        steps = values.cast(pl.String).str.split(self.separator)
        longest = self.depth or int(steps.list.len().max() or 1)  # type: ignore[arg-type]
        kept = [
            (steps.list.tail(n) if self.reverse else steps.list.head(n)).list.join(self.separator)
            for n in range(longest, 0, -1)
        ]
        root = pl.Series([SUPPRESSED] * len(values), dtype=pl.String)
        distinct = pl.DataFrame([s.alias(f"{i}") for i, s in enumerate([*kept, root])]).unique()
        columns = [distinct[c] for c in distinct.columns]
        levels = nest(columns[0], columns, where=where)
        return levels, code_of(levels, kept[0])

    def labeller(self, *, where: str = "hierarchy") -> Labeller | None:
        """See :class:`Hierarchy`."""
        if not self.depth:
            return None

        def labels(text: str) -> list[str]:
            steps = text.split(self.separator)
            cuts = range(self.depth, 0, -1)
            return [self.separator.join(steps[-n:] if self.reverse else steps[:n]) for n in cuts]

        return labels

"""Any function ``(value, level) -> text``: a hierarchy of one's own costs its author one function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import polars as pl

from shoal.core.cells import SUPPRESSED
from shoal.core.errors import UsageError
from shoal.core.hierarchy.base import Hierarchy
from shoal.core.levels import Codes, Levels, code_of, nest


class Custom(Hierarchy, frozen=True, tag="custom"):
    """Levels 0 to ``levels - 1`` by a function; one more level, ``*``, is added on top.

    Python only: a policy names a packaged hierarchy by its entry point instead of carrying code.

    >>> import polars as pl
    >>> decade = Custom(lambda year, level: str(year) if level == 0 else f"{year // 10}0s", levels=2)
    >>> decade.preview(pl.Series([1984, 1987])).rows()
    [('1984', '1980s', '*'), ('1987', '1980s', '*')]
    """

    function: Callable[[Any, int], str]
    levels: int

    def __post_init__(self) -> None:
        if self.levels < 1:
            raise UsageError("`levels` must be at least 1", where="custom hierarchy")

    def declared(self) -> Any:
        """See :class:`Hierarchy`. A function is told by its name and its code: what it reads elsewhere is not seen."""
        code = getattr(self.function, "__code__", None)
        named = f"{self.function.__module__}.{self.function.__qualname__}" if code is not None else repr(self.function)
        told = [] if code is None else [code.co_code.hex(), [*map(repr, code.co_consts)], list(code.co_names)]
        return {"use": self.use, "function": [named, *told], "levels": self.levels}

    def compile(self, values: pl.Series, *, where: str = "hierarchy") -> tuple[Levels, Codes]:
        """See :class:`Hierarchy`. Costs one call per distinct value and level."""
        labels = [self._level(values, level, where) for level in range(self.levels)]
        labels.append(pl.Series([SUPPRESSED] * len(values), dtype=pl.String))
        levels = nest(values, labels, where=where)
        return levels, code_of(levels, values)

    def _level(self, values: pl.Series, level: int, where: str) -> pl.Series:
        out: list[str | None] = []
        for position, value in enumerate(values.to_list()):
            try:
                out.append(None if value is None else str(self.function(value, level)))
            except Exception as error:
                raise UsageError(
                    f"the function failed at level {level} for distinct value number {position} "
                    f"({type(error).__name__})",
                    where=where,
                    hint="a hierarchy must answer for every value at every level",
                ) from None
        return pl.Series(out, dtype=pl.String)

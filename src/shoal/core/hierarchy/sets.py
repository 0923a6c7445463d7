"""Small sets: the value, the set of the few values of its group, or ``*``."""

from __future__ import annotations

import dataclasses

import polars as pl

from shoal.core.cells import SUPPRESSED, read
from shoal.core.errors import UsageError
from shoal.core.hierarchy.base import Hierarchy, Labeller
from shoal.core.levels import Codes, Levels, code_of, nest

WHY = "a set is made of the values of a whole group"
HINT = "use `suppress`, or a tree"


class Sets(Hierarchy, frozen=True, tag="sets"):
    """Text without an order, published as the values that a group really holds: ``{cardio, neuro}``.

    A group of more than ``most`` different values, of all there are, or with a missing one among them reads ``*``. A
    set loses the share of the column's values that are in it. Methods form the same groups as for ``suppress``;
    those that publish whole columns at one level (``datafly``, ``lattice``) show values or ``*``, never a set.

    >>> import shoal
    >>> wards = pl.DataFrame({"ward": ["cardio", "neuro", "eye", "skin"], "age": [20, 21, 60, 61]})
    >>> sorted(shoal.anonymize(wards, quasi={"ward": "sets", "age": "range"}, k=2, method="mondrian").data["ward"])
    ['{cardio, neuro}', '{cardio, neuro}', '{eye, skin}', '{eye, skin}']
    """

    most: int = 10

    def __post_init__(self) -> None:
        if self.most < 2:
            raise UsageError("`most` counts the values of a set and must be at least 2", where="sets", hint=HINT)

    @property
    def grows(self) -> tuple[str, str] | None:
        """See :class:`Hierarchy`."""
        return WHY, HINT

    def compile(self, values: pl.Series, *, where: str = "hierarchy") -> tuple[Levels, Codes]:
        """See :class:`Hierarchy`."""
        texts = values.cast(pl.String)
        alike = sum(read(text).kind == "set" for text in texts.drop_nulls().to_list())
        if alike:
            raise UsageError(
                f"{alike:,} distinct values read like a set themselves: nobody could tell them from one",
                where=where,
                hint="write these values without braces, or use `suppress`",
            )
        root = pl.Series([SUPPRESSED] * len(values), dtype=pl.String)
        levels = nest(values, [texts, root], where=where)
        return dataclasses.replace(levels, most=self.most), code_of(levels, values)

    def compile_levels(self, values: pl.Series, *, where: str = "hierarchy") -> tuple[Levels, Codes]:
        """See :class:`Hierarchy`."""
        raise UsageError(f"{WHY}, and z-anonymity publishes each value by itself", where=where, hint=HINT)

    def labeller(self, *, where: str = "hierarchy") -> Labeller | None:
        """See :class:`Hierarchy`."""
        raise UsageError(f"{WHY}, and values that come one by one have none", where=where, hint=HINT)

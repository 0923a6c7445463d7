"""How many values of a column its hierarchy knows: said whenever it does not know all, in counts, never in values."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from shoal.core.comparable import comparable
from shoal.core.errors import PolicyError
from shoal.core.hierarchy.base import Hierarchy

FEW = 0.5  # a hierarchy that knows a smaller share was made for other values


def known_of(hierarchy: Hierarchy, values: pl.Series) -> tuple[int, int]:
    """How many values the hierarchy knows, and how many there are; missing ones do not count.

    >>> from shoal.core.hierarchy.grid import Grid
    >>> known_of(Grid((100,)), pl.Series(["40.7,-74.0", "40.7", None]))
    (1, 2)
    """
    there = comparable(values.drop_nulls())
    counts = pl.DataFrame({"v": there}).group_by("v", maintain_order=True).len()
    read = hierarchy.readable(counts["v"])
    good = read.is_not_null()
    _, codes = hierarchy.compile_levels(read.filter(good).unique(maintain_order=True), where="hierarchy")
    place = pl.DataFrame({"v": read.filter(good).unique(maintain_order=True), "known": pl.Series(codes >= 0)})
    told = counts.with_columns(v=read).filter(good).join(place, on="v", how="left")
    return int(told.filter("known")["len"].sum()), len(there)


def doubts(counts: Mapping[str, tuple[int, int]]) -> list[str]:
    """A sentence for every column whose hierarchy does not know all values; ``counts`` are (known, all).

    >>> doubts({"zip": (7, 7), "latitude": (0, 900)})
    ["the hierarchy of column 'latitude' knows none of 900 values: what it does not know is withheld"]
    """
    return [
        f"the hierarchy of column {name!r} knows {f'{known:,}' if known else 'none'} of {total:,} values: "
        "what it does not know is withheld"
        for name, (known, total) in counts.items()
        if known < total
    ]


def refuse_few(counts: Mapping[str, tuple[int, int]], least: float = FEW) -> None:
    """An error if a hierarchy knows less than this share of the values of its column, or none.

    >>> refuse_few({"zip": (5, 100)})
    Traceback (most recent call last):
    shoal.core.errors.PolicyError: columns.zip.hierarchy: the hierarchy knows 5 of 100 values...
    """
    for name, (known, total) in counts.items():
        if known < least * total or (total and not known):
            raise PolicyError(
                f"the hierarchy knows {f'{known:,}' if known else 'none'} of {total:,} values",
                where=f"columns.{name}.hierarchy",
                hint="choose one that fits the values; two columns that are one thing are joined by `derive`",
            )

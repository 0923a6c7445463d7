"""What one view tells under another name than the other: a column made of others, a column twice, a cell in a text.

Forms of one column are compared elsewhere. Here a column of one view is looked for in all others of the other view:
a `where` that joins `zip` and `sex`, a day that stands in a time, a year of birth that a note mentions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import polars as pl

from shoal.core.cells import SUPPRESSED
from shoal.release.linking import Comparison

TRIED = 2_000  # records by which a pair of columns is judged before all of them are read
LEAST = 3  # characters of a cell that is looked for inside another one: shorter ones stand there by chance
BEYOND_CHANCE = 0.05  # of the records must tell it, more than would if the records of one side were mixed up


def derived(
    mine: pl.DataFrame, theirs: pl.DataFrame, shown: Iterable[str], sources: Mapping[str, Sequence[str]]
) -> Iterator[Comparison]:
    """Derived columns that the other view shows, beside the ``sources`` that this one shows all of.

    >>> mine, theirs = pl.DataFrame({"zip": ["1", "2"], "sex": ["f", "m"]}), pl.DataFrame({"where": ["1.f", "2.m"]})
    >>> [c.name for c in derived(mine, theirs, ["where"], {"where": ("zip", "sex")})]
    ['where']
    """
    for name in shown:
        made_of = sources.get(name, ())
        if made_of and all(s in mine.columns for s in made_of):
            together = mine.select(pl.struct(pl.col(s).cast(pl.String) for s in made_of).alias(name))
            yield Comparison(name, together[name], theirs[name])


def mentioned(mine: pl.DataFrame, theirs: pl.DataFrame) -> Iterator[Comparison]:
    """Cells of the other view that stand, as they are or as a part, in a column of another name of this one.

    Whoever reads is taken to know which mentions are no accident: other records get no value.

    >>> notes = pl.DataFrame({"note": [f"born in {year}" for year in range(1950, 1990)]})
    >>> years = pl.DataFrame({"born": range(1950, 1990)})
    >>> [c.name for c in mentioned(notes, years)]
    ["'born' in 'note'"]
    """
    texts, parts = (_texts(frame) for frame in (mine, theirs))
    if texts.is_empty() or parts.is_empty():
        return
    places = np.random.default_rng(0).permutation(len(texts))[:TRIED]
    few, few_parts = texts[places], parts[places]
    for part in parts.columns:
        others = [c for c in texts.columns if c != part]
        if not others or few_parts[part].n_unique() < 2:
            continue
        cells = few_parts[part]
        mixed = cells.gather((np.arange(len(cells)) + 1 + len(cells) // 2) % len(cells))
        hits, chance = (few.select(_told(c, cell) for c in others).mean().row(0) for cell in (cells, mixed))
        for column, hit, by_chance in zip(others, hits, chance, strict=True):
            if (hit or 0.0) >= least_beyond_chance(by_chance or 0.0, len(cells)):
                told = texts.select(_told(column, parts[part])).to_series()
                found = pl.select(pl.when(told).then(parts[part])).to_series()
                yield Comparison(f"{part!r} in {column!r}", found, found)


def least_beyond_chance(by_chance: float, records: int) -> float:
    """The share of records that chance does not explain: three standard deviations more, and some.

    >>> round(least_beyond_chance(0.0, 100), 3)
    0.08
    """
    share = (by_chance * records + 1) / (records + 2)
    return by_chance + BEYOND_CHANCE + 3 * float(np.sqrt(share * (1 - share) / records))


def _texts(frame: pl.DataFrame) -> pl.DataFrame:
    """All columns but nested ones as text; a suppressed cell is none."""
    plain = [c for c in frame.columns if not frame[c].dtype.is_nested()]
    return frame.select(pl.col(c).cast(pl.String).replace(SUPPRESSED, None) for c in plain)


def _told(column: str, cells: pl.Series) -> pl.Expr:
    inside = (pl.lit(cells).str.len_chars() >= LEAST) & pl.col(column).str.contains(pl.lit(cells), literal=True)
    return ((pl.col(column) == pl.lit(cells)) | inside).fill_null(False).alias(column)

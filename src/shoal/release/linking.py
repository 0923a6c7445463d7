"""How many people fit a record: two views of the same records, compared column by column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

MOST_PAIRS = 5_000_000


class Comparison(NamedTuple):
    """One column as two roles see it, record by record."""

    name: str
    mine: pl.Series
    theirs: pl.Series

    def turned(self) -> Comparison:
        """Seen from the other side."""
        return Comparison(self.name, self.theirs, self.mine)


def candidates(compared: Sequence[Comparison], people: pl.Series) -> NDArray[np.int64]:
    """For each record of mine, how many people of theirs fit it: in every column, the two forms occur together.

    A column where one form decides the other is joined on the coarser one. Where forms overlap (buckets with different
    edges) records are first joined by what they surely have in common, then pair by pair.

    >>> sex = Comparison("sex", pl.Series(["f", "m", "m"]), pl.Series(["F", "M", "M"]))
    >>> candidates([sex], pl.Series(["a", "b", "c"])).tolist()
    [1, 2, 2]
    """
    n = len(people)
    mine: list[pl.Series] = []
    theirs: list[pl.Series] = []
    overlapping: list[tuple[str, pl.DataFrame]] = []
    for at, (_, a, b) in enumerate(compared):
        pairs = pl.DataFrame({"a": a, "b": b}).unique()
        if pairs["a"].n_unique() == len(pairs):  # mine decides theirs
            mine.append(b.alias(f"{at}"))
            theirs.append(b.alias(f"{at}"))
        elif pairs["b"].n_unique() == len(pairs):
            mine.append(a.alias(f"{at}"))
            theirs.append(a.alias(f"{at}"))
        else:
            common = _components(a, b)
            mine += [common.alias(f"{at}"), a.alias(f"a{at}")]
            theirs += [common.alias(f"{at}"), b.alias(f"b{at}")]
            overlapping.append((f"{at}", pairs.rename({"a": f"a{at}", "b": f"b{at}"})))
    if not mine:
        return np.full(n, people.n_unique(), np.int64)
    left, right = pl.DataFrame(mine), pl.DataFrame([*theirs, people.alias("who")])
    keys = [f"{at}" for at in range(len(compared))]
    # beyond that, by what is surely common alone: more people then seem to fit, never fewer
    if overlapping and _size(left, right, keys) <= MOST_PAIRS:
        joined = left.unique().join(right, on=keys, how="inner", nulls_equal=True)
        for name, pairs in overlapping:
            joined = joined.join(pairs, on=[f"a{name}", f"b{name}"], how="semi", nulls_equal=True)
        by = left.columns
        counted = joined.group_by(by).agg(pl.col("who").n_unique().alias("people"))
    else:
        by = keys
        counted = right.group_by(by).agg(pl.col("who").n_unique().alias("people"))
    found = left.select(by).join(counted, on=by, how="left", nulls_equal=True, maintain_order="left")
    return found["people"].fill_null(0).cast(pl.Int64).to_numpy()


def _size(left: pl.DataFrame, right: pl.DataFrame, keys: Sequence[str]) -> int:
    """How many pairs a join would make."""
    a = left.unique().group_by(keys).len("a")
    b = right.group_by(keys).len("b")
    both = a.join(b, on=list(keys), nulls_equal=True)
    return int((both["a"].cast(pl.Int64) * both["b"].cast(pl.Int64)).sum())


def _components(a: pl.Series, b: pl.Series) -> pl.Series:
    """What two forms of a value surely have in common: the connected components of "occur together"."""
    mine = a.rank("dense").fill_null(0).cast(pl.Int64).to_numpy()
    theirs = b.rank("dense").fill_null(0).cast(pl.Int64).to_numpy()
    label = np.arange(int(mine.max(initial=0)) + 1)
    while True:
        least = np.full(int(theirs.max(initial=0)) + 1, len(label))
        np.minimum.at(least, theirs, label[mine])
        fresh = label.copy()
        np.minimum.at(fresh, mine, least[theirs])
        # labels only fall, so this ends
        if np.array_equal(fresh, label):
            return pl.Series(label[mine])
        label = fresh

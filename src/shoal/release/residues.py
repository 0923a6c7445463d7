"""What a keyed mask leaves of a value: not the value, but something that reads alike in two views of one record.

A date shifted with ``time: keep`` keeps its time of day, a format-preserving token its length and separators, every
mask whether there is a value at all; two dates of one shift keep the days between them. Numbers with noise and
dates with a shift stay near to what they were. Nothing here knows a mask: what two views of the same records have in
common is looked for in the data, so masks of other packages are seen, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations

import numpy as np
import polars as pl

from shoal.core.cells import SUPPRESSED
from shoal.release.linking import Codes, Comparison, Nearness, codes

MOST_KINDS = 50  # a residue that is not the same on both sides must be coarse, or chance would explain it
DAY = 86_400_000_000
SELDOM = 0.02  # of the records agree: fewer may be names that two keys drew from one list


def residues(name: str, mine: pl.Series, theirs: pl.Series) -> Iterator[Comparison]:
    """What reads alike of a column that one of the views shows under a key.

    >>> [r.name for r in residues("no", pl.Series(["123", "45"]), pl.Series(["991", "07"]))]
    ['no']
    """
    yield from _telling(name, mine.is_null(), theirs.is_null())
    a, b = moments(mine), moments(theirs)
    if a is not None and b is not None:
        yield from _telling(name, a % DAY, b % DAY)
    elif mine.dtype == pl.String() and theirs.dtype == pl.String():
        shape = list(_telling(name, _shape(mine), _shape(theirs)))
        yield from shape or _telling(name, mine.str.len_chars(), theirs.str.len_chars())


def nearness(name: str, mine: pl.Series, theirs: pl.Series) -> Nearness | None:
    """Two columns of numbers, or of dates, whose distance can be measured.

    >>> nearness("pay", pl.Series([1, None]), pl.Series([1.5, 2.0])).mine.tolist()
    [1.0, nan]
    """
    a, b = moments(mine), moments(theirs)
    if a is None or b is None:
        if not (mine.dtype.is_numeric() and theirs.dtype.is_numeric()):
            return None
        a, b = mine, theirs
    one, other = (s.cast(pl.Float64).fill_null(np.nan).to_numpy() for s in (a, b))
    return Nearness(name, one, other)


def agreement(name: str, mine: pl.Series, theirs: pl.Series) -> Nearness | None:
    """Categories that a key changes now and then (PRAM): mostly the same in both views, so the same is near.

    Numbers stand for the categories. Who hides a record must be as near in each column, so must agree wherever it does.

    >>> agreement("sex", pl.Series(["f", "f", "m", "m"]), pl.Series(["f", "f", "m", "f"])).theirs.tolist()
    [0.0, 0.0, 1.0, 0.0]
    >>> agreement("who", pl.Series(["x1", "x2"]), pl.Series(["y1", "y2"])) is None
    True
    """
    if mine.dtype.is_nested() or theirs.dtype.is_nested():
        return None
    a, b = (s.cast(pl.String).replace(SUPPRESSED, None) for s in (mine, theirs))
    known = (a.is_not_null() & b.is_not_null()).to_numpy()
    both = codes(pl.concat([a.rename(name), b.rename(name)]))
    one, other = both[: len(a)][known], both[len(a) :][known]
    kinds = int(both.max(initial=0)) + 1
    shares = [np.bincount(side, minlength=kinds) / max(1, len(one)) for side in (one, other)]
    by_chance = float((shares[0] * shares[1]).sum())
    alike = float((one == other).mean()) if len(one) else 0.0
    if alike <= by_chance or alike < SELDOM:
        return None
    left, right = (np.where(known, side, np.nan) for side in (both[: len(a)], both[len(a) :]))
    return Nearness(name, left, right, kinds)


def days_between(mine: Mapping[str, pl.Series], theirs: Mapping[str, pl.Series]) -> Iterator[Comparison]:
    """The days between two dates of one record, if both views keep them."""
    read = {c: (moments(mine[c]), moments(theirs[c])) for c in mine if c in theirs}
    dated = {c: (a, b) for c, (a, b) in read.items() if a is not None and b is not None}
    for one, other in combinations(dated, 2):
        # whole days: a mask may have drawn the times of day anew
        a, b = (x // DAY - y // DAY for x, y in zip(dated[one], dated[other], strict=True))
        yield from _telling(f"{other} - {one}", a, b, same=True)


def days_since_first(name: str, mine: pl.Series, theirs: pl.Series, cells: Codes) -> Iterator[Comparison]:
    """The days since the first date of the same pseudonym, if both views keep them."""
    a, b = moments(mine), moments(theirs)
    if a is not None and b is not None:
        frame = pl.DataFrame({"a": a // DAY, "b": b // DAY, "cell": cells})
        since = frame.select(pl.col("a", "b") - pl.col("a", "b").min().over("cell"))
        yield from _telling(name, since["a"], since["b"], same=True)


def moments(values: pl.Series) -> pl.Series | None:
    """Dates and times as microseconds, also when they are written as text; none if the column holds something else."""
    if values.dtype == pl.String():
        known = values.drop_nulls().filter(values.drop_nulls() != "*")
        if not len(known) or not known.head(20).str.contains(r"^\d{4}-\d\d-\d\d").all():
            return None
        day = values.str.slice(0, 10).str.to_date("%Y-%m-%d", strict=False).cast(pl.Datetime("us")).cast(pl.Int64)
        # 15 characters: up to microseconds, without a zone behind them
        clock = values.str.slice(11, 15).str.to_time("%H:%M:%S%.f", strict=False).cast(pl.Int64) // 1000
        return day + clock.fill_null(0)
    if values.dtype.is_temporal() and values.dtype != pl.Time() and values.dtype != pl.Duration():
        return values.cast(pl.Datetime("us")).cast(pl.Int64)
    return None


def _shape(values: pl.Series) -> pl.Series:
    return values.str.replace_all(r"\d", "9").str.replace_all(r"\p{L}", "a")


def _telling(name: str, mine: pl.Series, theirs: pl.Series, *, same: bool = False) -> Iterator[Comparison]:
    """A residue that varies and reads alike in both views, or (if coarse) decides the other side's."""
    known = mine.is_not_null() & theirs.is_not_null()
    a, b = mine.filter(known), theirs.filter(known)
    if a.n_unique() < 2 or b.n_unique() < 2:
        return
    if not a.equals(b, check_names=False):
        pairs = pl.DataFrame({"a": codes(a), "b": codes(b)}).n_unique()
        decides = pairs in (a.n_unique(), b.n_unique())
        # a pair of its own for every few records would be found between any two columns
        if same or not decides or pairs > MOST_KINDS or pairs * 10 > len(a):
            return
    yield Comparison(name, mine, theirs)

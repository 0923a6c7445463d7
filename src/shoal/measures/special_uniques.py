"""Special uniques: rows that few columns tell apart from all others (Elliot, Manning and Ford 2002, SUDA)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import comb, prod

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.core.comparable import comparable
from shoal.core.errors import UsageError

MOST_SETS = 5_000  # sets of columns looked at
LISTED = 20  # rows told by their position


class SpecialUniques(msgspec.Struct, frozen=True):
    """Rows that are alone by few columns.

    A *minimal sample unique* of a row is a set of columns in which nobody else has its values, while each smaller set
    is shared. ``sizes`` counts them by their number of columns, ``rows`` the rows that have any of at most ``most``
    columns. A set of s columns scores the product of (all columns - i) for i from s to ``most``, so that fewer columns
    score more; ``columns`` is the share of all scores that sets with a column have, ``riskiest`` are the positions of
    the rows with the highest sums.

    >>> table = pl.DataFrame({"age": [20, 20, 30, 30], "sex": ["f", "m", "f", "f"], "zip": [1, 1, 1, 2]})
    >>> found = special_uniques(table, ["age", "sex", "zip"], most=2)
    >>> found.sizes, found.riskiest[0]
    ({1: 2, 2: 2}, (1, 2))
    """

    most: int
    rows: int
    sizes: dict[int, int]
    columns: dict[str, float]
    riskiest: list[tuple[int, int]]


def special_uniques(frame: pl.DataFrame, quasi: Sequence[str], most: int = 3) -> SpecialUniques:
    """Search all sets of up to ``most`` columns. O(sets x rows log rows) time, O(sets of one size x rows) memory.

    >>> special_uniques(pl.DataFrame({"age": [20, 20], "sex": ["f", "f"]}), ["age", "sex"]).rows
    0
    """
    # all columns together are no special set
    most = min(most, len(quasi) - 1)
    if most < 1:
        raise UsageError("expected at least 1, and two quasi columns", where="special", hint="for example special=3")
    if sum(comb(len(quasi), size) for size in range(1, most + 1)) > MOST_SETS:
        raise UsageError(
            f"there are more than {MOST_SETS:,} sets of up to {most} of {len(quasi)} columns",
            where="special",
            hint="look for smaller sets, or name fewer columns",
        )
    codes = [comparable(frame[name]).rank("dense").fill_null(0).cast(pl.Int64).to_numpy() for name in quasi]
    scores = np.zeros(frame.height, np.int64)
    share = np.zeros(len(quasi))
    sizes: dict[int, int] = {}
    before: dict[tuple[int, ...], NDArray[np.bool_]] = {(): np.zeros(frame.height, np.bool_)}
    if frame.height < 2:
        most = 0  # one row is alone by no column at all
    for size in range(1, most + 1):
        score = prod(len(quasi) - at for at in range(size, most + 1))
        alone: dict[tuple[int, ...], NDArray[np.bool_]] = {}
        for chosen in combinations(range(len(quasi)), size):
            alone[chosen] = _alone([codes[at] for at in chosen])
            smaller = np.logical_or.reduce([before[part] for part in combinations(chosen, size - 1)])
            minimal = alone[chosen] & ~smaller
            found = int(minimal.sum())
            if found:
                sizes[size] = sizes.get(size, 0) + found
                scores[minimal] += score
                share[list(chosen)] += found * score
        before = alone
    total = float(scores.sum()) or 1.0
    # ties by position: the same list on every machine
    first = np.lexsort((np.arange(len(scores)), -scores))[:LISTED]
    return SpecialUniques(
        most,
        int((scores > 0).sum()),
        sizes,
        {name: float(s / total) for name, s in zip(quasi, share, strict=True)},
        [(int(at), int(scores[at])) for at in first if scores[at]],
    )


def _alone(codes: Sequence[NDArray[np.int64]]) -> NDArray[np.bool_]:
    """Rows whose combination of values no other row has."""
    key = codes[0]
    for column in codes[1:]:  # made dense at every step, so that no product of sizes overflows
        key = np.unique(key * (int(column.max()) + 1) + column, return_inverse=True)[1]
    _, group, count = np.unique(key, return_inverse=True, return_counts=True)
    return np.asarray(count[group] == 1)

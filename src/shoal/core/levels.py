"""What every hierarchy compiles to: for the distinct values present, integer codes per level, labels and costs.

Codes are numbered so that **every node of every level is a run of consecutive codes**. From this follows what all
methods rest on: a group of rows is described, per column, by its lowest and its highest code (a *box*), and the
most specific node that covers the group is the lowest level at which these two agree. Numbers may instead be
published as their *hull*, the group's own closed interval, which never exceeds that node; and values that nothing
lies between but ``*`` as the *set* of those that the group holds (:class:`Members`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.core.cells import SUPPRESSED, interval, set_of
from shoal.core.errors import UsageError
from shoal.core.scale import Scale

Codes = NDArray[np.int32]
MOST_LEVELS = 127  # a level is one byte
FEW_ROWS = 1_000  # so few are coded one by one before polars has begun


@dataclass(frozen=True)
class Members:
    """The different codes that each group holds in a column: those of group g are ``codes[start[g]:start[g + 1]]``.

    >>> Members.of(np.array([2, 0, 2, 1], np.int32), np.array([0, 0, 0, 1]), 2).codes.tolist()
    [0, 2, 1]
    """

    start: NDArray[np.int64]
    codes: Codes

    @classmethod
    def of(cls, column: Codes, labels: NDArray[np.int32], groups: int) -> Members:
        """Those of a column with a label per row, -1 for rows of no group."""
        kept = labels >= 0
        pairs = np.unique(labels[kept].astype(np.int64) << 32 | column[kept])
        start = np.searchsorted(pairs, np.arange(groups + 1, dtype=np.int64) << 32)
        return cls(start, (pairs & 0xFFFFFFFF).astype(np.int32))

    @property
    def counts(self) -> NDArray[np.int64]:
        """How many different codes each group holds."""
        return np.diff(self.start)


@dataclass(frozen=True)
class Levels:
    """A compiled hierarchy: ``codes[value, level]`` is the node of a value within its level, 0 at the last level.

    ``labels(level)`` and ``costs(level)`` give the text and the loss (normalized certainty penalty, 0 to 1) of each
    node; both are made when first asked for, because a range has far more nodes than a release shows. Text is text:
    two values that read alike are one code.

    >>> from shoal.core.hierarchy.prefix import Prefix
    >>> levels, codes = Prefix(length=3).compile(pl.Series(["101", "102", "210"]))
    >>> levels.depth, [levels.labels(1)[int(code)] for code in levels.codes[codes, 1]]
    (4, ['10*', '10*', '21*'])
    """

    values: pl.Series  # one per code, in code order; a missing value, if any, is the last
    codes: Codes
    make_labels: Callable[[int], Sequence[str]]
    make_costs: Callable[[int], NDArray[np.float64]]
    numbers: NDArray[np.float64] | None = None  # one per code, if cells are hulls
    width: float = 1.0  # of the numbers' domain
    ends: tuple[float | None, float | None] = (None, None)  # bottom and top coding
    nested: bool = True
    scale: Scale | None = None  # of the loss of numbers; none: their own, which is linear
    most: int = 0  # values that may be published together as a set, in the place of the root
    _cache: dict[tuple[str, int], Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def size(self) -> int:
        """Number of codes."""
        return int(self.codes.shape[0])

    @property
    def depth(self) -> int:
        """Number of levels, the exact value and the root included."""
        return int(self.codes.shape[1])

    @property
    def missing(self) -> int:
        """The code of a missing value, or -1."""
        return self.size - 1 if self.size and self.values[-1] is None else -1

    @property
    def known(self) -> int:
        """Number of values that are not missing."""
        return self.size - (self.missing >= 0)

    @property
    def line(self) -> tuple[NDArray[np.float64], float]:
        """Where numbers lie on the scale of their loss, and its width."""
        assert self.numbers is not None
        return (self.numbers, self.width) if self.scale is None else (self.scale.places, self.scale.width)

    def labels(self, level: int) -> pl.Series:
        """The text of each node of a level."""
        key = ("labels", level)
        if key not in self._cache:
            self._cache[key] = pl.Series(self.make_labels(level), dtype=pl.String)
        return self._cache[key]  # type: ignore[no-any-return]

    def costs(self, level: int) -> NDArray[np.float64]:
        """The loss of each node of a level: 0 for an exact value, 1 for the root of more than one value."""
        key = ("costs", level)
        if key not in self._cache:
            own = np.ascontiguousarray(self.make_costs(level), dtype=np.float64)
            inner = self.scale is not None and 0 < level < self.depth - 1
            self._cache[key] = self._scaled(level, own) if inner else own
        return self._cache[key]  # type: ignore[no-any-return]

    def meet(self, low: Codes, high: Codes) -> NDArray[np.int8]:
        """The lowest level at which two codes agree."""
        level = np.full(low.shape, self.depth - 1, np.int8)
        for at in range(self.depth - 2, -1, -1):
            level[self.codes[low, at] == self.codes[high, at]] = at
        return level

    def ncp(
        self, low: Codes, high: Codes, floor: NDArray[np.int8] | int = 0, members: Members | None = None
    ) -> NDArray[np.float64]:
        """The loss of publishing boxes, at level ``floor`` or above; of a set, the share of the values in it."""
        level = np.maximum(self.meet(low, high), floor)
        hull = self._is_hull(low, high, level, floor)
        out = np.zeros(low.shape)
        for at in np.unique(level):
            here = (level == at) & ~hull
            out[here] = self.costs(int(at))[self.codes[low[here], at]]
        if self.numbers is not None:
            places, width = self.line
            out[hull] = (places[high[hull]] - places[low[hull]]) / width
        if members is not None:
            sets = self.sets(members, floor)
            out[sets] = members.counts[sets] / self.known
        return out

    def sets(self, members: Members, floor: NDArray[np.int8] | int = 0) -> NDArray[np.bool_]:
        """Which groups are published as the set of their values: some, not all there are, and no missing one."""
        many = members.counts
        last = members.codes[np.maximum(members.start[1:] - 1, 0)] if len(members.codes) else np.zeros(0, np.int32)
        whole = (last == self.missing) if len(last) else np.zeros(len(many), np.bool_)
        most = min(self.most, self.known - 1)
        return np.asarray((many > 1) & (many <= most) & ~whole & (np.asarray(floor) == 0))

    def text(
        self, low: Codes, high: Codes, floor: NDArray[np.int8] | int = 0, members: Members | None = None
    ) -> pl.Series:
        """The published text of boxes; null where the only value is missing."""
        if len(low) > self.size and members is None:  # groups repeat each other's cells: write each once
            ways = (low.astype(np.int64) * self.size + high) * (self.depth + 1) + floor
            _, first, again = np.unique(ways, return_index=True, return_inverse=True)
            if len(first) < len(low):
                once = self.text(low[first], high[first], floor if isinstance(floor, int) else floor[first])
                spread: pl.Series = once[again]
                return spread
        level = np.maximum(self.meet(low, high), floor)
        hull = self._is_hull(low, high, level, floor)
        out = np.empty(low.shape, dtype=object)
        for at in np.unique(level):
            here = (level == at) & ~hull
            out[here] = self.labels(int(at))[self.codes[low[here], at]].to_list()
        if self.numbers is not None:
            out[hull] = [self._interval(a, b) for a, b in zip(low[hull].tolist(), high[hull].tolist(), strict=True)]
        if members is not None:
            texts = self.labels(0).to_list()
            for group in np.flatnonzero(self.sets(members, floor)):
                inside = members.codes[members.start[group] : members.start[group + 1]]
                out[group] = set_of([texts[code] for code in inside])
        out[(level == 0) & (low == self.missing)] = None
        return pl.Series(out.tolist(), dtype=pl.String)

    def _scaled(self, level: int, own: NDArray[np.float64]) -> NDArray[np.float64]:
        """The loss of the nodes of a level, from their first to their last number; a missing value loses nothing."""
        places, width = self.line
        known = self.codes[: self.missing if self.missing >= 0 else self.size, level]
        first = np.flatnonzero(np.diff(known, prepend=-1))
        last = np.append(first[1:], len(known)) - 1
        out = np.zeros_like(own)
        out[known[first]] = (places[last] - places[first]) / width
        return out

    def _is_hull(
        self, low: Codes, high: Codes, level: NDArray[np.int8], floor: NDArray[np.int8] | int
    ) -> NDArray[np.bool_]:
        # a missing value has no place in an interval, and a level asked for is published as its node
        if self.numbers is None:
            return np.zeros(low.shape, np.bool_)
        return np.asarray((level > 0) & (high != self.missing) & (np.asarray(floor) == 0))

    def _interval(self, low: int, high: int) -> str:
        assert self.numbers is not None
        whole = self.values.dtype.is_integer()
        return interval(
            self.numbers[low],
            self.numbers[high],
            whole=whole,
            bottom=self.ends[0] is not None and bool(self.numbers[low] <= self.ends[0]),
            top=self.ends[1] is not None and bool(self.numbers[high] >= self.ends[1]),
        )


def nest(
    values: pl.Series,
    labels: Sequence[pl.Series],
    *,
    sizes: Sequence[dict[str, float]] | None = None,
    need_nesting: bool = True,
    where: str = "hierarchy",
) -> Levels:
    """Levels from the label of every distinct value at every level (level 0 first, the root last).

    ``sizes[level][label]`` is a node's cost; without it, the share of the present values under the node.
    Costs O(values x levels) memory and one sort.
    """
    frame = pl.DataFrame([values.alias("value"), *[s.cast(pl.String).alias(f"{i}") for i, s in enumerate(labels)]])
    depth = len(labels)
    if depth > MOST_LEVELS:
        raise too_deep(depth, where)
    ordered = frame
    if values.null_count():  # a missing value comes last and stays apart until the root
        frame = frame.with_columns(
            [
                pl.when(pl.col("value").is_null()).then(pl.lit(None)).otherwise(pl.col(f"{i}")).alias(f"{i}")
                for i in range(depth - 1)
            ]
        )
    if values.null_count() or not values.flags["SORTED_ASC"]:  # the values of a column mostly come in order
        ordered = frame.sort("value", nulls_last=True)
    codes = _runs(ordered, depth)
    broken = _broken(ordered, codes)
    if broken is not None:
        ordered = frame.sort([f"{i}" for i in range(depth - 1, -1, -1)], nulls_last=True)
        codes = _runs(ordered, depth)
        broken = _broken(ordered, codes)
        if broken is not None and need_nesting:
            raise UsageError(
                f"level {broken} does not nest: one of its nodes lies in more than one node of level {broken + 1}",
                where=where,
                hint="each node must have one parent; rename the node or change the sizes",
            )

    def label_at(level: int, first: NDArray[np.int64]) -> pl.Series:
        return ordered[f"{level}"][first]

    return in_runs(ordered["value"], codes, label_at, sizes, nested=broken is None)


def too_deep(depth: int, where: str) -> UsageError:
    """The error of a hierarchy with more levels than a byte can count.

    >>> str(too_deep(200, "zip")).splitlines()[0]
    'zip: 200 levels are too many, at most 127 are allowed'
    """
    return UsageError(
        f"{depth} levels are too many, at most {MOST_LEVELS} are allowed",
        where=where,
        hint="limit the length or depth of the hierarchy",
    )


def in_runs(
    values: pl.Series,
    codes: Codes,
    label_at: Callable[[int, NDArray[np.int64]], pl.Series],
    sizes: Sequence[dict[str, float]] | None = None,
    *,
    nested: bool = True,
) -> Levels:
    """Levels from codes that are numbered already, node by node as they stand, a missing value last.

    ``label_at`` says how values at some places read at a level, null where the value is missing. For ``sizes`` see
    :func:`nest`. O(values) per level that is asked for.

    >>> levels = in_runs(pl.Series(["a", "b"]), np.array([[0, 0], [1, 0]], np.int32), lambda at, rows: pl.Series(["*"]))
    >>> levels.labels(1).to_list(), levels.costs(1).tolist()
    (['*'], [1.0])
    """
    depth = codes.shape[1]
    present = max(1, len(values) - values.null_count())

    def make_labels(level: int) -> list[str]:
        unknown = SUPPRESSED if level else ""
        read = label_at(level, run_starts(codes[:, level]))
        return (read.fill_null(unknown) if read.null_count() else read).to_list()

    def make_costs(level: int) -> NDArray[np.float64]:
        if sizes is None:
            count = np.bincount(codes[:, level])
            out: NDArray[np.float64] = np.where(count > 1, np.minimum(count / present, 1.0), 0.0)
        else:
            out = np.array([sizes[level].get(label, 0.0) for label in make_labels(level)], dtype=np.float64)
        if level == depth - 1 and len(codes) > 1:
            out[:] = 1.0
        return out if level else np.zeros_like(out)  # level 0 is published as it is

    return Levels(values, codes, make_labels, make_costs, nested=nested)


def run_starts(codes: Codes) -> NDArray[np.int64]:
    """Where the runs of equal codes begin.

    >>> run_starts(np.array([0, 0, 1, 2, 2], np.int32)).tolist()
    [0, 2, 3]
    """
    return np.flatnonzero(np.diff(codes, prepend=-1))


def _runs(frame: pl.DataFrame, depth: int) -> Codes:
    codes = np.zeros((frame.height, depth), np.int32)
    for at in range(depth - 1):
        column = frame[f"{at}"]
        change = column[1:] != column[:-1]
        if change.null_count():  # next to a missing value
            change = change.fill_null(True)
        codes[1:, at] = np.cumsum(change.to_numpy())
    return codes


def _broken(frame: pl.DataFrame, codes: Codes) -> int | None:
    """The first level whose nodes are not runs of codes, or whose runs cross the next level's."""
    for at in range(codes.shape[1] - 1):
        first = run_starts(codes[:, at])
        if len(first) != frame[f"{at}"][first].n_unique():
            return at
        if (np.diff(codes[:, at + 1]) > np.diff(codes[:, at])).any():
            return at
    return None


def code_of(levels: Levels, values: pl.Series) -> Codes:
    """The code of each of ``values``; -1 where the hierarchy does not know it.

    >>> from shoal.core.hierarchy.prefix import Prefix
    >>> levels, _ = Prefix(length=3).compile(pl.Series(["101", "102"]))
    >>> code_of(levels, pl.Series(["102", "999"])).tolist()
    [1, -1]
    """
    if len(values) <= FEW_ROWS and values.dtype == levels.values.dtype and values.dtype in (pl.String, pl.Int64):
        # a join takes a millisecond however few they are, and there is one for each column of each small table
        known = {value: code for code, value in enumerate(levels.values.to_list())}
        return np.array([known.get(value, -1) for value in values.to_list()], np.int32)
    frame = pl.DataFrame({"value": levels.values, "code": np.arange(levels.size, dtype=np.int32)})
    wanted = pl.DataFrame({"value": values}).with_columns(pl.col("value").cast(frame.schema["value"]))
    found = wanted.join(frame, on="value", how="left", nulls_equal=True, maintain_order="left")["code"]
    return found.fill_null(-1).to_numpy()

"""Which records two views of them give away: the forms both show, compared by an attacker who forgets nothing.

The measure is an upper bound of a family of attacks, not one attack. A record counts as linked if nobody else could
be taken for its person by

- **forms**: every column both views show, in forms that occur together (27 and ``[20, 29]``); where forms overlap
  (ranges with different edges), also by elimination: who is assigned to one record is free for no other;
- **nearness**: numbers and dates with noise or a shift of their own. Somebody else is as good a guess only if all of
  their numbers, and their places among all, are at least as near; so no weighting of the columns finds more;
- **trajectories**: all records of a pseudonym matched with all records of a pseudonym of the other view.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

Codes = NDArray[np.int64]
Flags = NDArray[np.bool_]
MOST_FORMS = 4_000_000  # pairs of forms of one column
MOST_TYPES = 2_000  # kinds of records that are compared pair by pair
MOST_CATEGORIES = 50  # of a column, counted one by one
MOST_STEPS = 5_000  # neighbours looked at for one number
SPARSE = 16  # times as many possible codes as records: more are cheaper to sort than to look up


class Comparison(NamedTuple):
    """One column as two roles see it, record by record.

    >>> Comparison("age", pl.Series(["27"]), pl.Series(["[20, 29]"])).name
    'age'
    """

    name: str
    mine: pl.Series
    theirs: pl.Series


class Nearness(NamedTuple):
    """Numbers of both views that lie near each other for one record; not a number where there is none.

    They may stand for ``categories`` (0: they are numbers): then only the same is near.
    """

    name: str
    mine: NDArray[np.float64]
    theirs: NDArray[np.float64]
    categories: int = 0


class Coded(NamedTuple):
    """A comparison as numbers: what both sides surely have in ``common``; and which forms fit, where they overlap."""

    name: str
    common: Codes
    mine: Codes | None = None
    theirs: Codes | None = None
    fits: Flags | None = None

    @property
    def both(self) -> Codes:
        """The two forms as one number, where they overlap."""
        assert self.mine is not None
        assert self.theirs is not None
        return np.asarray(self.mine * (int(self.theirs.max(initial=0)) + 1) + self.theirs)

    def fitting(self, rows: Codes) -> Flags:
        """Which of these rows of mine fit which of theirs."""
        assert self.fits is not None
        assert self.mine is not None
        assert self.theirs is not None
        return np.asarray(self.fits[self.mine[rows][:, None], self.theirs[rows][None, :]])


def codes(values: pl.Series) -> Codes:
    """Equal values, equal numbers, counted from zero; null is a value.

    >>> codes(pl.Series(["b", None, "a", "b"])).tolist()
    [2, 0, 1, 2]
    """
    return np.asarray(values.rank("dense").cast(pl.Int64).fill_null(0).to_numpy() - (values.null_count() == 0))


def coded(compared: Comparison) -> Coded:
    """A comparison as numbers: where one form decides the other, the coarser one; else what both have in common."""
    a, b = codes(compared.mine), codes(compared.theirs)
    high, wide = int(a.max(initial=-1)) + 1, int(b.max(initial=-1)) + 1
    pair, common = np.unique(a * max(wide, 1) + b, return_inverse=True)
    if len(pair) == high:
        return Coded(compared.name, b)
    if len(pair) == wide:
        return Coded(compared.name, a)
    if high * wide > MOST_FORMS:  # too many to compare: as if the colluders knew both forms of every record
        return Coded(compared.name, common)
    fits = np.zeros((high, wide), np.bool_)
    fits[a, b] = True
    return Coded(compared.name, _components(a, b), a, b, fits)


def combined(parts: Sequence[Codes], rows: int) -> Codes:
    """Several codes as one, counted from zero.

    >>> combined([np.array([0, 1, 1]), np.array([5, 5, 9])], 3).tolist()
    [0, 1, 2]
    """
    out = np.zeros(rows, np.int64)
    for part in parts:
        out = _dense(out * (int(part.max(initial=0)) + 1) + part)
    return out


def without_each(parts: Sequence[Codes], rows: int) -> list[Codes]:
    """For each of the codes, all others as one: from what stands before it and what stands after it.

    >>> [c.tolist() for c in without_each([np.array([0, 1, 1]), np.array([0, 0, 1])], 3)]
    [[0, 0, 1], [0, 1, 1]]
    """
    before, after = [np.zeros(rows, np.int64)], [np.zeros(rows, np.int64)]
    for part in parts:
        before.append(combined([before[-1], part], rows))
    for part in reversed(parts):
        after.append(combined([after[-1], part], rows))
    return [combined([before[at], after[len(parts) - 1 - at]], rows) for at in range(len(parts))]


def _dense(value: Codes) -> Codes:
    """The same numbers, counted from zero; by a table of those that occur unless it would be much longer than they."""
    size = int(value.max(initial=-1)) + 1
    if size > SPARSE * len(value):
        return np.unique(value, return_inverse=True)[1]
    there = np.zeros(size, np.bool_)
    there[value] = True
    return np.asarray((np.cumsum(there) - 1)[value])


@dataclass(frozen=True)
class Linking:
    """The attack on two views of the same records. ``people`` are their persons; ``cells`` the records that have one
    pseudonym in the one view and one in the other (-1: no pseudonym), none if a view has no pseudonyms.

    >>> sex = coded(Comparison("sex", pl.Series(["f", "m", "m"]), pl.Series(["F", "M", "M"])))
    >>> Linking(np.array([0, 1, 2])).linked([sex]).tolist()
    [True, False, False]
    """

    people: Codes
    cells: Codes | None = None

    def linked(
        self,
        compared: Sequence[Coded],
        near: Sequence[Nearness] = (),
        *,
        cells: bool = True,
        key: Codes | None = None,
    ) -> Flags:
        """Per record, whether it is linked by these columns."""
        return np.asarray(self.taken_for(compared, near, cells=cells, key=key) == 1)

    def taken_for(
        self,
        compared: Sequence[Coded],
        near: Sequence[Nearness] = (),
        *,
        cells: bool = True,
        key: Codes | None = None,
    ) -> Codes:
        """Per record, how many people it may be taken for; one means linked. ``key`` is what all have in common, if it
        is known already.
        """
        rows = len(self.people)
        overlapping = [c for c in compared if c.fits is not None]
        key = combined([c.common for c in compared], rows) if key is None else key
        whole = combined([key, *(c.both for c in overlapping)], rows) if overlapping else key
        count = people_per_key(_circles(key, whole, overlapping) if overlapping else key, self.people)
        if near:
            count[_nearest(whole, near, self.people)] = 1
        if self.cells is not None and cells:
            found = self._cells_linked(whole, near) | np.bincount(self._cell, count == 1, len(self._first)).astype(bool)
            # records without a pseudonym were answered one by one above
            count[(found & ~self._lone)[self._cell]] = 1
        return count

    def _cells_linked(self, key: Codes, near: Sequence[Nearness]) -> Flags:
        """Per cell: whether all its records together are nobody else's."""
        person = self.people[self._order][self._first]
        sums = np.add.reduceat(_mixed(key)[self._order], self._first) if len(key) else np.empty(0, np.uint64)
        likeness = np.unique(sums, return_inverse=True)[1]
        out = _one_person(likeness, person)
        if near:
            out = out | _nearest(likeness, [part for n in near for part in self._summed(n)], person)
        return out

    def _summed(self, near: Nearness) -> list[Nearness]:
        """Mean, least and greatest number of each cell: what noise does to one record averages out over many.

        Of categories, how often each occurs: whoever is as near in all of them shares as many with the cell.
        """
        mine, theirs = near.mine[self._order], near.theirs[self._order]
        if 0 < near.categories <= MOST_CATEGORIES:
            counts = (
                tuple(np.add.reduceat((side == kind).astype(np.float64), self._first) for side in (mine, theirs))
                for kind in range(near.categories)
            )
            return [Nearness(near.name, one, other) for one, other in counts]
        means = (_mean(side, self._first) for side in (mine, theirs))
        # fmin and fmax pass over what is no number
        least = (np.fmin.reduceat(side, self._first) for side in (mine, theirs))
        greatest = (np.fmax.reduceat(side, self._first) for side in (mine, theirs))
        return [Nearness(near.name, *pair) for pair in (means, least, greatest)]

    @cached_property
    def _cell(self) -> Codes:
        assert self.cells is not None
        return np.unique(self.cells, return_inverse=True)[1]

    @cached_property
    def _order(self) -> Codes:
        return np.argsort(self._cell, kind="stable")

    @cached_property
    def _first(self) -> Codes:
        return np.unique(self._cell[self._order], return_index=True)[1]

    @cached_property
    def _lone(self) -> Flags:
        assert self.cells is not None
        return np.asarray(self.cells[self._order][self._first] < 0)


def people_per_key(key: Codes, people: Codes) -> Codes:
    """For each row, how many people share its key.

    >>> people_per_key(np.array([0, 0, 0, 1]), np.array([7, 7, 8, 9])).tolist()
    [2, 2, 2, 1]
    """
    wide = int(people.max(initial=0)) + 1
    pairs = np.sort(key * wide + people)  # np.unique hashes, which takes twenty times as long as sorting
    first = np.append(True, pairs[1:] != pairs[:-1])[: len(pairs)]
    return np.asarray(np.bincount(pairs[first] // wide, minlength=int(key.max(initial=-1)) + 1)[key])


def _one_person(key: Codes, people: Codes) -> Flags:
    return np.asarray(people_per_key(key, people) == 1)


def _circles(key: Codes, whole: Codes, overlapping: Sequence[Coded]) -> Codes:
    """Rows that elimination does not tell apart get one number.

    One record of mine may stand for one of theirs if their forms fit. Another assignment of all records exists exactly
    if the two lie on a circle of fitting forms, so a record is linked if its circles meet its own person only.
    """
    kinds, first, kind = np.unique(whole, return_index=True, return_inverse=True)
    block = key[first]
    label = np.arange(len(kinds))
    order = np.argsort(block, kind="stable")
    for members in np.split(order, np.flatnonzero(np.diff(block[order])) + 1):
        if 1 < len(members) <= MOST_TYPES:  # larger ones stay apart: the safe side
            rows = first[members]
            fits = np.ones((len(members), len(members)), np.bool_)
            for c in overlapping:
                fits &= c.fitting(rows)
            label[members] = members[strong_components(fits)]
    return np.asarray(label[kind])


def strong_components(fits: Flags) -> Codes:
    """For each node a node that stands for all it lies on a circle with (Tarjan 1972, without recursion).

    >>> strong_components(np.array([[1, 1, 0], [1, 1, 1], [0, 0, 1]], bool)).tolist()
    [0, 0, 2]
    """
    n = len(fits)
    # a path of its own: a sample has more records than Python has frames for recursion
    label, number, lowest = (np.full(n, -1, np.int64) for _ in range(3))
    stack: list[int] = []
    count = 0
    for start in range(n):
        path = [start] if number[start] < 0 else []
        ahead: dict[int, list[int]] = {}
        while path:
            node = path[-1]
            if number[node] < 0:
                number[node] = lowest[node] = count
                count += 1
                stack.append(node)
                ahead[node] = np.flatnonzero(fits[node]).tolist()
            while ahead[node]:
                after = ahead[node].pop()
                if number[after] < 0:
                    path.append(after)
                    break
                if label[after] < 0:  # still on the stack: a way back, so a circle
                    lowest[node] = min(lowest[node], number[after])
            else:
                path.pop()
                if path:
                    lowest[path[-1]] = min(lowest[path[-1]], lowest[node])
                if lowest[node] == number[node]:  # no way back beyond it: what lies above it on the stack is its circle
                    while label[node] < 0:
                        label[stack.pop()] = node
    return label


def _nearest(key: Codes, near: Sequence[Nearness], people: Codes) -> Flags:
    """Rows whose numbers, seen from either side, are nearer than anybody else's of the same key.

    Of a person's several rows the nearest counts, in each column: whose they are is what is found out.
    """
    from shoal.kernels.shared.nearness import undominated

    gaps = [np.isnan(n.mine) | np.isnan(n.theirs) for n in near]
    numbers = [(n, g) for n, g in zip(near, gaps, strict=True) if not n.categories]
    # whoever sorts both files compares places, too: noise that moves a number past nobody moves its place nowhere
    mine, theirs = (
        np.stack([*(getattr(n, side) for n in near), *(_places(key, getattr(n, side), g) for n, g in numbers)], axis=1)
        for side in ("mine", "theirs")
    )
    gap = np.stack([*gaps, *(g for _, g in numbers)], axis=1)
    out = np.zeros(len(key), np.bool_)
    for a, b in ((mine, theirs), (theirs, mine)):
        # a missing number tells nothing: everybody is as near to it
        a, b = np.where(gap, 0.0, a), np.where(gap, np.inf, b)
        order = np.lexsort((b[:, 0], key))
        starts = np.append(np.unique(key[order], return_index=True)[1], len(key))
        a, b = np.ascontiguousarray(a), np.ascontiguousarray(b)
        own = np.where(gap, np.inf, _own_distances(key, people, a, b))
        out |= undominated(order, starts, a, b, own, people, MOST_STEPS)
    return out


def _own_distances(key: Codes, people: Codes, a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    """Per row and column, how near the nearest row of the same key and person comes."""
    from shoal.kernels.shared.nearness import nearest_own

    out = np.empty(a.shape)
    run = key * (int(people.max(initial=0)) + 1) + people
    for c in range(a.shape[1]):
        mine, theirs, far = np.ascontiguousarray(a[:, c]), np.ascontiguousarray(b[:, c]), np.empty(len(key))
        order = np.lexsort((theirs, run))
        ends = np.flatnonzero(np.diff(run[order])) + 1
        nearest_own(order, np.concatenate(([0], ends, [len(run)])), mine, theirs, far)
        out[:, c] = far
    return out


def _places(key: Codes, values: NDArray[np.float64], gap: Flags) -> NDArray[np.float64]:
    """The place of each number among those of its key that both sides have; equal numbers share the first."""
    order = np.lexsort((values, gap, key))
    group, value = key[order], values[order]
    fresh = np.append(True, group[1:] != group[:-1])[: len(key)]
    other = fresh | np.append(True, value[1:] != value[:-1])[: len(key)]
    at = np.arange(len(key))
    out = np.empty(len(key))
    out[order] = np.maximum.accumulate(np.where(other, at, 0)) - np.maximum.accumulate(np.where(fresh, at, 0))
    return out


def _mean(values: NDArray[np.float64], first: Codes) -> NDArray[np.float64]:
    """The mean of what is known of each run; not a number where nothing is."""
    known = ~np.isnan(values)
    with np.errstate(invalid="ignore"):
        total = np.add.reduceat(np.where(known, values, 0.0), first)
        return np.asarray(total / np.add.reduceat(known.astype(np.int64), first))


def _mixed(key: Codes) -> NDArray[np.uint64]:
    """64 random bits per key, so that sums of them tell multisets apart.

    Drawn, not computed: a mixing function of few steps keeps relations between keys (of SplitMix64, one key in eight
    gives twice the bits of another), and then two records of one read like one record of the other.
    """
    # a fixed seed: the same sample gives the same figure
    drawn = np.random.default_rng(0).integers(0, 2**64, int(key.max(initial=-1)) + 1, np.uint64)
    return np.asarray(drawn[key])


def _components(mine: Codes, theirs: Codes) -> Codes:
    """What two forms of a value surely have in common: the connected components of "occur together"."""
    label = np.arange(int(mine.max(initial=0)) + 1)
    while True:
        least = np.full(int(theirs.max(initial=0)) + 1, len(label))
        np.minimum.at(least, theirs, label[mine])
        fresh = label.copy()
        np.minimum.at(fresh, mine, least[theirs])
        if np.array_equal(fresh, label):
            return np.asarray(label[mine])
        label = fresh

"""What roles learn together: two views of one record intersect.

Whoever pools the views of several roles tries to put the records of one person together again. The measure is taken
on a sample, for whose records the truth is known: for each record, how many people it may be taken for by the attacks
of :mod:`shoal.release.linking`. One means: linked.

The safe side: the colluders are taken to know which forms of a value occur together (that 27 reads ``[20, 29]`` for
the other role), how a mask that reads other columns works, and that both views are of the same records. A pool of
roles links whatever two of them link, so it never says less than a pair inside it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.core.schema import Schema
from shoal.release.descriptions import lengths, mentioned_forms, told_by_words
from shoal.release.linking import (
    Coded,
    Codes,
    Comparison,
    Linking,
    Nearness,
    coded,
    codes,
    combined,
    people_per_key,
    without_each,
)
from shoal.release.other_names import derived, mentioned
from shoal.release.residues import agreement, days_between, days_since_first, nearness, residues
from shoal.release.trajectories import trajectories

ENOUGH = 20  # people who share each value of a column that is coarse enough, for the figure of what coarsening gains
FEW = 8  # as many rows stand in the same order by chance once in 40,320
ORDER = "the order of the rows"


@dataclass(frozen=True)
class Seen:
    """What a role really gets of the sample: the released ``data``, and which ``rows`` of the sample they are.

    ``keyed`` columns cannot be recomputed by others, ``clear`` ones are unmasked, ``hidden`` ones tell nothing;
    ``reads`` says which other columns a mask looks at.

    >>> Seen("ward", pl.DataFrame({"age": [30], "name": ["*"]}), pl.Series([0]), hidden=frozenset({"name"})).columns
    ['age']
    """

    role: str
    data: pl.DataFrame
    rows: pl.Series
    keyed: frozenset[str] = frozenset()
    clear: frozenset[str] = frozenset()
    hidden: frozenset[str] = frozenset()
    reads: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def columns(self) -> list[str]:
        """The columns it learns something from."""
        return [c for c in self.data.columns if c not in self.hidden]


class Cause(msgspec.Struct, frozen=True):
    """What a column contributes: the share of records linked by it alone, still linked without it, and still linked
    if it were so coarse that 20 people share each of its values.
    """

    column: str
    alone: float
    without: float
    coarser: float = 0.0


class Pool(msgspec.Struct, frozen=True):
    """What a set of roles learns together.

    ``linked`` of the ``records`` of the sample are put together from two or more of their views, ``linked_people`` of
    the ``people`` have such a record; ``smallest``, ``median`` are of the number of people a record may be taken for.
    ``best`` are the fewest columns found that link a record. ``reveals`` are columns no single role sees together.

    >>> Pool(["ward", "office"], records=4, linked=1, smallest=1, median=2.0).share
    0.25
    """

    roles: list[str]
    records: int
    linked: int
    smallest: int
    median: float
    causes: list[Cause] = []
    reveals: list[str] = []
    new: bool = True
    people: int = 0
    linked_people: int = 0
    best: list[str] = []

    @property
    def share(self) -> float:
        """The fraction of records linked."""
        return self.linked / self.records if self.records else 0.0

    @property
    def worst(self) -> Cause | None:
        """The column whose removal gains most."""
        return min(self.causes, key=lambda c: (c.without, -c.alone), default=None)

    def __str__(self) -> str:
        who = " + ".join(self.roles)
        if not self.new:
            return f"{who}: nothing new, one of them sees it all"
        text = f"{who}: {self.linked:,} of {self.records:,} records linked exactly ({self.share:.1%})"
        if 0 < self.people < self.records:
            text += f", of {self.linked_people:,} of {self.people:,} people"
        worst = self.worst
        if worst is not None and self.linked:
            text += f", above all by {worst.column!r} (alone {worst.alone:.1%}, without it {worst.without:.1%}"
            text += f", coarser {worst.coarser:.1%})"
        if self.best:
            text += f"; the easiest record needs only {' and '.join(self.best)}"
        if self.reveals and self.linked:
            text += f"; together: {', '.join(self.reveals)}"
        return text


def collusion(
    views: Sequence[Seen],
    schema: Schema,
    *,
    subjects: pl.Series | None = None,
    most: int = 2,
    records: int | None = None,
    originals: pl.DataFrame | None = None,
) -> list[Pool]:
    """What every set of two to ``most`` roles learns together, of the ``records`` of the sample.

    With the ``originals``, also what free texts of one view mention of cells that another shows in a form of its own.

    >>> from shoal.core.schema import Column
    >>> rows, schema = pl.Series([0, 1]), Schema({"zip": Column("quasi"), "diag": Column("sensitive")})
    >>> both = [Seen("ward", pl.DataFrame({"zip": ["1", "2"], "diag": ["a", "b"]}), rows, clear=frozenset({"zip"})),
    ...         Seen("office", pl.DataFrame({"zip": ["1", "2"]}), rows, clear=frozenset({"zip"}))]
    >>> collusion(both, schema)[0].linked
    2
    """
    height = max((int(v.rows.max()) + 1 for v in views if len(v.rows)), default=0)  # type: ignore[arg-type]
    people = codes(subjects) if subjects is not None else np.arange(max(height, records or 0))
    sources = {name: derive.sources for name, derive in schema.derived.items()}
    sides = _Sides(people, originals)
    pairs = {(i, j): _Pair(views[i], views[j], sides, sources) for i, j in combinations(range(len(views)), 2)}
    sets = [s for size in range(2, most + 1) for s in combinations(range(len(views)), size)]
    return [_pool([views[i] for i in s], [pairs[p] for p in combinations(s, 2)], schema, people) for s in sets]


def _pool(views: Sequence[Seen], pairs: Sequence[_Pair], schema: Schema, people: Codes) -> Pool:
    height = len(people)
    # who shares no row with another role is hidden among everybody; each pair of roles can only narrow that
    fit = np.full(height, len(np.unique(people)), np.int64)
    for pair in pairs:
        fit[pair.rows] = np.minimum(fit[pair.rows], pair.fit)
    shared = np.unique(np.concatenate([pair.rows for pair in pairs])) if pairs else np.empty(0, np.int64)
    linked = fit == 1
    linked[np.setdiff1d(np.arange(height), shared)] = False  # a sample of one person is no link between two views
    every = set().union(*(v.columns for v in views))
    worst = max(pairs, key=lambda p: p.share)
    return Pool(
        roles=[v.role for v in views],
        records=height,
        linked=int(linked.sum()),
        smallest=int(fit[shared].min()) if len(shared) else 0,
        median=float(np.median(fit[shared])) if len(shared) else 0.0,
        # of three roles or more the pairs have already said it, each by itself
        causes=worst.causes() if len(pairs) == 1 else [],
        reveals=_reveals(views, schema),
        # where one of them sees all columns in clear, pooling adds nothing
        new=not any(every == set(v.columns) == set(v.clear) for v in views),
        people=len(np.unique(people)),
        linked_people=len(np.unique(people[linked])),
        best=worst.best() if len(pairs) == 1 else [],
    )


def _reveals(views: Sequence[Seen], schema: Schema) -> list[str]:
    """Columns that matter, seen in clear by some of the roles, but not all by the same one."""
    matter = {*schema.of("subject", "identifier", "quasi", "sensitive")}
    joint = [c for c in schema.columns if c in matter and any(c in v.clear for v in views)]
    return [] if any(set(joint) <= v.clear for v in views) else joint


class _Side:
    """A view of some of its rows, and which of them it ties together."""

    def __init__(self, view: Seen, rows: Codes, people: Codes) -> None:
        self.data = _at(view, rows)
        self.ties, self.cells = trajectories(self.data, view.columns, people[rows])


class _Sides:
    """Sides once made: most pairs of views share the same rows."""

    def __init__(self, people: Codes, originals: pl.DataFrame | None) -> None:
        self.people, self.originals = people, originals
        self._kept: dict[tuple[str, bytes], _Side] = {}

    def of(self, view: Seen, rows: Codes) -> _Side:
        key = view.role, rows.tobytes()
        if key not in self._kept:
            self._kept[key] = _Side(view, rows, self.people)
        return self._kept[key]


class _Pair:
    """Two views of the rows both have."""

    def __init__(self, left: Seen, right: Seen, sides: _Sides, sources: Mapping[str, Sequence[str]]) -> None:
        self._sources = sources
        self._left, self._right, self._height = left, right, len(sides.people)
        shared = np.intersect1d(left.rows.to_numpy(), right.rows.to_numpy())
        self.rows: Codes = shared[shared >= 0].astype(np.int64)  # below 0: invented, no row of the sample
        self._sides = sides.of(left, self.rows), sides.of(right, self.rows)
        self._mine, self._theirs = (side.data for side in self._sides)
        self._people = sides.people[self.rows]
        self._ties, cells = self._cells()
        self._linking = Linking(self._people, cells)
        told, near = self._told(sides.originals)
        self._compared = [coded(c) for c in (*self._comparisons(), *told)]
        self._near = [*self._nearnesses(), *near]
        self.fit = self._linking.taken_for(self._compared, self._near)
        # `causes` and `best` ask for many sets of columns; all of them together is answered already
        whole = frozenset(self._names), self._linking.cells is not None
        self._answers: dict[tuple[frozenset[str], bool], float] = {whole: self.share}

    @property
    def share(self) -> float:
        return self._share(self.fit == 1)

    def _share(self, linked: NDArray[np.bool_]) -> float:
        return float(linked.sum()) / max(1, self._height)

    def _cells(self) -> tuple[list[str], Codes | None]:
        (mine, a), (theirs, b) = ((side.ties, side.cells) for side in self._sides)
        if not mine or not theirs:
            return [], None
        # rows are tied only where both views tie them; a row that either ties to none has a number of its own
        cells = np.where((a < 0) | (b < 0), -1 - np.arange(len(a)), a * (int(b.max(initial=0)) + 1) + b)
        return list(dict.fromkeys([*mine, *theirs])), cells

    def _shared(self) -> list[str]:
        return [c for c in self._left.columns if c in self._right.columns]

    def _secret(self, column: str) -> bool:
        """Whether a key stands between the two forms of a column."""
        if column not in self._left.keyed and column not in self._right.keyed:
            return False
        # both may have the same key: then the forms are equal, and compared like any others
        a, b = self._mine[column], self._theirs[column]
        return not (a.dtype == b.dtype and a.equals(b, check_names=False))

    def _comparisons(self) -> Iterator[Comparison]:
        if len(self.rows) >= FEW and self._same_order():
            place = pl.Series(self.rows)
            yield Comparison(ORDER, place, place)
        for column in self._shared():
            mine, theirs = self._mine[column], self._theirs[column]
            if self._secret(column):  # values cannot be compared, but what a key leaves as it is can
                yield from residues(column, mine, theirs)
                if self._linking.cells is not None:
                    yield from days_since_first(column, mine, theirs, self._linking.cells)
            else:
                a = self._with_read(column, self._right, self._left, self._mine)
                b = self._with_read(column, self._left, self._right, self._theirs)
                yield Comparison(column, a, b)
        # dates that a key moves are moved together for a person: what lies between two of them stays
        secret = [c for c in self._shared() if self._secret(c)]
        yield from days_between({c: self._mine[c] for c in secret}, {c: self._theirs[c] for c in secret})
        yield from self._other_names()

    def _other_names(self) -> Iterator[Comparison]:
        mine, theirs = (
            frame.select(c for c in seen.columns if c not in seen.keyed)
            for frame, seen in ((self._mine, self._left), (self._theirs, self._right))
        )
        for one, other in ((mine, theirs), (theirs, mine)):
            alone = [c for c in other.columns if c not in one.columns]
            yield from derived(one, other, alone, self._sources)
            yield from mentioned(one, other)
        yield from told_by_words(mine, theirs, self._people)

    def _told(self, originals: pl.DataFrame | None) -> tuple[list[Comparison], list[Nearness]]:
        """What the texts of the one view mention of what the other shows in a form of its own."""
        compared, near = list[Comparison](), list[Nearness]()
        if originals is not None:
            there = originals[self.rows]
            for one, mine, other, theirs in (
                (self._left, self._mine, self._right, self._theirs),
                (self._right, self._theirs, self._left, self._mine),
            ):
                shown = [c for c in other.columns if c not in other.clear]
                texts = mine.select(c for c in one.columns if c not in one.keyed)
                more, nearer = mentioned_forms(texts, there, theirs, shown, other.keyed)
                compared, near = compared + more, near + nearer
        return compared, near

    def _with_read(self, column: str, masked: Seen, other: Seen, data: pl.DataFrame) -> pl.Series:
        """A column of ``other``, beside what else it shows of the columns that the mask of ``masked`` looks at."""
        # a keyed form says nothing of what the mask looked at
        reads = [c for c in masked.reads.get(column, ()) if c in other.columns and c not in other.keyed and c != column]
        parts = [data[c].cast(pl.String) for c in dict.fromkeys([column, *reads])]
        return parts[0] if len(parts) == 1 else pl.DataFrame(parts).select(pl.struct(pl.all())).to_series()

    def _nearnesses(self) -> Iterator[Nearness]:
        for column in self._shared():
            if self._secret(column):
                sides = self._mine[column], self._theirs[column]
                # the most telling first: how near numbers are, then equal categories, then how long texts are
                found = nearness(column, *sides) or agreement(column, *sides) or lengths(column, *sides)
                if found is not None:
                    yield found

    def _same_order(self) -> bool:
        """Whether the rows both have stand in the same order in both files: then the n-th is the n-th."""
        a, b = self._left.rows, self._right.rows
        both = pl.Series(self.rows).implode()
        return a.filter(a.is_in(both)).equals(b.filter(b.is_in(both)), check_names=False)

    @property
    def _names(self) -> list[str]:
        return list(dict.fromkeys([*(c.name for c in self._compared), *(n.name for n in self._near)]))

    def _by(self, names: Sequence[str], *, cells: bool = True, key: Codes | None = None) -> float:
        """The share linked by some of the columns; what is asked twice is answered from memory."""
        asked = frozenset(names), cells and self._linking.cells is not None
        if asked not in self._answers:
            self._answers[asked] = self._by_key(names, key, cells=cells)
        return self._answers[asked]

    def _by_key(self, names: Sequence[str], key: Codes | None, *, cells: bool = True) -> float:
        compared = [c for c in self._compared if c.name in names]
        near = [n for n in self._near if n.name in names]
        return self._share(self._linking.linked(compared, near, cells=cells, key=key))

    def _named(self, name: str) -> list[Coded]:
        return [c for c in self._compared if c.name == name]

    def causes(self) -> list[Cause]:
        """What each column, and what the pseudonyms contribute."""
        names, rows = self._names, len(self.rows)
        keys = without_each([combined([c.common for c in self._named(n)], rows) for n in names], rows)
        out = []
        for name, key in zip(names, keys, strict=True):
            others = [n for n in names if n != name]
            alone, without = self._by([name]), self._by(others, key=key)
            # what a policy could do instead of hiding the column: show it less exactly
            coarse = [_coarser(c.common, self._people) for c in self._named(name)]
            coarser = self._by_key(others, combined([key, *coarse], rows)) if coarse else without
            out.append(Cause(name, alone, without, coarser))
        if self._ties:
            without = self._by(names, cells=False)
            out.append(Cause(" and ".join(self._ties), self._by([]), without, without))
        return out

    def best(self) -> list[str]:
        """The fewest columns found that link a record: added one by one, the one that links most first."""
        left, found = self._names, list[str]()
        if not (self.fit == 1).any():
            return []
        shares = {name: self._by([name], cells=False) for name in left}
        for name in sorted(left, key=lambda n: -shares[n]):
            found.append(name)
            if self._by(found, cells=False):
                return found
        return [*found, *self._ties]


def _coarser(value: Codes, people: Codes) -> Codes:
    """Neighbouring values become one until enough people share each."""
    owners = np.zeros(int(value.max(initial=-1)) + 1, np.int64)
    owners[value] = people_per_key(value, people)
    return np.asarray(((np.cumsum(owners) - owners) // ENOUGH)[value])


def _at(view: Seen, rows: Codes) -> pl.DataFrame:
    """The view's records of these rows, in their order."""
    order = np.argsort(view.rows.to_numpy(), kind="stable")
    return view.data[order[np.searchsorted(view.rows.to_numpy()[order], rows)]]

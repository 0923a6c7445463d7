"""What roles learn together: two views of one record intersect.

Whoever pools the views of several roles tries to put the records of one person together again, by what both show of
the same column. The measure is taken on a sample, for whose records the truth is known: for each record, how many
people of the other view fit it. One means: linked exactly.

The safe side: the colluders are taken to know which forms of a value occur together (that 27 reads ``[20, 29]`` for
the other role). Forms made with a key of its own (tokens, pseudonyms, noise, shuffling) fit nothing, unless both
views happen to show the very same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.core.schema import Schema
from shoal.release.linking import Comparison, candidates


@dataclass(frozen=True)
class Seen:
    """What a role really gets of the sample: the released ``data``, and which ``rows`` of the sample they are."""

    role: str
    data: pl.DataFrame
    rows: pl.Series
    keyed: frozenset[str] = frozenset()
    clear: frozenset[str] = frozenset()
    hidden: frozenset[str] = frozenset()

    @property
    def columns(self) -> list[str]:
        """The columns it learns something from."""
        return [c for c in self.data.columns if c not in self.hidden]


class Cause(msgspec.Struct, frozen=True):
    """What a column shown by both sides contributes: records linked by it alone, and still linked without it."""

    column: str
    alone: float
    without: float


class Pool(msgspec.Struct, frozen=True):
    """What a set of roles learns together.

    ``linked`` of the ``records`` in all their views are put together exactly; ``smallest``, ``median`` are of the
    number of people who fit a record. ``reveals`` are columns no single one of them sees together.

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
    unmeasured: list[str] = []

    @property
    def share(self) -> float:
        """The fraction of records linked exactly."""
        return self.linked / self.records if self.records else 0.0

    def __str__(self) -> str:
        who = " + ".join(self.roles)
        if not self.new:
            return f"{who}: nothing new, one of them sees it all"
        text = f"{who}: {self.linked:,} of {self.records:,} records linked exactly ({self.share:.1%})"
        if self.causes and self.linked:
            worst = max(self.causes, key=lambda c: (self.share - c.without, c.alone))
            text += f", above all by {worst.column!r} (alone {worst.alone:.1%}, without it {worst.without:.1%})"
        if self.reveals and self.linked:
            text += f"; together: {', '.join(self.reveals)}"
        if self.unmeasured:
            text += f"; not measured: noise in {', '.join(self.unmeasured)}"
        return text


def collusion(views: Sequence[Seen], schema: Schema, *, subjects: pl.Series | None = None, most: int = 2) -> list[Pool]:
    """What every set of two to ``most`` roles learns together, over the rows all of them see.

    >>> from shoal.core.schema import Column
    >>> rows, schema = pl.Series([0, 1]), Schema({"zip": Column("quasi"), "diag": Column("sensitive")})
    >>> both = [Seen("ward", pl.DataFrame({"zip": ["1", "2"], "diag": ["a", "b"]}), rows, clear=frozenset({"zip"})),
    ...         Seen("office", pl.DataFrame({"zip": ["1", "2"]}), rows, clear=frozenset({"zip"}))]
    >>> collusion(both, schema)[0].linked
    2
    """
    measure = _Measure(views, schema, subjects)
    sets = [s for size in range(2, most + 1) for s in combinations(range(len(views)), size)]
    return [measure.pool(s) for s in sets]


@dataclass
class _Measure:
    views: Sequence[Seen]
    schema: Schema
    subjects: pl.Series | None
    _known: dict[tuple[int, ...], NDArray[np.bool_]] = field(default_factory=dict)

    def pool(self, chosen: tuple[int, ...]) -> Pool:
        views = [self.views[i] for i in chosen]
        rows = self._rows(views)
        linked = self._linked(chosen)[rows.to_numpy()]
        every = set().union(*(v.columns for v in views))
        # where one of them sees all columns in clear, pooling adds nothing
        single = any(every == set(v.columns) == set(v.clear) for v in views)
        left, right = (views[:-1], views[-1])
        fit = self._fit(left, right, rows)
        return Pool(
            roles=[v.role for v in views],
            records=len(rows),
            linked=int(linked.sum()),
            smallest=int(fit.min()) if len(fit) else 0,
            median=float(np.median(fit)) if len(fit) else 0.0,
            causes=self._causes(views, rows) if len(views) == 2 else [],
            reveals=self._reveals(views),
            new=not single,
            unmeasured=sorted({c for v in views for c in v.keyed if self._is_number(v, c)}),
        )

    def _linked(self, chosen: tuple[int, ...]) -> NDArray[np.bool_]:
        """Per row of the sample: whether the records of all chosen roles can be put together."""
        if chosen not in self._known:
            height = max((max(v.rows.to_list()) + 1 for v in self.views if len(v.rows)), default=0)
            out = np.full(height, len(chosen) == 1)
            rows = self._rows([self.views[i] for i in chosen])
            at = rows.to_numpy()
            for last in chosen if len(chosen) > 1 else ():
                others = tuple(i for i in chosen if i != last)
                left, right = [self.views[i] for i in others], self.views[last]
                fit = self._fit(left, right, rows)
                # three roles link a record if two of them do and the third fits only there
                out[at] |= self._linked(others)[at] & (fit == 1)
            self._known[chosen] = out
        return self._known[chosen]

    def _fit(self, left: Sequence[Seen], right: Seen, rows: pl.Series, skip: Iterable[str] = ()) -> NDArray[np.int64]:
        """How few people fit each record, from either side."""
        compared = self._compare(left, right, rows, frozenset(skip))
        people = self.subjects.gather(rows) if self.subjects is not None else rows
        forth = candidates(compared, people)
        back = candidates([c.turned() for c in compared], people)
        return np.minimum(forth, back)

    def _compare(self, left: Sequence[Seen], right: Seen, rows: pl.Series, skip: frozenset[str]) -> list[Comparison]:
        out: list[Comparison] = []
        theirs = _at(right, rows)
        for view in left:
            mine = _at(view, rows)
            for column in view.columns:
                if column in skip or column not in right.columns:
                    continue
                a, b = mine[column].cast(pl.String), theirs[column].cast(pl.String)
                # masked under two keys: nothing can be compared; under one key it can
                if (column in view.keyed or column in right.keyed) and not a.equals(b):
                    continue
                out.append(Comparison(column, a, b))
        return out

    def _causes(self, views: Sequence[Seen], rows: pl.Series) -> list[Cause]:
        names = [c.name for c in self._compare(views[:1], views[1], rows, frozenset())]
        records = max(1, len(rows))
        out: list[Cause] = []
        for name in names:
            others = [n for n in names if n != name]
            alone = self._fit(views[:1], views[1], rows, others)
            without = self._fit(views[:1], views[1], rows, [name])
            out.append(Cause(name, int((alone == 1).sum()) / records, int((without == 1).sum()) / records))
        return out

    def _reveals(self, views: Sequence[Seen]) -> list[str]:
        """Columns that matter, seen in clear by some of the roles, but not all by the same one."""
        matter = {*self.schema.of("subject", "identifier", "quasi", "sensitive")}
        joint = [c for c in self.schema.columns if c in matter and any(c in v.clear for v in views)]
        return [] if any(set(joint) <= v.clear for v in views) else joint

    def _is_number(self, view: Seen, column: str) -> bool:
        return column in view.data.columns and view.data[column].dtype.is_numeric()

    def _rows(self, views: Sequence[Seen]) -> pl.Series:
        rows = views[0].rows
        for view in views[1:]:
            rows = rows.filter(rows.is_in(view.rows.implode()))
        return rows


def _at(view: Seen, rows: pl.Series) -> pl.DataFrame:
    """The view's records of these rows, in their order."""
    place: Mapping[int, int] = {row: at for at, row in enumerate(view.rows.to_list())}
    return view.data[[place[row] for row in rows.to_list()]]

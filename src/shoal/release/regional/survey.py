"""One look at all rows, which are on disk: distinct values, how they are spread, who shares them.

Polars' streaming engine scans, groups and spills. What it must hold at once is bounded by taking values or people in
parts, by a hash, wherever there may be as many of them as rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.core.domain import Domain, counted
from shoal.core.errors import InputError
from shoal.core.schema import Schema

BATCH, SMALLEST = 1 << 19, 1 << 16  # rows looked at together
AT_ONCE = 1 << 22  # values or people that are counted together
MOST_VALUES = 20_000_000  # distinct values of a quasi or a sensitive column: each needs its place in memory


def batches(scan: pl.LazyFrame, columns: Sequence[str] | None = None, *, region: int = BATCH) -> Iterator[pl.DataFrame]:
    """The rows, some at a time, in any order; fewer where a ``region`` must be small."""
    chosen = scan if columns is None else scan.select(columns)
    size = min(BATCH, max(SMALLEST, 2 * region))
    yield from chosen.collect_batches(chunk_size=size, maintain_order=False, engine="streaming")


def domain_of(scan: pl.LazyFrame, schema: Schema) -> Domain:
    """The distinct values of quasi and sensitive columns, and how often each occurs. One scan per column.

    >>> from shoal.core.schema import Column
    >>> found = domain_of(pl.LazyFrame({"age": [30, 20, 30]}), Schema({"age": Column("quasi")}))
    >>> found.values["age"].to_list(), found.rows["age"].tolist()
    ([20, 30], [1, 2])
    """
    names = [*schema.quasi, *schema.sensitive]
    wanted = [scan.group_by(name).agg(pl.len().alias("\0rows")) for name in names]
    values, rows = {}, {}
    for name, query in zip(names, wanted, strict=True):
        found = query.collect(engine="streaming")
        if found.height > MOST_VALUES:
            raise InputError(
                f"{found.height:,} distinct values are more than {MOST_VALUES:,}",
                where=f"column {name!r}",
                hint="round it or cut it before, for example by a mask",
            )
        values[name], rows[name] = counted(found[name], found["\0rows"])
    return Domain(values, rows)


def shares_of(scan: pl.LazyFrame, column: str, values: pl.Series, subject: str | None) -> NDArray[np.float64]:
    """The share of all people (or rows) who hold each value of a column.

    >>> rows = pl.LazyFrame({"who": [1, 1, 2], "diag": ["a", "a", "b"]})
    >>> shares_of(rows, "diag", pl.Series(["a", "b"]), "who").tolist()
    [0.5, 0.5]
    """
    holders = np.zeros(len(values), np.int64)
    everyone = 0
    if subject is None:
        found = scan.group_by(column).agg(pl.len().alias("\0rows")).collect(engine="streaming")
        holders += _aligned(values, found[column], found["\0rows"])
        everyone = int(found["\0rows"].sum())
    else:
        for part in _parts(scan, [subject], [column]):
            # a missing number and one that is not a number are one value, and a person holds it once
            own = part.select(subject, _as_compared(column, values)).unique().collect(engine="streaming")
            everyone += own[subject].n_unique()
            found = own.group_by(column).len()
            holders += _aligned(values, found[column], found["len"])
    return holders / max(1, everyone)


class Singles(NamedTuple):
    """How many people there are, and how many have a value that nobody else has."""

    crowd: int
    single: int


def singles(scan: pl.LazyFrame, columns: Sequence[str], person: str | None) -> Singles:
    """People who have a value, or a combination of values, of their own.

    >>> singles(pl.LazyFrame({"height": [180, 171, 171]}), ["height"], None)
    Singles(crowd=3, single=1)
    """
    crowd = single = 0
    if person is None:
        for part in _parts(scan, columns):
            found = part.group_by(columns).len().select(pl.col("len").sum().alias("rows"), (pl.col("len") == 1).sum())
            rows, alone = found.collect(engine="streaming").row(0)
            crowd, single = crowd + int(rows or 0), single + int(alone or 0)
        return Singles(crowd, single)
    lonely: list[pl.DataFrame] = []
    for part in _parts(scan, columns, [person]):
        held = part.select(*columns, person).unique().group_by(columns).agg(pl.len(), pl.col(person).first())
        lonely.append(held.filter(pl.col("len") == 1).select(pl.col(person).unique()).collect(engine="streaming"))
    single = pl.concat(lonely)[person].n_unique()
    return Singles(people_of(scan, person), single)


def people_of(scan: pl.LazyFrame, person: str) -> int:
    """How many people there are."""
    return sum(
        int(p.select(pl.col(person).n_unique()).collect(engine="streaming").item()) for p in _parts(scan, [person])
    )


def links(scan: pl.LazyFrame, columns: Sequence[str], person: str | None) -> tuple[int, int]:
    """Values (or combinations) that stand in several rows, and how many of these belong to one person.

    >>> links(pl.LazyFrame({"token": ["x", "x", "y"], "who": [1, 1, 2]}), ["token"], "who")
    (1, 1)
    """
    several = sure = 0
    whose = pl.lit(1) if person is None else pl.col(person).n_unique()
    for part in _parts(scan, columns, [] if person is None else [person]):
        many = part.group_by(columns).agg(pl.len(), whose.alias("\0people")).filter(pl.col("len") > 1)
        one, all_ = many.select((pl.col("\0people") == 1).sum(), pl.len()).collect(engine="streaming").row(0)
        several, sure = several + int(all_), sure + int(one or 0)
    return several, sure


def stable(scan: pl.LazyFrame, columns: Sequence[str], person: str, least: float) -> list[str]:
    """Columns that are the same in all rows of a person, for at least this share of who has several rows."""
    several, same = 0, np.zeros(len(columns), np.int64)
    for part in _parts(scan, [person], columns):
        kinds = part.group_by(person).agg(pl.len().alias("\0rows"), *[pl.col(c).n_unique() for c in columns])
        many = kinds.filter(pl.col("\0rows") > 1)
        found = many.select(pl.len().alias("\0all"), *[(pl.col(c) == 1).sum() for c in columns])
        row = found.collect(engine="streaming").row(0)
        several, same = several + int(row[0]), same + np.array(row[1:], np.int64)
    return [c for c, alike in zip(columns, same.tolist(), strict=True) if several and alike >= least * several]


def distinct(scan: pl.LazyFrame, column: str) -> tuple[int, int]:
    """Distinct values of a column, and how many of them stand in one row only."""
    values = alone = 0
    for part in _parts(scan, [column]):
        found = part.group_by(column).len().select(pl.len().alias("values"), (pl.col("len") == 1).sum())
        all_, single = found.collect(engine="streaming").row(0)
        values, alone = values + int(all_), alone + int(single or 0)
    return values, alone


@dataclass(frozen=True)
class OnDisk:
    """The rows of a release on disk, as the adversary looks at them."""

    scan: pl.LazyFrame
    person: str | None = None

    @property
    def columns(self) -> list[str]:
        """The columns that would be published."""
        return [name for name in self.scan.collect_schema().names() if name != self.person]

    def stable(self, columns: Sequence[str], least: float) -> list[str]:
        """See :func:`stable`."""
        return [] if self.person is None else stable(self.scan, columns, self.person, least)

    def links(self, columns: Sequence[str]) -> tuple[int, int]:
        """See :func:`links`."""
        return links(self.scan, columns, self.person)

    def singles(self, columns: Sequence[str]) -> tuple[int, int]:
        """See :func:`singles`."""
        return singles(self.scan, columns, self.person)

    def distinct(self, column: str) -> tuple[int, int]:
        """See :func:`distinct`."""
        return distinct(self.scan, column)


def _parts(scan: pl.LazyFrame, columns: Sequence[str], beside: Sequence[str] = ()) -> Iterator[pl.LazyFrame]:
    """The rows in parts, equal values of the columns in one.

    A part has about AT_ONCE different combinations of these columns and those ``beside`` them: what is counted of a
    part must be held, not its rows. So a column of few values is looked at once, however many rows there are.
    """
    rows = int(scan.select(pl.len()).collect(engine="streaming").item())
    if rows <= AT_ONCE:
        yield scan
        return
    held = _mark([*dict.fromkeys([*columns, *beside])]).approx_n_unique()
    count = -(-int(scan.select(held).collect(engine="streaming").item()) // AT_ONCE)
    if count <= 1:
        yield scan
        return
    for at in range(count):
        yield scan.filter(_mark(columns) % count == at)


def _mark(columns: Sequence[str]) -> pl.Expr:
    return pl.struct(columns).hash(7) if len(columns) > 1 else pl.col(columns[0]).hash(7)


def _as_compared(column: str, values: pl.Series) -> pl.Expr:
    cell = pl.col(column)
    return (cell.fill_nan(None) + 0.0).alias(column) if values.dtype.is_float() else cell


def _aligned(values: pl.Series, found: pl.Series, rows: pl.Series) -> NDArray[np.int64]:
    """Counts in the order of ``values``, which has all that were found."""
    have, count = counted(found.cast(values.dtype), rows)
    joined = pl.DataFrame({"v": values}).join(
        pl.DataFrame({"v": have, "n": count}), on="v", how="left", nulls_equal=True, maintain_order="left"
    )
    return joined["n"].fill_null(0).to_numpy()

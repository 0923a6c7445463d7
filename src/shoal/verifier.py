"""The verifier: released data and promises in, findings out.

It works on what would be published. It imports no method, and groups rows by code of its own. If a subject or
pseudonym column is in the data or handed in beside it, people are counted, otherwise rows, and the findings say so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.core.cells import ONLY_STARS
from shoal.core.comparable import comparable
from shoal.core.errors import UsageError
from shoal.core.frames import require
from shoal.core.groups import Coverage, Finding, Groups
from shoal.core.levels import Levels
from shoal.core.notebook import Shown
from shoal.promises import Promise

FEW_ROWS = 1_000  # so few are compared one by one before polars has begun
Whole = tuple[pl.Series, NDArray[np.float64]]  # the values of a sensitive column, and the share of people with each


class Verdict(Shown, msgspec.Struct, frozen=True):
    """All findings about one release.

    >>> import shoal
    >>> verdict = shoal.verify(pl.DataFrame({"age": ["30", "30", "31"]}), quasi=["age"], k=2)
    >>> verdict.kept, bool(verdict)
    (False, False)
    """

    findings: tuple[Finding, ...]
    rows: int
    groups: int
    unit: str

    @property
    def kept(self) -> bool:
        """Whether every promise is kept."""
        return all(f.kept for f in self.findings)

    def __bool__(self) -> bool:
        return self.kept

    def __str__(self) -> str:
        return "\n".join(str(f) for f in self.findings)

    def __repr__(self) -> str:
        broken = sum(not f.kept for f in self.findings)
        words = "every promise is kept" if self.kept else f"{broken} of {len(self.findings)} promises broken"
        return f"<Verdict on {self.rows:,} rows: {words}>"


def verify(
    released: pl.DataFrame,
    quasi: Sequence[str],
    promises: Sequence[Promise],
    *,
    people: pl.Series | None = None,
    levels: Mapping[str, Levels] | None = None,
    every_row: bool = False,
    register: Callable[[pl.DataFrame, NDArray[np.int32]], Coverage] | None = None,
    whole: Mapping[str, Whole] | None = None,
    labels: NDArray[np.int32] | None = None,
) -> Verdict:
    """Judge released rows against promises. O(rows x columns + rows log rows).

    ``register`` says, of rows and their groups, which people of a register each group may stand for. ``labels`` are
    those of :func:`group`, if they are at hand and every row is released.

    A row that shows nothing, neither quasi nor sensitive values, is withheld, not released: that is how other tools
    write it. Where ``every_row`` is known to be released, stars may be people's own values. A release may be judged
    in parts, if rows that read alike are in one: ``whole`` then says how sensitive values are spread in all of it.

    >>> import polars as pl
    >>> from shoal.promises.k_anonymity import KAnonymity
    >>> print(verify(pl.DataFrame({"age": ["[20, 29]", "[20, 29]", "31"]}), ["age"], [KAnonymity(2)]))
    2-anonymity: broken in 1 of 2 groups; asked 2, reached 1 (rows counted)
    """
    sensitive = sorted({p.sensitive for p in promises if p.sensitive is not None})
    require(released, [*quasi, *sensitive], "verify")
    if people is not None and len(people) != released.height:
        raise UsageError(
            f"expected one entry per released row ({released.height:,}), found {len(people):,}",
            where="people",
            hint="people of the released rows: original.gather(release.positions)",
        )
    shown = np.ones(released.height, np.bool_) if every_row else ~withheld(released, quasi)
    frame = released.filter(pl.Series(shown)) if not shown.all() else released
    crowd = None if people is None else people.filter(pl.Series(shown))
    groups = grouped(frame, quasi, sensitive, crowd, levels, whole, labels if every_row else None)
    if register is not None:
        groups = replace(groups, register=register(frame, groups.labels))
    findings = [p.judge(groups) for p in promises]
    if crowd is not None and any(p.follows_people for p in promises):
        findings += _of_whole_people(groups.together(), promises)
    return Verdict(tuple(findings), frame.height, groups.count, groups.unit)


def _of_whole_people(people: Groups, promises: Sequence[Promise]) -> list[Finding]:
    """What is promised about sensitive values, of people whose rows read alike taken together, with all they have."""
    about = [p for p in promises if p.sensitive is not None and p.about == "groups" and not p.follows_people]
    found = [p.judge(people) for p in about]
    return [msgspec.structs.replace(f, promise=f"{f.promise}, all rows of a person together") for f in found]


def grouped(
    frame: pl.DataFrame,
    quasi: Sequence[str],
    sensitive: Sequence[str] = (),
    people: pl.Series | None = None,
    levels: Mapping[str, Levels] | None = None,
    whole: Mapping[str, Whole] | None = None,
    labels: NDArray[np.int32] | None = None,
) -> Groups:
    """The groups of a table: rows that read alike in every quasi column.

    >>> sorted(grouped(pl.DataFrame({"age": ["30", "30", "31"]}), ["age"]).sizes().tolist())
    [1, 2]
    """
    crowd = None if people is None else _codes(people)
    alike = group(frame, quasi) if labels is None else labels
    return Groups(alike, {name: frame[name] for name in sensitive}, crowd, levels or {}, whole=whole or {})


def withheld(frame: pl.DataFrame, quasi: Sequence[str]) -> NDArray[np.bool_]:
    """Rows that show nothing: every quasi cell suppressed, and every other cell suppressed or empty.

    An empty cell may be a value like any other: it shows nothing only where the others of its group show nothing, too,
    or where another cell of its row is suppressed that is not in every row.

    >>> withheld(pl.DataFrame({"age": ["30", "*"], "diag": ["flu", "*"]}), ["age"]).tolist()
    [False, True]
    """
    rest = [c for c in frame.columns if c not in quasi]
    if not rest or not frame.height:
        return np.zeros(frame.height, np.bool_)
    hidden = np.logical_and.reduce([_is_suppressed(frame[c]).to_numpy() for c in quasi])
    shows, starred = np.zeros(frame.height, np.bool_), np.zeros(frame.height, np.bool_)
    for name in rest if hidden.any() else ():
        stars = _is_suppressed(frame[name]).to_numpy()
        told = ~stars & frame[name].is_not_null().to_numpy()
        shows |= told
        starred |= stars & bool(told.any())
    nothing = hidden & ~shows
    return np.asarray(nothing & starred if (hidden & shows).any() else nothing)


def _is_suppressed(column: pl.Series) -> pl.Series:
    if column.dtype == pl.Struct and "text" in column.struct.fields:
        column = column.struct.field("text")
    if column.dtype != pl.String:
        return pl.Series(np.zeros(len(column), np.bool_))
    return column.str.contains(ONLY_STARS).fill_null(False)


def group(frame: pl.DataFrame, quasi: Sequence[str]) -> NDArray[np.int32]:
    """Dense labels of the rows that read alike in every quasi column; a missing value equals a missing value.

    >>> first, second, third = group(pl.DataFrame({"age": ["30", "30", "31"]}), ["age"])
    >>> bool(first == second), bool(second == third)
    (True, False)
    """
    key = np.zeros(frame.height, np.int64)
    room = 1
    for name in quasi:
        codes = _codes(frame[name])
        size = int(codes.max(initial=0)) + 1
        if room * size >= 2**62:
            key = _dense(key).astype(np.int64)
            room = int(key.max(initial=0)) + 1
        key *= size
        key += codes
        room *= size
    return _dense(key)


def _dense(key: NDArray[np.int64]) -> NDArray[np.int32]:
    """Equal keys get equal labels from 0, in the order of the keys; half the memory that unique() takes."""
    order = np.argsort(key, kind="stable")
    ordered = key[order]
    new = np.zeros(len(key), np.bool_)
    new[1:] = ordered[1:] != ordered[:-1]
    del ordered
    labels = np.empty(len(key), np.int32)
    labels[order] = np.cumsum(new, dtype=np.int32)
    return labels


def intersection(
    before: pl.DataFrame, after: pl.DataFrame, quasi: Sequence[str], people: Sequence[pl.Series]
) -> dict[str, float]:
    """What two releases of the same people reveal together: the sizes of the intersected groups.

    Someone in a group of the one and a group of the other release lies in both: if few do, few are left to hide
    among. ``people`` are the subject columns of both releases.

    >>> before = pl.DataFrame({"age": ["[20, 29]"] * 2})
    >>> after, who = before.with_columns(age=pl.Series(["a", "b"])), pl.Series([1, 2])
    >>> intersection(before, after, ["age"], [who, who])["unique"]
    2
    """
    first = pl.DataFrame({"person": people[0], "before": group(before, quasi)})
    second = pl.DataFrame({"person": people[1], "after": group(after, quasi)})
    both = first.join(second, on="person", nulls_equal=True)
    if not both.height:
        return {"people": 0, "smallest": 0, "unique": 0, "share_unique": 0.0}
    # someone with several rows is as well hidden as in the smallest crowd any of them leaves
    crowd = both.with_columns(pl.col("person").n_unique().over("before", "after").alias("n"))
    sizes = crowd.group_by("person").agg(pl.col("n").min())["n"].to_numpy()
    unique = int((sizes == 1).sum())
    return {"people": len(sizes), "smallest": int(sizes.min()), "unique": unique, "share_unique": unique / len(sizes)}


def _codes(series: pl.Series) -> NDArray[np.int32]:
    if series.dtype == pl.Struct:  # all it shows, not its text alone
        return group(series.struct.unnest(), series.struct.fields)
    if series.dtype == pl.Categorical and len(series):  # a number per text already, but with gaps
        numbers = series.to_physical()
        places = numbers.fill_null(int(numbers.drop_nulls().to_numpy().max(initial=0)) + 1).to_numpy()
        used = np.zeros(int(places.max()) + 1, np.int32)
        used[places] = 1
        return np.asarray((np.cumsum(used, dtype=np.int32) - 1)[places])
    series = comparable(series)
    if len(series) <= FEW_ROWS and series.dtype == pl.String:
        known: dict[str | None, int] = {}
        return np.array([known.setdefault(text, len(known)) for text in series.to_list()], np.int32)
    values = series.unique()
    codes = pl.Series(np.arange(len(values), dtype=np.int32))
    missing = int(values.is_null().arg_max() or 0) if values.null_count() else -1
    return series.replace_strict(values, codes, return_dtype=pl.Int32, default=None).fill_null(missing).to_numpy()

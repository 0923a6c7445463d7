"""(k,P)-anonymity: k curves under one envelope, P of them with one pattern (Shou et al. 2013)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.core.errors import UsageError
from shoal.core.frames import require
from shoal.core.groups import Finding, Groups
from shoal.promises.base import About, Promise
from shoal.promises.compact import expand, is_compact

GROUP, PATTERN, LEVEL, RECORD, SIZE = "group", "pattern", "level", "series", "size"
WINDOW = "window"  # of a stream, whose curves are released window by window
BLOCK = 64  # columns compared at once: one key of thousands of columns costs their square


class KPAnonymity(Promise, frozen=True, tag="kP-anonymity"):
    """Every envelope is shared by at least ``k`` curves, and inside, every pattern (with its level) by at least ``p``.

    Protects against finding a curve by values known at some instants (k) and by its known shape (P). Does not
    protect against learning a sensitive value that a whole P-subgroup shares (add l-diversity), nor against
    comparing two releases of the same curves. Whether an envelope covers the hidden curve cannot be judged here: a
    verifier has no originals.

    >>> import polars as pl
    >>> released = pl.DataFrame({"W0": ["[1, 2]"] * 4, "pattern": ["ab", "ab", "ba", "ba"], "level": [2] * 4})
    >>> [str(finding) for finding in KPAnonymity(4, 2).judge_frame(released, ["W0"])][1]
    'P-anonymity (P=2) inside k-groups: kept; asked 2, reached 2 (rows counted)'
    """

    about: ClassVar[About] = "curves"

    k: int
    p: int

    def __post_init__(self) -> None:
        if self.p < 1:
            raise UsageError(f"p must be at least 1, found {self.p}", where="kP-anonymity")
        if self.k < self.p:
            raise UsageError(
                f"k must be at least p, found k={self.k} and p={self.p}",
                where="kP-anonymity",
                hint="p curves share a pattern inside a group of k: choose p ≤ k",
            )

    def judge_curves(
        self, released: pl.DataFrame, others: Iterable[Promise], **known: Any
    ) -> tuple[list[Finding], int]:
        """See :func:`judge_curves`."""
        return judge_curves(released, self, list(others), **known)

    def judge(self, groups: Groups) -> Finding:
        """Not possible: one label per row cannot tell envelopes from patterns."""
        raise UsageError(
            "kP-anonymity judges released curves, not the groups of a table",
            where="kP-anonymity",
            hint="release with `series`, and verify with the instant columns named",
        )

    def judge_frame(
        self, released: pl.DataFrame, instants: Sequence[str], *, pattern: str = PATTERN, level: str = LEVEL
    ) -> list[Finding]:
        """Judge a wide release by what it shows: rows with the same envelope (and group number, if it is shown).

        ``instants`` are the envelope columns, as text or as structs. Every row counts, also one that shows nothing.
        """
        envelope = [*instants, *([GROUP] if GROUP in released.columns else [])]
        require(released, [*envelope, pattern, level], "kP-anonymity")
        if not instants:
            raise UsageError("name the instant columns of the release", where="kP-anonymity")
        shared = alike(released, envelope)
        groups = pl.Series(np.bincount(shared))
        finer = released.select(pl.Series(" envelope", shared), pattern, level)
        cells = pl.Series(np.bincount(alike(finer, finer.columns)))
        bare = released.filter(pl.col(pattern).is_null() | pl.col(level).is_null()).height
        return [
            _finding(f"{self.k}-anonymity of envelopes", self.k, groups),
            _finding(f"P-anonymity (P={self.p}) inside k-groups", self.p, cells, bare),
        ]


def _finding(promise: str, asked: int, sizes: pl.Series, bare: int = 0) -> Finding:
    broken = int((sizes < asked).sum())
    reached = sizes.min() if len(sizes) else 0
    assert isinstance(reached, int)
    note = "" if len(sizes) else "nothing was released"
    if bare:
        note = f"{bare:,} rows show no pattern or no level"
    return Finding(promise, broken == 0 and bare == 0, asked, reached, len(sizes), broken, "rows", note)


_LABEL, _ROW = " alike", " row"  # names that no column of a release has


def alike(released: pl.DataFrame, columns: Sequence[str]) -> NDArray[np.int64]:
    """A label per row, dense from 0: rows that read alike in all columns share it. Linear in rows and in columns.

    >>> alike(pl.DataFrame({"a": [1, 1, 2], "b": ["x", "x", "x"]}), ["a", "b"]).tolist()
    [0, 0, 1]
    """
    if _LABEL in columns or _ROW in columns:
        raise UsageError("a column has a name that is kept for the verifier", where="kP-anonymity", hint="rename it")
    label = np.zeros(released.height, np.int64)
    for start in range(0, len(columns), BLOCK):
        block = list(columns[start : start + BLOCK])
        frame = released.select(block).with_columns(pl.Series(_LABEL, label)).with_row_index(_ROW)
        first = frame.select(pl.col(_ROW).min().over([*block, _LABEL])).to_series().to_numpy()
        label = np.unique(first, return_inverse=True)[1].astype(np.int64)
    return label


def judge_curves(
    released: pl.DataFrame,
    promise: KPAnonymity,
    others: Sequence[Promise] = (),
    *,
    sensitive: Sequence[str] = (),
    instants: Sequence[str] | None = None,
) -> tuple[list[Finding], int]:
    """What a release of curves keeps, and of how many records it is; wide, long or compact.

    ``others`` speak about sensitive columns: each is judged of the records that read alike in envelope and pattern.

    >>> rows = {"W0": ["[1, 2]"] * 2, "pattern": ["ab"] * 2, "level": [2] * 2, "s": ["x", "y"]}
    >>> judge_curves(pl.DataFrame(rows), KPAnonymity(2, 2), sensitive=["s"])[1]
    2
    """
    if is_compact(released):
        released = expand(released)
    named = [*sensitive, *(p.sensitive for p in others if p.sensitive is not None and p.sensitive not in sensitive)]
    require(released, named, "sensitive")
    if instants is None and is_windowed(released, named):
        return _each_window(released, promise, others, named)
    long = None if instants is not None else long_columns(released, named)
    if long is not None:
        released, instants = from_long(released, *long)
    about = [c for c in (GROUP, PATTERN, LEVEL) if c in released.columns]
    if instants is None:
        instants = [c for c in released.columns if c not in (*about, *named)]
    findings = promise.judge_frame(released, instants)
    if others:
        cells = Groups(alike(released, [*instants, *about]).astype(np.int32), {c: released[c] for c in named})
        findings += [other.judge(cells) for other in others]
    return findings, released.height


def is_windowed(released: pl.DataFrame, sensitive: Sequence[str] = ()) -> bool:
    """Whether a long release is of several windows of a stream: it has a column ``window`` beside its time.

    >>> is_windowed(pl.DataFrame(schema=["window", "series", "group", "at", "w_low", "w_high", "pattern", "level"]))
    True
    """
    have = released.columns
    if WINDOW not in have or WINDOW in sensitive or RECORD not in have:
        return False
    ends = [f"{c.removesuffix('_low')}_{end}" for c in have if c.endswith("_low") for end in ("low", "high")]
    return len([c for c in have if c not in (RECORD, GROUP, PATTERN, LEVEL, *ends, *sensitive)]) == 2


def _each_window(
    released: pl.DataFrame, promise: KPAnonymity, others: Sequence[Promise], sensitive: Sequence[str]
) -> tuple[list[Finding], int]:
    """Each window judged by itself, for its curves have numbers of their own; what is worst of all of them."""
    parts = released.partition_by(WINDOW, maintain_order=True, include_key=False) or [released.drop(WINDOW)]
    judged = [judge_curves(part, promise, others, sensitive=sensitive) for part in parts]
    return [worst(same) for same in zip(*(found for found, _ in judged), strict=True)], sum(n for _, n in judged)


def worst(findings: Sequence[Finding]) -> Finding:
    """One finding that says of several releases whether all keep a promise, and how near the worst came.

    >>> few, more = Finding("k", True, 2, 3, 4, 0, "rows", ""), Finding("k", False, 2, 1, 5, 2, "rows", "")
    >>> found = worst([few, more])
    >>> found.kept, found.reached, found.groups, found.broken
    (False, 1, 9, 2)
    """
    broken = [f for f in findings if not f.kept]
    far = {id(f): abs(f.reached - f.asked) for f in findings}
    least = max(broken, key=lambda f: far[id(f)]) if broken else min(findings, key=lambda f: far[id(f)])
    return msgspec.structs.replace(
        least, groups=sum(f.groups for f in findings), broken=sum(f.broken for f in findings)
    )


def judge_means(means: pl.DataFrame, promise: KPAnonymity, *, size: str = SIZE) -> list[Finding]:
    """Whether the means published beside a release are of at least P curves each, and one per subgroup.

    >>> means = pl.DataFrame({"group": [0, 0], "pattern": ["a", "b"], "level": [2, 2], "size": [6, 5]})
    >>> [finding.kept for finding in judge_means(means, KPAnonymity(11, 6))]
    [True, False]
    """
    about = [GROUP, PATTERN, LEVEL]
    require(means, [*about, size], "representatives")
    groups = means.group_by(GROUP).agg(pl.col(size).sum())[size]
    twice = int(means.select(about).is_duplicated().sum())
    note = f"{twice:,} rows speak about one subgroup" if twice else ""
    cells = _finding(f"a mean of at least {promise.p} curves", promise.p, means[size])
    return [
        _finding(f"{promise.k} curves in the subgroups of a group", promise.k, groups),
        msgspec.structs.replace(cells, kept=cells.kept and not twice, note=note or cells.note),
    ]


def long_columns(released: pl.DataFrame, sensitive: Sequence[str] = ()) -> tuple[str, list[str]] | None:
    """The time column and the names of the values, if a release is long: ``series``, time, ``<value>_low``, ``_high``.

    >>> long_columns(pl.DataFrame(schema=["series", "group", "at", "w_low", "w_high", "pattern", "level"]))
    ('at', ['w'])
    """
    have = set(released.columns)
    lows = [c.removesuffix("_low") for c in released.columns if c.endswith("_low")]
    values = [name for name in lows if f"{name}_high" in have]
    if not {RECORD, PATTERN, LEVEL} <= have or not values:
        return None
    ends = [f"{name}_{end}" for name in values for end in ("low", "high")]
    rest = [c for c in released.columns if c not in (RECORD, GROUP, PATTERN, LEVEL, *ends, *sensitive)]
    if len(rest) != 1:
        raise UsageError(
            f"expected one time column beside the sensitive ones, found {len(rest)}",
            where="kP-anonymity",
            hint="name every sensitive column of the long release",
        )
    return rest[0], values


def from_long(
    released: pl.DataFrame, time: str, values: str | Sequence[str], *, record: str = RECORD
) -> tuple[pl.DataFrame, list[str]]:
    """A long release as a wide one, a row per record, and its instants: so that one judge is enough.

    Every other column (``group``, ``pattern``, ``level``, the sensitive ones) must say one thing per record. A record
    without a row at some instant shows nothing there, which tells it apart from those that do. What is shown at an
    instant is numbered, for it only has to be compared.

    >>> rows = {"series": [0, 0], "t": [1, 2], "v_low": [3, 4], "v_high": [5, 6], "pattern": ["a"] * 2}
    >>> from_long(pl.DataFrame(rows | {"level": [1] * 2}), "t", ["v"])[0].row(0)
    ('a', 1, 1, 2)
    """
    named = [values] if isinstance(values, str) else values
    ends = [f"{name}_{end}" for name in named for end in ("low", "high")]
    require(released, (record, time, *ends, PATTERN, LEVEL), "kP-anonymity")
    if released.select(pl.struct(record, time).is_duplicated().any()).item():
        raise UsageError("a record has two envelopes at one point in time", where=f"column {time!r}")
    about = [c for c in released.columns if c not in (record, time, *ends)]
    told = released.group_by(record, maintain_order=True).agg(
        *[pl.col(c).first() for c in about],
        pl.any_horizontal([pl.col(c).n_unique() > 1 for c in about]).alias(_LABEL),
    )
    if told[_LABEL].any():
        raise UsageError(
            f"{int(told[_LABEL].sum()):,} records say different things at different instants",
            where="kP-anonymity",
            hint="group, pattern, level and sensitive values are one per record",
        )
    # a number for what is shown at an instant is as good as what is shown; 0 for those who are not there
    shown = np.zeros((told.height, released[time].n_unique()), np.int64)
    row = released[record].replace_strict(told[record], pl.int_range(told.height, eager=True), return_dtype=pl.Int64)
    at = np.unique(alike(released, [time]), return_inverse=True)[1]
    shown[row.to_numpy(), at] = alike(released, ends) + 1
    names = [f"instant {i}" for i in range(shown.shape[1])]
    return told.select(about).hstack(pl.DataFrame(shown, schema=names)), names

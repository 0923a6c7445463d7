"""(k,P)-anonymity: k curves under one envelope, P of them with one pattern (Shou et al. 2013)."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from shoal.core.errors import UsageError
from shoal.core.frames import require
from shoal.core.groups import Finding, Groups
from shoal.promises.base import Promise

GROUP, PATTERN, LEVEL = "group", "pattern", "level"


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
        groups = released.group_by(envelope).len()["len"]
        cells = released.group_by([*envelope, pattern, level]).len()["len"]
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

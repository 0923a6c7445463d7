"""The verdict on a release that is judged bucket by bucket.

All rows that read alike stand in one bucket, so each group is judged whole, by the ordinary judge, on exactly the rows
that would be published. What promises compare groups with (t-closeness: everybody) is counted over the release first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec
import numpy as np
import polars as pl

from shoal.core.groups import Finding, Groups
from shoal.core.levels import Levels
from shoal.promises.base import Promise
from shoal.promises.l_diversity import LDiversity
from shoal.release.judge import Judge
from shoal.release.regional.plan import PERSON
from shoal.verifier import Verdict, Whole, group, grouped


class Judged(msgspec.Struct, frozen=True):
    """What was found in one bucket: plain numbers, that can come from another machine.

    >>> from shoal.core.schema import Column, Schema
    >>> from shoal.promises.k_anonymity import KAnonymity
    >>> court = Court(Judge(Schema({"age": Column("quasi")}), (KAnonymity(2),)))
    >>> court.bucket(pl.DataFrame({"age": ["[20, 29]"] * 3})).sizes
    {3: 1}
    """

    findings: tuple[Finding, ...]
    rows: int
    groups: int
    unit: str
    sizes: dict[int, int]  # people per group: of each size so many groups
    row_sizes: dict[int, int]  # rows per group
    shared: dict[str, tuple[int, int]] = {}  # per sensitive column: groups that share a value, and people in them


@dataclass(frozen=True)
class Court:
    """The judge, and what it must know beside the rows of a bucket.

    >>> from shoal.core.schema import Column, Schema
    >>> from shoal.promises.k_anonymity import KAnonymity
    >>> court = Court(Judge(Schema({"age": Column("quasi")}), (KAnonymity(2),)))
    >>> one, two = (court.bucket(pl.DataFrame({"age": [cell] * n})) for cell, n in (("*", 2), ("[20, 29]", 3)))
    >>> court.verdict([one, two]).groups
    2
    """

    judge: Judge
    levels: Mapping[str, Levels] = field(default_factory=dict)
    whole: Mapping[str, Whole] = field(default_factory=dict)

    def bucket(self, rows: pl.DataFrame) -> Judged:
        """Judge one bucket. O(rows x columns + rows log rows)."""
        people = rows[PERSON] if PERSON in rows.columns else None
        shown = rows.drop(PERSON, strict=False)
        labels = group(shown, self.judge.quasi)
        verdict = self.judge.judge(
            shown, people=people, levels=self.levels, every_row=True, whole=self.whole, labels=labels
        )
        silent = [n for n in self.judge.schema.sensitive if n in shown.columns and n not in self._asked()]
        groups = grouped(shown, self.judge.quasi, silent, people, labels=labels)
        return Judged(
            verdict.findings,
            verdict.rows,
            verdict.groups,
            verdict.unit,
            _counts(groups.sizes()),
            _counts(np.bincount(groups.labels, minlength=groups.count)),
            {name: _shared(groups, name) for name in silent},
        )

    def verdict(self, parts: Sequence[Judged]) -> Verdict:
        """The verdict on the whole: an error if a promise is broken anywhere, and nothing is released."""
        unit = parts[0].unit if parts else "rows"
        by_promise = zip(*[part.findings for part in parts if part.rows], strict=True)
        found = tuple(
            _together(promise, many) for promise, many in zip(self.judge.promises, by_promise, strict=False)
        ) or tuple(
            Finding(p.title, True, p.asked, 0.0, 0, 0, unit, "nothing was released") for p in self.judge.promises
        )
        return self.judge.insist(
            Verdict(found, sum(part.rows for part in parts), sum(part.groups for part in parts), unit)
        )

    def shared(self, parts: Sequence[Judged]) -> list[str]:
        """A note for each sensitive column that nothing is promised about and that whole groups share."""
        notes = []
        groups = sum(part.groups for part in parts)
        for name in parts[0].shared if parts else ():
            alike, people = (sum(part.shared[name][at] for part in parts) for at in (0, 1))
            if alike:
                notes.append(
                    f"column {name!r}: in {alike:,} of {groups:,} groups, with {people:,} {parts[0].unit}, everyone "
                    "has the same value, and who knows that someone is in such a group knows it; l-diversity prevents "
                    "that"
                )
        return notes

    def _asked(self) -> set[str]:
        return {p.sensitive for p in self.judge.promises if p.sensitive is not None and not p.compares_with_all}


def added(counts: Sequence[Mapping[int, int]]) -> dict[int, int]:
    """Counts by size, added up.

    >>> added([{2: 1}, {2: 3, 5: 1}])
    {2: 4, 5: 1}
    """
    total: Counter[int] = Counter()
    for part in counts:
        total.update(part)
    return dict(sorted(total.items()))


def _counts(sizes: np.ndarray) -> dict[int, int]:
    return {int(s): int(n) for s, n in zip(*np.unique(sizes[sizes > 0], return_counts=True), strict=True)}


def _shared(groups: Groups, name: str) -> tuple[int, int]:
    alike = LDiversity(2, name).measure(groups)[0] < 2
    return int(alike.sum()), int(groups.sizes()[alike].sum())


def _together(promise: Promise, findings: Sequence[Finding]) -> Finding:
    worst = (max if promise.higher_is_worse else min)(f.reached for f in findings)
    broken = sum(f.broken for f in findings)
    groups = sum(f.groups for f in findings)
    return msgspec.structs.replace(findings[0], kept=broken == 0, reached=worst, groups=groups, broken=broken)

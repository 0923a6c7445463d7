"""l-diversity: well-represented sensitive values (Machanavajjhala et al. 2007; frequency: Minutoli et al. 2021).

Where people are counted, someone may hold several values, and the papers' definitions do not say what that means. Four
people with {HIV, cold}, {HIV}, {HIV, flu} and {HIV} show three values, yet everyone has HIV. Here an attacker may count
each person for whichever of their values is worst: the counts are *packed*. The commonest value takes everyone who
holds it, the next as many as hold it, and so on until all people are taken; the counts taken so are judged by the
kind's definition. So

- distinct: the l - 1 commonest values together have fewer holders than the group has people;
- frequency: no value is held by more than 1/l of the people;
- recursive: r1, the holders of the commonest value, are fewer than c times the packed rest from the l-th value on;
- entropy: the entropy of the packed counts is at least log l.

However one value is picked per person, the pick is at least as diverse as the packed counts. Where everyone holds one
value, packing changes nothing. A missing value is not diversity: it is not counted, nor is a person who holds no other;
a group in which nobody holds a value is judged as if all held the same one. Without a subject column every row is a
person of one value, and a missing value is one like any other.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from shoal.core.errors import UsageError
from shoal.core.groups import Groups
from shoal.promises.base import Promise, Rule

SLACK = 1e-9  # floating point only


class LDiversity(Promise, frozen=True, tag="l-diversity"):
    """Every group holds at least ``l`` well-represented values of the sensitive ``column``.

    ``kind`` says what well-represented means. ``distinct``: l different values. ``entropy``: the entropy is at
    least log l. ``recursive``: r₁ < c·(r_l + … + r_m) of the sorted counts. ``frequency``: no value in more than
    size/l records. People who hold several values count with the worst of them, and a missing value counts as none (see
    this module's text). Protects against learning a value that a whole group shares. Does not protect against values
    that differ but mean alike (t-closeness with a hierarchy), nor against knowledge about the rarest values.

    >>> import numpy as np, polars as pl
    >>> groups = Groups(np.zeros(3, np.int32), {"diag": pl.Series(["flu", "flu", "cold"])})
    >>> LDiversity(2, "diag").judge(groups).kept, LDiversity(2, "diag", kind="frequency").judge(groups).kept
    (True, False)
    """

    l: float
    column: str
    kind: Literal["distinct", "entropy", "recursive", "frequency"] = "distinct"
    c: float = 3.0

    def __post_init__(self) -> None:
        if not self.l >= 1:
            raise UsageError(f"l must be at least 1, found {self.l:g}", where="l-diversity")
        if self.kind in ("distinct", "recursive") and self.l != int(self.l):
            raise UsageError(f"l must be a whole number for kind {self.kind}", where="l-diversity")
        if not self.c > 0:
            raise UsageError("c must be positive", where="l-diversity")

    @property
    def sensitive(self) -> str:
        """See :class:`Promise`."""
        return self.column

    @property
    def title(self) -> str:
        """See :class:`Promise`."""
        kind = "" if self.kind == "distinct" else f"{self.kind} "
        return f"{kind}{self.l:g}-diversity of {self.column}"

    @property
    def asked(self) -> float:
        """See :class:`Promise`."""
        return self.l

    def rule(self) -> Rule:
        """See :class:`Promise`."""
        return Rule(check=self.kind, column=self.column, bound=self.l, c=self.c)

    def measure(self, groups: Groups) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """The l each group reaches. O(rows log rows)."""
        group, count = _packed(groups, self.column)
        n = groups.count
        if self.kind == "distinct":
            distinct = np.bincount(group, minlength=n)
            return distinct.astype(np.float64), distinct >= self.l
        total = np.bincount(group, weights=count, minlength=n)
        if self.kind == "entropy":
            share = count / total[group]
            entropy = -np.bincount(group, weights=share * np.log(share), minlength=n)
            return np.exp(entropy), entropy >= np.log(self.l) - SLACK
        most = np.zeros(n)
        np.maximum.at(most, group, count.astype(np.float64))
        if self.kind == "frequency":
            return total / np.maximum(most, 1), most * self.l <= total
        return self._recursive(group, count, most, n)

    def _recursive(
        self, group: NDArray[np.int64], count: NDArray[np.int64], most: NDArray[np.float64], n: int
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        order = np.lexsort((-count, group))
        group, count = group[order], count[order]
        start = np.searchsorted(group, np.arange(n))
        rank = np.arange(len(group)) - start[group]
        tail = np.bincount(group, weights=count * (rank >= int(self.l) - 1), minlength=n)
        fine = most < self.c * tail - SLACK
        # the largest l that still holds, so that a report can say how near it came
        reached = np.zeros(n)
        after = np.bincount(group, weights=count, minlength=n)[group] - _before(count, start[group])
        np.maximum.at(reached, group, np.where(most[group] < self.c * after - SLACK, rank + 1.0, 0.0))
        return reached, fine


def _packed(groups: Groups, column: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Group and count of each value: of people, packed (see above)."""
    group, value, count, values = groups.counts(column)
    if groups.people is None:
        return group, count
    real = values.is_not_null().to_numpy()[value]
    group, count = group[real], count[real]
    holders = groups.known(column)
    nobody = np.flatnonzero(holders == 0)  # as if all held one value
    group, count = np.append(group, nobody), np.append(count, np.ones(len(nobody), np.int64))
    holders[nobody] = 1
    order = np.lexsort((-count, group))
    group, count = group[order], count[order]
    left = holders[group] - _before(count, np.searchsorted(group, group))
    taken = np.minimum(count, left)
    return group[taken > 0], taken[taken > 0]


def _before(count: NDArray[np.int64], start: NDArray[np.int64]) -> NDArray[np.int64]:
    """Sum of the counts that stand before each entry within its group."""
    running = np.concatenate([np.zeros(1, np.int64), np.cumsum(count)])
    out: NDArray[np.int64] = running[:-1] - running[start]
    return out

"""(alpha, k)-anonymity: no sensitive value is too common in a group of k people (Wong, Li, Fu and Wang 2006)."""

from __future__ import annotations

from typing import ClassVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from shoal.core.comparable import comparable
from shoal.core.errors import UsageError
from shoal.core.groups import Finding, Groups
from shoal.promises.base import Promise, Rule, among

SLACK = 1e-9  # floating point only


class AlphaKAnonymity(Promise, frozen=True, tag="alpha-k-anonymity"):
    """Every group has at least ``k`` people, and at most the share ``alpha`` of them have one of the ``values``.

    ``values`` are the values of the sensitive ``column`` that nobody may be linked to; without them every value is one.
    People who hold several values count for each of them. A missing value is none where people are counted: the share
    is one of the people who hold a value; if nobody does, all are taken to hold the same, unless ``values`` are named.

    Protects against linking a person to a named value with more than alpha's confidence. Does not protect against
    learning that somebody does *not* have it, nor values that are not named, nor against how rare a value is
    elsewhere: where 1 in 1,000 has it, a group in which half do tells much (beta-likeness looks at that).

    >>> import numpy as np, polars as pl
    >>> groups = Groups(np.array([0, 0, 1, 1], np.int32), {"diag": pl.Series(["HIV", "flu", "flu", "flu"])})
    >>> AlphaKAnonymity(0.5, 2, "diag", values=("HIV",)).judge(groups).kept
    True
    >>> AlphaKAnonymity(0.5, 2, "diag").judge(groups).kept  # everybody in the second group has flu
    False

    Reference: R. Wong et al., (α, k)-anonymity: an enhanced k-anonymity model for privacy preserving data publishing,
    KDD 2006.
    """

    higher_is_worse: ClassVar[bool] = True

    alpha: float
    k: int
    column: str
    values: tuple[str | int | float | bool, ...] = ()

    def __post_init__(self) -> None:
        if not 0 < self.alpha <= 1:
            raise UsageError(f"alpha must lie above 0 and up to 1, found {self.alpha:g}", where=self.use)
        if self.k < 1:
            raise UsageError(f"k must be at least 1, found {self.k}", where=self.use)

    @property
    def sensitive(self) -> str:
        """See :class:`Promise`."""
        return self.column

    @property
    def title(self) -> str:
        """See :class:`Promise`. The values are not said: reports must not quote what people have."""
        return f"({self.alpha:g}, {self.k})-anonymity of {self.column}"

    @property
    def asked(self) -> float:
        """See :class:`Promise`."""
        return self.alpha

    def rule(self) -> Rule:
        """See :class:`Promise`."""
        return Rule(k=self.k, check="alpha", column=self.column, bound=self.alpha, values=self.values, tables_only=True)

    def measure(self, groups: Groups) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """The largest share of a named value in each group. O(rows log rows)."""
        group, value, count, values = groups.counts(self.column)
        # without subjects, a missing value is one like any other
        holders, told = groups.sizes(), np.ones(len(values), np.bool_)
        if groups.people is not None:
            holders, told = groups.known(self.column), values.is_not_null().to_numpy()
        if self.values:
            told = told & among(values, self.values)
        named = told[value]
        most = np.zeros(groups.count)
        np.maximum.at(most, group[named], count[named] / np.maximum(1, holders[group[named]]))
        if not self.values:
            most[holders == 0] = 1.0
        return most, (most <= self.alpha + SLACK) & (groups.sizes() >= self.k)

    def judge(self, groups: Groups) -> Finding:
        """See :class:`Promise`; the size of the smallest group is told, too."""
        found = super().judge(groups)
        if not groups.count:
            return found
        notes = [f"smallest group {int(groups.sizes().min()):,}, asked {self.k:,}"]
        there = comparable(groups.sensitive[self.column]).unique()
        if absent := sum(not among(there, [value]).any() for value in self.values):
            notes.append(f"{absent:,} of the {len(self.values):,} values that are named do not occur")
        return msgspec.structs.replace(found, note="; ".join(notes))

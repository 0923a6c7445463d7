"""beta-likeness: no value's share grows too much from the whole table to a group (Cao and Karras 2012)."""

from __future__ import annotations

import math
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from shoal.core.errors import UsageError
from shoal.core.groups import Groups
from shoal.promises.base import Promise, Rule

SLACK = 1e-9  # floating point only


class BetaLikeness(Promise, frozen=True, tag="beta-likeness"):
    """In no group is a value of the sensitive ``column`` more than ``1 + beta`` times as common as in the release.

    With p the share of all people who hold a value and q that of a group's people, (q - p) / p is at most beta for
    every value. The ``enhanced`` kind (the default, as in the paper) also asks for at most -ln p: the bound on common
    values is then a useful one for every beta. Only gains count: that a value is rarer in a group is no harm here.

    Protects rare values, of which t-closeness takes no notice: from .01 to .11 and from .4 to .5 are the same distance,
    but ten times and a quarter as much to learn. Does not protect against learning that somebody does *not* have a
    value, nor values that mean alike, nor what the whole table tells. It is judged against the released rows; people
    who hold several values count for each of them.

    >>> import numpy as np, polars as pl
    >>> groups = Groups(np.array([0, 0, 1, 1], np.int32), {"diag": pl.Series(["a", "b", "b", "b"])})
    >>> BetaLikeness(1, "diag", kind="basic").judge(groups).reached  # of four people one has a, of two in a group one
    1.0

    Reference: J. Cao and P. Karras, Publishing microdata with a robust privacy guarantee, PVLDB 5(11), 2012.
    """

    higher_is_worse: ClassVar[bool] = True
    compares_with_all: ClassVar[bool] = True

    beta: float
    column: str
    kind: Literal["enhanced", "basic"] = "enhanced"

    def __post_init__(self) -> None:
        if not (self.beta > 0 and math.isfinite(self.beta)):
            raise UsageError(f"beta must be a positive number, found {self.beta:g}", where=self.use)

    @property
    def sensitive(self) -> str:
        """See :class:`Promise`."""
        return self.column

    @property
    def title(self) -> str:
        """See :class:`Promise`."""
        return f"{self.kind} {self.beta:g}-likeness of {self.column}"

    @property
    def asked(self) -> float:
        """See :class:`Promise`."""
        return self.beta

    def rule(self) -> Rule:
        """See :class:`Promise`."""
        check: Literal["beta", "enhanced-beta"] = "beta" if self.kind == "basic" else "enhanced-beta"
        return Rule(check=check, column=self.column, bound=self.beta, tables_only=True)

    def measure(self, groups: Groups) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """The largest gain of a value in each group; infinite if it is more than -ln p allows. O(rows log rows)."""
        group, value, count, _ = groups.counts(self.column)
        whole = groups.shares(self.column)
        more = (count / groups.sizes()[group] - whole[value]) / whole[value]
        if self.kind == "enhanced":
            more = np.where(more > SLACK - np.log(whole[value]), np.inf, more)
        reached = np.zeros(groups.count)
        np.maximum.at(reached, group, more)
        return reached, reached <= self.beta + SLACK

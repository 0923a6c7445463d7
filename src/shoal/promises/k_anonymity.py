"""k-anonymity: nobody stands in a group of fewer than k people (Samarati and Sweeney 1998)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shoal.core.errors import UsageError
from shoal.core.groups import Groups
from shoal.promises.base import Promise, Rule


class KAnonymity(Promise, frozen=True, tag="k-anonymity"):
    """Every combination of released quasi values is shared by at least ``k`` people.

    Protects against finding a person's row by what is known of them. Does not protect against learning a sensitive
    value that the whole group shares (add l-diversity), nor against comparing two releases of the same people.

    >>> import numpy as np
    >>> KAnonymity(2).judge(Groups(np.array([0, 0, 1], np.int32))).kept
    False
    """

    k: int

    def __post_init__(self) -> None:
        if self.k < 1:
            raise UsageError(
                f"k must be at least 1, found {self.k}", where="k-anonymity", hint="2 is the least that hides anyone"
            )

    @property
    def title(self) -> str:
        """See :class:`Promise`."""
        return f"{self.k}-anonymity"

    @property
    def asked(self) -> float:
        """See :class:`Promise`."""
        return self.k

    def rule(self) -> Rule:
        """See :class:`Promise`."""
        return Rule(k=self.k)

    def measure(self, groups: Groups) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Group sizes against k. O(rows log rows)."""
        sizes = groups.sizes()
        return sizes.astype(np.float64), sizes >= self.k

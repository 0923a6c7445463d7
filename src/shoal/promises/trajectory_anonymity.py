"""k-anonymity of people with many rows: all rows of a person read like those of others (Nergiz et al. 2009)."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from shoal.core.errors import UsageError
from shoal.core.groups import Groups
from shoal.promises.base import Promise, Rule


class TrajectoryAnonymity(Promise, frozen=True, tag="trajectory-anonymity"):
    """The rows of a person, taken together, read like those of at least ``k`` people.

    A person's trajectory is the groups their rows stand in, each as often as they do. Where plain k-anonymity holds
    and a pseudonym is shown, somebody may be the only one to stand in three groups at once; here at least k people
    stand in exactly these, so that a pseudonym may be shown and rows of a person may be analysed together.

    Protects against finding a person by what is known of any of their rows, or of all of them, and of how many they
    have. Does not protect against learning a sensitive value that those k people share: add l-diversity, which is
    then judged of rows and of people with all values they have in any row. Nor against who knows in which order rows
    came where a column shows it unchanged: make the time a quasi column then.

    >>> people = np.array([0, 0, 1, 1, 2], np.int32)  # 0 and 1 have two rows each, 2 has one
    >>> TrajectoryAnonymity(2).measure(Groups(np.array([0, 1, 0, 1, 1], np.int32), people=people))[0].tolist()
    [2.0, 1.0]

    Reference: M. E. Nergiz, M. Atzori, Y. Saygın and B. Güç, Towards trajectory anonymization: a generalization-based
    approach, Transactions on Data Privacy 2(1), 2009. Points of trajectories are generalized to boxes that k
    trajectories share, and those that fit no other are suppressed; places and times are quasi columns here.
    """

    follows_people: ClassVar[bool] = True
    compares_with_all: ClassVar[bool] = True  # a person's rows may lie in any part of a release

    k: int

    def __post_init__(self) -> None:
        if self.k < 1:
            raise UsageError(f"k must be at least 1, found {self.k}", where=self.use)

    @property
    def title(self) -> str:
        """See :class:`Promise`."""
        return f"{self.k}-anonymity of whole trajectories"

    @property
    def asked(self) -> float:
        """See :class:`Promise`."""
        return self.k

    def rule(self) -> Rule:
        """See :class:`Promise`."""
        return Rule(k=self.k, complete=False, tables_only=True)

    def measure(self, groups: Groups) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Of each group, how few people share the trajectory of one of its members. O(rows log rows)."""
        if not groups.count:
            return np.zeros(0), np.zeros(0, np.bool_)
        if groups.people is None:
            raise UsageError(
                "follows people through their rows, and nothing says whose a row is",
                where=self.use,
                hint="declare the column that does: `subject`",
            )
        people = groups.together()
        crowd = people.sizes()[people.labels]
        least = np.full(groups.count, np.inf)
        np.minimum.at(least, groups.labels, crowd.astype(np.float64))
        return least, least >= self.k

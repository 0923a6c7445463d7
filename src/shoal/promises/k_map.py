"""k-map: every released row may stand for at least k people of a register (Sweeney 2002)."""

from __future__ import annotations

from typing import ClassVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from shoal.core.errors import UsageError
from shoal.core.groups import Finding, Groups
from shoal.promises.base import About, Promise, Rule, lacks_register


class KMap(Promise, frozen=True, tag="k-map"):
    """Every released combination of quasi values fits at least ``k`` people of a ``register``.

    The register is a table with the quasi columns and a row per person of the population that the released people come
    from: those whom an attacker may take them for. In a policy, ``register`` is its file; otherwise it is handed in
    beside the promise. People of the register whose values a hierarchy does not know count for nobody.

    Protects against finding whose a released row is, from somebody who does not know who is in the table. Does not
    protect against somebody who knows that a person is in it (k-anonymity does), nor against learning *that* a person
    is in it (delta-presence does), nor where the register is not the one an attacker has: one that is larger or from
    other years promises more than holds.

    >>> from shoal.core.groups import Coverage
    >>> register = Coverage(np.array([1, 1, 1]), lambda: iter([np.array([True, True, False])]))
    >>> KMap(2).judge(Groups(np.zeros(1, np.int32), register=register)).kept  # a row alone that fits two people
    True

    Reference: L. Sweeney, k-anonymity: a model for protecting privacy, IJUFKS 10(5), 2002; K. El Emam and F. Dankar,
    Protecting privacy using k-anonymity, JAMIA 15(5), 2008.
    """

    about: ClassVar[About] = "register"

    k: int
    register: str = ""

    def __post_init__(self) -> None:
        if self.k < 1:
            raise UsageError(f"k must be at least 1, found {self.k}", where=self.use)

    @property
    def title(self) -> str:
        """See :class:`Promise`."""
        return f"{self.k}-map"

    @property
    def asked(self) -> float:
        """See :class:`Promise`."""
        return self.k

    def rule(self) -> Rule:
        """See :class:`Promise`."""
        return Rule(complete=False, tables_only=True)

    def measure(self, groups: Groups) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """How many people of the register each group may stand for. O(groups x register)."""
        if not groups.count:
            return np.zeros(0), np.zeros(0, np.bool_)
        if groups.register is None:
            raise lacks_register(self)
        counts = groups.register.counts()
        return counts.astype(np.float64), counts >= self.k

    def judge(self, groups: Groups) -> Finding:
        """See :class:`Promise`."""
        found = super().judge(groups)
        if groups.register is None:
            return found
        return msgspec.structs.replace(found, unit=f"{int(groups.register.people.sum()):,} people of the register")

"""delta-presence: nobody learns who is in the table (Nergiz, Atzori and Clifton 2007)."""

from __future__ import annotations

from typing import ClassVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from shoal.core.errors import UsageError
from shoal.core.groups import Finding, Groups
from shoal.promises.base import About, Promise, Rule, lacks_register

SLACK = 1e-9  # floating point only


class DeltaPresence(Promise, frozen=True, tag="delta-presence"):
    """Nobody is more than ``most`` sure of a person of a ``register`` that they were released, or less than ``least``.

    The register has the quasi columns and a row per person, the released people among them. A group of n people whose
    cells cover c of the register took them evenly: the belief about each is n / c. Where the cells of groups overlap,
    the shares of all groups that cover a person add up for ``most`` (more than any reader can be sure), and the largest
    of them counts for ``least``. Where they do not, this is the definition of the paper. ``least`` is about everybody
    of the register: with one above 0, a person whom no group covers breaks it.

    Protects where being in the table is what must not be known: patients of one disease. Does not protect sensitive
    values beside that, nor against a reader who knows more of somebody than the quasi columns, nor where the register
    is not the one an attacker has. Groups that overlap cost more generalization here: `mondrian`, whose boxes do not,
    often loses less than other methods.

    >>> from shoal.core.groups import Coverage
    >>> register = Coverage(np.array([1, 1, 1, 1]), lambda: iter([np.array([True, True, True, False])]))
    >>> DeltaPresence(0.7).judge(Groups(np.zeros(2, np.int32), register=register)).kept  # two of three
    True

    Reference: M. Nergiz, M. Atzori and C. Clifton, Hiding the presence of individuals from shared databases, SIGMOD
    2007.
    """

    about: ClassVar[About] = "register"
    higher_is_worse: ClassVar[bool] = True
    closed_under_union: ClassVar[bool] = False

    most: float
    least: float = 0.0
    register: str = ""

    def __post_init__(self) -> None:
        if not 0 <= self.least <= self.most <= 1 or self.most == 0:
            raise UsageError(
                f"expected 0 <= least <= most <= 1 and most above 0, found {self.least:g} and {self.most:g}",
                where=self.use,
            )

    @property
    def title(self) -> str:
        """See :class:`Promise`."""
        return f"({self.least:g}, {self.most:g})-presence"

    @property
    def asked(self) -> float:
        """See :class:`Promise`."""
        return self.most

    def rule(self) -> Rule:
        """See :class:`Promise`."""
        return Rule(complete=False, tables_only=True)

    def measure(self, groups: Groups) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """The highest belief about anyone whom a group covers. O(groups x register)."""
        if not groups.count:
            return np.zeros(0), np.zeros(0, np.bool_)
        if groups.register is None:
            raise lacks_register(self)
        most, least, lowest = groups.register.beliefs(groups.sizes())
        kept = (most <= self.most + SLACK) & (least >= self.least - SLACK)
        # somebody whom nothing covers is told apart by every group: only wider groups help
        return most, kept if lowest >= self.least - SLACK else np.zeros(groups.count, np.bool_)

    def judge(self, groups: Groups) -> Finding:
        """See :class:`Promise`; the lowest belief is told, too, where one is asked."""
        found = super().judge(groups)
        if groups.register is None:
            return found
        lowest = groups.register.beliefs(groups.sizes())[2] if self.least > 0 and groups.count else 0.0
        note = f"lowest belief {lowest:.4g}, asked {self.least:g}" if self.least > 0 else found.note
        unit = f"{int(groups.register.people.sum()):,} people of the register"
        return msgspec.structs.replace(found, unit=unit, note=note)

"""Noise for z-anonymity: a few invented pairs instead of withholding (Bacconi 2021, chapter 6, Algorithm 5)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from shoal.core.errors import UsageError

Ints = NDArray[np.int64]


class Noise(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Release a value that misses z by at most ``most``, together with that many invented pairs (person, value).

    ``most`` is a number of people, or below 1 a share of z. The invented pairs name the most recent people of the
    same category who did not show the value. As published, they leave no trace in the window, so that every further
    event below z invents again; with ``count`` they count like people for one window, and the next event needs none
    (so real people may leave while their fakes still count: the real number can fall further below z).

    With noise fewer than z real people may stand behind a value; the smallest number is reported. It answers the
    attack on common categories (more detail survives), and opens another: who knows the real people sees the fakes.

    >>> Noise(most=0.5).mosts(np.array([10, 20])).tolist()
    [5, 10]
    """

    most: float
    count: bool = False

    def __post_init__(self) -> None:
        if not 0 < self.most < float("inf") or (self.most >= 1 and self.most != int(self.most)):
            raise UsageError("`most` is a whole number of people, or a share of z below 1", where="noise")

    def mosts(self, zs: Ints) -> Ints:
        """The most fakes an event may cost under each z."""
        if self.most >= 1:
            return np.full(len(zs), int(self.most), np.int64)
        share: Ints = np.floor(zs * self.most).astype(np.int64)
        return share


class Faces:
    """The published names of recent people: the one thing of a person that must be kept whole, because it may be used.

    Bounded by the people of the window.

    >>> faces = Faces()
    >>> faces.remember([7], ["ada"])
    >>> faces.names(np.array([7]))
    ['ada']
    """

    def __init__(self) -> None:
        self._of: dict[int, Any] = {}
        self._next = 4096

    def remember(self, people: Iterable[int], names: Iterable[Any]) -> None:
        """Learn the names people are published under."""
        self._of.update(zip(people, names, strict=True))

    def forget(self, living: Ints) -> None:
        """Keep only people who are still in the window; done when twice as many have gathered."""
        if len(self._of) >= self._next:
            here = set(living.tolist())
            self._of = {person: name for person, name in self._of.items() if person in here}
            self._next = max(4096, 2 * len(self._of))

    def names(self, people: Ints) -> list[Any]:
        """The names of these people."""
        return [self._of[p] for p in people.tolist()]

    def state(self) -> list[tuple[int, Any]]:
        """All names, for a snapshot, which is sealed."""
        return list(self._of.items())

    def restore(self, state: list[tuple[int, Any]]) -> None:
        """Take over the names of a snapshot."""
        self._of = dict(state)

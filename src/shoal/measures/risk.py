"""How likely someone is found again: the prosecutor knows the person is in the data, the journalist does not, the
marketer wants many (El Emam and Dankar 2008)."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import numpy as np
from numpy.typing import NDArray


class Risk(msgspec.Struct, frozen=True):
    """Chances of finding people again, 0 to 1.

    ``prosecutor`` is the worst, ``average`` the mean over people; ``journalist`` the worst against the population
    the data were drawn from (the same without one); ``marketer`` the expected share found. ``unique`` counts people
    who are alone in their group, ``at_risk`` is the share whose chance exceeds one in five.

    >>> risk(np.array([1, 4])).unique
    1
    """

    prosecutor: float
    average: float
    journalist: float
    marketer: float
    unique: int
    at_risk: float
    people: int
    groups: int


def risk_of(sizes: Mapping[int, int]) -> Risk:
    """The same from how many groups there are of each size, for more groups than memory holds.

    >>> risk_of({1: 1, 4: 2}) == risk(np.array([1, 4, 4]))
    True
    """
    size = np.array(sorted(s for s in sizes if s > 0), np.int64)
    count = np.array([sizes[int(s)] for s in size], np.int64)
    people = int(size @ count)
    if not people:
        return Risk(0.0, 0.0, 0.0, 0.0, 0, 0.0, 0, 0)
    groups = int(count.sum())
    return Risk(
        prosecutor=float(1 / size[0]),
        average=groups / people,
        journalist=float(1 / size[0]),
        marketer=groups / people,
        unique=int(count[size == 1].sum()),
        # fewer than five: a chance above one in five
        at_risk=float((size * count)[size < 5].sum() / people),
        people=people,
        groups=groups,
    )


def risk(sizes: NDArray[np.int64], population: NDArray[np.int64] | None = None) -> Risk:
    """Risk from the sizes of the groups; ``population`` has, in the same order, their sizes in a register.

    >>> import numpy as np
    >>> risk(np.array([1, 3])).marketer
    0.5
    """
    sizes = sizes[sizes > 0] if population is None else sizes
    people = int(sizes.sum())
    if not people:
        return Risk(0.0, 0.0, 0.0, 0.0, 0, 0.0, 0, 0)
    # a register that lacks some of the released people is no smaller world than they are
    world = sizes if population is None else np.maximum(population, sizes)
    return Risk(
        prosecutor=float(1 / sizes.min()),
        average=len(sizes) / people,
        journalist=float(1 / world.min()),
        marketer=float((sizes / world).sum() / people),
        unique=int((sizes == 1).sum()),
        at_risk=float(sizes[sizes < 5].sum() / people),
        people=people,
        groups=len(sizes),
    )

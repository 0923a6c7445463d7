"""What is left of the information: people grouped by all that is released of them (Bacconi 2021, 4.3, 5.3, 5.4)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shoal.kernels.zero_delay.k_share import by_person, group_sizes, set_prints

Ints = NDArray[np.int64]


def entropy(sizes: NDArray[np.int32], people: int | None = None) -> float:
    """H = -Σ |G|/U log2 |G|/U, given the size of each person's own group.

    >>> import numpy as np
    >>> entropy(np.array([1, 1, 2, 2], np.int32))
    1.5
    """
    share = sizes[sizes > 0] / (people or max(1, int((sizes > 0).sum())))
    # each group of size s stands s times in sizes, with weight share/s each
    # + 0.0: minus zero is zero
    return float(-(np.log2(share)).sum() / (people or max(1, len(share)))) + 0.0


def k_share(sizes: NDArray[np.int32], empty: int, k: int, *, count_empty: bool = True) -> float:
    """p_k: the share of people in a group of at least k. People with nothing released are one group, or left out.

    >>> import numpy as np
    >>> sizes = np.array([1, 2, 2, 0], np.int32)
    >>> k_share(sizes, 1, 2), k_share(sizes, 1, 2, count_empty=False)
    (0.5, 0.6666666666666666)
    """
    hidden = int((sizes >= k).sum()) + (empty if count_empty and empty >= k else 0)
    people = len(sizes) if count_empty else len(sizes) - empty
    return hidden / people if people else 1.0


def released_sets(people: NDArray[np.int32], nodes: Ints, count: int | None = None) -> tuple[NDArray[np.int32], int]:
    """Group sizes by the exact set of released nodes: (size of each person's group, how many have nothing).

    ``people`` numbers persons from 0; ``count`` is how many there are, if some released nothing. Node 0 is nothing.

    >>> people, nodes = np.array([0, 1, 2], np.int32), np.array([7, 7, 9])
    >>> sizes, empty = released_sets(people, nodes)
    >>> sizes.tolist(), empty
    ([2, 2, 1], 0)
    """
    size = count if count is not None else (int(people.max()) + 1 if len(people) else 0)
    # each node as a chain of one level that one person is enough for
    return group_people(people, nodes[:, None], (nodes[:, None] != 0).astype(np.int32), 1, 1, size)


def group_people(
    people: NDArray[np.int32], chains: Ints, counts: NDArray[np.int32], z: int, top: int, size: int
) -> tuple[NDArray[np.int32], int]:
    """Group sizes if everyone released, of each row, the most specific node that ``z`` people share. O(rows).

    Who asks for many z sorts the rows by person first (:func:`sorted_by_person`).

    >>> people, nodes, counts = np.array([0, 1], np.int32), np.array([[7], [7]]), np.full((2, 1), 2, np.int32)
    >>> sizes, empty = group_people(people, nodes, counts, 2, 1, 2)
    >>> sizes.tolist(), empty
    ([2, 2], 0)
    """
    # sorting once pays for all z that are tried
    if (np.diff(people) < 0).any():
        people, chains, counts = sorted_by_person(people, chains, counts, size)
    first, second = np.empty(size, np.int64), np.empty(size, np.int64)
    set_prints(people, chains, counts, z, top, first, second)
    sizes = np.empty(size, np.int32)
    return sizes, int(group_sizes(first, second, sizes))


def sorted_by_person(
    people: NDArray[np.int32], chains: Ints, counts: NDArray[np.int32], size: int
) -> tuple[NDArray[np.int32], Ints, NDArray[np.int32]]:
    """The same rows, those of a person together.

    >>> people, nodes = np.array([1, 0], np.int32), np.array([[7], [9]])
    >>> who, chains, _ = sorted_by_person(people, nodes, np.ones((2, 1), np.int32), 2)
    >>> who.tolist(), chains.tolist()
    ([0, 1], [[9], [7]])
    """
    order = np.empty(len(people), np.int64)
    by_person(people, size, order)
    return people[order], chains[order], counts[order]


def residual(after: float, before: float) -> float:
    """Residual information: entropy of the release over entropy of the original (Bacconi 2021, Definition 5.4.1).

    >>> residual(1.5, 3.0)
    0.5
    """
    return after / before if before > 0 else 1.0

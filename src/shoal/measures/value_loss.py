"""VInfoLoss, the information loss of CASTLE (Cao et al. 2011; Allgöwer 2023, section CASTLE)."""

from __future__ import annotations

from collections.abc import Sequence


def number_loss(low: float, high: float, least: float, most: float) -> float:
    """The loss of publishing a number as [low, high] where its domain is [least, most].

    >>> number_loss(25, 55, 0, 120)
    0.25
    """
    return (high - low) / (most - least) if most > least else 0.0


def node_loss(leaves: int, all_leaves: int) -> float:
    """The loss of publishing a node with so many leaves under it: nothing for a leaf, 1 for the root.

    >>> node_loss(3, 9)
    0.25
    """
    return (leaves - 1) / (all_leaves - 1) if all_leaves > 1 else 0.0


def tuple_loss(cells: Sequence[float]) -> float:
    """The loss of a tuple: the mean over its quasi cells."""
    return sum(cells) / len(cells) if cells else 0.0

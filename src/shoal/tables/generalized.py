"""Cells that are already generalized, as values of their column: what continuous mode groups again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shoal.core.levels import Codes, Levels


@dataclass(frozen=True)
class Widened:
    """Levels in which some nodes are values, too: ``leaf`` and ``height`` say which node each code stands for."""

    levels: Levels
    leaf: NDArray[np.int64]  # a value (code of the plain levels) under the node
    height: NDArray[np.int64]  # its level; 0 for a value
    values: Codes  # the new code of each plain code
    nodes: Codes  # the new code of each given node

    def published(self, low: Codes, level: NDArray[np.int8]) -> tuple[NDArray[np.int64], NDArray[np.int8]]:
        """A value under the node of each ``low`` at ``level``, and the level at which it is published."""
        leaf, height = np.empty(len(low), np.int64), np.empty(len(low), np.int8)
        for at in np.unique(level):
            here = level == at
            column = self.levels.codes[:, at]
            first = np.searchsorted(column, column[low[here]])
            leaf[here] = self.leaf[first]
            height[here] = np.maximum(at, self.height[first])
        return leaf, height


def with_nodes(levels: Levels, level: NDArray[np.int8], node: Codes) -> Widened:
    """The levels with the given nodes as values.

    A node becomes a value of its own that joins the values under it only at the node's level. So it meets each of them
    there and nowhere lower: what was published can only become more general. Costs O((values + nodes) x levels).
    """
    old, extra = levels.size, len(node)
    first = np.array([np.searchsorted(levels.codes[:, a], b) for a, b in zip(level, node, strict=True)], np.int64)
    leaf = np.concatenate([np.arange(old), first])
    height = np.concatenate([np.zeros(old, np.int64), level.astype(np.int64)])
    # a node stands before its first value, larger nodes before smaller: every node stays a run
    order = np.lexsort((-height, leaf))
    leaf, height = leaf[order], height[order]
    codes = np.zeros((old + extra, levels.depth), np.int32)
    own = -1 - np.arange(old + extra)
    for at in range(levels.depth):
        ids = np.where(at >= height, levels.codes[leaf, at], own)
        codes[:, at] = np.cumsum(np.diff(ids, prepend=ids[:1]) != 0) if len(ids) else 0
    begins = [np.unique(codes[:, at], return_index=True)[1] for at in range(levels.depth)]

    def shown(at: int) -> list[tuple[int, int]]:
        return [(int(leaf[i]), max(at, int(height[i]))) for i in begins[at]]

    def make_labels(at: int) -> Sequence[str]:
        return [str(levels.labels(a)[int(levels.codes[c, a])]) for c, a in shown(at)]

    def make_costs(at: int) -> NDArray[np.float64]:
        return np.array([levels.costs(a)[levels.codes[c, a]] for c, a in shown(at)])

    place = np.empty(old + extra, np.int32)
    place[order] = np.arange(old + extra, dtype=np.int32)
    widened = Levels(levels.values.gather(leaf), codes, make_labels, make_costs)
    return Widened(widened, leaf, height, place[:old], place[old:])

"""t-closeness: a group's sensitive values are spread like the whole table's (Li, Li and Venkatasubramanian 2007)."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from shoal.core.errors import UsageError
from shoal.core.groups import Groups
from shoal.core.levels import Levels, code_of
from shoal.promises.base import Promise, Rule

SLACK = 1e-9  # floating point only
CELLS = 4_000_000  # of one block of groups x values


class TCloseness(Promise, frozen=True, tag="t-closeness"):
    """In every group the distribution of the sensitive ``column`` is within ``t`` of the whole release's.

    The distance is the earth mover's: ``equal`` (all values equally far apart), ``ordered`` (numbers; neighbours
    are near), ``hierarchical`` (values under one node are near; the sensitive column's hierarchy). Protects against
    learning much more from a group than from the whole table. Does not protect what the whole table tells. It is
    judged against the released rows: withheld rows count on neither side.

    People who hold several values are counted for each of them: what is compared is, per value, the share of the people
    who hold it. So ``equal`` bounds by t how far the share of a group's people who hold a value is from the share of
    all people who do. Where a group's people hold more values (or fewer) in all than everybody, the rest comes from
    outside, at the greatest distance there is.

    >>> import numpy as np, polars as pl
    >>> groups = Groups(np.array([0, 0, 1, 1], np.int32), {"diag": pl.Series(["a", "a", "b", "b"])})
    >>> TCloseness(0.4, "diag").judge(groups).reached
    0.5
    """

    higher_is_worse: ClassVar[bool] = True
    compares_with_all: ClassVar[bool] = True

    t: float
    column: str
    distance: Literal["equal", "ordered", "hierarchical"] = "equal"

    def __post_init__(self) -> None:
        if not 0 <= self.t <= 1:
            raise UsageError(f"t must lie between 0 and 1, found {self.t:g}", where="t-closeness")

    @property
    def sensitive(self) -> str:
        """See :class:`Promise`."""
        return self.column

    @property
    def title(self) -> str:
        """See :class:`Promise`."""
        return f"{self.t:g}-closeness of {self.column} ({self.distance})"

    @property
    def asked(self) -> float:
        """See :class:`Promise`."""
        return self.t

    def rule(self) -> Rule:
        """See :class:`Promise`."""
        return Rule(check=self.distance, column=self.column, bound=self.t)

    def measure(self, groups: Groups) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """How far each group is. O(groups x values)."""
        group, value, count, values = groups.counts(self.column)
        tree = self._tree(groups)
        place = None
        if tree is not None:  # in the tree's own order
            place = code_of(tree, values)
            if (place < 0).any():
                raise UsageError(
                    f"{int((place < 0).sum())} distinct values of column {self.column!r} are unknown to its hierarchy",
                    where="t-closeness",
                    hint="add them to the tree, or name a `default` node",
                )
            value = place[value].astype(np.int64)
        size = len(values) if tree is None else tree.size
        overall = np.zeros(size)
        overall[np.arange(len(values)) if place is None else place] = groups.shares(self.column)
        people = groups.sizes()
        far = np.zeros(groups.count)
        block = max(1, CELLS // max(1, size))
        for start in range(0, groups.count, block):
            stop = min(groups.count, start + block)
            a, b = np.searchsorted(group, [start, stop])
            share = np.zeros((stop - start, size))
            share[group[a:b] - start, value[a:b]] = count[a:b]
            share /= people[start:stop, None]
            far[start:stop] = self._distance(share - overall, tree)
        return far, far <= self.t + SLACK

    def _tree(self, groups: Groups) -> Levels | None:
        if self.distance != "hierarchical":
            return None
        tree = groups.levels.get(self.column)
        if tree is None:
            raise UsageError(
                f"hierarchical distance needs a hierarchy of column {self.column!r}",
                where="t-closeness",
                hint="declare it in the schema, or use `equal` or `ordered`",
            )
        return tree

    def _distance(self, gap: NDArray[np.float64], tree: Levels | None) -> NDArray[np.float64]:
        if tree is not None:
            return np.minimum(1.0, _hierarchical(gap, tree))
        if self.distance == "equal":
            return np.minimum(1.0, _moved(gap))
        below = np.cumsum(gap, axis=1)
        above = below[:, -1:] - below
        far: NDArray[np.float64] = np.maximum(np.abs(below), np.abs(above))[:, :-1].sum(1) / max(1, gap.shape[1] - 1)
        return np.minimum(1.0, far)


def _moved(gap: NDArray[np.float64]) -> NDArray[np.float64]:
    """What must be moved if all values are equally far apart: what is too much, or what is too little, if that is more.

    Of people with one value each both are the same.
    """
    out: NDArray[np.float64] = np.maximum(np.maximum(gap, 0).sum(1), np.maximum(-gap, 0).sum(1))
    return out


def _hierarchical(gap: NDArray[np.float64], tree: Levels) -> NDArray[np.float64]:
    """What must be moved between the nodes of each level, a step of the tree's height each time."""
    steps = max(1, tree.depth - 1)
    moved = np.zeros(len(gap))
    for level in range(tree.depth - 1):
        moved += _moved(_sum_by(gap, tree.codes[:, level], int(tree.codes[:, level].max()) + 1)) / steps
    return moved


def _sum_by(matrix: NDArray[np.float64], labels: NDArray[np.int32], size: int) -> NDArray[np.float64]:
    out = np.zeros((len(matrix), size))
    np.add.at(out.T, labels, matrix.T)
    return out

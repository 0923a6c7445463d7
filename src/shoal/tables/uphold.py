"""Promises that only their own definition can judge: groups that break one are merged until it is kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from shoal.core.groups import Groups
from shoal.core.release import Boxes, read_alike
from shoal.core.table import Table
from shoal.tables.base import Grouping, groups_of


class Measured(Protocol):
    """What says of every group whether it is kept: a promise, or one about the people behind the rows."""

    def measure(self, groups: Groups) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """A value per group, and whether it is kept."""
        ...


def uphold(table: Table, promises: Sequence[Measured], grouping: Grouping) -> Grouping:
    """The grouping with broken groups united with their cheapest neighbours until every promise holds.

    Judged is what a reader sees: groups that read alike are one. A full-domain method's groups then lie at its levels
    or above them. If not even all released rows as one group keep the promises, no row is suppressed: the whole table
    does keep them (the method has asked). Costs, per round, every promise's ``measure`` once and O(broken groups x
    groups x columns); as a rule a handful of rounds, at most as many as there are groups.
    """
    from shoal.kernels.tables.repair import pair_up

    labels, floor = grouping.labels, grouping.floor
    shape = table.shape()
    while True:
        labels, boxes = read_alike(table, labels, floor)
        floor = boxes.floor
        broken = _broken(table, promises, labels, boxes)
        if not broken.any():
            return Grouping(labels, floor)
        if len(broken) == 1:
            whole = None if floor is None else floor.max(axis=0, keepdims=True)
            return Grouping(np.zeros(table.size, np.int32), whole)
        sizes = np.bincount(labels[labels >= 0], minlength=len(broken))
        united = pair_up(shape, boxes.low, boxes.high, sizes, broken)
        number, again = np.unique(united, return_inverse=True)
        labels = np.where(labels >= 0, again[labels], -1).astype(np.int32)
        if floor is not None:
            above = np.zeros((len(number), floor.shape[1]), np.int8)
            np.maximum.at(above, again, floor)
            floor = above


def _broken(table: Table, promises: Sequence[Measured], labels: NDArray[np.int32], boxes: Boxes) -> NDArray[np.bool_]:
    groups = groups_of(table, labels, boxes)
    broken = np.zeros(groups.count, np.bool_)
    for promise in promises:
        broken |= ~promise.measure(groups)[1]
    return broken

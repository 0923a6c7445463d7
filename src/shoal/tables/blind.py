"""Groups found without a look at sensitive values: what a rerun of the method tells is then bounded.

Someone who knows the register and the method can ask in which *worlds* (who has which of a group's values) it would
have made the groups they see (the minimality attack of Wong, Fu, Wang and Pei 2007). Here a method first forms groups
that keep only the promises that count people. A tree over these groups is then drawn, also without a look at values,
and gone down from the root: a part is replaced by its two halves if both keep every promise, and otherwise it is a
group.

Exchanging values inside a released group changes nothing above it: the halves that were found good are unions of whole
groups, and have the same values in every such world. So the only thing the release tells is that a part of m blind
groups was *not* halved. That happens anyway with the chance :func:`stop`, in every world. So seeing it multiplies the
odds of one world against another by at most ``1 / stop(m)``: 4 for two blind groups, 2m for m, and 1 for a blind group
that stayed as it was.

This holds where every row is a person and the promises have compiled rules. Groups that read alike are later one group,
and promises about people with several rows are upheld by merging: neither is in the bound.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shoal.core.table import Table
from shoal.kernels.shared.boxes import box_cost, group_boxes
from shoal.kernels.shared.promises import Rules, holds, workspace

Labels = NDArray[np.int32]
Ids = NDArray[np.int64]
STOP = 0.25  # the chance that a part of two blind groups is not halved
PLACES = 5  # where a part may be halved, per column
HEAT = 0.1  # halves are drawn where their loss differs by about this share


def stop(groups: int) -> float:
    """The chance that a part of so many blind groups is not halved, whatever its values are.

    >>> stop(2), stop(8)
    (0.25, 0.0625)
    """
    return STOP * min(1.0, 2 / groups)


def halve_blindly(table: Table, rules: Rules, labels: Labels, seed: int) -> Labels:
    """Labels in which every group keeps all rules, made of the groups in ``labels``, which need not.

    The rows with a label must keep the rules together. O(groups x columns x log groups).
    """
    return _Tree(table, rules, labels, seed).labels()


class _Tree:
    def __init__(self, table: Table, rules: Rules, labels: Labels, seed: int) -> None:
        count = int(labels.max(initial=-1)) + 1
        self._size = len(labels)
        self._rules, self._work = rules, workspace(rules)
        self._shape = table.shape()
        self._low, self._high = group_boxes(table.matrix, labels, count)
        order = np.argsort(labels, kind="stable").astype(np.int32)
        order = order[labels[order] >= 0]
        self._sizes = np.bincount(labels[order], minlength=count)
        self._rows = np.split(order, np.cumsum(self._sizes)[:-1])
        self._random = np.random.default_rng([seed % 2**63, 0xB1])

    def labels(self) -> Labels:
        out = np.full(self._size, -1, np.int32)
        parts = [np.arange(len(self._rows))] if len(self._rows) else []
        found = 0
        while parts:
            part = parts.pop()
            halves = self._halves(part)
            if halves is None:
                out[self._members(part)] = found
                found += 1
            else:
                parts += halves
        return out

    def _halves(self, part: Ids) -> tuple[Ids, Ids] | None:
        if len(part) < 2 or self._random.random() < stop(len(part)):
            return None
        left, right = self._cut(part)
        return (left, right) if self._holds(left) and self._holds(right) else None

    def _cut(self, part: Ids) -> tuple[Ids, Ids]:
        """Two halves with little loss, found without a look at values; nearly equal ones are drawn."""
        places = np.unique(np.linspace(max(1, len(part) // 4), max(1, 3 * len(part) // 4), PLACES).astype(int))
        best, found = np.inf, (part[:1], part[1:])
        for column in range(self._low.shape[1]):
            middle = self._low[part, column].astype(np.int64) + self._high[part, column]
            ordered = part[self._random.permutation(len(part))]
            ordered = ordered[np.argsort(middle[np.searchsorted(part, ordered)], kind="stable")]
            for place in places:
                left, right = ordered[:place], ordered[place:]
                loss = (self._loss(left) + self._loss(right)) * (1 + HEAT * self._random.random())
                if loss < best:
                    best, found = loss, (np.sort(left), np.sort(right))
        return found

    def _loss(self, part: Ids) -> float:
        low, high = self._low[part].min(0), self._high[part].max(0)
        return float(self._sizes[part].sum()) * float(box_cost(self._shape, low, high))

    def _members(self, part: Ids) -> Labels:
        return np.concatenate([self._rows[g] for g in part])

    def _holds(self, part: Ids) -> bool:
        rows = self._members(part)
        return bool(holds(self._rules, rows, 0, len(rows), self._work))

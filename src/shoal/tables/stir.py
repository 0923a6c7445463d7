"""A random last step for promises about sensitive values: groups near each other are parted anew, blindly.

A method that looks at sensitive values to choose its groups tells something by its choice: who knows the register and
the method can ask in which tables it would have chosen *these* groups, and rule out the others (the minimality attack
of Wong, Fu, Wang and Pei 2007). Against it the choice must be possible in the other tables, too. Exchanging values
inside a group changes no promise about it; so if groups are drawn with a chance for every way of parting that keeps the
promises, every exchange could have given the same release.

Here a few groups are pooled, parted at random without a look at values, and the new parts are taken with a chance that
falls with the loss (the acceptance rule of Metropolis et al. 1953), if they keep the promises. Promises that count
people only look at nothing sensitive: nothing is stirred then, and nothing is lost.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shoal.core.table import Table
from shoal.kernels.shared.boxes import box_cost, group_boxes
from shoal.kernels.shared.promises import Rules, Work, holds, workspace
from shoal.kernels.tables.local_pairs import make_pairs
from shoal.kernels.tables.local_rest import union_costs
from shoal.tables.improve import dense

Labels = NDArray[np.int32]
Rows = NDArray[np.int32]
LEAST_POOLS, MOST_POOLS = 12, 256  # pools, at least and at most
SHARE = 20  # of so many groups one is pooled
FEW = 24  # groups up to which it is as hot as that; with more it cools, so that a large table loses nothing to it
SMALL = 1_000  # rows, likewise: under hard promises a table of any size has few groups
NEAR = 3  # groups pooled besides the first, at most
STOP = 0.15  # the chance that a part is not parted further
TRIES = 4  # blind cuts before a part stays as it is
HEAT = 0.7  # of a pool's loss: a rise by so much still has a chance of 1/e


def stir(table: Table, rules: Rules, labels: Labels, seed: int) -> Labels:
    """Labels in which some groups were parted anew; all keep the promises if they did before."""
    groups = int(labels.max(initial=-1)) + 1
    if not len(rules.kind) or not groups:
        return labels
    stirring = _Stirring(table, rules, dense(labels), seed)
    for _ in range(min(MOST_POOLS, max(LEAST_POOLS, groups // SHARE))):
        stirring.step()
    return dense(stirring.labels)


class _Stirring:
    def __init__(self, table: Table, rules: Rules, labels: Labels, seed: int) -> None:
        self.labels = labels.copy()
        self._matrix, self._rules = table.matrix, rules
        self._shape = table.shape()
        self._pairs = make_pairs(self._shape)
        self._work: Work = workspace(rules)
        self._random = np.random.default_rng([seed % 2**63, 0x57])
        count = int(labels.max()) + 1
        self._heat = HEAT * min(1.0, FEW / count) * min(1.0, SMALL / len(labels)) ** 2
        self._low, self._high = group_boxes(self._matrix, labels, count)
        self._members = dict(enumerate(_by_label(labels, count)))

    def step(self) -> None:
        """Pool a random row's group with some near it, and part them anew."""
        row = int(self._random.integers(len(self.labels)))
        group = int(self.labels[row])
        if group < 0:
            return
        ids = np.fromiter(self._members, np.int64)
        costs = union_costs(self._pairs, self._low[ids], self._high[ids], int(np.flatnonzero(ids == group)[0]))
        near = [int(g) for g in ids[np.argsort(costs, kind="stable")] if g != group][: 2 * NEAR]
        many = int(self._random.integers(0, NEAR + 1))
        chosen = [group, *(near[int(at)] for at in np.sort(self._random.permutation(len(near))[:many]))]
        before = sum(self._loss(self._members[g]) for g in chosen)
        parts = self._part(np.concatenate([self._members[g] for g in chosen]))
        after = sum(self._loss(part) for part in parts)
        heat = self._heat * max(before, after)
        if after <= before or self._random.random() < np.exp((before - after) / heat):
            self._settle(chosen, parts)

    def _part(self, rows: Rows) -> list[Rows]:
        """Part rows at random, without a look at their values, while both sides keep the promises."""
        k = int(self._rules.k)
        if len(rows) < 2 * k or self._random.random() < STOP:
            return [rows]
        for _ in range(TRIES):
            column = int(self._random.integers(self._matrix.shape[1]))
            mixed = self._random.permutation(rows)
            ordered = mixed[np.argsort(self._matrix[mixed, column], kind="stable")]
            cut = int(self._random.integers(k, len(rows) - k + 1))
            if self._holds(ordered[:cut]) and self._holds(ordered[cut:]):
                return [*self._part(ordered[:cut]), *self._part(ordered[cut:])]
        return [rows]

    def _holds(self, rows: Rows) -> bool:
        return bool(holds(self._rules, rows, 0, len(rows), self._work))

    def _loss(self, rows: Rows) -> float:
        codes = self._matrix[rows]
        return len(rows) * float(box_cost(self._shape, codes.min(0), codes.max(0)))

    def _settle(self, old: list[int], parts: list[Rows]) -> None:
        for group in old:
            del self._members[group]
        free = [*old, *range(len(self._low), len(self._low) + max(0, len(parts) - len(old)))]
        room = free[-1] + 1 - len(self._low)
        if room > 0:
            blank = np.zeros((room, self._low.shape[1]), self._low.dtype)
            self._low, self._high = np.vstack([self._low, blank]), np.vstack([self._high, blank])
        for group, rows in zip(free, parts, strict=False):
            self.labels[rows] = group
            self._members[group] = rows
            codes = self._matrix[rows]
            self._low[group], self._high[group] = codes.min(0), codes.max(0)


def _by_label(labels: Labels, count: int) -> list[Rows]:
    order = np.argsort(labels, kind="stable").astype(np.int32)
    order = order[labels[order] >= 0]
    return [rows.copy() for rows in np.split(order, np.cumsum(np.bincount(labels[order], minlength=count))[:-1])]

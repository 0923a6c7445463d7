"""Quasi values of a stream as numbers and paths, and boxes back as text.

In a stream nobody knows the values to come. So a number keeps its place in a declared domain, and any other value
becomes its *path*: keyed fingerprints of its labels, one per level, from itself to the root. Nothing has to be
remembered between batches; what is remembered here (labels of values seen before) is a cache that may be emptied.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.core.errors import UsageError
from shoal.core.schema import Schema
from shoal.kernels.delay.stream_boxes import Tuples, spread_paths
from shoal.streams.base import Reason
from shoal.streams.path_columns import Floats, Paths, Reasons
from shoal.streams.quasi_columns import Numbers, column_of


class Coded(NamedTuple):
    """A batch as arrays: see :class:`shoal.kernels.delay.stream_boxes.Tuples`; ``reason`` is 0 where a tuple is usable.

    ``at`` is where the column keeps the path of each value, true while the coder's epoch is ``epoch``.
    """

    number: Floats
    scaled: Floats
    node: NDArray[np.int64]
    cost: Floats
    reason: Reasons
    at: NDArray[np.int32]
    epoch: int

    def take(self, rows: NDArray[np.int64]) -> Coded:
        """Some of the rows."""
        return Coded(
            self.number[rows], self.scaled[rows], self.node[rows], self.cost[rows], self.reason[rows], self.at[rows],
            self.epoch,
        )  # fmt: skip

    def then(self, more: Coded) -> Coded:
        """These rows and more."""
        if not len(self.reason):
            return more
        return Coded(
            np.concatenate([self.number, more.number]),
            np.concatenate([self.scaled, more.scaled]),
            np.concatenate([self.node, more.node]),
            np.concatenate([self.cost, more.cost]),
            np.concatenate([self.reason, more.reason]),
            np.concatenate([self.at, more.at]),
            # -1: rows of two epochs are looked up again when they are published
            more.epoch if self.epoch == more.epoch else -1,
        )


class QuasiCoder:
    """Codes all quasi columns of a stream. ``leafless``: VInfoLoss instead of the normalized certainty penalty."""

    def __init__(self, schema: Schema, key: bytes, *, leafless: bool = False) -> None:
        self.names = schema.quasi
        if not self.names:
            raise UsageError("no column has the role `quasi`", where="schema")
        self.columns = [column_of(name, schema[name], key, leafless=leafless) for name in self.names]
        weight = np.array([schema[name].weight for name in self.names], np.float64)
        self.weight = weight / weight.sum()
        self.tree = np.array([isinstance(c, Paths) for c in self.columns], np.bool_)
        self.least = np.array([c.least if isinstance(c, Numbers) else 0.0 for c in self.columns])
        self.known = dict.fromkeys(self.names, (0, 0))  # values known to their hierarchy, and all that are not missing
        self.width = np.array([c.width if isinstance(c, Numbers) else 1.0 for c in self.columns])

    @property
    def ready(self) -> bool:
        """Whether the depth of every hierarchy is known."""
        return all(c.depth > 0 if isinstance(c, Paths) else c.whole is not None for c in self.columns)

    def learn(self, frame: pl.DataFrame) -> None:
        """What only data can tell: how deep hierarchies are, whether numbers are whole."""
        for name, column in zip(self.names, self.columns, strict=True):
            if isinstance(column, Paths):
                column.learn(frame[name])
            elif column.whole is None:
                column.whole = frame[name].dtype.is_integer()

    @property
    def learnt(self) -> list[int]:
        """What was learnt, for a snapshot: the depth of a hierarchy; 1 for whole numbers, else 0."""
        return [c.depth if isinstance(c, Paths) else int(bool(c.whole)) for c in self.columns]

    def recall(self, learnt: Sequence[int]) -> None:
        """Take over what a snapshot knows."""
        for known, column in zip(learnt, self.columns, strict=True):
            if isinstance(column, Paths):
                column.open(known)
            else:
                column.whole = bool(known)

    @property
    def depth(self) -> NDArray[np.int64]:
        """Levels per column; 1 for numbers."""
        return np.array([c.depth if isinstance(c, Paths) else 1 for c in self.columns], np.int64)

    def empty(self) -> Coded:
        """No tuples."""
        q, deep = len(self.names), int(self.depth.max())
        shape = (0, q, deep)
        return Coded(
            np.zeros((0, q)), np.zeros((0, q)), np.zeros(shape, np.int64), np.zeros(shape), np.zeros(0, np.uint8),
            np.zeros((0, q), np.int32), self.epoch,
        )  # fmt: skip

    @property
    def epoch(self) -> int:
        """Grows when a column forgets the paths it kept."""
        return sum(c.epoch for c in self.columns if isinstance(c, Paths))

    def code(self, frame: pl.DataFrame) -> Coded:
        """Numbers and paths of a batch. O(rows x columns), plus the hierarchy's cost per new distinct value."""
        n, q = frame.height, len(self.names)
        number = np.full((n, q), np.nan)
        scaled = np.zeros((n, q))
        node = np.zeros((n, q, int(self.depth.max())), np.int64)
        cost = np.zeros(node.shape)
        reason = np.zeros(n, np.uint8)
        at = np.zeros((n, q), np.int32)
        for j, (name, column) in enumerate(zip(self.names, self.columns, strict=True)):
            if isinstance(column, Paths):
                at[:, j], wrong = column.code(frame[name])
                spread_paths(column.nodes, column.costs, at[:, j], self.weight[j], j, node, cost)
            else:
                number[:, j], wrong = column.code(frame[name])
                share = (number[:, j] - column.least) / column.width * self.weight[j]
                # a missing number lies outside the domain, near no other
                scaled[:, j] = np.where(np.isnan(share), -1.0, share)
            known, total = self.known[name]
            there = n - frame[name].null_count()
            self.known[name] = (known + there - int((wrong == Reason.UNKNOWN).sum()), total + there)
            # the first column that is wrong gives the reason
            reason = np.where(reason == 0, wrong, reason)
        return Coded(number, scaled, node, cost, reason, at, self.epoch)

    def tuples(self, coded: Coded) -> Tuples:
        """The same for kernels."""
        return Tuples(
            coded.number, coded.scaled, coded.node, coded.cost,
            self.tree, self.depth, self.weight, self.least, self.width,
        )  # fmt: skip

    def publish(
        self,
        frame: pl.DataFrame,
        at: NDArray[np.int32] | None,
        box: NDArray[np.int64],
        low: Floats,
        high: Floats,
        level: NDArray[np.int8],
    ) -> pl.DataFrame:
        """The rows of ``frame`` with their quasi cells as row i's box ``box[i]`` says. O(rows x columns).

        ``at`` is where their paths are kept, if they still are.
        """
        columns: list[pl.Expr] = []  # all in one call: each call of polars costs more than its work here
        boxes = pl.Series(box)
        for j, (name, column) in enumerate(zip(self.names, self.columns, strict=True)):
            if isinstance(column, Paths):
                kept = column.code(frame[name])[0] if at is None else at[:, j]
                columns.append(column.text(kept, level[box, j]).alias(name))
            else:
                texts = pl.Series(column.text(low[:, j], high[:, j], level[:, j]), dtype=pl.String)
                columns.append(pl.lit(texts).gather(boxes).alias(name))
        return frame.with_columns_seq(columns)

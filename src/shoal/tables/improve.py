"""Phase 2 of `local`, for the groups of any method: destroy and rebuild neighbouring groups while the loss falls."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from shoal.core.table import Table
from shoal.kernels.shared.boxes import group_boxes
from shoal.kernels.shared.promises import Rules
from shoal.kernels.tables.local_groups import Groups, make_groups
from shoal.kernels.tables.local_hooks import grows, only_counts_rows
from shoal.kernels.tables.local_index import Index, cell_keys, fill_index
from shoal.kernels.tables.local_pairs import Pairs, make_pairs
from shoal.kernels.tables.local_rebuild import improve as rebuild
from shoal.tables.base import Progress, silent

Labels = NDArray[np.int32]
Codes = NDArray[np.int32]
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
WINDOW = 1 << 15  # rows of the largest part that is worked on at once
WHOLE_ROWS = 400  # rows of a group that is destroyed whole, unless k asks for more
SMALL = 4096  # a table of fewer rows is one part
CELLS = 1 << 18  # cells of the largest part: in many columns the search for neighbours looks at most groups
NEAR = 1.25  # times the loss of the groups at hand
STILL, IDLE = 1e-5, 3  # it ends after so many rounds that each gain no more than this share of the loss
COLD = 0.8  # of the steps after which nothing may be lost any more
ROUND = 200  # steps after which neighbours are listed anew, at least
PARTS = 8  # per round, of a table that has so many; not the number of cores, which changes the time and not the release


def improve(
    table: Table, rules: Rules, labels: Labels, steps: int, seed: int = 0, *, progress: Progress = silent
) -> Labels:
    """Labels with a loss at most that of ``labels``, after ``steps`` steps; suppressed rows (-1) stay suppressed.

    The groups given must keep the promises of ``rules``; those returned do. Costs O(steps x k² x columns), and
    O(rows) per round of some thousand steps. The same seed gives the same labels on every machine.
    """
    view = ordered(table)
    return Improver(view.matrix, make_pairs(view.shape()), rules, labels, seed).run(steps, progress)


def ordered(table: Table) -> Table:
    """The same table with the columns whose mismatch costs most first, hulls last: searches end early."""
    first = []
    for j, levels in enumerate(table.levels):
        at = min(1, levels.depth - 1)
        loss = 0.0
        if levels.numbers is None and table.size:
            loss = float(levels.costs(at)[levels.codes[table.matrix[:, j], at]].mean() * table.weights[j])
        elif table.size:
            places, width = levels.line
            often = np.bincount(table.matrix[:, j], minlength=levels.size)[: len(places)]
            middle = places[min(len(places) - 1, int(np.searchsorted(np.cumsum(often), often.sum() / 2)))]
            loss = float(often @ np.abs(places - middle) / (table.size * width) * table.weights[j])
        first.append((levels.numbers is not None, -loss, j))
    by = [j for *_, j in sorted(first)]
    return replace(
        table,
        names=tuple(table.names[j] for j in by),
        matrix=np.ascontiguousarray(table.matrix[:, by]),
        levels=tuple(table.levels[j] for j in by),
        weights=table.weights[by],
    )


class Improver:
    """Groups under improvement; :attr:`labels` always keeps the promises."""

    def __init__(self, matrix: Codes, pairs: Pairs, rules: Rules, labels: Labels, seed: int) -> None:
        self.matrix = matrix
        self.pairs = pairs
        self.rules = rules
        self.labels = dense(labels)
        self.seed = seed
        self.round = 0
        self.plain, self.growing = bool(only_counts_rows(rules)), bool(grows(rules))
        # larger groups under a promise about values soon find no better neighbours, nor do the best cuts of one column
        self.brief = len(rules.kind) > 0 or matrix.shape[1] == 1
        cells = max(1.0, len(matrix) * float(pairs.shape.weight.sum()))
        self.share = 1 / cells  # of the loss, per row and cost
        self.loss = loss_of(matrix, pairs, self.labels)

    def run(self, steps: int, progress: Progress = silent, heat: float = 0.0) -> Labels:
        """Spend ``steps`` steps; with ``heat``, which cools to none, they may lose a little for a while.

        Small losses on the way lead out of groupings that no single step improves (threshold accepting: Dueck and
        Scheuer 1990). That pays where there are many steps for a row.
        """
        spent = 0
        idle = 0
        best, least = self.labels, self.loss
        try:
            with ThreadPoolExecutor(min(PARTS, os.cpu_count() or 1)) as pool:
                while spent < steps and (self.labels >= 0).any():
                    self.round += 1
                    parts = self._parts()
                    budget = max(1, -(-(steps - spent) // len(parts)))
                    share = [min(budget, max(ROUND, len(rows) // 12)) for rows in parts]
                    seeds = draws(self.seed, 2 * self.round, len(parts))
                    before = self.loss
                    warm = heat * max(0.0, 1 - spent / (COLD * steps))
                    self._settle(parts, list(pool.map(self._work, parts, share, seeds, [warm] * len(parts))))
                    spent += sum(share)
                    idle = idle + 1 if not warm and before - self.loss <= STILL * self.loss else 0
                    if self.brief and idle == IDLE:
                        spent = steps
                    if self.loss < least:
                        best, least = self.labels, self.loss
                    progress(min(1.0, spent / steps), f"loss {100 * least * self.share:.3f} %")
        finally:  # also of an interrupted run the best groups stay
            self.labels, self.loss = best, least
        return self.labels

    def take(self, labels: Labels) -> None:
        """Go on from other groups that keep the promises, if these lose less."""
        labels = dense(labels)
        loss = loss_of(self.matrix, self.pairs, labels)
        if loss < self.loss:
            self.labels, self.loss = labels, loss

    def near(self, labels: Labels) -> bool:
        """Whether other groups lose little more than these, or less."""
        return loss_of(self.matrix, self.pairs, dense(labels)) <= NEAR * self.loss

    def _parts(self) -> list[NDArray[np.int64]]:
        """The rows of whole groups that lie near each other: some parts, another cut each time."""
        count = int(self.labels.max()) + 1
        size = np.bincount(self.labels[self.labels >= 0], minlength=count)
        total = int(size.sum())
        if total <= SMALL:
            return [np.flatnonzero(self.labels >= 0)]
        low, high = group_boxes(self.matrix, self.labels, count)
        columns = np.argsort(draws(self.seed, 2 * self.round + 1, self.matrix.shape[1]), kind="stable")[:3]
        order = np.lexsort([low[:, j] + high[:, j] for j in columns[::-1]])
        windows = max(2, -(-total // min(WINDOW, CELLS // self.matrix.shape[1])))
        many = min(PARTS, windows)
        before = np.empty(count, np.int64)
        before[order] = np.cumsum(size[order]) - size[order]
        window = before * windows // total
        drawn = np.argsort(draws(self.seed, 2 * self.round, windows + many)[many:], kind="stable")
        chosen = drawn[:many]
        full = np.isin(drawn, window)  # groups larger than a window leave windows in which none begins
        if not full[:many].any():
            chosen = drawn[full][:many]
        mine = window[self.labels]
        return [rows for w in chosen if len(rows := np.flatnonzero((mine == w) & (self.labels >= 0)))]

    def _work(self, rows: NDArray[np.int64], steps: int, seed: np.uint64, heat: float) -> tuple[Labels, float]:
        own = dense(self.labels[rows])
        codes = np.ascontiguousarray(self.matrix[rows])
        used = int(own.max()) + 1
        groups = make_groups(codes, self.pairs, own, used + len(rows) // self.rules.k + 8)
        root = np.sqrt(groups.cost[own])
        odds = np.cumsum(root * np.sqrt(root))  # the loss to the power 3/4, by operations that round alike everywhere
        before = float((groups.size * groups.cost).sum())
        if not odds[-1] > 0:
            return own, 0.0
        uniform = mixed(np.arange(1, steps + 1, dtype=np.uint64) * GOLDEN + seed) >> np.uint64(11)
        seeds = np.searchsorted(odds, uniform * (odds[-1] / 2**53), side="right")
        rebuild(
            codes,
            rows.astype(np.int32),
            groups,
            make_index(self.pairs, groups),
            self.pairs,
            self.rules,
            self.plain,
            self.growing,
            np.minimum(seeds, len(rows) - 1),
            # of larger groups only surplus rows are moved: a rebuild costs the square of what it pools
            max(60, 6 * self.rules.k, min(WHOLE_ROWS, 2 * int(np.median(groups.size[:used])))),
            heat,
            np.array([seed], np.uint64),
        )
        return groups.label, float((groups.size * groups.cost).sum()) - before

    def _settle(self, parts: list[NDArray[np.int64]], found: list[tuple[Labels, float]]) -> None:
        labels = self.labels.copy()
        base = int(labels.max()) + 1
        for rows, (own, change) in zip(parts, found, strict=True):
            labels[rows] = own + base
            base += int(own.max()) + 1
            self.loss += change
        self.labels = dense(labels)


def loss_of(matrix: Codes, pairs: Pairs, labels: Labels) -> float:
    """What the groups cost together, each row in cells."""
    groups = make_groups(matrix, pairs, labels, int(labels.max(initial=-1)) + 1)
    return float((groups.size * groups.cost).sum())


def make_index(pairs: Pairs, groups: Groups) -> Index:
    """An index of the groups' cells, to find the neighbours of a row."""
    keys, group = cell_keys(pairs, groups.low, groups.high, groups.size)
    order = np.lexsort(keys[::-1])
    index: Index = fill_index(pairs, groups.low, groups.high, np.ascontiguousarray(keys[:, order]), group[order])
    return index


def draws(seed: int, stream: int, count: int) -> NDArray[np.uint64]:
    """``count`` random 64-bit numbers, a sequence of their own for every seed and stream.

    >>> draws(3, 0, 2).tolist() == draws(3, 0, 2).tolist()
    True
    """
    first = mixed(np.array([seed % 2**64], np.uint64) + GOLDEN)
    return mixed(mixed(first + np.uint64(stream)) + np.arange(1, count + 1, dtype=np.uint64) * GOLDEN)


def mixed(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Well-mixed numbers (SplitMix64): the same on every machine and with every version of numpy.

    >>> mixed(np.array([1], np.uint64)).tolist()
    [6238072747940578789]
    """
    z = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def dense(labels: Labels) -> Labels:
    """Labels without gaps, -1 kept.

    >>> dense(np.array([5, -1, 5, 9], np.int32)).tolist()
    [0, -1, 0, 1]
    """
    kept = labels >= 0
    used = np.zeros(int(labels.max(initial=-1)) + 1, np.int32)
    used[labels[kept]] = 1
    number = np.cumsum(used, dtype=np.int32) - 1
    return np.where(kept, number[labels], np.int32(-1)).astype(np.int32)

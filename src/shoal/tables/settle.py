"""The last step of every method that forms groups by distance: no group is returned that breaks a promise."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from shoal.core.errors import UsageError
from shoal.core.release import dense, read_alike
from shoal.core.table import Table
from shoal.kernels.shared import promises as compiled
from shoal.promises.base import Promise
from shoal.promises.rules import compile_rules
from shoal.tables.base import Grouping, Progress, TableMethod, reachable, silent, taken

Labels = NDArray[np.int32]


def check_limit(suppress: float, where: str) -> None:
    """A limit of suppression is a share of the rows."""
    if not 0 <= suppress <= 1:
        raise UsageError(f"`suppress` must lie between 0 and 1, found {suppress:g}", where=where)


class Settled(TableMethod, frozen=True):
    """A method that only parts the rows: groups that break a promise are then settled here, for all alike.

    ``suppress`` is the share of rows that may be suppressed where a group breaks a promise.
    """

    suppress: float = 0.0

    def __post_init__(self) -> None:
        check_limit(self.suppress, self.use)

    def part(self, table: Table, rules: compiled.Rules, seed: int, progress: Progress) -> Labels:
        """A label per row of a table that is not empty."""
        raise NotImplementedError

    def form(
        self, table: Table, promises: Sequence[Promise], *, seed: int = 0, progress: Progress = silent
    ) -> Grouping:
        """See :class:`TableMethod`."""
        rules = reachable(table, promises)
        if not table.size:
            return Grouping(np.zeros(0, np.int32))
        from shoal.tables.stir import stir

        labels = self.part(table, rules, seed, progress)
        progress(0.8, "mending")
        labels = settle(table, promises, labels, suppress=self.suppress)
        stirred = stir(table, rules, labels, seed)
        return Grouping(settle(table, promises, stirred, suppress=self.suppress) if stirred is not labels else labels)


def settle(table: Table, promises: Sequence[Promise], labels: Labels, *, suppress: float = 0.0) -> Labels:
    """Labels in which every group keeps every promise.

    Broken groups are suppressed, the smallest first, while no more than the share ``suppress`` of the rows is; those
    that remain are merged with their cheapest neighbour. t is judged on released rows only, so after suppression
    the distribution of the whole is taken anew. If the promises cannot be kept without the suppressed rows, none is
    suppressed. Costs O(broken groups x groups x columns).
    """
    labels = dense(labels)
    if suppress > 0 and table.size:
        kept = _without_outliers(table, promises, labels, int(suppress * table.size))
        rest = taken(table, kept)
        if kept.any() and not kept.all() and _holds_whole(rest, promises):
            out = np.full(table.size, -1, np.int32)
            out[kept] = _merge(rest, promises, dense(labels[kept]))
            return out
    return _merge(table, promises, labels)


def _holds_whole(table: Table, promises: Sequence[Promise]) -> bool:
    rules = compile_rules(table, promises)
    everything = np.arange(table.size, dtype=np.int32)
    return bool(compiled.holds(rules, everything, 0, table.size, compiled.workspace(rules)))


def _without_outliers(table: Table, promises: Sequence[Promise], labels: Labels, limit: int) -> NDArray[np.bool_]:
    """Which rows stay when broken groups are suppressed within the limit."""
    from shoal.kernels.tables.repair import broken_groups

    kept = labels >= 0
    count = int(labels.max(initial=-1)) + 1
    room = limit - int((~kept).sum())
    while kept.any():
        rules = compile_rules(taken(table, kept), promises)
        broken = np.flatnonzero(broken_groups(rules, labels[kept], count))
        sizes = np.bincount(labels[kept], minlength=count)
        order = broken[np.argsort(sizes[broken], kind="stable")]
        fits = order[np.cumsum(sizes[order]) <= room]
        if not len(fits):
            return kept
        kept &= ~np.isin(labels, fits)
        room -= int(sizes[fits].sum())
    return kept


def _merge(table: Table, promises: Sequence[Promise], labels: Labels) -> Labels:
    from shoal.kernels.tables.repair import merge_broken

    if not len(labels):
        return labels
    rules = compile_rules(table, promises)
    shape = table.shape()
    while True:
        count = int(labels.max(initial=-1)) + 1
        merged = dense(merge_broken(table.matrix, shape, rules, labels, count))
        alike = read_alike(table, merged)[0] if table.people is not None else merged
        if int(alike.max()) == int(merged.max()):
            return merged
        labels = alike  # groups that read alike are one group to whoever reads them

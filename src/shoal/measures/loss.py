"""How much a release loses: per cell, per column and as a whole. 0 is nothing lost, 1 everything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec
import numpy as np
from numpy.typing import NDArray

from shoal.core.levels import Levels
from shoal.core.release import Boxes
from shoal.core.scale import SCALES, scale_for
from shoal.core.table import Table


class Scaled(msgspec.Struct, frozen=True):
    """What a column of numbers loses on every scale, and which of them counts (``by``); see :mod:`shoal.core.scale`.

    >>> Scaled("rank", "98 % of its rows lie in 0.1 % of its width", 0.001, 0.43, 0.2).linear
    0.001
    """

    by: str
    why: str
    linear: float
    rank: float
    log: float


class Loss(msgspec.Struct, frozen=True):
    """What a release loses.

    ``gcp`` is the mean normalized certainty penalty of all quasi cells (a suppressed row counts 1 in each),
    ``columns`` the same per column. ``discernibility`` sums the squares of the group sizes and charges a suppressed
    row with the whole table; ``average_group`` is relative to k. ``generalization_cost`` sums level / highest level
    over all cells (Garai 2019, section 1.4.3; a set counts as the root, whose place it takes). ``entropy`` is the
    non-uniform entropy as a share of losing everything.
    ``scales`` has the loss on other scales, too, for columns whose numbers are published as intervals.

    >>> import polars as pl
    >>> import shoal
    >>> ages = pl.DataFrame({"age": [20, 22, 50, 52]})
    >>> made = shoal.anonymize(ages, quasi={"age": {"use": "range", "min": 0, "max": 100}}, k=2, method="mondrian")
    >>> made.report.loss.gcp, made.report.loss.discernibility
    (0.02, 8)
    """

    gcp: float
    columns: dict[str, float]
    discernibility: int
    average_group: float
    generalization_cost: float
    entropy: float
    rows: int
    suppressed: int
    scales: dict[str, Scaled] = {}


def loss(
    table: Table,
    labels: NDArray[np.int32],
    boxes: Boxes,
    *,
    k: int = 1,
    rows: int | None = None,
    frequency: Mapping[str, NDArray[np.float64]] | None = None,
) -> Loss:
    """The loss of publishing ``boxes``; ``rows`` counts the input, those withheld before the method included.

    Of a part of a table ``frequency`` says, per column, how often each code stands in the whole.

    >>> import polars as pl
    >>> from shoal.core.release import boxes_of
    >>> from shoal.core.schema import Column, Schema
    >>> from shoal.core.table import code
    >>> table = code(pl.DataFrame({"age": [20, 30, 60]}), Schema({"age": Column("quasi")}))
    >>> labels = np.array([0, 0, -1], np.int32)
    >>> loss(table, labels, boxes_of(table, labels)).columns
    {'age': 0.5}
    """
    total = table.size if rows is None else rows
    kept = labels >= 0
    sizes = np.bincount(labels[kept], minlength=len(boxes.low))
    suppressed = total - int(kept.sum())
    columns: dict[str, float] = {}
    # a suppressed cell is at the highest level
    cost = float(suppressed * len(table.names))
    for j, name in enumerate(table.names):
        ncp = table.levels[j].ncp(*boxes.column(j))
        columns[name] = float((ncp @ sizes + suppressed) / max(1, total))
        cost += float(level_cost(table.levels[j], boxes, j) @ sizes)
    lost, most = lost_bits(table, labels, boxes)
    scales = {
        name: _on_scales(levels, boxes, j, often_of(table, j) if frequency is None else frequency[name])
        for j, (name, levels) in enumerate(zip(table.names, table.levels, strict=True))
        if levels.numbers is not None
    }
    return Loss(
        gcp=float(np.mean(list(columns.values()))) if columns else 0.0,
        columns=columns,
        discernibility=int((sizes.astype(np.float64) ** 2).sum()) + suppressed * total,
        average_group=float(kept.sum() / max(1, len(sizes)) / max(1, k)),
        generalization_cost=cost,
        entropy=lost / most if most else 0.0,
        rows=total,
        suppressed=suppressed,
        scales={name: _mean_loss(by, sizes, suppressed, total) for name, by in scales.items()},
    )


def often_of(table: Table, j: int) -> NDArray[np.float64]:
    """How often each code of a column stands in a table.

    >>> import polars as pl
    >>> from shoal.core.schema import Column, Schema
    >>> from shoal.core.table import code
    >>> often_of(code(pl.DataFrame({"age": [20, 30, 30]}), Schema({"age": Column("quasi")})), 0).tolist()
    [1.0, 2.0]
    """
    return np.bincount(table.matrix[:, j], minlength=table.levels[j].size).astype(np.float64)


def _on_scales(
    levels: Levels, boxes: Boxes, j: int, often: NDArray[np.float64]
) -> tuple[Levels, dict[str, NDArray[np.float64]]]:
    """The loss of each group's cell on every scale."""
    assert levels.numbers is not None
    out = {}
    for name in SCALES:
        # the scale that was asked for may have ends of its own: it is not made anew
        own = levels.scale is not None and levels.scale.name == name
        scale = levels.scale if own else scale_for(levels.numbers, often, name)
        out[name] = replace(levels, scale=scale, _cache={}).ncp(*boxes.column(j))
    return levels, out


def _mean_loss(
    by: tuple[Levels, dict[str, NDArray[np.float64]]], sizes: NDArray[np.int64], suppressed: int, total: int
) -> Scaled:
    scale = by[0].scale
    means = {name: float((ncp @ sizes + suppressed) / max(1, total)) for name, ncp in by[1].items()}
    return Scaled("linear" if scale is None else scale.name, "" if scale is None else scale.why, **means)


def level_cost(levels: Levels, boxes: Boxes, j: int) -> NDArray[np.float64]:
    """Level over highest level, per group (0 for a hierarchy of one level)."""
    return np.asarray(published_level(levels, boxes, j) / max(1, levels.depth - 1))


def published_level(levels: Levels, boxes: Boxes, j: int) -> NDArray[np.int8]:
    """The level each group's cell is published at.

    >>> import polars as pl
    >>> from shoal.core.hierarchy.prefix import Prefix
    >>> levels, codes = Prefix(length=2).compile(pl.Series(["ab", "ac"]))
    >>> published_level(levels, Boxes(codes[None, :1], codes[None, 1:]), 0).tolist()
    [1]
    """
    low, high, floor, _ = boxes.column(j)
    return np.asarray(np.maximum(levels.meet(low, high), floor), np.int8)


def lost_bits(
    table: Table, labels: NDArray[np.int32], boxes: Boxes, frequency: Mapping[str, NDArray[np.float64]] | None = None
) -> tuple[float, float]:
    """Bits lost when a value is known only to be in its node, values as frequent as they are; and the most there are.

    Of a part of a table ``frequency`` says, per column, how often each code stands in the whole; the sums over all
    parts are then those of the whole.

    >>> import polars as pl
    >>> from shoal.core.release import boxes_of
    >>> from shoal.core.schema import Column, Schema
    >>> from shoal.core.table import code
    >>> table = code(pl.DataFrame({"age": [20, 30, 40, 50]}), Schema({"age": Column("quasi")}))
    >>> labels = np.array([0, 0, 1, 1], np.int32)
    >>> lost_bits(table, labels, boxes_of(table, labels))
    (4.0, 8.0)
    """
    lost = most = 0.0
    kept = labels >= 0
    sizes = np.bincount(labels[kept], minlength=len(boxes.low))
    for j, levels in enumerate(table.levels):
        codes = table.matrix[:, j]
        own = often_of(table, j)
        often = own if frequency is None else frequency[table.names[j]]
        # the bits of a value that could be any row's
        highest = np.log2(max(1.0, float(often.sum())))
        inside = runs_of(levels, boxes, j).sums(often)
        # summed by value and by group: as many logarithms as there are of these, not as there are rows
        bits = np.log2(np.maximum(often, 1.0))
        # rows withheld by the method lose all their bits, not those of a box
        gone = own - np.bincount(codes if kept.all() else codes[kept], minlength=levels.size)
        lost += float(sizes @ np.log2(np.maximum(inside, 1.0)) - (own - gone) @ bits)
        lost += float(gone.sum() * highest - gone @ bits)
        most += float(own.sum() * highest - own @ bits)
    return lost, most


def united(parts: Sequence[tuple[Loss, tuple[float, float]]], sizes: Mapping[int, int], k: int, withheld: int) -> Loss:
    """The loss of a table from those of its parts, each with its bits lost; ``sizes`` counts the groups of the whole.

    ``withheld`` rows are in no part.

    >>> half = Loss(0.25, {"age": 0.25}, 8, 1.0, 1.0, 0.5, 4, 0)
    >>> united([(half, (4.0, 8.0)), (half, (2.0, 8.0))], {4: 2}, 2, 0).discernibility
    32
    """
    rows = sum(part.rows for part, _ in parts) + withheld
    suppressed = sum(part.suppressed for part, _ in parts) + withheld
    names = list(parts[0][0].columns) if parts else []
    # a withheld row counts 1 in each column, as in a table that is in memory
    columns = {n: (sum(p.columns[n] * p.rows for p, _ in parts) + withheld) / max(1, rows) for n in names}
    groups = sum(sizes.values())
    lost, most = (sum(bits[at] for _, bits in parts) for at in (0, 1))
    return Loss(
        gcp=float(np.mean(list(columns.values()))) if columns else 0.0,
        columns=columns,
        discernibility=sum(size * size * count for size, count in sizes.items()) + suppressed * rows,
        average_group=(rows - suppressed) / max(1, groups) / max(1, k),
        generalization_cost=sum(p.generalization_cost for p, _ in parts) + withheld * len(names),
        entropy=lost / most if most else 0.0,
        rows=rows,
        suppressed=suppressed,
        scales=_united_scales([part for part, _ in parts], withheld, rows),
    )


def _united_scales(parts: Sequence[Loss], withheld: int, rows: int) -> dict[str, Scaled]:
    def mean(name: str, scale: str) -> float:
        total: float = sum(getattr(part.scales[name], scale) * part.rows for part in parts) + withheld
        return total / max(1, rows)

    first = parts[0].scales if parts else {}
    return {n: Scaled(s.by, s.why, *(mean(n, scale) for scale in SCALES)) for n, s in first.items()}


@dataclass(frozen=True)
class Runs:
    """The codes that published cells may stand for: run i, ``first[i]`` to ``last[i]``, belongs to ``group[i]``.

    A node or an interval is one run, a set has one per value; groups stand in their order.
    """

    group: NDArray[np.int64]
    first: NDArray[np.int64]
    last: NDArray[np.int64]

    @property
    def start(self) -> NDArray[np.int64]:
        """Where the runs of each group begin."""
        return np.flatnonzero(np.diff(self.group, prepend=-1))

    def sums(self, often: NDArray[np.float64]) -> NDArray[np.float64]:
        """Per group, the sum of a figure over the codes that its cell may stand for."""
        if not len(self.group):
            return np.zeros(0)
        # sums of runs are differences of one running sum, however long they are
        running = np.concatenate([np.zeros(1), np.cumsum(often)])
        return np.add.reduceat(running[self.last + 1] - running[self.first], self.start)


def runs_of(levels: Levels, boxes: Boxes, j: int) -> Runs:
    """What the published cells of a column may stand for.

    >>> import polars as pl
    >>> from shoal.core.hierarchy.prefix import Prefix
    >>> levels, codes = Prefix(length=2).compile(pl.Series(["ab", "ac"]))
    >>> runs_of(levels, Boxes(codes[None, :1], codes[None, 1:]), 0)
    Runs(group=array([0]), first=array([0]), last=array([1]))
    """
    first, last = _nodes(levels, boxes, j)
    group = np.arange(len(first))
    _, _, floor, members = boxes.column(j)
    if members is None:
        return Runs(group, first, last)
    sets = levels.sets(members, floor)
    times = np.where(sets, members.counts, 1)
    group, first, last = (np.repeat(x, times) for x in (group, first, last))
    inside = sets[group]
    first[inside] = last[inside] = members.codes[np.repeat(sets, members.counts)]
    return Runs(group, first, last)


def _nodes(levels: Levels, boxes: Boxes, j: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The first and last code of the node or interval that each group lies in."""
    low, high, floor, _ = boxes.column(j)
    level = np.maximum(levels.meet(low, high), floor)
    first = np.empty(len(low), np.int64)
    last = np.empty(len(low), np.int64)
    for at in np.unique(level):
        here = level == at
        column = levels.codes[:, at]
        first[here] = np.searchsorted(column, column[low[here]], side="left")
        last[here] = np.searchsorted(column, column[low[here]], side="right") - 1
    if levels.numbers is not None:
        # numbers are published as they lie, unless a level is asked for or a missing value is among them
        hull = (np.asarray(floor) == 0) & ((high != levels.missing) | (low == high))
        first[hull], last[hull] = low[hull], high[hull]
    return first, last

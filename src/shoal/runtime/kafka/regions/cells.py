"""Cells of quasi space: cuts by a sample of what came lately, each cell with enough people to hide among."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.core.schema import Schema
from shoal.core.time import Micros
from shoal.kernels.shared.boxes import Shape
from shoal.streams.path_columns import Paths
from shoal.streams.quasi_columns import Numbers, column_of
from shoal.streams.texts import Printer
from shoal.tables.regions import Regions, cut

RegionNumbers = NDArray[np.int64]
STEPS, BITS = 3, 16  # of a path: its most general steps, and the bits of each, so that a key is exact as a float
LEAST, SAMPLE = 4_000, 20_000  # records to cut by, at least and at most
LOOK, SELDOM = 20_000, 1_000_000  # records between two looks at the load: at first, and where nothing is to be gained
UNEVEN = 2.0  # times its share that a region may have before cuts are drawn anew
ENOUGH = 0.5  # of the people among whom a record would hide without cuts
CROWDS = 4  # times the people of a group that must meet while records are held


class Hold(NamedTuple):
    """How long records are held: so many events, so many microseconds (0: as long as it takes); and a group's people.

    >>> Hold(200, 0, 5).crowd
    5
    """

    events: int
    time: int
    crowd: int


class Cuts(msgspec.Struct, frozen=True, array_like=True):
    """Cuts of quasi space as they are kept: a tree over keys, and the partition of each cell."""

    column: list[int]
    last: list[float]
    left: list[int]
    right: list[int]
    partition: list[int]


class Seen(NamedTuple):
    """Records of a sample, in the order in which they came."""

    keys: NDArray[np.float64]
    people: NDArray[np.int64]
    times: Micros

    def take(self, rows: NDArray[np.bool_] | slice) -> Seen:
        """Some of them."""
        return Seen(self.keys[rows], self.people[rows], self.times[rows])


class ByCell:
    """Cells of quasi space, cut so that each has about as many records; one for everything until there are enough.

    A value is a number whose order follows its hierarchy: itself, or the most general steps of its path. So a cut
    is a number, and whoever has the cuts can sort in values that nobody had seen when they were drawn. Cells in which
    too few people meet while their records are held are joined again: one region may get most of the records.
    """

    def __init__(self, schema: Schema, key: bytes, count: int, hold: Hold) -> None:
        self._names, self._who = schema.quasi, schema.subject
        self.columns = (*self._names, *([self._who] if self._who is not None else []))
        self._made = [column_of(name, schema[name], key, leafless=False) for name in self._names]
        self._weight = np.array([schema[name].weight for name in self._names], np.float64)
        self._people = Printer(key, "subject")
        self._count, self._hold = count, hold
        self._cuts: Cuts | None = None
        self._sample: deque[Seen] = deque()
        self._sampled = self._since = 0
        self._look = LOOK
        self._load = np.zeros(count, np.int64)

    def of(self, frame: pl.DataFrame, times: Micros) -> RegionNumbers:
        """See :class:`~shoal.runtime.kafka.regions.partitioner.Partitioner`."""
        keys = self._keys(frame)
        regions = np.zeros(frame.height, np.int64) if self._cuts is None else regions_by(keys, self._cuts)
        people = np.arange(frame.height)
        if self._who is not None:
            people = self._people.column(frame[self._who].cast(pl.String))
        self._remember(Seen(keys, people, times), regions)
        return regions

    def take(self, cuts: Cuts) -> None:
        """See :class:`Partitioner`; cuts of a number of regions that is no more are left."""
        if max(cuts.partition, default=0) < self._count:
            self._cuts = cuts
        self._load[:] = 0
        self._since = 0

    def wish(self) -> Cuts | None:
        """See :class:`Partitioner`."""
        if self._sampled < LEAST or (self._cuts is not None and self._since < self._look):
            return None
        uneven = self._cuts is None or self._load.max() * self._count > UNEVEN * self._load.sum()
        self._load[:] = 0
        self._since = 0
        if not uneven:
            return None
        sample = Seen(*(np.concatenate(part) for part in zip(*self._sample, strict=True)))
        made = self._drawn(sample)
        if self._cuts is None or _most(sample.keys, made, self._count) < 0.8 * _most(
            sample.keys, self._cuts, self._count
        ):
            self._look = LOOK
            return made
        self._look = min(2 * self._look, SELDOM)  # it is as even as people allow
        return None

    def _remember(self, seen: Seen, regions: RegionNumbers) -> None:
        self._load += np.bincount(regions, minlength=self._count)
        self._since += len(regions)
        self._sample.append(seen.take(slice(-SAMPLE, None)))
        self._sampled += len(self._sample[-1].keys)
        while self._sampled - len(self._sample[0].keys) >= SAMPLE:
            self._sampled -= len(self._sample.popleft().keys)

    def _keys(self, frame: pl.DataFrame) -> NDArray[np.float64]:
        out = np.zeros((frame.height, len(self._names)))
        for at, (name, column) in enumerate(zip(self._names, self._made, strict=True)):
            if not isinstance(column, Paths):
                out[:, at] = np.nan_to_num(column.code(frame[name])[0], nan=column.least)
                continue
            if not column.depth:
                if frame[name].null_count() == frame.height:
                    continue
                column.learn(frame[name])
            rows, _ = column.code(frame[name])
            out[:, at] = _path_keys(column.nodes[rows])
        return out

    def _drawn(self, seen: Seen) -> Cuts:
        """The cuts of a sample, by the tables' own; cells go to partitions largest first, to the emptiest."""
        keys = seen.keys
        known = [np.unique(keys[:, at]) for at in range(keys.shape[1])]
        codes = np.stack([np.searchsorted(values, keys[:, at]) for at, values in enumerate(known)], 1)
        matrix = codes.astype(np.int32)
        tree = cut(matrix, self._shape(known), max(1, len(keys) // self._count))
        cells, whole = tree.of(matrix), self._meeting(seen)

        def alone(chosen: NDArray[np.bool_]) -> bool:
            """Whether enough people meet in these cells for each to hide among as many as without cuts, nearly."""
            events, time = self._meeting(seen.take(chosen[cells]))
            return events >= ENOUGH * whole[0] and time >= min(ENOUGH * whole[1], CROWDS * self._hold.crowd)

        tree = tree.joined(alone)
        sizes = np.bincount(tree.of(matrix), minlength=tree.count)
        load, partition = np.zeros(self._count, np.int64), np.zeros(tree.count, np.int64)
        for cell in np.argsort(-sizes, kind="stable").tolist():
            partition[cell] = int(load.argmin())
            load[partition[cell]] += sizes[cell]
        last = [float(known[c][v]) for c, v in zip(tree.column.tolist(), tree.last.tolist(), strict=True)]
        return Cuts(tree.column.tolist(), last, tree.left.tolist(), tree.right.tolist(), partition.tolist())

    def _meeting(self, seen: Seen) -> tuple[float, float]:
        """How many people meet among the records of one hold, by events and by time, on average."""
        events = _people_per(np.arange(len(seen.people)) // self._hold.events, seen.people, self._hold.events)
        if not self._hold.time:
            return events, np.inf
        return events, _people_per(seen.times // self._hold.time, seen.people)

    def _shape(self, known: list[NDArray[np.float64]]) -> Shape:
        """The sample's keys for the tables' cuts: numbers as hulls, paths as levels of their steps."""
        hull = np.array([not isinstance(c, Paths) for c in self._made], np.bool_)
        levels = [_number_levels(v) if h else _path_levels(v) for v, h in zip(known, hull, strict=True)]
        depth = np.array([part.shape[1] for part in levels], np.int64)
        size = np.array([len(part) for part in levels], np.int64)
        costs, offset, filled = [], np.zeros((len(levels), int(depth.max())), np.int64), 0
        for at, part in enumerate(levels):
            for level in range(part.shape[1]):
                offset[at, level] = filled
                costs.append(np.full(int(part[:, level].max()) + 1, level / (part.shape[1] - 1)))
                filled += len(costs[-1])
        numbers = [v if h else np.zeros(0) for v, h in zip(known, hull, strict=True)]
        width = np.array([c.width if isinstance(c, Numbers) else 1.0 for c in self._made])
        starts = _starts(np.array([len(v) for v in numbers], np.int64))
        flat = np.concatenate([part.ravel() for part in levels]).astype(np.int32)
        absent = np.full(len(levels), -1, np.int64)
        return Shape(
            _starts(size * depth), depth, size, flat, offset, np.concatenate(costs), hull, starts,
            np.concatenate(numbers), width, absent, self._weight,
        )  # fmt: skip


def regions_by(keys: NDArray[np.float64], cuts: Cuts) -> RegionNumbers:
    """The partition of each row of keys.

    >>> regions_by(np.array([[3.0], [9.0]]), Cuts([0], [5.0], [-1], [-2], [4, 7])).tolist()
    [4, 7]
    """
    codes = np.zeros(keys.shape, np.int32)
    ends = np.array(cuts.last)
    column = np.array(cuts.column, np.int64)
    last = np.zeros(len(column), np.int64)
    for at in range(keys.shape[1]):
        mine = np.unique(ends[column == at])
        codes[:, at] = np.searchsorted(mine, keys[:, at])
        last[column == at] = np.searchsorted(mine, ends[column == at])
    tree = Regions(column, last, np.array(cuts.left, np.int64), np.array(cuts.right, np.int64))
    return np.array(cuts.partition, np.int64)[tree.of(codes)]


def _people_per(window: NDArray[np.int64], people: NDArray[np.int64], whole: int = 0) -> float:
    """Distinct people per window, on average; windows of ``whole`` records that are not full count for their share."""
    if not len(window):
        return 0.0
    pairs = np.unique(np.stack([window, people]), axis=1)
    windows = max(1.0, len(window) / whole) if whole else len(np.unique(window))
    return float(pairs.shape[1] / windows)


def _most(keys: NDArray[np.float64], cuts: Cuts, count: int) -> int:
    return int(np.bincount(regions_by(keys, cuts), minlength=count).max())


def _path_keys(nodes: NDArray[np.int64]) -> NDArray[np.float64]:
    """One number per path: a few bits of each of its most general steps below the root, the most general first."""
    out = np.zeros(len(nodes), np.int64)
    for step in range(STEPS):
        level = nodes.shape[1] - 2 - step
        bits = nodes[:, level] & ((1 << BITS) - 1) if level >= 0 else np.zeros(len(nodes), np.int64)
        out = (out << BITS) | bits
    return out.astype(np.float64)


def _path_levels(known: NDArray[np.float64]) -> NDArray[np.int64]:
    whole = known.astype(np.int64)
    steps = [np.unique(whole >> (BITS * step), return_inverse=True)[1] for step in range(STEPS)]
    return np.stack([*steps, np.zeros(len(whole), np.int64)], 1)


def _number_levels(known: NDArray[np.float64]) -> NDArray[np.int64]:
    return np.stack([np.arange(len(known)), np.zeros(len(known), np.int64)], 1)


def _starts(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.cumsum(lengths) - lengths

"""A large window decided piece by piece: no pause grows with the delay.

A window of more than :data:`PIECE` tuples is closed before its oldest tuple is due; blocks of tuples that are near
each other are cut from it, and one after the other is planned while further events come. What a block cannot release
goes on to the next; the last one is planned when the oldest tuple is due. All this is counted in events and in the
stream's time, never in seconds of this machine: the same events give the same release in whatever batches they come.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.kernels.delay.stream_boxes import Tuples
from shoal.streams.bounds import Bounds

Ints = NDArray[np.int64]
PIECE = 2048  # tuples that are planned at once
PEOPLE = 4  # times k: a block has room for some groups
LEAD = 4  # the last quarter of the delay is for planning
LOOKED = 4096  # tuples of many by which it is told where to cut them
BLOCKS, NEXT, EVENT, ARRIVED = 0, 1, 2, 3  # of the closed window: blocks, the next one, its oldest tuple
DECIDED, COUNTED = 4, 5  # tuples that have left; the last event whose sensitive values were counted


class Held(NamedTuple):
    """The tuples held, in the order of arrival."""

    event: Ints
    arrived: Ints
    mark: Ints  # the place of its block in a closed window, -1 for what came later
    prints: Ints
    row: Ints  # where it stands among the tuples


class Spread:
    """Which tuples are decided at which event. ``state`` is all it remembers, the marks of the tuples apart."""

    def __init__(self, bounds: Bounds, crowd: int) -> None:
        self._bounds = bounds
        self.piece = max(PIECE, PEOPLE * crowd)
        self.small = bounds.delay < self.piece  # no window is ever too large to be planned at once
        self._crowd = crowd
        self.state = np.array([0, 0, 0, 0, 0, -1], np.int64)

    def due(self, marked: Callable[[], Held], number: Ints, now: Ints, *, finish: bool) -> int | None:
        """The event at which something is to be done next, if anything is; the last one if all must ``finish``."""
        last = len(number) - 1
        state, bounds = self.state, self._bounds
        if state[NEXT] < state[BLOCKS]:
            share = (int(state[NEXT]) + 1, int(state[BLOCKS]))
            at = self._reached(int(state[EVENT]), int(state[ARRIVED]), number, now, *share)
        else:
            held = marked()
            fresh = np.flatnonzero(held.mark < 0)
            if not len(fresh):
                return None
            first, since = int(held.event[fresh[0]]), int(held.arrived[fresh[0]])
            at = self._reached(first, since, number, now, 1, 1)
            if bounds.delay_time:
                at = max(at, int(np.searchsorted(number, first)))
            if len(fresh) > self.piece:
                full = int(np.searchsorted(number, held.event[fresh[self.piece]]))
                at = min(at, max(full, self._reached(first, since, number, now, 0, 1)))
        if at <= last:
            return at
        return last if finish else None

    def _reached(self, first: int, since: int, number: Ints, now: Ints, part: int, parts: int) -> int:
        """The first event at which this part of the time for planning is over, by the count or by the clock."""
        delay, span = self._bounds.delay, self._bounds.delay_time
        lead = delay // LEAD
        at = int(np.searchsorted(number, first + delay - lead + -(-part * lead // parts)))
        if span and since >= 0:
            lead = span // LEAD
            at = min(at, int(np.searchsorted(now, since + span - lead + -(-part * lead // parts))))
        return at

    def portion(self, held: Held, tuples: Callable[[], Tuples], until: int) -> tuple[Ints, int | None]:
        """The tuples to decide at the event numbered ``until``, and the mark for those that wait for another block.

        A window that has grown too large is closed here: it is one block at first, and a block is cut when its turn
        comes, so that no event pays for all of it. The mark of a block is its place among the window's tuples.
        """
        state = self.state
        if state[NEXT] >= state[BLOCKS]:
            rows = np.flatnonzero((held.mark < 0) & (held.event <= until))
            if len(rows) <= self.piece:
                return rows, None
            held.mark[rows] = 0
            state[[BLOCKS, NEXT]] = max(1, 2 * len(rows) // self.piece), 0
            state[[EVENT, ARRIVED]] = held.event[rows[0]], held.arrived[rows[0]]
            return np.zeros(0, np.int64), None
        state[NEXT] += 1
        closed = np.flatnonzero(held.mark >= 0)
        if state[NEXT] == state[BLOCKS] or len(closed) <= self.piece:  # what is left, cut or not: it must end
            state[NEXT] = state[BLOCKS]
            return closed, None
        rows = closed[held.mark[closed] == held.mark[closed].min()]
        if len(rows) > self.piece:
            rows = self._cut(tuples(), held, rows)
        left = held.mark[held.mark > held.mark[rows[0]]]
        if len(left):
            return rows, int(left.min())
        state[NEXT] = state[BLOCKS]
        return rows, None

    def _cut(self, tuples: Tuples, held: Held, rows: Ints) -> Ints:
        """The first block of these tuples: halved at the middle of the column that loses most, while people suffice."""
        while len(rows) > self.piece:
            # evenly from all of them: a cut a little beside the middle is as good, and to look at all would be a pause
            some = held.row[rows[:: -(-len(rows) // LOOKED)]]
            for column in np.argsort(-_losses(tuples, some), kind="stable"):
                side = _side(tuples, some, held.row[rows], int(column))
                parts = (rows[side], rows[~side])
                if min(map(len, parts)) >= self.piece // 8 and all(self._peopled(held.prints[part]) for part in parts):
                    held.mark[parts[1]] = held.mark[rows[0]] + len(parts[0])
                    rows = parts[0]
                    break
            else:
                return rows
        return rows

    def _peopled(self, prints: Ints) -> bool:
        # of very many tuples it is not asked: sorting them all would be the longest pause
        enough = 2 * self._crowd
        return len(prints) > max(4 * self.piece, 8 * enough) or len(np.unique(prints)) >= enough


def _losses(tuples: Tuples, rows: Ints) -> NDArray[np.float64]:
    """Per column, what publishing all these tuples alike would lose."""
    out = np.zeros(len(tuples.tree))
    for j, tree in enumerate(tuples.tree):
        if tree:
            level = _common(tuples, rows, j)
            out[j] = tuples.cost[rows, j, level].max() if level else 0.0
        else:
            shares = tuples.scaled[rows, j]
            out[j] = shares.max() - shares.min()
    return out


def _common(tuples: Tuples, rows: Ints, j: int) -> int:
    """The lowest level at which all these tuples have one node."""
    nodes = tuples.node[:, j]
    for level in range(int(tuples.depth[j])):
        column = nodes[rows, level]
        if (column == column[0]).all():
            return level
    return int(tuples.depth[j]) - 1


def _side(tuples: Tuples, some: Ints, rows: Ints, j: int) -> NDArray[np.bool_]:
    """One of two halves by a column: the lower numbers, or some of the branches. ``some`` tell where the middle is."""
    if not tuples.tree[j]:
        shares = tuples.scaled[some, j]
        middle = np.partition(shares, len(shares) // 2)[len(shares) // 2]
        column = tuples.scaled[rows, j]
        few = np.count_nonzero(shares < middle) * 2 < len(shares) // 2
        below: NDArray[np.bool_] = column <= middle if few else column < middle
        return below
    level = max(_common(tuples, some, j) - 1, 0)
    branches, counts = np.unique(tuples.node[some, j, level], return_counts=True)
    half: list[int] = []
    taken = 0
    for branch in np.argsort(-counts, kind="stable"):
        if taken + counts[branch] <= len(some) // 2 or not taken:
            half.append(int(branches[branch]))
            taken += int(counts[branch])
    side: NDArray[np.bool_] = np.isin(tuples.node[rows, j, level], half)
    return side

"""Larger steps of `local` with high effort: some groups near each other are opened and improved anew, all at once.

Where groups are large, destroying two to four of them and rebuilding them soon finds nothing better. Twenty of them,
opened by a price that rises in another way and then improved by themselves, often do. So does another beginning: how
the price rises moves the first loss by about half a percent of it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shoal.kernels.shared.boxes import group_boxes
from shoal.kernels.tables.local_rest import union_costs
from shoal.tables.base import Progress, silent
from shoal.tables.improve import Improver, dense, draws, loss_of
from shoal.tables.local_prices import Schedule
from shoal.tables.local_start import are_grown, start

OTHERS = (Schedule(1.02, 0.75), Schedule(1.035, 0.7), Schedule(1.06, 0.72), Schedule(1.08, 0.75))  # besides the usual
ROUNDS = 10  # of groups opened anew and all groups improved
ONCE = 80  # steps of phase 2 for which some groups are opened anew, once
FEWEST, MORE = 6, 30  # groups that are opened together: at least, and up to so many more
STEPS = 30  # by which they are improved then, for each group
HOPELESS = 1.08  # times their loss before: so much more is not made up for
SLOWEST, FASTER = 1.02, 0.1  # the price rises by a factor drawn from here, this much wide
EARLIEST, LATER = 0.65, 0.2  # and a level vector is looked at from such a share of its mean cost on
STREAM = 1 << 40  # of the random numbers, apart from those of other steps


def can_reopen(improver: Improver) -> bool:
    """Whether groups may be opened anew: part of the table at a time, which promises about values do not allow."""
    return improver.plain and not are_grown(improver.pairs)


def search(improver: Improver, steps: int, progress: Progress = silent) -> None:
    """Phase 2 in ``steps`` steps between which groups are opened anew, from the best of several beginnings."""
    for schedule in OTHERS:
        improver.take(start(improver.matrix, improver.pairs, improver.rules, improver.seed, schedule=schedule))
    first, each = steps // 5, steps * 4 // 5 // ROUNDS
    improver.run(first, lambda share, word: progress(share / 8, word))
    many = max(1, steps // ONCE // ROUNDS)
    for at in range(ROUNDS):
        reopen(improver, many, at * many)
        improver.run(each, lambda share, word, at=at: progress(1 / 8 + (at + share) / ROUNDS * 7 / 8, word))  # type: ignore[misc]


def reopen(improver: Improver, times: int, begin: int = 0) -> None:
    """So many times, a random row's group and those nearest to it are opened anew; the better version stays.

    ``begin`` counts those before, for the random numbers. O(rows) each time, and what opening and improving some groups
    takes.
    """
    for at in range(begin, begin + times):
        row, many, slope, early, seed = draws(improver.seed, STREAM + at, 5).tolist()
        rows = _around(improver, row % len(improver.labels), FEWEST + many % MORE)
        schedule = Schedule(SLOWEST + FASTER * (slope / 2**64), EARLIEST + LATER * (early / 2**64))
        _open(improver, rows, schedule, seed)


def _around(improver: Improver, row: int, many: int) -> NDArray[np.int64]:
    """The rows of a row's group and of the groups that cost least united with it."""
    labels = improver.labels
    low, high = group_boxes(improver.matrix, labels, int(labels.max()) + 1)
    inside = np.zeros(len(low), np.bool_)
    inside[np.argsort(union_costs(improver.pairs, low, high, int(labels[row])), kind="stable")[:many]] = True
    return np.flatnonzero(inside[labels])


def _open(improver: Improver, rows: NDArray[np.int64], schedule: Schedule, seed: int) -> None:
    labels, pairs, rules = improver.labels, improver.pairs, improver.rules
    codes = np.ascontiguousarray(improver.matrix[rows])
    own = dense(labels[rows])
    before = loss_of(codes, pairs, own)
    within = Improver(codes, pairs, rules, start(codes, pairs, rules, seed, schedule=schedule), seed)
    if within.loss < HOPELESS * before:
        within.run(STEPS * (int(own.max()) + 1))
    if within.loss < before:
        labels = labels.copy()
        labels[rows] = within.labels + int(labels.max()) + 1
        improver.labels, improver.loss = dense(labels), improver.loss + within.loss - before

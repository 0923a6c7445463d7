"""Larger steps of `local` with high effort: some groups near each other are opened and improved anew, all at once.

Where groups are large, destroying two to four of them and rebuilding them soon finds nothing better. Twenty of them,
opened by a price that rises in another way and then improved by themselves, often do.
"""

from __future__ import annotations

import numpy as np

from shoal.kernels.shared.boxes import group_boxes
from shoal.kernels.tables.local_rest import union_costs
from shoal.tables.base import Progress, silent
from shoal.tables.improve import Improver, dense, draws, loss_of
from shoal.tables.local_prices import Schedule
from shoal.tables.local_start import are_grown, start

AROUND = 20  # groups that are opened together
STEPS = 600  # by which they are improved then
SLOWEST, FASTER = 1.02, 0.1  # the price rises by a factor drawn from here, this much wide
EARLIEST, LATER = 0.65, 0.2  # and a level vector is looked at from such a share of its mean cost on
STREAM = 1 << 40  # of the random numbers, apart from those of other steps


def can_reopen(improver: Improver) -> bool:
    """Whether groups may be opened anew: part of the table at a time, which promises about values do not allow."""
    return improver.plain and not are_grown(improver.pairs)


def reopen(improver: Improver, times: int, progress: Progress = silent) -> None:
    """So many times, a random row's group and those nearest to it are opened anew; the better version stays.

    O(rows) each time, and what opening and improving ``AROUND`` groups takes.
    """
    matrix, pairs, rules = improver.matrix, improver.pairs, improver.rules
    for at in range(times):
        row, slope, early, own_seed = draws(improver.seed, STREAM + at, 4).tolist()
        labels = improver.labels
        low, high = group_boxes(matrix, labels, int(labels.max()) + 1)
        first = int(labels[row % len(labels)])
        inside = np.zeros(len(low), np.bool_)
        inside[np.argsort(union_costs(pairs, low, high, first), kind="stable")[:AROUND]] = True
        rows = np.flatnonzero(inside[labels])
        codes = np.ascontiguousarray(matrix[rows])
        before = loss_of(codes, pairs, dense(labels[rows]))
        schedule = Schedule(SLOWEST + FASTER * (slope / 2**64), EARLIEST + LATER * (early / 2**64))
        opened = start(codes, pairs, rules, own_seed, schedule=schedule)
        within = Improver(codes, pairs, rules, opened, own_seed)
        within.run(STEPS)
        if within.loss < before:
            labels = labels.copy()
            labels[rows] = within.labels + len(low)
            improver.labels, improver.loss = dense(labels), improver.loss + within.loss - before
        progress(at / times, f"loss {100 * improver.loss * improver.share:.3f} %")

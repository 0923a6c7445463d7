"""What every method with delay asks of the events: what is due, how old a box may be, what arrived so far."""

from typing import NamedTuple

import numpy as np

from shoal.kernels.compile import kernel
from shoal.kernels.delay.published import ZERO, Horizon
from shoal.kernels.shared.promises import T_EQUAL


class Clock(NamedTuple):
    """What happened, and the bounds."""

    number: np.ndarray  # int64[events]
    now: np.ndarray  # int64[events]
    row: np.ndarray  # int64[events]: its tuple, -1 for none
    event: np.ndarray  # int64[n]: number of each tuple's event
    arrived: np.ndarray  # int64[n]
    delay: int
    delay_time: int
    reuse: int
    by_time: bool


@kernel
def horizon_of(clock, at, seq):
    """How old a published box may be at event ``at``."""
    now = max(ZERO, clock.now[at]) if clock.by_time else seq
    return Horizon(clock.reuse > 0, now, now - clock.reuse)


@kernel
def is_due(clock, row, at):
    """Whether a tuple must leave at event ``at``."""
    if clock.event[row] + clock.delay <= clock.number[at]:
        return True
    return clock.delay_time > 0 and clock.arrived[row] >= 0 and clock.arrived[row] + clock.delay_time <= clock.now[at]


@kernel
def when_due(clock, row):
    """The event at which a tuple must leave; beyond the last if it may still wait. O(log events)."""
    first = np.searchsorted(clock.number, clock.event[row] + clock.delay)
    if clock.delay_time > 0:
        if clock.arrived[row] >= 0:
            first = min(first, np.searchsorted(clock.now, clock.arrived[row] + clock.delay_time))
        first = max(first, np.searchsorted(clock.number, clock.event[row]))  # never before it arrived
    return first


@kernel
def count_arrival(rules, counts, row):
    """Let the running distribution know a tuple's sensitive values."""
    for s in range(rules.kind.shape[0]):
        if rules.kind[s] >= T_EQUAL:
            counts[s, rules.value[s, row]] += 1


@kernel
def refresh(rules, counts):
    """The running distribution as shares."""
    for s in range(rules.kind.shape[0]):
        if rules.kind[s] >= T_EQUAL:
            total = 0.0
            for v in range(rules.size[s]):
                total += counts[s, v]
            for v in range(rules.size[s]):
                rules.overall[s, v] = counts[s, v] / max(1.0, total)

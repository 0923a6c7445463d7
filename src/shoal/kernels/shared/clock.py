"""The clock of a stream: which events are on time, late, too late, or from a future nobody else confirms.

``clock`` is one array: the words named below, then the events that wait for confirmation as (time, subject).
The clock is the greatest confirmed event time. An event further ahead of it than ``AHEAD`` does not move it; it
waits until ``WITNESSES`` different people stand within ``AHEAD`` of each other. So a single absurd timestamp evicts
nobody, and after a silent night the second person sets the clock again. The first event ever waits, too.
"""

import numpy as np

from shoal.kernels.compile import bare

NOW, LATE, AHEAD, WITNESSES, WAITING, NEXT, LIMIT = 0, 1, 2, 3, 4, 5, 6  # LIMIT: what was before it is forgotten
HEADER = 8
WAIT = 256  # how many unconfirmed events are remembered; the oldest gives way
UNSET = -1

ON_TIME, BEHIND, TOO_LATE, FUTURE, BAD = 0, 1, 3, 4, 5


def new(late: int, ahead: int, witnesses: int) -> np.ndarray:
    """An unset clock with its bounds, in microseconds."""
    clock = np.zeros(HEADER + 2 * WAIT, np.int64)
    clock[NOW], clock[LATE], clock[AHEAD], clock[WITNESSES] = UNSET, late, ahead, witnesses
    return clock


@bare
def tell(clock, time, subject):
    """The verdict on one event; moves the clock. O(1), O(WAIT) while events wait."""
    if time < 0 or subject == 0:
        return BAD
    now = clock[NOW]
    if now != UNSET and time <= now + clock[AHEAD]:
        if time >= now:
            clock[NOW] = time
            if clock[WAITING] > 0:
                _absorb(clock)
            return ON_TIME
        return BEHIND if time >= now - clock[LATE] else TOO_LATE
    if _confirmed(clock, time, subject):
        clock[NOW] = time
        _absorb(clock)
        return ON_TIME
    at = HEADER + 2 * clock[NEXT]
    if clock[at + 1] == 0:
        clock[WAITING] += 1
    clock[at], clock[at + 1] = time, subject
    clock[NEXT] = (clock[NEXT] + 1) % WAIT
    return FUTURE


@bare
def _confirmed(clock, time, subject):
    """Whether enough people, this one included, stand near this time."""
    people = 1
    for i in range(WAIT):
        at = HEADER + 2 * i
        other = clock[at + 1]
        if other == 0 or other == subject or abs(clock[at] - time) > clock[AHEAD]:
            continue
        known = False
        for j in range(i):
            before = HEADER + 2 * j
            if clock[before + 1] == other and abs(clock[before] - time) <= clock[AHEAD]:
                known = True
        if not known:
            people += 1
    return people >= clock[WITNESSES]


@bare
def _absorb(clock):
    """Forget what waited and is no longer ahead."""
    for i in range(WAIT):
        at = HEADER + 2 * i
        if clock[at + 1] != 0 and clock[at] <= clock[NOW]:
            clock[at + 1] = 0
            clock[WAITING] -= 1


@bare
def tell_all(clock, times, subjects, verdicts, nows):
    """Verdict and clock after each event of a batch."""
    for i in range(times.size):
        verdicts[i] = tell(clock, times[i], subjects[i])
        nows[i] = clock[NOW]

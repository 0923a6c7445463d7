"""The clock of a stream: which events are on time, late, too late, or from a future nobody else confirms.

``clock`` is one array: the words named below, then the witnesses of a future as (time, subject, clock when it came).
The clock is the greatest confirmed event time. An event further ahead of it than ``AHEAD`` does not move it, until

* ``WITNESSES`` different people stand within ``AHEAD`` of each other: after a silent night the second person sets the
  clock again; or
* ``STEPS`` events of at least two people came one after the other, each ahead and none earlier than the one before:
  a stream whose events are further apart than ``AHEAD`` goes on, always one event behind.

So a single absurd time evicts nobody, and two of them that are not of one moment do not agree either: a witness is
forgotten when the clock has gone on by ``AHEAD`` without it. The first event ever waits, too.

``ELAPSED`` is how long the stream has lasted, for those who wait for a time and not for a moment. It needs no second
witness: it grows while one person alone sends, and an absurd time can make it grow once, but never stop.
"""

import numpy as np

from shoal.kernels.compile import bare

NOW, LATE, AHEAD, WITNESSES, WAITING, NEXT, LIMIT = 0, 1, 2, 3, 4, 5, 6  # LIMIT: what was before it is forgotten
SOONEST, OLDEST = 7, 8  # of the witnesses: the earliest time, and the clock when the first of them came
RUN, RUN_TIME, RUN_WHO, RUN_MANY = 9, 10, 11, 12  # events ahead in a row: how many, the last, its person; several
ELAPSED, READING, BEFORE, MOST = 13, 14, 15, 16  # READING: the time it stands for; MOST: the longest single step
HEADER = 20
SLOT = 3
WAIT = 256  # witnesses remembered, one per person and moment; the oldest gives way
STEPS = 4
UNSET = -1
NEVER = np.int64(2**62)

ON_TIME, BEHIND, TOO_LATE, FUTURE, BAD = 0, 1, 3, 4, 5


def new(late: int, ahead: int, witnesses: int, most: int = 2**52) -> np.ndarray:
    """An unset clock with its bounds, in microseconds; ``most``: the longest step one event may add to ``ELAPSED``."""
    clock = np.zeros(HEADER + SLOT * WAIT, np.int64)
    clock[LATE], clock[AHEAD], clock[WITNESSES], clock[MOST] = late, ahead, witnesses, most
    clock[[NOW, READING, BEFORE]] = UNSET
    clock[[SOONEST, OLDEST]] = NEVER
    return clock


@bare
def tell(clock, time, subject):
    """The verdict on one event; moves the clock. O(1), O(WAIT) while events are ahead."""
    if time < 0 or subject == 0:
        return BAD
    now = clock[NOW]
    if now != UNSET and time <= now + clock[AHEAD]:
        clock[RUN] = 0
        if time >= now:
            if time > now:
                _move(clock, time)
            return ON_TIME
        return BEHIND if time >= now - clock[LATE] else TOO_LATE
    if _confirmed(clock, time, subject):
        clock[RUN] = 0
        _move(clock, time)
        return ON_TIME
    _run_on(clock, time, subject)
    _witness(clock, time, subject)
    return FUTURE


@bare
def _run_on(clock, time, subject):
    """Count events ahead in a row; if they are many and of several people, the one before this is confirmed."""
    before = clock[RUN_TIME]
    if clock[RUN] > 0 and time >= before:
        clock[RUN] += 1
        if clock[RUN_WHO] != subject:
            clock[RUN_MANY] = 1
    else:
        clock[RUN], clock[RUN_MANY] = 1, 0
    clock[RUN_TIME], clock[RUN_WHO] = time, subject
    if clock[RUN] >= STEPS and clock[RUN_MANY] != 0 and clock[WITNESSES] <= 2:
        _move(clock, max(clock[NOW], before))


@bare
def _witness(clock, time, subject):
    """Remember who says that it is so late: one slot per person and moment, so that one person fills no memory."""
    at = HEADER + SLOT * clock[NEXT]
    fresh = True
    for i in range(WAIT):
        slot = HEADER + SLOT * i
        if clock[slot + 1] == subject and abs(clock[slot] - time) <= clock[AHEAD]:
            at, fresh = slot, False
            time = max(time, clock[slot])
            break
    if fresh:
        if clock[at + 1] == 0:
            clock[WAITING] += 1
        clock[NEXT] = (clock[NEXT] + 1) % WAIT
    clock[at], clock[at + 1], clock[at + 2] = time, subject, clock[NOW]
    clock[SOONEST] = min(clock[SOONEST], time)
    clock[OLDEST] = min(clock[OLDEST], clock[NOW])


@bare
def _confirmed(clock, time, subject):
    """Whether enough people, this one included, stand near this time."""
    people = 1
    if clock[WAITING] > 0 and clock[WITNESSES] > 1:
        for i in range(WAIT):
            at = HEADER + SLOT * i
            other = clock[at + 1]
            if other == 0 or other == subject or abs(clock[at] - time) > clock[AHEAD]:
                continue
            known = False
            for j in range(i):
                before = HEADER + SLOT * j
                if clock[before + 1] == other and abs(clock[before] - time) <= clock[AHEAD]:
                    known = True
            if not known:
                people += 1
    return people >= clock[WITNESSES]


@bare
def _move(clock, time):
    """Set the clock; forget witnesses that it has reached, and those it went on without."""
    first = clock[NOW] == UNSET
    clock[NOW] = time
    if clock[WAITING] == 0 or not (first or time >= clock[SOONEST] or time > clock[OLDEST] + clock[AHEAD]):
        return
    clock[SOONEST], clock[OLDEST] = NEVER, NEVER
    for i in range(WAIT):
        at = HEADER + SLOT * i
        if clock[at + 1] == 0:
            continue
        if clock[at + 2] == UNSET:  # nobody knew the time when it came: it is as old as the clock
            clock[at + 2] = time
        if clock[at] <= time or time > clock[at + 2] + clock[AHEAD]:
            clock[at + 1] = 0
            clock[WAITING] -= 1
        else:
            clock[SOONEST] = min(clock[SOONEST], clock[at])
            clock[OLDEST] = min(clock[OLDEST], clock[at + 2])


@bare
def elapse(clock, verdict, time):
    """Let the stream last longer by an event that :func:`tell` has judged."""
    if verdict == BAD:
        return
    reading, before = clock[READING], clock[BEFORE]
    step = np.int64(0)
    if verdict == FUTURE:
        clock[BEFORE] = time
        if before == UNSET or time < before - clock[AHEAD]:
            return  # alone: the next event will tell whether time has really gone on so far
        if reading == UNSET or reading > time + clock[AHEAD]:
            reading = before  # what it stood for was given up
        step = time - reading
        clock[READING] = max(reading, time)
    else:
        clock[BEFORE] = UNSET
        if verdict == ON_TIME:
            if reading == UNSET:
                reading = time if before == UNSET else before
            step = time - reading
            clock[READING] = time
        elif reading > clock[NOW]:
            clock[READING] = clock[NOW]
    clock[ELAPSED] += min(max(step, np.int64(0)), clock[MOST])


def reading(clock: np.ndarray) -> int:
    """The event time that ``ELAPSED`` stands for; negative before the first event."""
    return int(clock[READING] if clock[READING] != UNSET else clock[BEFORE])


def tick(clock: np.ndarray, now: int) -> None:
    """The time is ``now`` though no event came: every clock that runs goes on."""
    passed = now - reading(clock)
    if passed > 0 and reading(clock) >= 0:
        clock[ELAPSED] += min(passed, int(clock[MOST]))
        clock[READING] = now
    if clock[NOW] != UNSET:
        clock[NOW] = max(int(clock[NOW]), now)


@bare
def tell_all(clock, times, subjects, verdicts, nows):
    """Verdict and clock after each event of a batch."""
    for i in range(times.size):
        verdicts[i] = tell(clock, times[i], subjects[i])
        nows[i] = clock[NOW]


@bare
def elapse_all(clock, times, subjects, elapsed):
    """How long the stream had lasted after each event of a batch."""
    for i in range(times.size):
        elapse(clock, tell(clock, times[i], subjects[i]), times[i])
        elapsed[i] = clock[ELAPSED]

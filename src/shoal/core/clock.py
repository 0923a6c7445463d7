"""The clock of a stream for those who take events one by one: the words of ``kernels/shared/clock.py`` in Python."""

from __future__ import annotations

import hashlib

import numpy as np

from shoal.core.errors import InputError
from shoal.core.time import AHEAD, EventTime
from shoal.kernels.shared import clock as kernel

ON_TIME, BEHIND, TOO_LATE, FUTURE, BAD = kernel.ON_TIME, kernel.BEHIND, kernel.TOO_LATE, kernel.FUTURE, kernel.BAD
WITNESSES = 2  # people who must agree before the clock jumps ahead


class EventClock:
    """Judges events by their time and moves on with them; a single absurd time never moves it.

    >>> clock = EventClock(EventTime("at", late=60_000_000))
    >>> verdicts = [clock.tell(t * 1_000_000, who) for t, who in ((100, "ada"), (101, "bob"), (4_000_000_000, "eve"))]
    >>> verdicts == [FUTURE, ON_TIME, FUTURE], clock.now, clock.tell(50_000_000, "ann") == BEHIND
    (True, 101000000, True)
    """

    def __init__(self, time: EventTime) -> None:
        self.ahead = AHEAD if time.ahead is None else time.ahead
        self._clock = kernel.new(time.late, self.ahead, WITNESSES)
        self._times, self._people = np.zeros(1, np.int64), np.zeros(1, np.int64)
        self._verdicts, self._nows = np.zeros(1, np.int8), np.zeros(1, np.int64)

    def tell(self, time: int, person: str) -> int:
        """The verdict on an event of somebody, after which the clock has moved."""
        self._times[0], self._people[0] = time, _print(person)
        kernel.tell_all(self._clock, self._times, self._people, self._verdicts, self._nows)
        return int(self._verdicts[0])

    def tick(self, now: int) -> None:
        """It is ``now`` though no event came; a clock that nobody has set stays so."""
        kernel.tick(self._clock, now)

    @property
    def now(self) -> int | None:
        """The greatest confirmed event time, if there is one."""
        now = int(self._clock[kernel.NOW])
        return None if now == kernel.UNSET else now

    def state(self) -> bytes:
        """All that :meth:`restore` needs."""
        return self._clock.tobytes()

    def restore(self, state: bytes) -> None:
        """Go on from a state, with the bounds of this clock."""
        clock = np.frombuffer(state, np.int64).copy()
        if len(clock) != len(self._clock):
            raise InputError("the clock cannot be read", where="snapshot", hint="start anew from the input log")
        bounds = [kernel.LATE, kernel.AHEAD, kernel.WITNESSES, kernel.MOST]
        clock[bounds] = self._clock[bounds]
        self._clock = clock


def _print(person: str) -> int:
    """A number per person, never 0: who is not named is nobody else than who is not named either."""
    digest = hashlib.blake2b(person.encode(errors="surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True) or 1

"""z-anonymity: what is released about a person was shown by at least z people lately (Jha et al. 2020)."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.core.errors import UsageError
from shoal.core.groups import Finding, Groups
from shoal.core.time import Duration, Hours, duration, minute_of_week, weekly
from shoal.promises.base import About, Promise


class WindowHours(Hours, frozen=True):
    """A part of the week with a window of its own.

    >>> night = WindowHours(start="22:00", end="06:00", window="4h")
    >>> ZAnonymity(z=20, window="1h", windows=(night,)).micros
    3600000000
    """

    window: Duration = "1h"


class ZAnonymity(Promise, frozen=True, tag="z-anonymity"):
    """A value is released at time t only if at least ``z`` people, this one included, showed it in [t - ``window``, t].

    ``windows`` lengthens or shortens the window in parts of the week (``zone``: how far east of UTC they are meant),
    for example longer at night, when few people come by (Bacconi 2021, section 7.1).

    Protects against being found by a rare value. Does not protect against a rare combination of common values (what
    z buys in terms of k is computed by ``shoal plan``), against people who collude or invent others, nor against
    watching the moment a value begins to appear.

    >>> ZAnonymity(z=20, window="1h").micros
    3600000000
    """

    about: ClassVar[About] = "events"

    z: int
    window: Duration
    windows: tuple[WindowHours, ...] = ()
    zone: Duration = 0

    def __post_init__(self) -> None:
        if not isinstance(self.z, int) or isinstance(self.z, bool):
            raise UsageError(
                f"z: expected a whole number, found {type(self.z).__name__}",
                where="z-anonymity",
                hint="for example z=20",
            )
        if self.z < 1:
            raise UsageError(f"z must be at least 1, found {self.z}", where="z-anonymity", hint="for example z=20")
        if self.micros <= 0 or any(duration(w.window) <= 0 for w in self.windows):
            raise UsageError("a window must be longer than nothing", where="z-anonymity")

    def judge_events(self, original: pl.DataFrame, released: pl.DataFrame, **known: Any) -> list[Finding]:
        """See :func:`shoal.promises.rescan.rescan`."""
        from shoal.promises.rescan import rescan

        return rescan(original, released, self, **known)

    @property
    def asked(self) -> float:
        """See :class:`Promise`."""
        return float(self.z)

    @property
    def micros(self) -> int:
        """The window in microseconds."""
        return duration(self.window, where="z-anonymity.window")

    @property
    def longest(self) -> int:
        """The longest window of the week."""
        return max([self.micros, *(duration(w.window) for w in self.windows)])

    def spans(self, times: NDArray[np.int64]) -> NDArray[np.int64]:
        """The window that holds at each of these times."""
        if not self.windows:
            return np.full(len(times), self.micros, np.int64)
        table = weekly(self.micros, [(w, duration(w.window)) for w in self.windows])
        return table[minute_of_week(times, duration(self.zone))]

    def judge(self, groups: Groups) -> Finding:
        """A released table alone cannot show it: the supporters may all have been withheld."""
        raise UsageError(
            "z-anonymity cannot be verified from a release alone",
            where="z-anonymity",
            hint="give the original events too: shoal verify released --original events",
        )

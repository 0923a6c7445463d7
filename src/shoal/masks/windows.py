"""Windows: how a stream becomes finite pieces, by count or by event time (Allgöwer 2023, section 3.2.3).

Events first wait until no earlier one can come any more (the bound on lateness), then pass in the order of time. So
a late event extends a session, joins two or moves their cuts exactly as if all events had been sorted beforehand.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar

from shoal.core.errors import UsageError
from shoal.core.spec import Spec
from shoal.core.time import period

Item = TypeVar("Item")


class Event(NamedTuple):
    """Something with a time (microseconds) and its number of arrival.

    >>> Event(time=1_000_000, number=0, item="a").item
    'a'
    """

    time: int
    number: int
    item: Any


_event = partial(tuple.__new__, Event)  # as Event._make, at half the price: there is one per record


class Window(NamedTuple):
    """A finished window: the ``events`` to publish now, within ``context`` (the same, unless windows slide).

    >>> Window(0, [], []).number
    0
    """

    number: int
    events: list[Event]
    context: list[Event]


class Tumbling(Spec, frozen=True, tag="tumbling"):
    """One window after the other: ``size`` events, or a length of event time such as ``15m``.

    >>> cutter = Tumbling(size=2).cutter()
    >>> [[e.item for e in events] for n in range(4) for events, _ in cutter.push(Event(n, n, "abcd"[n]))]
    [['a', 'b'], ['c', 'd']]
    """

    size: int | str

    def __post_init__(self) -> None:
        _size(self.size, "tumbling")

    def cutter(self) -> Cutter:
        """The state of this window."""
        return Cutter(_size(self.size, "tumbling"), _size(self.size, "tumbling"), isinstance(self.size, str))


class Sliding(Spec, frozen=True, tag="sliding"):
    """Every ``every`` (events, or time), look back over ``size``; each event is published once, at the first chance.

    >>> cutter = Sliding(size=3, every=1).cutter()
    >>> [[e.item for e in context] for n in range(4) for _, context in cutter.push(Event(n, n, "abcd"[n]))]
    [['a'], ['a', 'b'], ['a', 'b', 'c'], ['b', 'c', 'd']]
    """

    size: int | str
    every: int | str

    def __post_init__(self) -> None:
        size, every = _size(self.size, "sliding"), _size(self.every, "sliding")
        if isinstance(self.size, str) != isinstance(self.every, str) or every > size:
            raise UsageError("`every` must be of the kind of `size` and not longer", where="sliding")

    def cutter(self) -> Cutter:
        """The state of this window."""
        return Cutter(_size(self.size, "sliding"), _size(self.every, "sliding"), isinstance(self.size, str))


class Session(Spec, frozen=True, tag="session"):
    """Events with no pause longer than ``gap``; cut after ``most`` events or after ``longest`` time.

    >>> cutter = Session(gap="5s").cutter()
    >>> times = [0, 1_000_000, 9_000_000]
    >>> [len(events) for n, t in enumerate(times) for events, _ in cutter.push(Event(t, n, None))]
    [2]
    """

    gap: str
    most: int | None = None
    longest: str | None = None

    def __post_init__(self) -> None:
        period(self.gap, where="session")
        if self.longest is not None:
            period(self.longest, where="session")
        if self.most is not None and self.most < 1:
            raise UsageError("`most` must be at least 1", where="session")

    def cutter(self) -> SessionCutter:
        """The state of this window."""
        longest = period(self.longest, where="session") if self.longest else None
        return SessionCutter(period(self.gap, where="session"), self.most, longest)


AnyWindow = Tumbling | Sliding | Session


class Cutter:
    """Tumbling and sliding windows over events in order."""

    def __init__(self, size: int, every: int, timed: bool) -> None:
        self._size, self._every, self._timed = size, every, timed
        self.events: list[Event] = []
        self.past: list[Event] = []

    def push(self, event: Event) -> Iterator[tuple[list[Event], list[Event]]]:
        """Take the next event; what it finishes comes first."""
        if self._timed:
            yield from self.advance(event.time)
        self.events.append(event)
        if not self._timed and len(self.events) == self._every:
            yield self._close(-1)

    def push_all(self, events: list[Event]) -> list[tuple[list[Event], list[Event]]]:
        """:meth:`push` of many."""
        if self._timed:
            return [done for event in events for done in self.push(event)]
        out, at = [], 0
        while at < len(events):
            room = self._every - len(self.events)
            self.events += events[at : at + room]
            at += room
            if len(self.events) == self._every:
                out.append(self._close(-1))
        return out

    def advance(self, now: int) -> Iterator[tuple[list[Event], list[Event]]]:
        """No event before ``now`` will come any more."""
        if self._timed and self.events:
            # windows begin at multiples of their length since 1970: when a stream was started must not move them
            end = (self.events[0].time // self._every + 1) * self._every
            if now >= end:
                yield self._close(end)

    def end(self) -> Iterator[tuple[list[Event], list[Event]]]:
        """Close what is open."""
        if self.events:
            yield self._close((self.events[0].time // self._every + 1) * self._every if self._timed else -1)

    def _close(self, end: int) -> tuple[list[Event], list[Event]]:
        events, both = self.events, self.past + self.events
        context = [e for e in both if e.time >= end - self._size] if self._timed else both[-self._size :]
        # only windows that overlap look back
        self.past = context if self._size > self._every else []
        self.events = []
        return events, context


class SessionCutter:
    """Sessions over events in order."""

    def __init__(self, gap: int, most: int | None, longest: int | None) -> None:
        self._gap, self._most, self._longest = gap, most, longest
        self.events: list[Event] = []
        self.past: list[Event] = []

    def push(self, event: Event) -> Iterator[tuple[list[Event], list[Event]]]:
        """Take the next event; what it finishes comes first."""
        yield from self.advance(event.time)
        self.events.append(event)
        if self._most is not None and len(self.events) == self._most:
            yield from self.end()

    def push_all(self, events: list[Event]) -> list[tuple[list[Event], list[Event]]]:
        """:meth:`push` of many."""
        return [done for event in events for done in self.push(event)]

    def advance(self, now: int) -> Iterator[tuple[list[Event], list[Event]]]:
        """No event before ``now`` will come any more."""
        # exactly `gap` later still belongs to the session, exactly `longest` later does not
        if self.events and (
            now > self.events[-1].time + self._gap
            or (self._longest is not None and now >= self.events[0].time + self._longest)
        ):
            yield from self.end()

    def end(self) -> Iterator[tuple[list[Event], list[Event]]]:
        """Close what is open."""
        if self.events:
            events, self.events = self.events, []
            yield events, events


class Assigner(Generic[Item]):
    """Events in any order within ``late`` microseconds; finished windows out.

    >>> assigner = Assigner(Session(gap="10s"), late=5_000_000)
    >>> [assigner.push(t * 1_000_000, t) for t in (0, 12, 9)]  # 9 comes late and joins the two
    [[], [], []]
    >>> [[e.item for e in w.events] for w in assigner.flush()]
    [[0, 9, 12]]
    """

    def __init__(self, window: AnyWindow, late: int = 0) -> None:
        self._cutter = window.cutter()
        self._late = late
        self._waiting: list[Event] = []
        self._now: int | None = None
        self._arrived = 0
        self._closed = 0
        self.too_late: list[Event] = []

    def push(self, time: int, item: Item) -> list[Window]:
        """Take an event. One that is later than the bound goes to ``too_late`` and into no window."""
        # its window may be published: a second version of it would tell what the event added
        if self._now is not None and time < self._now - self._late:
            self.too_late.append(Event(time, self._arrived, item))
            self._arrived += 1
            return []
        self.hold(time, item)
        return self._move(max(time, self._now if self._now is not None else time))

    def push_all(self, first: int, items: Sequence[Item]) -> list[Window]:
        """:meth:`push` of events that come one instant after the other, from ``first`` on, all at once.

        >>> [[e.item for e in w.events] for w in Assigner(Tumbling(size=2)).push_all(0, "abcde")]
        [['a', 'b'], ['c', 'd']]
        """
        # what comes late, or twice at one instant, needs the heap
        if self._late or (self._now is not None and first <= self._now):
            return [window for at, item in enumerate(items) for window in self.push(first + at, item)]
        if not items:
            return []
        made = map(_event, zip(itertools.count(first), itertools.count(self._arrived), items, strict=False))
        events = [*sorted(self._waiting), *made]
        # another event of the last instant may still come
        self._waiting = [events.pop()]
        self._arrived += len(items)
        self._now = first + len(items) - 1
        done = self._cutter.push_all(events)
        done += self._cutter.advance(self._now)
        return self._number(done)

    def hold(self, time: int, item: Item, arrived: int | None = None) -> None:
        """Take an event that does not move the clock, because a clock of its own has judged it: ``tick`` moves on.

        ``arrived`` is its place in the order of arrival, where it waited elsewhere and others were held meanwhile.
        """
        # events of one instant stay in the order they came, so that a replay gives the same windows
        heapq.heappush(self._waiting, Event(time, self._arrived if arrived is None else arrived, item))
        self._arrived += 1

    def tick(self, now: int) -> list[Window]:
        """The clock says ``now`` though no event came."""
        # a clock never goes back: windows that are closed stay closed
        return self._move(max(now, self._now if self._now is not None else now))

    def flush(self) -> list[Window]:
        """The stream has ended: everything held is in a window now."""
        done: list[tuple[list[Event], list[Event]]] = []
        while self._waiting:
            done += self._cutter.push(heapq.heappop(self._waiting))
        done += self._cutter.end()
        return self._number(done)

    @property
    def held(self) -> int:
        """How many events wait."""
        return len(self._waiting) + len(self._cutter.events)

    @property
    def now(self) -> int | None:
        """The latest time seen."""
        return self._now

    def _move(self, now: int) -> list[Window]:
        self._now = now
        certain = now - self._late
        done: list[tuple[list[Event], list[Event]]] = []
        # an event of the same instant may still come, so only what lies before is certain
        while self._waiting and self._waiting[0].time < certain:
            done += self._cutter.push(heapq.heappop(self._waiting))
        done += self._cutter.advance(certain)
        return self._number(done)

    def _number(self, done: list[tuple[list[Event], list[Event]]]) -> list[Window]:
        if not done:  # nearly always
            return []
        windows = [Window(self._closed + at, events, context) for at, (events, context) in enumerate(done)]
        self._closed += len(windows)
        return windows

    def state(self) -> dict[str, Any]:
        """All that a later :meth:`restore` needs to continue as if nothing had happened."""
        return {
            # sorted: equal states are equal bytes, however the heap grew
            "waiting": [tuple(e) for e in sorted(self._waiting)],
            "events": [tuple(e) for e in self._cutter.events],
            "past": [tuple(e) for e in self._cutter.past],
            "now": self._now,
            "arrived": self._arrived,
            "closed": self._closed,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a state."""
        self._waiting = [Event(*e) for e in state["waiting"]]
        self._cutter.events = [Event(*e) for e in state["events"]]
        self._cutter.past = [Event(*e) for e in state["past"]]
        self._now, self._arrived, self._closed = state["now"], state["arrived"], state["closed"]


def _size(size: int | str, where: str) -> int:
    if isinstance(size, str):
        return period(size, where=where)
    if size < 1:
        raise UsageError("`size` and `every` must be at least 1", where=where)
    return size

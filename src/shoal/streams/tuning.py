"""z that tunes itself to a goal: so many people in groups of k by what is released of them (Bacconi 2021, chapter 5).

A closed loop: every ``every``, p_k of what was really released in the last window is measured, and other z are tried
on the window to come, in slices between events: what was released stays, and the last half window comes once more. What
the goal was missed by so far is added to it; where traffic grows, z grows ahead of it. The new z takes effect
``settle`` later in event time, whenever the slices happened to run, so that a replay decides alike. The promised z is
the floor. Why so: docs/decisions/0017-the-tuner-looks-at-the-window-to-come.md.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from shoal.core.errors import UsageError
from shoal.core.time import Duration, Hours, duration, minute_of_week
from shoal.streams.history import History, Shown, content_of, growth, measured, to_come
from shoal.streams.steering import Content, Evaluation, Found, Goal, Steps, by_model, incremental, search

Ints = NDArray[np.int64]
IDLE, NEVER = -1, 2**62
KEPT = 1000  # decisions remembered for figures
ADDED = 0.1  # what the goal is raised or lowered by at most, after what it was missed by
FASTEST = 0.5  # the largest share of a miss that is added at once
NEAR = 0.02  # p_k this near the goal is on it
SETTLED = 2  # windows after the first z that was found: the first still has in it how z was found, step by step
# of a normal law: four marks of five lie within so many swings, and one of twenty lies lower by more than so many. What
# cannot be held within .02 is aimed so much higher that one mark in twenty lies more than .02 below the goal
HELD, SAFE = 1.282, 1.645


class ZHours(Hours, frozen=True):
    """A part of the week with a z of its own.

    >>> ZHours(start="22:00", end="06:00", z=40).z
    40
    """

    z: int = 1


class Decision(msgspec.Struct, frozen=True):
    """What the tuner decided at ``time``: from event time ``effect`` on, ``z``.

    ``p`` is measured: so many people were hidden in what was really released in the window before; ``reached`` says
    whether that is the goal. ``expected`` is what z should reach in the window to come, ``reachable`` whether any z
    should reach the goal, ``lower`` what z - 1 would (nothing at the floor), ``swing`` how far the measured p_k lay
    from its own mean of late. ``near`` is false where p_k cannot be held within .02 of the goal: no z reaches it, it
    would jump from more than .02 above to more than .02 below, or it swings so that it would lie further off at more
    than one mark in five. With nobody in the window nothing is known, and z stays.

    >>> Decision(time=0, effect=60, z=20, p=0.8, reached=True, people=50, rows=90, evaluations=3).z
    20
    """

    time: int
    effect: int
    z: int
    p: float
    reached: bool
    people: int
    rows: int
    evaluations: int
    expected: float = 0.0
    reachable: bool = True
    lower: float | None = None
    near: bool = True
    swing: float = 0.0


class Tune(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How z follows the data.

    ``by``: ``search`` takes a z that was seen to reach the goal beside one that was not; ``incremental`` moves one
    ``step`` towards it (``proportional``: further, the further away); ``model`` estimates rates from the window and
    asks the exact z-to-k model, for an attacker who watches ``windows`` windows. ``start`` is the first z, ``highest``
    the last. People with nothing released are one group (``empty: count``) or left out (``ignore``). ``profile`` gives
    a z to start from by hours of the week; with ``learn`` the tuner remembers the z each hour needed and is not below
    it when the hour returns, nor just before: a rise of traffic is met in time. With ``correct: false`` neither what
    the goal was missed by nor a rise of traffic changes it: the search as published, on the last window alone.

    >>> Tune(goal=Goal(k=3), every="10m").by
    'search'
    """

    goal: Goal = Goal()
    by: Literal["search", "incremental", "model"] = "search"
    every: Duration = "30m"
    settle: Duration | None = None
    start_z: int | None = msgspec.field(default=None, name="start")
    step: int = 1
    proportional: bool = False
    highest: int = 1_000_000
    empty: Literal["count", "ignore"] = "count"
    windows: float = 1
    profile: tuple[ZHours, ...] = ()
    learn: bool = False
    zone: Duration = 0
    correct: bool = True

    def __post_init__(self) -> None:
        if duration(self.every) <= 0 or self.step < 1 or self.highest < 1 or (self.start_z or 1) < 1:
            raise UsageError("`every`, `step`, `start` and `highest` must be positive", where="tune")
        self._refuse_ignored()

    def _refuse_ignored(self) -> None:
        """An error about what is stated and belongs to another way to find z."""
        needs = {
            "step": (self.step != 1, self.by == "incremental", "by: incremental"),
            "proportional": (self.proportional, self.by == "incremental", "by: incremental"),
            "windows": (self.windows != 1, self.by == "model", "by: model"),
            "zone": (self.zone != 0, self.learn or bool(self.profile), "learn: true"),
        }
        for name, (stated, used, what) in needs.items():
            if stated and not used:
                raise UsageError(
                    f"`{name}` has no effect without `{what}`",
                    where=f"tune.{name}",
                    hint="leave it out, or say that, too",
                )

    def start(self, floor: int, top: int = 64) -> Tuner:
        """A tuner that never goes below ``floor``."""
        return Tuner(self, floor, top)


class Tuner:
    """A tuner at work: ``z`` in force, and ``until`` which event time it is."""

    def __init__(self, spec: Tune, floor: int, top: int) -> None:
        self.spec = spec
        self.floor = floor
        self.top = top
        self.z = self.first_z = max(floor, spec.start_z or floor)
        self.until = 0
        self.decisions: deque[Decision] = deque(maxlen=KEPT)
        self._every = duration(spec.every)
        self._settle = self._every // 10 if spec.settle is None else duration(spec.settle)
        self._zone = duration(spec.zone)
        self._boundary = IDLE
        self._effect = NEVER
        self._steps: Steps | None = None
        self._sizes = (0, 0)  # people and rows of the evaluation
        self._evaluation: Evaluation | None = None
        self._asked = 0  # evaluations before a restart
        self._result: Found | None = None
        self._began = 0
        self._since = IDLE  # since when a z that was found is in force: what came before tells nothing of the tuner
        self._measured = 0.0
        self._more = 0.0  # aimed higher than the goal by so much, because less was reached than expected
        self._aim = spec.goal.probability
        self._mean, self._spread = spec.goal.probability, 0.0  # of the measured p_k, over the last windows
        self._ahead = (0, 1)  # by which share z grows with the traffic
        self.profile = np.zeros(168, np.int64)
        for hours in spec.profile:
            self.profile[np.unique(hours.minutes() // 60)] = hours.z
        self.learned = np.zeros(168, np.int64)

    @property
    def working(self) -> bool:
        """Whether slices are left to do."""
        return self._steps is not None and self._result is None

    @property
    def last(self) -> Decision | None:
        """The last decision."""
        return self.decisions[-1] if self.decisions else None

    @property
    def _swing(self) -> float:
        return float(self._spread**0.5)

    def turn(self, now: int, history: History, span: Callable[[int], int], content: Callable[[int], Content]) -> None:
        """Before the event at clock ``now``: do a slice, begin an evaluation, or put a new z in force.

        ``span`` gives the window at a time, ``content`` who shows what at that moment, for the model.
        """
        if now < 0:
            self.until = 0
            return
        if self._boundary == IDLE:
            self._boundary = now + self._every
            self.z = max(self.z, self._expected(now))
        if now >= self._effect:
            self._apply()
        if self._effect == NEVER and now >= self._boundary:
            self._begin(now, history.window(now, span(now)), span(now), content)
        elif self.working:
            self._slice()
        self.until = min(self._effect, self._boundary) if self._effect == NEVER else self._effect

    def _begin(self, now: int, rows: Shown, span: int, content: Callable[[int], Content]) -> None:
        spec = self.spec
        count_empty = spec.empty == "count"
        self._began, self._effect, self._boundary = now, now + self._settle, now + self._every
        self._result, self._asked, self._ahead = None, 0, (0, 1)
        self._measured = measured(rows, spec.goal, count_empty=count_empty)
        whole = spec.correct and self._since != IDLE and now - self._since >= SETTLED * span
        lead = min(max(span // 2, self._settle + self._every), span)
        safe = max(SAFE * self._swing - NEAR, 0.0)
        if whole and len(rows.times):
            missed, rate = spec.goal.probability + safe - self._measured, min(self._every / span, FASTEST)
            off = self._measured - self._mean
            self._mean, self._spread = self._mean + rate * off, self._spread + rate / 2 * (off * off - self._spread)
            if missed < 0 or self.last is None or self.last.reachable:
                self._more = min(max(self._more + rate * missed, -ADDED), ADDED)
        if spec.by == "model":
            seen = content(now)
        else:
            seen = to_come(rows, now, span, lead) if whole and spec.by == "search" else content_of(rows)
        self._evaluation = Evaluation(seen, spec.goal, count_empty, self.top)
        self._sizes = (self._evaluation.size, len(rows.times))
        self._aim = target = min(spec.goal.probability + safe + self._more, 1.0)
        if not self._evaluation.size:  # nobody is there: nothing speaks for another z
            self._steps, self._result = iter(()), Found(self.z, 1.0, True)  # type: ignore[assignment]
        elif spec.by == "search":
            held = Evaluation(content_of(rows), spec.goal, count_empty, self.top) if whole else None
            self._steps = search(self._evaluation, self.floor, spec.highest, self.z, target, held)
        elif spec.by == "incremental":
            self._steps = incremental(
                self._evaluation, self.floor, spec.highest, self.z, self._measured, spec.step, spec.proportional
            )
        else:
            self._steps = by_model(self._evaluation, self.floor, spec.highest, spec.windows, target)
        if whole and spec.by != "incremental":
            before, later = growth(rows, now, span)
            # what comes again is judged as of its middle, and the new z holds until half of ``every`` after its effect
            ahead = lead // 2 + self._settle + self._every // 2
            self._ahead = (min(max(later - before, 0), before) * ahead, max(1, before * span))

    def _slice(self) -> None:
        assert self._steps is not None
        try:
            next(self._steps)
        except StopIteration as end:
            self._result = end.value

    def _apply(self) -> None:
        while self.working:
            self._slice()
        assert self._result is not None
        found, p, reachable, lower = self._result
        part, whole = self._ahead
        z = min(found + found * part // whole, max(self.spec.highest, self.floor))
        self.z = max(self.floor, z, self._expected(self._effect))
        if self.spec.learn and self._sizes[0]:
            hour = self._hour(self._effect)
            self.learned[hour] = z if reachable else max(z, self.learned[hour])
        reached = self._measured >= self.spec.goal.probability
        asked = self._asked + (self._evaluation.evaluations if self._evaluation is not None else 0)
        over = lower is None or lower < self._aim - NEAR  # the next z below is too low, or there is none
        jumps = self.spec.by == "search" and self._sizes[0] > 0 and p > self._aim + NEAR and over
        near = reachable and not jumps and HELD * self._swing <= NEAR
        made = (self._began, self._effect, self.z, self._measured, reached, *self._sizes)
        self.decisions.append(Decision(*made, asked, p, reachable, lower, near, self._swing))
        if self._since == IDLE:
            self._since = self._effect
        self._steps, self._evaluation, self._effect = None, None, NEVER

    def _expected(self, now: int) -> int:
        """The z this hour is known to need, and the hour before the next decision; never seen: that of other days."""
        most = 0
        for hour in (self._hour(now), self._hour(now + self._every)):
            learned = self.learned[hour] or self.learned[hour % 24 :: 24].max()
            most = max(most, int(self.profile[hour]), int(learned))
        return most

    def _hour(self, now: int) -> int:
        return int(minute_of_week(np.array([now]), self._zone)[0]) // 60

    def state(self) -> dict[str, Any]:
        """Plain data for a snapshot; an evaluation under way is ended, for its result depends on nothing else."""
        while self.working:
            self._slice()
        asked = self._asked + (self._evaluation.evaluations if self._evaluation is not None else 0)
        pending = None if self._steps is None or self._result is None else [*self._result, *self._sizes, asked]
        return {
            "z": self.z,
            "boundary": self._boundary,
            "effect": self._effect,
            "began": self._began,
            "pending": pending,
            "profile": self.learned.tolist(),
            "last": [msgspec.structs.astuple(d) for d in self.decisions],
            "loop": [self._since, self._measured, self._more, *self._ahead, self._aim, self._mean, self._spread],
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from plain data; the floor is this policy's."""
        self.z = max(self.floor, int(state["z"]))
        self._boundary, self._effect, self._began = state["boundary"], state["effect"], state["began"]
        self.learned = np.array(state["profile"], np.int64)
        self.decisions.extend(Decision(*d) for d in state["last"])
        self._since, self._measured, self._more, *ahead = state.get("loop", [self._boundary, 0.0, 0.0, 0, 1])
        self._ahead = (ahead[0], ahead[1])
        self._aim, self._mean, self._spread = ahead[2:] or (self._aim, self._mean, 0.0)
        self.until = 0
        if state["pending"] is not None:
            *found, people, rows, self._asked = state["pending"]
            self._result, self._sizes = Found(*found), (people, rows)
            self._steps = iter(())  # type: ignore[assignment]
        elif self._effect != NEVER:
            self._effect = NEVER

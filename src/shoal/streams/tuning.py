"""z that tunes itself to a goal: so many people in groups of k by what is released of them (seed 000, chapter 5).

The promised z is the floor. Every ``every``, the window is copied and evaluated in slices between events; the new z
takes effect ``settle`` later in event time, whenever the slices happened to run, so that a replay decides alike.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator
from typing import Any, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from shoal.core.errors import UsageError
from shoal.core.time import Duration, Hours, duration, minute_of_week
from shoal.measures.entropy import group_people, k_share, sorted_by_person
from shoal.measures.zk_model import Model
from shoal.streams.texts import number

Ints = NDArray[np.int64]
Content = tuple[Ints, Ints, NDArray[np.int32]]  # person print, chain and counts of every row
IDLE, NEVER = -1, 2**62
KEPT = 1000  # decisions remembered for figures


class Goal(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``probability`` of the people share everything released about them with at least k - 1 others."""

    k: int = 2
    probability: float = 0.8

    def __post_init__(self) -> None:
        if self.k < 2 or not 0 < self.probability <= 1:
            raise UsageError("a goal needs k of at least 2 and a probability above 0, up to 1", where="tune.goal")


class ZHours(Hours, frozen=True):
    """A part of the week with a z of its own."""

    z: int = 1


class Decision(msgspec.Struct, frozen=True):
    """What the tuner decided: from event time ``effect`` on, ``z``; by the window, ``p`` of the people are hidden."""

    time: int
    effect: int
    z: int
    p: float
    reached: bool
    people: int
    rows: int
    evaluations: int


class Tune(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How z follows the data.

    ``by``: ``search`` takes a z that was seen to reach the goal beside one that was not; ``incremental`` moves one
    ``step`` towards it (``proportional``: further, the further away); ``model`` estimates rates from the window and
    asks the exact z-to-k model, for an attacker who watches ``windows`` windows. ``start`` is the first z, ``highest``
    the last. People with nothing released are one group (``empty: count``) or left out (``ignore``). ``profile`` gives
    a z to start from by hours of the week; with ``learn`` the tuner remembers the z each hour needed and is not below
    it when the hour returns, nor just before: a rise of traffic is met in time.
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

    def __post_init__(self) -> None:
        if duration(self.every) <= 0 or self.step < 1 or self.highest < 1 or (self.start_z or 1) < 1:
            raise UsageError("`every`, `step`, `start` and `highest` must be positive", where="tune")

    def start(self, floor: int, top: int = 64) -> Tuner:
        """A tuner that never goes below ``floor``."""
        return Tuner(self, floor, top)


class Evaluation:
    """p_k of one copied window, for any z."""

    def __init__(self, content: Content, goal: Goal, count_empty: bool, top: int) -> None:
        prints, chains, counts = content
        people, first = number(prints)
        self.size = len(first)
        self.people, self.chains, self.counts = sorted_by_person(people, chains, counts, self.size)
        self.goal = goal
        self.top = top
        self.count_empty = count_empty
        self.asked: dict[int, float] = {}
        self.modelled = 0  # evaluations by the model instead

    def p(self, z: int) -> float:
        """The share of people hidden among k if this z had held."""
        if z not in self.asked:
            sizes, empty = group_people(self.people, self.chains, self.counts, z, self.top, self.size)
            self.asked[z] = k_share(sizes, empty, self.goal.k, count_empty=self.count_empty)
        return self.asked[z]

    def most(self) -> int:
        """The least z that releases nothing."""
        return int(self.counts.max()) + 1 if self.counts.size else 1


def joined(parts: list[Content]) -> Content:
    """The content of several columns as one: a person's set is what all of them release."""
    if len(parts) == 1:
        return parts[0]
    width = max(chains.shape[1] for _, chains, _ in parts)
    people = np.concatenate([p for p, _, _ in parts])
    chains = np.concatenate([np.pad(c, ((0, 0), (0, width - c.shape[1]))) for _, c, _ in parts])
    counts = np.concatenate([np.pad(c, ((0, 0), (0, width - c.shape[1]))) for _, _, c in parts])
    return people, chains, counts


Steps = Generator[None, None, tuple[int, float, bool]]


def search(evaluation: Evaluation, low: int, high: int, start: int = 0) -> Steps:
    """A z that was seen to reach the goal next to one that was seen not to (Algorithm 4, made to end).

    It looks around ``start``, the z in force, in growing steps, then halves the gap. p_k(z) is not monotone, so what
    is returned was itself evaluated; if nothing reached the goal, the best seen.
    """
    goal = evaluation.goal.probability
    high = max(low, min(high, evaluation.most()))
    z = min(max(start, low), high)
    step = max(1, z // 16)
    if evaluation.p(z) >= goal:
        below = low - 1
        while z > low:
            yield
            lower = max(low, z - step)
            if evaluation.p(lower) < goal:
                below = lower
                break
            z, step = lower, 2 * step
    else:
        below = z
        while evaluation.p(z) < goal and z < high:
            yield
            below, z, step = z, min(z + step, high), 2 * step
    yield
    if evaluation.p(z) < goal:
        best = max((p, z) for z, p in evaluation.asked.items())
        return best[1], best[0], False
    while z - below > 1:
        middle = (below + z) // 2
        if evaluation.p(middle) >= goal:
            z = middle
        else:
            below = middle
        yield
    return z, evaluation.p(z), True


def incremental(evaluation: Evaluation, low: int, high: int, z: int, step: int, proportional: bool) -> Steps:
    """One step towards the goal (Algorithm 3); proportional steps grow with the distance."""
    goal = evaluation.goal.probability
    p = evaluation.p(z)
    yield
    if proportional:
        step = max(step, round(z * abs(p - goal)))
    new = min(max(z + step if p < goal else z - step if p > goal else z, low), high)
    p = evaluation.p(new)
    return new, p, p >= goal


def by_model(evaluation: Evaluation, low: int, high: int, windows: float) -> Steps:
    """The least z by the exact model, with p_a^X estimated as the share of the window's people (seed 002, VII)."""
    _, first = number(evaluation.chains[:, 0].copy())
    shares = evaluation.counts[first, 0] / max(evaluation.size, 1)
    model = Model(users=max(evaluation.size, 2), exposed=shares, windows=windows)
    goal = evaluation.goal
    high = max(low, min(high, evaluation.most()))
    steps = model.smallest_z_steps(goal.probability, goal.k, low, high, samples=2000)
    while True:
        evaluation.modelled += 1
        try:
            next(steps)
        except StopIteration as end:
            found: tuple[int, float, bool] = end.value
            return found
        yield


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
        self._evaluation: Evaluation | None = None
        self._result: tuple[int, float, bool] | None = None
        self._began = 0
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

    def turn(self, now: int, content: Callable[[int], Content]) -> None:
        """Before the event at clock ``now``: do a slice, begin an evaluation, or put a new z in force."""
        if now < 0:
            self.until = 0
            return
        if self._boundary == IDLE:
            self._boundary = now + self._every
            self.z = max(self.z, self._expected(now))
        if now >= self._effect:
            self._apply()
        if self._effect == NEVER and now >= self._boundary:
            self._begin(now, content(now))
        elif self.working:
            self._slice()
        self.until = min(self._effect, self._boundary) if self._effect == NEVER else self._effect

    def _begin(self, now: int, content: Content) -> None:
        spec = self.spec
        self._evaluation = Evaluation(content, spec.goal, spec.empty == "count", self.top)
        self._began, self._effect, self._boundary = now, now + self._settle, now + self._every
        self._result = None
        if spec.by == "search":
            self._steps = search(self._evaluation, self.floor, spec.highest, self.z)
        elif spec.by == "incremental":
            self._steps = incremental(self._evaluation, self.floor, spec.highest, self.z, spec.step, spec.proportional)
        else:
            self._steps = by_model(self._evaluation, self.floor, spec.highest, spec.windows)

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
        assert self._evaluation is not None
        z, p, reached = self._result
        self.z = max(self.floor, z, self._expected(self._effect))
        if self.spec.learn:
            hour = self._hour(self._effect)
            self.learned[hour] = z if reached else max(z, self.learned[hour])
        rows, people = len(self._evaluation.people), self._evaluation.size
        asked = len(self._evaluation.asked) + self._evaluation.modelled
        self.decisions.append(Decision(self._began, self._effect, self.z, p, reached, people, rows, asked))
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
        asked = self._evaluation
        pending = None if self._result is None or asked is None else [
            *self._result, asked.size, len(asked.people), len(asked.asked) + asked.modelled
        ]  # fmt: skip
        return {
            "z": self.z,
            "boundary": self._boundary,
            "effect": self._effect,
            "began": self._began,
            "pending": pending,
            "profile": self.learned.tolist(),
            "last": [msgspec.structs.astuple(d) for d in self.decisions],
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from plain data; the floor is this policy's."""
        self.z = max(self.floor, int(state["z"]))
        self._boundary, self._effect, self._began = state["boundary"], state["effect"], state["began"]
        self.learned = np.array(state["profile"], np.int64)
        self.decisions.extend(Decision(*d) for d in state["last"])
        self.until = 0
        if state["pending"] is not None:
            z, p, reached, people, rows, evaluations = state["pending"]
            self._result = (z, p, reached)
            self._steps = iter(())  # type: ignore[assignment]
            self._evaluation = _finished(people, rows, evaluations, self.spec.goal)
        elif self._effect != NEVER:
            self._effect = NEVER


def _finished(people: int, rows: int, evaluations: int, goal: Goal) -> Evaluation:
    """What is left of an evaluation after a restart: its sizes."""
    out = Evaluation((np.zeros(0, np.int64), np.zeros((0, 1), np.int64), np.zeros((0, 1), np.int32)), goal, True, 1)
    out.size, out.people = people, np.zeros(rows, np.int32)
    out.asked = dict.fromkeys(range(evaluations), 0.0)
    return out

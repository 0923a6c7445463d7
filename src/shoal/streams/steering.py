"""How the tuner finds the next z: what the window would have shown under another z (Bacconi 2021, chapter 5).

People are counted at the moment of each event, whatever z is in force. So the release under any other z is known
exactly, not guessed from the window's last state.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from shoal.core.errors import UsageError
from shoal.measures.entropy import group_people, k_share, sorted_by_person
from shoal.measures.zk_model import Model
from shoal.streams.texts import number

Ints = NDArray[np.int64]
Content = tuple[Ints, Ints, NDArray[np.int32]]  # person print, chain and counts of every row
ENOUGH = 0.1
ALWAYS = 2**31 - 1  # the count of what is released whatever z is


class Goal(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``probability`` of the people share everything released about them with at least k - 1 others.

    >>> Goal(k=3, probability=0.9).k
    3
    """

    k: int = 2
    probability: float = 0.8

    def __post_init__(self) -> None:
        if self.k < 2 or not 0 < self.probability <= 1:
            raise UsageError("a goal needs k of at least 2 and a probability above 0, up to 1", where="tune.goal")


class Found(NamedTuple):
    """The next z, what it is expected to reach, whether that is the goal, and what z - 1 would reach, if that was seen.

    >>> Found(z=20, p=0.83, reached=True).z
    20
    """

    z: int
    p: float
    reached: bool
    lower: float | None = None


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

    @property
    def evaluations(self) -> int:
        """How much was asked."""
        return len(self.asked) + self.modelled

    def p(self, z: int) -> float:
        """The share of people hidden among k if this z had held."""
        if z not in self.asked:
            sizes, empty = group_people(self.people, self.chains, self.counts, z, self.top, self.size)
            self.asked[z] = k_share(sizes, empty, self.goal.k, count_empty=self.count_empty)
        return self.asked[z]

    def most(self) -> int:
        """The least z that releases nothing of what is still open."""
        return int(self.counts.max(where=self.counts < ALWAYS, initial=0)) + 1


def joined(parts: list[Content]) -> Content:
    """The content of several columns as one: a person's set is what all of them release."""
    if len(parts) == 1:
        return parts[0]
    width = max(chains.shape[1] for _, chains, _ in parts)
    people = np.concatenate([p for p, _, _ in parts])
    chains = np.concatenate([np.pad(c, ((0, 0), (0, width - c.shape[1]))) for _, c, _ in parts])
    counts = np.concatenate([np.pad(c, ((0, 0), (0, width - c.shape[1]))) for _, _, c in parts])
    return people, chains, counts


Steps = Generator[None, None, Found]


def search(
    evaluation: Evaluation,
    low: int,
    high: int,
    start: int = 0,
    target: float | None = None,
    held: Evaluation | None = None,
) -> Steps:
    """A z that was seen to reach the goal next to one that was seen not to (Algorithm 4, made to end).

    It looks around ``start``, the z in force, in growing steps, then halves the gap. p_k(z) is not monotone, so what
    is returned was itself evaluated; if nothing reached the goal, the best seen. ``target`` is aimed at instead of the
    goal where experience says that less is reached than expected. A z is also high enough if it would reach ``ENOUGH``
    more than that in ``held``, a window over all of which it holds: what an earlier z released cannot be made up for.
    """
    goal = evaluation.goal.probability
    aim = goal if target is None else target

    def fits(z: int) -> bool:
        return evaluation.p(z) >= aim or (held is not None and held.p(z) >= min(aim + ENOUGH, 1.0))

    high = max(low, min(high, evaluation.most()))
    z = min(max(start, low), high)
    step = max(1, z // 16)
    if fits(z):
        below = low - 1
        while z > low:
            yield
            lower = max(low, z - step)
            if not fits(lower):
                below = lower
                break
            z, step = lower, 2 * step
    else:
        below = z
        while not fits(z) and z < high:
            yield
            below, z, step = z, min(z + step, high), 2 * step
    yield
    if not fits(z):
        best = max((p, z) for z, p in evaluation.asked.items())
        return Found(best[1], best[0], best[0] >= goal)
    while z - below > 1:
        middle = (below + z) // 2
        if fits(middle):
            z = middle
        else:
            below = middle
        yield
    return Found(z, evaluation.p(z), True, evaluation.p(below) if below >= low else None)


def incremental(
    evaluation: Evaluation, low: int, high: int, z: int, measured: float, step: int, proportional: bool
) -> Steps:
    """One step towards the goal from the ``measured`` p_k (Algorithm 3); proportional steps grow with the distance.

    It never goes beyond the least z that releases nothing: from there on more changes nothing, and the way back would
    only be longer.
    """
    goal = evaluation.goal.probability
    if proportional:
        step = max(step, round(z * abs(measured - goal)))
    high = max(low, min(high, evaluation.most()))
    new = min(max(z + step if measured < goal else z - step if measured > goal else z, low), high)
    yield
    p = evaluation.p(new)
    if p >= goal or new == high:
        return Found(new, p, p >= goal)
    yield
    return Found(new, p, evaluation.p(high) >= goal)  # a later step may reach it


def by_model(evaluation: Evaluation, low: int, high: int, windows: float, target: float) -> Steps:
    """The least z by the exact model, with p_a^X the share of the window's people (Jha et al. 2020, VII)."""
    _, first = number(evaluation.chains[:, 0].copy())
    shares = evaluation.counts[first, 0] / max(evaluation.size, 1)
    model = Model(users=max(evaluation.size, 2), exposed=shares, windows=windows)
    high = max(low, min(high, evaluation.most()))
    steps = model.smallest_z_steps(target, evaluation.goal.k, low, high, samples=2000)
    while True:
        evaluation.modelled += 1
        try:
            next(steps)
        except StopIteration as end:
            z, p, _ = end.value
            return Found(z, p, p >= evaluation.goal.probability)
        yield

"""How near a tuned stream comes to its goal: p_k of what was really released, at marks every 15 minutes.

``python -m benchmarks.bench_tuner`` (``small``: fewer people, of whom .02 are a handful). Two readings of "the goal is
held" are shown: p_k is at least the goal less .02, which is what privacy asks, and p_k is within .02 on both sides,
which is what the tuner is judged by. A mark is *said* if the decision in force at it said that this cannot be reached
(``near: false``).

Beside it stands what could be known in hindsight. *Some z*: the share of marks at which one z, in force over all of the
window before the mark, would have been within .02. *That z played*: z follows the least that reaches the goal in each
window, known half a window ahead, as nobody who decides at the time could know it. A window then holds what several z
released, so this is the share a clairvoyant reaches, and what lies far below 80 % there cannot be asked of a tuner.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from benchmarks import table
from shoal.datasets.streams import stream as generated
from shoal.measures.entropy import k_share, released_sets
from shoal.streams.history import Shown, content_of
from shoal.streams.steering import Evaluation, Goal
from shoal.streams.texts import number
from shoal.streams.tuning import NEAR
from shoal.streams.z_stream import ZStream, z_anonymity

HOUR = 3600
SMALL = "small" in sys.argv
# one dense, one sparse, one with a quiet night: name, share of its people, hours
STREAMS = {
    "dense": ("domains", 0.03 if SMALL else 0.15, 20),
    "sparse": ("ecommerce", 0.03 if SMALL else 0.15, 20),
    "quiet night": ("positions", 0.06 if SMALL else 0.3, 30),
}


def marks(frame: pl.DataFrame, goal: Goal) -> tuple[list[dict[str, Any]], list[bool], ZStream]:
    """Figures at every mark after the first window, and whether it was said there that p_k cannot be held."""
    tune = {"goal": {"k": goal.k, "probability": goal.probability}, "every": "5m"}
    running = z_anonymity(1, "1h", "path", key=bytes(32), tune=tune)
    watch = running.watch("15m", goal.k)
    for at in range(0, frame.height, 8192):
        part = frame[at : at + 8192]
        running.push_many(part["time"], part["subject"], part["value"])
    rows = [row for row in watch.finish() if row["time"] >= frame["time"][0] + 1.5 * HOUR]
    effects = np.array([decision.effect for decision in running.decisions])
    at = np.searchsorted(effects, [row["time"] * 1e6 for row in rows], "right") - 1
    return rows, [not running.decisions[i].near for i in at], running


def decided(frame: pl.DataFrame) -> Shown:
    """All events with the people counted at each, whatever z is: the history of a tuned stream, window by window."""
    tune = {"goal": {"k": 2, "probability": 0.5}, "by": "incremental", "highest": 1}
    running = z_anonymity(1, "1h", "path", key=bytes(32), tune=tune)
    times = frame["time"].to_numpy()
    parts = []
    at = 0
    for end in np.arange(times[0] + HOUR, times[-1] + HOUR, HOUR):
        to = int(np.searchsorted(times, end, "right"))
        some = frame[at:to]
        running.push_many(some["time"], some["subject"], some["value"])
        rows = running.engine.history.window(int(end * 1e6), HOUR * 1_000_000)
        parts.append(rows.take(rows.times > int((end - HOUR) * 1e6)))
        at = to
    width = max(part.chains.shape[1] for part in parts)
    return Shown(*map(np.concatenate, zip(*(part.widened(width) for part in parts), strict=True)))


def _window(rows: Shown, mark: float) -> slice:
    first, last = np.searchsorted(rows.times, [int((mark - HOUR) * 1e6), int(mark * 1e6)], "right")
    return slice(int(first), int(last))


def _least(evaluation: Evaluation, goal: float) -> int:
    """The least z that reaches the goal, where p_k grows with z; and its neighbours are looked at."""
    low, high = 0, evaluation.most()
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if evaluation.p(middle) >= goal else (middle, high)
    for z in range(max(1, high - 6), high + 7):
        evaluation.p(z)
    return high


def hindsight(rows: Shown, marks: list[float], goal: Goal) -> tuple[float, float]:
    """The shares of marks within .02: of one z over each window, and of that z played half a window ahead."""
    wanted, possible = [], []
    for mark in marks:
        evaluation = Evaluation(content_of(Shown(*(part[_window(rows, mark)] for part in rows))), goal, True, 64)
        wanted.append(_least(evaluation, goal.probability))
        possible.append(min(abs(p - goal.probability) for p in evaluation.asked.values()) <= NEAR)
    # decided every five minutes, as by the tuner
    z = np.interp(np.floor(rows.times / 3e8) * 300, np.array(marks) - HOUR / 2, wanted).round()
    enough = (rows.counts >= z[:, None]) & (rows.chains != 0)
    level = enough.argmax(axis=1)
    released = np.where(enough.any(axis=1), rows.chains[np.arange(len(level)), level], 0)
    return float(np.mean(possible)), float(np.mean([_played(rows, released, mark, goal) for mark in marks]))


def _played(rows: Shown, released: NDArray[np.int64], mark: float, goal: Goal) -> bool:
    window = _window(rows, mark)
    people, first = number(rows.people[window])
    p = k_share(*released_sets(people, released[window], len(first)), goal.k, count_empty=True)
    return abs(p - goal.probability) <= NEAR


def main() -> None:
    """Three streams, two goals."""
    found = []
    for name, (kind, share, hours) in STREAMS.items():
        frame = generated(kind, share)
        frame = frame.filter(frame["time"] < hours * HOUR)
        seen = decided(frame)
        for goal in (Goal(2, 0.8), Goal(3, 0.85)):
            rows, said, running = marks(frame, goal)
            p = np.array([row["p_k"] for row in rows])
            near = np.abs(p - goal.probability) <= NEAR
            some_z, played = hindsight(seen, [row["time"] for row in rows], goal)
            found.append(
                [
                    f"{name} ({kind})",
                    f"{goal.k}, {goal.probability:g}",
                    f"{np.median([row['people'] for row in rows]):.0f}",
                    len(rows),
                    f"{np.mean(p >= goal.probability - NEAR):.0%}",
                    f"{np.mean(near):.0%}",
                    f"{np.mean(said):.0%}",
                    f"{np.mean(near | np.array(said)):.0%}",
                    f"{some_z:.0%}, {played:.0%}",
                    f"{np.median(p):.3f}",
                    f"{running.counters['released'] / running.counters['events']:.1%}",
                ]
            )
    table(
        "the tuner's goal and p_k of what was released, z from 1 on, window 1 h, every 5 min",
        [
            "stream",
            "k, goal",
            "people",
            "marks",
            ">= goal - .02",
            "within .02",
            "said not reachable",
            "within or said (asked 80 %)",
            "in hindsight: some z, that z played",
            "median p_k",
            "released",
        ],
        found,
    )


if __name__ == "__main__":
    main()

"""How near a tuned stream comes to its goal: p_k of what was really released, at marks every 15 minutes.

``python -m benchmarks.bench_tuner``. *In hindsight*: the share of marks at which any single z, held over the whole
window before it, would have given a p_k within .02 of the goal. With few people p_k jumps by more than that from z to
z + 1, so that nobody can do better.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from benchmarks import table
from shoal.datasets.streams import stream as generated
from shoal.streams.history import content_of
from shoal.streams.steering import Evaluation, Goal
from shoal.streams.z_stream import ZStream, z_anonymity

NEAR, MARK, HOUR = 0.02, 900, 3600
# one dense, one sparse, one with a quiet night: name, share of its people, hours
STREAMS = {"dense": ("domains", 0.03, 20), "sparse": ("ecommerce", 0.03, 20), "quiet night": ("positions", 0.06, 30)}


def hindsight(running: ZStream, goal: Goal) -> bool:
    """Whether some z would have come near the goal in the window that ends now."""
    engine = running.engine
    now = int(engine.clock[0])
    evaluation = Evaluation(content_of(engine.history.window(now, HOUR * 1_000_000)), goal, True, 64)
    seen = {int(z) for z in np.unique(evaluation.counts) if z > 0}
    most = max(seen, default=1) + 1
    around = range(max(1, running.z - 8), running.z + 9)
    grid = {int(z) for z in np.geomspace(1, most, 24)}
    return any(abs(evaluation.p(z) - goal.probability) <= NEAR for z in sorted({*around, *grid}))


def marks(frame: pl.DataFrame, goal: Goal) -> tuple[list[dict[str, Any]], list[bool], ZStream]:
    """Figures at every mark after the first window and a half, and whether some z would have done."""
    tune = {"goal": {"k": goal.k, "probability": goal.probability}, "every": "30m"}
    running = z_anonymity(1, "1h", "path", key=bytes(32), tune=tune)
    watch = running.watch("15m", goal.k)
    first, possible, due = frame["time"][0], [], frame["time"][0] + 1.5 * HOUR
    for at in range(0, frame.height, 1024):
        part = frame[at : at + 1024]
        running.push_many(part["time"], part["subject"], part["value"])
        if part["time"][-1] >= due:
            possible.append(hindsight(running, goal))
            due += MARK
    return [row for row in watch.finish() if row["time"] >= first + 1.5 * HOUR], possible, running


def main() -> None:
    """Three streams, two goals."""
    found = []
    for name, (kind, share, hours) in STREAMS.items():
        frame = generated(kind, share)
        frame = frame.filter(frame["time"] < hours * HOUR)
        for goal in (Goal(2, 0.8), Goal(3, 0.85)):
            rows, possible, running = marks(frame, goal)
            p = np.array([row["p_k"] for row in rows])
            said = sum(not decision.reachable for decision in running.decisions)
            found.append(
                [
                    f"{name} ({kind})",
                    f"{goal.k}, {goal.probability:g}",
                    f"{np.median([row['people'] for row in rows]):.0f}",
                    len(rows),
                    f"{np.mean(p >= goal.probability - NEAR):.0%}",
                    f"{np.mean(np.abs(p - goal.probability) <= NEAR):.0%}",
                    f"{np.mean(possible):.0%}",
                    f"{np.median(p):.3f}",
                    said,
                    f"{running.counters['released'] / running.counters['events']:.1%}",
                ]
            )
    table(
        "the tuner's goal and p_k of what was released, z from 1 on, window 1 h, every 30 min",
        [
            "stream",
            "k, goal",
            "people",
            "marks",
            ">= goal - .02 (asked 80 %)",
            "within .02",
            "in hindsight",
            "median p_k",
            "said not reachable",
            "released",
        ],
        found,
    )


if __name__ == "__main__":
    main()

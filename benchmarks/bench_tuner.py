"""How near a tuned stream comes to its goal: p_k of what was really released, at marks every 15 minutes.

``python -m benchmarks.bench_tuner`` (``small``: fewer people, of whom .02 are a handful). A mark is *said* if the
decision in force at it said that p_k cannot be held within .02 of the goal (``near: false``).
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import polars as pl

from benchmarks import table
from shoal.datasets.streams import stream as generated
from shoal.streams.steering import Goal
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


def main() -> None:
    """Three streams, two goals."""
    found = []
    for name, (kind, share, hours) in STREAMS.items():
        frame = generated(kind, share)
        frame = frame.filter(frame["time"] < hours * HOUR)
        for goal in (Goal(2, 0.8), Goal(3, 0.85)):
            rows, said, running = marks(frame, goal)
            p = np.array([row["p_k"] for row in rows])
            near = np.abs(p - goal.probability) <= NEAR
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
            "said that it cannot be",
            "within or said (asked 80 %)",
            "median p_k",
            "released",
        ],
        found,
    )


if __name__ == "__main__":
    main()

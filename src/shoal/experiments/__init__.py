"""Experiments: the tables and figures of the papers, made again. Each module has ``run(out, shared)``."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, cast

# name: (module of this package, one line)
EXPERIMENTS: dict[str, tuple[str, str]] = {
    "z-model": ("z_model", "what z buys in terms of k: Figures 2 to 8 of the paper, by its formula and exactly"),
    "z-profile": ("z_profile", "what the streams look like: Tables 3.4 and 3.5, Figures 3.1 to 3.5"),
    "z-streams": ("z_streams", "released by level, p by z, noise: Tables 4.1 to 4.3 and 6.1 to 6.5, Figures 4.1, 4.2"),
    "z-time": ("z_time", "released over days and nights, fixed z and tuned: Figures 4.4 and 5.1 to 5.8"),
    "z-goals": ("z_goals", "z and residual information by goal: Figures 5.9 to 5.12"),
    "z-night": ("z_night", "the dip at the morning rise, with and without a schedule: section 7.1"),
    "views": ("views", "role views: throughput, waiting and loss by scope, window, k and delay; what partitions cost"),
    "graph": ("graph", "what generalizers cost by values, length and words: Figures 4.4 to 4.7"),
    "report": ("report.whole", "everything the five papers publish beside ours, with verdicts and reasons: one page"),
    "kp": ("kp", "(k,P)-anonymity of curves: loss and time against P and k, envelopes and shapes"),
}


def find(name: str) -> Callable[[Path, Path | None], Any]:
    """The experiment's ``run``: writes CSV and pictures into a folder, with real data from ``shared`` if given."""
    return cast(Callable[[Path, Path | None], Any], import_module(f"{__name__}.{EXPERIMENTS[name][0]}").run)

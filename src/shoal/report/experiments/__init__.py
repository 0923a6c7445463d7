"""Experiments: the tables and figures of the papers, made again. Each module has ``run(out, shared)``."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, cast

# name: (module of this package, one line)
EXPERIMENTS: dict[str, tuple[str, str]] = {
    "z-model": ("z_model", "what z buys in terms of k: Figures 2 to 8 of the paper, by its formula and exactly"),
    "z-streams": ("z_streams", "z-anonymity on streams: released by level, p by z, tuners over time, noise"),
    "views": ("views", "role views: throughput, waiting and loss by scope, window, k and delay; what partitions cost"),
    "kp": ("kp", "(k,P)-anonymity of curves: loss and time against P and k, envelopes and shapes"),
}


def find(name: str) -> Callable[[Path, Path | None], Any]:
    """The experiment's ``run``: writes CSV and pictures into a folder, with real data from ``shared`` if given."""
    return cast(Callable[[Path, Path | None], Any], import_module(f"{__name__}.{EXPERIMENTS[name][0]}").run)

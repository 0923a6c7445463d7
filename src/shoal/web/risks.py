"""Who can be found again before anything is done, and what a promise would mean for this table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np
import polars as pl

from shoal.measures.risk import Risk, risk
from shoal.report.chart import Axis, Bars
from shoal.verifier import grouped
from shoal.web.project import Project
from shoal.web.work import Task

AT_ONCE = 50_000  # rows that are counted while the page is made
CLASSES = ((1, 1, "alone"), (2, 4, "2 to 4"), (5, 9, "5 to 9"), (10, 49, "10 to 49"), (50, 10**18, "50 or more"))


def risk_before(project: Project) -> tuple[Risk, Bars] | Task | None:
    """The risk of the table as it stands, and a picture of how many share what an outsider may know.

    It is counted once per choice of columns; a large table in a task of its own, so that no page waits for it.
    """
    chosen, frame = project.chosen, project.frame
    quasi = [n for name in chosen.of("quasi") for n in (chosen.columns[name].of or (name,)) if n in frame.columns]
    who = next(iter(chosen.of("subject")), None)
    if not quasi:
        return None
    asked = (tuple(quasi), who)
    task = project.tasks.get("risk")
    if task is None or project.risk_asked != asked:
        project.risk_asked = asked
        task = project.start("risk", lambda tell: counted(frame, quasi, who))
        if frame.height <= AT_ONCE:
            task.wait()
    return cast("tuple[Risk, Bars]", task.result) if task.state == "done" else task


def counted(frame: pl.DataFrame, quasi: Sequence[str], who: str | None) -> tuple[Risk, Bars]:
    """Count who shares these columns. O(n log n)."""
    sizes = grouped(frame, list(quasi), people=None if who is None else frame[who]).sizes()
    return risk(sizes), picture(sizes)


def picture(sizes: np.ndarray) -> Bars:
    """People by how many share all that an outsider may know of them."""
    people = [int(sizes[(sizes >= low) & (sizes <= high)].sum()) for low, high, _ in CLASSES]
    total = max(1, sum(people))
    return Bars(
        name="before",
        title="People by how many others read alike, before anything is done",
        labels=[words for _, _, words in CLASSES],
        series={"people": [n / total for n in people]},
        axis=Axis("share of the people", form="percent", low=0.0, high=1.0),
    )

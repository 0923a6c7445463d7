"""Who can be found again before anything is done, and what a promise would mean for this table."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from shoal.measures.risk import Risk, risk
from shoal.report.chart import Axis, Bars
from shoal.verifier import grouped
from shoal.web.project import Project

CLASSES = ((1, 1, "alone"), (2, 4, "2 to 4"), (5, 9, "5 to 9"), (10, 49, "10 to 49"), (50, 10**18, "50 or more"))


def risk_before(project: Project) -> tuple[Risk, Bars] | None:
    """The risk of the table as it stands, and a picture of how many share what an outsider may know."""
    chosen, frame = project.chosen, project.frame
    quasi = [n for name in chosen.of("quasi") for n in (chosen.columns[name].of or (name,)) if n in frame.columns]
    who = next(iter(chosen.of("subject")), None)
    if not quasi:
        return None
    key = (tuple(quasi), who)
    kept = getattr(project, "_risk", None)
    if kept is None or kept[0] != key:
        sizes = grouped(frame, quasi, people=None if who is None else frame[who]).sizes()
        kept = (key, (risk(sizes), picture(sizes)))
        project._risk = kept  # type: ignore[attr-defined]  # a table of a million rows is counted once
    found: tuple[Risk, Bars] = kept[1]
    return found


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


def worst_alone(frame: pl.DataFrame, quasi: Sequence[str]) -> tuple[str, int] | None:
    """The column that singles out most people by itself."""
    alone = {
        n: int((frame[n].value_counts()["count"] == 1).sum()) for n in quasi if n in frame.columns and n != "count"
    }
    name = max(alone, key=lambda n: alone[n], default=None)
    return None if name is None or not alone[name] else (name, alone[name])

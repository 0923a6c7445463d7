"""Draw the pictures of the worked curves again: ``python docs/pictures/curves.py``. The same bytes every time."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import polars as pl

from shoal.datasets.series import meter_weeks, sales_curves, web_traffic
from shoal.report.chart import Axis, Lines, Series, draw, write
from shoal.report.series_pictures import some_groups
from shoal.series.centroids import microaggregated
from shoal.series.release import SeriesRelease, anonymize_series

SETS = {  # frame, id, pattern, what an instant is, what a value is, the range that is asked for
    "sales": (sales_curves(), "Product_Code", "auto", "week", "pieces sold", (5.0, 15.0)),
    "meters": (meter_weeks(600), "meter", "auto", "half-hour of a week", "watts", (200.0, 500.0)),
    "traffic": (web_traffic(), "page", "auto", "day", "visits", (20.0, 60.0)),
}
INSTANTS = 96  # that are drawn: two days of half-hours
SHOWN = 6  # original curves that are drawn: they are invented


def release(name: str) -> SeriesRelease:
    """The release behind the pictures of one set."""
    frame, who, pattern, *_ = SETS[name]
    return anonymize_series(frame, k=16, p=6, id=who, pattern=pattern)


def one_group(name: str, made: SeriesRelease) -> Lines:
    """Some original curves of one group, its envelope, and its representatives."""
    *_, instant, value, _ = SETS[name]
    group = some_groups(made)[1]
    x = list(range(min(INSTANTS, made.curves.values.shape[1])))
    rows = made.records[made.published.group == group]
    means = made.representatives()
    mine = np.unique(means.which[made.published.group == group])
    envelope = Series(
        f"envelope of {len(rows)}",
        x,
        low=made.published.low[group][x].tolist(),
        high=made.published.high[group][x].tolist(),
        colour=0,
        faint=True,
    )
    originals = [
        Series("original curves", x, made.curves.values[row][x].tolist(), colour=7, faint=True, legend=at == 0)
        for at, row in enumerate(rows[:SHOWN])
    ]
    lines = [
        Series(f"mean of {int(means.size[cell])}", x, means.mean[cell][x].tolist(), colour=at + 1)
        for at, cell in enumerate(mine[:2].tolist())
    ]
    return Lines(
        name=f"{name}-group", title="One group: originals, envelope, representatives", width=760, height=320,
        x=Axis(instant), y=Axis(value), series=[envelope, *originals, *lines],
    )  # fmt: skip


def one_query(name: str, made: SeriesRelease) -> Lines:
    """How many curves lie in a range at two neighbouring instants: the truth, and three answers."""
    *_, instant, value, (low, high) = SETS[name]
    truth = made.curves.values
    x = list(range(min(INSTANTS, truth.shape[1] - 1)))
    inside = (truth >= low) & (truth <= high)
    ways = {
        "envelopes": made.released(),
        "representatives": made.released(representatives=True),
        "centroids of 16 (MDAV)": microaggregated(truth, 16),
    }
    answers = {words: [way.count(low, high, [at, at + 1]).expected for at in x] for words, way in ways.items()}
    return Lines(
        name=f"{name}-query", title=f"Curves between {low:g} and {high:g} {value} at two instants in a row",
        width=760, height=300, x=Axis(instant), y=Axis("curves", low=0.0),
        series=[
            Series("truth", x, [float((inside[:, at] & inside[:, at + 1]).sum()) for at in x], colour=7),
            *[Series(words, x, found, colour=at) for at, (words, found) in enumerate(answers.items())],
        ],
    )  # fmt: skip


def main() -> None:
    """Write all pictures and print the figures of the page."""
    here = Path(__file__).parent
    rows = []
    for name in SETS:
        made = release(name)
        write(draw(one_group(name, made)), here / f"{name}-group.svg")
        write(draw(one_query(name, made)), here / f"{name}-query.svg")
        found = made.answered(300)
        errors = [found[by][figure] for by in ("", "means_", "mdav_") for figure in ("range", "similarity_regret")]
        rows.append((name, repr(made.pattern), made.loss.shape, *errors))
    sys.stdout.write(str(pl.DataFrame(rows, orient="row").rows()) + "\n")


if __name__ == "__main__":
    main()

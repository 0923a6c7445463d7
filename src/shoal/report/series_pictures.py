"""The charts of a release of curves: envelopes with what lies in them, shapes before and after, sizes, widths.

No curve of a record is drawn on its own here: a line inside an envelope, and a shape "before", is the mean of all the
records that share one published pattern, at least three of them: the mean of two is known to both, that of one is his.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from shoal.report.chart import Axis, Bars, Histogram, Lines, Mark, Series, bins
from shoal.series.release import SeriesRelease

WIDTH = 440
FEWEST = 3  # curves whose mean is drawn
MOST_SHAPES = 4  # lines inside an envelope, shapes beside each other
BEFORE, AFTER = 1, 0  # places in the palette


def _subgroups(release: SeriesRelease, group: int | None = None) -> list[NDArray[np.int64]]:
    """The curves of each subgroup whose mean may be drawn, largest first; of one group if asked."""
    cells = release.grouping.cells()[release.records]
    inside = np.ones(len(cells), np.bool_) if group is None else release.published.group == group
    found = [release.records[inside & (cells == cell)] for cell in np.unique(cells[inside])]
    return sorted((rows for rows in found if len(rows) >= FEWEST), key=lambda rows: (-len(rows), int(rows.min())))


def some_groups(release: SeriesRelease) -> list[int]:
    """Three groups to show: one of low curves, one between, one of high curves."""
    height = (release.published.low + release.published.high).sum(axis=1)
    order = np.argsort(height, kind="stable")
    return list(dict.fromkeys(int(order[int(share * (len(order) - 1))]) for share in (0.1, 0.5, 0.9)))


def envelope(release: SeriesRelease, group: int, at: int) -> Lines:
    """The envelope of one group, and in it the mean curve of each of its subgroups."""
    x = list(range(release.curves.values.shape[1]))
    parts = _subgroups(release, group)
    low, high = release.published.low[group].tolist(), release.published.high[group].tolist()
    size = int((release.published.group == group).sum())
    lines = [
        Series(f"mean of {len(rows)}", x, release.curves.values[rows].mean(axis=0).tolist(), colour=i + 1)
        for i, rows in enumerate(parts[:MOST_SHAPES])
    ]
    return Lines(
        name=f"envelope-{at}", width=WIDTH, title=f"Envelope of {size} curves",
        x=_instants(release), y=Axis("value"),
        series=[Series("envelope", x, low=low, high=high, colour=0, faint=True), *lines],
    )  # fmt: skip


def shape(release: SeriesRelease, rows: NDArray[np.int64], at: int) -> Lines:
    """The mean normalized curve of one subgroup, and the shape that is published for it."""
    x = list(range(release.curves.values.shape[1]))
    values = release.curves.values[rows]
    spread = values.std(axis=1, keepdims=True)
    normal = (values - values.mean(axis=1, keepdims=True)) / np.where(spread > 0, spread, 1.0)
    word = release.grouping.word[rows[:1]]
    after = release.pattern.stretch(release.encoded.shapes(word), len(x))[0]
    text = f"{release.encoded.texts(word)[0]}, level {int(release.encoded.published_levels(word)[0])}"
    return Lines(
        name=f"shape-{at}", width=WIDTH, height=240, title=f"{len(rows)} curves published as {text}",
        x=_instants(release), y=Axis("normalized value"),
        series=[
            Series("mean before", x, normal.mean(axis=0).tolist(), colour=BEFORE),
            Series("published", x, after.tolist(), colour=AFTER, step=True),
        ],
    )  # fmt: skip


def shapes(release: SeriesRelease) -> list[Lines]:
    """A few subgroups of different patterns, the largest first."""
    chosen: dict[int, NDArray[np.int64]] = {}
    for rows in _subgroups(release):
        chosen.setdefault(int(release.grouping.word[rows[0]]), rows)
    return [shape(release, rows, at) for at, rows in enumerate(list(chosen.values())[:MOST_SHAPES])]


def sizes(counts: NDArray[np.int64], what: str, asked: int, name: str) -> Histogram:
    """How many groups or subgroups there are of each size."""
    found = [(int(size), int(n)) for size, n in zip(*np.unique(counts, return_counts=True), strict=True)]
    edges, tall = bins(found, whole=True)
    return Histogram(
        name=name, width=WIDTH, height=240, title=f"Sizes of {what}", edges=edges, counts=tall,
        x=Axis(f"curves in a {what.removesuffix('s')}", form="whole"), y=Axis(what, form="whole"),
        marks=[Mark(asked - 0.5, f"promised: at least {asked:,}", "x")],
    )  # fmt: skip


def widths(release: SeriesRelease) -> Lines:
    """How wide envelopes are, instant by instant, as a share of what the instant spans."""
    values = release.curves.values
    span = np.ptp(values, axis=0)
    group = release.published.group
    wide = (release.published.high - release.published.low)[group].mean(axis=0)
    share = np.divide(wide, span, out=np.zeros_like(wide), where=span > 0)
    return Lines(
        name="widths", width=WIDTH, height=240, title="Width of the envelopes", x=_instants(release),
        y=Axis("share of the range", form="percent", low=0.0, high=1.0),
        series=[Series("mean width", list(range(len(span))), share.tolist())],
    )  # fmt: skip


def where_curves_went(rows: int, released: int, withheld: Sequence[tuple[str, int]]) -> Bars:
    """Released and withheld, by reason."""
    gone = list(withheld) or [("withheld", 0)]
    return Bars(
        name="withheld", width=WIDTH, title="Where the curves went",
        labels=["released", *[why for why, _ in gone]],
        series={"curves": [released, *[n for _, n in gone]]},
        axis=Axis(form="whole", low=0.0, high=float(max(1, rows))),
    )  # fmt: skip


def _instants(release: SeriesRelease) -> Axis:
    """A few instants by name."""
    names = release.instants
    step = max(1, (len(names) - 1) // 4) if len(names) > 1 else 1
    return Axis("instant", ticks=[(float(i), names[i]) for i in range(0, len(names), step)])

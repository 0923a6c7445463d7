"""What a chart is made from: values only; ``draw`` turns each of these into SVG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from shoal.core.errors import UsageError

Form = Literal["number", "percent", "time", "whole"]


class Axis(msgspec.Struct, frozen=True):
    """One axis: its name, its scale, and how its numbers read.

    ``form``: ``percent`` shows 0.25 as 25 %, ``whole`` has no fractions, ``time`` reads seconds since 1970 (UTC).
    ``low`` and ``high`` are taken from the data where not given; ``ticks`` are pairs (value, label) instead of ours.

    >>> Axis("loss", form="percent", low=0).label
    'loss'
    """

    label: str = ""
    log: bool = False
    low: float | None = None
    high: float | None = None
    form: Form = "number"
    ticks: Sequence[tuple[float, str]] = ()


class Mark(msgspec.Struct, frozen=True):
    """A dashed reference line across the plot, for example the promised k.

    >>> Mark(5, "promised k").axis
    'y'
    """

    value: float
    label: str = ""
    axis: Literal["x", "y"] = "y"


class Series(msgspec.Struct, frozen=True):
    """One line: ``y`` over ``x``; NaN makes a gap. ``low`` and ``high`` fill a band (an envelope) behind it.

    ``colour`` is a position in the palette (the series' own position if not given); ``faint`` pushes it back,
    ``step`` holds a value until the next, ``legend=False`` keeps it out of the legend.

    >>> Series("z", [0, 1], [20, 25], step=True).name
    'z'
    """

    name: str
    x: Sequence[float]
    y: Sequence[float] = ()
    low: Sequence[float] = ()
    high: Sequence[float] = ()
    colour: int | None = None
    markers: bool = False
    line: bool = True
    dash: bool = False
    step: bool = False
    faint: bool = False
    legend: bool = True

    def __post_init__(self) -> None:
        lengths = {len(part) for part in (self.y, self.low, self.high) if len(part)}
        if lengths - {len(self.x)} or bool(len(self.low)) != bool(len(self.high)):
            raise UsageError("x, y, low and high must have the same length", where=f"series {self.name!r}")


class Points(msgspec.Struct, frozen=True):
    """Points of one kind, each with an optional label; ``connect`` draws the staircase of the best of them.

    >>> Points("local", [0.1], [0.2], ["k=5"]).labels
    ['k=5']
    """

    name: str
    x: Sequence[float]
    y: Sequence[float]
    labels: Sequence[str] = ()
    colour: int | None = None
    connect: bool = False

    def __post_init__(self) -> None:
        if len(self.x) != len(self.y) or len(self.labels) not in (0, len(self.x)):
            raise UsageError("x, y and labels must have the same length", where=f"points {self.name!r}")


class Chart(msgspec.Struct, frozen=True, kw_only=True):
    """What every chart has. ``name`` is the ``data-chart`` attribute by which tests find it.

    >>> Lines(name="z", title="z over time", series=[]).width
    520
    """

    name: str
    title: str
    about: str = ""  # one sentence for those who cannot see it; made from the data where not given
    width: int = 520
    height: int = 300


class Bars(Chart, frozen=True, kw_only=True):
    """Bars per label; several series stand side by side, or on top of each other when ``stacked``.

    >>> Bars(name="loss", title="Loss", labels=["age"], series={"loss": [0.2]}).horizontal
    True
    """

    labels: Sequence[str]
    series: Mapping[str, Sequence[float]]
    axis: Axis = Axis()
    horizontal: bool = True
    stacked: bool = False
    values: bool = True  # write each value at its bar
    colours: Sequence[int] = ()

    def __post_init__(self) -> None:
        for name, values in self.series.items():
            if len(values) != len(self.labels):
                raise UsageError(f"expected {len(self.labels)} values, found {len(values)}", where=f"bars {name!r}")


class Histogram(Chart, frozen=True, kw_only=True):
    """Counts between edges (one edge more than counts)."""

    edges: Sequence[float]
    counts: Sequence[float]
    x: Axis = Axis()
    y: Axis = Axis(form="whole")
    marks: Sequence[Mark] = ()
    colour: int = 0
    hints: Sequence[str] = ()  # what each bar says under the pointer

    def __post_init__(self) -> None:
        if len(self.counts) and len(self.edges) != len(self.counts) + 1:
            raise UsageError(
                f"expected {len(self.counts) + 1} edges, found {len(self.edges)}", where=f"chart {self.name!r}"
            )


class Lines(Chart, frozen=True, kw_only=True):
    """Several lines over a common axis, each with markers or a band if wanted.

    >>> Lines(name="z", title="z over time", series=[Series("z", [0, 1], [20, 25])]).title
    'z over time'
    """

    series: Sequence[Series]
    x: Axis = Axis()
    y: Axis = Axis()
    marks: Sequence[Mark] = ()


class Scatter(Chart, frozen=True, kw_only=True):
    """Points in the plane, for frontiers: lower left is better when ``connect`` draws the staircase.

    >>> Scatter(name="f", title="Loss against risk", points=[Points("local", [0.1], [0.2])]).name
    'f'
    """

    points: Sequence[Points]
    x: Axis = Axis()
    y: Axis = Axis()
    marks: Sequence[Mark] = ()


class Heat(Chart, frozen=True, kw_only=True):
    """A table of coloured cells: ``values[row][column]``, NaN is an empty cell.

    ``low`` and ``high`` are the ends of the colours; with a negative ``low`` two colours meet at zero.
    """

    rows: Sequence[str]
    columns: Sequence[str]
    values: Sequence[Sequence[float]]
    form: Form = "number"
    low: float | None = None
    high: float | None = None

    def __post_init__(self) -> None:
        if len(self.values) != len(self.rows) or any(len(row) != len(self.columns) for row in self.values):
            raise UsageError("expected one row of cells per row and one cell per column", where=f"chart {self.name!r}")

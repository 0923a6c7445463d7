"""Lines with bands and markers, and points with labels and a frontier."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from shoal.report.chart.frame import Entry, Plot, colour, dot, head, lay, nothing, references
from shoal.report.chart.model import Axis, Lines, Mark, Points, Scatter, Series
from shoal.report.chart.scale import domain, show
from shoal.report.chart.svg import fit, hint, number, tag, text, width

Pixel = tuple[float, float]


def lines(chart: Lines) -> tuple[str, float]:
    """The body of a line chart and its height."""
    xs = [v for s in chart.series for v in _floats(s.x)]
    ys = [v for s in chart.series for part in (s.y, s.low, s.high) for v in _floats(part)]
    if not xs or not ys:
        return nothing(chart), chart.height
    entries = [Entry(s.name, _colour(s, i), _kind(s), i) for i, s in enumerate(chart.series) if s.legend]
    top, y = head(chart, entries if len(entries) > 1 else ())
    grid, plot = _axes(chart.x, chart.y, chart, y, xs, ys, chart.marks, tight=True)
    out = [top, grid]
    out += [_band(s, _colour(s, i), plot) for i, s in enumerate(chart.series) if len(s.low)]
    out += [_line(s, _colour(s, i), plot, i) for i, s in enumerate(chart.series) if len(s.y)]
    out.append(references(plot, chart.marks))
    return "".join(out), float(chart.height)


def _axes(
    x: Axis,
    y: Axis,
    chart: Lines | Scatter,
    top: float,
    xs: list[float],
    ys: list[float],
    marks: Sequence[Mark],
    *,
    tight: bool,
) -> tuple[str, Plot]:
    xs = xs + [m.value for m in marks if m.axis == "x"]
    ys = ys + [m.value for m in marks if m.axis == "y"]
    return lay(chart, top, x, y, domain(x, xs, loose=not tight), domain(y, ys), marks)


def _floats(values: Iterable[float]) -> list[float]:
    return [float(v) for v in values]


def _colour(series: Series | Points, at: int) -> int:
    return colour(at if series.colour is None else series.colour)


def _kind(series: Series) -> str:
    if not len(series.y):
        return "square"
    return "dash" if series.dash else "line" if series.line else "dot"


def _runs(series: Series, values: Sequence[float], plot: Plot) -> list[list[Pixel]]:
    """Unbroken stretches of pixels; what cannot be shown makes a gap."""
    runs: list[list[Pixel]] = [[]]
    for x, y in zip(_floats(series.x), _floats(values), strict=True):
        if plot.x.shows(x) and plot.y.shows(y):
            runs[-1].append((plot.x(x), plot.y(y)))
        elif runs[-1]:
            runs.append([])
    return [thin(run) for run in runs if run]


def thin(run: list[Pixel]) -> list[Pixel]:
    """At most four points per column of pixels: first, lowest, highest, last. The picture stays the same."""
    if len(run) < 4000:
        return run
    out: list[Pixel] = []
    column: list[Pixel] = []
    for point in run:
        if column and int(point[0]) != int(column[0][0]):
            out += _ends(column)
            column = []
        column.append(point)
    return out + _ends(column)


def _ends(column: list[Pixel]) -> list[Pixel]:
    places = {0, len(column) - 1}
    places.add(min(range(len(column)), key=lambda i: column[i][1]))
    places.add(max(range(len(column)), key=lambda i: column[i][1]))
    return [column[i] for i in sorted(places)]


def _path(run: Sequence[Pixel], step: bool = False) -> str:
    parts = [f"M{number(run[0][0])} {number(run[0][1])}"]
    for x, y in run[1:]:
        parts.append(f"H{number(x)}V{number(y)}" if step else f"L{number(x)} {number(y)}")
    return "".join(parts)


def _band(series: Series, c: int, plot: Plot) -> str:
    out = []
    for low, high in zip(_runs(series, series.low, plot), _runs(series, series.high, plot), strict=False):
        lower = list(reversed(low))
        out.append(
            tag("path", hint(series.name), d=_path(high) + _path(lower).replace("M", "L") + "Z", class_=f"band f{c}")
        )
    return "".join(out)


def _line(series: Series, c: int, plot: Plot, at: int) -> str:
    out = []
    runs = _runs(series, series.y, plot)
    if series.line:
        kind = f"line s{c}{' faint' if series.faint else ''}"
        dash = "6 4" if series.dash else None
        path = "".join(_path(run, series.step) for run in runs)
        out.append(tag("path", hint(series.name), d=path or None, class_=kind, stroke_dasharray=dash))
    lonely = [run[0] for run in runs if len(run) == 1]  # a single point has no line to show it
    if series.markers or not series.line:
        out += [dot(at, c, *p) for p in _shown(series, plot)]
    else:
        out += [dot(at, c, x, y, series.name) for x, y in lonely]
    return "".join(out)


def _shown(series: Series, plot: Plot) -> list[tuple[float, float, str]]:
    pairs = zip(_floats(series.x), _floats(series.y), strict=True)
    return [
        (plot.x(x), plot.y(y), f"{series.name}: {show(y)} at {show(x)}")
        for x, y in pairs
        if plot.x.shows(x) and plot.y.shows(y)
    ]


def scatter(chart: Scatter) -> tuple[str, float]:
    """The body of a scatter plot and its height."""
    xs = [v for p in chart.points for v in _floats(p.x)]
    ys = [v for p in chart.points for v in _floats(p.y)]
    if not xs:
        return nothing(chart), chart.height
    entries = [Entry(p.name, _colour(p, i), "line" if p.connect else "dot", i) for i, p in enumerate(chart.points)]
    top, y = head(chart, entries if len(entries) > 1 else ())
    grid, plot = _axes(chart.x, chart.y, chart, y, xs, _headroom(chart.y, ys), chart.marks, tight=False)
    dots: list[str] = []
    places: list[tuple[Pixel, str]] = []
    for i, points in enumerate(chart.points):
        names = [str(label) for label in points.labels] or [""] * len(points.x)
        for px, py, name in zip(_floats(points.x), _floats(points.y), names, strict=True):
            if plot.x.shows(px) and plot.y.shows(py):
                note = f"{points.name}{' ' + name if name else ''}: {show(px, chart.x.form)}, {show(py, chart.y.form)}"
                places.append(((plot.x(px), plot.y(py)), name))
                dots.append(dot(i, _colour(points, i), *places[-1][0], note, r=4.5))
    taken = [(px - 5, py - 5, px + 5, py + 5) for (px, py), _ in places]
    names = [_tag(fit(name, 120, 11), at, plot, taken) for at, name in places if name]
    stairs = [_staircase(points, _colour(points, i), plot) for i, points in enumerate(chart.points) if points.connect]
    return "".join([top, grid, *stairs, references(plot, chart.marks), *dots, *names]), float(chart.height)


def _headroom(axis: Axis, values: list[float]) -> list[float]:
    """A little more than the highest, so that no point sits under the legend."""
    known = [v for v in values if math.isfinite(v)]
    if axis.log or not known:
        return values
    return [*values, max(known) + 0.08 * (max(known) - min(min(known), 0.0))]


def _tag(name: str, at: Pixel, plot: Plot, taken: list[tuple[float, float, float, float]]) -> str:
    """A label beside its point, where there is room; a label without room is left to the pointer."""
    wide = width(name, 11)
    x, y = at
    for dx, dy, anchor in ((8, 4, "start"), (-8, 4, "end"), (0, -9, "middle"), (0, 17, "middle")):
        left = x + dx - (wide if anchor == "end" else wide / 2 if anchor == "middle" else 0)
        box = (left, y + dy - 9, left + wide, y + dy + 2)
        inside = box[0] >= plot.left and box[2] <= plot.right + 12 and box[1] >= plot.top - 12
        if inside and not any(box[0] < b[2] and b[0] < box[2] and box[1] < b[3] and b[1] < box[3] for b in taken):
            taken.append(box)
            return text(x + dx, y + dy, name, "small over", anchor)
    return ""


def _staircase(points: Points, c: int, plot: Plot) -> str:
    """The frontier: points that no other point beats on both axes."""
    best: list[Pixel] = []
    for x, y in sorted(zip(_floats(points.x), _floats(points.y), strict=True)):
        if plot.x.shows(x) and plot.y.shows(y) and (not best or y < best[-1][1]):
            best.append((x, y))
    run = [(plot.x(x), plot.y(y)) for x, y in best]
    return tag("path", d=_path(run, step=True), class_=f"line faint s{c}") if len(run) > 1 else ""

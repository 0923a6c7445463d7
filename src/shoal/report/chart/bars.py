"""Bars, lying or standing, side by side or stacked, and histograms."""

from __future__ import annotations

from collections.abc import Sequence

from shoal.report.chart.frame import LINE, MARGIN, Entry, Plot, colour, head, lay, nothing, references
from shoal.report.chart.model import Axis, Bars, Histogram
from shoal.report.chart.scale import Scale, domain, show, ticks
from shoal.report.chart.svg import fit, hint, tag, text, width

THICK = 15.0  # pixels of one lying bar


def bars(chart: Bars) -> tuple[str, float]:
    """The body of a bar chart and its height: lying bars grow with their number, so that every label is read."""
    if not len(chart.labels) or not chart.series:
        return nothing(chart), chart.height
    return _lying(chart) if chart.horizontal else _standing(chart)


def _colours(chart: Bars) -> list[int]:
    given = list(chart.colours) or list(range(len(chart.series)))
    return [colour(given[i % len(given)]) for i in range(len(chart.series))]


def _legend(chart: Bars) -> list[Entry]:
    if len(chart.series) < 2:
        return []
    return [Entry(name, c) for name, c in zip(chart.series, _colours(chart), strict=True)]


def _domain(chart: Bars, loose: bool = True) -> tuple[float, float]:
    if chart.stacked:
        values = [sum(float(v[i]) for v in chart.series.values()) for i in range(len(chart.labels))]
    else:
        values = [float(v) for row in chart.series.values() for v in row]
    return domain(chart.axis, values, zero=not chart.axis.log, loose=loose)


def _lying(chart: Bars) -> tuple[str, float]:
    top, y = head(chart, _legend(chart))
    lanes = 1 if chart.stacked else len(chart.series)
    thick = THICK if lanes == 1 else 11.0
    pitch = thick * lanes + (9.0 if lanes == 1 else 12.0)
    names = min(0.46 * chart.width, max(width(str(label)) for label in chart.labels) + 6)
    written = [show(float(v), chart.axis.form) for row in chart.series.values() for v in row]
    room = max(width(w, 11.5) for w in written) + 6 if chart.values and not chart.stacked else 6.0
    low, high = _domain(chart, loose=not chart.values)
    scale = Scale(low, high, MARGIN + names + 8, chart.width - MARGIN - room, chart.axis.log)
    end = y + pitch * len(chart.labels)
    out = [top]
    if not chart.values or chart.stacked:
        out += _grid(scale, chart.axis, y, end)
    for i, label in enumerate(chart.labels):
        at = y + i * pitch + (pitch - thick * lanes) / 2
        middle = at + thick * lanes / 2 + 4
        out.append(tag("g", hint(label), text(MARGIN + names, middle, fit(label, names), "", "end")))
        out += _lane(chart, scale, i, at, thick)
    zero = scale(max(scale.low, 0.0) if not scale.log else scale.low)
    out.append(tag("line", x1=zero, x2=zero, y1=y, y2=end, class_="base"))
    below = 22.0 if not chart.values or chart.stacked else 4.0
    if chart.axis.label:
        out.append(text((scale.start + scale.end) / 2, end + below + 12, chart.axis.label, "soft", "middle"))
        below += LINE
    return "".join(out), end + below + 8


def _lane(chart: Bars, scale: Scale, i: int, y: float, thick: float) -> list[str]:
    """All bars of one label."""
    out: list[str] = []
    total = 0.0
    for lane, (c, (name, values)) in enumerate(zip(_colours(chart), chart.series.items(), strict=True)):
        value = float(values[i])
        note = f"{chart.labels[i]}{', ' + name if len(chart.series) > 1 else ''}: {show(value, chart.axis.form)}"
        at = y if chart.stacked else y + lane * thick
        base = total if chart.stacked else scale.low if scale.log else min(max(0.0, scale.low), scale.high)
        if scale.shows(value):
            a, b = sorted((scale(base), scale(base + value if chart.stacked else value)))
            out.append(tag("rect", hint(note), x=a, y=at, width=b - a, height=thick - 1, rx=2, class_=f"f{c}"))
            total += value
        if chart.values and not chart.stacked:
            end = scale(value) if scale.shows(value) else scale.start
            out.append(text(max(end, scale(base)) + 5, at + thick / 2 + 3.5, show(value, chart.axis.form), "small"))
    return out


def _grid(scale: Scale, axis: Axis, top: float, bottom: float) -> list[str]:
    out = []
    for value, label in ticks(axis, scale.low, scale.high, most=max(2, int((scale.end - scale.start) / 60))):
        at = scale(value)
        out.append(tag("line", x1=at, x2=at, y1=top, y2=bottom, class_="rule"))
        out.append(text(at, bottom + 16, label, "small", "middle"))
    return out


def _standing(chart: Bars) -> tuple[str, float]:
    top, y = head(chart, _legend(chart))
    n = len(chart.labels)
    grid, plot = lay(chart, y, Axis(ticks=[(-1.0, "")]), chart.axis, (0.0, float(n)), _domain(chart))
    slot = (plot.right - plot.left) / n
    lanes = 1 if chart.stacked else len(chart.series)
    thick = min(46.0, slot * 0.78 / lanes)
    every = max(1, -(-28 // max(1, int(slot))))
    out = [top, grid]
    for i, label in enumerate(chart.labels):
        middle = plot.left + (i + 0.5) * slot
        if i % every == 0:
            shown = fit(label, slot * every - 4, 11)
            out.append(tag("g", hint(label), text(middle, plot.bottom + 17, shown, "small", "middle")))
        out += _pillar(chart, plot, i, middle - thick * lanes / 2, thick)
    return "".join(out), float(chart.height)


def _pillar(chart: Bars, plot: Plot, i: int, x: float, thick: float) -> list[str]:
    out: list[str] = []
    total = 0.0
    for lane, (c, (name, values)) in enumerate(zip(_colours(chart), chart.series.items(), strict=True)):
        value = float(values[i])
        if not plot.y.shows(value):
            continue
        base = total if chart.stacked else plot.y.low if plot.y.log else min(max(0.0, plot.y.low), plot.y.high)
        a, b = sorted((plot.y(base), plot.y(base + value if chart.stacked else value)))
        total += value
        at = x if chart.stacked else x + lane * thick
        note = f"{chart.labels[i]}{', ' + name if len(chart.series) > 1 else ''}: {show(value, chart.axis.form)}"
        gap = 1.0 if thick > 4 else 0.0
        out.append(
            tag("rect", hint(note), x=at, y=a, width=thick - gap, height=b - a, rx=min(2, thick / 4), class_=f"f{c}")
        )
        shown = show(value, chart.axis.form)
        if chart.values and not chart.stacked and width(shown, 11) <= thick + 4:
            out.append(text(at + thick / 2, a - 4, shown, "small", "middle"))
    return out


def histogram(chart: Histogram) -> tuple[str, float]:
    """The body of a histogram and its height."""
    if not len(chart.counts):
        return nothing(chart), chart.height
    top, y = head(chart)
    low, high = domain(chart.x, [*_ends(chart.edges), *[m.value for m in chart.marks if m.axis == "x"]], loose=False)
    ys = domain(chart.y, [*map(float, chart.counts)], zero=not chart.y.log)
    if chart.y.log and chart.y.low is None:
        ys = (min(0.8, ys[0] * 0.8), ys[1])  # a bar of one must be seen
    grid, plot = lay(chart, y, chart.x, chart.y, (low, high), ys, chart.marks)
    out = [top, grid]
    for i, count in enumerate(chart.counts):
        if not plot.y.shows(float(count)) or not count:
            continue
        a, b = plot.x(float(chart.edges[i])), plot.x(float(chart.edges[i + 1]))
        at = min(plot.y(float(count)), plot.bottom - 1.5)  # few are not none
        note = chart.hints[i] if len(chart.hints) else _between(chart, i)
        gap = 1.0 if b - a > 3 else 0.0
        out.append(
            tag(
                "rect",
                hint(note),
                x=a,
                y=at,
                width=b - a - gap,
                height=plot.bottom - at,
                class_=f"f{colour(chart.colour)}",
            )
        )
    out.append(references(plot, chart.marks))
    return "".join(out), float(chart.height)


def _ends(edges: Sequence[float]) -> tuple[float, float]:
    return float(edges[0]), float(edges[-1])


def _between(chart: Histogram, i: int) -> str:
    form = chart.x.form
    count = show(float(chart.counts[i]), chart.y.form)
    return f"{show(float(chart.edges[i]), form)} to {show(float(chart.edges[i + 1]), form)}: {count}"

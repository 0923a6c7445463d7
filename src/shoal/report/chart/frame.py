"""What charts share: title, legend, axes, reference lines, and the words for those who cannot see."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from shoal.report.chart.model import Axis, Chart, Mark
from shoal.report.chart.scale import Scale, ticks
from shoal.report.chart.svg import COLOURS, escape, fit, hint, number, style, tag, text, width

MARGIN = 14.0
LINE = 18.0


@dataclass(frozen=True)
class Entry:
    """One entry of a legend: its name, its colour and the sample drawn beside it."""

    name: str
    colour: int
    kind: str = "square"  # square, line, dash, dot
    shape: int = 0  # of a dot


def colour(at: int) -> int:
    """A place in the palette; more series than colours start again."""
    return at % COLOURS


def head(chart: Chart, entries: Sequence[Entry] = ()) -> tuple[str, float]:
    """Title and legend, and where the plot may begin below them."""
    out = [text(MARGIN, 24.0, fit(chart.title, chart.width - 2 * MARGIN, 14.5), "title")]
    top = 38.0
    if entries:
        x, y = MARGIN, 44.0
        for entry in entries:
            name = fit(entry.name, chart.width / 2 - 30)
            wide = 26.0 + width(name) + 12
            if x + wide > chart.width and x > MARGIN:
                x, y = MARGIN, y + LINE
            out += [_sample(entry, x, y), text(x + 22, y + 4, name, "soft")]
            x += wide
        top = y + 16
    return "".join(out), top


def _sample(entry: Entry, x: float, y: float) -> str:
    if entry.kind in ("line", "dash"):
        dash = "5 4" if entry.kind == "dash" else None
        return tag("line", x1=x, x2=x + 17, y1=y, y2=y, class_=f"line s{entry.colour}", stroke_dasharray=dash)
    if entry.kind == "dot":
        return dot(entry.shape, entry.colour, x + 9, y, entry.name, r=5.0)
    return tag("rect", x=x + 3, y=y - 6, width=12.0, height=12.0, rx=2.5, class_=f"f{entry.colour}")


def dot(shape: int, c: int, x: float, y: float, note: str, r: float = 4.0) -> str:
    """A marker; neighbours in the palette differ in shape, too, for those who do not see the colours apart."""
    kind = f"dot f{c}"
    match shape % 4:
        case 0:
            return tag("circle", hint(note), cx=x, cy=y, r=r, class_=kind)
        case 1:
            return tag("rect", hint(note), x=x - r + 0.5, y=y - r + 0.5, width=2 * r - 1, height=2 * r - 1, class_=kind)
        case 2:
            corners = [(0.0, -1.25), (1.2, 0.9), (-1.2, 0.9)]
        case _:
            corners = [(0.0, -1.3), (1.3, 0.0), (0.0, 1.3), (-1.3, 0.0)]
    path = " ".join(f"{number(x + a * r)},{number(y + b * r)}" for a, b in corners)
    return tag("polygon", hint(note), points=path, class_=kind)


@dataclass(frozen=True)
class Plot:
    """The rectangle of a plot with its two scales."""

    x: Scale
    y: Scale

    @property
    def left(self) -> float:
        """The left edge in pixels."""
        return self.x.start

    @property
    def right(self) -> float:
        """The right edge in pixels."""
        return self.x.end

    @property
    def top(self) -> float:
        """The upper edge in pixels."""
        return self.y.end

    @property
    def bottom(self) -> float:
        """The lower edge in pixels."""
        return self.y.start


def lay(
    chart: Chart,
    top: float,
    x: Axis,
    y: Axis,
    xs: tuple[float, float],
    ys: tuple[float, float],
    marks: Sequence[Mark] = (),
) -> tuple[str, Plot]:
    """Both axes with grid, ticks and names, and the plot between them."""
    top += 12.0 if any(mark.axis == "x" for mark in marks) else 0.0  # their labels stand above the plot
    bottom = chart.height - (44.0 if x.label else 28.0)
    rows = ticks(y, *ys, most=max(2, int((bottom - top) / 45)))
    room = min(0.3 * chart.width, max([width(label, 11.5) for _, label in rows], default=0.0))
    left = MARGIN + room + (20.0 if y.label else 4.0)
    right = chart.width - MARGIN - 4
    plot = Plot(Scale(*xs, left, right, x.log), Scale(*ys, bottom, top, y.log))
    out = []
    for value, label in rows:
        at = plot.y(value)
        out.append(tag("line", x1=left, x2=right, y1=at, y2=at, class_="rule"))
        out.append(text(left - 6, at + 4, label, "small", "end"))
    out += _across(plot, x, xs)
    if x.label:
        out.append(text((left + right) / 2, chart.height - 8.0, fit(x.label, right - left), "soft", "middle"))
    if y.label:
        out.append(text(MARGIN + 4, (top + bottom) / 2, fit(y.label, bottom - top), "soft", "middle", turn=True))
    return "".join(out), plot


def _across(plot: Plot, x: Axis, xs: tuple[float, float]) -> list[str]:
    """The lower axis: as many ticks as have room for their labels."""
    room = plot.right - plot.left
    marks = ticks(x, *xs, most=max(2, int(room / 62)))
    out = [tag("line", x1=plot.left, x2=plot.right, y1=plot.bottom, y2=plot.bottom, class_="base")]
    free = -1e9
    for value, label in marks:
        at, half = plot.x(value), width(label, 11.0) / 2
        if at - half < free:
            continue
        free = at + half + 4
        out.append(tag("line", x1=at, x2=at, y1=plot.bottom, y2=plot.bottom + 4, class_="base"))
        shift = min(at, plot.right + MARGIN - half)  # the last label must not leave the picture
        out.append(text(shift, plot.bottom + 17, label, "small", "middle"))
    return out


def references(plot: Plot, marks: Sequence[Mark]) -> str:
    """The dashed lines over the plot, each with its label inside."""
    out = []
    for mark in marks:
        if mark.axis == "y":
            at = plot.y(mark.value)
            out.append(tag("line", x1=plot.left, x2=plot.right, y1=at, y2=at, class_="mark"))
            below = at < plot.top + 16
            out.append(text(plot.right - 4, at + 14 if below else at - 5, mark.label, "small over", "end"))
        else:
            at = plot.x(mark.value)
            out.append(tag("line", x1=at, x2=at, y1=plot.top, y2=plot.bottom, class_="mark"))
            end = at + 8 + width(mark.label, 11) > plot.right
            out.append(
                text(at + 2 if end else at - 2, plot.top - 4, mark.label, "small over", "end" if end else "start")
            )
    return "".join(out)


def nothing(chart: Chart) -> str:
    """The picture of no data."""
    top = head(chart)[0]
    return top + text(chart.width / 2, chart.height / 2 + 8, "nothing to show", "soft", "middle")


def close(chart: Chart, body: str, height: float, about: str, styled: bool) -> str:
    """The whole document: named, described, with its own colours when it stands alone."""
    inner = [hint(chart.title), tag("desc", escape(about))]
    if styled:
        inner.append(f"<style>{style()}</style>")
    inner.append(tag("rect", width=chart.width, height=height, class_="ground", rx=8))
    return tag(
        "svg",
        *inner,
        body,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {chart.width} {number(height)}",
        width=chart.width,
        height=height,
        class_="shoal-chart",
        role="img",
        aria_label=f"{chart.title}. {about}" if about else chart.title,
        data_chart=chart.name,
    )

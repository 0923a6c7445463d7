"""Several charts on one picture, for papers and front pages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from shoal.report.chart.body import body
from shoal.report.chart.frame import close
from shoal.report.chart.model import Chart
from shoal.report.chart.svg import escape, fit, tag, text

GAP = 14.0


@dataclass(frozen=True)
class Line:
    """A line of words above the charts: ``kind`` is ``title``, ``soft`` or empty."""

    words: str
    kind: str = ""


def sheet(name: str, title: str, charts: Sequence[Chart], *, columns: int = 2, lines: Sequence[Line] = ()) -> str:
    """One SVG of several charts; each stands in the column that is shortest so far."""
    wide = max((chart.width for chart in charts), default=440)
    columns = max(1, min(columns, len(charts)))
    full = columns * wide + (columns + 1) * GAP
    top = GAP
    out = []
    for line in (Line(title, "large"), *lines):
        size = 20.0 if line.kind == "large" else 14.0
        top += size
        out.append(text(GAP + 6, top, fit(line.words, full - 2 * GAP, size), line.kind))
        top += 8
    ends = [top + 8] * columns
    for chart in charts:
        at = ends.index(min(ends))
        inner, height, about = body(chart)
        card = tag("rect", width=wide, height=height, class_="card", rx=8)
        place = f"translate({GAP + at * (wide + GAP):g} {ends[at]:g})"
        note = tag("desc", escape(chart.about or about))
        out.append(
            tag("g", note, card, inner, transform=place, role="img", aria_label=chart.title, data_chart=chart.name)
        )
        ends[at] += height + GAP
    whole = Chart(name=name, title=title, width=int(full))
    return close(whole, "".join(out), max(ends), ", ".join(chart.title for chart in charts), True)

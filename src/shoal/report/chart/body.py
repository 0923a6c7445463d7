"""What is inside a chart, by its kind, and a sentence about it."""

from __future__ import annotations

from shoal.report.chart.bars import bars, histogram
from shoal.report.chart.heat import heat
from shoal.report.chart.lines import lines, scatter
from shoal.report.chart.model import Bars, Chart, Heat, Histogram, Lines, Scatter


def body(chart: Chart) -> tuple[str, float, str]:
    """The markup of a chart without its frame, its height, and what it shows."""
    match chart:
        case Bars():
            about = f"{len(chart.labels)} bars" if len(chart.series) < 2 else ", ".join(map(str, chart.series))
            return *bars(chart), about
        case Histogram():
            return *histogram(chart), f"{chart.y.label or 'counts'} by {chart.x.label or 'value'}"
        case Lines():
            names = ", ".join(s.name for s in chart.series if s.legend)
            return *lines(chart), f"{chart.y.label} against {chart.x.label}: {names}"
        case Scatter():
            return *scatter(
                chart
            ), f"{chart.y.label} against {chart.x.label}: {', '.join(p.name for p in chart.points)}"
        case Heat():
            return *heat(chart), f"{len(chart.rows)} rows by {len(chart.columns)} columns"
        case _:
            raise TypeError(f"not a chart: {type(chart).__name__}")

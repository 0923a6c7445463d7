"""A table of coloured cells."""

from __future__ import annotations

import math

from shoal.report.chart.frame import MARGIN, head, nothing
from shoal.report.chart.model import Heat
from shoal.report.chart.scale import show
from shoal.report.chart.svg import fit, hint, tag, text, width


def heat(chart: Heat) -> tuple[str, float]:
    """The body of a heat map and its height: the darker, the further from zero."""
    if not chart.rows or not chart.columns:
        return nothing(chart), chart.height
    top, y = head(chart)
    names = min(0.3 * chart.width, max(width(str(r)) for r in chart.rows) + 6)
    left = MARGIN + names + 6
    wide = (chart.width - MARGIN - left) / len(chart.columns)
    tall = min(30.0, max(14.0, wide * 0.7))
    slant = max(width(str(c), 11) for c in chart.columns) > wide - 4
    y += (min(90.0, max(width(str(c), 11) for c in chart.columns)) if slant else 14.0) + 2
    written = all(width(_short(chart, float(v)), 11) <= wide - 4 for row in chart.values for v in row)
    out = [top]
    for j, name in enumerate(chart.columns):
        middle = left + (j + 0.5) * wide
        label = text(
            middle + 4 if slant else middle,
            y - 5,
            fit(name, 90 if slant else wide, 11),
            "small",
            "start" if slant else "middle",
            turn=slant,
        )
        out.append(tag("g", hint(name), label))
    for i, name in enumerate(chart.rows):
        at = y + i * tall
        out.append(tag("g", hint(name), text(MARGIN + names, at + tall / 2 + 4, fit(name, names), "", "end")))
        out += [_cell(chart, i, j, left + j * wide, at, wide, tall, written) for j in range(len(chart.columns))]
    return "".join(out), y + tall * len(chart.rows) + MARGIN


def _cell(chart: Heat, i: int, j: int, x: float, y: float, wide: float, tall: float, written: bool) -> str:
    value = float(chart.values[i][j])
    if not math.isfinite(value):
        return ""
    share = _share(chart, value)
    shown = show(value, chart.form)
    note = f"{chart.rows[i]}, {chart.columns[j]}: {shown}"
    kind = "heat2" if value < 0 else "heat"
    box = tag(
        "rect",
        hint(note),
        x=x + 1,
        y=y + 1,
        width=wide - 2,
        height=tall - 2,
        rx=3,
        class_=kind,
        opacity=0.08 + 0.92 * share,
    )
    if not written:
        return box
    return box + text(x + wide / 2, y + tall / 2 + 4, _short(chart, value), "on" if share > 0.5 else "", "middle")


def _short(chart: Heat, value: float) -> str:
    """Cells are small: a share is written without its sign."""
    if chart.form == "percent" and math.isfinite(value):
        return f"{value * 100:.0f}" if abs(value) >= 0.0995 or value == 0 else f"{value * 100:.1f}"
    return (
        f"{value:.2f}" if math.isfinite(value) and abs(value) <= 1 and value != int(value) else show(value, chart.form)
    )


def _share(chart: Heat, value: float) -> float:
    known = [abs(float(v)) for row in chart.values for v in row if math.isfinite(v)]
    most = max(abs(chart.low or 0.0), abs(chart.high or 0.0)) or max(known, default=1.0) or 1.0
    least = chart.low if chart.low is not None and chart.low > 0 else 0.0
    return min(1.0, max(0.0, (abs(value) - least) / max(1e-300, most - least)))

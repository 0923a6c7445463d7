"""The report for a terminal: what was promised, what it cost, what is left of the risk."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from shoal.core.scale import SCALES
from shoal.report.chart.svg import clean
from shoal.report.limits import limits
from shoal.report.pictures import group_sizes

if TYPE_CHECKING:
    from shoal.report.columns import Published
    from shoal.report.model import Report

BAR = 24
NAME = 32  # letters of a column's name
MOST_COLUMNS = 30  # columns listed
STEPS = "▁▂▃▄▅▆▇█"


def render(report: Report) -> str:
    """Plain text, readable without colour."""
    parts = [
        _promises(report),
        _columns(report),
        _loss(report),
        _groups(report),
        _risk(report),
        _analysts(report),
        _rest(report),
    ]
    body = [_head(report), *["\n".join(part) for part in parts if part]]
    return "\n\n".join(body)


def _head(report: Report) -> str:
    use = str(report.method.get("use", "an unnamed method"))
    return f"{_name(report.title, 200)}: {report.released:,} of {report.rows:,} rows released by {_name(use)}"


def _promises(report: Report) -> list[str]:
    state = "VERIFIED" if report.verified else "BROKEN"
    return [f"Promises: {state}", *[f"  {'✓' if f.kept else '✗'} {clean(f)}" for f in report.findings]]


def _columns(report: Report) -> list[str]:
    """Every published column; ``✗`` where whoever knows a value finds somebody by it."""
    if not report.columns:
        return []
    shown = report.columns[:MOST_COLUMNS]
    rows = [("Published", "role", "made by", "values", "alone", "lost"), *[_column(c) for c in shown]]
    widths = [max(len(row[at]) for row in rows) for at in range(6)]
    lines = [
        "  ".join(c.ljust(w) if at < 3 else c.rjust(w) for at, (c, w) in enumerate(zip(row, widths, strict=True)))
        for row in rows
    ]
    told = [f"  {_name(c.name)}: {_about(c)}" for c in shown if _about(c)]
    more = [f"  … and {len(report.columns) - MOST_COLUMNS} more columns"] if len(report.columns) > MOST_COLUMNS else []
    return [*(line.rstrip() for line in lines), *more, *told]


def _column(column: Published) -> tuple[str, ...]:
    lost = "" if column.loss is None else f"{column.loss:.1%}"
    made = column.mask or column.hierarchy or "–"
    mark = "✗" if column.singles_out else " "
    return f"{mark} {_name(column.name)}", column.role, clean(made), f"{column.distinct:,}", f"{column.alone:,}", lost


def _about(column: Published) -> str:
    if column.singles_out:
        return f"shown in clear, and {column.alone:,} rows have a value of their own: whoever knows it finds them"
    return column.hint


def _loss(report: Report) -> list[str]:
    loss = report.loss
    shown = list(loss.columns.items())[:MOST_COLUMNS]
    width = max((len(_name(name)) for name, _ in shown), default=0)
    lines = [f"Loss: {loss.gcp:.2%} of the detail (0 % nothing, 100 % everything)"]
    weighed = {c.name: f"  weight {c.weight:g}" for c in report.columns if c.weight != 1}
    lines += [f"  {_name(name):<{width}}  {_bar(value)} {value:7.2%}{weighed.get(name, '')}" for name, value in shown]
    if len(loss.columns) > MOST_COLUMNS:
        lines.append(f"  … and {len(loss.columns) - MOST_COLUMNS} more columns")
    for name, on in loss.scales.items():
        if on.by != "linear":
            why = f" ({on.why})" if on.why else ""
            others = ", ".join(f"{scale} {getattr(on, scale):.2%}" for scale in SCALES if scale != on.by)
            lines.append(f"  {_name(name)} is measured by {on.by}{why}; {others}")
    return lines


def _groups(report: Report) -> list[str]:
    if not report.size_counts:
        return ["Groups: none"]
    groups = sum(n for _, n in report.size_counts)
    smallest, largest = report.size_counts[0][0], report.size_counts[-1][0]
    mean = report.released / max(1, groups)
    lines = [
        f"Groups: {groups:,}, the smallest of {smallest:,} rows, the largest of {largest:,}, on average {mean:,.1f}"
    ]
    if smallest != largest:
        lines.append(f"  {smallest:,} {_spark([float(n) for n in group_sizes(report).counts])} {largest:,}")
    return lines


def _risk(report: Report) -> list[str]:
    before, after = report.risk_before, report.risk_after
    return [
        "Risk of being found again        before      after",
        f"  worst case (prosecutor)     {before.prosecutor:>9.2%}  {after.prosecutor:>9.2%}",
        f"  on average (marketer)       {before.marketer:>9.2%}  {after.marketer:>9.2%}",
        f"  above one in five           {before.at_risk:>9.2%}  {after.at_risk:>9.2%}",
        f"  alone in their group        {before.unique:>9,}  {after.unique:>9,}",
    ]


def _analysts(report: Report) -> list[str]:
    """The largest changes; all of them are on the page and in the JSON."""
    utility = report.utility
    means = [abs(b - a) / abs(a) for a, b in utility.means.values() if a]
    correlations = [abs(b - a) for a, b in utility.correlations.values()]
    parts = [
        f"{what} by {worst}"
        for what, worst in (
            ("means", _worst(means, "{:.2%}")),
            ("correlations", _worst(correlations, "{:.3f}")),
            ("cross tables", _worst(list(utility.cross_tables.values()), "{:.1%}")),
        )
        if worst
    ]
    return [f"Changed for analysts, at most: {', '.join(parts)}"] if parts else []


def _worst(changes: list[float], form: str) -> str:
    known = [change for change in changes if math.isfinite(change)]
    return form.format(max(known)) if known else ""


def _rest(report: Report) -> list[str]:
    lines = [f"Withheld: {n:,} rows ({clean(reason)})" for reason, n in report.withheld.items()]
    if report.left_out:
        lines.append(f"Left out, because not declared: {', '.join(_name(name) for name in report.left_out)}")
    lines += [f"Note: {clean(note)}" for note in report.notes]
    names = [name.rstrip(".").lower() for name, _ in limits(report) if name != "This page."]
    lines.append(f"Not protected against: {'; '.join(names)} (why: on the page, and in SECURITY.md)")
    return lines


def _name(name: str, most: int = NAME) -> str:
    """A name on one line, without what a terminal would obey."""
    whole = clean(name)
    return whole if len(whole) <= most else f"{whole[: most - 1]}…"


def _bar(share: float) -> str:
    full = round(min(1.0, max(0.0, share)) * BAR)
    return "█" * full + "·" * (BAR - full)


def _spark(counts: list[float]) -> str:
    most = max(counts)
    return "".join(STEPS[math.ceil(n / most * (len(STEPS) - 1))] if n else "·" for n in counts)

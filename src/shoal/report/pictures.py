"""The charts of a release's report."""

from __future__ import annotations

import math
from itertools import combinations
from typing import TYPE_CHECKING

from shoal.report.chart import Axis, Bars, Heat, Histogram, Mark, bins
from shoal.report.chart.model import Chart

if TYPE_CHECKING:
    from shoal.report.model import Report

AFTER, BEFORE = 0, 1  # places in the palette
MOST_CELLS = 24  # columns of a heat map
MOST_BARS = 20
WIDTH = 440  # two beside each other on a desk, one on a phone, both readable


def group_sizes(report: Report) -> Histogram:
    """How many groups there are of each size; sizes far apart are laid on a logarithmic axis."""
    sizes = report.size_counts
    far = bool(sizes) and sizes[-1][0] > 40 * max(1, sizes[0][0])
    edges, counts = _wide_bins(sizes) if far else bins(sizes, whole=True)
    hints = [_sizes(a, b, n) for a, b, n in zip(edges, edges[1:], counts, strict=False)]
    k = promised_k(report)
    return Histogram(
        name="group-sizes",
        width=WIDTH,
        title="Group sizes",
        about=_sizes_about(report),
        edges=edges,
        counts=counts,
        hints=hints,
        x=Axis("rows in a group", log=far, form="whole"),
        y=Axis("groups", form="whole"),
        marks=[Mark(k - 0.5, f"promised: at least {k:,}", "x")] if k is not None and sizes else [],
    )


def _wide_bins(sizes: list[tuple[int, int]]) -> tuple[list[float], list[float]]:
    """Edges between the integers that grow by a constant factor."""
    low, high = sizes[0][0], sizes[-1][0]
    edges = [low - 0.5]
    while edges[-1] < high:
        edges.append(math.floor(max(edges[-1] + 1, edges[-1] * (high / low) ** (1 / 30))) + 0.5)
    counts = [0.0] * (len(edges) - 1)
    at = 0
    for size, number in sizes:
        while size > edges[at + 1]:
            at += 1
        counts[at] += number
    return edges, counts


def _sizes(low: float, high: float, number: float) -> str:
    a, b = math.ceil(low), math.floor(high)
    return f"size {a:,}{'' if a >= b else f' to {b:,}'}: {number:,.0f} groups"


def _sizes_about(report: Report) -> str:
    if not report.size_counts:
        return "No groups were released"
    groups = sum(n for _, n in report.size_counts)
    return f"{groups:,} groups of {report.size_counts[0][0]:,} to {report.size_counts[-1][0]:,} rows"


def promised_k(report: Report) -> int | None:
    """The k that was asked for, if one was."""
    asked = [f.asked for f in report.findings if f.promise == f"{f.asked:g}-anonymity"]
    return int(max(asked)) if asked else None


def loss_per_column(report: Report) -> Bars:
    """How much of each column's detail is gone."""
    columns = report.loss.columns
    return Bars(
        name="loss",
        width=WIDTH,
        title="Detail lost per column",
        labels=list(columns),
        series={"lost": list(columns.values())},
        axis=Axis(form="percent", low=0.0, high=1.0),
    )


def risk(report: Report) -> Bars:
    """The chances of being found again, before and after."""
    before, after = report.risk_before, report.risk_after
    rows = [
        ("worst (prosecutor)", before.prosecutor, after.prosecutor),
        ("worst, from a register (journalist)", before.journalist, after.journalist),
        ("mean (marketer)", before.marketer, after.marketer),
        ("above 1 in 5", before.at_risk, after.at_risk),
    ]
    if (before.journalist, after.journalist) == (before.prosecutor, after.prosecutor):
        del rows[1]  # without a register the two are the same
    return Bars(
        name="risk",
        width=WIDTH,
        title="Risk of being found again",
        labels=[name for name, _, _ in rows],
        series={"before": [b for _, b, _ in rows], "after": [a for _, _, a in rows]},
        axis=Axis(form="percent", low=0.0, high=1.0),
        colours=[BEFORE, AFTER],
    )


def withheld(report: Report) -> Bars:
    """Where every row went."""
    reasons = report.withheld or {"withheld": 0}
    rows = max(1, report.rows)
    return Bars(
        name="withheld",
        width=WIDTH,
        title="Where the rows went",
        labels=["released", *reasons],
        series={"rows": [report.released, *reasons.values()]},
        axis=Axis(form="whole", low=0.0, high=float(rows)),
    )


def correlations(report: Report) -> Bars | None:
    """Correlations before and after, those that changed most first."""
    known = {pair: v for pair, v in report.utility.correlations.items() if all(map(math.isfinite, v))}
    if not known:
        return None
    worst = sorted(known, key=lambda pair: -abs(known[pair][0] - known[pair][1]))[:MOST_BARS]
    more = f" (the {MOST_BARS} that changed most of {len(known):,})" if len(known) > MOST_BARS else ""
    return Bars(
        name="correlations",
        width=WIDTH,
        title=f"Correlations{more}",
        labels=worst,
        series={"before": [known[p][0] for p in worst], "after": [known[p][1] for p in worst]},
        colours=[BEFORE, AFTER],
    )


def cross_tables(report: Report) -> Chart | None:
    """How far the tables of every two columns moved; of very many, the worst."""
    tables = report.utility.cross_tables
    if not tables:
        return None
    names = [name for name in report.loss.columns if any(_holds(pair, name) for pair in tables)]
    if len(names) > MOST_CELLS or len(names) < 3:
        worst = sorted(tables, key=lambda pair: -tables[pair])[:MOST_BARS]
        more = f" (the worst {MOST_BARS} of {len(tables):,})" if len(tables) > MOST_BARS else ""
        return Bars(
            name="cross-tables",
            width=WIDTH,
            title=f"Change of cross tables{more}",
            labels=worst,
            series={"moved": [tables[pair] for pair in worst]},
            axis=Axis(form="percent", low=0.0, high=1.0),
        )
    cells = [[math.nan] * len(names) for _ in names]
    for i, j in combinations(range(len(names)), 2):
        cells[j][i] = tables.get(f"{names[i]}, {names[j]}", math.nan)
    return Heat(
        name="cross-tables",
        width=WIDTH,
        title="Change of cross tables, in %",
        rows=names[1:],
        columns=names[:-1],
        values=[row[:-1] for row in cells[1:]],
        form="percent",
        low=0.0,
        high=1.0,
    )


def _holds(pair: str, name: str) -> bool:
    return pair.startswith(f"{name}, ") or pair.endswith(f", {name}")

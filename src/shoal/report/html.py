"""The report as a page: the verdict first, then what it cost, what is left of the risk, what stays unprotected."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from shoal.core.scale import SCALES
from shoal.report import pictures
from shoal.report.chart import show
from shoal.report.findings import findings_grid
from shoal.report.limits import limits
from shoal.report.page import Block, Facts, Figures, Grid, Picture, Points, Section, Verdict, fragment, page

if TYPE_CHECKING:
    from shoal.measures.loss import Scaled
    from shoal.report.model import Report

MOST_ROWS = 60


def render(report: Report) -> str:
    """One self-contained document: no script, no network."""
    return page(report.title, sections(report), about=_about(report), verdict=verdict(report))


def embed(report: Report) -> str:
    """The same for a notebook: a block that leaves the page around it alone."""
    return fragment(report.title, sections(report), about=_about(report), verdict=verdict(report))


def verdict(report: Report) -> Verdict:
    """The stamp: whether the verifier found every promise kept."""
    broken = sum(not finding.kept for finding in report.findings)
    if report.verified:
        return Verdict(True, "Verified: every promise is kept")
    return Verdict(False, f"Not verified: {broken} of {len(report.findings)} promises broken")


def sections(report: Report) -> list[Section]:
    """Everything there is to say, in the order in which a person asks.

    >>> import polars as pl
    >>> import shoal
    >>> ages = pl.DataFrame({"age": [20, 22, 50, 52]})
    >>> made = shoal.anonymize(ages, quasi=["age"], k=2, method="mondrian")
    >>> [part.title for part in sections(made.report)][:3]
    ['', 'Promises', 'What is published']
    """
    found = [
        Section("", [figures(report)]),
        promises(report),
        columns(report),
        costs(report),
        utility(report),
        made(report),
    ]
    if report.notes:
        found.append(Section("Notes", [Points([("", note) for note in report.notes])]))
    found.append(Section("What this release does not protect against", [Points(limits(report))]))
    return [section for section in found if section.blocks]


def _about(report: Report) -> str:
    return f"{report.released:,} of {report.rows:,} rows released by {report.method.get('use', 'an unnamed method')}."


def figures(report: Report) -> Figures:
    """The five figures one looks for first."""
    groups = sum(number for _, number in report.size_counts)
    smallest = f"smallest {report.size_counts[0][0]:,}" if report.size_counts else "none released"
    before, after = report.risk_before, report.risk_after
    return Figures(
        [
            ("Rows released", f"{report.released:,}", f"{_share(report.released, report.rows)} of {report.rows:,}"),
            ("Groups", f"{groups:,}", smallest),
            ("Detail lost", f"{report.loss.gcp:.1%}", "mean of all quasi cells"),
            ("Worst risk", show(after.prosecutor, "percent"), f"before: {show(before.prosecutor, 'percent')}"),
            ("Alone in their group", f"{after.unique:,}", f"before: {before.unique:,}"),
        ]
    )


def promises(report: Report) -> Section:
    """What was promised and what the verifier found."""
    about = "The verifier read the released rows with code of its own; it knows no method."
    return Section("Promises", [findings_grid(report.findings)], about=about)


def columns(report: Report) -> Section:
    """Every published column: role, how it was made, what it still tells, what it lost; red where it singles out."""
    rows, marks = [], []
    for column in report.columns:
        lost = "–" if column.loss is None else f"{column.loss:.1%}"
        lost = lost if column.weight == 1 else f"{lost}, weight {column.weight:g}"
        told = "singles people out: whoever knows a value finds its row" if column.singles_out else column.hint
        made = (column.mask or "–", column.hierarchy or "–")
        rows.append((column.name, column.role, *made, f"{column.distinct:,}", f"{column.alone:,}", lost, told))
        marks.append("bad" if column.singles_out else "")
    head = ["Column", "Role", "Mask", "Hierarchy", "Different values", "Rows alone with theirs", "Lost", ""]
    about = (
        "A value that one row alone has finds that row for whoever knows it; no group hides a column shown in clear."
    )
    return Section("What is published", [Grid(head, rows, marks=marks)] if rows else [], about=about)


def costs(report: Report) -> Section:
    """What the release lost and what it won."""
    return Section(
        "What it costs, and what is left of the risk",
        [
            Picture(pictures.group_sizes(report), "Rows that read alike in every quasi column form a group."),
            Picture(pictures.withheld(report), _withheld_caption(report)),
            Picture(
                pictures.loss_per_column(report),
                "0 %: every value is as exact as before. 100 %: the column tells nothing, as do withheld rows.",
            ),
            Picture(
                pictures.risk(report),
                "The chance that someone who knows a person's quasi values finds that person's row.",
            ),
        ],
    )


def utility(report: Report) -> Section:
    """What analysts still find."""
    blocks: list[Block] = []
    if report.utility.means:
        blocks.append(_means(report))
    correlations = pictures.correlations(report)
    if correlations is not None:
        blocks.append(Picture(correlations, "A generalized cell counts as the mean of what it may stand for."))
    cross = pictures.cross_tables(report)
    if cross is not None:
        blocks.append(
            Picture(
                cross, "How much of a table of two columns moved to other cells. 0: the same table, 100: another one."
            )
        )
    return Section("What analysts still find", blocks)


def _means(report: Report) -> Grid:
    rows = []
    for name, (before, after) in list(report.utility.means.items())[:MOST_ROWS]:
        change = (after - before) / abs(before) if before else math.nan
        rows.append((name, _figure(before), _figure(after), f"{change:+.2%}" if math.isfinite(change) else "–"))
    return Grid(["Mean of", "Before", "After", "Change"], rows)


def _figure(value: float) -> str:
    return f"{value:,.4g}" if math.isfinite(value) and abs(value) < 1e6 else show(value)


def made(report: Report) -> Section:
    """Everything needed to make this release again, and the other measures of loss."""
    loss = report.loss
    parameters = ", ".join(f"{k} = {v}" for k, v in report.method.items() if k != "use")
    return Section(
        "How it was made",
        [
            Facts(
                [
                    ("Method", str(report.method.get("use", "–"))),
                    ("Parameters", parameters or "none"),
                    ("Seed", "drawn in secret" if report.seed is None else str(report.seed)),
                    ("Shoal", report.version or "–"),
                    ("Time", f"{report.seconds:.2f} s"),
                    ("Left out", ", ".join(report.left_out) or "no column"),
                    ("Discernibility", f"{loss.discernibility:,}"),
                    ("Average group over k", f"{loss.average_group:.3g}"),
                    ("Generalization cost", f"{loss.generalization_cost:,.1f}"),
                    ("Non-uniform entropy", f"{loss.entropy:.2%} of what could be lost"),
                    *[(f"Loss of {name}", _on_scales(on)) for name, on in loss.scales.items()],
                ]
            )
        ],
    )


def _on_scales(on: Scaled) -> str:
    figures = ", ".join(f"{scale} {getattr(on, scale):.2%}" for scale in SCALES)
    return f"{figures}; by {on.by}{', because ' + on.why if on.why else ''}"


def _withheld_caption(report: Report) -> str:
    gone = report.rows - report.released
    if not gone:
        return "No row was withheld."
    return f"{gone:,} rows ({_share(gone, report.rows)}) were withheld; nothing of them is in the release."


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.1%}" if whole else "–"

"""The report of curves as a page: the verdict, envelopes and shapes, what it cost, what stays unprotected."""

from __future__ import annotations

import numpy as np

from shoal.report import series_pictures as pictures
from shoal.report.findings import findings_grid
from shoal.report.page import Figures, Grid, Picture, Points, Section, Verdict, page
from shoal.report.series_report import SeriesReport
from shoal.series.release import SeriesRelease

LIMITS = (
    ("Comparing releases.", "Two releases of the same curves can be intersected, envelope by envelope."),
    ("How a record came to its level.", "Someone who knows the method may learn a little from the level chosen."),
    ("What the whole table tells.", "It still tells it about every curve in it: this is not differential privacy."),
    (
        "This page.",
        "Means of at least P original curves are drawn on it, none alone: hand it only to those who may know them.",
    ),
)
NO_DIVERSITY = (
    "Shared secrets.",
    "If all curves of a P-subgroup have the same sensitive value, it is known of each: l-diversity answers that.",
)
MEANS = "representatives"
ABOUT_MEANS = (
    "Means beside envelopes.",
    "Who knows values of a curve finds its subgroup of P, not its group of k; who knows all others learns the last.",
)
MEASURES = {
    "value": "instant value loss: root mean square of the envelope's widths",
    "ncp": "normalized certainty penalty: mean share of each instant's range",
    "pattern": "pattern loss on the word: 1 − correlation of the rebuilt with the true segments",
    "shape": "pattern loss on the full series",
}


def render(report: SeriesReport, release: SeriesRelease) -> str:
    """One self-contained document: no script, no network."""
    stamp = Verdict(report.verified, "Verified: every promise is kept" if report.verified else "Not verified")
    about = f"{report.released:,} of {report.rows:,} curves released by {report.method}."
    return page(report.title, sections(report, release), about=about, verdict=stamp)


def sections(report: SeriesReport, release: SeriesRelease) -> list[Section]:
    """Everything there is to say, in the order in which a person asks.

    >>> import shoal
    >>> made, report = shoal.anonymize_series(np.add.outer(np.arange(8), [0, 1, 2, 3]), k=4, p=2)
    >>> [part.title for part in sections(report, made)][:2]
    ['', 'Promises']
    """
    groups = np.bincount(release.published.group)
    cells = release.grouping.cells()
    k, p = (int(finding.asked) for finding in report.findings[:2])
    went = pictures.where_curves_went(report.rows, report.released, list(report.withheld.items()))
    return [
        Section("", [figures(report)]),
        Section(
            "Promises",
            [findings_grid(report.findings)],
            about="The verifier read the released rows with code of its own.",
        ),
        Section(
            "Envelopes",
            [
                *[pictures.envelope(release, group, at) for at, group in enumerate(pictures.some_groups(release))],
                pictures.widths(release),
            ],
            about="All curves of a group are published under one envelope. Each line is the mean of the curves that "
            "share one pattern: no curve stands here alone.",
        ),
        Section(
            "Shapes before and after",
            pictures.shapes(release),
            about="Per record its pattern is published, a word with its level: what it tells of a shape.",
        ),
        Section(
            "Groups, and what was withheld or altered",
            [
                pictures.sizes(groups, "groups", k, "group-sizes"),
                pictures.sizes(np.bincount(cells[cells >= 0]), "subgroups", p, "subgroup-sizes"),
                Picture(went, _altered(report)),
            ],
        ),
        *queries(report),
        Section("Loss", [losses(report)], about="A suppressed record counts as wholly lost."),
        Section("What this release does not protect against", [Points(_limits(report))]),
    ]


def figures(report: SeriesReport) -> Figures:
    """The figures one looks for first."""
    found = report.figures
    share = f"{report.released / max(1, report.rows):.1%} of {report.rows:,}"
    return Figures(
        [
            ("Curves released", f"{report.released:,}", share),
            ("Groups", f"{found['groups']:,.0f}", f"smallest {found['smallest_group']:,.0f}"),
            ("Subgroups", f"{found['subgroups']:,.0f}", f"smallest {found['smallest_subgroup']:,.0f}"),
            ("Value loss", f"{found['value']:,.4g}", "typical width of an envelope"),
            ("Shape lost", f"{found['shape']:.1%}", "1 − correlation with the true curve"),
        ]
    )


ANSWERED = (
    ("", "envelopes and patterns"),
    ("means_", "with the mean curve of each subgroup"),
    ("mdav_", "plain microaggregation: centroids of groups of k"),
)


def queries(report: SeriesReport) -> list[Section]:
    """How wrong answers from the release are, against the truth."""
    found = report.figures
    if "query_range" not in found:
        return []
    rows = [
        (
            words,
            f"{found[f'query_{by}range']:.1%} ± {found[f'query_{by}range_spread']:.1%}",
            f"{found[f'query_{by}similarity']:.1%} ± {found[f'query_{by}similarity_spread']:.1%}",
            f"{found[f'query_{by}similarity_regret']:.3f}",
        )
        for by, words in ANSWERED
        if f"query_{by}range" in found
    ]
    about = (
        "How many curves lie in a range over one to four instants, and which ten are most similar to one? 600 "
        "questions of each kind, compared with the original curves; ± is the standard error of the mean. "
        f"Envelopes tell a count for sure within {found['query_range_bounds']:.1%} of the curves; guessing misses "
        f"{found['query_similarity_chance']:.1%} of the similar ones. Farther: how much farther (1 − correlation) the "
        "ten found are than the true ten. Means are published only if one asks for them."
    )
    head = ["Answered from", "Error of a count", "Similar curves missed", "Farther"]
    return [Section("Questions to the release", [Grid(head, rows)], about=about)]


def losses(report: SeriesReport) -> Grid:
    """Averages per record and totals."""
    rows = [
        (words, f"{report.figures[name]:,.4g}", f"{report.figures[f'{name}_total']:,.6g}")
        for name, words in MEASURES.items()
    ]
    return Grid(["Measure", "Per record", "Total"], rows)


def _altered(report: SeriesReport) -> str:
    changed = ", ".join(f"{n:,} values of {column}" for column, n in report.altered.items() if n)
    return f"Altered for l-diversity, nobody can tell which: {changed}." if changed else "No value was altered."


def _limits(report: SeriesReport) -> list[tuple[str, str]]:
    diverse = any("diversity" in finding.promise for finding in report.findings)
    means = any(MEANS in note for note in report.notes)
    return [*([] if diverse else [NO_DIVERSITY]), *([ABOUT_MEANS] if means else []), *LIMITS]

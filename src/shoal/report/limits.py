"""What a release does not protect against: said in every report, because a promise kept is not every promise."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shoal.report.model import Report

Limit = tuple[str, str]

ALWAYS: tuple[Limit, ...] = (
    (
        "Comparing releases.",
        "Releases of the same people at different times, or by different methods, can be intersected.",
    ),
    (
        "Plain columns an outsider knows.",
        "Plain columns are published as they are. What an outsider knows is a quasi column and belongs there.",
    ),
    ("What the whole table tells.", "It still tells it about everyone in it: this is not differential privacy."),
    (
        "This page.",
        "The figures “before” come from the original data: hand them only to those who may know them.",
    ),
)
NO_DIVERSITY: Limit = (
    "Shared secrets.",
    "If all people of a group have the same sensitive value, it is known of each of them: l-diversity answers that.",
)
NO_CLOSENESS: Limit = (
    "Likely secrets.",
    "A value may be much more frequent in a group than in the whole table: t-closeness answers that.",
)
ROWS: Limit = (
    "Several rows of one person.",
    "Rows were counted, not people: declare a subject if a person can have more than one row.",
)


def limits(report: Report) -> list[Limit]:
    """What remains, given the promises that were asked for and what was counted."""
    asked = " ".join(finding.promise for finding in report.findings)
    out = [] if "-diversity" in asked or "-closeness" in asked else [NO_DIVERSITY]
    out += [] if "-closeness" in asked else [NO_CLOSENESS]
    out += [ROWS] if any(finding.unit == "rows" for finding in report.findings) else []
    return [*out, *ALWAYS]

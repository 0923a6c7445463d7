"""The report for a terminal: what was promised, what it cost, what is left of the risk."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shoal.report.model import Report

BAR = 24


def render(report: Report) -> str:
    """Plain text, readable without colour."""
    return "\n".join(
        [
            f"{report.title}: {report.released:,} of {report.rows:,} rows released by {report.method['use']}",
            "",
            *_promises(report),
            "",
            *_loss(report),
            "",
            *_risk(report),
            *_rest(report),
        ]
    )


def _promises(report: Report) -> list[str]:
    state = "VERIFIED" if report.verified else "BROKEN"
    return [f"Promises: {state}", *[f"  {'✓' if f.kept else '✗'} {f}" for f in report.findings]]


def _loss(report: Report) -> list[str]:
    loss = report.loss
    width = max((len(name) for name in loss.columns), default=0)
    lines = [f"Loss: {loss.gcp:.2%} of the detail (0 % nothing, 100 % everything)"]
    lines += [f"  {name:<{width}}  {_bar(value)} {value:7.2%}" for name, value in loss.columns.items()]
    groups = sum(n for _, n in report.size_counts)
    smallest = report.size_counts[0][0] if report.size_counts else 0
    lines.append(
        f"  {groups:,} groups, the smallest of {smallest:,} rows, on average {report.released / max(1, groups):,.1f}"
    )
    return lines


def _risk(report: Report) -> list[str]:
    before, after = report.risk_before, report.risk_after
    return [
        "Risk of being found again        before      after",
        f"  worst case (prosecutor)     {before.prosecutor:>9.2%}  {after.prosecutor:>9.2%}",
        f"  on average (marketer)       {before.marketer:>9.2%}  {after.marketer:>9.2%}",
        f"  alone in their group        {before.unique:>9,}  {after.unique:>9,}",
    ]


def _rest(report: Report) -> list[str]:
    lines = [""] if report.withheld or report.left_out or report.notes else []
    lines += [f"Withheld: {n:,} rows ({reason})" for reason, n in report.withheld.items()]
    if report.left_out:
        lines.append(f"Left out, because not declared: {', '.join(report.left_out)}")
    lines += [f"Note: {note}" for note in report.notes]
    return lines


def _bar(share: float) -> str:
    full = round(min(1.0, max(0.0, share)) * BAR)
    return "█" * full + "·" * (BAR - full)

"""Streams as pages: the profile of events before, what was released over time, and how a run ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from shoal.core.groups import Finding
from shoal.core.time import words
from shoal.measures.stream_profile import StreamProfile
from shoal.report import stream_figures, stream_profile
from shoal.report.page import Block, Figures, Grid, Picture, Points, Section, Verdict, page

WHY = {
    "rare": "shown by too few people",
    "late": "late, and too few are certain",
    "too_late": "too late",
    "future": "ahead of the clock",
    "bad": "unreadable: no time, subject or usable value",
    "unknown": "unknown to the hierarchy",
    "full": "beyond the memory",
    "due": "delay over",
    "sticky": "decided before",
    "end": "left at the end",
    "gaps": "of a curve that lacks instants",
}
UNJUDGED = "Not judged here: `shoal verify --original` judges a released stream beside its events"


def reasons(counters: Mapping[str, int]) -> list[tuple[str, int]]:
    """Why events were withheld, in words, and how many.

    >>> reasons({"events": 9, "rare": 4, "bad": 0})
    [('shown by too few people', 4)]
    """
    return [(told, int(counters[name])) for name, told in WHY.items() if counters.get(name)]


def run_page(
    title: str,
    method: str,
    counters: Mapping[str, int],
    *,
    findings: Sequence[Finding] = (),
    notes: Sequence[str] = (),
    rows: Sequence[Mapping[str, Any]] = (),
    k: int = 2,
) -> str:
    """How a run ended; ``rows`` are its figures over time, if somebody watched.

    >>> run_page("visits", "z-anonymity", {"events": 9, "released": 7, "withheld": 2})[:15]
    '<!DOCTYPE html>'
    """
    found = run_sections(method, counters, findings=findings, notes=notes, rows=rows, k=k)
    return page(title, found, verdict=_verdict(findings))


def level_words(name: str) -> str:
    """A counter of releases by level, as a person says it.

    >>> level_words("level_0"), level_words("level_2")
    ('level 0, exact', 'level 2')
    """
    words = name.replace("_", " ")
    return f"{words}, exact" if words == "level 0" else words


def run_sections(
    method: str,
    counters: Mapping[str, int],
    *,
    findings: Sequence[Finding] = (),
    notes: Sequence[str] = (),
    rows: Sequence[Mapping[str, Any]] = (),
    k: int = 2,
) -> list[Section]:
    """The same, for pages that have a frame of their own.

    >>> [part.title for part in run_sections("z-anonymity", {"events": 9, "released": 7, "withheld": 2, "rare": 2})]
    ['', 'Why events were withheld']
    """
    events, released, withheld = (int(counters.get(name, 0)) for name in ("events", "released", "withheld"))
    share = f"{released / events:.1%} of {events:,}" if events else "no events"
    levels = [(name, int(n)) for name, n in counters.items() if name.startswith("level_") and n]
    counted = [("Events", events, method), ("Released", released, share), ("Withheld", withheld, "")]
    found = [Section("", [Figures([(name, f"{count:,}", below) for name, count, below in counted])])]
    if told := reasons(counters):
        found.append(
            Section("Why events were withheld", [Grid(["Reason", "Events"], [(w, f"{n:,}") for w, n in told])])
        )
    if levels:
        by_level = [(level_words(name), f"{n:,}") for name, n in levels]
        found.append(Section("How precise the released ones are", [Grid(["Level", "Events"], by_level)]))
    if findings:
        judged = [("✓ kept" if f.kept else "✗ broken", str(f)) for f in findings]
        found.append(Section("Promises", [Grid(["Verdict", "Finding"], judged)]))
    if rows:
        found.append(_over_time(rows, k))
    if notes:
        found.append(Section("Notes", [Points([("", note) for note in notes])]))
    return found


def figures_page(rows: Sequence[Mapping[str, Any]], k: int, name: str = "stream") -> str:
    """What was released over time.

    >>> row = {"time": 0.0, "events": 9, "withheld": 2, "level_0": 7, "people": 5, "p_k": 0.8, "z": 2}
    >>> row |= {"entropy_before": 2.0, "entropy_after": 1.0, "residual": 0.5}
    >>> "Over time" in figures_page([row], 2)
    True
    """
    return page(f"Over time: {name}", [_over_time(rows, k, name)])


def profile_page(found: StreamProfile, name: str = "stream") -> str:
    """What is to be known of a stream before z, the window and the hierarchy are chosen.

    >>> import polars as pl
    >>> from shoal.report.stream_profile import profile_of
    >>> events = pl.DataFrame({"time": [0, 60], "subject": ["a", "b"], "value": ["x", "y"]})
    >>> "People" in profile_page(profile_of(events))
    True
    """
    people = found.people
    first = Figures(
        [
            ("Events", f"{found.events:,}", f"over {words(int(found.hours * 3600) * 1_000_000)}"),
            ("People", f"{people.count:,}", f"{people.mean:,.1f} events each, most {people.most:,}"),
            ("Unusable", f"{found.unusable:,}", "no time, person or value"),
        ]
    )
    levels = [
        (at.level, at.samples.count, f"{at.samples.mean:,.1f}", at.samples.most, at.lone, f"{at.lone_events:.1%}")
        for at in found.levels
    ]
    head = ["Level", "Values", "Events each", "Most", "Values of one person", "Their share of the events"]
    charts = stream_profile.pictures(found, name).values() if found.events else ()
    drawn: list[Block] = [Picture(chart) for chart in charts]
    sections = [Section("", [first]), Section("Values by level", [Grid(head, levels)]), Section("Pictures", drawn)]
    return page(f"Profile: {name}", [section for section in sections if section.blocks])


def _over_time(rows: Sequence[Mapping[str, Any]], k: int, name: str = "stream") -> Section:
    charts = stream_figures.pictures(stream_figures.table(rows), k, name)
    return Section("Over time", [Picture(chart) for chart in charts.values()])


def _verdict(findings: Sequence[Finding]) -> Verdict | None:
    if not findings:
        return Verdict(False, UNJUDGED)
    kept = all(f.kept for f in findings)
    return Verdict(kept, "Verified: every promise is kept" if kept else "Not verified: a promise is broken")

"""What ``shoal stream`` says at its end: doubts, figures, reports of every view."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shoal.cli.terminal import as_json, say

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from shoal.cli.stream_run import Asked
    from shoal.connect.events import Events
    from shoal.release.stream import LocalRunner


def say_more(asked: Asked, source: Events, runners: Mapping[str, LocalRunner]) -> None:
    """Other views of the pass, and doubts."""
    from shoal.core.known import doubts

    for view, runner in runners.items():
        if view:
            counters = runner.method.counters
            say(f"{view}: {counters['released']:,} of {counters['events']:,} events released")
    if source.bad:
        where = ", ".join(f"{line:,}" for line in source.first_bad)
        say(f"warning: {source.bad:,} lines cannot be read, first of them: {where} (--strict stops at the first)")
    for runner in runners.values():
        for doubt in doubts(runner.method.known):
            say(f"warning: {doubt}")


def figures_of(asked: Asked, source: Events, runners: Mapping[str, LocalRunner], *, ended: bool) -> dict[str, Any]:
    """The figures of every view, for machines."""
    from shoal.release.stream_report import figures

    views = {view: figures(runner) for view, runner in runners.items() if view}
    return {
        **figures(runners[""]),
        **({"views": views} if views else {}),
        "seed": asked.jobs[""].seed or 0,
        "unreadable_lines": source.bad,
        "ended": ended,
    }


def save_figures(rows: Any, k: int, folder: str) -> list[Path]:
    """Figures, pictures, and a page of them."""
    from pathlib import Path

    from shoal.connect.files import write_text
    from shoal.report.stream_figures import save
    from shoal.report.stream_page import figures_page

    made = save(rows, k, Path(folder))
    if made:
        made.append(Path(folder) / "page.html")
        write_text(figures_page(rows, k), str(made[-1]))
    return made


def report(asked: Asked, runners: Mapping[str, LocalRunner], rows: Any, k: int) -> None:
    """How the run ended, as a file, if one was asked for: every view, what was waived, and what was judged beside."""
    from shoal.connect.files import write_text
    from shoal.release.stream_report import figures
    from shoal.report.model import ending
    from shoal.report.stream_page import reasons, run_page

    file, job, runner = asked.run.report, asked.jobs[""], runners[""]
    if file is None:
        return
    kind, counters, notes = ending(file), runner.method.counters, _notes(asked, runners)
    if kind == ".json":
        views = {view: figures(one) for view, one in runners.items() if view}
        page = as_json({**figures(runner), **({"views": views} if views else {}), "notes": notes})
    elif kind == ".html":
        page = run_page(job.title, job.method.use, counters, notes=notes, rows=rows, k=k)
    else:
        told = [f"{count:,} withheld: {words}" for words, count in reasons(counters)]
        first = f"{job.title}: {counters['released']:,} of {counters['events']:,} events released"
        page = "\n".join([first, *told, *(f"note: {note}" for note in notes)]) + "\n"
    write_text(page, file)
    say(f"report: {file}")


def _notes(asked: Asked, runners: Mapping[str, LocalRunner]) -> list[str]:
    """What belongs into every report of the run."""
    from shoal.core.known import doubts

    notes = []
    for view, runner in runners.items():
        of, job = f"{view}: " if view else "", asked.jobs[view]
        if view:
            counters = runner.method.counters
            notes.append(f"{of}{counters['released']:,} of {counters['events']:,} events released")
        told = [*job.notes, *(f"waiver: {name}" for name in job.waived), *doubts(runner.method.known)]
        if runner.beside is not None:
            told.append(str(runner.beside))
        notes += [f"{of}{note}" for note in told]
    return notes

"""``shoal anonymize``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from shoal.cli.options import ByPolicy, Columns, Growing, How, OfCurves, Promised, Reading, To, read_for, wishes
from shoal.cli.terminal import File, answer, progress, say
from shoal.core.errors import UsageError

if TYPE_CHECKING:
    from shoal.core.release import Release


def anonymize(
    data: File,
    *,
    to: To = To(),
    by: ByPolicy = ByPolicy(),
    columns: Columns = Columns(),
    promised: Promised = Promised(),
    curves: OfCurves = OfCurves(),
    growing: Growing = Growing(),
    how: How = How(),
    reading: Reading = Reading(),
) -> None:
    """Release a table: what is promised is verified before a byte is written.

    Examples: `shoal anonymize patients.csv --quasi zip,sex,age --sensitive diag --k 5 --l 2 -o released.csv`;
    `shoal anonymize patients.csv --policy policy.yaml --view research -o released.parquet --report report.html`.

    Parameters
    ----------
    data
        CSV (also .gz), Parquet or NDJSON; `-` is standard input.
    """
    from shoal.core.originals import keep_apart
    from shoal.release.job import job_of

    keep_apart([to.output, to.report, growing.append], [data, by.policy])
    asked = wishes(to, by, columns, promised, curves, growing, how, title=title(data) if by.policy is None else None)
    if by.policy is None and not columns.quasi and not curves.series:
        asked.refuse("quasi", "no quasi columns", "name the columns an outsider may know, or give a --policy")
    job = job_of(asked)
    check_output(to)
    if not job.promises:
        raise UsageError("this view promises nothing", where=by.policy, hint="shoal view writes it")
    frame = read_for(job, data, reading)
    with progress("anonymizing") as tell:
        release = job.run(frame, progress=tell)
    deliver(release, to, reading.split)


def title(data: str) -> str:
    """What a release of a file is called."""
    return "standard input" if data == "-" else Path(data).name


def check_output(to: To) -> None:
    """Whether the release can be written as asked, before any work is done."""
    from shoal.connect import files

    if to.cells == "struct" and files.format_of(to.output or "-") == "csv":
        raise UsageError("CSV has no typed cells", where="--cells", hint="write Parquet or NDJSON: -o released.parquet")


def deliver(release: Release, to: To, separator: str | None) -> None:
    """Write the report, then the data, and say how it went; everything is made before a byte is written."""
    from shoal.connect import files

    target = to.output or "-"
    text = release.report.json() if to.json else release.report.text()
    page = None if to.report is None else release.page(to.report)
    if not to.dry_run:
        if to.report is not None and page is not None:
            files.write_text(page, to.report)
        if release.data is not None:
            files.write(release.data, target, separator=separator or ",")
        release.settle()
    (answer if to.json and (target != "-" or to.dry_run) else say)(text)
    if to.dry_run:
        say("dry run: nothing was written")
    elif to.report is not None:
        say(f"report: {to.report}")

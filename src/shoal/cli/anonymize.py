"""``shoal anonymize``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from shoal.cli.certifying import Certifying
from shoal.cli.options import (
    ByPolicy,
    Columns,
    Growing,
    How,
    OfCurves,
    Promised,
    Reading,
    To,
    read_for,
    wishes,
    with_tables,
)
from shoal.cli.terminal import File, all_types, answer, names, progress, say, telling
from shoal.core.errors import UsageError

if TYPE_CHECKING:
    from shoal.core.release import Release
    from shoal.release.base import Job


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
    certificate: str | None = None,
) -> None:
    """Release a table: what is promised is verified before a byte is written.

    Examples: `shoal anonymize patients.csv --quasi zip,sex,age --sensitive diag --k 5 --l 2 -o released.csv`;
    `shoal anonymize patients.csv --policy policy.yaml --view research -o released.parquet --report report.html`.

    Parameters
    ----------
    data
        CSV (also .gz), Parquet, NDJSON or Excel (`book.xlsx#sheet`); a folder or a pattern (`'data/*.csv'`) is one
        table; a table of a database (`postgresql://ana@host/clinic#patients`, `sqlite:clinic.db#patients`,
        `duckdb:…`, or `env:VARIABLE#patients` for an address with a password); `-` is standard input.
    certificate
        Also write a signed certificate: digests of input, policy, release and report, promises and findings. Needs
        `-o FILE` and the key `certificate`.
    """
    from shoal.core.originals import keep_apart
    from shoal.core.sealed_state import state_files
    from shoal.release.job import job_of

    data, to = with_tables(data, to)
    asked = wishes(to, by, columns, promised, curves, growing, how, title=title(data) if by.policy is None else None)
    if by.policy is None and not columns.quasi and not curves.series and growing.model is None:
        asked.refuse("quasi", "no quasi columns", "name the columns an outsider may know, or give a --policy")
    job = job_of(asked)
    states = [*state_files(growing.append), *state_files(growing.save_model)]
    targets = [to.output, to.report, *states, certificate, curves.representatives]
    keep_apart(targets, [data, by.policy, *state_files(growing.model)])
    check_output(to)
    named = {"input": data, "policy": by.policy, "output": to.output, "report": to.report}
    certifying = None if certificate is None else Certifying(certificate, to, named | {"means": curves.representatives})
    if not job.promises:
        raise UsageError("this view promises nothing", where=by.policy, hint="shoal view writes it")
    release = beyond_memory(job, data, to, reading)
    if release is None:
        frame = read_for(job, data, reading)
        with progress("anonymizing") as tell:
            release = job.fitting().run(frame, progress=tell)
    written = deliver(release, job, to, reading.split, data=data, representatives=curves.representatives)
    if certifying is not None:
        options = {
            "view": by.view,
            "waived": names(how.waive),
            "keep_order": how.keep_order,
            "append": bool(growing.append),
        }
        certifying.write(release, job, options, written)


def beyond_memory(job: Job, data: str, to: To, reading: Reading) -> Release | None:
    """The release of a table that does not fit in memory, written where it goes; nothing if it fits."""
    from shoal.connect.formats import format_of, parts_of
    from shoal.release.regional.choose import SCANNED, large_table

    types = all_types(reading.types, job.types if job.view is not None else {})
    if getattr(job, "engine", "here") == "spark":
        from shoal.runtime.spark.files import release_files

        if job.noun == "curves" and to.report is not None and Path(to.report).suffix not in (".json", ".txt"):
            hint = "write the report as .json or .txt"
            raise UsageError("curves that are released on Spark are not pictured", where="--report", hint=hint)
        target = None if to.dry_run else to.output or "-"
        with progress("anonymizing") as tell:
            return release_files(job, data, target, types=types, separator=reading.split, progress=tell)
    if getattr(job, "memory", None) is not None and (data == "-" or format_of(parts_of(data)[0]) not in SCANNED):
        raise UsageError(
            "has no effect on what is read as a whole",
            where="--memory",
            hint="leave it out, or write the table into a CSV, Parquet or NDJSON file first: those are read in regions",
        )
    large = large_table(job, data, types=types, separator=reading.split)
    if large is None:
        return None
    say(large.told)
    target = None if to.dry_run else to.output or "-"
    if left := large.left_behind(target):
        say(f"note: {left}")
    with progress("anonymizing") as tell:
        return large.release(
            target,
            separator=reading.split or ",",
            progress=tell,
            tell=telling({*job.schema.columns, *reading.types}),
        )


def title(data: str) -> str:
    """What a release of a file is called."""
    from shoal.connect.sql import Address, is_address

    if is_address(data):
        return Address.of(data).name
    return "standard input" if data == "-" else Path(data).name


def check_output(to: To) -> None:
    """Whether the release can be written as asked, before any work is done."""
    from shoal.connect.formats import format_of

    kind = format_of(to.output or "-")
    if to.cells == "struct" and kind in ("csv", "table"):
        raise UsageError(
            f"{'CSV' if kind == 'csv' else 'a database'} has no typed cells",
            where="--cells",
            hint="write Parquet or NDJSON: -o released.parquet",
        )


def deliver(
    release: Release, job: Job, to: To, separator: str | None, *, data: str, representatives: str | None = None
) -> str | None:
    """Write the report, then the data, and say how it went; everything is made before a byte is written.

    Where ``data`` is a table of a database, what leaves unchanged keeps its types. Gives the digest of the file.
    """
    from shoal.connect import files, sql

    target, written = to.output or "-", None
    text = release.report.json() if to.json else release.report.text()
    page = None if to.report is None else release.page(to.report)
    if not to.dry_run:
        # first the report: if its disk is full, no data have left
        if to.report is not None and page is not None:
            files.write_text(page, to.report)
        if release.data is not None and sql.is_address(target):
            like = data if sql.is_address(data) else None
            sql.write(release.data, target, like=like, untouched=job.unchanged, replace=to.replace)
        elif release.data is not None and not release.written:
            written = files.write(release.data, target, separator=separator or ",")
        if representatives is not None:
            files.write(release.curves.representative_frame(), representatives, separator=separator or ",")
        release.settle()  # last, so that a crash can only repeat a chunk of a growing table
    # where standard output is the data, the report is talk
    (answer if to.json and (target != "-" or to.dry_run) else say)(text)
    for warning in release.warnings:
        say(f"warning: {warning}")
    if to.dry_run:
        say("dry run: nothing was written")
    elif to.report is not None:
        say(f"report: {to.report}")
    return written

"""The rows of a table on disk as a method gets them: read as declared, derived, masked, and only columns it needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from shoal.connect.scan import Scan
from shoal.core.errors import UsageError
from shoal.core.schema import Schema
from shoal.release.regional import survey
from shoal.release.table import TableJob
from shoal.tables.base import Progress, silent
from shoal.views.derived import with_derived
from shoal.views.masked_table import MaskedTable, masked_table

SHOWN = ("quasi", "sensitive", "plain", "time", "subject")
Finish = Callable[[pl.DataFrame, Mapping[str, tuple[str, ...]]], pl.DataFrame]


def as_it_is(rows: pl.DataFrame, parts: Mapping[str, tuple[str, ...]]) -> pl.DataFrame:
    """Without a view nothing is hidden in place.

    >>> as_it_is(pl.DataFrame({"age": ["*"]}), {}).height
    1
    """
    return rows


@dataclass(frozen=True)
class Prepared:
    """Rows that can be scanned as often as needed, and what the release must know about where they came from."""

    scan: pl.LazyFrame
    schema: Schema
    height: int
    given: int  # rows of the input
    columns: tuple[str, ...]  # of the input
    check: Callable[[], None]  # raises if the input has changed since
    notes: tuple[str, ...] = ()
    finish: Finish = field(default=as_it_is)

    @property
    def empty(self) -> pl.DataFrame:
        """A frame of these columns, without a row."""
        return self.scan.collect_schema().to_frame()


def prepared(job: TableJob, source: Scan, folder: Path, progress: Progress = silent) -> Prepared:
    """The rows a job works on: of a view masked, and then written to ``folder``, because masks are applied once."""
    names = source.lazy.collect_schema().names()
    if job.view is None and not job.schema.derived:
        wanted = [c for c in names if c in job.schema.columns and job.schema[c].role in SHOWN]
        return Prepared(
            source.lazy.select(wanted), job.schema, source.height, source.height, tuple(names), source.check
        )
    if job.view is not None and job.view.windows:
        raise UsageError(
            "a mask over windows of rows needs the whole table in memory",
            where=f"views.{job.view.role}.masks",
            hint="give more memory (--memory), or mask value by value",
        )
    first: MaskedTable | None = None
    notes: list[str] = []
    place = folder / "masked"
    place.mkdir()
    seen = 0
    for number, batch in enumerate(survey.batches(source.lazy)):
        if job.view is None or job.policy is None:
            rows = with_derived(batch, job.schema)
            rows = rows.select(c for c in rows.columns if c in job.schema.columns and job.schema[c].role in SHOWN)
        else:
            made = masked_table(job.policy, job.view.role, batch, job.keys)
            first, rows = first or made, made.frame
            notes += [note for note in made.notes if note not in notes]
        rows.write_parquet(place / f"{number:06}.parquet", compression="lz4")
        seen += batch.height
        progress(0.0, f"masking {seen:,} of {source.height:,} rows")
    source.check()
    scan = pl.scan_parquet(place / "*.parquet")
    if first is None:
        return Prepared(scan, job.schema, seen, source.height, tuple(names), lambda: None)
    return Prepared(scan, first.schema, seen, source.height, tuple(names), lambda: None, tuple(notes), first.finish)

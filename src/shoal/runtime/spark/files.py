"""``--engine spark``: files in, the same job on Spark, a file out."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

import polars as pl

from shoal.connect.formats import format_of, parts_of
from shoal.connect.pieces import write_scan
from shoal.connect.scan import scanned
from shoal.connect.sql import is_address
from shoal.core.errors import UsageError
from shoal.core.release import Release
from shoal.release.base import Job
from shoal.release.curves import CurvesJob
from shoal.release.regional.choose import LARGEST, SCANNED, rows_that_fit
from shoal.release.regional.files import private_folder
from shoal.release.table import TableJob
from shoal.runtime.spark import curves
from shoal.runtime.spark.session import checkpoints_in, local_session
from shoal.runtime.spark.table import released
from shoal.runtime.spark.work import FIGURES
from shoal.tables.base import Progress, silent

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def release_files(
    job: Job,
    data: str,
    target: str | None,
    *,
    types: Mapping[str, str],
    separator: str | None = None,
    progress: Progress = silent,
) -> Release:
    """Release files of a table or of curves through Spark into one file; without a target nothing stays.

    What is not Parquet is read as everywhere and handed to Spark as Parquet. Spark must see the folder of the output.
    """
    assert isinstance(job, TableJob | CurvesJob)
    if data == "-" or is_address(data) or format_of(parts_of(data)[0]) not in SCANNED:
        raise UsageError("Spark reads files", where="--engine", hint="give CSV, Parquet or NDJSON files")
    if target is not None and is_address(target):
        raise UsageError("Spark writes files here", where="--output", hint="write CSV, Parquet or NDJSON")
    session = local_session()
    beside = Path(tempfile.gettempdir()) if target in (None, "-") else Path(str(target)).parent
    with private_folder(beside.absolute()) as folder, checkpoints_in(session, folder / "checkpoints"):
        source = scanned(data, folder, separator, types, job.exact)
        place = folder / "input"
        source.lazy.sink_parquet(pl.PartitionBy(place, max_rows_per_file=LARGEST))
        source.check()
        release = _released(job, session.read.parquet(str(place)), progress)
        rows = _rows_of(
            release.data,
            folder,
            as_judged=isinstance(job, TableJob) and job.view is None and job.schema.subject is None,
        )
        progress(0.95, f"writing {release.report.released:,} rows")
        kind = "csv" if target == "-" else format_of(target) if target is not None else "parquet"
        made = str(folder / "out") if target in (None, "-") else str(target)
        write_scan(rows, made, separator=separator or ",", kind=kind)
        if target == "-":
            with Path(made).open("rb") as whole:
                shutil.copyfileobj(whole, sys.stdout.buffer, 1 << 20)
            sys.stdout.buffer.flush()
    release.data = None if target in (None, "-") else pl.LazyFrame()
    release.written = True
    return release


def _released(job: TableJob | CurvesJob, data: DataFrame, progress: Progress) -> Release:
    if isinstance(job, CurvesJob):
        return curves.released(job, data, most=LARGEST)
    most = LARGEST if job.memory is None else min(LARGEST, rows_that_fit(job.memory, len(job.schema.columns)) // 2)
    return released(job, data, most=most, progress=progress, steady=True)


def _rows_of(data: DataFrame, folder: Path, *, as_judged: bool) -> pl.LazyFrame:
    """The rows of a release: from the very files that were judged, where nothing has to be taken away or put in."""
    if as_judged:
        files = sorted(unquote(urlsplit(file).path) for file in data.inputFiles())
        if files and all(Path(file).is_file() for file in files):
            judged = pl.scan_parquet(files)
            return judged.filter(pl.col(FIGURES).is_null()).select(data.columns)
    place = folder / "release"
    data.write.parquet(str(place))
    return pl.scan_parquet(sorted(place.glob("*.parquet")))

"""``--engine spark``: files in, the same job on Spark, a file out."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import polars as pl

from shoal.connect.formats import format_of, parts_of
from shoal.connect.pieces import write_pieces
from shoal.connect.scan import scanned
from shoal.connect.sql import is_address
from shoal.core.errors import UsageError
from shoal.core.release import Release
from shoal.release.base import Job
from shoal.release.regional.choose import LARGEST, SCANNED, rows_that_fit
from shoal.release.regional.files import private_folder
from shoal.release.table import TableJob
from shoal.runtime.spark.session import checkpoints_in, local_session
from shoal.runtime.spark.table import released
from shoal.tables.base import Progress, silent


def release_files(
    job: Job,
    data: str,
    target: str | None,
    *,
    types: Mapping[str, str],
    separator: str | None = None,
    progress: Progress = silent,
) -> Release:
    """Release a table of files through Spark into one file; without a target everything is done but nothing stays.

    What is not Parquet is read as everywhere and handed to Spark as Parquet. Spark must see the folder of the output.
    """
    assert isinstance(job, TableJob)
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
        most = LARGEST if job.memory is None else min(LARGEST, rows_that_fit(job.memory, len(job.schema.columns)) // 2)
        release = released(job, session.read.parquet(str(place)), most=most, progress=progress)
        release.data.write.parquet(str(folder / "release"))
        pieces = sorted((folder / "release").glob("*.parquet"))
        kind = "csv" if target == "-" else format_of(target) if target is not None else "parquet"
        made = str(folder / "out") if target in (None, "-") else str(target)
        write_pieces(pieces, made, separator=separator or ",", kind=kind)
        if target == "-":
            with Path(made).open("rb") as whole:
                shutil.copyfileobj(whole, sys.stdout.buffer, 1 << 20)
            sys.stdout.buffer.flush()
    release.data = None if target in (None, "-") else pl.LazyFrame()
    release.written = True
    return release

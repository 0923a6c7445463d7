"""Whether a table fits in memory, and if not, how it is released."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import polars as pl

from shoal.connect.formats import format_of, parts_of
from shoal.connect.scan import rows_about, scanned
from shoal.connect.sql import is_address
from shoal.connect.types import Tell, quiet
from shoal.core.errors import UsageError
from shoal.core.release import Release
from shoal.core.schema import refuse_limits
from shoal.release.base import Job
from shoal.release.table import TableJob
from shoal.tables.base import Progress, silent

if TYPE_CHECKING:
    from shoal.release.regional.scattered import Room

# measured on a table of 7 columns: 170 MB for the program, 1,200 bytes per row while `local` works
PROGRAM, PER_ROW, PER_CELL = 200_000_000, 500, 100
LARGEST = 1 << 18  # rows of a region: more lose hardly less, and several are worked on at once
AT_ONCE = 3  # regions that memory must hold: two at work, and what is read or written meanwhile
PRIVATE = ".shoal-"  # how the name of a private folder begins
SHOWN = 3  # of these that are named
SCANNED = ("csv", "parquet", "ndjson")


def rows_that_fit(memory: int, columns: int) -> int:
    """How many rows of so many columns can be released at once.

    >>> rows_that_fit(2_000_000_000, 7)
    1500000
    """
    return max(1, (memory - PROGRAM) // (PER_ROW + PER_CELL * max(1, columns)))


def free_memory() -> int:
    """Bytes that are free now, as far as the system tells.

    >>> free_memory() > 0
    True
    """
    try:
        lines = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
        return int(lines["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


@dataclass(frozen=True)
class LargeTable:
    """A table on disk that does not fit in memory at once, and the job that releases it."""

    job: TableJob
    data: str
    rows: int  # about so many
    most: int  # rows that are worked on at once
    memory: int
    types: Mapping[str, str] = field(default_factory=dict)
    separator: str | None = None
    at_once: int = 1  # regions that are worked on together: changes the time and not the release
    fits: int = 0  # rows that can be released at once

    @property
    def told(self) -> str:
        """What a person should know before it starts."""
        return (
            f"about {self.rows:,} rows do not fit in {self.memory / 10**9:.1f} GB: released in regions of up to "
            f"{self.most:,} rows"
        )

    def left_behind(self, target: str | None) -> str:
        """A word on folders of earlier runs beside the output; nothing if there are none."""
        if not (found := sorted(_beside(target).glob(f"{PRIVATE}*"))):
            return ""
        more = f" and {len(found) - SHOWN:,} more" if len(found) > SHOWN else ""
        return (
            f"original rows of other runs lie in {', '.join(map(str, found[:SHOWN]))}{more}; a run that was killed "
            "cannot remove its folder: remove it when no run is at work"
        )

    @property
    def room(self) -> Room:
        """What the memory holds."""
        from shoal.release.regional.scattered import Room

        return Room(self.most, self.at_once, self.memory // 8, self.fits)

    def release(
        self, target: str | None, *, separator: str = ",", progress: Progress = silent, tell: Tell = quiet
    ) -> Release:
        """Release it into a file; without a target everything is done but nothing stays."""
        # here: every release asks whether its table is large, and few are
        from shoal.release.regional.files import private_folder, release_files
        from shoal.release.regional.prepared import prepared

        if target is not None and is_address(target):
            raise UsageError(
                "a table that does not fit in memory is written to a file",
                where="--output",
                hint="write CSV, Parquet or NDJSON and load it, or give more memory (--memory)",
            )
        with private_folder(_beside(target)) as folder:
            source = scanned(
                self.data, folder, self.separator, self.types, self.job.exact, wanted=_wanted(self.job), tell=tell
            )
            rows = prepared(self.job.fitting(), source, folder, progress)
            place = str(folder / "nowhere.parquet") if target is None else target
            release = release_files(self.job, rows, place, folder, self.room, separator=separator, progress=progress)
            release.written = True
            release.data = None if target in (None, "-") else pl.LazyFrame()
            return release


def _beside(target: str | None) -> Path:
    """Where the private folder of a release lies."""
    return Path(tempfile.gettempdir()) if target is None or target == "-" else Path(target).parent


def _wanted(job: TableJob) -> set[str] | None:
    """The columns a job reads; all, if a view says it."""
    if job.view is not None or job.schema.derived:
        return None
    return set(job.schema.columns)


def large_table(
    job: Job, data: str, *, types: Mapping[str, str] | None = None, separator: str | None = None
) -> LargeTable | None:
    """The table, if it is a file (or several) that does not fit in the memory the job may take; otherwise nothing.

    >>> from shoal.release.job import job_of
    >>> from shoal.release.wishes import Wishes
    >>> large_table(job_of(Wishes({"quasi": ["age"], "k": 5})), "-") is None  # a pipe is read whole
    True
    """
    if not isinstance(job, TableJob) or data == "-" or is_address(data):
        return None
    parts = parts_of(data)
    if format_of(parts[0]) not in SCANNED:
        return None
    memory = job.memory or free_memory() // 2
    rows, columns = rows_about(parts, separator)
    fit = rows_that_fit(memory, columns)
    if rows <= fit:
        return None
    refuse_in_regions(job)
    most = max(1, min(fit // AT_ONCE, LARGEST))
    at_once = max(1, min(os.cpu_count() or 1, fit // most - 1))
    return LargeTable(job, data, rows, most, memory, types or {}, separator, at_once, fit)


def refuse_in_regions(job: TableJob) -> None:
    """What a release in regions cannot do is refused before any work is done.

    >>> from shoal.release.job import job_of
    >>> from shoal.release.wishes import Wishes
    >>> refuse_in_regions(job_of(Wishes({"quasi": ["age"], "k": 5, "method": "datafly"})))
    Traceback (most recent call last):
    shoal.core.errors.UsageError: --method: datafly gives whole columns one level, which regions would not...
    """
    why = {
        "--keep-order": (job.keep_order, "rows of a table that does not fit in memory leave in another order"),
        "--previous": (bool(job.previous), "earlier releases are compared with a table in memory only"),
        "--register": (job.register is not None, "a register is compared with a table in memory only"),
        "--save-model": (job.save_model is not None, "a model is made of a table in memory only"),
        "--method": (
            not job.method.local_recoding,
            f"{job.method.use} gives whole columns one level, which regions would not",
        ),
    }
    refuse_limits(job.schema, "a part that is cut in two by regions may find no group; give more memory (--memory)")
    for option, (asked, words) in why.items():
        if asked:
            raise UsageError(words, where=option, hint="leave it out, or give more memory (--memory)")
    if strange := next((p for p in job.promises if p.compares_with_all and p.sensitive is None), None):
        raise UsageError(
            f"{strange.use} compares groups with the whole release",
            where="promises",
            hint="give more memory (--memory)",
        )
    suppress = msgspec.structs.asdict(job.method).get("suppress", 0)
    if suppress and any(p.compares_with_all for p in job.promises):
        raise UsageError(
            "what the method suppresses in one region changes what groups of others are compared with",
            where="suppress",
            hint="leave it out, or give more memory (--memory)",
        )

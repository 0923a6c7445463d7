"""What a file is, by its name; and the files that a folder or a pattern means."""

from __future__ import annotations

import glob
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from shoal.connect.sql.address import EXAMPLE, is_address
from shoal.core.errors import InputError, UsageError
from shoal.core.passwords import without_passwords

Format = Literal["csv", "parquet", "ndjson", "excel", "table"]
ENDINGS: Mapping[str, Format] = {
    ".csv": "csv",
    ".tsv": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".ndjson": "ndjson",
    ".jsonl": "ndjson",
    ".xlsx": "excel",
    ".xlsm": "excel",
    ".xlsb": "excel",
    ".xls": "excel",
    ".ods": "excel",
}
COMPRESSED = (".gz",)
SHEET = "#"  # book.xlsx#visits: a sheet of a workbook


def format_of(path: str) -> Format:
    """What a file is, by its name; standard input and output are CSV.

    >>> format_of("patients.csv.gz"), format_of("book.xlsx#visits")
    ('csv', 'excel')
    """
    if path == "-":
        return "csv"
    if is_address(path):
        return "table"
    found = ENDINGS.get(_ending(file_of(path)))
    if found is None and ("://" in path or without_passwords(path) != path):
        raise UsageError("neither a file of a known format nor a database we know", where=path, hint=EXAMPLE)
    if found is None:
        raise UsageError(
            "cannot tell the format from the name",
            where=path,
            hint=f"use one of {', '.join(ENDINGS)} (CSV and NDJSON also with .gz)",
        )
    return found


def lines_of(path: str) -> Format:
    """What a file of events is, by its name; those may be compressed with zstd, too.

    >>> lines_of("visits.ndjson.zst"), lines_of("visits.csv.gz")
    ('ndjson', 'csv')
    """
    return format_of(path.removesuffix(".zst"))


def named_lines(path: str) -> Format | None:
    """The same where a name says it, else nothing.

    >>> named_lines("visits.csv.zst"), named_lines("released.dat")
    ('csv', None)
    """
    return ENDINGS.get(_ending(file_of(path.removesuffix(".zst"))))


def file_of(path: str) -> str:
    """The file of a path: the name of a sheet stands behind it.

    >>> file_of("book.xlsx#visits"), file_of("a#b.csv")
    ('book.xlsx', 'a#b.csv')
    """
    file, mark, _ = path.rpartition(SHEET)
    return file if mark and ENDINGS.get(_ending(file)) == "excel" else path


def parts_of(path: str) -> list[str]:
    """The files of a table: one, or those of a folder or a pattern, by name; all of one format.

    >>> parts_of("-"), parts_of("patients.csv")
    (['-'], ['patients.csv'])
    """
    if is_address(path):
        return [path]
    place = Path(path)
    if place.is_dir():
        found = [str(p) for p in folder(place)]
    # a file may have brackets in its name: one that is there is no pattern
    elif path != "-" and glob.has_magic(path) and not place.exists():
        found = sorted(name for name in glob.glob(path, recursive=True) if Path(name).is_file())  # noqa: PTH207
        if not found:
            raise InputError("there is no such file", where=path, hint="no name fits the pattern")
    else:
        return [path]
    # by name, so that the same folder is the same table everywhere
    kinds = {name: format_of(name) for name in found}
    other = next((name for name, kind in kinds.items() if kind != kinds[found[0]]), None)
    if other is not None:
        raise UsageError(
            f"expected files of one format: {Path(found[0]).name} is {kinds[found[0]]}, {Path(other).name} is "
            f"{kinds[other]}",
            where=path,
            hint="name those that are one table with a pattern, for example 'data/*.csv'",
        )
    return found


def folder(path: Path) -> list[Path]:
    """The files of a folder whose format we know, by name; hidden ones are left alone."""
    found = sorted(p for p in path.iterdir() if p.is_file() and _ending(p.name) in ENDINGS and p.name[0] != ".")
    if not found:
        raise UsageError("there is no file to read", where=str(path), hint=f"names end in {', '.join(ENDINGS)}")
    return found


def title_of(path: str) -> str:
    """What a table is called, by its path: the name of the file or of the folder, without its ending.

    >>> title_of("visits.csv.gz"), title_of("clinic/*.csv"), title_of("-")
    ('visits', 'clinic', 'table')
    """
    if is_address(path):
        return path.rpartition("#")[2] or "table"
    name = Path(path).parent.name if glob.has_magic(Path(path).name) else Path(path).name
    return name.split(".")[0] or "table" if path != "-" else "table"


def _ending(name: str) -> str:
    path = Path(name)
    return (path.with_suffix("").suffix if path.suffix in COMPRESSED else path.suffix).lower()

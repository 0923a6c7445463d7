"""A table that lies in several files on disk, written as one: whole, read back and compared, or not at all."""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import polars as pl

from shoal.connect.files import COMPARED, replacing
from shoal.connect.formats import Format, format_of
from shoal.core.errors import OutputError, UsageError

ROWS = 1 << 19
_Frame = TypeVar("_Frame", pl.DataFrame, pl.LazyFrame)


def write_pieces(pieces: Sequence[Path], target: str, *, separator: str = ",", kind: Format | None = None) -> None:
    """Write Parquet files one after the other as one table. It takes its place when it reads back as it should.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     piece = Path(folder, "0.parquet")
    ...     pl.DataFrame({"age": ["[20, 29]"]}).write_parquet(piece)
    ...     write_pieces([piece, piece], f"{folder}/r.csv")
    ...     Path(folder, "r.csv").read_text()
    'age\\n"[20, 29]"\\n"[20, 29]"\\n'
    """
    write_scan(with_texts(pl.scan_parquet(list(pieces))), target, separator=separator, kind=kind)


def write_scan(scan: pl.LazyFrame, target: str, *, separator: str = ",", kind: Format | None = None) -> None:
    """Write rows that are scanned from files, in their order, as :func:`write_pieces` does.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write_scan(pl.LazyFrame({"age": ["*"]}), f"{folder}/r.csv")
    ...     Path(folder, "r.csv").read_text()
    'age\\n*\\n'
    """
    kind = kind or format_of(target)
    if kind not in ("csv", "parquet", "ndjson"):
        raise UsageError(
            "a table beyond memory is written to a file", where=target, hint="write CSV, Parquet or NDJSON"
        )
    if kind == "csv" and any(dtype.is_nested() for dtype in scan.collect_schema().dtypes()):
        raise UsageError("CSV has no place for cells with parts", where=target, hint="write Parquet or NDJSON")
    with replacing(Path(target)) as out:
        packed = Path(target).suffix == ".gz"
        if packed:
            _write_packed(scan, out, kind, separator)
        elif kind == "parquet":
            # in order: the order of a release is drawn, and tells nothing
            scan.sink_parquet(out, maintain_order=True)
        elif kind == "ndjson":
            scan.sink_ndjson(out, maintain_order=True)
        else:
            scan.sink_csv(out, separator=separator, maintain_order=True)
        if not packed:  # of a compressed file the checksum of its format tells
            _compare(scan, out, target, kind, separator)


def with_texts(rows: _Frame) -> _Frame:
    """Rows whose categories are texts again: the list of a column's categories would travel with every part of it.

    >>> with_texts(pl.DataFrame({"age": ["*"]}, schema={"age": pl.Categorical})).dtypes
    [String]
    """
    return rows.with_columns(pl.col(pl.Categorical).cast(pl.String))


def _write_packed(scan: pl.LazyFrame, out: Path, kind: Format, separator: str) -> None:
    with gzip.open(out, "wb", compresslevel=6) as stream:
        for number, rows in enumerate(scan.collect_batches(chunk_size=ROWS, maintain_order=True, engine="streaming")):
            if kind == "ndjson":
                stream.write(rows.write_ndjson().encode())
            else:
                stream.write(rows.write_csv(separator=separator, include_header=number == 0).encode())


def _compare(scan: pl.LazyFrame, part: Path, target: str, kind: Format, separator: str) -> None:
    schema = scan.collect_schema()
    names = [name for name, dtype in schema.items() if dtype in COMPARED]
    if kind == "parquet":
        back = pl.scan_parquet(part)
    elif kind == "ndjson":
        # the reader of polars panics at the smaller whole numbers
        back = pl.scan_ndjson(part, schema={n: pl.Int64 if schema[n].is_integer() else schema[n] for n in names})
    else:
        back = pl.scan_csv(part, separator=separator, infer_schema=False)
    try:
        written, wanted = (_steps(s.select(names)) for s in (back, scan))
        same = all(
            found.height == asked.height
            and all(found[n].cast(schema[n], strict=False).eq_missing(asked[n]).all() for n in names)
            for found, asked in zip(written, wanted, strict=True)
        )
    except (pl.exceptions.PolarsError, ValueError):
        same = False
    if not same:
        raise OutputError(
            "what was written does not read back as it should",
            where=target,
            hint="nothing was replaced; is the disk full or failing?",
        )


def _steps(scan: pl.LazyFrame) -> Iterator[pl.DataFrame]:
    """The rows in order, ROWS at a time."""
    waiting: list[pl.DataFrame] = []
    held = 0
    for rows in scan.collect_batches(chunk_size=ROWS, maintain_order=True, engine="streaming"):
        waiting.append(rows)
        held += rows.height
        while held >= ROWS:
            all_ = pl.concat(waiting)
            yield all_[:ROWS]
            # both sides in steps of the same rows: their own batches differ
            waiting, held = [all_[ROWS:]], held - ROWS
    if held:
        yield pl.concat(waiting)

"""Workbooks (Excel, OpenDocument): one sheet as a table. Needs the extra ``excel``."""

from __future__ import annotations

import logging
from typing import Any

import polars as pl

from shoal.connect.formats import SHEET, file_of
from shoal.connect.types import Tell, quiet
from shoal.core.columns import require_once
from shoal.core.errors import InputError, UsageError

DIGITS = 15  # of a number in a workbook; further ones were lost when it was saved


def read_sheet(raw: bytes, path: str, tell: Tell = quiet) -> pl.DataFrame:
    """The sheet that a path names, or the only one that is not empty. Errors name sheet and column, never a cell."""
    library = _library(path)
    try:
        book = library.read_excel(raw)
        name = _chosen(book, path)
        # names as texts: a year in the first row is a name, not a number
        header = book.load_sheet(name, header_row=None, n_rows=1, dtypes="string").to_polars()
        names = list(header.row(0)) if header.height else []
        where = f"{file_of(path)}, sheet {name!r}"
        if None in names:
            at = names.index(None) + 1
            raise InputError(f"column {at} has no name", where=f"{where}, row 1", hint="expected a row of names first")
        require_once(names, f"{where}, row 1")
        # types by all rows: a first hundred of numbers says nothing about the rest
        frame = book.load_sheet(name, schema_sample_rows=None, skip_whitespace_tail_rows=True).to_polars()
    except library.FastExcelError as error:
        raise InputError(
            f"cannot be read as a workbook ({type(error).__name__})", where=path, hint="is the file whole?"
        ) from None
    if not frame.height:
        raise InputError("the sheet has no rows", where=where, hint="expected a row of names, and rows below it")
    return pl.DataFrame([as_shown(column, tell) for column in frame.iter_columns()])


def as_shown(column: pl.Series, tell: Tell = quiet) -> pl.Series:
    """A column as the workbook shows it: cells know floats and times only, of which some are whole numbers and dates.

    >>> as_shown(pl.Series([4e12, None, 5.0])).to_list()
    [4000000000000, None, 5]
    """
    if not column.count():
        return column
    if column.dtype.is_float() and column.is_finite().all() and (column == column.round()).all():
        long = int((column.abs() >= 10**DIGITS).sum())
        if long:
            words = f"{long} whole numbers of more than {DIGITS} digits: a workbook keeps {DIGITS} of them"
            tell(column.name, f"{words}, so the last ones may be lost; type such numbers as text there")
        return column.cast(pl.Int64) if (column.abs() < 2**63).all() else column
    if isinstance(column.dtype, pl.Datetime) and (column == column.dt.truncate("1d")).all():
        return column.cast(pl.Date)
    return column


def sheets_of(path: str) -> list[str]:
    """The sheets of a workbook that are not empty, in their order."""
    library = _library(path)
    try:
        return _filled(library.read_excel(path))
    except library.FastExcelError as error:
        raise InputError(
            f"cannot be read as a workbook ({type(error).__name__})", where=path, hint="is the file whole?"
        ) from None


def _filled(book: Any) -> list[str]:
    return [n for n in book.sheet_names if book.load_sheet(n, header_row=None, n_rows=1).height]


def _chosen(book: Any, path: str) -> str:
    named = path[len(file_of(path)) + len(SHEET) :]
    if named:
        if named not in book.sheet_names:
            raise UsageError(f"the workbook has no sheet {named!r}", where=file_of(path), hint=_sheets(book, path))
        return named
    filled = _filled(book)
    if not filled:
        raise InputError("the file is empty", where=path, hint="expected a row of names, and rows below it")
    if len(filled) > 1:
        raise UsageError(f"the workbook has {len(filled)} sheets", where=path, hint=_sheets(book, path))
    return str(filled[0])


def _sheets(book: Any, path: str) -> str:
    listed = ", ".join(f"{file_of(path)}{SHEET}{name}" for name in book.sheet_names[:5])
    return f"name one: {listed}{', …' if len(book.sheet_names) > 5 else ''}"


def _library(path: str) -> Any:
    logging.getLogger("fastexcel").setLevel(logging.ERROR)  # what it doubts is read and told here
    try:
        import fastexcel
    except ImportError:
        raise UsageError(
            "a workbook is read by an extra package",
            where=path,
            hint="install it with `pip install 'shoal[excel]'`, or save the sheet as CSV",
        ) from None
    return fastexcel

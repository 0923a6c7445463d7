"""A table of a database as a frame: every value as it stands there, or its text; one statement, so one state of it."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from contextlib import closing
from typing import Any

import polars as pl

from shoal.connect.propose import infer
from shoal.connect.sql.address import Address
from shoal.connect.sql.dialects import DIALECTS, catalogue, quoted
from shoal.connect.sql.failures import told
from shoal.connect.types import Tell, cast, declarations, quiet
from shoal.core.errors import InputError
from shoal.core.originals import register

DECIMAL = re.compile(r"^(?:numeric|decimal)(?:\((\d+),\s*(\d+)\))?$")
DIGITS = 38  # a decimal of polars has no more
TEXTS = ("char", "text", "clob")  # what SQLite's declared types of texts have in their names


def read(
    path: str | Address,
    *,
    types: Mapping[str, str] | None = None,
    exact: Collection[str] = frozenset(),
    tell: Tell = quiet,
) -> pl.DataFrame:
    """The whole table, from one statement: rows that others change meanwhile are as they were at its start.

    ``types`` and ``exact`` as in :func:`shoal.connect.files.read`: they speak about columns of texts.
    """
    address = path if isinstance(path, Address) else Address.of(path)
    dialect = DIALECTS[address.kind]
    with told(address.shown), closing(dialect.connect(address)) as connection:
        with closing(connection.cursor()) as cursor:
            register(identity(cursor, address))
            frame = fetch(cursor, address)
        connection.rollback()
    frame = cast(frame, declarations(types), address.shown, tell)
    if address.kind != "sqlite":
        return frame
    # SQLite has no dates or decimals: their texts mean what the declaration says
    with closing(dialect.connect(address)) as connection, closing(connection.cursor()) as cursor:
        kinds = declared(cursor, address)
    meant = [n for n, kind in kinds.items() if kind and not any(word in kind for word in TEXTS)]
    left = {name for name in frame.columns if name not in meant} | set(types or ())
    return infer(frame, left, exact, tell)


def declared(cursor: Any, address: Address) -> dict[str, str]:
    """The columns of a table and their types, as the database calls them."""
    cursor.execute(catalogue(DIALECTS[address.kind].columns, address))
    found = {str(name): str(kind) for name, kind in cursor.fetchall()}
    if not found:
        raise InputError(
            "there is no such table", where=address.shown, hint="check its name; write schema.table if it is in one"
        )
    return found


def identity(cursor: Any, address: Address) -> str:
    """The same for the same table, by whatever address: so that a release never replaces what it was made of."""
    cursor.execute(catalogue(DIALECTS[address.kind].identity, address))
    return f"{address.kind}://{cursor.fetchone()[0]}"


def fetch(cursor: Any, address: Address) -> pl.DataFrame:
    """The rows of a table, by an open cursor."""
    kinds = declared(cursor, address)
    if address.kind == "sqlite":
        return _fetch_sqlite(cursor, address, kinds)
    native = DIALECTS[address.kind].native
    asked = [
        quoted(name)
        if re.sub(r"\(\d+\)", "", kind) in native
        else f"cast({quoted(name)} as text) as {quoted(name)}"  # an enum's categories would travel along, too
        for name, kind in kinds.items()
    ]
    cursor.execute(f"select {', '.join(asked)} from {quoted(*address.parts)}")
    frame = _frame(cursor.fetch_arrow_table())
    if address.kind == "postgresql":
        _finite(cursor, frame, address)
    for name, kind in kinds.items():
        found = DECIMAL.match(kind)
        if found is not None:
            frame = frame.with_columns(_decimal(frame[name], found))
    return frame


def _fetch_sqlite(cursor: Any, address: Address, kinds: Mapping[str, str]) -> pl.DataFrame:
    """SQLite lets every cell have a type of its own: a column must have one, or be numbers."""
    table = quoted(*address.parts)
    asked = []
    for at, name in enumerate(kinds, 1):
        cursor.execute(f"select distinct typeof({quoted(name)}) from {table}")
        held = {str(row[0]) for row in cursor.fetchall()} - {"null"}
        if held == {"integer", "real"}:
            asked.append(f"cast({quoted(name)} as real) as {quoted(name)}")
            cursor.execute(
                f"select count(*) from {table} where typeof({quoted(name)}) = 'integer' "
                f"and abs({quoted(name)}) > 9007199254740992"
            )
            if cursor.fetchone()[0]:
                raise InputError(
                    f"column {at} has points and integers too long for them", where=address.shown, hint="store texts"
                )
        elif len(held) > 1:
            raise InputError(
                f"column {at} holds {' and '.join(sorted(held))} values",
                where=address.shown,
                hint="one kind of value per column: update the table, or read a view that casts it",
            )
        else:
            asked.append(quoted(name))
    cursor.execute(f"select count(*) from {table}")
    rows = int(cursor.fetchone()[0])
    # the driver takes a column's type from its first batch: with nulls there it would be wrong
    cursor.adbc_statement.set_options(**{"adbc.sqlite.query.batch_rows": str(max(rows, 1))})
    cursor.execute(f"select {', '.join(asked)} from {table}")
    return _frame(cursor.fetch_arrow_table())


def _frame(table: Any) -> pl.DataFrame:
    """Without the names that the driver gives to types that Arrow does not know."""
    frame = pl.from_arrow(table.cast(table.schema.remove_metadata()))
    assert isinstance(frame, pl.DataFrame)
    return frame


def _decimal(texts: pl.Series, found: re.Match[str]) -> pl.Series:
    """Decimals as such where no digit is lost; others stay text."""
    if found[1] is not None:
        precision, scale = int(found[1]), int(found[2])
    else:
        most = texts.str.len_chars() - texts.str.find(".", literal=True) - 1
        precision, scale = DIGITS, int(most.max() or 0)  # type: ignore[arg-type]
    if precision > DIGITS:
        return texts
    made = texts.cast(pl.Decimal(precision, scale), strict=False)
    return made if made.null_count() == texts.null_count() else texts


def _finite(cursor: Any, frame: pl.DataFrame, address: Address) -> None:
    """PostgreSQL has dates at infinity, which the driver turns into some day: they are looked for in the database."""
    for at, (name, dtype) in enumerate(frame.schema.items(), 1):
        if dtype == pl.Date or isinstance(dtype, pl.Datetime):
            cursor.execute(f"select 1 from {quoted(*address.parts)} where not isfinite({quoted(name)}) limit 1")
            if cursor.fetchall():
                raise InputError(f"column {at} has times at infinity", where=address.shown, hint="make them null")

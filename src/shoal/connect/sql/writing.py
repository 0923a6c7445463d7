"""A release into a table: staged, written, read back, compared and put into place in one transaction."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Mapping
from contextlib import closing
from typing import Any

import polars as pl

from shoal.connect.sql.address import Address
from shoal.connect.sql.dialects import DIALECTS, Dialect, quoted
from shoal.connect.sql.failures import told
from shoal.connect.sql.reading import declared, fetch, identity
from shoal.core.errors import OutputError, UsageError
from shoal.core.originals import refuse

BESIDE = (".wal", "-journal", "-wal", "-shm")  # what DuckDB and SQLite write beside their file
ROUNDS = 4  # of filling what is free; one is enough unless somebody else writes


def write(
    frame: pl.DataFrame,
    path: str | Address,
    *,
    like: str | Address | None = None,
    untouched: Collection[str] = (),
    replace: bool = False,
) -> None:
    """Write a table whole, or leave the database as it was; never onto a table that this command read.

    Columns that left as they came (``untouched``) get the type they have in the table they come from (``like``), if
    that is a database of the same kind. A table that exists is replaced only if asked; who may read it may read the
    new one, too.
    """
    address = path if isinstance(path, Address) else Address.of(path)
    kinds = {} if like is None else _like(like, address.kind, untouched)
    file = address.file
    new_file = file is not None and not file.exists()
    done = False
    try:
        with told(address.shown, writing=True), closing(DIALECTS[address.kind].connect(address, writing=True)) as there:
            with closing(there.cursor()) as cursor:
                if address.kind == "sqlite":  # else the rows of a table that is replaced stay readable in the file
                    cursor.execute("pragma secure_delete = on")
                    cursor.fetchall()
                _apart(identity(cursor, address), address)
                store(cursor, frame, address, kinds, replace=replace)
            there.commit()
            done = True
            if replace and address.kind == "duckdb" and not new_file:
                overwrite_free_blocks(there, address)
    finally:
        if file is not None and new_file and not done:
            for ending in ("", *BESIDE):
                file.with_name(file.name + ending).unlink(missing_ok=True)


def overwrite_free_blocks(there: Any, address: Address) -> None:
    """Write over what a DuckDB file holds of tables that were dropped: it fills freed blocks before it grows.

    So a table of random letters that leaves no block free, dropped again, has been written over all of them.
    """
    filler = quoted(f"shoal_{secrets.token_hex(8)}")
    try:
        for _ in range(ROUNDS):
            free, size = _free_blocks(there)
            if not free:
                return
            letters = " || ".join(["md5(random()::varchar)"] * 4)  # little of it can be compressed away
            _done(there, f"create table {filler} as select {letters} as x from range({(free + 1) * size // 64})")
            full = not _free_blocks(there)[0]
            _done(there, f"drop table {filler}")
            _done(there, "force checkpoint")
            if full:
                return
    except Exception as error:  # another connection may hold what the checkpoint needs
        raise _left_behind(address) from error
    raise _left_behind(address)


def _free_blocks(there: Any) -> tuple[int, int]:
    """How many blocks of the file are free, and how many bytes each has."""
    _done(there, "force checkpoint")
    with closing(there.cursor()) as cursor:
        cursor.execute("select free_blocks, block_size from pragma_database_size()")
        free, size = cursor.fetchall()[0]
    there.commit()
    return int(free), int(size)


def _done(there: Any, command: str) -> None:
    with closing(there.cursor()) as cursor:
        cursor.execute(command)
        cursor.fetchall()
    there.commit()


def _left_behind(address: Address) -> OutputError:
    return OutputError(
        "the release is in its place, and what it replaced can still be read in free blocks of the file",
        where=address.shown,
        hint="close other connections and write it again with --replace, or write a new file",
    )


def _apart(table: str, address: Address) -> None:
    """Raise if this command read the table, by whatever address."""
    try:
        refuse(table)
    except UsageError:
        raise UsageError(
            "the output would replace the table that is read",
            where=address.shown,
            hint="it may be the only copy of the data: give the output another name",
        ) from None


def _like(path: str | Address, kind: str, untouched: Collection[str]) -> dict[str, str]:
    source = path if isinstance(path, Address) else Address.of(path)
    if source.kind != kind:
        return {}
    with told(source.shown), closing(DIALECTS[kind].connect(source)) as there, closing(there.cursor()) as cursor:
        return {name: found for name, found in declared(cursor, source).items() if name in untouched}


def store(
    cursor: Any, frame: pl.DataFrame, address: Address, kinds: Mapping[str, str], *, replace: bool = False
) -> None:
    """Put a frame into a table by an open cursor; nothing is visible to others before the caller commits."""
    dialect = DIALECTS[address.kind]
    exists = _exists(cursor, address)
    if exists and not replace:
        raise UsageError(
            "the table exists", where=address.shown, hint="--replace if it may be lost, or give another name"
        )
    columns = {n: kinds.get(n) or dialect.type_of(dtype, address.shown) for n, dtype in frame.schema.items()}
    name = f"shoal_{secrets.token_hex(8)}"
    made = address.beside(".".join([*address.parts[:-1], f"{name}_made"]))
    listed = ", ".join(f"{quoted(column)} {kind}" for column, kind in columns.items())
    cursor.execute(f"create table {quoted(*made.parts)} ({listed})")
    handed, casts = _handed(frame, dialect, columns)
    if frame.height:
        cursor.adbc_ingest(name, handed.to_arrow(compat_level=pl.CompatLevel.oldest()), mode="create", temporary=True)
        cursor.execute(f"insert into {quoted(*made.parts)} select {', '.join(casts)} from {quoted(name)}")
        cursor.execute(f"drop table {quoted(name)}")
    _compare(cursor, handed, made)
    if exists:
        if address.kind == "postgresql":
            _same_rights(cursor, address, made)
        cursor.execute(f"drop table {quoted(*address.parts)}")
    cursor.execute(f"alter table {quoted(*made.parts)} rename to {quoted(address.name)}")


def _exists(cursor: Any, address: Address) -> bool:
    from shoal.core.errors import InputError

    try:
        return bool(declared(cursor, address))
    except InputError:
        return False


def _handed(frame: pl.DataFrame, dialect: Dialect, columns: Mapping[str, str]) -> tuple[pl.DataFrame, list[str]]:
    """The frame in types that the driver writes, and how each column becomes what it should be."""
    handed, casts = [], []
    for name, kind in columns.items():
        column = frame[name]
        if str(column.dtype.base_type()) in ("Int8", "UInt8"):
            column = column.cast(pl.Int16)
        elif str(column.dtype.base_type()) == "UInt16":
            column = column.cast(pl.Int32)
        elif str(column.dtype.base_type()) == "UInt32":
            column = column.cast(pl.Int64)
        if str(column.dtype.base_type()) not in dialect.stored:
            column = column.cast(pl.String)
        handed.append(column)
        # in SQLite a cast to a type it does not know would change values: it keeps what it is given
        casts.append(quoted(name) if dialect.native == frozenset() else f"cast({quoted(name)} as {kind})")
    return pl.DataFrame(handed), casts


def _compare(cursor: Any, handed: pl.DataFrame, made: Address) -> None:
    """Read back what was written: a database that changed a value must not keep a release.

    Rows are compared by their digests in sorted order, because a table has no order of its own.
    """
    found = fetch(cursor, made)
    same = found.height == handed.height and found.columns == handed.columns
    if same and handed.width:
        pairs = [_alike(handed[name], found[name]) for name in handed.columns]
        one, other = (pl.DataFrame([pair[side] for pair in pairs]).hash_rows().sort() for side in (0, 1))
        same = one.equals(other)
    if not same:
        raise OutputError(
            "what was written does not read back as it should",
            where=made.shown.rpartition("#")[0],
            hint="nothing was kept; does the database change values, by a trigger or its encoding?",
        )


def _alike(wanted: pl.Series, found: pl.Series) -> tuple[pl.Series, pl.Series]:
    """Two columns in one type: a database gives numbers back in a wider one, and other values perhaps as texts."""
    if isinstance(wanted.dtype, pl.Datetime) and isinstance(found.dtype, pl.Datetime):
        return wanted.dt.cast_time_unit("us").to_physical(), found.dt.cast_time_unit("us").to_physical()
    if wanted.dtype == pl.Boolean and found.dtype.is_integer():
        wanted = wanted.cast(found.dtype)
    if wanted.dtype.is_numeric() and found.dtype.is_numeric():
        return wanted, found.cast(wanted.dtype, strict=False)
    return (wanted, found) if wanted.dtype == found.dtype else (wanted.cast(pl.String), found.cast(pl.String))


def _same_rights(cursor: Any, old: Address, new: Address) -> None:
    """Whoever may read the former release may read the new one: a nightly job must not lock its readers out."""
    from shoal.connect.sql.dialects import catalogue

    query = (
        "select case when a.grantee = 0 then 'public' else quote_ident(pg_get_userbyid(a.grantee)) end, "
        "a.privilege_type from pg_class c, aclexplode(c.relacl) a where c.oid = to_regclass('{table}') "
        "and a.grantee <> c.relowner"
    )
    cursor.execute(catalogue(query, old))
    for who, right in cursor.fetchall():
        cursor.execute(f"grant {right} on {quoted(*new.parts)} to {who}")

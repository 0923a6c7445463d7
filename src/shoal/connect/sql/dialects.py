"""What differs between the databases: their drivers, their names of types, their catalogues."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from shoal.connect.sql.address import Address
from shoal.connect.sql.failures import not_installed
from shoal.core.errors import InputError, OutputError


@dataclass(frozen=True)
class Dialect:
    """One kind of database."""

    driver: str  # a module with the interface of ADBC
    native: frozenset[str]  # declared types that arrive as they are; others are read as their text
    columns: str  # the query of a table's columns: name, declared type
    identity: str  # a query whose answer is the same for the same table, by whatever address
    types: Mapping[str, str]  # a polars type and the type of a column that holds it
    stored: frozenset[str]  # polars types that the driver writes as they are; others are handed over as text

    def connect(self, address: Address, *, writing: bool = False) -> Any:
        """An open connection, in a transaction."""
        try:
            module = importlib.import_module(self.driver)
        except ImportError:
            raise not_installed(address.kind) from None
        file = address.file
        if file is None:
            return module.connect(address.url)
        if not file.exists() and not writing:
            raise InputError("there is no such database", where=address.shown, hint="check the path")
        if not file.parent.exists():
            raise OutputError("cannot be written: there is no such folder", where=address.shown, hint="make it first")
        return module.connect(str(file))

    def type_of(self, dtype: pl.DataType, where: str) -> str:
        """The type of a column that holds what a polars column holds."""
        if isinstance(dtype, pl.Decimal) and "Decimal" not in self.types:
            return f"numeric({dtype.precision or 38}, {dtype.scale})"
        if isinstance(dtype, pl.Datetime) and dtype.time_zone is not None:
            return self.types["zoned"]
        found = self.types.get(str(dtype.base_type()))
        if found is None:
            raise OutputError(
                "a table has no place for cells with parts", where=where, hint="write Parquet or NDJSON instead"
            )
        return found


COMMON = {
    "Boolean": "boolean",
    "Int8": "smallint",
    "Int16": "smallint",
    "Int32": "integer",
    "Int64": "bigint",
    "UInt8": "smallint",
    "UInt16": "integer",
    "UInt32": "bigint",
    "UInt64": "numeric(20, 0)",
    "Int128": "numeric(38, 0)",
    "Float32": "real",
    "Float64": "double precision",
    "String": "text",
    "Categorical": "text",
    "Enum": "text",
    "Null": "text",
    "Date": "date",
    "Datetime": "timestamp",
    "zoned": "timestamp with time zone",
    "Time": "time",
    "Duration": "interval",
    "Binary": "bytea",
}
STORED = frozenset({"Boolean", "Int16", "Int32", "Int64", "Float32", "Float64", "String", "Date", "Datetime", "Binary"})
POSTGRESQL = Dialect(
    "adbc_driver_postgresql.dbapi",
    frozenset(
        {
            "smallint",
            "integer",
            "bigint",
            "real",
            "double precision",
            "text",
            "character varying",
            "boolean",
            "date",
            "timestamp without time zone",
            "timestamp with time zone",
            "time without time zone",
            "bytea",
        }
    ),
    "select attname, format_type(atttypid, atttypmod) from pg_attribute "
    "where attrelid = to_regclass('{table}') and attnum > 0 and not attisdropped order by attnum",
    "select pg_postmaster_start_time()::text || (select oid from pg_database where datname = current_database())::text "
    "|| ':' || coalesce(to_regclass('{table}')::oid::text, '')",
    COMMON,
    STORED,
)
SQLITE = Dialect(
    "adbc_driver_sqlite.dbapi",
    frozenset(),
    "select name, lower(type) from pragma_table_info('{name}')",
    "select file || '#' || lower('{name}') from pragma_database_list where name = 'main'",
    # SQLite keeps what it is given; the names say to other readers what is meant
    # (a numeric column would round decimals)
    {**COMMON, **dict.fromkeys(("Decimal", "UInt64", "Int128", "Duration"), "text"), "Binary": "blob"},
    frozenset({"Boolean", "Int16", "Int32", "Int64", "Float32", "Float64", "String", "Binary"}),
)
DUCKDB = Dialect(
    "adbc_driver_duckdb.dbapi",
    frozenset(
        {
            "tinyint",
            "smallint",
            "integer",
            "bigint",
            "utinyint",
            "usmallint",
            "uinteger",
            "ubigint",
            "float",
            "double",
            "varchar",
            "boolean",
            "date",
            "timestamp",
            "timestamp with time zone",
            "time",
            "blob",
        }
    ),
    "select column_name, lower(data_type) from information_schema.columns where table_name = '{name}' "
    "and table_schema = coalesce(nullif('{schema}', ''), current_schema()) order by ordinal_position",
    "select coalesce((select path from duckdb_databases() where database_name = current_database()), '') "
    "|| '#' || lower(coalesce(nullif('{schema}', ''), current_schema()) || '.{name}')",
    {**COMMON, "UInt64": "ubigint", "Int128": "hugeint", "Binary": "blob"},
    STORED,
)
DIALECTS = {"postgresql": POSTGRESQL, "sqlite": SQLITE, "duckdb": DUCKDB}


def quoted(*parts: str) -> str:
    """A name as SQL writes it, whatever stands in it.

    >>> quoted("ward", 'a " b')
    '"ward"."a "" b"'
    """
    return ".".join('"' + part.replace('"', '""') + '"' for part in parts)


def catalogue(query: str, address: Address) -> str:
    """A query of the catalogue about one table; its name stands in it as a text.

    >>> from shoal.connect.sql.address import Address
    >>> catalogue("select '{name}' in '{schema}'", Address.of("postgresql://db/clinic#ward.visits"))
    "select 'visits' in 'ward'"
    """
    schema = address.parts[0] if len(address.parts) > 1 else ""
    texts = {"table": quoted(*address.parts), "name": address.name, "schema": schema}
    return query.format(**{key: text.replace("'", "''") for key, text in texts.items()})

"""Tables in and out of PostgreSQL, SQLite and DuckDB: types, nulls and row counts stay, failures leave nothing."""

from __future__ import annotations

import datetime as dt
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shoal.connect import sql
from shoal.core.errors import InputError, OutputError, UsageError
from shoal.core.originals import guarded
from tests.small_disk import small_disk
from tests.sql.conftest import run

KINDS = ("postgresql", "sqlite", "duckdb")
COLUMNS: dict[str, tuple[pl.DataType, st.SearchStrategy[object]]] = {
    "whole": (pl.Int64(), st.integers(-(2**63) + 1, 2**63 - 1)),
    "small": (pl.Int16(), st.integers(-(2**15), 2**15 - 1)),
    "real": (pl.Float64(), st.floats(allow_nan=False)),
    "text": (pl.String(), st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",)), max_size=8)),
    "flag": (pl.Boolean(), st.booleans()),
    "day": (pl.Date(), st.dates(dt.date(1, 1, 1), dt.date(9999, 12, 31))),
    "at": (pl.Datetime("us"), st.datetimes(dt.datetime(1, 1, 1), dt.datetime(9999, 1, 1))),
    "zoned": (pl.Datetime("us", "UTC"), st.datetimes(dt.datetime(1, 1, 2), dt.datetime(9998, 1, 1))),
    "price": (pl.Decimal(12, 2), st.decimals(-(10**9), 10**9, places=2)),
}


@st.composite
def frames(draw: st.DrawFn) -> pl.DataFrame:
    rows = draw(st.integers(0, 6))
    made = {}
    for name, (dtype, values) in COLUMNS.items():
        cells = draw(st.lists(st.none() | values, min_size=rows, max_size=rows))
        series = pl.Series(name, cells, dtype=pl.Datetime("us") if name == "zoned" else dtype, strict=False)
        made[name] = series.dt.replace_time_zone("UTC") if name == "zoned" else series
    return pl.DataFrame(made)


def like(frame: pl.DataFrame, found: pl.DataFrame, kind: str) -> pl.DataFrame:
    """Of SQLite, which has fewer types, the values in the types they had."""
    if kind != "sqlite":
        return found.with_columns(pl.col("zoned").dt.convert_time_zone("UTC"))
    texts = {"day": "%Y-%m-%d", "at": "%Y-%m-%d %H:%M:%S%.f"}
    for name, form in texts.items():
        if found.schema[name] == pl.String:
            found = found.with_columns(pl.col(name).str.to_datetime(form).cast(frame.schema[name]))
    if found.schema["zoned"] == pl.String:
        found = found.with_columns(pl.col("zoned").str.to_datetime("%Y-%m-%d %H:%M:%S%.f%Z").dt.cast_time_unit("us"))
    return found.select(pl.col(n).cast(d) for n, d in frame.schema.items())


@pytest.mark.parametrize("kind", KINDS)
def test_round_trip_keeps_values_types_and_rows(kind: str, databases: Callable[[str], str]) -> None:
    at = f"{databases(kind)}#numbers"

    @settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(frames())
    def law(frame: pl.DataFrame) -> None:
        sql.write(frame, at, replace=True)
        found = sql.read(at)
        assert found.height == frame.height
        assert found.columns == frame.columns
        if kind != "sqlite":
            assert found.schema["price"] == frame.schema["price"]
        one, other = (f.hash_rows().sort() for f in (frame, like(frame, found, kind)))
        assert one.equals(other)

    law()


def test_columns_that_leave_as_they_came_keep_the_types_of_their_database(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLINIC", database)
    run(
        database,
        "create type mood as enum ('sad', 'glad')",
        "create table people (id uuid, doc jsonb, paid numeric, tag varchar(3), at inet, mood mood)",
        "insert into people values "
        "('00000000-0000-0000-0000-000000000007', '{\"a\": [1]}', 1.230, 'abc', '10.0.0.1', 'sad')",
    )
    frame = sql.read("env:CLINIC#people")
    assert frame["paid"].to_list() == [Decimal("1.230")]
    sql.write(frame, "env:CLINIC#released", like="env:CLINIC#people", untouched=frame.columns)
    kinds = "select column_name, udt_name from information_schema.columns where table_name = '{}' order by 1"
    assert run(database, kinds.format("released")) == run(database, kinds.format("people"))
    assert run(database, "select * from released except select * from people") == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_table_is_not_replaced_unless_asked_and_never_if_it_was_read(
    kind: str, databases: Callable[[str], str]
) -> None:
    frame = pl.DataFrame({"age": [1, 2]})
    at = databases(kind)
    sql.write(frame, f"{at}#patients")
    with pytest.raises(UsageError, match="exists"):
        sql.write(frame.head(1), f"{at}#patients")
    with guarded():
        sql.read(f"{at}#patients")
        other = "public.patients" if kind == "postgresql" else "main.patients"
        for name in ("patients", other):
            with pytest.raises(UsageError, match="the table that is read"):
                sql.write(frame.head(1), f"{at}#{name}", replace=True)
    assert sql.read(f"{at}#patients").height == 2


def test_what_a_failed_write_leaves(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLINIC", database)
    frame = pl.DataFrame({"age": [1, 2]})
    sql.write(frame, "env:CLINIC#release")
    with monkeypatch.context() as broken:
        broken.setattr("shoal.connect.sql.writing.fetch", lambda *_: frame.head(1))
        with pytest.raises(OutputError, match="does not read back"):
            sql.write(frame.with_columns(age=7), "env:CLINIC#release", replace=True)
    assert run(database, "select tablename from pg_tables where schemaname = 'public'") == [("release",)]
    assert sql.read("env:CLINIC#release").equals(frame)


def test_a_new_file_that_was_not_finished_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shoal.connect.sql.writing.fetch", lambda *_: pl.DataFrame())
    for kind in ("sqlite", "duckdb"):
        with pytest.raises(OutputError):
            sql.write(pl.DataFrame({"age": [1]}), f"{kind}:{tmp_path / 'new'}#t")
        assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ["sqlite", "duckdb"])
def test_a_full_disk_is_told_and_leaves_nothing_of_a_new_file(kind: str, tmp_path: Path) -> None:
    frame = pl.DataFrame({"name": [f"{at * 7919 % 100_003:x}" for at in range(60_000)]})
    with small_disk(tmp_path / "small", "300k") as small:
        with pytest.raises(OutputError, match="no space left") as caught:
            sql.write(frame, f"{kind}:{small / 'new.db'}#t")
        assert "make room" in str(caught.value)
        assert list(small.iterdir()) == []


def test_a_database_that_somebody_else_writes_to_is_told(tmp_path: Path) -> None:
    place = tmp_path / "x.db"
    sql.write(pl.DataFrame({"age": [1]}), f"sqlite:{place}#t")
    # of another process: locks of a file belong to processes
    code = "import sqlite3, sys; sqlite3.connect(sys.argv[1]).execute('begin exclusive'); print(1, flush=True); input()"
    words = [sys.executable, "-c", code, str(place)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as other:
        assert other.stdout is not None
        other.stdout.readline()
        try:
            with pytest.raises(OutputError, match="somebody else holds the table"):
                sql.write(pl.DataFrame({"age": [1]}), f"sqlite:{place}#u")
        finally:
            other.kill()
    assert sql.read(f"sqlite:{place}#t").height == 1


def test_who_may_read_the_former_release_may_read_the_new_one(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLINIC", database)
    sql.write(pl.DataFrame({"age": [1]}), "env:CLINIC#release")
    role = f"r{database[-12:]}"
    run(database, f"create role {role}", f"grant select on release to {role}")
    sql.write(pl.DataFrame({"age": [2]}), "env:CLINIC#release", replace=True)
    assert run(database, f"select has_table_privilege('{role}', 'release', 'select')") == [(True,)]
    run(database, f"drop owned by {role}", f"drop role {role}")


BAD = {
    "wrong password": ("postgresql://shoal:wrong@127.0.0.1:{port}/postgres", "password was refused"),
    "no such database": ("postgresql://shoal:{password}@127.0.0.1:{port}/nowhere", "no such database"),
    "nobody listens": ("postgresql://shoal:{password}@127.0.0.1:1/x", "cannot be reached"),
    "missing table": ("postgresql://shoal:{password}@127.0.0.1:{port}/postgres", "no such table"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_read_is_told_without_the_password(
    case: str, server: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, words = BAD[case]
    password = server.password  # type: ignore[attr-defined]
    monkeypatch.setenv("CLINIC", url.format(port=server.port, password=password))  # type: ignore[attr-defined]
    with pytest.raises(InputError) as caught:
        sql.read("env:CLINIC#patients")
    assert words in str(caught.value)
    assert "hint" in str(caught.value)
    assert password not in str(caught.value)
    assert "127.0.0.1" not in str(caught.value)  # a variable's contents are not shown at all


def test_addresses_that_are_wrong_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BROKEN", "hunter2")
    for text, words in {
        "postgresql://ana:secret@host/db#t": "password on the command line",
        "postgresql://ana@host/db?password=secret#t": "password on the command line",
        "postgresql://ana@host/db": "no table is named",
        "env:NOT_SET#t": "is not set",
        "env:BROKEN#t": "expected the address",
    }.items():
        with pytest.raises(UsageError, match=words) as caught:
            sql.read(text)
        assert "secret" not in str(caught.value)
        assert "hunter2" not in str(caught.value)
    with pytest.raises(InputError, match="no such database"):
        sql.read(f"sqlite:{tmp_path}/none.db#t")
    (tmp_path / "text.db").write_text("this is no database, but long enough to have been one " * 40)
    for kind in ("sqlite", "duckdb"):
        with pytest.raises(InputError, match="no database of this kind"):
            sql.read(f"{kind}:{tmp_path}/text.db#t")


def test_cells_of_one_column_must_be_of_one_kind(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "x.db") as there:
        there.execute("create table t (a, b, c)")
        there.executemany("insert into t values (?, ?, ?)", [(None, 1, 1), (None, 2.5, "Anna"), ("late", 3, 2)])
    there.close()
    with pytest.raises(InputError, match="column 3 holds integer and text") as caught:
        sql.read(f"sqlite:{tmp_path}/x.db#t")
    assert "Anna" not in str(caught.value)
    with sqlite3.connect(tmp_path / "x.db") as there:
        there.execute("update t set c = 1")
    there.close()
    assert sql.read(f"sqlite:{tmp_path}/x.db#t").rows() == [(None, 1.0, 1), (None, 2.5, 1), ("late", 3.0, 1)]


def test_times_at_infinity_are_refused(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLINIC", database)
    for kind in ("date", "timestamp", "timestamptz"):
        run(database, "drop table if exists t", f"create table t as select 'infinity'::{kind} as a")
        with pytest.raises(InputError, match="column 1 has times at infinity"):
            sql.read("env:CLINIC#t")


def test_a_table_that_changes_while_it_is_read_is_read_as_it_was(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One statement sees one state: rows of another transaction come whole or not at all."""
    monkeypatch.setenv("CLINIC", database)
    run(database, "create table t (a int)", "insert into t select 1 from generate_series(1, 500)")
    from shoal.connect.sql import reading

    fetch = reading.fetch

    def meanwhile(cursor: object, address: sql.Address) -> pl.DataFrame:
        run(database, "insert into t select 2 from generate_series(1, 500)")
        return fetch(cursor, address)

    monkeypatch.setattr(reading, "fetch", meanwhile)
    assert sql.read("env:CLINIC#t").height in (500, 1000)


def test_names_with_quotes_and_scripts_are_only_names(databases: Callable[[str], str]) -> None:
    frame = pl.DataFrame({'a"; drop table t; --': [1], "b'c": ["x"]})
    for kind in KINDS:
        at = f"{databases(kind)}#we\"ird 'name"
        sql.write(frame, at)
        assert sql.read(at).equals(frame)

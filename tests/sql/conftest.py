"""A real PostgreSQL, once per session; every test gets a database of its own."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from scripts import postgres


@pytest.fixture(scope="session")
def server() -> Iterator[postgres.Postgres]:
    why = postgres.available()
    if why is not None:
        if os.environ.get("SHOAL_REQUIRE_SYSTEM") == "1":
            pytest.fail(f"PostgreSQL is required here: {why}")
        pytest.skip(why)
    running = postgres.Postgres()
    running.start()
    try:
        yield running
    finally:
        running.stop()


def run(url: str, *statements: str) -> list[tuple[object, ...]]:
    """Statements in one transaction; the rows of the last."""
    import adbc_driver_postgresql.dbapi as driver

    with closing(driver.connect(url)) as there, closing(there.cursor()) as cursor:
        for statement in statements:
            cursor.execute(statement)
        rows = cursor.fetchall() if cursor.description else []
        there.commit()
    return rows


@pytest.fixture
def database(server: postgres.Postgres) -> str:
    """The address of an empty database, with a password in it."""
    import adbc_driver_postgresql.dbapi as driver

    name = f"t{secrets.token_hex(6)}"
    with closing(driver.connect(server.url(), autocommit=True)) as there, closing(there.cursor()) as cursor:
        cursor.execute(f"create database {name}")
    return server.url(database=name)


@pytest.fixture
def databases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Callable[[str], str]:
    """`databases("duckdb")`: the address of an empty database of a kind, as a person writes it."""

    def make(kind: str) -> str:
        if kind == "postgresql":
            monkeypatch.setenv("CLINIC", request.getfixturevalue("database"))
            return "env:CLINIC"
        return f"{kind}:{tmp_path / f'clinic.{kind}'}"

    return make

"""The law of ``tests/attacks/test_marks.py`` on PostgreSQL: tables of roles, the audit, and all that is said."""

from __future__ import annotations

import polars as pl
import pytest

from scripts.postgres import Postgres
from shoal.connect import sql
from tests.attacks.test_marks import POLICY, Marks, clean, clear, rows, run, uncompressed
from tests.sql.conftest import run as execute

__all__ = ["run"]  # a fixture
SERVED = POLICY.replace("dataset: patients", "dataset: patients\nsource: {use: sql, url: env:CLINIC, table: patients}")


def test_roles_of_a_database(server: Postgres, database: str, run, tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLINIC", database)
    tables_only = SERVED.partition("  market:")[0]  # streams are not served from a table
    (tmp_path / "policy.yaml").write_text(tables_only)
    frame = pl.DataFrame([clear(row) for row in rows(Marks())], infer_schema_length=None)
    sql.write(frame, "env:CLINIC#patients")
    for words in (("plan",), ("plan", "--json"), ("apply",), ("status", "--json"), ("apply",)):
        run("serve", words[0], "policy.yaml", *words[1:])
    made = [str(name) for (name,) in execute(database, "select tablename from pg_tables where schemaname = 'public'")]
    assert {"patients_desk", "patients_house", "patients_research", "patients_shoal_audit"} <= set(made)
    found = {name: uncompressed(sql.read(f"env:CLINIC#{name}")) for name in made if name != "patients"}
    notes = execute(database, "select coalesce(string_agg(description, ' '), '') from pg_description")
    statistics = execute(
        database,
        "select tablename, most_common_vals::text, histogram_bounds::text from pg_stats where tablename != 'patients'",
    )
    clean({**found, "comments": repr(notes).encode(), "statistics": repr(statistics).encode()}, "tables")
    (tmp_path / "policy.yaml").write_text(tables_only.replace("k: 3", "k: 300"))
    run("serve", "apply", "policy.yaml", code=1)
    run("serve", "destroy", "policy.yaml", "--yes")

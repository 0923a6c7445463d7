"""`shoal anonymize`, `verify` and `view` with tables of databases: the same release as from files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from shoal.connect import sql
from shoal.datasets.hospital import hospital
from tests.cli.in_process import call
from tests.sql.conftest import run

WORDS = ("--quasi", "zip,sex,age", "--hierarchy", "zip=prefix:5", "--sensitive", "diag", "--plain", "med", "--k", "3")


@pytest.mark.parametrize("kind", ["postgresql", "sqlite", "duckdb"])
def test_a_database_gives_the_release_of_a_file(kind: str, databases: Callable[[str], str], tmp_path: Path) -> None:
    people = hospital(120, seed=3)
    people.write_parquet(tmp_path / "people.parquet")
    at = databases(kind)
    sql.write(people, f"{at}#patients")
    made = call(
        ["anonymize", at, "--table", "patients", *WORDS, "--into", at, "--table", "release", "--seed", "4"],
        tmp_path,
        None,
        {},
    )
    assert made.returncode == 0, made.stderr
    filed = call(["anonymize", "people.parquet", *WORDS, "-o", "out.parquet", "--seed", "4"], tmp_path, None, {})
    assert filed.returncode == 0, filed.stderr
    one, other = sql.read(f"{at}#release"), pl.read_parquet(tmp_path / "out.parquet")
    assert one.columns == other.columns
    assert one.sort(one.columns).equals(other.sort(other.columns))
    judged = call(["verify", f"{at}#release", *WORDS[:2], "--sensitive", "diag", "--k", "3"], tmp_path, None, {})
    assert judged.returncode == 0, judged.stderr
    again = call(["anonymize", f"{at}#patients", *WORDS, "--into", f"{at}#release"], tmp_path, None, {})
    assert again.returncode == 2
    assert "--replace" in again.stderr
    onto = call(["anonymize", f"{at}#patients", *WORDS, "--into", f"{at}#patients", "--replace"], tmp_path, None, {})
    assert onto.returncode == 2


def test_a_promise_that_cannot_be_kept_writes_no_table(database: str, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("CLINIC", database)
    sql.write(hospital(20, seed=1), "env:CLINIC#patients")
    words = ["anonymize", "env:CLINIC#patients", *WORDS[:-1], "50", "--into", "env:CLINIC#release"]
    assert call(words, tmp_path, None, {}).returncode == 1
    assert run(database, "select tablename from pg_tables where schemaname = 'public'") == [("patients",)]


def test_options_that_have_no_effect_and_secrets_are_refused(tmp_path: Path, databases: Callable[[str], str]) -> None:
    at = databases("sqlite")
    sql.write(hospital(30, seed=1), f"{at}#patients")
    for words, said in {
        ("anonymize", f"{at}#patients", *WORDS, "--table", "more"): "--table",
        ("anonymize", f"{at}#patients", *WORDS, "-o", "x.csv", "--replace"): "--replace",
        ("anonymize", f"{at}#patients", *WORDS, "--separator", ";", "-o", "x.csv"): "no separator",
        ("anonymize", f"{at}#patients", *WORDS, "--into", f"{at}#r", "--cells", "struct"): "typed cells",
        ("anonymize", f"{at}#patients", *WORDS, "--memory", "300MB", "-o", "x.csv"): "--memory: has no effect",
        ("anonymize", "-", *WORDS, "--memory", "300MB", "-o", "x.csv"): "--memory: has no effect",
        ("anonymize", "postgresql://a:hunter2@h/d#t", *WORDS): "password",
        ("anonymize", at, *WORDS): "no table is named",
    }.items():
        found = call(list(words), tmp_path, None, {})
        assert found.returncode == 2, words
        assert said in found.stderr, (words, found.stderr)
        assert "hunter2" not in found.stderr
    assert not (tmp_path / "x.csv").exists()

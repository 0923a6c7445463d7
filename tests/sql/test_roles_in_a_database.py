"""`shoal serve` on PostgreSQL: a role reads its own table and nothing else; whole, or not at all."""

from __future__ import annotations

from pathlib import Path

import adbc_driver_manager
import polars as pl
import pytest

import shoal
from scripts.postgres import Postgres
from shoal.connect import sql
from shoal.core.errors import OutputError, PolicyError, PromiseError
from shoal.core.keys import KeyRing
from shoal.datasets.hospital import hospital
from shoal.policy.load import parse
from shoal.runtime.sql.provision import Tables
from tests.cli.in_process import call
from tests.sql.conftest import run

POLICY = """
dataset: clinic
source: {{use: sql, url: env:CLINIC, table: patients}}
columns:
  pid: subject
  name: identifier
  zip: {{role: quasi, hierarchy: {{use: prefix, length: 5}}}}
  sex: quasi
  age: {{role: quasi, type: int, hierarchy: {{use: range, min: 0, max: 120}}}}
  diag: sensitive
  med: plain
views:
  nurse:
    users: [{nurse}]
    show: [name, sex, age, diag]
  research:
    users: [{research}]
    show: [zip, sex, age, diag]
    promises: [{{use: k-anonymity, k: 3}}]
    waive: [earlier-release]
"""


class Clinic:
    """A database with patients, and users of its own (users are the server's, not the database's)."""

    def __init__(self, server: Postgres, url: str) -> None:
        self.server, self.url = server, url
        self.database = url.rpartition("/")[2]
        self.nurse, self.research = f"nurse_{self.database}", f"research_{self.database}"
        self.text = POLICY.format(nurse=self.nurse, research=self.research)

    def tables(self, text: str | None = None) -> Tables:
        return Tables(parse(text or self.text))

    def as_user(self, user: str, statement: str) -> list[tuple[object, ...]]:
        return run(self.server.url(user, "pw-" + user, self.database), statement)


@pytest.fixture
def clinic(server: Postgres, database: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("CLINIC", database)
    sql.write(hospital(90, seed=2), "env:CLINIC#patients")
    made = Clinic(server, database)
    for user in (made.nurse, made.research):
        monkeypatch.setenv(f"SHOAL_PASSWORD_{user.upper()}", "pw-" + user)
    yield made
    for user in (made.nurse, made.research):
        run(
            database,
            f"do $$ begin if exists (select 1 from pg_roles where rolname = '{user}') then "
            f"drop owned by {user}; drop role {user}; end if; end $$",
        )


def denied(clinic: Clinic, user: str, statement: str) -> bool:
    try:
        clinic.as_user(user, statement)
    except adbc_driver_manager.Error as error:
        return error.sqlstate == "42501"
    return False


def test_each_role_reads_its_own_table_and_nothing_else(clinic: Clinic) -> None:
    tables = clinic.tables()
    assert not tables.plan().well
    tables.apply(keys=KeyRing())
    assert tables.plan().well
    own = {clinic.nurse: "patients_nurse", clinic.research: "patients_research"}
    everything = ["patients", "patients_shoal_audit", *own.values()]
    for user, table in own.items():
        assert clinic.as_user(user, f"select count(*) from {table}") == [(90,)]
        for other in everything:
            if other != table:
                assert denied(clinic, user, f"select * from {other} limit 1"), (user, other)
        for word in (f"insert into {table} select * from {table}", f"delete from {table}", f"truncate {table}"):
            assert denied(clinic, user, word)
    research = sql.read("env:CLINIC#patients_research")
    assert shoal.verify(research, quasi=["zip", "sex", "age"], k=3).kept
    assert set(research["name"]) == {"*"}
    nurse = sql.read("env:CLINIC#patients_nurse")
    assert nurse.schema["age"] == pl.Int64
    # no order joins the two: neither is that of the source
    assert nurse["age"].to_list() != sql.read("env:CLINIC#patients")["age"].to_list()


def test_a_schema_that_is_not_there_is_named_and_not_the_source(clinic: Clinic) -> None:
    missing = clinic.text.replace("show: [name, sex, age, diag]", "show: [sex]\n    service: {table: ward.nurses}")
    with pytest.raises(OutputError) as caught:
        clinic.tables(missing).apply(keys=KeyRing())
    assert str(caught.value).startswith("env:CLINIC#ward.nurses: there is no such schema\n\nhint: ")
    assert run(clinic.url, "select tablename from pg_tables where schemaname = 'public'") == [("patients",)]


def test_applied_again_nothing_is_touched_and_new_rows_release_all_anew(clinic: Clinic) -> None:
    tables = clinic.tables()
    tables.apply(keys=KeyRing())
    before = run(clinic.url, "select 'patients_nurse'::regclass::oid::bigint, count(*) from patients_shoal_audit")
    assert tables.apply(keys=KeyRing()).well
    assert (
        run(clinic.url, "select 'patients_nurse'::regclass::oid::bigint, count(*) from patients_shoal_audit") == before
    )
    run(clinic.url, "insert into patients select * from patients where age > 60")
    assert [c.action for c in tables.plan().changes] == ["change", "change"]
    tables.apply(keys=KeyRing())
    count = run(clinic.url, "select count(*) from patients")
    assert clinic.as_user(clinic.nurse, "select count(*) from patients_nurse") == count


def test_a_role_sees_more_only_by_a_word_and_less_without_one(clinic: Clinic) -> None:
    clinic.tables().apply(keys=KeyRing())
    wider = clinic.text.replace("show: [name, sex, age, diag]", "show: [name, zip, sex, age, diag]")
    with pytest.raises(PromiseError, match="nurse would see zip"):
        clinic.tables(wider).apply(keys=KeyRing())
    assert set(sql.read("env:CLINIC#patients_nurse")["zip"]) == {"*"}
    clinic.tables(wider).apply(keys=KeyRing(), allow_wider=True)
    assert set(sql.read("env:CLINIC#patients_nurse")["zip"]) != {"*"}
    clinic.tables().apply(keys=KeyRing())
    assert set(sql.read("env:CLINIC#patients_nurse")["zip"]) == {"*"}


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("grant select on patients to public", "everyone may read"),
        ("grant select (name) on patients to public", "everyone may read"),
        ("grant select on patients to {nurse}", "may read patients"),
        ("grant select (name) on patients to {nurse}", "may read patients"),
        ("grant pg_read_all_data to {nurse}", "may read patients"),
        ("grant shoal to {nurse}", "superuser or CREATEROLE|may read"),
        ("alter role {nurse} createrole", "superuser or CREATEROLE"),
        ("alter role {nurse} superuser", "superuser or CREATEROLE"),
    ],
)
def test_a_way_around_the_views_is_refused_and_shown(clinic: Clinic, statement: str, said: str) -> None:
    clinic.tables().apply(keys=KeyRing())
    run(clinic.url, statement.format(nurse=clinic.nurse))
    plan = clinic.tables().plan()
    assert not plan.well
    with pytest.raises(PromiseError, match=said):
        clinic.tables().apply(keys=KeyRing())


def test_rights_that_new_tables_would_get_by_default_are_taken_away(clinic: Clinic) -> None:
    run(clinic.url, "alter default privileges grant select on tables to public")
    clinic.tables().apply(keys=KeyRing())
    assert denied(clinic, clinic.nurse, "select * from patients_research")
    assert clinic.tables().plan().well


def test_drift_is_shown_and_mended(clinic: Clinic) -> None:
    clinic.tables().apply(keys=KeyRing())
    run(clinic.url, f"grant select on patients_research to {clinic.nurse}")
    plan = clinic.tables().plan()
    assert [(c.action, c.name) for c in plan.changes] == [("revoke", clinic.nurse)]
    clinic.tables().apply(keys=KeyRing())
    assert denied(clinic, clinic.nurse, "select * from patients_research")


def test_a_failed_apply_leaves_nothing(clinic: Clinic) -> None:
    hard = clinic.text.replace("k: 3", "k: 500")
    with pytest.raises(PromiseError):
        clinic.tables(hard).apply(keys=KeyRing())
    assert run(clinic.url, "select tablename from pg_tables where schemaname = 'public'") == [("patients",)]
    assert run(clinic.url, f"select 1 from pg_roles where rolname = '{clinic.nurse}'") == []


def test_a_table_that_is_not_ours_is_never_replaced(clinic: Clinic) -> None:
    run(clinic.url, "create table patients_nurse (precious int)", "insert into patients_nurse values (1)")
    with pytest.raises(PromiseError, match="no applied view of this policy made it"):
        clinic.tables().apply(keys=KeyRing())
    assert run(clinic.url, "select * from patients_nurse") == [(1,)]


def test_destroy_takes_all_but_source_and_audit(clinic: Clinic) -> None:
    clinic.tables().apply(keys=KeyRing())
    clinic.tables().destroy()
    left = run(clinic.url, "select tablename from pg_tables where schemaname = 'public' order by 1")
    assert left == [("patients",), ("patients_shoal_audit",)]
    assert run(clinic.url, f"select 1 from pg_roles where rolname in ('{clinic.nurse}', '{clinic.research}')") == []
    clinic.tables().apply(keys=KeyRing())  # and can be made again
    assert clinic.tables().plan().well


def test_a_removed_user_is_out_and_gone(clinic: Clinic) -> None:
    clinic.tables().apply(keys=KeyRing())
    clinic.tables(clinic.text.replace(f"users: [{clinic.nurse}]", "users: []")).apply(keys=KeyRing())
    assert run(clinic.url, f"select 1 from pg_roles where rolname = '{clinic.nurse}'") == []


def test_an_earlier_release_counts(clinic: Clinic) -> None:
    """Without the waiver, a new release that together with the old one breaks the promise is refused."""
    strict = clinic.text.replace("    waive: [earlier-release]\n", "")
    clinic.tables(strict).apply(keys=KeyRing())
    run(clinic.url, "delete from patients where age % 3 = 0")  # some of every group
    with pytest.raises(PromiseError, match="earlier"):
        clinic.tables(strict).apply(keys=KeyRing())
    assert clinic.as_user(clinic.research, "select count(*) from patients_research") == [(90,)]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("url: env:CLINIC", "url: 'sqlite:x.db'"), "has no users"),
        (("table: patients}", "table: patients, topic: x}"), "'topic' is not known"),
        (("users: [{research}]", "users: [{nurse}]"), "more than one view"),
        (("users: [{nurse}]", "users: [public]"), "let everyone in"),
        (("users: [{nurse}]", "users: [a]\n    service: {table: patients}"), "two things want the table"),
        (("users: [{nurse}]", "users: [a]\n    service: {topic: x}"), "'topic' is not known"),
    ],
)
def test_policies_that_cannot_be_served_are_refused(
    change: tuple[str, str], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLINIC", "postgresql://u@127.0.0.1:1/x")
    text = POLICY.format(nurse="ann", research="bob")
    old, new = (part.replace("{nurse}", "ann").replace("{research}", "bob") for part in change)
    assert old in text
    with pytest.raises(PolicyError, match=said):
        Tables(parse(text.replace(old, new)))


def test_the_commands(clinic: Clinic, tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(clinic.text)
    planned = call(["serve", "plan", "p.yaml"], tmp_path, None, {})
    assert "+ table patients_nurse" in planned.stdout, planned.stderr
    assert call(["serve", "status", "p.yaml"], tmp_path, None, {}).returncode == 1
    assert call(["serve", "apply", "p.yaml"], tmp_path, None, {}).returncode == 0
    status = call(["serve", "status", "p.yaml"], tmp_path, None, {})
    assert (status.returncode, "0 changes pending" in status.stdout) == (0, True)
    assert call(["serve", "plan", "p.yaml", "--only", "topics"], tmp_path, None, {}).returncode == 2
    assert call(["serve", "run", "p.yaml"], tmp_path, None, {}).returncode == 2
    assert call(["serve", "destroy", "p.yaml"], tmp_path, None, {}).returncode == 2
    assert call(["serve", "destroy", "p.yaml", "--yes"], tmp_path, None, {}).returncode == 0
    said = planned.stdout + planned.stderr + status.stdout
    assert clinic.server.password not in said

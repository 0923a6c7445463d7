"""The law of the studio: it hands out, byte for byte, what the command line makes of the policy it hands out."""

from __future__ import annotations

import re
import shlex
import sqlite3
import threading
from pathlib import Path

import polars as pl
import pytest
from starlette.testclient import TestClient

from shoal.datasets.hospital import hospital
from shoal.datasets.series import sales_curves
from shoal.datasets.streams import stream
from shoal.web import risks
from shoal.web.project import Project
from shoal.web.studio import Studio
from tests.cli.in_process import call
from tests.unit.test_many_files import book
from tests.web.forms import opened, post

PATIENTS = hospital(160, seed=3, visits=1.3)


def run(visitor: TestClient, project: Project, **sent: object) -> None:
    assert post(visitor, project, "run", **sent) == 303
    project.tasks["run"].wait(120)
    assert project.release is not None, project.tasks["run"].progress()


def same_as_the_command_line(visitor: TestClient, project: Project, content: bytes, folder: Path) -> None:
    """Take release and policy away, run the command that the page shows, and compare the bytes."""
    (folder / project.name).write_bytes(content)
    policy = visitor.get(f"/p/{project.id}/download/policy.yaml").content
    (folder / "policy.yaml").write_bytes(policy)
    words = shlex.split(project.command())
    assert words[0] == "shoal"
    assert project.command() in visitor.get(f"/p/{project.id}/release").text.replace("&#x27;", "'")
    done = call(words[1:], folder)
    assert done.returncode == 0, done.stderr
    made = words[-1]
    assert visitor.get(f"/p/{project.id}/download/{made}").content == (folder / made).read_bytes()


@pytest.mark.parametrize("method", ["local", "mondrian"])
def test_a_table(visitor: TestClient, studio: Studio, tmp_path: Path, method: str) -> None:
    content = PATIENTS.write_csv().encode()
    project = opened(visitor, studio, "patients.csv", content)
    at = list(project.chosen.columns)
    assert post(visitor, project, "roles", **{f"role-{at.index('gluc')}": "plain"}) == 303
    assert post(visitor, project, f"column/{at.index('age')}", use="intervals", borders="30, 50.5, 70") == 303
    groups = {"value-0": "F", "group-0": "known", "value-1": "M", "group-1": "known", "value-2": "D", "group-2": ""}
    assert post(visitor, project, f"column/{at.index('sex')}", use="tree", **groups) == 303
    assert post(visitor, project, "promise", k="3", l="2", t="0.9") == 303
    sent = {"waive-linked-rows": "on", "waive-unique-plain": "on"}
    run(visitor, project, method=method, effort="low", seed="7", **sent)
    same_as_the_command_line(visitor, project, content, tmp_path)


def test_a_table_with_another_separator_and_a_spaced_name(visitor: TestClient, studio: Studio, tmp_path: Path) -> None:
    content = PATIENTS.write_csv(separator=";").encode()
    project = opened(visitor, studio, "my patients.csv", content)
    run(visitor, project, method="mondrian", seed="1", **{"waive-linked-rows": "on"})
    same_as_the_command_line(visitor, project, content, tmp_path)


@pytest.mark.parametrize("method", ["kapra", "banded"])
def test_curves(visitor: TestClient, studio: Studio, tmp_path: Path, method: str) -> None:
    content = sales_curves(60, 12, seed=1).write_csv().encode()
    project = opened(visitor, studio, "sales.csv", content)
    assert project.chosen.kind == "curves"
    assert 'data-chart="curves"' in visitor.get(f"/p/{project.id}/data").text
    assert post(visitor, project, "promise", k="6", p="3") == 303
    run(visitor, project, series=method, seed="4")
    assert f"use: {method}" in project.chosen.policy()
    same_as_the_command_line(visitor, project, content, tmp_path)
    assert "envelope-0" in visitor.get(f"/p/{project.id}/release").text


def test_a_recorded_stream(visitor: TestClient, studio: Studio, tmp_path: Path) -> None:
    events = stream("domains", scale=0.0005, seed=1).rename({"subject": "client", "value": "site"})
    content = events.write_csv().encode()
    project = opened(visitor, studio, "visits.csv", content)
    assert project.chosen.kind == "stream"
    assert project.chosen.of("time", "subject") == ["time", "client"]
    assert post(visitor, project, "promise", z="2", window="1h") == 303
    run(visitor, project)
    same_as_the_command_line(visitor, project, content, tmp_path)


def test_a_release_that_is_refused_is_told_and_not_handed_out(visitor: TestClient, studio: Studio) -> None:
    project = opened(visitor, studio, "patients.csv", PATIENTS.write_csv().encode())
    assert post(visitor, project, "promise", k="5000") == 303
    assert post(visitor, project, "run", method="mondrian") == 303
    project.tasks["run"].wait(60)
    assert project.tasks["run"].state == "failed"
    assert project.release is None
    assert 'class="failed"' in visitor.get(f"/p/{project.id}/release").text
    assert visitor.get(f"/p/{project.id}/download/released.csv").status_code == 404


def test_a_tree_as_arx_writes_it_is_imported_into_the_policy(
    visitor: TestClient, studio: Studio, tmp_path: Path
) -> None:
    content = PATIENTS.write_csv().encode()
    project = opened(visitor, studio, "patients.csv", content)
    at = list(project.chosen.columns).index("ins_co")
    paths = b"TK;public;*\nAOK;public;*\nIKK;public;*\nBARMER;public;*\nDAK;other;*\n"
    asked = {"name": "ins.csv", "version": project.version}
    answer = visitor.put(f"/p/{project.id}/tree/{at}", params=asked, content=paths)
    assert answer.status_code == 200, answer.text
    assert project.chosen.columns["ins_co"].hierarchy["nodes"]["other"] == {"DAK": None}
    page = visitor.get(f"/p/{project.id}/column/{at}").text
    assert "Level 1: 2" in page
    wrong = visitor.put(
        f"/p/{project.id}/tree/{at}", params={"name": "x.csv", "version": project.version}, content=b"a;b;*\n"
    )
    assert wrong.status_code == 422
    run(visitor, project, method="mondrian", seed="2", **{"waive-linked-rows": "on"})
    same_as_the_command_line(visitor, project, content, tmp_path)


def test_going_on_keeps_what_was_typed(visitor: TestClient, studio: Studio) -> None:
    project = opened(visitor, studio, "patients.csv", PATIENTS.write_csv().encode())
    sent = {"version": project.version, "k": "7", "l": "", "next": "choose"}
    answer = visitor.post(f"/p/{project.id}/promise", data=sent)
    assert (answer.status_code, answer.headers["location"]) == (303, f"/p/{project.id}/choose")
    assert project.chosen.settings.k == 7


def test_groups_are_counted_in_people_where_there_are_any(visitor: TestClient, studio: Studio) -> None:
    rows = pl.DataFrame({"pid": [1, 1, 1, 2, 3, 4], "age": [30, 30, 30, 30, 60, 60], "sex": list("fffffm")})
    project = opened(visitor, studio, "visits.csv", rows.write_csv().encode())
    at = {name: i for i, name in enumerate(project.chosen.columns)}
    roles = {f"role-{at['pid']}": "subject", f"role-{at['age']}": "quasi", f"role-{at['sex']}": "identifier"}
    assert post(visitor, project, "roles", **roles) == 303
    assert post(visitor, project, "promise", k="2") == 303
    run(visitor, project, method="mondrian", seed="1", **{"waive-linked-rows": "on"})
    page = visitor.get(f"/p/{project.id}/release?tab=groups").text
    assert "People" in page
    assert re.findall(r'<tr><td class="number">(\d+)</td>', page) == ["2", "2"]


def test_the_risk_of_a_large_table_is_counted_beside_the_page(
    visitor: TestClient, studio: Studio, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = opened(visitor, studio, "patients.csv", PATIENTS.write_csv().encode())
    at_once = visitor.get(f"/p/{project.id}/promise").text
    assert 'data-chart="before"' in at_once
    go_on, real = threading.Event(), risks.counted
    monkeypatch.setattr(risks, "AT_ONCE", 10)
    monkeypatch.setattr(risks, "counted", lambda *asked: real(*asked) if go_on.wait(60) else None)
    project.risk_asked = None
    waiting = visitor.get(f"/p/{project.id}/promise").text
    assert f'data-task="/p/{project.id}/tasks/risk"' in waiting
    assert 'data-chart="before"' not in waiting
    go_on.set()
    project.tasks["risk"].wait(60)
    assert visitor.get(f"/p/{project.id}/promise").text == at_once


def test_methods_are_compared_and_a_point_is_taken(visitor: TestClient, studio: Studio) -> None:
    project = opened(visitor, studio, "patients.csv", PATIENTS.write_csv().encode())
    assert post(visitor, project, "compare") == 303
    project.tasks["compare"].wait(120)
    page = visitor.get(f"/p/{project.id}/choose").text
    assert 'data-chart="frontier"' in page
    assert 'href="#take-mondrian-5"' in page
    assert 'id="take-mondrian-5"' in page
    assert post(visitor, project, "take", method="mondrian", k="10") == 303
    assert (project.chosen.settings.method, project.chosen.settings.k) == ("mondrian", 10)
    assert "have changed since" not in visitor.get(f"/p/{project.id}/choose").text
    assert post(visitor, project, "promise", k="10", l="") == 303
    assert "have changed since" in visitor.get(f"/p/{project.id}/choose").text


def test_a_task_can_be_watched_and_cancelled(visitor: TestClient, studio: Studio) -> None:
    project = opened(visitor, studio, "patients.csv", PATIENTS.write_csv().encode())
    with visitor.stream("GET", f"/p/{project.id}/tasks/load") as told:
        assert any('"state":"done"' in line for line in told.iter_lines())
    assert post(visitor, project, "run", method="local", effort="high") == 303
    answer = visitor.post(f"/p/{project.id}/tasks/run/cancel")
    assert answer.status_code == 303
    project.tasks["run"].wait(60)
    assert project.tasks["run"].state == "cancelled"
    assert project.release is None
    assert "Nothing was released" in visitor.get(f"/p/{project.id}/choose").text


def test_the_join_attack_with_a_second_file(visitor: TestClient, studio: Studio) -> None:
    content = PATIENTS.write_csv().encode()
    project = opened(visitor, studio, "patients.csv", content)
    run(visitor, project, method="mondrian", seed="1", **{"waive-linked-rows": "on"})
    asked = {"name": "roll.csv", "on": ["age", "sex"]}
    assert visitor.put(f"/p/{project.id}/attack", params=asked, content=content).status_code == 200
    assert "0 of" in project.attacks[0][1]
    assert "roll.csv" in visitor.get(f"/p/{project.id}/release?tab=attack").text
    lacking = pl.DataFrame({"x": [1]}).write_csv().encode()
    answer = visitor.put(f"/p/{project.id}/attack", params=asked, content=lacking)
    assert answer.status_code == 422
    assert "age" in answer.text
    assert len(list(studio.folder.iterdir())) == 1, "registers are wiped at once"


@pytest.mark.parametrize(
    ("action", "sent", "words"),
    [
        ("promise", {"k": "x"}, "whole number"),
        ("promise", {"k": "1"}, "at least 2"),
        ("promise", {"t": "7"}, "between 0 and 1"),
        ("roles", {"role-0": "subject", "role-1": "subject"}, "two columns"),
        ("run", {"seed": "-3"}, "seed"),
        ("column/4", {"use": "range", "min": "50", "max": "20"}, "first not above"),
        ("column/4", {"use": "intervals", "borders": "5, 3"}, "must rise"),
        ("column/4", {"use": "prefix", "length": "3"}, "does not fit"),
    ],
)
def test_what_is_wrong_in_a_form_is_said_on_its_page(
    visitor: TestClient, studio: Studio, action: str, sent: dict[str, str], words: str
) -> None:
    project = opened(visitor, studio, "patients.csv", PATIENTS.write_csv().encode())
    before = project.chosen
    answer = visitor.post(f"/p/{project.id}/{action}", data={"version": project.version, **sent})
    assert answer.status_code == 422
    assert words in answer.text
    assert project.chosen == before


def test_a_slider_tries_another_z_beside_the_model(visitor: TestClient, studio: Studio) -> None:
    events = stream("domains", scale=0.0005, seed=1).rename({"subject": "client", "value": "site"})
    project = opened(visitor, studio, "visits.csv", events.write_csv().encode())
    shares = []
    for z in ("2", "30"):
        assert post(visitor, project, "try", z=z, window="1h") == 303
        project.tasks["trial"].wait(120)
        found = project.tasks["trial"].result
        assert found is not None, project.tasks["trial"].progress()
        assert found.counters["released"] + found.counters["withheld"] == events.height
        assert 0 <= found.measured <= 1
        assert 0 <= found.model <= 1
        shares.append(found.counters["released"])
    assert shares[0] > shares[1]
    page = visitor.get(f"/p/{project.id}/promise").text
    assert 'data-chart="hidden-this stream"' in page
    assert "by the model" in page


def test_roles_side_by_side_and_what_they_learn_together(visitor: TestClient, studio: Studio) -> None:
    root = Path(__file__).resolve().parents[2] / "examples" / "hospital"
    project = opened(visitor, studio, "patients.csv", (root / "patients.csv").read_bytes())
    policy = (root / "policy.yaml").read_bytes()
    answer = visitor.put(f"/p/{project.id}/roleviews", params={"name": "policy.yaml"}, content=policy)
    assert answer.status_code == 200, answer.text
    project.tasks["roles"].wait(120)
    found = project.tasks["roles"].result
    assert found is not None, project.tasks["roles"].progress()
    assert [seen.role for seen in found.seen] == ["doctor", "nurse", "administration", "billing", "research"]
    page = visitor.get(f"/p/{project.id}/views").text
    assert "What nurse sees" in page
    assert "records linked" in page
    wrong = visitor.put(f"/p/{project.id}/roleviews", params={"name": "p.yaml"}, content=b"columns: {agee: quasi")
    assert wrong.status_code == 422
    assert "YAML" in wrong.text


def test_a_table_of_a_database(visitor: TestClient, studio: Studio, tmp_path: Path, monkeypatch) -> None:
    database = tmp_path / "clinic.db"
    with sqlite3.connect(database) as connection:
        connection.execute("CREATE TABLE patients (sex TEXT, age INTEGER, zip TEXT, diag TEXT)")
        rows = PATIENTS.select("sex", "age", "zip", "diag").rows()
        connection.executemany("INSERT INTO patients VALUES (?, ?, ?, ?)", rows)
    before = database.read_bytes()
    monkeypatch.setenv("CLINIC", f"sqlite:{database}")
    assert "Or a table of a database" in visitor.get("/").text
    answer = visitor.post("/table", data={"address": "env:CLINIC#patients"})
    assert answer.status_code == 303
    project = studio.project(answer.headers["location"].rpartition("/")[2])
    project.tasks["load"].wait(60)
    assert project.frame.height == len(rows)
    assert project.chosen.dataset == "patients"
    assert post(visitor, project, "promise", k="3") == 303
    run(visitor, project, method="mondrian", seed="7")
    assert project.command().startswith("shoal anonymize 'env:CLINIC#patients' --policy policy.yaml")
    (tmp_path / "policy.yaml").write_bytes(visitor.get(f"/p/{project.id}/download/policy.yaml").content)
    words = shlex.split(project.command())
    done = call(words[1:], tmp_path)
    assert done.returncode == 0, done.stderr
    made = visitor.get(f"/p/{project.id}/download/{words[-1]}").content
    assert made == (tmp_path / words[-1]).read_bytes()
    visitor.post("/close", data={"id": project.id})
    assert database.read_bytes() == before  # read where it lies: not changed, and not wiped with the project


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("postgresql://ana:hush@db.example/clinic#visits", "a password"),
        ("env:NOT_THERE#visits", "is not set"),
        ("patients.csv", "expected the address of a database"),
        ("sqlite:clinic.db", "no table is named"),
    ],
)
def test_an_address_that_cannot_be_is_refused_on_the_first_page(visitor: TestClient, address, words) -> None:
    answer = visitor.post("/table", data={"address": address})
    assert answer.status_code == 422
    assert words in answer.text
    assert "hush" not in answer.text


def test_the_sheets_of_a_workbook(visitor: TestClient, studio: Studio, tmp_path: Path) -> None:
    visits = PATIENTS.select("sex", "age", "zip", "diag")
    sheets = {n: [f.columns, *f.rows()] for n, f in (("summary", visits.head(3)), ("all visits", visits))}
    book(tmp_path / "book.xlsx", {**sheets, "empty": []})
    content = (tmp_path / "book.xlsx").read_bytes()
    project = opened(visitor, studio, "book.xlsx", content)
    assert project.sheets == ["summary", "all visits"]
    assert project.frame.height == 3
    page = visitor.get(f"/p/{project.id}/data").text
    assert "all visits" in page
    assert "empty" not in page
    assert post(visitor, project, "sheet", sheet="nothing") == 422
    assert post(visitor, project, "sheet", sheet="all visits") == 303
    project.tasks["load"].wait(60)
    assert project.frame.height == PATIENTS.height
    assert post(visitor, project, "promise", k="3") == 303
    run(visitor, project, method="mondrian", seed="7")
    assert "'book.xlsx#all visits'" in project.command()
    same_as_the_command_line(visitor, project, content, tmp_path)

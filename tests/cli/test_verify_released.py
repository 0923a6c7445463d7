"""What could fool the verifier of a file: cells that are equal numbers and read differently, columns nobody may see."""

from __future__ import annotations

import polars as pl
import pytest

from shoal.policy.load import parse
from shoal.release.judge import Judge
from shoal.views.role_view import RoleView

POLICY = """
dataset: patients
columns: {pid: subject, name: identifier, zip: {role: quasi}, age: {role: quasi}, diag: {role: sensitive}}
views: {lab: {show: [age, diag], promises: [{use: k-anonymity, k: 2}], method: mondrian}}
"""


@pytest.mark.parametrize("cells", ["1e2,100", "0.1,0.10", "5,+5", "-0.0,0.0"])
def test_cells_that_read_differently_are_different(shoal, tmp_path, cells):
    first, second = cells.split(",")
    (tmp_path / "released.csv").write_text(f"code,diag\n{first},a\n{second},b\n")
    done = shoal("verify", "released.csv", "--quasi", "code", "--k", "2")
    assert done.returncode == 1
    assert "reached 1" in done.stdout


def test_a_column_the_role_must_not_see_breaks_the_release(shoal, tmp_path):
    (tmp_path / "policy.yaml").write_text(POLICY)
    head, rows = "name,zip,age,diag,extra", ("Ott,11,30,a,1", "Uhl,22,30,b,2")
    (tmp_path / "leaky.csv").write_text("\n".join([head, *rows]))
    leaky = shoal("verify", "leaky.csv", "--policy", "policy.yaml")
    assert leaky.returncode == 1
    assert "name, zip, extra" in leaky.stdout
    assert "Ott" not in leaky.stdout + leaky.stderr
    (tmp_path / "good.csv").write_text("name,zip,age,diag\n*,,30,a\n*,,30,b\n")
    assert shoal("verify", "good.csv", "--policy", "policy.yaml").returncode == 0


def test_pseudonyms_that_change_are_not_called_people():
    """One person under two pseudonyms would count as two: the verdict says pseudonyms, and why."""
    policy = parse(
        "columns: {pid: subject, at: time, age: {role: quasi, type: int, hierarchy: range}}\n"
        "views: {v: {show: [pid, age], masks: {pid: {use: pseudonym, rotate: 1d}},"
        " promises: [{use: k-anonymity, k: 2}]}}"
    )
    judge = Judge(policy.schema, policy.views["v"].promises, subject="pid", view=RoleView.of(policy, "v"))
    verdict = judge.judge(pl.DataFrame({"pid": ["a", "b"], "age": ["[20, 29]"] * 2}))
    assert {(finding.unit, "counted several times" in finding.note) for finding in verdict.findings} == {
        ("pseudonyms", True)
    }

"""Curves from the command line: a verified release, or a located error and nothing written."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest


@pytest.fixture
def sales(tmp_path):
    values = np.random.default_rng(1).integers(0, 60, (60, 12))
    frame = pl.DataFrame({"code": [f"P{i}" for i in range(60)], **{f"W{j}": values[:, j] for j in range(12)}})
    frame.with_columns(kind=pl.Series([f"c{i % 5}" for i in range(60)])).write_csv(tmp_path / "sales.csv")
    return tmp_path


def test_curves_are_released_and_verified(shoal, sales):
    words = ("--series", "--id", "code", "--sensitive", "kind", "--k", "8", "--p", "3")
    done = shoal("anonymize", "sales.csv", *words, "-o", "out.csv", "--report", "r.json")
    assert done.returncode == 0, done.stderr
    assert "VERIFIED" in done.stderr
    released = pl.read_csv(sales / "out.csv", infer_schema=False)
    assert "code" not in released.columns
    assert released.group_by("group").len()["len"].min() >= 8
    assert json.loads((sales / "r.json").read_text())["verified"] is True


def test_a_policy_can_promise_it(shoal, sales):
    instants = "".join(f"  W{j}: {{role: quasi, type: int}}\n" for j in range(12))
    (sales / "policy.yaml").write_text(
        f"dataset: sales\ncolumns:\n  code: {{role: subject}}\n  kind: {{role: sensitive}}\n{instants}"
        "views:\n  analysts:\n    show: [kind, " + ", ".join(f"W{j}" for j in range(12)) + "]\n"
        "    promises: [{use: kP-anonymity, k: 8, p: 3}]\n    method: banded\n"
    )
    done = shoal("anonymize", "sales.csv", "--policy", "policy.yaml", "-o", "out.csv")
    assert done.returncode == 0, done.stderr
    assert "released by banded" in done.stderr
    assert pl.read_csv(sales / "out.csv", infer_schema=False).group_by("group").len()["len"].min() >= 8


BAD = {
    "k below p": (("sales.csv", "--k", "2", "--p", "3"), 2, "k must be at least p"),
    "no p": (("sales.csv", "--k", "4"), 2, "k and p"),
    "fewer curves than k": (("sales.csv", "--k", "100", "--p", "3"), 1, "100"),
    "text in an instant": (("text.csv", "--k", "2", "--p", "1"), 3, "W1"),
    "duplicate ids": (("twice.csv", "--k", "2", "--p", "1"), 3, "code"),
    "missing instant": (("hole.csv", "--k", "2", "--p", "1"), 3, "missing"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_curves_are_told_and_nothing_is_written(shoal, sales, case):
    (sales / "text.csv").write_text("code,W0,W1\na,1,x\nb,2,3\n")
    (sales / "twice.csv").write_text("code,W0,W1\na,1,2\na,2,3\n")
    (sales / "hole.csv").write_text("code,W0,W1\na,1,\nb,2,3\nc,2,3\n")
    words, code, expected = BAD[case]
    sensitive = ("--sensitive", "kind") if words[0] == "sales.csv" else ()
    before = sorted(sales.iterdir())
    done = shoal("anonymize", words[0], "--series", "--id", "code", *sensitive, *words[1:], "-o", "out.csv")
    assert done.returncode == code, done.stderr
    assert expected in done.stderr
    assert "Traceback" not in done.stderr
    assert sorted(sales.iterdir()) == before

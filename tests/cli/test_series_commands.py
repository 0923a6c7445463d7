"""Curves from the command line: a verified release, or a located error and nothing written."""

from __future__ import annotations

import json
import re

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


def test_the_page_has_pictures_and_no_curve_of_its_own(shoal, sales):
    words = ("--series", "--id", "code", "--sensitive", "kind", "--k", "8", "--p", "3")
    done = shoal("anonymize", "sales.csv", *words, "-o", "out.parquet", "--cells", "struct", "--report", "r.html")
    assert done.returncode == 0, done.stderr
    page = (sales / "r.html").read_text()
    charts = re.findall('data-chart="([a-z0-9-]+)"', page)
    assert {"envelope-0", "shape-0", "widths", "group-sizes", "subgroup-sizes", "withheld"} <= set(charts)
    assert "Questions to the release" in page
    assert "<script" not in page
    assert "P17" not in page
    typed = pl.read_parquet(sales / "out.parquet")
    assert typed.schema["W3"] == pl.Struct({"low": pl.Int64, "high": pl.Int64})
    assert (typed["W3"].struct.field("low") <= typed["W3"].struct.field("high")).all()


def test_a_long_table_is_made_regular_by_the_rules_given(shoal, sales):
    rng = np.random.default_rng(2)
    rows = [(f"P{i}", f"2026-01-01T{h:02}:{m:02}:00", float(v)) for i in range(20) for h in range(6)
            for m, v in ((5, rng.integers(0, 9)), (40, rng.integers(0, 9))) if (i, h) != (3, 2)]  # fmt: skip
    pl.DataFrame(rows, schema=["who", "at", "watts"], orient="row").write_csv(sales / "long.csv")
    words = ("--series", "--id", "who", "--time", "at", "--value", "watts", "--k", "5", "--p", "2", "-o", "out.csv")
    done = shoal("anonymize", "long.csv", *words, "--every", "1h", "--set", "aggregate=sum")
    assert done.returncode == 3  # one hour of one curve is missing, and no rule says what to do
    assert "hint:" in done.stderr
    assert not (sales / "out.csv").exists()
    done = shoal("anonymize", "long.csv", *words, "--every", "1h", "--set", "aggregate=sum", "--missing", "zero")
    assert done.returncode == 0, done.stderr
    released = pl.read_csv(sales / "out.csv")
    assert released.height == 20 * 6
    assert released["watts_high"].max() > 8  # sums of two


def test_perturbation_is_asked_for_and_counted(shoal, sales):
    values = np.random.default_rng(1).integers(0, 60, (60, 12))
    frame = pl.DataFrame({"code": [f"P{i}" for i in range(60)], **{f"W{j}": values[:, j] for j in range(12)}})
    frame.with_columns(pay=pl.Series([i % 2 * 50 for i in range(60)])).write_csv(sales / "pay.csv")
    words = ("--series", "--id", "code", "--sensitive", "pay", "--k", "8", "--p", "4", "--l", "4", "-o", "out.csv")
    changed = shoal("anonymize", "pay.csv", *words, "--perturb", "--set", "most=20", "--report", "r.json")
    assert changed.returncode == 0, changed.stderr
    told = json.loads((sales / "r.json").read_text())
    assert told["altered"]["pay"] > 0
    assert f"Altered: {told['altered']['pay']} values of pay" in changed.stderr
    kept = shoal("anonymize", "pay.csv", *words)
    assert kept.returncode in (0, 1)  # merged, suppressed, or not reachable: but nothing altered
    assert "Altered" not in kept.stderr


def test_released_curves_are_verified_by_what_they_show(shoal, sales):
    words = ("--series", "--id", "code", "--sensitive", "kind", "--k", "8", "--p", "3", "--l", "2")
    assert shoal("anonymize", "sales.csv", *words, "-o", "out.csv", "--weight", "W0=3").returncode == 0
    asked = ("--sensitive", "kind", "--p", "3", "--l", "2")
    fine = shoal("verify", "out.csv", "--k", "8", *asked)
    assert fine.returncode == 0, fine.stderr
    assert "P-anonymity (P=3) inside k-groups: kept" in fine.stdout
    assert "2-diversity of kind: kept" in fine.stdout
    assert shoal("verify", "out.csv", "--k", "30", *asked).returncode == 1
    changed = pl.read_csv(sales / "out.csv", infer_schema=False)
    changed.with_columns(pl.when(pl.int_range(pl.len()) == 0).then(pl.lit("zz")).otherwise("pattern").alias("pattern")
    ).write_csv(sales / "changed.csv")  # fmt: skip
    broken = shoal("verify", "changed.csv", "--k", "8", *asked)
    assert broken.returncode == 1
    assert "reached 1" in broken.stdout
    assert shoal("verify", "out.csv", "--p", "3").returncode == 2
    told = shoal("anonymize", "sales.csv", *words, "-o", "no.csv", "--weight", "kind=3")
    assert told.returncode == 2
    assert "not an instant" in told.stderr


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
    judged = shoal("verify", "out.csv", "--policy", "policy.yaml")
    assert judged.returncode == 0, judged.stderr
    assert "8-anonymity of envelopes: kept" in judged.stdout
    assert pl.read_csv(sales / "out.csv", infer_schema=False).group_by("group").len()["len"].min() >= 8


BAD = {
    "k below p": (("sales.csv", "--k", "2", "--p", "3"), 2, "k must be at least p"),
    "no p": (("sales.csv", "--k", "4"), 2, "k and p"),
    "fewer curves than k": (("sales.csv", "--k", "100", "--p", "3"), 1, "100"),
    "text in an instant": (("text.csv", "--k", "2", "--p", "1"), 3, "W1"),
    "duplicate ids": (("twice.csv", "--k", "2", "--p", "1"), 3, "code"),
    "missing instant": (("hole.csv", "--k", "2", "--p", "1"), 3, "missing"),
    "ragged rows": (("ragged.csv", "--k", "2", "--p", "1"), 3, "ragged.csv"),
    "no such rule": (("sales.csv", "--k", "8", "--p", "3", "--missing", "guess"), 2, "missing"),
    "no such parameter": (("sales.csv", "--k", "8", "--p", "3", "--set", "bend=3"), 2, "bend"),
    "nothing to alter": (("sales.csv", "--k", "8", "--p", "3", "--set", "most=3"), 2, "--perturb"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_curves_are_told_and_nothing_is_written(shoal, sales, case):
    (sales / "text.csv").write_text("code,W0,W1\na,1,x\nb,2,3\n")
    (sales / "twice.csv").write_text("code,W0,W1\na,1,2\na,2,3\n")
    (sales / "hole.csv").write_text("code,W0,W1\na,1,\nb,2,3\nc,2,3\n")
    (sales / "ragged.csv").write_text("code,W0,W1\na,1,2\nb,2,3,4,5\nc,2\n")
    words, code, expected = BAD[case]
    sensitive = ("--sensitive", "kind") if words[0] == "sales.csv" else ()
    before = sorted(sales.iterdir())
    output = ("-o", "out.csv", "--report", "r.html")
    done = shoal("anonymize", words[0], "--series", "--id", "code", *sensitive, *words[1:], *output)
    assert done.returncode == code, done.stderr
    assert expected in done.stderr
    assert "hint:" in done.stderr
    assert "Traceback" not in done.stderr
    assert sorted(sales.iterdir()) == before


def test_a_long_release_is_verified_as_it_was_written(shoal, sales):
    rng = np.random.default_rng(2)
    rows = [(f"P{i}", h, float(rng.integers(0, 9)), i % 4) for i in range(40) for h in range(6)]
    pl.DataFrame(rows, schema=["who", "hour", "watts", "kind"], orient="row").write_csv(sales / "long.csv")
    words = ("--series", "--id", "who", "--time", "hour", "--value", "watts", "--sensitive", "kind")
    done = shoal("anonymize", "long.csv", *words, "--k", "8", "--p", "3", "-o", "out.csv")
    assert done.returncode == 0, done.stderr
    fine = shoal("verify", "out.csv", "--k", "8", "--p", "3", "--sensitive", "kind")
    assert fine.returncode == 0, fine.stdout + fine.stderr
    assert shoal("verify", "out.csv", "--k", "30", "--p", "3", "--sensitive", "kind").returncode == 1

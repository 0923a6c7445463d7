"""One road for curves and growing tables: what a policy or an option asks of them has its effect by every caller."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import shoal
from shoal.core.hierarchy.tree import Tree
from shoal.policy.load import load
from shoal.release.job import job_of
from shoal.release.wishes import Wishes
from tests.cli.in_process import call

POLICY = """
dataset: curves
columns: {who: subject, W0: quasi, W1: quasi, W2: quasi, W3: quasi, s: sensitive}
views:
  shapes:
    show: [W0, W1, W2, W3, s]
    promises: [{use: kP-anonymity, k: 6, p: 3}]
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    at = tmp_path_factory.mktemp("curves")
    rng = np.random.default_rng(1)
    frame = pl.DataFrame({"who": range(60), **{f"W{i}": rng.integers(0, 9, 60) for i in range(4)}})
    frame.with_columns(s=pl.Series(["a", "b", "c"] * 20)).write_csv(at / "c.csv")
    (at / "pol.yaml").write_text(POLICY)
    return at


def run(folder: Path, *words: str):
    return call(list(words), folder)


def test_a_curve_policy_gives_the_same_bytes_by_every_caller(folder):
    frame = pl.read_csv(folder / "c.csv")
    policy = load(folder / "pol.yaml")
    made = shoal.anonymize(frame, policy=policy, view="shapes", seed=3)
    assert made.report.verified
    assert shoal.view(frame, policy, "shapes", seed=3).data.equals(made.data)
    assert shoal.verify(made.data, policy=policy, view="shapes")
    expected = made.data.write_csv()
    by_policy = run(folder, "anonymize", "c.csv", "--policy", "pol.yaml", "--seed", "3")
    viewed = run(folder, "view", "pol.yaml", "c.csv", "--role", "shapes", "--seed", "3")
    assert by_policy.stdout == viewed.stdout == expected, by_policy.stderr + viewed.stderr
    (folder / "out.csv").write_text(expected)
    assert run(folder, "verify", "out.csv", "--policy", "pol.yaml").returncode == 0
    checked = run(folder, "check", "pol.yaml", "c.csv")
    assert checked.returncode == 0, checked.stderr


def test_options_beside_a_curve_policy_have_their_effect(folder):
    stronger = run(folder, "anonymize", "c.csv", "--policy", "pol.yaml", "--k", "20", "--seed", "3", "-o", "k20.csv")
    assert stronger.returncode == 0, stronger.stderr
    assert run(folder, "verify", "k20.csv", "--policy", "pol.yaml", "--k", "20").returncode == 0
    policy = load(folder / "pol.yaml")
    banded = job_of(Wishes({"policy": policy, "view": "shapes", "method": "banded"})).run(pl.read_csv(folder / "c.csv"))
    assert banded.curves.method.use == "banded"


def test_t_is_kept_of_curves_or_refused(folder):
    words = ["anonymize", "c.csv", "--series", "--id", "who", "--sensitive", "s", "--k", "6", "--p", "3", "-o", "t.csv"]
    made = run(folder, *words, "--t", "0.4")
    assert made.returncode == 0, made.stderr
    assert "closeness" in made.stderr
    asked = ["--sensitive", "s", "--k", "6", "--p", "3"]
    assert run(folder, "verify", "t.csv", *asked, "--t", "0.4").returncode == 0
    nothing = run(folder, "anonymize", "c.csv", "--series", "--id", "who", "--k", "6", "--p", "3", "--t", "0.4")
    assert nothing.returncode == 2  # there is no sensitive column that it could be about


def test_a_growing_table_keeps_hierarchical_closeness(tmp_path):
    tree = Tree(nodes={"virus": ["flu", "cold"], "other": ["asthma", "gout"]})
    schema = shoal.Schema(
        {
            "age": shoal.Column("quasi", hierarchy=shoal.Range(min=0, max=100)),
            "diag": shoal.Column("sensitive", hierarchy=tree),
        }
    )
    close = shoal.TCloseness(0.9, "diag", "hierarchical")
    frame = pl.DataFrame({"age": [20, 21, 50, 52] * 2, "diag": ["flu", "asthma", "cold", "gout"] * 2})
    wishes = {"schema": schema, "k": 2, "promises": [close], "append": str(tmp_path / "state"), "seed": 1}
    made = job_of(Wishes(wishes)).run(frame)
    assert made.report.verified
    assert {finding.promise for finding in made.report.findings} >= {close.title}

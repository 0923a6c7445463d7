"""A model from the command line: kept by one release, used by the next file."""

from __future__ import annotations

import polars as pl

import shoal as package

KEY = {"SHOAL_KEY": "ab" * 32}
COLUMNS = ("--quasi", "zip,sex,age", "--hierarchy", "zip=prefix:5", "--sensitive", "diag", "--k", "4", "--seed", "1")


def test_new_rows_join_a_release_by_its_model(shoal, tmp_path):
    package.hospital(200, seed=1).write_csv(tmp_path / "t.csv")
    package.hospital(60, seed=7).write_csv(tmp_path / "monday.csv")
    done = shoal("anonymize", "t.csv", *COLUMNS, "--save-model", "t.model", "-o", "r.csv", **KEY)
    assert done.returncode == 0, done.stderr
    joined = shoal("anonymize", "monday.csv", "--model", "t.model", "-o", "m.csv", **KEY)
    assert joined.returncode == 0, joined.stderr
    assert "4-anonymity: kept" in joined.stderr
    first, second = (pl.read_csv(tmp_path / name, infer_schema=False) for name in ("r.csv", "m.csv"))
    assert second.height
    assert set(second.columns) == {"zip", "sex", "age", "diag"}
    cells = ["zip", "sex", "age"]
    assert set(second.select(cells).rows()) <= set(first.select(cells).rows()), "only cells that stood there before"
    assert b"sensitive" not in (tmp_path / "t.model").read_bytes()


def test_a_model_declares_the_types_itself(shoal, tmp_path):
    package.hospital(100, seed=1).write_csv(tmp_path / "t.csv")
    assert shoal("anonymize", "t.csv", *COLUMNS, "--save-model", "t.model", "-o", "r.csv", **KEY).returncode == 0
    twice = shoal("anonymize", "t.csv", "--model", "t.model", "--type", "age=int", "-o", "m.csv", **KEY)
    assert twice.returncode == 2
    assert "the model declares the type of column 'age'" in twice.stderr


def test_a_model_needs_its_key_and_takes_no_other_promise(shoal, tmp_path):
    package.hospital(100, seed=1).write_csv(tmp_path / "t.csv")
    done = shoal("anonymize", "t.csv", *COLUMNS, "--save-model", "t.model", "-o", "r.csv")
    assert done.returncode == 2
    assert "no key" in done.stderr
    assert not (tmp_path / "r.csv").exists()
    assert shoal("anonymize", "t.csv", *COLUMNS, "--save-model", "t.model", "-o", "r.csv", **KEY).returncode == 0
    other = shoal("anonymize", "t.csv", "--model", "t.model", "-o", "m.csv", SHOAL_KEY="cd" * 32)
    assert other.returncode == 3
    weaker = shoal("anonymize", "t.csv", "--model", "t.model", "--k", "2", "-o", "m.csv", **KEY)
    assert weaker.returncode == 2
    assert "--k" in weaker.stderr
    dry = shoal("anonymize", "t.csv", "--model", "t.model", "--dry-run", **KEY)
    assert dry.returncode == 0, dry.stderr
    before = (tmp_path / "t.model").read_bytes()
    assert shoal("anonymize", "t.csv", "--model", "t.model", "-o", "m.csv", **KEY).returncode == 0
    assert (tmp_path / "t.model").read_bytes() != before, "who joined is written down"

"""Every parameter of Bacconi 2021, Table 7.1, is an option of `shoal stream`."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from shoal.cli import main

BASE = "stream e.csv --z 3 --window 1h --subject who --value what -o out.ndjson --json"


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SHOAL_KEY", "ab" * 32)
    rng = np.random.default_rng(5)
    what = [f"{'ab'[i % 2]}.{i}" for i in rng.zipf(1.5, 900) % 40]
    frame = pl.DataFrame({"time": np.arange(900) * 10, "who": rng.integers(0, 60, 900), "what": what})
    frame.write_csv("e.csv")
    frame.with_columns(pl.col("what").str.replace(".", "/", literal=True)).write_csv("slash.csv")

    def go(*more: str, file: str = "e.csv", path: str = "path") -> tuple[int, dict, str, list[dict]]:
        with pytest.raises(SystemExit) as ended:
            main([*BASE.replace("e.csv", file).split(), "--hierarchy", path, *more])
        told = capsys.readouterr().err
        found = json.loads(told[told.index("{\n") :]) if ended.value.code == 0 else {}
        rows = (
            [json.loads(line) for line in Path("out.ndjson").read_text().splitlines()] if ended.value.code == 0 else []
        )
        return ended.value.code, found, told, rows

    return go


def test_generalize(run):
    assert {len(r["what"].split(".")) for r in run()[3]} == {1, 2}
    assert {len(r["what"].split(".")) for r in run("--exact")[3]} == {2}


def test_z0_and_the_tuner(run):
    _, found, _, _ = run("--goal-k", "3", "--every", "20m", "--z0", "40", "--tuner", "incremental")
    assert found["z"] != 3
    assert found["z"] >= 30  # one step every 20 minutes, from 40
    _, searched, _, _ = run("--goal-k", "3", "--every", "20m", "--z0", "40", "--tuner", "search")
    assert searched["z"] != found["z"]


def test_noise(run):
    assert run()[1].get("fakes", 0) == 0
    code, found, _, rows = run("--noise", "0.4")
    assert code == 0
    assert found["fakes"] > 0
    assert len(rows) == found["released"] + found["fakes"]


def test_a_path_takes_its_separator(run):
    plain = [r["what"] for r in run()[3]]
    slashes = [r["what"] for r in run(file="slash.csv", path="path:/")[3]]
    assert [w.replace("/", ".") for w in slashes] == plain


@pytest.mark.parametrize("words", [["--tuner", "model"], ["--z0", "9"], ["--goal-p", "0.5"]])
def test_what_needs_a_goal_says_so(run, words):
    code, _, told, _ = run(*words)
    assert code == 2
    assert f"{words[0]}: has no effect without --goal-k" in told

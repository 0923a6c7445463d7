"""A hierarchy that knows none or few of the values: said loudly with counts, and refused by `check`."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

from shoal.cli import main as command_line

POLICY = """
dataset: taxis
columns:
  time: {role: time, unit: s}
  who: subject
  lat: {role: LAT, hierarchy: {use: grid, sizes: [1000, 10000]}}
  lon: {role: LAT, hierarchy: {use: grid, sizes: [1000, 10000]}}
  DERIVED
views:
  table:
    show: [SHOWN]
    promises: [{use: k-anonymity, k: 3}]
  stream:
    show: [time, who, SHOWN]
    masks: {who: suppress}
    promises: [{use: z-anonymity, z: 3, window: 1h}]
    method: z-anonymity
  later:
    show: [SHOWN]
    promises: [{use: k-anonymity, k: 3}]
    method: {use: batches, delay: 20}
"""
APART = POLICY.replace("LAT", "quasi").replace("  DERIVED\n", "").replace("SHOWN", "lat, lon")
DERIVED = "place: {role: quasi, derive: {use: position, of: [lat, lon]}, hierarchy: {use: grid, sizes: [1000, 10000]}}"
JOINED = (
    POLICY.replace("{role: LAT, hierarchy: {use: grid, sizes: [1000, 10000]}}", "identifier")
    .replace("DERIVED", DERIVED)
    .replace("SHOWN", "place")
)


def main(words: list[str]) -> object:
    with pytest.raises(SystemExit) as ended:
        command_line(words)
    return ended.value.code


@pytest.fixture
def taxis(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    pl.DataFrame(
        {
            "time": np.arange(300),
            "who": rng.integers(0, 40, 300),
            "lat": np.round(40 + rng.random(300) / 50, 4),
            "lon": np.round(-74 + rng.random(300) / 50, 4),
        }
    ).write_csv("taxis.csv")
    (tmp_path / "apart.yaml").write_text(APART)
    (tmp_path / "joined.yaml").write_text(JOINED)
    return tmp_path


def test_check_refuses_a_hierarchy_of_other_values(taxis, capsys):
    assert main(["check", "apart.yaml", "taxis.csv"]) == 2
    told = capsys.readouterr().err
    assert "columns.lat.hierarchy: the hierarchy knows none of 300 values" in told
    assert "derive" in told
    assert main(["check", "joined.yaml", "taxis.csv"]) == 0
    assert "knows" not in capsys.readouterr().err


@pytest.mark.parametrize("view", ["table", "stream", "later"])
def test_files_say_it_loudly_with_counts(taxis, capsys, view):
    command = ["anonymize", "taxis.csv", "--view", view, "-o", "out.csv", "--json"]
    main([*command, "--policy", "apart.yaml"])
    seen = capsys.readouterr()
    who = "error: columns.lat.hierarchy: the hierarchy" if view == "table" else "warning: the hierarchy of column 'lat'"
    assert f"{who} knows none of 300 values" in seen.err
    assert main([*command, "--policy", "joined.yaml"]) == 0
    assert "warning" not in capsys.readouterr().err
    assert pl.read_csv("out.csv").height > 100


@pytest.mark.parametrize("view", ["stream", "later"])
def test_streams_say_it_loudly_with_counts(taxis, capsys, view):
    command = ["stream", "taxis.csv", "--view", view, "-o", "out.ndjson"]
    assert main([*command, "--policy", "apart.yaml"]) == 0
    assert "warning: the hierarchy of column 'lon' knows none of 300 values" in capsys.readouterr().err
    assert main([*command, "--policy", "joined.yaml"]) == 0
    assert "warning" not in capsys.readouterr().err
    first = json.loads((taxis / "out.ndjson").read_text().splitlines()[0])
    assert first["place"].endswith("m")
    assert first.get("lat", "*") == "*"


def test_some_unknown_values_are_counted_and_no_reason_to_refuse(taxis, capsys):
    (taxis / "tree.csv").write_text("a;x;*\nb;x;*\n")
    pl.DataFrame({"v": ["a", "b"] * 30 + ["Meier"] * 7}).write_csv("letters.csv")
    assert (
        main(["anonymize", "letters.csv", "--quasi", "v", "--hierarchy", "v=tree.csv", "--k", "3", "-o", "o.csv"]) == 0
    )
    told = capsys.readouterr().err
    assert "warning: the hierarchy of column 'v' knows 60 of 67 values" in told
    assert "Meier" not in told

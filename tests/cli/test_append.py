"""Continuous mode from the command line: Listing 3.11 of Garai 2019, chunk by chunk, through a state file."""

from __future__ import annotations

import polars as pl
import pytest

COLUMNS = ("--quasi", "age,pet", "--hierarchy", "age=range:0:50")
WORDS = (*COLUMNS, "--k", "2", "--append", "growing.state", "-o", "out.csv")


def chunk(folder, name, rows):
    pl.DataFrame(rows, schema=["age", "pet"], orient="row").write_csv(folder / name)


@pytest.mark.parametrize("publish", ["whole", "new"])
def test_chunks_are_released_as_they_come(shoal, tmp_path, publish):
    chunk(tmp_path, "0.csv", [(27, "cats")])
    chunk(tmp_path, "1.csv", [(38, "dogs"), (30, "cats"), (40, "dogs")])
    chunk(tmp_path, "2.csv", [(38, "dogs"), (40, "dogs"), (27, "cats"), (28, "cats")])
    key = {"SHOAL_KEY": "ab" * 32}
    held = shoal("anonymize", "0.csv", *WORDS, "--publish", publish, **key)
    assert held.returncode == 0, held.stderr
    assert "held back 1 row" in held.stderr
    assert not (tmp_path / "out.csv").exists()
    sizes = []
    for name in ("1.csv", "2.csv"):
        done = shoal("anonymize", name, *WORDS, "--publish", publish, **key)
        assert done.returncode == 0, done.stderr
        assert "2-anonymity: kept" in done.stderr
        released = pl.read_csv(tmp_path / "out.csv", infer_schema=False)
        assert released.group_by("age", "pet").len()["len"].min() >= 2
        sizes.append(released.height)
    assert sizes == ([4, 8] if publish == "whole" else [4, 4])


def test_held_rows_are_written_only_under_a_key(shoal, tmp_path):
    chunk(tmp_path, "0.csv", [(27, "cats")])
    done = shoal("anonymize", "0.csv", *WORDS)
    assert done.returncode == 2
    assert "SHOAL_KEY" in done.stderr
    assert not (tmp_path / "growing.state").exists()


def test_a_state_without_a_seal_and_an_older_one_are_refused(shoal, tmp_path):
    chunk(tmp_path, "1.csv", [(27, "cats"), (30, "cats"), (38, "dogs"), (40, "dogs")])
    state, key = tmp_path / "growing.state", {"SHOAL_KEY": "ab" * 32}
    assert shoal("anonymize", "1.csv", *WORDS).returncode == 0
    forged = shoal("anonymize", "1.csv", *WORDS, **key)
    assert forged.returncode != 0
    assert "no seal, though a key is given" in forged.stderr
    state.unlink()
    (tmp_path / "growing.state.counter").unlink()
    assert shoal("anonymize", "1.csv", *WORDS, **key).returncode == 0
    older = state.read_bytes()
    assert shoal("anonymize", "1.csv", *WORDS, **key).returncode == 0
    state.write_bytes(older)
    rolled = shoal("anonymize", "1.csv", *WORDS, **key)
    assert rolled.returncode != 0
    assert "this is an older state: expected writing 2, found 1" in rolled.stderr

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


def visits(rows):
    """Two rows per person, whose card number is shown beside the groups."""
    out = [(age, card, who) for who, (age, other, card) in enumerate(rows) for age in (age, other)]
    return pl.DataFrame(out, schema=["age", "card", "who"], orient="row")


@pytest.mark.parametrize("publish", ["whole", "new"])
def test_a_column_that_links_rows_is_refused_in_a_growing_table_until_it_is_waived(shoal, tmp_path, publish):
    """Only laid together do the rows of a card fit one person alone."""
    ages = [(10, 40), (11, 41), (12, 42), (40, 10), (41, 41), (12, 12)]
    both = visits([(a, b, f"c{i}") for i, (a, b) in enumerate(ages)])
    if publish == "new":  # where only newcomers count, both rows of a card come in one chunk
        others = pl.DataFrame({"age": [10, 11, 40, 41], "card": [f"o{i}" for i in range(4)], "who": range(90, 94)})
        first, second = others, both
    else:
        first, second = (both.filter(pl.int_range(pl.len()) % 2 == at) for at in (0, 1))
    first.write_csv(tmp_path / "1.csv")
    second.write_csv(tmp_path / "2.csv")
    columns = ("--quasi", "age", "--plain", "card", "--subject", "who", "--hierarchy", "age=range:0:50")
    words = (*columns, "--k", "2", "--append", "growing.state", "--publish", publish, "-o", "out.csv")
    key = {"SHOAL_KEY": "ab" * 32}
    assert shoal("anonymize", "1.csv", *words, **key).returncode == 0
    state, before = (tmp_path / "growing.state").read_bytes(), (tmp_path / "out.csv").read_bytes()
    refused = shoal("anonymize", "2.csv", *words, **key)
    assert refused.returncode == 1, refused.stderr
    assert "the column 'card' shows which rows belong to one person" in refused.stderr
    assert (tmp_path / "growing.state").read_bytes() == state
    assert (tmp_path / "out.csv").read_bytes() == before
    waived = shoal("anonymize", "2.csv", *words, "--waive", "linked-rows", **key)
    assert waived.returncode == 0, waived.stderr
    assert "waiver: linked-rows" in waived.stderr
    assert "of the rows that 'card' links" in waived.stderr


def test_a_name_that_is_called_plain_is_refused_in_a_growing_table(shoal, tmp_path):
    rows = pl.DataFrame({"age": [i % 4 for i in range(40)], "card": [f"c{i}" for i in range(40)]})
    rows.write_csv(tmp_path / "1.csv")
    words = (
        "--quasi",
        "age",
        "--plain",
        "card",
        "--hierarchy",
        "age=range:0:50",
        "--k",
        "2",
        "--append",
        "s",
        "-o",
        "o.csv",
    )
    refused = shoal("anonymize", "1.csv", *words, SHOAL_KEY="ab" * 32)
    assert refused.returncode == 1
    assert "have a value of their own in the column 'card'" in refused.stderr
    assert not (tmp_path / "o.csv").exists()


def test_a_waiver_that_does_nothing_for_a_growing_table_is_refused(shoal, tmp_path):
    chunk(tmp_path, "1.csv", [(27, "cats"), (30, "cats")])
    refused = shoal("anonymize", "1.csv", *WORDS, "--waive", "earlier-release", SHOAL_KEY="ab" * 32)
    assert refused.returncode == 2
    assert "not compared with other releases" in refused.stderr

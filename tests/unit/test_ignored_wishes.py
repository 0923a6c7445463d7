"""What a policy says and nobody would do is refused where it stands, with a hint."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from shoal.core.errors import ShoalError
from shoal.policy.load import parse
from tests.cli.in_process import call

POLICY = """
columns:
  at: {role: time TIME}
  who: {role: subject WHO}
  age: {role: quasi, type: int, hierarchy: {use: range, min: 0, max: 120}}
  note: {role: plain NOTE}
  diag: {role: sensitive DIAG}
views:
  delayed:
    show: [at, age]
    masks: {MASK}
    promises: [{use: k-anonymity, k: 2}]
    method: {use: batches, delay: 20}
  other:
    show: [at, age, note]
    masks: {MASK}
"""
VISITS = """
columns: {at: time, who: subject, site: {role: quasi, hierarchy: path}}
views:
  m:
    show: [site]
    promises: [{use: z-anonymity, z: 2, window: 1h}]
    method: {use: z-anonymity, METHOD}
"""
GRADES = ", hierarchy: {use: tree, nodes: {low: [a], high: [b]}}"
HOURS = ", hierarchy: {use: calendar, levels: [hour, day]}"


def policy(**said: str) -> str:
    text = POLICY
    for place in ("TIME", "WHO", "NOTE", "DIAG", "MASK"):
        text = text.replace(f" {place}" if place != "MASK" else place, said.get(place.lower(), ""))
    return text


@pytest.mark.parametrize(
    ("said", "column", "word"),
    [
        ({"time": HOURS}, "at", "hierarchy"),
        ({"note": GRADES}, "note", "hierarchy"),
        ({"who": GRADES}, "who", "hierarchy"),
        *[({role: ", weight: 2"}, at, "weight") for role, at in (("note", "note"), ("diag", "diag"), ("time", "at"))],
        ({"note": ", loss: rank"}, "note", "loss"),
        ({"diag": ", missing: suppress"}, "diag", "missing"),
        ({"note": ", unit: ms"}, "note", "unit"),
        ({"who": ", late: 5s"}, "who", "late"),
        ({"diag": ", ahead: 5s"}, "diag", "ahead"),
    ],
    ids=str,
)
def test_what_a_column_cannot_have_is_told_at_the_column(said, column, word):
    parse(policy())
    with pytest.raises(ShoalError, match=word) as error:
        parse(policy(**said))
    assert f"columns.{column}" in str(error.value)
    assert error.value.hint


def test_a_hierarchy_that_a_mask_uses_is_fine():
    parse(policy(time=HOURS, mask="at: {use: generalize, level: 1}"))
    parse(policy(diag=GRADES))


def visits(method: str) -> str:
    return VISITS.replace("METHOD", method)


@pytest.mark.parametrize(
    ("method", "place"),
    [
        ("allow_noise: true", "allow_noise"),
        ("tune: {by: search, proportional: true}", "proportional"),
        ("tune: {by: model, step: 3}", "step"),
        ("tune: {by: incremental, windows: 2}", "windows"),
        ("tune: {zone: 1h}", "zone"),
    ],
)
def test_what_a_method_would_not_do_is_told(method, place):
    with pytest.raises(ShoalError, match=f"`{place}` has no effect without") as error:
        parse(visits(method))
    assert "views.m.method" in str(error.value)
    assert error.value.hint


@pytest.mark.parametrize(
    "method",
    [
        "noise: {most: 0.5}, allow_noise: true",
        "tune: {by: incremental, proportional: true, step: 3}",
        "tune: {by: model, windows: 2}",
        "tune: {zone: 1h, learn: true}",
    ],
)
def test_and_beside_what_uses_it_it_is_taken(method):
    parse(visits(method))


def test_times_are_not_trusted_where_there_are_none(tmp_path):
    (tmp_path / "p.yaml").write_text(policy().replace("  at: {role: time}\n", "").replace("at, ", ""))
    pl.DataFrame({"who": range(9), "age": [30] * 9, "note": ["n"] * 9, "diag": ["a"] * 9}).write_ndjson(
        tmp_path / "e.ndjson"
    )
    words = ["stream", "e.ndjson", "--policy", "p.yaml", "--view", "delayed", "-o", "out.ndjson"]
    refused = call([*words, "--trust-times"], Path(tmp_path))
    assert refused.returncode == 2
    assert "--trust-times: has no effect without a time column" in refused.stderr
    assert not (tmp_path / "out.ndjson").exists()
    assert call(words, Path(tmp_path)).returncode == 0

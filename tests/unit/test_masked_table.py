"""A view with promises: masks first, people counted by the unmasked subject, nothing named in clear."""

from __future__ import annotations

import polars as pl
import pytest

from shoal.core.errors import PolicyError, PromiseError
from shoal.policy.load import parse
from shoal.release import roles as role_views
from shoal.testing.masks import fixed_ring

KEYS = fixed_ring()
POLICY = """
dataset: visits
columns:
  pid:  {role: subject}
  time: {role: time, type: int}
  age:  {role: quasi, type: int}
  town: {role: quasi, type: str}
  diag: {role: sensitive}
views:
  study:
    show: [pid, time, age, town, diag]
    masks: {pid: {use: pseudonym, rotate: 1h}, town: {use: blur, first: 1, length: 2}}
    promises: [{use: k-anonymity, k: 2}]
  open: {show: [pid, age], promises: [{use: k-anonymity, k: 2}]}
"""


def visits(people: list[int]) -> pl.DataFrame:
    n = len(people)
    return pl.DataFrame(
        {
            "pid": people,
            "time": [7200 * at for at in range(n)],
            "age": [30 + at for at in range(n)],
            "town": ["Berlin", "Bonn"] * (n // 2),
            "diag": ["flu"] * n,
        }
    )


def test_one_person_under_many_pseudonyms_is_one_person():
    policy = parse(POLICY)
    with pytest.raises(PromiseError):
        role_views.view(visits([7, 7, 7, 7]), policy, "study", keys=KEYS)


def test_masked_columns_are_published_masked_and_the_subject_never_in_clear():
    made = role_views.view(visits([1, 2, 3, 4]), parse(POLICY), "study", keys=KEYS)
    assert made.data.columns == ["pid", "time", "age", "town", "diag"]
    assert made.data["pid"].str.starts_with("v2:").all()
    assert set(made.data["town"]) <= {"BXX", "*"}
    assert made.release.report.verified


def test_a_subject_in_clear_beside_a_promise_is_refused():
    with pytest.raises(PolicyError, match="names people"):
        role_views.view(visits([1, 2, 3, 4]), parse(POLICY), "open", keys=KEYS)


def test_keys_come_from_the_environment_if_none_are_given(monkeypatch):
    monkeypatch.delenv("SHOAL_KEYS", raising=False)
    monkeypatch.delenv("SHOAL_KEY", raising=False)
    with pytest.raises(PolicyError, match="no key called"):
        role_views.view(visits([1, 2, 3, 4]), parse(POLICY), "study")
    monkeypatch.setenv("SHOAL_KEY", "00" * 31 + "01")
    assert role_views.view(visits([1, 2, 3, 4]), parse(POLICY), "study").data.height == 4

"""Random rows: by person, with the key, the same again; refused where it would not be what it says."""

from __future__ import annotations

import polars as pl
import pytest

from shoal.core.errors import PolicyError, ShoalError
from shoal.core.keys import KeyRing
from shoal.policy.load import parse
from shoal.release import roles
from shoal.release.checked import checked
from shoal.release.job import job_of
from shoal.release.wishes import Wishes
from shoal.testing.masks import fixed_ring
from shoal.views.explain import explain
from shoal.views.records import RecordGate
from shoal.views.role_view import RoleView
from shoal.views.windows import WindowGate

KEYS = fixed_ring()
COLUMNS = "columns: {pid: {role: subject, type: str}, ward: plain, pay: {role: plain, type: float}}"
POLICY = parse(
    COLUMNS
    + """
views:
  lab: {show: [ward, pay], sample: 0.25}
  desk: {show: [ward, pay], sample: 0.25}
  all: {show: [ward, pay]}
"""
)
FRAME = pl.DataFrame(
    {
        "pid": [f"p{n % 2000}" if n % 10 else None for n in range(6000)],
        "ward": [f"w{n % 7}" for n in range(6000)],
        "pay": [float(n) for n in range(6000)],
    }
)


def shown(role, frame=FRAME, keys=KEYS):
    return roles.view(frame, POLICY, role, keys=keys, seed=0)


def test_a_share_of_the_people_with_all_their_rows():
    made = shown("lab")
    who = FRAME["pid"].gather(made.rows)
    kept = who.drop_nulls().unique()
    everyone = FRAME["pid"].drop_nulls().unique()
    # binomial of 1,800 people, and of 600 rows of nobody: five standard deviations
    assert abs(len(kept) - 0.25 * len(everyone)) < 5 * (len(everyone) * 0.1875) ** 0.5
    assert abs(who.null_count() - 150) < 5 * (600 * 0.1875) ** 0.5
    assert FRAME["pid"].is_in(kept.implode()).sum() == len(who) - who.null_count()
    assert made.data.height == len(made.rows)
    assert made.withheld == 6000 - made.data.height > 0
    assert made.data["pay"].sort().equals(FRAME["pay"].gather(made.rows).sort())


def test_the_same_again_whatever_else_is_in_the_file():
    first, half = shown("lab"), FRAME.head(3000)
    again = shown("lab", half)
    assert set(again.rows) == {row for row in first.rows if row < 3000}


def test_it_is_said_by_explain_and_by_the_report():
    rows = {row[0]: row[2:] for row in explain(POLICY).rows()}
    assert rows["sample"] == ["25 % of the people", "25 % of the people", "everybody"]
    report = job_of(Wishes({"policy": POLICY, "view": "lab", "keys": KEYS, "seed": 0})).run(FRAME).report
    assert list(report.withheld) == ["not in the sample"]


def test_roles_and_keys_draw_for_themselves():
    lab, desk = set(shown("lab").rows), set(shown("desk").rows)
    other = set(shown("lab", keys=KeyRing({"default": {1: bytes(32)}})).rows)
    for one in (desk, other):
        # independent shares of a quarter share a sixteenth: of about 1,800 people, some 112
        assert 200 < len(lab & one) < 560


def test_pools_count_who_is_in_both():
    (pool,) = (p for p in checked(POLICY, FRAME, keys=KEYS).pools if set(p.roles) == {"lab", "all"})
    assert 0 < pool.linked <= shown("lab").data.height


def test_it_is_refused_where_it_would_not_hold():
    for share in ("0", "1", "-0.1", "true", "x", "2"):
        with pytest.raises(PolicyError, match="share between 0 and 1"):
            parse(COLUMNS + f"\nviews: {{lab: {{show: [ward], sample: {share}}}}}")
    with pytest.raises(PolicyError, match="promises"):
        parse(COLUMNS + "\nviews: {lab: {show: [ward], sample: 0.1, promises: [{use: k-anonymity, k: 2}]}}")
    view = RoleView.of(POLICY, "lab")
    with pytest.raises(PolicyError, match="not of a stream"):
        RecordGate([view], KEYS)
    with pytest.raises(PolicyError, match="not of a stream"):
        WindowGate(view, KEYS)
    with pytest.raises(ShoalError, match="sample"):
        job_of(Wishes({"policy": POLICY, "view": "lab", "k": 2, "keys": KEYS})).run(FRAME)
    assert checked(POLICY, keys=KeyRing()).keys_missing == ["default"]
    with pytest.raises(ShoalError):
        shown("lab", keys=KeyRing())

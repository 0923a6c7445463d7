"""What a mask could not do as it was asked is counted and said at `check` and `view`, never shown."""

from __future__ import annotations

import polars as pl
import pytest

from shoal.core.schema import Column, Schema
from shoal.core.vault import Vault
from shoal.masks import MASKS
from shoal.policy.load import parse
from shoal.release.checked import checked
from shoal.release.job import job_of
from shoal.release.roles import view
from shoal.release.wishes import Wishes
from shoal.testing.masks import fixed_ring
from shoal.views.explain import explain
from shoal.views.frames import FrameGate
from shoal.views.role_view import RoleView

KEYS = fixed_ring()
POLICY = """
columns:
  pid: {role: subject, type: str}
  card: {role: identifier, type: str}
  came: {role: plain, type: date}
  pay: {role: plain, type: float}
views:
  desk:
    show: [card, came, pay]
    masks: {card: {use: tokenize, form: ff1}, came: {use: date-shift, days: 30}, pay: {use: noise, spread: 5}}
"""


def test_check_counts_ids_too_short_for_ff1_and_cells_of_nobody():
    frame = pl.DataFrame(
        {
            "pid": ["a", None, "c", None],
            "card": ["4711", "0815", "4556123409871357", None],
            "came": pl.Series(["2024-01-01"] * 3 + [None]).str.to_date(),
            "pay": [1.0, 2.0, 3.0, 4.0],
        }
    )
    said = checked(parse(POLICY), frame, keys=KEYS).notes
    assert "views.desk.masks.card: 2 of 3 values do not fit ff1" in " ".join(said)
    assert "views.desk.masks.came: 1 cells are empty because their row lacks pid" in said
    assert "views.desk.masks.pay: 2 cells are empty because their row lacks pid" in said
    assert not any(word in " ".join(said) for word in ("4711", "0815"))
    whole = frame.filter(pl.col("pid").is_not_null() & (pl.col("card").str.len_chars() > 5))
    assert checked(parse(POLICY), whole, keys=KEYS).notes == []


def test_a_vault_asks_its_database_once_per_value_and_person(tmp_path, monkeypatch):
    schema = Schema({"pid": Column("subject", type="str"), "no": Column("identifier", type="str")})
    spec = MASKS.decode({"use": "tokenize", "form": "vault", "vault": "v.db"})
    resolved = RoleView.resolve("desk", schema, "everything", {"no": spec}, folder=tmp_path)
    frame = pl.DataFrame({"pid": ["a", "b", "a", None] * 50, "no": ["1", "2", "1", None] * 50})
    gate = FrameGate(resolved, frame.schema, KEYS)
    asked = []
    token, recall = Vault.token, Vault.recall
    monkeypatch.setattr(Vault, "token", lambda self, *of: asked.append("new") or token(self, *of))
    monkeypatch.setattr(Vault, "recall", lambda self, *of: asked.append("known") or recall(self, *of))
    first = gate.apply(frame).data
    assert asked.count("new") == 2
    asked.clear()
    assert gate.apply(frame).data.equals(first)
    assert asked == ["known"] * 2  # of 200 rows: nothing is asked of the database for people it knows


@pytest.mark.parametrize("name", MASKS.names())
def test_every_mask_names_in_its_docstring_what_it_does_not_protect_against(name):
    mask = MASKS.get(name)
    assert "Does not protect against" in (mask.__doc__ or "")
    assert mask.attack


def test_a_view_says_what_its_masks_could_not_do():
    frame = pl.DataFrame({"pid": ["a", None], "card": [None, None], "came": [None, None], "pay": [1.0, 2.0]})
    made = view(frame, parse(POLICY), "desk", keys=KEYS)
    assert made.notes == ("pay: 1 cells are empty because their row lacks pid",)
    job = job_of(Wishes({"policy": parse(POLICY), "view": "desk", "keys": KEYS}))
    assert "\nNote: pay: 1 cells are empty because their row lacks pid" in job.run(frame).report.text()


def test_explain_marks_what_stays_near_and_with_whom():
    """A key hides the value, but two forms of it that stay near it are compared, as `check` does."""
    policy = parse(
        """
        columns: {pid: subject, pay: {role: plain, type: float}, day: {role: plain, type: date}, sex: quasi, no: quasi}
        views:
          a: {show: [pay, day, sex, no]}
          b:
            show: [pay, day, sex, no]
            masks:
              pay: [{use: noise, spread: 3}, {use: round, to: 10}]
              day: {use: date-shift, days: 3}
              sex: {use: pram, values: [f, m]}
              no: pseudonym
          c: {show: [pay, no], masks: {pay: {use: rank-swap, k: 2}, no: [{use: hash}, {use: blur, first: 2}]}}
        """
    )
    links = {name: sight.links for name, sight in explain(policy).views["b"].items()}
    assert links == {"pid": [], "pay": ["a", "c"], "day": ["a"], "sex": ["a"], "no": []}

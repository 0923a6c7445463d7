"""What roles learn together, beside a slow twin that tries every pair of records."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.core.schema import Column, Schema
from shoal.release.collusion import Seen, collusion
from shoal.release.linking import Comparison, candidates

forms = {
    "same": lambda v: str(v),
    "half": lambda v: f"h{v // 2}",
    "third": lambda v: f"t{v // 3}",
    "none": lambda v: "*",
}
column = st.tuples(st.sampled_from(list(forms)), st.sampled_from(list(forms)))


def slow(compared, people):
    """Try every pair: two forms fit if they occur together somewhere."""
    together = [(c, set(zip(c.mine, c.theirs, strict=True))) for c in compared]
    n = len(people)
    fits = [[all((c.mine[r], c.theirs[s]) in t for c, t in together) for s in range(n)] for r in range(n)]
    return [len({people[s] for s in range(n) if fits[r][s]}) for r in range(n)]


@given(
    st.lists(column, min_size=0, max_size=3),
    st.lists(st.tuples(*[st.integers(0, 7)] * 3, st.integers(0, 9)), min_size=1, max_size=14),
)
def test_candidates_beside_every_pair(kinds, rows):
    compared = [
        Comparison(f"{at}", *(pl.Series([forms[kind](row[at]) for row in rows]) for kind in pair))
        for at, pair in enumerate(kinds)
    ]
    people = [row[3] for row in rows]
    assert candidates(compared, pl.Series(people)).tolist() == slow(compared, people)


SCHEMA = Schema({n: Column(r) for n, r in (("id", "subject"), ("a", "quasi"), ("b", "quasi"), ("c", "sensitive"))})


def seen(role, frame, clear, keyed=()):
    hidden = [c for c in frame.columns if c not in clear and c not in keyed]
    rows = pl.Series(range(frame.height), dtype=pl.Int64)
    data = frame.with_columns([pl.lit("*").alias(c) for c in hidden])
    return Seen(role, data, rows, frozenset(keyed), frozenset(clear), frozenset(hidden))


def test_a_chain_of_roles_links_what_no_pair_does():
    # x and y share a, y and z share b; x and z share nothing
    frame = pl.DataFrame({"id": [1, 2, 3], "a": ["p", "q", "r"], "b": ["s", "t", "u"], "c": ["A", "B", "C"]})
    views = [seen("x", frame, ["a"]), seen("y", frame, ["a", "b"]), seen("z", frame, ["b", "c"])]
    pools = {tuple(p.roles): p for p in collusion(views, SCHEMA, subjects=frame["id"], most=3)}
    assert pools["x", "y"].linked == 3
    assert pools["x", "z"].linked == 0
    assert pools["x", "y", "z"].linked == 3
    assert pools["x", "z"].smallest == 3


def test_people_are_counted_not_rows():
    frame = pl.DataFrame({"id": [1, 1, 2, 2], "a": ["p", "p", "q", "q"], "b": ["s"] * 4, "c": ["A", "B", "C", "D"]})
    (pool,) = collusion([seen("x", frame, ["a"]), seen("y", frame, ["a", "c"])], SCHEMA, subjects=frame["id"])
    assert pool.linked == 4, "all candidates of a record are one person"


def test_keyed_columns_link_only_if_they_read_alike():
    frame = pl.DataFrame({"id": [1, 2], "a": ["p", "q"], "b": ["s", "t"], "c": ["A", "B"]})
    other = frame.with_columns(pl.Series("a", ["k1", "k2"]))
    views = [seen("x", frame, ["b"], ["a"]), seen("y", other, ["c"], ["a"])]
    assert collusion(views, SCHEMA)[0].linked == 0
    views = [seen("x", frame, ["b"], ["a"]), seen("y", frame, ["c"], ["a"])]
    assert collusion(views, SCHEMA)[0].linked == 2


def test_the_cause_is_named():
    frame = pl.DataFrame({"id": range(6), "a": list("uvwxyz"), "b": ["s"] * 6, "c": ["A"] * 6})
    (pool,) = collusion([seen("x", frame, ["id", "a", "b"]), seen("y", frame, ["a", "b", "c"])], SCHEMA)
    assert {c.column: (c.alone, c.without) for c in pool.causes} == {"a": (1.0, 0.0), "b": (0.0, 1.0)}
    assert "above all by 'a'" in str(pool)


def test_who_sees_all_learns_nothing_new():
    frame = pl.DataFrame({"id": [1], "a": ["p"], "b": ["s"], "c": ["A"]})
    (pool,) = collusion([seen("x", frame, frame.columns), seen("y", frame, ["a"])], SCHEMA)
    assert not pool.new
    assert "nothing new" in str(pool)


@pytest.mark.shared
@pytest.mark.slow
def test_a_claim_of_allgoewer_2023_on_real_patients(shared):
    """Nurse and administration share payer, diagnosis and medication: "generic enough", it says. They are not."""
    file = shared / "data" / "diabetes_130us" / "diabetic_data.csv.gz"
    frame = pl.read_csv(file, infer_schema=False).sample(10_000, seed=1)
    roles = {"patient_nbr": "subject", "encounter_id": "identifier", "diag_1": "sensitive"}
    names = ["patient_nbr", "gender", "age", "race", "payer_code", "encounter_id", "diag_1", "insulin", "metformin"]
    schema = Schema({n: Column(roles.get(n, "quasi")) for n in names})
    both = ["payer_code", "diag_1", "insulin", "metformin"]
    nurse = seen("nurse", frame.select(names), [*both, "gender", "age", "race"])
    office = seen("administration", frame.select(names), [*both, "encounter_id"])
    (pool,) = collusion([nurse, office], schema, subjects=frame["patient_nbr"])
    print(f"\n{pool}")
    assert 0.2 < pool.share < 0.3
    assert max(pool.causes, key=lambda c: c.alone).column == "diag_1"

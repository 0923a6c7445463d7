"""What roles learn together, beside a slow twin that tries every pair of records."""

from __future__ import annotations

from functools import partial
from itertools import permutations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.core.schema import Column, Schema
from shoal.release.collusion import Seen, collusion
from shoal.release.linking import Coded, Comparison, Linking, Nearness, _mixed, coded, strong_components

forms = {
    "same": lambda v: str(v),
    "half": lambda v: f"h{v // 2}",
    "third": lambda v: f"t{v // 3}",
    "none": lambda v: "*",
}
column = st.tuples(st.sampled_from(list(forms)), st.sampled_from(list(forms)))


def slow(compared, people):
    """Every assignment of their records to mine whose forms fit: who it may be, in any of them."""
    n = len(people)
    together = [(c, set(zip(c.mine, c.theirs, strict=True))) for c in compared]
    fits = [[all((c.mine[r], c.theirs[s]) in t for c, t in together) for s in range(n)] for r in range(n)]
    whole = [p for p in permutations(range(n)) if all(fits[r][s] for r, s in enumerate(p))]
    return [len({people[p[r]] for p in whole}) == 1 for r in range(n)]


@given(
    st.lists(column, min_size=0, max_size=3),
    st.lists(st.tuples(*[st.integers(0, 7)] * 3, st.integers(0, 9)), min_size=1, max_size=6),
)
def test_linked_beside_every_assignment(kinds, rows):
    compared = [
        Comparison(f"{at}", *(pl.Series([forms[kind](row[at]) for row in rows]) for kind in pair))
        for at, pair in enumerate(kinds)
    ]
    people = [row[3] for row in rows]
    found = Linking(np.array(people)).linked([coded(c) for c in compared])
    assert found.tolist() == slow(compared, people)


@given(
    st.integers(1, 8).flatmap(
        lambda n: st.lists(st.lists(st.booleans(), min_size=n, max_size=n), min_size=n, max_size=n)
    )
)
def test_circles_beside_walking_everywhere(rows):
    fits = np.array(rows, bool)
    reach = fits | np.eye(len(fits), dtype=bool)
    for _ in range(len(fits)):
        reach = (reach.astype(int) @ reach.astype(int)) > 0
    found = strong_components(fits)
    assert np.array_equal(found[:, None] == found[None, :], reach & reach.T)


numbers = st.none() | st.integers(-5, 5)


@given(
    st.integers(1, 2).flatmap(
        lambda d: st.lists(
            st.tuples(
                st.integers(0, 1), st.integers(0, 4), st.lists(st.tuples(numbers, numbers), min_size=d, max_size=d)
            ),
            min_size=1,
            max_size=12,
        )
    )
)
def test_nearness_beside_every_pair(rows):
    def far(r, s, c):
        a, b = rows[r][2][c][0], rows[s][2][c][1]
        return (
            float("inf")
            if a is None or b is None or rows[r][2][c][1] is None or rows[s][2][c][0] is None
            else abs(a - b)
        )

    def back(r, s, c):
        return far(s, r, c)

    n, d = len(rows), len(rows[0][2])

    def place(r, c, side):
        """How many of its block, with a number on both sides, have a smaller one."""
        known = [s for s in range(n) if rows[s][0] == rows[r][0] and None not in rows[s][2][c]]
        return sum(rows[s][2][c][side] < rows[r][2][c][side] for s in known)

    def places(r, s, c, mine=0):
        gap = None in rows[r][2][c] or None in rows[s][2][c]
        return float("inf") if gap else abs(place(r, c, mine) - place(s, c, 1 - mine))

    def alone(r, distance, apart):
        block = [s for s in range(n) if rows[s][0] == rows[r][0]]
        own = [s for s in block if rows[s][1] == rows[r][1]]  # whichever of a person's rows comes nearest is theirs
        nearest = [(min(distance(r, s, c) for s in own), min(apart(r, s, c) for s in own)) for c in range(d)]
        return not any(
            all(distance(r, s, c) <= nearest[c][0] and apart(r, s, c) <= nearest[c][1] for c in range(d))
            for s in block
            if s not in own
        )

    near = [
        Nearness(
            str(c),
            *(
                np.array([np.nan if v is None else v for v in side], float)
                for side in zip(*(r[2][c] for r in rows), strict=True)
            ),
        )
        for c in range(d)
    ]
    block = Coded("block", np.array([r[0] for r in rows]))
    found = Linking(np.array([r[1] for r in rows])).linked([block], near)
    assert found.tolist() == [alone(r, far, places) or alone(r, back, partial(places, mine=1)) for r in range(n)]


def test_noise_that_moves_a_number_past_nobody_leaves_its_place():
    near = Nearness("pay", np.array([0.0, 3.0, 6.0]), np.array([3.0, 6.0, 9.0]))  # by number alone, all but the ends
    assert Linking(np.arange(3)).linked([], [near]).all()


SCHEMA = Schema({n: Column(r) for n, r in (("id", "subject"), ("a", "quasi"), ("b", "quasi"), ("c", "sensitive"))})


def seen(role, frame, clear, keyed=()):
    hidden = [c for c in frame.columns if c not in clear and c not in keyed]
    rows = pl.Series(range(frame.height), dtype=pl.Int64).sample(fraction=1, shuffle=True, seed=ord(role[0]))
    data = frame.with_columns([pl.lit("*").alias(c) for c in hidden])[rows]
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


def test_sums_tell_multisets_of_records_apart():
    """Two records of one kind once read like one record of another: a mixing function doubled with its argument."""
    bits = _mixed(np.arange(4000))
    assert len(np.unique(np.concatenate([bits * np.uint64(n) for n in (1, 2, 3)]))) == 12_000

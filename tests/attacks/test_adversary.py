"""What links rows beside the group: pseudonyms, unique plain cells, order, a rerun; and what must be waived by name."""

from __future__ import annotations

import pickle

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shoal
from shoal.core.errors import PolicyError
from shoal.core.keys import KeyRing
from shoal.policy.load import parse

KEYS = KeyRing.load(environ={"SHOAL_KEY": "ab" * 32})
POLICY = """
columns:
  pid: subject
  age: {role: quasi, type: int, hierarchy: range}
  zip: {role: quasi, type: str, hierarchy: {use: prefix, length: 5}}
  diag: sensitive
views:
  research:
    show: [pid, age, zip, diag]
    masks: {pid: pseudonym}
    promises: [{use: k-anonymity, k: 5}, {use: l-diversity, l: 2, column: diag}]
"""


def visits(people: int = 150, each: int = 4, seed: int = 1) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    n = people * each
    return pl.DataFrame(
        {
            "pid": np.repeat(np.arange(people), each),
            "age": rng.integers(18, 90, n),
            "zip": [f"{10000 + int(z)}" for z in rng.integers(0, 3000, n)],
            "diag": rng.choice(["flu", "cold", "HIV", "asthma"], n),
        }
    )


def test_a_pseudonym_beside_promises_is_refused_because_boxes_intersect():
    with pytest.raises(shoal.PromiseError, match="'pid' shows which rows belong to one person") as error:
        shoal.view(visits(), parse(POLICY), "research", keys=KEYS)
    assert "linked-rows" in str(error.value)


def test_a_pseudonym_is_fine_where_everyone_has_one_row():
    made = shoal.view(visits(200, 1), parse(POLICY), "research", keys=KEYS)
    assert made.report.verified


def test_a_waiver_is_written_in_the_policy_and_shown_on_the_report():
    policy = parse(POLICY + "    waive: [linked-rows]\n")
    made = shoal.view(visits(), policy, "research", keys=KEYS)
    assert any("linked-rows" in note for note in made.report.notes)
    assert any("waived" in finding.note for finding in made.report.findings)
    with pytest.raises(shoal.PolicyError, match="no risk called"):
        parse(POLICY + "    waive: [everything]\n")


def intersected(frame: pl.DataFrame, handle: str, quasi: list[str]) -> int:
    """How many people are alone after all rows of their handle are put together: the attack itself."""
    boxes = frame.with_columns(pl.struct(quasi).rank("dense").alias("box"))
    paths = boxes.group_by(handle).agg(pl.col("box").sort())
    return paths.group_by(pl.col("box").cast(pl.List(pl.String)).list.join(",")).len().filter(pl.col("len") == 1).height


@settings(max_examples=12, deadline=None)
@given(st.integers(20, 60), st.integers(1, 3), st.integers(0, 1000))
def test_whatever_is_released_with_a_handle_leaves_nobody_alone(people, each, seed):
    frame = visits(people, each, seed)
    try:
        made = shoal.view(frame, parse(POLICY), "research", keys=KEYS, method="mondrian")
    except shoal.PromiseError:
        return
    assert intersected(made.data, "pid", ["age", "zip"]) == 0


def test_a_plain_column_that_names_people_is_refused():
    frame = visits(200, 1).with_columns(card=pl.int_range(pl.len()) + 4_000_000)
    how = {"quasi": ["age"], "sensitive": ["diag"], "plain": ["card"], "k": 5}
    with pytest.raises(shoal.PromiseError, match="value of their own in the column 'card'"):
        shoal.anonymize(frame, **how)
    made = shoal.anonymize(frame, **how, waive=["unique-plain"])
    assert any("unique-plain" in note for note in made.report.notes)


NAMED = """
dataset: few
columns:
  pid: {role: subject, type: int}
  name: {role: identifier, type: str}
  age: {role: quasi, type: int, hierarchy: {use: range, min: 0, max: 120}}
views:
  desk:
    show: [name, age]
    masks: {name: {use: MASK}}
    promises: [{use: k-anonymity, k: 3}]
"""


@pytest.mark.parametrize(
    "mask", ["blur, last: 3", "replace, find: zz, by: y", "conditional, when: {column: age, equals: 1}, then: x"]
)
def test_a_name_that_a_mask_leaves_is_refused_among_few_people_too(mask):
    """Of few people a share says nothing about a plain column, but this one is a name by its role."""
    frame = pl.DataFrame({"pid": range(9), "name": [f"Person{n:03}" for n in range(9)], "age": range(20, 29)})
    with pytest.raises(shoal.PromiseError, match="value of their own in the column 'name'"):
        shoal.anonymize(frame, policy=parse(NAMED.replace("MASK", mask)), seed=1)
    made = shoal.anonymize(frame, policy=parse(NAMED.replace("MASK", "blur, first: 6")), seed=1)
    assert made.data["name"].n_unique() == 1


@pytest.mark.parametrize("role", ["plain", "sensitive"])
@pytest.mark.parametrize("source", ["subject", "identifier", "quasi"])
def test_a_derived_column_shows_nothing_that_its_sources_do_not(role, source):
    """`age.ward` as a plain column showed the exact age beside its interval, and `name.ward` the name."""
    text = f"columns: {{who: {source}, ward: plain, both: {{role: ROLE, derive: {{use: join, of: [who, ward]}}}}}}"
    with pytest.raises(PolicyError, match="would be shown as it is"):
        parse(f"dataset: d\n{text.replace('ROLE', role)}\nviews: {{}}\n")
    parse(f"dataset: d\n{text.replace('ROLE', 'quasi')}\nviews: {{}}\n")


def test_the_order_of_the_input_is_gone():
    frame = visits(300, 1).sort("age")
    made = shoal.anonymize(frame, quasi=["age"], sensitive=["diag"], k=5)
    places = made.positions
    assert sorted(places) == list(range(300))
    # by chance the correlation of two random orders of 300 rows is beyond 0.3 once in ten million times
    assert abs(np.corrcoef(places, np.arange(300))[0, 1]) < 0.3
    kept = shoal.anonymize(frame, quasi=["age"], k=5, keep_order=True)
    assert list(kept.positions) == list(range(300))
    assert any("order of the input" in note for note in kept.report.notes)


@settings(max_examples=15, deadline=None)
@given(st.permutations(list(range(40))), st.integers(0, 5))
def test_with_a_seed_the_order_of_the_input_changes_no_byte(order, seed):
    frame = visits(40, 1)
    one = shoal.anonymize(frame, quasi=["age"], sensitive=["diag"], k=4, seed=seed, method="mondrian")
    other = shoal.anonymize(frame[order], quasi=["age"], sensitive=["diag"], k=4, seed=seed, method="mondrian")
    assert one.data.equals(other.data)


def test_who_undoes_the_order_by_the_seed_gets_one_they_could_have_made_themselves():
    """Not the order of the exact ages behind the cells, which would tell them almost exactly."""
    frame = visits(300, 1).sort("age")
    made = shoal.anonymize(frame, quasi=["age"], sensitive=["diag"], k=50, seed=7, method="mondrian")
    rng = np.random.default_rng([7, 0, 0x0DE4, 0])
    undone = made.data[np.argsort(rng.permutation(300))]
    assert undone.equals(made.data.sort("age", "diag"))


def test_two_role_files_made_with_one_seed_do_not_join_line_by_line():
    policy = parse(
        "columns: {pid: subject, age: plain, zip: plain, diag: plain}\n"
        "views: {one: {show: [age, zip]}, two: {show: [age, diag]}}"
    )
    frame = visits(300, 1)
    one, two = (shoal.view(frame, policy, role, keys=KEYS, seed=7) for role in ("one", "two"))
    assert (one.positions == two.positions).mean() < 0.1


def test_two_role_files_do_not_join_line_by_line():
    policy = parse(
        "columns: {pid: subject, age: plain, zip: plain, diag: plain}\nviews: {one: {show: [age]}, two: {show: [diag]}}"
    )
    frame = visits(300, 1)
    one, two = (shoal.view(frame, policy, role, keys=KEYS) for role in ("one", "two"))
    assert (one.positions == two.positions).mean() < 0.1


def test_the_seed_is_secret_unless_it_is_given():
    frame = visits(120, 1)
    how = {"quasi": ["age", "zip"], "sensitive": ["diag"], "k": 4, "l": 2}
    orders = {tuple(shoal.anonymize(frame, **how).positions) for _ in range(3)}
    assert len(orders) == 3
    assert shoal.anonymize(frame, **how).report.seed is None
    assert shoal.anonymize(frame, **how, seed=7).data.equals(shoal.anonymize(frame, **how, seed=7).data)


def test_what_is_pickled_does_not_hold_the_original():
    secret = 987_654
    frame = visits(60, 1).with_columns(age=pl.Series([secret, *range(59)]))
    made = shoal.anonymize(frame, quasi=["age"], k=5)
    again = pickle.loads(pickle.dumps(made))
    assert again.data.equals(made.data)
    assert again.model is None
    assert again.positions is None
    assert again.groups is None


def test_curve_views_pass_the_masks():
    policy = parse(
        "columns: {who: subject, W0: quasi, W1: quasi, W2: quasi, diag: sensitive}\n"
        "views:\n  v:\n    show: [W0, W1, W2, diag]\n    masks: {diag: suppress}\n"
        "    promises: [{use: kP-anonymity, k: 4, p: 2}]"
    )
    rng = np.random.default_rng(2)
    frame = pl.DataFrame(
        {"who": range(24), **{f"W{i}": rng.integers(0, 9, 24) for i in range(3)}, "diag": ["HIV"] * 24}
    )
    made = shoal.view(frame, policy, "v", keys=KEYS)
    assert set(made.data["diag"]) == {"*"}
    masked = parse(
        "columns: {who: subject, W0: quasi, W1: quasi}\n"
        "views: {v: {show: [W0, W1], masks: {W0: {use: bucket, width: 5}},"
        " promises: [{use: kP-anonymity, k: 4, p: 2}]}}"
    )
    with pytest.raises(shoal.PolicyError, match="the instant 'W0' is masked"):
        shoal.view(frame, masked, "v", keys=KEYS)


def people_with(rows: int = 200, **columns) -> pl.DataFrame:
    rng = np.random.default_rng(4)
    return pl.DataFrame({"age": rng.integers(20, 60, rows), "diag": ["x", "y"] * (rows // 2), **columns})


@pytest.mark.parametrize(
    "values",
    [
        [[i] for i in range(200)],
        [{"n": i} for i in range(200)],
        [float(i) for i in range(200)],
    ],
    ids=["lists", "parts", "whole numbers read as floats"],
)
def test_a_name_of_any_type_is_refused(values):
    with pytest.raises(shoal.PromiseError, match="have a value of their own in the column 'p'"):
        shoal.anonymize(people_with(p=values), quasi=["age"], plain=["p"], sensitive=["diag"], k=5)


def test_plain_columns_that_are_a_name_only_together_are_said():
    rng = np.random.default_rng(5)
    columns = {name: rng.integers(0, 20, 200) for name in "abc"}
    made = shoal.anonymize(people_with(**columns), quasi=["age"], plain=["a", "b", "c"], sensitive=["diag"], k=5)
    alone = made.data.select("a", "b", "c").is_unique().mean()
    assert alone > 0.9
    assert f"{alone:.0%} of the people have a combination of their own in 'a', 'b', 'c'" in "\n".join(made.report.notes)


def linked_by_several(sensitive: bool) -> pl.DataFrame:
    """Four rows per person; what is the same in them is no name alone, and one together with others."""
    who = np.arange(150)
    pay = who + 1000 if sensitive else who % 3
    more = {"town": np.repeat(who % 13, 4), "job": np.repeat(who // 13, 4), "pay": np.repeat(pay, 4)}
    return visits().with_columns(**{name: pl.Series(values) for name, values in more.items()})


def test_columns_that_link_rows_only_together_are_refused():
    frame = linked_by_several(sensitive=False)
    given = {"subject": "pid", "quasi": ["age", "zip"], "sensitive": ["diag"], "k": 5}
    assert shoal.anonymize(frame, plain=["town"], **given).report.verified
    with pytest.raises(shoal.PromiseError, match="the columns 'town', 'job' together show"):
        shoal.anonymize(frame, plain=["job", "town"], **given)
    waived = shoal.anonymize(frame, plain=["job", "town"], waive=["linked-rows"], **given)
    assert any("'town', 'job' link together" in str(finding) for finding in waived.report.findings)


def test_a_sensitive_value_of_ones_own_links_rows_and_is_refused():
    given = {"subject": "pid", "quasi": ["age", "zip"], "sensitive": ["pay"], "k": 5}
    with pytest.raises(shoal.PromiseError, match="the column 'pay' shows which rows belong to one person"):
        shoal.anonymize(linked_by_several(sensitive=True), **given)


def test_people_who_are_spelled_in_several_ways_are_counted_apart_and_said():
    names = ["ada", "ada ", "ADA", "a\u0301da", "\u00e1da", "ada\u200b"]
    frame = pl.DataFrame({"who": names, "age": [30] * 6, "diag": ["a", "b"] * 3})
    made = shoal.anonymize(frame, subject="who", quasi=["age"], sensitive=["diag"], k=6)
    assert any(note.startswith("6 people are told apart by case, blanks") for note in made.report.notes)
    assert not any("ada" in note for note in made.report.notes)


@pytest.mark.parametrize("promise", ["{use: k-map, k: 5}", "{use: delta-presence, most: 0.5}"])
def test_a_pseudonym_beside_a_promise_about_a_register_is_refused(promise):
    """Each row fits five people of the register; the four rows of a person together fit that person."""
    from shoal.core.keys import KeyRing
    from shoal.policy.load import parse

    rng = np.random.default_rng(5)
    who = np.repeat(np.arange(40), 4)
    rows = pl.DataFrame({"pid": who, "age": rng.integers(18, 90, 40)[who], "zip": rng.integers(0, 100, 160)})
    crowd = pl.DataFrame({"age": rng.integers(18, 90, 900), "zip": rng.integers(0, 100, 900)})
    register = pl.concat([rows.select("age", "zip"), crowd])
    text = (
        "{columns: {pid: subject, age: {role: quasi, type: int}, zip: {role: quasi, type: int}}, views: {lab: {show: "
    )
    text += "[pid, age, zip], masks: {pid: pseudonym}, promises: [%s], method: mondrian%s}}}"
    given = {"register": register, "keys": KeyRing({"default": {1: bytes(32)}})}
    with pytest.raises(shoal.PromiseError, match="speaks of single rows, and not of rows that 'pid' links"):
        shoal.anonymize(rows, policy=parse(text % (promise, "")), **given)
    waived = shoal.anonymize(rows, policy=parse(text % (promise, ", waive: [linked-rows]")), **given)
    assert any("waived: not judged" in finding.note for finding in waived.report.findings)
    shown = waived.data.group_by("pid").agg(pl.struct("age", "zip").unique())
    assert shown.height == 40, "what is waived: every person's boxes stand under one name"

"""How a view's records are keyed, placed, timed and ordered: without a broker."""

from __future__ import annotations

import itertools
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.core.errors import PolicyError
from shoal.core.keys import KeyRing
from shoal.policy.document import View
from shoal.runtime.kafka.serve.dressed import Dressed, Outgoing
from shoal.runtime.kafka.serve.output import COARSE, Disguise, Record, coarse_times

KEYS = KeyRing({"default": {1: bytes(range(32))}})


def disguise(role: str = "ward", partitions: int = 3, key: str = "drop") -> Disguise:
    return Disguise(View(role, ("age",), service={"key": key}), "patients", partitions, KEYS)


records = st.lists(
    st.builds(
        Record,
        partition=st.integers(0, 5),
        offset=st.integers(0, 10**12),
        key=st.none() | st.binary(max_size=8),
        value=st.none(),
        timestamp=st.integers(0, 2**41),
    ),
    max_size=60,
)


@given(records, st.sampled_from(["drop", "pseudonym", "pass"]), st.integers(1, 300))
def test_many_are_dressed_like_each_in_any_order_and_by_anyone(batch, key, partitions):
    values = [b"%d" % at for at in range(len(batch))]
    one, other = disguise(partitions=partitions, key=key), disguise(partitions=partitions, key=key)
    many = list(one.dress_many(batch, values, coarse_times(batch)))
    each = [other.dress(r, v) for r, v in reversed(list(zip(batch, values, strict=True)))]
    assert many == each[::-1]
    for record, made in zip(batch, many, strict=True):
        assert 0 <= made.partition < partitions
        assert made.timestamp % COARSE == 0
        assert 0 <= record.timestamp - made.timestamp < COARSE
        assert made.key == record.key or key != "pass"
        assert made.key is None or key != "drop"


def test_records_from_far_apart_are_placed_as_each_by_itself():
    many, batch = disguise(), [Record(at % 3, at * 5_000, None, None, 0) for at in range(1_500)]
    placed = [made.partition for made in many.dress_many(batch, [b""] * len(batch), None)]
    assert placed == [disguise().partition_at(r.partition, r.offset) for r in batch[:40]] + placed[40:]
    assert placed == [many.partition_at(r.partition, r.offset) for r in batch]


def test_places_are_spread_evenly_and_say_nothing_about_another_role():
    batch = [Record(0, at, None, None, 0) for at in range(30_000)]
    values = [b""] * len(batch)
    ward, lab = (list(disguise(role).dress_many(batch, values, None)) for role in ("ward", "lab"))
    both = Counter((a.partition, b.partition) for a, b in zip(ward, lab, strict=True))
    assert len(both) == 9
    # 30,000 draws into nine cells: 3,333 each, 57 is one standard deviation
    assert all(abs(count - 30_000 / 9) < 6 * 57 for count in both.values())
    neighbours = Counter((a.partition, b.partition) for a, b in itertools.pairwise(ward))
    assert all(abs(count - 30_000 / 9) < 6 * 57 for count in neighbours.values())


@given(st.integers(0, 200), st.binary(min_size=1, max_size=20))
def test_a_commit_is_shuffled_the_same_way_again_and_another_way_for_another_role(count, commit):
    batch = [Outgoing(0, None, b"%d" % at, 0) for at in range(count)]
    held = Dressed.of(batch)
    ward = list(disguise().shuffle(held, commit))
    assert sorted(ward, key=lambda o: int(o.value or b"")) == batch
    assert ward == list(disguise().shuffle(held, commit))
    if count > 20:
        assert ward != batch
        assert ward != list(disguise("lab").shuffle(held, commit))
        assert ward != list(disguise().shuffle(held, commit + b"x"))


def test_pseudonyms_of_keys_differ_by_role_and_tombstones_need_a_key():
    record = Record(0, 1, b"patient 7", None, 0)
    made = {role: disguise(role, key="pseudonym").dress(record, b"{}") for role in ("ward", "lab")}
    assert made["ward"].key != made["lab"].key
    assert b"patient" not in made["ward"].key
    assert disguise().dress(record, None) is None
    assert disguise(key="pseudonym").dress(record, None).value is None
    with pytest.raises(PolicyError, match="drop, pseudonym or pass"):
        disguise(key="keep")


def test_an_invented_record_is_placed_by_itself():
    real = Record(0, 5, None, None, 0)
    places = {disguise(partitions=64).dress(real, b"%d" % n, by=b"%d" % n).partition for n in range(50)}
    assert len(places) > 20

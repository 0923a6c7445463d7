"""Views that remember, without a broker: the size of batches changes nothing, and a snapshot continues."""

from __future__ import annotations

import itertools
import random
import time
from collections import Counter

import msgspec
import numpy as np
import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from shoal.core.errors import InputError, PolicyError, PromiseError
from shoal.core.keys import KeyRing
from shoal.core.schema import Schema
from shoal.policy.load import parse
from shoal.runtime.kafka.serve import stateful
from shoal.runtime.kafka.serve.output import Disguise, Record
from shoal.runtime.kafka.state import changelog as state
from shoal.runtime.kafka.state.changelog import Found, Seal, Snapshot, key_of, pieces_of
from shoal.streams.base import Outcomes
from shoal.views.records import RecordGate
from shoal.views.role_view import RoleView

KEYS = KeyRing({"default": {1: bytes(range(32))}})
POLICY = parse("""
dataset: visits
source: {use: kafka, topic: visits, brokers: nowhere}
columns:
  time: {role: time, late: 5s}
  client: {role: subject}
  age: {role: quasi, type: int, hierarchy: {use: range, min: 0, max: 100}}
  domain: {role: quasi, hierarchy: {use: path, depth: 3}}
  diag: {role: sensitive, type: str}
  note: {role: plain}
  size: {role: plain, type: float}
views:
  z:
    show: [time, client, domain, note]
    masks: {client: {use: pseudonym}}
    promises: [{use: z-anonymity, z: 3, window: 20s}]
    method: {use: z-anonymity}
    service: {key: pseudonym}
  noise:
    show: [time, client, domain]
    masks: {client: {use: pseudonym}}
    promises: [{use: z-anonymity, z: 3, window: 20s}]
    method: {use: z-anonymity, noise: {most: 0.5}, allow_noise: true}
  tuned:
    show: [time, client, domain]
    masks: {client: {use: pseudonym}}
    promises: [{use: z-anonymity, z: 2, window: 20s}]
    method: {use: z-anonymity, tune: {goal: {k: 2, probability: 0.8}, every: 10s}}
  batches:
    show: [age, domain, diag, note, size]
    promises: [{use: k-anonymity, k: 3}, {use: l-diversity, l: 2, column: diag}]
    method: {use: batches, delay: 30, delay_time: 10s, reuse: 100}
  castle:
    show: [age, diag, note]
    promises: [{use: k-anonymity, k: 3}]
    method: {use: castle, delay: 30}
  fads:
    show: [age, diag]
    promises: [{use: k-anonymity, k: 3}]
    method: {use: fads, delay: 30}
    hidden: drop
  window:
    show: [client, size, diag]
    masks: {size: {use: aggregate, function: mean, window: {use: tumbling, size: 10s}}, client: {use: pseudonym}}
""")


def records(seed: int, count: int) -> list[Record]:
    chance = random.Random(seed)
    out, time = [], 1000.0
    for offset in range(count):
        time += chance.expovariate(3)
        person = chance.randrange(25)
        value = {
            "time": round(time - (chance.random() * 8 if chance.random() < 0.2 else 0), 3),
            "client": person,
            "age": 20 + person * 2,
            "domain": f"d{person % 2}.s{chance.randrange(2)}.p{chance.randrange(3)}",
            "diag": chance.choice(["E10", "E11", "E12"]),
            "note": chance.choice([1, "x", None, {"a": [1]}]),
            "size": chance.random(),
        }
        text = msgspec.json.encode(value) if chance.random() > 0.03 else chance.choice([b"{", b"[]", b'{"age": "x"}'])
        out.append(Record(0, offset, b"key%d" % person, text, 1_700_000_000_000 + offset))
    return out


def begin(
    role: str, snapshot: bytes | None = None, keys: KeyRing = KEYS, verify: float | None = None
) -> stateful.Stateful:
    disguise = Disguise(POLICY.views[role], "visits", 4, KEYS)
    return stateful.start(POLICY, role, 0, keys, disguise, snapshot, verify)


@pytest.mark.parametrize("role", list(POLICY.views))
def test_a_view_is_judged_as_it_goes_and_publishes_the_same(role):
    given_records = records(5, 300)
    plain, judged = begin(role), begin(role, verify=1.0)
    assert judged.push(given_records[:100])[0] == plain.push(given_records[:100])[0]
    checks, missed = judged.judged
    assert (checks > 0) == (role not in ("noise", "window"))
    assert missed == 0
    taken = begin(role, plain.snapshot(), verify=1.0)  # who takes over judges from there on
    expected = [*plain.push(given_records[100:])[0], *plain.tick(2_000_000_000)]
    assert [*judged.push(given_records[100:])[0], *judged.tick(2_000_000_000)] == expected
    assert [*taken.push(given_records[100:])[0], *taken.tick(2_000_000_000)] == expected
    assert taken.judged[0] > 0 or role in ("noise", "window")


@pytest.mark.parametrize("role", ["z", "batches"])
def test_a_broken_promise_is_not_published_and_ends_the_view(role, monkeypatch):
    """A method that releases whatever comes."""
    view = begin(role, verify=1.0)

    def release(batch):
        numbers = np.arange(batch.first, batch.first + len(batch))
        return Outcomes(batch.frame.cast(pl.String, strict=False), numbers)

    monkeypatch.setattr(view._runner.method, "push", release)
    good = [r for r in records(7, 40) if len(r.value or b"") > 60][:1]
    with pytest.raises(PromiseError, match="it was not written, and the stream ends"):
        view.push(good)
    assert view._out == []


@pytest.mark.parametrize("role", list(POLICY.views))
@settings(max_examples=8)
@example(seed=41, cuts=[], kill=248)  # an unknown value came first after the restart, and ended a tuned stream
@given(seed=st.integers(0, 50), cuts=st.lists(st.integers(0, 250), max_size=8), kill=st.integers(0, 250))
def test_batches_and_a_restart_change_nothing(role, seed, cuts, kill):
    given_records = records(seed, 250)
    whole = begin(role)
    expected, refused = whole.push(given_records)
    expected += whole.tick(2_000_000_000)
    view, got, bad = begin(role), [], []
    places = sorted({0, *cuts, kill, 250})
    for a, b in itertools.pairwise(places):
        if a == kill:
            view = begin(role, view.snapshot())
        out, wrong = view.push(given_records[a:b])
        got += out
        bad += wrong
    got += view.tick(2_000_000_000)
    assert got == expected
    assert [r.offset for r in bad] == [r.offset for r in refused]
    assert (view.held, view.withheld) == (whole.held, whole.withheld)


def test_records_that_wait_are_as_old_as_the_restart_at_least():
    """Their alarm would be blind after every restart until all of them had come anew."""
    view = begin("batches")
    view.push(records(3, 20))
    assert view.held
    assert view.oldest is not None
    before = time.time_ns() // 1_000_000
    again = begin("batches", view.snapshot())
    assert (again.held, again.oldest is not None and again.oldest >= before) == (view.held, True)
    assert begin("batches").oldest is None


@pytest.mark.parametrize("role", list(POLICY.views))
def test_a_rotated_key_goes_on_from_the_state_of_the_former_one(role):
    """People stay who they are in a state: with other fingerprints one of them would count as two."""
    rotated = KEYS.rotate("default")
    given_records = records(3, 250)
    whole, view = begin(role), begin(role)
    expected = [*whole.push(given_records)[0], *whole.tick(2_000_000_000)]
    got = view.push(given_records[:100])[0]
    view = begin(role, view.snapshot(), rotated)
    got += view.push(given_records[100:200])[0]
    view = begin(role, view.snapshot(), rotated)  # what the new epoch sealed, too
    got += [*view.push(given_records[200:])[0], *view.tick(2_000_000_000)]
    assert len(got) == len(expected)
    assert (view.held, view.withheld) == (whole.held, whole.withheld)
    if role == "window":  # nothing in it is known by a fingerprint: from now on the new epoch is enough
        begin(role, view.snapshot(), rotated.forget("default", 1))
    else:
        with pytest.raises(InputError):
            begin(role, view.snapshot(), rotated.forget("default", 1))


def test_a_changelog_of_a_former_epoch_is_opened_and_written_with_the_new_one():
    rotated = KEYS.rotate("default")
    old, new = Seal(KEYS), Seal(rotated)
    assert new.open(old.close(b"state", b"view/position/0", 3), b"view/position/0", 3) == b"state"
    written = new.close(b"state", b"view/position/0", 3)
    assert Seal(rotated.forget("default", 1)).open(written, b"view/position/0", 3) == b"state"
    with pytest.raises(InputError):
        old.open(written, b"view/position/0", 3)


@pytest.mark.parametrize("role", [r for r in POLICY.views if r != "noise"])
def test_every_record_has_one_outcome(role):
    given_records = records(1, 2000)
    view = begin(role)
    out, bad = view.push(given_records)
    assert bad
    assert out
    # one unreadable record is also counted as withheld by a window, which numbers it
    counted = view.withheld + view.held + len(out) + (0 if role == "window" else len(bad))
    assert counted == 2000


DEEP = b'{"time": 1001, "client": 1, "note": %s%s}' % (b"[" * 3000, b"]" * 3000)
POISON = [
    DEEP,
    DEEP.replace(b"note", b"unknown"),
    b'{"time": 1001, "client": 1, "since": "0001-01-01T00:00:00+23:59"}',
    b'{"time": 1001, "client": 1, "since": "9999-12-31T23:59:59-23:59"}',
]


@pytest.mark.parametrize("role", ["z", "batches", "castle", "window", "plain"])
def test_no_record_can_stop_a_view(role):
    """What a parser or a calendar has no room for is unreadable, like any other broken record."""
    text = msgspec.structs.replace(POLICY.schema["note"], type="datetime")
    shown = {r: msgspec.structs.replace(v, show=(*v.show, "since")) for r, v in POLICY.views.items()}
    views = {**shown, "plain": msgspec.structs.replace(POLICY.views["castle"], name="plain", promises=())}
    schema = Schema({**POLICY.schema.columns, "since": text})
    policy = msgspec.structs.replace(POLICY, schema=schema, views=views)
    if role == "plain":
        done = RecordGate([RoleView.of(policy, role)], KEYS).many(POISON[:2])
        assert [at for at, _ in done.refused] == [0, 1]
        return
    view = stateful.start(policy, role, 0, KEYS, Disguise(policy.views[role], "visits", 4, KEYS), None)
    _, bad = view.push([Record(0, at, None, value, 1_000) for at, value in enumerate(POISON)])
    assert [r.offset for r in bad] == [0, 1, 2, 3]
    view.snapshot()


def test_what_is_published_is_what_the_view_says():
    given_records = records(2, 1000)
    out, _ = begin("batches").push(given_records)
    rows = [msgspec.json.decode(o.value) for o in out]
    assert all(set(r) == set(POLICY.schema.columns) for r in rows)  # hidden ones as a star
    assert {r["client"] for r in rows} == {r["time"] for r in rows} == {"*"}
    groups = Counter((r["age"], r["domain"]) for r in rows)
    assert min(groups.values()) >= 3
    notes = Counter(str(msgspec.json.decode(r.value).get("note")) for r in given_records if r.value[:2] == b'{"')
    assert {str(r["note"]) for r in rows} <= set(notes)
    out, _ = begin("fads").push(given_records)
    assert set(msgspec.json.decode(out[0].value)) == {"age", "diag"}
    out, _ = begin("z").push(given_records)
    times = [msgspec.json.decode(o.value)["time"] for o in out]
    assert all(isinstance(t, (int, float)) for t in times)
    assert all(o.key is not None and not o.key.startswith(b"key") for o in out)


def test_an_invented_record_does_not_stand_beside_the_real_one():
    disguise = Disguise(POLICY.views["noise"], "visits", 50, KEYS)
    places = []
    for number in range(500):
        record = Record(0, number, None, None, 0)
        fake = disguise.dress(record, b"%d" % number, by=b"%d" % number)
        places.append((disguise.dress(record, b"real"), fake))
    together = sum(real.partition == fake.partition for real, fake in places)
    assert together < 25  # ten by chance
    assert len({fake.partition for _, fake in places}) == 50


def test_state_is_sealed_for_its_view_and_partition():
    seal, key = Seal(KEYS), key_of("visits.z", "snapshot", 0)
    sealed = seal.close(b"F. Ott", key, 3)
    assert b"F. Ott" not in sealed
    assert seal.open(sealed, key, 3) == b"F. Ott"
    elsewhere = [
        (key, 2),
        (key_of("visits.y", "snapshot", 0), 3),
        (key_of("visits.z", "snapshot", 1), 3),
        (key_of("visits.z", "position", 0), 3),
    ]
    for other, partition in elsewhere:
        with pytest.raises(InputError, match="cannot be opened"):
            seal.open(sealed, other, partition)
    with pytest.raises(InputError, match="cannot be opened"):
        Seal(KeyRing().new("default")).open(sealed, key, 3)
    with pytest.raises(InputError, match="not a state"):
        seal.open(msgspec.msgpack.encode(state.Position(7, 0, 0)), key, 3)


@given(first=st.integers(0, 4), second=st.integers(0, 4), upto=st.integers(0, 12))
def test_only_a_whole_snapshot_is_a_snapshot(first, second, upto):
    was, state.PIECE = state.PIECE, 10
    try:
        older = Snapshot(1, 5, 0, bytes(first * 10 + 1))
        newer = Snapshot(1, 9, 2, b"x" * (second * 10 + 1))
        log = [*pieces_of("v", "a", older), *pieces_of("v", "b", newer)]
    finally:
        state.PIECE = was
    found = Found()
    for _, value in log[:upto]:
        found.take("snapshot", value)
    if upto >= len(log):
        assert found.snapshot == newer
    elif upto == first + 1:
        assert found.snapshot == older
    else:
        assert found.snapshot is None
    assert key_of("a/b", "tick", 3) == b"a/b/tick/3"


def test_what_cannot_be_served_is_refused():
    text = """
dataset: v
source: {{use: kafka, topic: v, brokers: nowhere}}
columns: {{p: {{role: subject}}, "a": {{role: quasi}}, "l[*].x": {{role: plain}}, s: {{role: plain, type: float}}}}
views: {{r: {{show: [{show}], promises: [{{use: k-anonymity, k: 2}}], method: {method}, masks: {{{masks}}}}}}}
"""
    for show, masks, method, why in [
        ("a, 'l[*].x'", "", "batches", "inside lists"),
        ("a, s", "s: {use: aggregate, function: mean, window: {use: tumbling, size: 10}}", "batches", "window mask"),
        ("a", "", "mondrian", "no stream method"),
        ("a, p", "", "batches", "names people"),
        ("a", "", "{use: batches, delay_time: 5s}", "needs a time column"),
    ]:
        policy = parse(text.format(show=show, masks=masks, method=method))
        with pytest.raises(PolicyError, match=why):
            stateful.check(policy, "r")


def test_keys_tie_no_groups_together_and_tell_no_invention():
    for role, why in [("batches", "groups a person is in"), ("noise", "who is invented")]:
        stateful.check(POLICY, role)
        view = msgspec.structs.replace(POLICY.views[role], service={"key": "pseudonym"})
        with pytest.raises(PolicyError, match=why):
            stateful.check(msgspec.structs.replace(POLICY, views={role: view}), role)
    stateful.check(POLICY, "z")  # it shows who is who by a pseudonym, too


def test_a_note_tells_whether_the_changelog_shows_a_commit():
    stands = {"t.a": state.Stand(7, 1, 2), "t.b": state.Stand(7, 0, 0)}
    note = state.note_of(stands)
    assert state.stands_of(note, ["t.a", "t.b", "t.new"]) == stands
    assert state.stands_of("", ["t.a"]) == {}
    found = Found()
    assert not found.shows(stands["t.a"])  # nothing is there yet
    found.take("position", msgspec.msgpack.encode(state.Position(7, 0, 0)))
    assert found.shows(stands["t.b"])
    assert not found.shows(stands["t.a"])  # a tick was acted on since
    found.take("position", msgspec.msgpack.encode(state.Position(7, 1, 0)))
    assert not found.shows(stands["t.a"])  # and another logged
    found.take("tick", msgspec.msgpack.encode(state.Tick(2, 7, 1_000)))
    assert found.shows(stands["t.a"])
    assert not found.shows(state.Stand(8, 1, 2))

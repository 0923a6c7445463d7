"""What offsets mean and which keys were used: decided without a broker."""

from __future__ import annotations

from concurrent.futures import Future
from types import SimpleNamespace

import msgspec
import pytest
from confluent_kafka import OFFSET_END, KafkaError, KafkaException, TopicPartition
from hypothesis import given
from hypothesis import strategies as st

from shoal.connect.kafka import UnboundError, ends_of
from shoal.core.errors import UsageError
from shoal.core.keys import KeyRing
from shoal.policy.load import parse
from shoal.runtime.kafka.provision import backfill
from shoal.runtime.kafka.provision.audit import Applying
from shoal.runtime.kafka.provision.cluster import Cluster
from shoal.runtime.kafka.provision.control import members_of
from shoal.runtime.kafka.provision.key_checks import checks_of, refuse_other_keys, together
from shoal.runtime.kafka.provision.served import Served, definition, served_next
from shoal.runtime.kafka.serve import stateful
from shoal.runtime.kafka.serve.binding import SOURCE, Binding
from shoal.runtime.kafka.serve.output import Disguise, Record
from shoal.runtime.kafka.serve.shards import QUIET, Shard
from shoal.runtime.kafka.serve.transactions import LostError
from shoal.runtime.kafka.state.changelog import FAR, Found, Position, Seal, note_of

KEYS = KeyRing({"default": {1: bytes(range(32))}})
OTHER = KeyRing({"default": {1: bytes(32)}})
POLICY = parse("""
dataset: patients
source: {use: kafka, topic: patients, brokers: nowhere}
columns:
  time: {role: time}
  pid: {role: subject, type: str}
  age: {role: quasi, type: int}
views:
  ward: {show: [pid, age], masks: {pid: {use: pseudonym, key: wards}}}
  windows: {show: [age], masks: {age: {use: aggregate, k: 2, window: {use: tumbling, size: 50}}}}
  spans: {show: [age], masks: {age: {use: aggregate, k: 2, window: {use: tumbling, size: 10s}}}}
""")


offsets = st.none() | st.integers(0, 50)


@given(committed=offsets, known=offsets, again=st.booleans())
def test_a_worker_reads_on_where_views_are_published_or_stops(committed, known, again):
    """Nothing lost, nothing twice: it begins at what the changelog says, or where nothing was ever published."""
    binding = Binding("patients", "id-now", Seal(KEYS))
    position = None if known is None else Position(known, 0, FAR, "id-former" if again else "id-now")
    said: list[str] = []
    trusted = None if again else known
    if committed is not None and known is not None and (again or committed != known):
        with pytest.raises(UnboundError) as told:
            binding.settle(0, committed, position, said.append)
        assert told.value.hint
        return
    begin = binding.settle(0, committed, position, said.append)
    if trusted is not None:
        assert begin == trusted
    else:
        assert begin == committed  # an older version of this program wrote no position; a new beginning has none
    assert bool(said) == (committed is None and trusted is not None)


def test_a_position_is_sealed_and_a_note_waits_for_it():
    binding = Binding("patients", "id-now", Seal(KEYS))
    key, value = binding.record(3, 17)
    found = Found()
    found.take("position", Seal(KEYS).open(value, key, 3))
    assert found.position == Position(17, 0, FAR, "id-now")
    assert found.shows(binding.stand(17))
    assert not found.shows(binding.stand(18))
    assert note_of({SOURCE: binding.stand(17)})
    for wrong in (lambda: Seal(OTHER).open(value, key, 3), lambda: Seal(KEYS).open(value, key, 2)):
        with pytest.raises(Exception, match=r"key|opened|changed"):
            wrong()


def test_a_source_made_again_is_told_with_what_to_do():
    binding = Binding("patients", "id-now", Seal(KEYS))
    binding.check(None, "id-now")
    binding.check({"source": "id-now"}, "id-now")
    for entry, now in (({"source": "id-former"}, "id-now"), (None, "id-other")):
        with pytest.raises(UnboundError, match="deleted and made again") as told:
            binding.check(entry, now)
        assert "serve apply" in str(told.value)


rings = st.dictionaries(st.integers(1, 4), st.sampled_from([bytes([n]) * 32 for n in range(3)]), min_size=1)


@given(rings, rings)
def test_keys_are_the_same_or_newer_never_others(before, now):
    known, mine = (checks_of(POLICY, KeyRing({"default": ring, "wards": ring})) for ring in (before, now))
    assert set(known) == {"default", "wards"}
    refuse_other_keys(known, known, "test")
    other = any(before[e] != now[e] for e in before if e in now)
    if other or max(now) < max(before):
        with pytest.raises(UsageError, match="made with"):
            refuse_other_keys(known, mine, "test")
    else:
        refuse_other_keys(known, mine, "test")
        merged = together(known, mine)["default"]
        assert merged == {**known["default"], **mine["default"]}


def test_rotation_is_welcome_and_no_secret_is_told():
    rotated = KEYS.rotate("default")
    refuse_other_keys(checks_of(POLICY, KEYS), checks_of(POLICY, rotated), "test")
    with pytest.raises(UsageError) as told:
        refuse_other_keys(checks_of(POLICY, KEYS), checks_of(POLICY, OTHER), "test")
    assert bytes(range(32)).hex() not in str(told.value)


def test_a_window_of_so_many_events_is_not_moved_by_a_quiet_source(monkeypatch):
    """Idle ticks moved the event clock, and the backlog that came afterwards was withheld as too late."""
    clock = [1000.0]
    monkeypatch.setattr("shoal.runtime.kafka.serve.shards.time.monotonic", lambda: clock[0])

    def shard(role: str) -> Shard:
        disguise = Disguise(POLICY.views[role], "patients", 1, KEYS)
        return Shard(role, role, 0, stateful.start(POLICY, role, 0, KEYS, disguise, None), Seal(KEYS))

    def visit(n: int) -> Record:
        value = msgspec.json.encode({"time": 1_000 + n, "pid": f"p{n}", "age": n % 90})
        return Record(0, n, None, value, 0)

    counted, timed = shard("windows"), shard("spans")
    for one in (counted, timed):
        one.push([visit(n) for n in range(30)])
        one.reach_end()
    clock[0] += QUIET + 60
    assert timed.due() is not None
    assert counted.due() is None
    out, _ = counted.push([visit(n) for n in range(30, 110)])  # seconds of event time, all before "now"
    assert len(out) == 100
    assert counted.work.withheld == 0


def test_a_changed_source_or_a_lost_topic_begins_anew_and_no_version_carries_two_meanings():
    entry = {"served": {"ward": msgspec.to_builtins(Served("patients.ward", "old", definition(POLICY, "ward")))}}
    kept = served_next(POLICY, entry, None, {"patients.ward"})["ward"]
    assert (kept.topic, kept.name) == ("patients.ward", "old")
    gone = served_next(POLICY, entry, None, set())["ward"]
    assert gone.topic == "patients.ward"
    assert gone.name != "old"
    assert served_next(POLICY, entry, None, {"patients.ward"}, anew=True)["ward"].topic == "patients.ward.v2"
    begun = {"ward": {"topic": "patients.ward.v2", "name": "half", "definition": "another", "version": 2}}
    tried = served_next(POLICY, entry, Applying("a", served=begun), {"patients.ward"}, anew=True)["ward"]
    assert tried.topic == "patients.ward.v3"  # what v2 began to show was something else


def test_a_partition_without_a_leader_is_asked_again():
    """A topic that was just made answers so for a moment. It is asked while partitions are assigned, inside a callback
    of the client: a question that serves callbacks itself, as for the topics there are, would end the process."""
    errors = [KafkaError(KafkaError.NOT_LEADER_FOR_PARTITION), None]

    class Consumer:
        def offsets_for_times(self, places, timeout):
            error = errors.pop(0) if errors else None
            if error is not None:
                raise KafkaException(error)
            return [TopicPartition(p.topic, p.partition, 7 if p.offset == OFFSET_END else 2) for p in places]

    assert ends_of(Consumer(), "visits", [0, 3]) == {0: (2, 7), 3: (2, 7)}
    assert not errors


def test_a_worker_that_is_lost_while_it_fills_a_view_is_followed_by_another(monkeypatch):
    monkeypatch.setattr(backfill, "REST", 0.0)
    ends = [LostError("the partitions were taken away", where="kafka")] * 2 + [None]

    class Filling:
        shown = False

        def __init__(self):
            self.counters = SimpleNamespace(read=10)

        def run(self):
            if (error := ends.pop(0)) is not None:
                raise error
            return self.counters

        def wait_until_shown(self):
            Filling.shown = True

    assert backfill._filled(Filling) == 30
    assert Filling.shown
    assert not ends
    ends += [LostError("the partitions were taken away", where="kafka")] * backfill.STARTS
    with pytest.raises(LostError):
        backfill._filled(Filling)


def test_a_group_is_forgotten_once_the_session_of_a_killed_worker_has_ended():
    errors = [KafkaError.NON_EMPTY_GROUP, KafkaError.COORDINATOR_LOAD_IN_PROGRESS]

    class Admin:
        def delete_consumer_groups(self, names):
            done = Future()
            if errors:
                done.set_exception(KafkaException(KafkaError(errors.pop(0))))
            else:
                done.set_result(None)
            return dict.fromkeys(names, done)

    cluster = Cluster({"bootstrap.servers": "127.0.0.1:1"})
    cluster._client = Admin()
    cluster.delete_group("shoal-visits", idle=True)
    assert not errors
    errors.append(KafkaError.NON_EMPTY_GROUP)
    cluster.delete_group("shoal-visits")  # one at work is left alone, and not waited for
    assert not errors


def test_the_members_of_a_group_are_asked_for_again_while_its_coordinator_moves():
    answers = [KafkaError.NOT_COORDINATOR, SimpleNamespace(members=["a", "b"]), KafkaError.GROUP_ID_NOT_FOUND]

    class Admin:
        def describe_consumer_groups(self, names):
            done, answer = Future(), answers.pop(0)
            if isinstance(answer, int):
                done.set_exception(KafkaException(KafkaError(answer)))
            else:
                done.set_result(answer)
            return dict.fromkeys(names, done)

    assert members_of(Admin(), "shoal-visits") == ["a", "b"]
    assert members_of(Admin(), "shoal-visits") == []

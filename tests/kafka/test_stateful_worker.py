"""Views with promises and window masks on a real broker: as one uninterrupted run per partition, whatever happens."""

from __future__ import annotations

import os
import random
from collections import Counter, defaultdict

import msgspec
import pytest
from stage import KEYS

from shoal.connect.kafka import KafkaError
from shoal.core.errors import InputError, PolicyError
from shoal.core.keys import KeyRing
from shoal.policy.load import load
from shoal.runtime.kafka.provision.provision import Provisioner
from shoal.runtime.kafka.serve import shards, stateful
from shoal.runtime.kafka.serve.membership import Membership
from shoal.runtime.kafka.serve.output import Disguise, Record
from shoal.runtime.kafka.serve.worker import Worker
from shoal.runtime.kafka.state import changelog as state

pytestmark = pytest.mark.system

POLICY = """
dataset: visits
source: {use: kafka, topic: {topic}, properties: admin.properties}
columns:
  time: {role: time}
  number: {role: plain, type: int}
  client: {role: subject, type: str}
  age: {role: quasi, type: int, hierarchy: {use: range, min: 0, max: 100}}
  domain: {role: quasi, type: str, hierarchy: {use: path, depth: 2}}
  diag: {role: sensitive, type: str}
views:
  market:
    show: [number, domain]
    promises: [{use: z-anonymity, z: 5, window: 60s}]
    method: z-anonymity
  research:
    show: [number, age, domain, diag]
    promises: [{use: k-anonymity, k: 4}, {use: l-diversity, l: 2, column: diag}]
    method: {use: batches, delay: 100, delay_time: 30s, reuse: 500}
  pulse:
    show: [number, age, diag]
    masks: {age: {use: aggregate, function: mean, window: {use: tumbling, size: 10s}, k: 2}}
  ward:
    show: [number, diag]
"""


@pytest.fixture
def still(monkeypatch):
    """The clock moves by records alone: a slow machine is no quiet source."""
    monkeypatch.setattr(shards, "QUIET", 1e9)


def visits(count: int, seed: int = 1, start: int = 0) -> list[tuple[bytes, bytes, int]]:
    chance = random.Random(seed)
    out = []
    for number in range(start, start + count):
        person = int(chance.paretovariate(0.5)) % 400
        value = {
            "time": 1_000 + number / 20,
            "number": number,
            "client": f"person{person}",
            "age": person % 90,
            "domain": f"d{person % 4}.s{chance.randrange(5)}",
            "diag": chance.choice(["E10 diabetes", "E11 diabetes", "E12 diabetes"]),
        }
        out.append((msgspec.json.encode(value), b"k%d" % person, person % 2))
    return out


def uninterrupted(stage, role: str, sent) -> list[bytes]:
    """What one run over each partition publishes."""
    policy = load(stage.file)
    out = []
    for partition in range(2):
        disguise = Disguise(policy.views[role], stage.topic, 2, KEYS)
        view = stateful.start(policy, role, partition, KEYS, disguise, None)
        mine = [v for v, _, p in sent if p == partition]
        records = [Record(partition, at, None, value, 0) for at, value in enumerate(mine)]
        out += [o.value for o in view.push(records)[0]]
    return out


def values(stage, role: str, isolation: str = "read_committed") -> list[bytes]:
    return [m.value() for m in stage.drain(f"{stage.topic}.{role}", isolation)]


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_worker_that_stops_and_starts_publishes_one_run(stage, still, protocol, monkeypatch):
    monkeypatch.setattr(shards, "EVERY", 700)  # snapshots fall at other places than stops
    monkeypatch.setattr(state, "PIECE", 1000)  # and have many pieces
    here = stage(POLICY)
    sent = visits(4000)
    for a, b in [(0, 1500), (1500, 4000)]:
        here.send(sent[a:b])
        here.serve(membership=Membership(protocol))
    for role in ("market", "research", "pulse"):
        assert Counter(values(here, role)) == Counter(uninterrupted(here, role, sent)), role
    assert sorted(msgspec.json.decode(v)["number"] for v in values(here, "ward")) == list(range(4000))
    groups = defaultdict(set)
    people = {n: msgspec.json.decode(v)["client"] for n, (v, _, _) in enumerate(sent)}
    for row in map(msgspec.json.decode, values(here, "research")):
        groups[row["age"], row["domain"]].add(people[row["number"]])
    assert min(map(len, groups.values())) >= 4


CURVES = """
dataset: meters
source: {use: kafka, topic: {topic}, properties: admin.properties}
columns:
  at: {role: time, type: int, late: 2s}
  home: {role: subject, type: str}
  watt: {role: quasi, type: int}
views:
  shapes:
    show: [at, watt]
    hidden: drop
    promises: [{use: kP-anonymity, k: 3, p: 2}]
    method: {use: curves, window: 20s, every: 5s, missing: previous}
"""


def test_windows_of_a_topic_are_released_as_curves(stage, still):
    here = stage(CURVES)
    sent = [
        (msgspec.json.encode({"at": at, "home": f"home{home}", "watt": 10 * home + at % 7}), b"h", home % 2)
        for at in range(70)
        for home in range(10)
    ]
    for a, b in [(0, 330), (330, 700)]:  # a worker that takes over in the middle of a window
        here.send(sent[a:b])
        here.serve()
    found = values(here, "shapes")
    assert Counter(found) == Counter(uninterrupted(here, "shapes", sent))
    curves = Counter((row["window"], row["group"]) for row in map(msgspec.json.decode, found) if row["at"] % 20 == 0)
    assert len({window for window, _ in curves}) == 3
    assert min(curves.values()) >= 3


def test_a_killed_worker_is_continued_from_snapshot_and_log(stage, still, monkeypatch):
    monkeypatch.setattr(shards, "EVERY", 100_000)  # only the first commit has a snapshot: the rest is replayed
    here = stage(POLICY)
    sent = visits(5000, seed=2)
    here.send(sent[:3000])
    worker = here.worker(batch=200, commit_every=0.01)

    class StoppedError(Exception):
        pass

    def stop() -> bool:
        if worker.counters.read >= 3000 and worker.counters.commits >= 2:
            raise StoppedError  # as a kill: nothing is committed on leaving
        return False

    with pytest.raises(StoppedError):
        worker.run(stop)
    here.send(sent[3000:])
    counters = here.serve()
    assert counters.replayed > 0
    for role in ("market", "research", "pulse"):
        assert Counter(values(here, role)) == Counter(uninterrupted(here, role, sent)), role
        seen = Counter(values(here, role, "read_uncommitted"))
        assert set(seen) == set(values(here, role))  # aborted records are the same bytes


def test_a_quiet_source_still_releases_what_is_due(stage, monkeypatch):
    here = stage(POLICY.replace("delay_time: 30s", "delay_time: 2s").replace("size: 10s", "size: 1s"))
    here.send(visits(120))
    worker = here.worker()
    end: list[float] = []

    def stop() -> bool:
        return worker.counters.written["research"] + worker.counters.withheld["research"] >= 120

    import threading

    timer = threading.Timer(600, lambda: end.append(1))
    timer.start()
    worker.run(lambda: stop() or bool(end))
    timer.cancel()
    assert not end
    released = values(here, "research")
    assert len(released) + worker.counters.withheld["research"] == 120
    assert released
    changelog = here.drain(f"{here.topic}.shoal.changelog")
    assert any(b"/tick/" in m.key() for m in changelog)
    secrets = b"".join(m.value() or b"" for m in changelog)
    assert b"person" not in secrets
    assert b"diabetes" not in secrets
    # a worker that comes later finds the ticks and repeats nothing
    here.send(visits(40, start=120))
    here.serve()
    assert len(values(here, "research", "read_uncommitted")) >= len(released)
    numbers = Counter(msgspec.json.decode(v)["number"] for v in values(here, "research"))
    assert max(numbers.values()) == 1


def test_input_lost_by_retention_means_withholding_not_leaking(stage, monkeypatch):
    monkeypatch.setattr(shards, "EVERY", 10_000_000)
    here = stage(POLICY)
    sent = visits(6000, seed=3)
    here.send(sent[:2000])
    worker = here.worker(batch=100, commit_every=0.01)

    class StoppedError(Exception):
        pass

    def stop() -> bool:
        if worker.counters.read >= 2000 and worker.counters.commits >= 3:
            raise StoppedError
        return False

    with pytest.raises(StoppedError):
        worker.run(stop)
    from confluent_kafka import TopicPartition

    here.send(sent[2000:])
    before = here.committed()
    # the source forgets what the snapshot would need, and more than was read
    gone = [TopicPartition(here.topic, p, 1500) for p in range(2)]
    for future in here.admin.delete_records(gone).values():
        future.result(30)
    said: list[str] = []
    counters = here.serve(say=said.append)
    assert counters.fresh >= 2
    assert counters.lost == 3000 - before
    assert any("retention" in text for text in said)
    people = {n: msgspec.json.decode(v)["client"] for n, (v, _, _) in enumerate(sent)}
    rows = [msgspec.json.decode(v) for v in values(here, "research")]
    groups = defaultdict(set)
    for row in rows:
        groups[row["age"], row["domain"]].add(people[row["number"]])
    assert min(map(len, groups.values())) >= 4
    assert max(Counter(row["number"] for row in rows).values()) == 1


def test_state_of_another_version_or_key_never_leaks(stage, monkeypatch):
    here = stage(POLICY)
    sent = visits(4000, seed=4)
    here.send(sent[:2000])
    monkeypatch.setattr(shards, "VERSION", 0)  # as an older program
    here.serve()
    with pytest.raises(InputError, match="cannot be opened with this key"):
        Worker(load(here.file), KeyRing().new("default")).run()
    monkeypatch.undo()
    here.send(sent[2000:])
    said: list[str] = []
    counters = here.serve(say=said.append)
    assert counters.fresh == 6
    assert any("another version" in text for text in said)
    # z counts what came in: the log is its state. The others begin anew, and withhold what was held
    assert Counter(values(here, "market")) == Counter(uninterrupted(here, "market", sent))
    rows = [msgspec.json.decode(v) for v in values(here, "research")]
    people = {n: msgspec.json.decode(v)["client"] for n, (v, _, _) in enumerate(sent)}
    groups = defaultdict(set)
    for row in rows:
        groups[row["age"], row["domain"]].add(people[row["number"]])
    assert min(map(len, groups.values())) >= 4
    assert max(Counter(row["number"] for row in rows).values()) == 1


def test_a_changelog_that_is_marked_later_than_the_offset_is_waited_for(stage, still, monkeypatch):
    """A commit shows partition by partition: the one who follows may see the offset before the state."""
    here = stage(POLICY)
    sent = visits(2000, seed=6)
    here.send(sent[:1000])
    here.serve()
    held_back, collect = [3], state.Changelog._collect

    def late(self, reader, starts, views):
        found = collect(self, reader, starts, views)
        if held_back[0]:  # as before the last commit
            held_back[0] -= 1
            for one in (one for said in found.values() for one in said.values()):
                one.position = one.position and msgspec.structs.replace(one.position, next=one.position.next - 10)
        return found

    monkeypatch.setattr(state.Changelog, "_collect", late)
    here.send(sent[1000:])
    said: list[str] = []
    here.serve(say=said.append)
    assert held_back == [0]
    assert any("waited until the changelog showed" in text for text in said)
    for role in ("market", "research", "pulse"):
        assert Counter(values(here, role)) == Counter(uninterrupted(here, role, sent)), role
    # what never shows is never served
    held_back[0] = 10**9
    monkeypatch.setattr(state, "PATIENCE", 0.5)
    before = {role: Counter(values(here, role)) for role in ("ward", "research")}
    here.send(visits(10, start=2000))
    with pytest.raises(KafkaError, match="does not show what was committed"):
        here.serve()
    assert before == {role: Counter(values(here, role)) for role in before}


def test_closeness_is_refused_where_it_does_not_compose(stage):
    closer = "{use: t-closeness, t: 0.3, column: diag}"
    with pytest.raises(PolicyError, match="does not compose over partitions"):
        stage(POLICY.replace("{use: l-diversity, l: 2, column: diag}", closer))


@pytest.mark.slow
@pytest.mark.skipif(os.environ.get("SHOAL_LONG") != "1", reason="waits for the broker's cleaner; SHOAL_LONG=1 runs it")
def test_a_compacted_changelog_is_still_the_whole_state(stage, still, monkeypatch):
    monkeypatch.setattr(shards, "EVERY", 300)
    monkeypatch.setattr(state, "PIECE", 1000)
    here = stage(POLICY)
    changelog, sent = f"{here.topic}.shoal.changelog", visits(4000, seed=5)
    quick = {"segment.ms": "1000", "min.cleanable.dirty.ratio": "0.01", "min.compaction.lag.ms": "0"}
    Provisioner(load(here.file)).cluster.set_configs(changelog, quick)
    for at in range(0, 3000, 375):
        here.send(sent[at : at + 375])
        here.serve(batch=50)

    def share() -> float:
        """How many of all offsets still hold a record."""
        left = here.drain(changelog)
        ends = {p: max(m.offset() for m in left if m.partition() == p) + 1 for p in range(2)}
        return len(left) / sum(ends.values())

    here.until(lambda: share() < 0.7)  # the cleaner was here: without it only the marks of commits are missing
    here.send(sent[3000:])
    counters = here.serve()
    assert counters.fresh == 0
    for role in ("market", "research", "pulse"):
        assert Counter(values(here, role)) == Counter(uninterrupted(here, role, sent)), role

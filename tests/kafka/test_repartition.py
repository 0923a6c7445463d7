"""The repartition step on a real broker: partitions cost no detail, every record once, and nobody else may look."""

from __future__ import annotations

import random
from collections import Counter, defaultdict

import msgspec
import pytest
from stage import KEYS

from shoal.connect.kafka import KafkaError
from shoal.core.errors import PolicyError
from shoal.policy.load import load
from shoal.runtime.kafka.provision.provision import Provisioner
from shoal.runtime.kafka.serve import shards
from shoal.runtime.kafka.serve.source_records import LARGEST
from shoal.runtime.kafka.state.changelog import Reader

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
    promises: [{use: z-anonymity, z: 12, window: 60s}]
    method: z-anonymity
    service: {repartition: 5}
  research:
    show: [number, age, domain, diag]
    promises: [{use: k-anonymity, k: 4}]
    method: {use: batches, delay: 100}
    service: {repartition: 4}
  ward:
    show: [number, diag]
"""


@pytest.fixture
def still(monkeypatch):
    """The clock moves by records alone: a slow machine is no quiet source."""
    monkeypatch.setattr(shards, "QUIET", 1e9)


def visits(count: int, partitions: int, start: int = 0, seed: int = 1) -> list[tuple[bytes, bytes, int]]:
    chance, out = random.Random(seed + start), []
    for number in range(start, start + count):
        person = chance.randrange(900)
        value = {
            "time": 1000 + number / 50,
            "number": number,
            "client": f"p{person}",
            "age": person % 90,
            "domain": f"d{chance.randrange(12)}.s{int(chance.paretovariate(0.6)) % 40}",
            "diag": chance.choice("xyz"),
        }
        out.append((msgspec.json.encode(value), b"p%d" % person, person % partitions))
    return out


def released(here, role: str) -> dict[int, dict[str, object]]:
    rows = [msgspec.json.decode(m.value()) for m in here.drain(f"{here.topic}.{role}")]
    out = {row["number"]: row for row in rows}
    assert len(out) == len(rows)  # nothing twice
    return out


def groups_keep(here, people: dict[int, int], k: int = 4) -> bool:
    found = defaultdict(set)
    for number, row in released(here, "research").items():
        found[row["age"], row["domain"]].add(people[number])
    return min(map(len, found.values())) >= k


def people_of(sent: list[tuple[bytes, bytes, int]]) -> dict[int, int]:
    return {msgspec.json.decode(value)["number"]: int(key[1:]) for value, key, _ in sent}


def test_sixteen_partitions_withhold_what_one_does(stage, still):
    withheld = {}
    for partitions, policy in ((1, POLICY.replace("repartition: 5", "retention: 1d")), (16, POLICY)):
        here = stage(policy, partitions)
        sent = visits(9000, partitions)
        here.send(sent)
        counters = here.serve()
        withheld[partitions] = 9000 - len(released(here, "market"))
        assert counters.withheld["market"] == withheld[partitions]
        assert len(released(here, "ward")) == 9000
        assert groups_keep(here, people_of(sent))
        assert len(released(here, "research")) > 9000 - 4 * 101
    assert 100 < withheld[1] < 5000  # else it would say nothing
    assert withheld[16] <= 1.1 * withheld[1]


def test_a_worker_that_takes_over_publishes_every_record_once_in_one_form(stage, still):
    here = stage(POLICY, 4)
    sent = visits(3000, 4)
    here.send(sent[:1500])
    here.serve()
    here.send(sent[1500:])
    here.serve()  # others than the first ones: all state is restored
    whole = stage(POLICY, 4)
    whole.send(sent)
    whole.serve()
    # cuts may be drawn at another place; what z-anonymity counts does not hang on them
    assert released(here, "market") == released(whole, "market")
    assert len(released(here, "ward")) == 3000
    assert groups_keep(here, people_of(sent))
    ever = Counter(m.value() for m in here.drain(f"{here.topic}.research", "read_uncommitted"))
    assert max(ever.values()) == 1


def test_the_topic_of_regions_holds_nothing_that_can_be_read_or_forged(stage, still):
    here = stage(POLICY, 2)
    here.send(visits(500, 2))
    here.serve()
    regions = f"{here.topic}.shoal.regions"
    blocks = here.drain(regions)
    assert blocks
    assert not any(mark in b"".join(m.value() for m in blocks) for mark in (b'"client"', b'"domain"', b'"number"'))
    before = released(here, "market")
    again = max(blocks, key=len)
    here.send([(again.value(), None, again.partition())], regions)  # a genuine one, once more
    here.serve()
    assert released(here, "market") == before
    here.send([(again.value(), None, (again.partition() + 1) % 5)], regions)  # in another region
    with pytest.raises(KafkaError, match="another region"):
        here.serve()
    other = stage(POLICY, 2)
    other.send([(b"anything", None, 0)], f"{other.topic}.shoal.regions")
    with pytest.raises(KafkaError, match="not a state"):
        other.serve()


def test_what_cannot_be_read_is_a_dead_letter_of_the_view(stage, still):
    here = stage(POLICY, 2)
    here.send([*visits(200, 2), (b'{"time": 1004, "domain": 7}', b"x", 1), (b"no json", b"x", 0)])
    here.serve()
    letters = [msgspec.json.decode(m.value()) for m in here.drain(f"{here.topic}.shoal.dead")]
    views = {f"{here.topic}.market", f"{here.topic}.research"}
    assert {x["topic"] for x in letters} == {here.topic}
    assert {(x["partition"], view) for x in letters for view in x["views"] if view in views} == {
        (p, view) for p in (0, 1) for view in views
    }


def test_the_largest_records_of_a_source_go_through_regions(stage, still):
    """A block holds a record as it came, sealed: that is larger than the largest record of a source."""
    here = stage(POLICY, 1)
    sent = visits(200, 1)
    for number, size in ((50, LARGEST - 50), (60, LARGEST)):
        value = sent[number][0].removesuffix(b"}") + b',"note":"'
        sent[number] = (value + b"x" * (size - len(value) - 2) + b'"}', sent[number][1], 0)
    here.send(sent)
    for _ in range(2):  # the second worker reads them again
        counters = here.serve()
        assert counters.dead == 0
    assert len(released(here, "ward")) == 200
    assert {50, 60} <= released(here, "research").keys()


def test_a_record_whose_key_makes_it_too_large_for_a_block_is_a_dead_letter(stage, still):
    here = stage(
        POLICY.replace("    show: [number, diag]\n", "    show: [number, diag]\n    service: {key: pseudonym}\n"), 1
    )
    sent = visits(100, 1)
    value = sent[50][0].removesuffix(b"}") + b',"note":"' + b"x" * 500_000 + b'"}'
    here.send([*sent[:50], (value, b"k" * 450_000, 0), *sent[51:]])
    here.serve()
    letters = [msgspec.json.decode(m.value()) for m in here.drain(f"{here.topic}.shoal.dead")]
    assert {(x["offset"], view) for x in letters for view in x["views"]} >= {
        (50, f"{here.topic}.{role}") for role in ("market", "research")
    }


def test_a_view_that_begins_to_be_repartitioned_is_filled_from_the_log(stage, still):
    before = POLICY.replace("    service: {repartition: 5}\n", "")
    here = stage(before, 4)
    sent = visits(4000, 4)
    here.send(sent[:2500])
    here.serve()
    alone = released(here, "market")
    here.write_policy(POLICY)
    here.apply(keys=KEYS)
    here.send(sent[2500:])
    here.serve()
    topic = Provisioner(load(here.file)).plan().served["market"].topic
    assert topic.endswith(".v2")
    rows = [msgspec.json.decode(m.value())["number"] for m in here.drain(topic)]
    assert len(rows) == len(set(rows))
    first = {number for number in rows if number < 2500}
    assert len(first) > len(alone)  # people of all partitions are counted
    assert any(number > 3500 for number in rows)


def test_plan_says_what_it_costs_and_destroy_leaves_nothing(stage):
    here = stage(POLICY.replace("    service: {repartition: 5}\n", ""), 4)
    service = Provisioner(load(here.file))
    plan = service.plan()
    assert any("market: each of the 4 partitions counts" in note for note in plan.notes)
    assert any("research: every record is written a second time" in note for note in plan.notes)
    kept = {f"{here.topic}.shoal.{name}" for name in ("regions", "regions.shoal.changelog", "cuts")}
    assert kept <= set(plan.wanted.internal)
    here.write_policy(POLICY.replace("service: {repartition: 5}", "").replace("service: {repartition: 4}", ""))
    here.apply(keys=KEYS)  # nobody asks for it any more
    assert not service.cluster.partitions(kept)
    here.write_policy(POLICY)
    here.apply(keys=KEYS)
    assert len(service.cluster.partitions(kept)) == 3
    Provisioner(load(here.file)).destroy()
    assert not service.cluster.partitions(kept)


def test_closeness_over_partitions_needs_one_region(stage):
    text = POLICY.replace(
        "{use: k-anonymity, k: 4}", "{use: k-anonymity, k: 4}, {use: t-closeness, t: 0.5, column: diag}"
    )
    for wrong, message in ((text, "one region"), (text.replace("    service: {repartition: 4}\n", ""), "compose")):
        with pytest.raises(PolicyError, match=message):
            stage(wrong, 2)
    here = stage(text.replace("repartition: 4", "repartition: 1"), 2)
    sent = visits(1500, 2)
    here.send(sent)
    here.serve()
    assert groups_keep(here, people_of(sent))
    with Reader(here.cluster.login(), f"{here.topic}.shoal.regions") as reader:
        assert len(reader.ends([0, 1])) == 2

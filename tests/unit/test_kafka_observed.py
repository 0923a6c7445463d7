"""What a record carries beside its columns breaks no promise: without a broker, by what a reader could look at."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from types import SimpleNamespace

import msgspec
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.cli.consume import _judge
from shoal.core.keys import KeyRing
from shoal.policy.load import parse
from shoal.runtime.kafka.provision.served import Served
from shoal.runtime.kafka.serve import stateful
from shoal.runtime.kafka.serve.masking import Masking
from shoal.runtime.kafka.serve.output import Record
from shoal.runtime.kafka.serve.shards import Shard
from shoal.runtime.kafka.tools.observed import COMMIT, Observed, joined

KEYS = KeyRing({"default": {1: bytes(range(32))}})
POLICY = """
dataset: admissions
source: {use: kafka, topic: admissions, brokers: nowhere}
columns:
  time: {role: time}
  pid: {role: subject, type: str}
  age: {role: quasi, type: int, hierarchy: {use: range, min: 0, max: 100}}
  zip: {role: quasi, type: str, hierarchy: {use: prefix, length: 5}}
  diag: {role: sensitive, type: str}
views:
  research:
    show: [age, zip, diag]
    promises: [{use: k-anonymity, k: 5}, {use: l-diversity, l: 3, column: diag}]
    method: {use: %s, delay: 100%s}
"""
MINUTE = 60_000
START = 1_700_000_000_000 // MINUTE * MINUTE


def admissions(count: int = 1950, seed: int = 3) -> list[Record]:
    """People who come two minutes apart."""
    chance = random.Random(seed)
    out = []
    for n in range(count):
        value = {
            "time": START / 1000 + 120 * n,
            "pid": f"p{n}",
            "age": chance.randrange(95),
            "zip": f"{chance.randrange(10000, 10400)}",
            "diag": chance.choice(["E10", "E11", "J06", "I10", "C50"]),
        }
        out.append(Record(0, n, None, msgspec.json.encode(value), START + 2 * MINUTE * n))
    return out


def published(method: str = "batches", more: str = "", partitions: int = 3, batch: int = 40):
    """The messages of the view's topic, commit by commit with a mark after each, and whose records they are."""
    policy = parse(POLICY % (method, more))
    served = {"research": Served("admissions.research", "it", "")}
    masking = Masking(policy, KEYS, served, None)
    masking.open("admissions", {"admissions.research": partitions})
    work = stateful.start(policy, "research", 0, KEYS, masking.disguises["research"], None)
    shard, ends, out = Shard("research", "it", 0, work, None), Counter(), []
    records = admissions()
    for at in range(0, len(records), batch):
        masking.take(records[at : at + batch], {0: [shard]})
        made = masking.mixed("research", b"%d" % at)
        masking.forget()
        for one in made:
            out.append(message(one.partition, ends[one.partition], one.value, one.timestamp, one.key))
            ends[one.partition] += 1
        for partition in {one.partition for one in made}:
            ends[partition] += 1  # the mark of the commit
    return policy, out


def message(partition: int, offset: int, value: bytes = b"{}", timestamp: int = 0, key: bytes | None = None):
    return SimpleNamespace(
        partition=lambda: partition,
        offset=lambda: offset,
        value=lambda: value,
        timestamp=lambda: (1, timestamp),
        key=lambda: key,
    )


def findings(policy, messages):
    """What `consume` says of them."""
    observed = Observed()
    for one in messages:
        observed.take(one)
    rows = [msgspec.json.decode(m.value()) for m in messages]
    columns = pl.DataFrame({c: [r[c] for r in rows] for c in ("age", "zip", "diag")})
    judge = _judge(policy, "research")
    assert judge is not None
    return judge(observed.beside(columns))


def test_whoever_knows_age_zip_and_the_minute_finds_nobody():
    _, messages = published()
    candidates = defaultdict(list)
    for one in messages:
        row = msgspec.json.decode(one.value())
        candidates[one.timestamp()[1], one.partition(), one.key(), row["age"], row["zip"]].append(row["diag"])
    assert min(map(len, candidates.values())) >= 5
    assert min(len(set(found)) for found in candidates.values()) >= 3
    # no timestamp of the source is among them: a year of admissions was published within this test
    assert not {r.timestamp for r in admissions()} & {m.timestamp()[1] for m in messages}


@pytest.mark.parametrize("batch", [7, 40, 1000])
def test_the_judge_finds_promises_kept_over_commits_too(batch):
    policy, messages = published(batch=batch)
    found = findings(policy, messages)
    assert len(found) == 4
    assert all(f.kept for f in found), found
    assert "timestamp, key, partition, commit" in found[2].promise


def test_the_judge_finds_source_minutes_partitions_and_keys_that_tell_people_apart():
    policy, messages = published()

    def broken(change) -> list[str]:
        changed = [change(n, m) for n, m in enumerate(messages)]
        return [f.promise for f in findings(policy, changed) if not f.kept]

    again = [(m.partition(), m.offset(), m.value(), m.timestamp()[1]) for m in messages]
    assert broken(lambda n, m: m) == []
    assert len(broken(lambda n, m: message(*again[n][:3], START + n * 2 * MINUTE))) == 2  # as it was published before
    assert len(broken(lambda n, m: message(*again[n], b"k%d" % n))) == 2
    assert len(broken(lambda n, m: message(n % 3, *again[n][1:]))) == 2
    assert len(broken(lambda n, m: message(again[n][0], n * 7, *again[n][2:]))) == 2  # a commit for every record


def test_what_is_published_again_for_one_record_is_told_and_not_judged_by_time():
    policy, messages = published("castle", ", reuse: forever")
    assert stateful.reuses(policy, "research")
    assert all(f.kept for f in findings(policy, messages))
    for method in ("batches", "castle", "fads"):
        assert stateful.reuses(parse(POLICY % (method, ", reuse: 500")), "research")
        assert not stateful.reuses(parse(POLICY % (method, ", reuse: never")), "research")
        # to who sees when a record comes, a box given to it alone is a group of one: only if somebody asks for it
        assert not stateful.reuses(parse(POLICY % (method, "")), "research")


@pytest.mark.parametrize("method", ["batches", "castle", "fads"])
def test_no_method_publishes_a_record_alone_in_its_time_unless_asked(method):
    policy, messages = published(method)
    found = findings(policy, messages)
    assert any("timestamp" in f.promise for f in found)
    assert all(f.kept for f in found), found


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(1, 3)), min_size=1, max_size=30))
def test_stretches_of_offsets_are_commits(steps):
    """Against an obvious twin: a new number wherever an offset is missing."""
    observed, ends, last, number, expected = Observed(), Counter(), {}, Counter(), []
    for partition, step in steps:
        ends[partition] += step
        observed.take(message(partition, ends[partition]))
        if partition not in last:
            number[partition] = 0
        elif last[partition] + 1 != ends[partition]:
            number[partition] += 1
        last[partition] = ends[partition]
        expected.append(number[partition])
    frame = observed.beside(pl.DataFrame({"age": ["x"] * len(steps)}))
    assert frame[COMMIT].to_list() == expected


def test_commits_of_two_workers_that_interleave_are_no_false_alarm():
    # five of one group, with the mark of another worker's commit in their midst
    observed = Observed()
    for offset in (0, 1, 2, 4, 5):
        observed.take(message(0, offset))
    frame = observed.beside(pl.DataFrame({"age": ["20s"] * 5}))
    assert frame[COMMIT].to_list() == [0, 0, 0, 1, 1]
    assert joined(frame, ["age"], 5)[COMMIT].n_unique() == 1
    assert joined(frame, ["age"], 2)[COMMIT].n_unique() == 2


def test_a_commit_that_retention_has_cut_is_not_judged():
    observed = Observed()
    observed.begin(0, 17)
    for offset in (17, 18, 20, 21):
        observed.take(message(0, offset))
    assert observed.cut
    assert observed.beside(pl.DataFrame({"age": ["a", "b", "c", "d"]}))["age"].to_list() == ["c", "d"]

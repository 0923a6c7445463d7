"""The repartition step without a broker: what partitions a stream came in changes nothing, or next to nothing."""

from __future__ import annotations

import random
from collections import defaultdict

import msgspec
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from region_roads import SEAL, blocks_of, in_turns, numbers, parted, plain, served, start

from shoal.core.errors import PolicyError
from shoal.policy.load import parse
from shoal.runtime.kafka.regions import merging
from shoal.runtime.kafka.regions.blocks import Block, Entry, Mark, block_of
from shoal.runtime.kafka.regions.cells import Cuts, regions_by
from shoal.runtime.kafka.regions.glance import Pace
from shoal.runtime.kafka.regions.wish import check

COLUMNS = """
dataset: visits
source: {use: kafka, topic: visits, brokers: nowhere}
columns:
  time: {role: time}
  number: {role: plain, type: int}
  client: {role: subject, type: str}
  age: {role: quasi, type: int, hierarchy: {use: range, min: 0, max: 100}}
  domain: {role: quasi, type: str, hierarchy: {use: path, depth: 2}}
  diag: {role: sensitive, type: str}
"""
POLICY = parse(
    COLUMNS
    + """
views:
  market:
    show: [number, domain]
    promises: [{use: z-anonymity, z: 10, window: 60s}]
    method: z-anonymity
    service: {repartition: 16}
  research:
    show: [number, age, domain, diag]
    promises: [{use: k-anonymity, k: 5}]
    method: {use: batches, delay: 200}
    service: {repartition: 16}
  few:
    show: [number, domain]
    promises: [{use: z-anonymity, z: 3, window: 60s}]
    method: z-anonymity
    service: {repartition: 2}
  timed:
    show: [number, age, domain, diag]
    promises: [{use: k-anonymity, k: 3}]
    method: {use: castle, delay: 50, delay_time: 20s}
    service: {repartition: 3}
"""
)


def visits(count: int, seed: int = 1) -> tuple[list[bytes], list[int]]:
    """Values, and whose they are."""
    chance, out, people = random.Random(seed), [], []
    for number in range(count):
        people.append(chance.randrange(700))
        value = {
            "time": 1000 + number / 40,
            "number": number,
            "client": f"p{people[-1]}",
            "age": people[-1] % 90,
            "domain": f"d{chance.randrange(15)}.s{int(chance.paretovariate(0.6)) % 30}",
            "diag": chance.choice("xyz"),
        }
        out.append(msgspec.json.encode(value))
    return out, people


def loss(values: list[bytes]) -> float:
    """How much of each cell's domain a released record leaves open, on average."""
    total = 0.0
    for value in values:
        row = msgspec.json.decode(value)
        ends = [float(x) for x in row["age"].strip("[]").split(",")] if row["age"] != "*" else [0.0, 100.0]
        total += (ends[-1] - ends[0]) / 100 + {0: 0.5, 1: 0.0}[row["domain"].count(".")] + 0.5 * (row["domain"] == "*")
    return total / 2 / len(values)


@pytest.fixture(scope="module")
def stream():
    return visits(16_000)


@pytest.mark.parametrize("partitions", [4, 16])
def test_z_withholds_the_same_in_many_partitions(stream, partitions):
    values, people = stream
    _, alone, _ = plain(POLICY, "market", parted(values, 1, lambda _: 0))
    parts = parted(values, partitions, people.__getitem__)
    log = blocks_of(POLICY, "market", parts, in_turns(parts, 400, 3))
    out, withheld, held = served(POLICY, "market", log)
    assert held == 0
    assert len(out) + withheld == len(values)
    assert len(set(numbers(out))) == len(out)
    assert 0 < withheld <= 1.1 * alone
    if partitions == 16:  # and without it: far more
        assert plain(POLICY, "market", parts)[1] > 2 * withheld


def filled(block):
    return len(block_of(SEAL.unsealed(block.value)).entries) > 0


@pytest.mark.parametrize("partitions", [4, 16])
def test_groups_lose_no_detail_in_many_partitions(stream, partitions):
    values, people = stream
    alone, none, _ = plain(POLICY, "research", parted(values, 1, lambda _: 0))
    parts = parted(values, partitions, people.__getitem__)
    log = blocks_of(POLICY, "research", parts, in_turns(parts, 400, 3))
    assert sum(any(map(filled, region)) for region in log) > 4
    out, withheld, held = served(POLICY, "research", log)
    assert len(out) + withheld + held == len(values)
    assert withheld <= none
    assert loss(out) <= 1.1 * loss(alone)
    groups = defaultdict(set)
    for value in out:
        row = msgspec.json.decode(value)
        groups[row["age"], row["domain"]].add(people[row["number"]])
    assert min(map(len, groups.values())) >= 5


@settings(max_examples=6, deadline=None)
@example(1, "few", 6)  # a mark said again woke a partition that had ended, and its last records waited for nobody
@given(st.integers(0, 10_000), st.sampled_from(["few", "timed"]), st.integers(1, 6))
def test_batches_snapshots_and_repeated_blocks_change_nothing(seed, role, partitions):
    """A replay reads the same blocks in other batches; a block may come twice, if someone writes it again."""
    values, people = visits(300, seed)
    parts = parted(values, partitions, people.__getitem__)
    chance = random.Random(seed)
    for region, records in enumerate(blocks_of(POLICY, role, parts, in_turns(parts, 60, seed))):
        whole = start(POLICY, role, region)
        expected = [o.value for o in whole.push(records)[0]]
        view, found = start(POLICY, role, region), []
        at = 0
        while at < len(records):
            step = chance.randrange(1, 4)
            batch = records[at : at + step]
            if chance.random() < 0.3 and at:
                batch = [records[chance.randrange(at)], *batch]
            found += [o.value for o in view.push(batch)[0]]
            at += step
            if chance.random() < 0.3:
                view = start(POLICY, role, region, view.snapshot())
        assert found == expected
        assert (view.withheld, view.held) == (whole.withheld, whole.held)


def test_a_partition_far_behind_makes_nobody_late(stream):
    """One partition is read to its end before the others begin: its clock must not outrun them."""
    values, people = stream
    parts = parted(values[:4000], 4, people.__getitem__)
    order = iter(
        [parts[2], *[part[at : at + 50] for at in range(0, 1200, 50) for part in (parts[0], parts[1], parts[3])]]
    )
    out, withheld, held = served(POLICY, "market", blocks_of(POLICY, "market", parts, order))
    _, alone, _ = plain(POLICY, "market", parted(values[:4000], 1, lambda _: 0))
    assert (held, len(out) + withheld) == (0, 4000)
    assert withheld <= 1.05 * alone


def test_a_new_worker_that_reads_one_partition_first_makes_nobody_late(stream):
    """All partitions had ended: a worker that takes over does not know yet which of them have more, and they wait."""
    values, people = stream
    parts = parted(values[:3000], 4, people.__getitem__)
    before = [record for part in parts for record in part if record.timestamp < 1500]
    after = [[record for record in part if record.timestamp >= 1500] for part in parts]
    at_once = blocks_of(POLICY, "market", parts, iter([[record for part in parts for record in part]]))
    whole, withheld, _ = served(POLICY, "market", at_once)
    log = blocks_of(POLICY, "market", parts, iter([before, *after]), again=1)
    found, later, held = served(POLICY, "market", log)
    assert (sorted(found), later, held) == (sorted(whole), withheld, 0)
    assert 100 < withheld < 2900  # else it would say nothing


def test_what_waits_for_a_lost_partition_goes_on_by_ticks_and_is_bounded(monkeypatch):
    view = start(POLICY, "market", 0)
    block = Block("visits.view@1", 0, 2, [Mark(0, 9, 5_000_000, False)], [Entry(0, 3, None, b"no", 0, 4_000_000)])
    record = merging.Record(0, 0, None, SEAL.sealed(block), 0)
    assert view.push([record]) == ([], [])  # the other partition was never heard of
    assert (view.held, view.clock is not None) == (1, True)
    for at in range(merging.PATIENCE):
        assert view.held == 1
        view.tick(5_000_000 + at)
    assert view.held == 0
    _, bad = start(POLICY, "market", 0, view.snapshot()).push([])
    assert [(r.partition, r.offset) for r in bad] == [(0, 3)]  # what cannot be read is said, though a tick cannot
    monkeypatch.setattr(merging, "MOST_WAITING", 2)
    view = start(POLICY, "market", 0)
    many = [Entry(0, at, None, b"no", 0, at) for at in range(5)]
    full = msgspec.structs.replace(block, entries=many, marks=[])
    assert len(view.push([merging.Record(0, 0, None, SEAL.sealed(full), 0)])[1]) == 3
    assert view.held == 2


@given(st.lists(st.integers(0, 100), min_size=1, max_size=60), st.data())
def test_one_absurd_time_moves_no_partition(steps, data):
    times = np.cumsum(steps)
    at = data.draw(st.integers(0, len(times)))
    absurd = np.insert(times, at, 10**15)
    paces = Pace(1000).of(absurd)
    if at:
        assert paces.max() == times.max() or len(times) == at  # nobody after it tells
        assert np.array_equal(np.delete(paces, at), times)
    assert Pace(1000).of(times).tolist() == times.tolist()


def test_values_nobody_had_seen_have_a_place():
    cuts = Cuts([0, 1], [10.0, 5.0], [-1, -2], [1, -3], [7, 2, 4])
    keys = np.array([[10.0, 99.0], [10.5, 5.0], [11.0, 5.5]])
    assert regions_by(keys, cuts).tolist() == [7, 2, 4]


VIEW = """
views:
  it:
    show: [{shown}]
    promises: [{promise}]
    method: {method}
    service: {{repartition: {count}}}
"""
Z, BATCHES = "{use: z-anonymity, z: 5, window: 60s}", "{use: batches, delay: 100}"


@pytest.mark.parametrize(
    ("shown", "promise", "method", "count", "message"),
    [
        ("age, domain", Z, "z-anonymity", 4, "each of 2 quasi columns"),
        ("age, diag", "{use: k-anonymity, k: 3}, {use: t-closeness, t: 0.4, column: diag}", BATCHES, 4, "one region"),
        ("age", "{use: k-anonymity, k: 3}", BATCHES, 0, "between 1 and"),
        ("age", "{use: k-anonymity, k: 3}", BATCHES, "many", "between 1 and"),
        ("diag", "{use: k-anonymity, k: 3}", BATCHES, 4, "tells regions apart"),
    ],
)
def test_what_regions_cannot_do_is_refused_with_its_reason(shown, promise, method, count, message):
    policy = parse(COLUMNS + VIEW.format(shown=shown, promise=promise, method=method, count=count))
    with pytest.raises(PolicyError, match=message):
        check(policy, "it")


def test_one_region_is_always_possible():
    for shown, promise, method in (("age, domain", Z, "z-anonymity"), ("age", "{use: k-anonymity, k: 3}", BATCHES)):
        check(parse(COLUMNS + VIEW.format(shown=shown, promise=promise, method=method, count=1)), "it")

"""An observer with everything a role can see of its topic, on a real broker: the promise holds over all of it."""

from __future__ import annotations

import random
import time
from collections import defaultdict

import msgspec
import pytest
from confluent_kafka import Producer

from shoal.cli.consume import _judge
from shoal.policy.load import load
from shoal.runtime.kafka.tools.watch import Watch

pytestmark = pytest.mark.system

POLICY = """
dataset: admissions
source: {use: kafka, topic: {topic}, properties: admin.properties}
columns:
  time: {role: time}
  pid: {role: subject, type: str}
  age: {role: quasi, type: int, hierarchy: {use: range, min: 0, max: 100}}
  diag: {role: sensitive, type: str}
views:
  research:
    show: [age, diag]
    promises: [{use: k-anonymity, k: 5}, {use: l-diversity, l: 3, column: diag}]
    method: {use: batches, delay: 60}
"""


def test_age_and_the_minute_of_admission_find_nobody(stage):
    here = stage(POLICY)
    chance, writer = random.Random(7), Producer(here.cluster.login())
    start = int(time.time()) - 600 * 120
    for n in range(600):
        made = {"time": start + 120 * n, "pid": f"p{n}", "age": chance.randrange(95), "diag": f"E1{n % 5}"}
        writer.produce(here.topic, msgspec.json.encode(made), partition=n % 2, timestamp=(start + 120 * n) * 1000)
    assert writer.flush(60) == 0
    here.serve(batch=50, commit_every=0.05)
    messages = here.drain(f"{here.topic}.research")
    assert len(messages) > 300
    candidates = defaultdict(list)
    for one in messages:
        row = msgspec.json.decode(one.value())
        candidates[one.timestamp()[1] // 60_000, one.partition(), one.key(), row["age"]].append(row["diag"])
    assert min(map(len, candidates.values())) >= 5
    assert min(len(set(found)) for found in candidates.values()) >= 3
    policy = load(here.file)
    seen = Watch(policy, "research", here.cluster.login(), judge=_judge(policy, "research")).run(to_end=True)
    assert len(seen.findings) == 4
    assert seen.kept, seen.findings
    # one more record of a published group, alone in its commit: the groups are larger, the commit tells
    writer.produce(f"{here.topic}.research", messages[0].value(), partition=messages[0].partition())
    assert writer.flush(60) == 0
    seen = Watch(policy, "research", here.cluster.login(), judge=_judge(policy, "research")).run(to_end=True)
    assert [f.kept for f in seen.findings] == [True, True, False, False]

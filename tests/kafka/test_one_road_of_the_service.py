"""The service over one partition publishes, byte for byte, what the commands write from a file of the same records."""

from __future__ import annotations

from collections import Counter

import pytest
from stage import SECRET

from shoal.cli import main
from shoal.runtime.kafka.serve import shards
from tests.laws.visits import COLUMNS, records

pytestmark = pytest.mark.system

POLICY = """
dataset: visits
source: {use: kafka, topic: {topic}, properties: admin.properties}
COLUMNS
views:
  ward: {show: [time, client, age, diag], masks: {client: pseudonym, age: {use: bucket, width: 10}}}
  market:
    show: [time, site]
    hidden: drop
    promises: [{use: z-anonymity, z: 3, window: 20s}]
    method: z-anonymity
  crowd:
    show: [age, site, diag]
    hidden: drop
    promises: [{use: k-anonymity, k: 2}]
    method: {use: castle, delay: 10, reuse: never}
"""


def shoal(*words: str) -> None:
    with pytest.raises(SystemExit) as done:
        main(list(words))
    assert not done.value.code


def test_a_topic_has_what_a_file_has(stage, monkeypatch, tmp_path):
    monkeypatch.setattr(shards, "QUIET", 1e9)  # the clock moves by records alone
    monkeypatch.setenv("SHOAL_KEY", SECRET)
    here = stage(POLICY.replace("COLUMNS", COLUMNS), partitions=1)
    values = records([(7 * n + n // 5) % 11 for n in range(300)])
    here.send((value, None, 0) for value in values)
    here.serve(batch=70)
    topics = {
        role: Counter(m.value() for m in here.drain(f"{here.topic}.{role}")) for role in ("ward", "market", "crowd")
    }
    monkeypatch.chdir(tmp_path)
    (tmp_path / "visits.ndjson").write_bytes(b"\n".join(values) + b"\n")
    policy = str(here.file)
    shoal("view", policy, "visits.ndjson", "--role", "ward", "-o", "ward.ndjson")
    shoal("view", policy, "visits.ndjson", "--role", "market", "-o", "market.ndjson")
    shoal("stream", "visits.ndjson", "--policy", policy, "--view", "market", "-o", "market2.ndjson")
    shoal("stream", "visits.ndjson", "--policy", policy, "--view", "crowd", "-o", "crowd.ndjson")
    files = {f.stem: Counter(f.read_bytes().splitlines()) for f in tmp_path.glob("*.ndjson")}
    assert topics["ward"] == files["ward"]
    assert topics["market"] == files["market"] == files["market2"]
    assert topics["crowd"] <= files["crowd"]  # a file ends, and what still waits is decided; a topic never does
    assert 0 < files["crowd"].total() - topics["crowd"].total() <= 10

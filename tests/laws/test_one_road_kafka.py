"""One road, the Kafka end: a view's topic has, value for value, what a file of the same records gets.

Two differences are meant, and tested as such: a topic never ends, so what a method still holds is not published
(:class:`LocalRunner` gives it at ``finish``), and a record's place, key, time and order on the topic are the role's own
(``runtime/kafka/serve/output.py``). The state of a view belongs to one partition: the law is about each.
"""

from __future__ import annotations

import msgspec
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shoal
from shoal.core.keys import KeyRing
from shoal.policy.load import parse
from shoal.release.job import job_of
from shoal.release.stream import LocalRunner, StreamJob
from shoal.release.wishes import Wishes
from shoal.runtime.kafka.provision.served import Served
from shoal.runtime.kafka.serve import stateful
from shoal.runtime.kafka.serve.masking import Masking
from shoal.runtime.kafka.serve.output import Record
from shoal.runtime.kafka.serve.shards import Shard
from tests.laws.visits import COLUMNS, records

KEYS = KeyRing({"default": {1: bytes(range(32))}})
POLICY = """
dataset: visits
source: {use: kafka, topic: visits, brokers: nowhere}
COLUMNS
views:
  ward:
    show: [time, client, age, diag]
    masks: {client: pseudonym, age: {use: bucket, width: 10}}
  nurse: {show: [time, diag], hidden: "null"}
  pulse:
    show: [time, age]
    masks: {age: {use: aggregate, function: mean, k: 2, window: {use: tumbling, size: 10s}}}
  market:
    show: [time, site]
    hidden: drop
    promises: [{use: z-anonymity, z: 3, window: 20s}]
    method: z-anonymity
  noisy:
    show: [time, client, site]
    masks: {client: pseudonym}
    hidden: drop
    promises: [{use: z-anonymity, z: 3, window: 20s}]
    method: {use: z-anonymity, noise: {most: 1}, allow_noise: true}
  research:
    show: [age, site, diag]
    hidden: drop
    promises: [{use: k-anonymity, k: 2}]
    method: {use: batches, delay: 6, reuse: never}
  crowd:
    show: [age, site, diag]
    hidden: drop
    promises: [{use: k-anonymity, k: 2}]
    method: {use: castle, delay: 6, reuse: never}
"""
VISITS = parse(POLICY.replace("COLUMNS", COLUMNS))


def served(role: str, values: list[bytes], batch: int) -> list[bytes]:
    """What the worker's commit has for a view's topic; its records come in batches of any size."""
    topic = f"visits.{role}"
    masking = Masking(VISITS, KEYS, {role: Served(topic, topic, "")}, None)
    masking.open("visits", {topic: 3})
    shards = []
    if masking.stateful:
        shards = [Shard(role, topic, 0, stateful.start(VISITS, role, 0, KEYS, masking.disguises[role], None), None)]
    at = [Record(0, n, None, value, 1) for n, value in enumerate(values)]
    for start in range(0, len(at), batch):
        masking.take(at[start : start + batch], {0: shards})
    assert not masking.dead
    return [o.value for o in masking.mixed(role, b"1") if o.value is not None]


def lines(frame: pl.DataFrame) -> list[bytes]:
    return frame.write_ndjson().encode().splitlines() if frame.height else []


def frame_of(values: list[bytes]) -> pl.DataFrame:
    return pl.read_ndjson(b"\n".join(values))


def fed(role: str, values: list[bytes]) -> list[bytes]:
    """What a local run of the job has published, and has not ended: the rest waits, as on a topic."""
    job = job_of(Wishes({"policy": VISITS, "view": role, "keys": KEYS}))
    assert isinstance(job, StreamJob)
    out: list[pl.DataFrame] = []
    LocalRunner(job, job.key(), out.append).feed(frame_of(values))
    return [line for part in out for line in lines(part)]


PEOPLE = st.lists(st.integers(0, 11), min_size=1, max_size=40)


@pytest.mark.parametrize("role", ["ward", "nurse", "market", "noisy"])
@given(PEOPLE, st.integers(1, 40))
@settings(max_examples=15)
def test_what_decides_at_once_is_the_same_on_a_topic_and_in_a_file(role, people, batch):
    values = records(people)
    made = shoal.view(frame_of(values), VISITS, role, keys=KEYS, seed=0).data
    assert sorted(served(role, values, batch)) == sorted(lines(made))


@pytest.mark.parametrize("role", ["research", "crowd"])
@given(PEOPLE, st.integers(1, 40))
@settings(max_examples=15)
def test_what_waits_for_company_is_the_same_until_the_file_ends(role, people, batch):
    values = records(people)
    found = sorted(served(role, values, batch))
    assert found == sorted(fed(role, values))
    whole = lines(shoal.view(frame_of(values), VISITS, role, keys=KEYS, seed=0).data)
    for value in found:
        whole.remove(value)  # raises if the file lacks it
    assert len(whole) <= 6


@given(PEOPLE, st.integers(1, 40))
@settings(max_examples=15)
def test_windows_are_the_same_until_the_file_ends(people, batch):
    values = records(people)
    found = served("pulse", values, batch)
    whole = lines(shoal.view(frame_of(values), VISITS, "pulse", keys=KEYS, seed=0).data)
    for value in found:
        whole.remove(value)  # raises if the file lacks it
    last = 2 * (len(people) - 1) // 10  # the window that is still open; one comes every two seconds
    assert all(msgspec.json.decode(value)["time"] // 10 == last for value in whole)


def test_a_box_is_used_again_on_a_topic_only_if_the_policy_says_so():
    """Everyone sees when a record comes to a topic: there the default is the stricter one, in a file it is not."""
    view = VISITS.views["research"]
    free = msgspec.structs.replace(view, method=msgspec.structs.replace(view.method, reuse=None))
    policy = msgspec.structs.replace(VISITS, views={"research": free})
    assert stateful.carrying_job(policy, "research", KEYS).method.reuse == "never"
    assert job_of(Wishes({"policy": policy, "view": "research", "keys": KEYS})).method.reuse is None


@pytest.mark.parametrize("role", ["market", "noisy", "research", "crowd"])
def test_a_method_draws_from_the_same_key_on_a_topic_and_in_a_file(role):
    job = job_of(Wishes({"policy": VISITS, "view": role, "keys": KEYS}))
    assert isinstance(job, StreamJob)
    assert job.key() == stateful.carrying_job(VISITS, role, KEYS).lasting_key()
    assert job.key() != job_of(Wishes({"z": 2, "window": "1h", "keys": KEYS})).key()


def test_a_service_never_draws_a_key_of_its_own():
    with pytest.raises(shoal.UsageError):
        stateful.carrying_job(VISITS, "market", KeyRing()).lasting_key()


def test_noise_without_a_shown_subject_is_refused_before_any_event():
    view = VISITS.views["noisy"]
    hidden = msgspec.structs.replace(view, show=("time", "site"), masks={})
    policy = msgspec.structs.replace(VISITS, views={"noisy": hidden})
    with pytest.raises(shoal.PolicyError, match="subject is not shown"):
        job_of(Wishes({"policy": policy, "view": "noisy", "keys": KEYS}))
    with pytest.raises(shoal.PolicyError, match="subject is not shown"):
        stateful.check(policy, "noisy")

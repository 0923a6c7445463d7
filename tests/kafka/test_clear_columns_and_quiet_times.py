"""What once went wrong around the records, on a real broker: clear columns, quiet times, policies applied again."""

from __future__ import annotations

import time

import msgspec
import pytest
from stage import GUARD

from shoal.policy.load import load
from shoal.runtime.kafka.provision.provision import Provisioner
from shoal.runtime.provision.passwords import variable_of

pytestmark = pytest.mark.system

POLICY = """
dataset: visits
source: {use: kafka, topic: {topic}, properties: admin.properties}
columns:
  time: {role: time}
  number: {role: plain, type: int}
  pid: {role: subject, type: str}
  age: {role: quasi, type: int}
views:
  ward: {show: [number]}
  counted:
    show: [number, age]
    masks: {age: {use: aggregate, function: mean, k: 3, window: {use: tumbling, size: 10}}}
  spans:
    show: [number, age]
    masks: {age: {use: aggregate, function: mean, k: 3, window: {use: tumbling, size: 1s}}}
"""
HIDDEN = {"name": "Ada Lovelace"}


def visits(start: int, end: int):
    """A thousand visits a second: less than any quiet moment."""
    return [
        (msgspec.json.encode({"time": 1_000 + n / 1000, "number": n, "pid": f"p{n}", "age": 20 + n % 60}), None, 0)
        for n in range(start, end)
    ]


def test_an_object_in_a_column_of_numbers_stays_and_a_quiet_time_withholds_no_window_of_records(stage):
    here = stage(POLICY, 1)
    strange = {"time": 1_000, "number": HIDDEN, "pid": "p", "age": 30}
    here.send([*visits(0, 25), (msgspec.json.encode(strange), None, 0)])
    worker, later, end = here.worker(), [], time.monotonic() + GUARD

    def stop() -> bool:
        now = worker.counters
        assert time.monotonic() < end, "it did not happen in time"
        # the clock of the other view has moved on without records: in the event time of these, far ahead
        if not later and now.written["spans"]:
            later.extend(visits(25, 95))
            here.send(later)
        return bool(later) and now.written["counted"] + now.withheld["counted"] >= 90

    counters = worker.run(stop)
    published = {view: here.drain(f"{here.topic}.{view}") for view in ("ward", "counted", "spans")}
    numbers = {view: sorted(msgspec.json.decode(m.value())["number"] for m in published[view]) for view in published}
    assert numbers["ward"] == list(range(95))
    assert numbers["counted"] == list(range(90))
    assert counters.dead == 1
    everything = b"".join(m.value() for many in published.values() for m in many)
    letters = here.drain(f"{here.topic}.shoal.dead")
    assert len(letters) == 1
    assert b"Lovelace" not in everything + letters[0].value()


Z_POLICY = """
dataset: visits
source: {use: kafka, topic: {topic}, properties: admin.properties}
columns:
  time: {role: time}
  client: {role: subject, type: str}
  domain: {role: quasi, type: str, hierarchy: {use: path, depth: 2}}
views:
  market:
    users: [USERS]
    show: [domain]
    promises: [{use: z-anonymity, z: 5, window: 60s}]
    method: {use: z-anonymity, tune: {goal: {k: 3, probability: 0.8}, every: 30m}}
"""


def test_an_unchanged_policy_with_z_is_never_wider_and_a_user_can_be_removed(stage, monkeypatch):
    mark = time.time_ns()
    first, second = f"ada{mark}", f"bob{mark}"
    for user in (first, second):
        monkeypatch.setenv(variable_of(user), "secret-of-theirs")
    here = stage(Z_POLICY.replace("USERS", f"{first}, {second}"), 1)
    service = Provisioner(load(here.file))
    assert not service.plan().wider
    assert not service.plan().changes
    here.apply()
    here.write_policy(Z_POLICY.replace("USERS", first))
    here.apply()  # without --allow-wider
    assert service.cluster.users([first, second]) == {first}

"""What a commit holds of a batch, without a broker."""

from __future__ import annotations

import msgspec
import pytest

from shoal.core.errors import InputError
from shoal.core.keys import KeyRing
from shoal.policy.load import parse
from shoal.runtime.kafka.provision.served import Served
from shoal.runtime.kafka.serve import stateful
from shoal.runtime.kafka.serve.masking import Masking
from shoal.runtime.kafka.serve.output import Record
from shoal.runtime.kafka.serve.shards import Shard

KEYS = KeyRing({"default": {1: bytes(range(32))}})
POLICY = parse("""
dataset: patients
source: {use: kafka, topic: patients, brokers: nowhere}
columns: {number: {role: plain, type: int}, name: {role: identifier}}
views:
  ward: {show: [number]}
  office: {show: [number, name]}
""")


class Picky:
    """A format that cannot carry some of what the office sees."""

    def decode(self, value: bytes) -> bytes:
        return value

    def encode(self, role: str, record: bytes) -> bytes:
        if role == "office" and msgspec.json.decode(record)["number"] % 10 == 3:
            raise InputError("does not fit")
        return role.encode() + record


def test_what_a_views_format_refuses_is_a_dead_letter_of_that_view_alone():
    served = {role: Served(f"patients.{role}", f"patients.{role}", "") for role in POLICY.views}
    masking = Masking(POLICY, KEYS, served, Picky())
    masking.open("patients", {one.topic: 1 for one in served.values()})
    records = [Record(0, n, None, b'{"number":%d,"name":"N"}' % n, 1) for n in range(30)]
    records.append(Record(0, 30, None, b"no json", 1))
    masking.take(records, {})
    ward, office = (masking.mixed(role, b"1") for role in ("ward", "office"))
    assert {r.value for r in ward} == {b'ward{"number":%d,"name":"*"}' % n for n in range(30)}
    assert {r.value for r in office} == {b'office{"number":%d,"name":"N"}' % n for n in range(30) if n % 10 != 3}
    letters = {r.offset: msgspec.json.decode(letter)["views"] for r, letter in masking.letters("patients")}
    both = ["patients.ward", "patients.office"]
    assert letters == {30: both, 3: both[1:], 13: both[1:], 23: both[1:]}


LONG = parse("""
dataset: patients
source: {use: kafka, topic: patients, brokers: nowhere}
columns:
  time: {role: time}
  pid: {role: subject, type: str}
  age: {role: quasi, type: int, hierarchy: {use: range, min: 0, max: 100}}
  note: {role: plain, type: str}
  "visits[*].ward": {role: plain, type: str}
views:
  plain: {show: [note, visits], masks: {note: tokenize, "visits[*].ward": tokenize}}
  groups:
    show: [age, note]
    masks: {note: tokenize}
    promises: [{use: k-anonymity, k: 2}]
    method: {use: batches, delay: 2}
  windows:
    show: [age, note]
    masks: {note: tokenize, age: {use: aggregate, k: 2, window: {use: tumbling, size: 3}}}
""")


@pytest.mark.parametrize("role", list(LONG.views))
def test_what_masks_make_too_large_to_publish_stops_nobody(role):
    """A token is longer than its value: no record may be published that no broker takes, nor end the worker."""
    served = {role: Served("patients.it", "patients.it", "")}
    masking = Masking(LONG, KEYS, served, None)
    masking.open("patients", {"patients.it": 1})
    start = b'{"time":%d,"pid":"%d","age":30,"note":"%s"'
    values = [(start + b"}") % (n, n, b"x" * (850_000 if n in (2, 5) else 5)) for n in range(9)]
    values += [(start + b',"visits":[%s]}') % (9, 9, b"x", b",".join([b'{"ward":"a"}'] * 40_000))]
    records = [Record(0, n, None, value, 1) for n, value in enumerate(values)]
    shards = []
    if masking.stateful:
        shards = [Shard(role, "it", 0, stateful.start(LONG, role, 0, KEYS, masking.disguises[role], None), None)]
    masking.take(records, {0: shards})
    out = masking.mixed(role, b"1")
    assert out
    assert max(len(r.value) for r in out) < 1_000_000
    if role != "windows":  # there they are withheld with their window
        assert {2, 5} <= {record.offset for record, _ in masking.dead} <= {2, 5, 9}

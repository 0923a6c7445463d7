"""What a commit holds of a batch, without a broker."""

from __future__ import annotations

import msgspec

from shoal.core.errors import InputError
from shoal.core.keys import KeyRing
from shoal.policy.load import parse
from shoal.runtime.kafka.masking import Masking
from shoal.runtime.kafka.output import Record
from shoal.runtime.kafka.served import Served

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

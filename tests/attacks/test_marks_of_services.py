"""The law of marks for services and curves: metrics, logs, Avro, Protobuf, and what is masked beside curves.

As ``test_marks.py``: every hidden, masked, withheld or undeclared field holds a mark, and no byte that leaves has one.
"""

from __future__ import annotations

import io
import json
import pickle
import urllib.request
from typing import Any

import fastavro
import msgspec
import polars as pl
import pytest

from shoal.core.errors import InputError, ShoalError
from shoal.policy.load import parse
from shoal.runtime.kafka.formats.view_message import fill, message_of
from shoal.runtime.kafka.formats.view_schema import ViewSchema
from shoal.runtime.kafka.provision.served import Served
from shoal.runtime.kafka.serve import stateful
from shoal.runtime.kafka.serve.counters import Counters
from shoal.runtime.kafka.serve.journal import Journal
from shoal.runtime.kafka.serve.masking import Masking
from shoal.runtime.kafka.serve.metrics import Page
from shoal.runtime.kafka.serve.output import Record
from shoal.runtime.kafka.serve.shards import Shard
from tests.attacks.test_marks import KEYS, SERVICE, Marks, clean, clear, left, rows, run, uncompressed

__all__ = ["run"]  # a fixture
POLICY = parse(SERVICE)
ROLES = ["desk", "market", "held"]


class Written:
    """Records of a view in another format, as the registry's codec writes them."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.schemas = {role: ViewSchema(POLICY, role) for role in ROLES}
        self.avro = {role: fastavro.parse_schema(schema.avro()) for role, schema in self.schemas.items()}
        self.messages = {role: message_of(schema, f"marks.{role}") for role, schema in self.schemas.items()}

    def decode(self, value: bytes) -> bytes:
        return value

    def encode(self, role: str, record: bytes) -> bytes:
        fitted = self.schemas[role].fit(msgspec.json.decode(record))
        if self.kind == "protobuf":
            return fill(self.messages[role](), fitted).SerializeToString()
        out = io.BytesIO()
        fastavro.schemaless_writer(out, self.avro[role], fitted)
        return out.getvalue()


def served(codec: Any) -> tuple[Masking, list[Shard], list[Record]]:
    topics = {role: Served(f"patients.{role}", f"patients.{role}", "") for role in ROLES}
    masking = Masking(POLICY, KEYS, topics, codec)
    masking.open("patients", {one.topic: 1 for one in topics.values()})
    shards = [
        Shard(role, role, 0, stateful.start(POLICY, role, 0, KEYS, masking.disguises[role], None, 1.0), None)
        for role in ROLES[1:]
    ]
    marks = Marks()
    values = [json.dumps(clear(row)).encode() for row in rows(marks)]
    odd = [json.dumps({**clear(rows(marks)[0]), "ward": {marks.text(): marks.text()}}).encode(), b"{" + b"Qzx77w"]
    return masking, shards, [Record(0, at, None, value, 1) for at, value in enumerate([*values, *odd])]


@pytest.mark.parametrize("kind", ["avro", "protobuf"])
def test_records_in_other_formats(kind):
    codec = Written(kind)
    masking, shards, records = served(codec)
    masking.take(records, {0: shards})
    out = {role: b"\n".join(r.value or b"" for r in masking.mixed(role, b"1")) for role in ROLES}
    assert all(len(data) > 100 for data in (out["desk"], out["held"]))
    clean(out, kind)
    clean({"letters": b"".join(letter for _, letter in masking.letters("patients"))}, kind)
    clean({role: json.dumps(schema).encode() for role, schema in codec.avro.items()}, "schemas")
    clean({role: made.DESCRIPTOR.file.serialized_pb for role, made in codec.messages.items()}, "descriptors")


def test_what_a_format_refuses_is_said_without_a_value():
    columns = "{age: {role: plain, type: int}, ward.bed: {role: plain, type: int}}"
    schema = ViewSchema(parse(f"dataset: d\ncolumns: {columns}\nviews: {{all: {{show: everything}}}}"), "all")
    for odd in ({"age": "Qzx1w"}, {"age": {"Qzx1w": 2}}, {"ward": ["Qzx1w"]}, {"ward": {"bed": "Qzx1w"}}):
        with pytest.raises(InputError) as told:
            schema.fit(odd)
        clean({"error": str(told.value).encode()}, "fit")


def test_metrics_and_logs():
    masking, shards, records = served(None)
    masking.take(records, {0: shards})
    counters = Counters.of(ROLES)
    counters.verify, counters.restoring = 1.0, False
    counters.read, counters.dead = len(records), len(masking.dead)
    for shard in shards:
        counters.stand(shard.role, [shard.work])
    page = Page(":0", counters)
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{page.port}/metrics", timeout=10) as answer:
            told = answer.read()
    finally:
        page.close()
    assert b'shoal_verify_checks_total{view="market"}' in told
    said = io.StringIO()
    journal = Journal(said, every=0.0, dataset="patients")
    journal.turn(counters)
    journal.failed(ShoalError("a release breaks 3-anonymity", where="verify"))
    clean({"metrics": told, "log": said.getvalue().encode()}, "a worker")
    assert said.getvalue()


CURVES = """
columns:
  who: {role: subject, type: str}
  card: {role: identifier, type: str}
  W0: quasi
  W1: quasi
  W2: quasi
  W3: quasi
  diag: {role: sensitive, type: str}
  ward: {role: sensitive, type: str}
views:
  v:
    show: [W0, W1, W2, W3, diag, ward]
    masks: {diag: suppress, ward: {use: blur, first: 0, last: 0}}
    promises: [{use: kP-anonymity, k: 4, p: 2}]
"""


@pytest.mark.parametrize("source", ["csv", "parquet"])
def test_what_is_masked_beside_curves(run, tmp_path, source):
    marks = Marks()
    frame = pl.DataFrame(
        [
            {
                **{name: marks.text() for name in ("who", "card", "diag", "ward", "undeclared")},
                **{f"W{i}": (n % 3) + i for i in range(4)},
            }
            for n in range(12)
        ]
    )
    file = tmp_path / "inputs" / f"in.{source}"
    frame.write_csv(file) if source == "csv" else frame.write_parquet(file)
    (tmp_path / "curves.yaml").write_text(CURVES)
    for out, report in (("out.csv", "r.html"), ("out.parquet", "r.json"), ("out.ndjson", "r.txt")):
        words = (f"inputs/in.{source}", "--policy", "curves.yaml", "--view", "v", "-o", out, "--report", report)
        run("anonymize", *words)
    run("view", "curves.yaml", f"inputs/in.{source}", "--role", "v", "-o", "seen.csv")
    run("explain", "curves.yaml")
    assert left(tmp_path)
    from shoal.policy.load import load
    from shoal.release.roles import view

    made = view(frame, load(tmp_path / "curves.yaml"), "v", keys=KEYS)
    clean({"pickle": pickle.dumps(made.data), "ipc": uncompressed(made.data)}, "curves")

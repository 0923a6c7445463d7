"""Avro and Protobuf over a real broker and a real schema registry, by the client's own serializers."""

from __future__ import annotations

import json
import os
from pathlib import Path

import msgspec
import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from stage import KEYS

from scripts.kafka import registry as script
from shoal.connect.kafka import KafkaError
from shoal.core.errors import InputError, PolicyError
from shoal.policy.load import load, parse
from shoal.runtime.kafka.formats.registry import codec_of
from shoal.runtime.kafka.formats.view_message import message_of
from shoal.runtime.kafka.formats.view_schema import ViewSchema
from shoal.runtime.kafka.tools.replay import Replay

pytestmark = pytest.mark.system

POLICY = """
dataset: patients
source: {use: kafka, topic: {topic}, properties: admin.properties, format: FORMAT, registry: "URL"MORE}
columns:
  pid: {role: subject, type: int}
  name: {role: identifier, type: str}
  age: {role: quasi, type: int, hierarchy: {use: range, min: 0, max: 120}}
  insurance.number: {role: identifier, type: int}
  insurance.company: {role: plain, type: str}
  gluc: {role: plain, type: float}
  diag: {role: sensitive, type: str}
views:
  ward:
    show: [name, age, insurance, gluc]
    masks:
      name: {use: blur, first: 1}
      age: {use: bucket, width: 10}
      insurance.number: {use: substitute, value: "none"}
  research:
    show: [age, diag]
    hidden: drop
    promises: [{use: k-anonymity, k: 3}]
    method: {use: batches, delay: 40}
"""


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory):
    why = script.available()
    if why is not None:
        if os.environ.get("SHOAL_REQUIRE_SYSTEM") == "1":
            pytest.fail(f"a schema registry is required here: {why}")
        pytest.skip(why)
    running = script.Registry(tmp_path_factory.mktemp("registry"))
    try:
        yield running.start()
    finally:
        running.stop()


def policy(kind: str, url: str) -> str:
    more = ", descriptor: patient.desc, message: hospital.Patient" if kind == "protobuf" else ""
    return POLICY.replace("FORMAT", kind).replace("URL", url).replace("MORE", more)


def people(count: int) -> list[dict]:
    return [
        {
            "pid": n,
            "name": f"Person{n}",
            "age": 20 + n % 60,
            "insurance": None if n % 7 == 0 else {"number": n, "company": "TK"},
            "gluc": n / 4 if n % 5 else None,
            "diag": "E10",
            "iban": "DE02",
        }
        for n in range(count)
    ]


AVRO = {
    "type": "record",
    "name": "Patient",
    "fields": [
        {"name": "pid", "type": "long"},
        {"name": "name", "type": "string"},
        {"name": "age", "type": "int"},
        {
            "name": "insurance",
            "type": [
                "null",
                {
                    "type": "record",
                    "name": "Insurance",
                    "fields": [{"name": "number", "type": "long"}, {"name": "company", "type": "string"}],
                },
            ],
        },
        {"name": "gluc", "type": ["null", "double"]},
        {"name": "diag", "type": "string"},
        {"name": "iban", "type": "string"},
    ],
}


def proto() -> descriptor_pb2.FileDescriptorProto:
    file = descriptor_pb2.FileDescriptorProto(name="patient.proto", package="hospital", syntax="proto3")
    kinds = {"pid": 3, "name": 9, "age": 5, "insurance": 11, "gluc": 1, "diag": 9, "iban": 9}
    message = file.message_type.add(name="Patient")
    inner = message.nested_type.add(name="Insurance")
    for number, (name, kind) in enumerate({"number": 3, "company": 9}.items(), 1):
        inner.field.add(name=name, number=number, type=kind, label=1)
    for number, (name, kind) in enumerate(kinds.items(), 1):
        field = message.field.add(name=name, number=number, type=kind, label=1)
        if kind == 11:
            field.type_name = ".hospital.Patient.Insurance"
        if name == "gluc":
            field.proto3_optional, field.oneof_index = True, 0
            message.oneof_decl.add(name="_gluc")
    return file


@pytest.fixture
def client(registry):
    with SchemaRegistryClient({"url": registry.url}) as made:
        yield made


def writer(kind: str, client: SchemaRegistryClient, folder: Path):
    """A serializer of source records that knows nothing of us."""
    if kind == "avro":
        return AvroSerializer(client, Schema(json.dumps(AVRO), "AVRO"))
    file = proto()
    (folder / "patient.desc").write_bytes(descriptor_pb2.FileDescriptorSet(file=[file]).SerializeToString())
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    kind_ = message_factory.GetMessageClass(pool.FindMessageTypeByName("hospital.Patient"))
    write = ProtobufSerializer(kind_, client)

    def call(record, place):
        return write(kind_(**{k: v for k, v in record.items() if v is not None}), place)

    return call


def reader(kind: str, client: SchemaRegistryClient, file: Path, role: str):
    """A consumer's deserializer, by the schema in the registry."""
    if kind == "avro":
        return AvroDeserializer(client)
    made = message_of(ViewSchema(load(file), role), "shoal.patients")
    return ProtobufDeserializer(made, {"use.deprecated.format": False}, client)


@pytest.mark.parametrize("kind", ["avro", "protobuf"])
def test_views_carry_the_schema_of_what_their_role_may_see(stage, registry, client, tmp_path, kind):
    serialize = writer(kind, client, tmp_path)
    made = stage(policy(kind, registry.url))
    place = SerializationContext(made.topic, MessageField.VALUE)
    made.send([(serialize(p, place), str(p["pid"])) for p in people(300)])
    made.send([(b"not of this format", "x"), (b"\x00\x00\x00\x00\x01broken", "y")])
    codec = codec_of(load(made.file))
    assert codec is not None
    numbers = codec.register()
    counters = made.serve(codec=codec)
    assert counters.dead == 2
    assert f"{made.topic}.ward-value" in client.get_subjects()
    read = reader(kind, client, made.file, "ward")
    view = SerializationContext(f"{made.topic}.ward", MessageField.VALUE)
    ward = [read(m.value(), view) for m in made.drain(f"{made.topic}.ward")]
    assert len(ward) == 300
    names = {r["name"] if kind == "avro" else r.name for r in ward}
    assert all(n.startswith("P") and "Person" not in n for n in names)
    plain = [json.loads(codec.decode_view("ward", m.value())) for m in made.drain(f"{made.topic}.ward")]
    assert not any("iban" in r for r in plain)
    assert {r["pid"] for r in plain} == {"*"}
    assert {r["diag"] for r in plain} == {"*"}
    assert sum(r["insurance"] is None for r in plain) == len([n for n in range(300) if n % 7 == 0])
    assert sum(r["gluc"] is None for r in plain) == 60
    assert all(isinstance(r["age"], str) for r in plain)  # a bucket of numbers is text
    research = [json.loads(codec.decode_view("research", m.value())) for m in made.drain(f"{made.topic}.research")]
    assert research
    assert all(set(r) == {"age", "diag"} for r in research)
    registered = client.get_schema(numbers["research"]).schema_str
    if kind == "avro":
        assert [f["name"] for f in json.loads(registered)["fields"]] == ["age", "diag"]
    dead = made.drain(f"{made.topic}.shoal.dead")
    assert {tuple(sorted(json.loads(m.value()))) for m in dead} == {("error", "offset", "partition", "topic", "views")}
    assert Replay(load(made.file), KEYS).run(dry=True).still == 2
    codec.close()


def test_a_registry_that_is_away_and_a_bad_value_are_told(tmp_path):
    text = (
        policy("avro", "http://127.0.0.1:9")
        .replace("{topic}", "t")
        .replace("properties: admin.properties", "brokers: b")
    )
    away = codec_of(parse(text, str(tmp_path / "p.yaml")))
    assert away is not None
    with pytest.raises(KafkaError, match="did not take the schema"):
        away.register()
    with pytest.raises(InputError, match="not readable as avro") as caught:
        away.decode(b"Ott")
    assert "Ott" not in str(caught.value)
    with pytest.raises(KafkaError, match="does not answer") as caught:  # the record may be good: no dead letter
        away.decode(b"\0\0\0\0\1F. Ott")
    assert "Ott" not in str(caught.value)
    away.close()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("format: avro", "format: xml"), "expected json, avro, protobuf"),
        ((', registry: "URL"', ""), "no schema registry"),
        (("format: avro", "format: protobuf"), "needs its compiled descriptor"),
        (("  gluc:", "  glu-c:"), "cannot be a field"),
    ],
)
def test_what_cannot_be_written_is_refused_before_anything_is_read(change, words):
    text = POLICY.replace("FORMAT", "avro").replace("MORE", "").replace("{topic}", "t")
    text = text.replace("properties: admin.properties", "brokers: b").replace(*change).replace("URL", "http://r")
    text = text.replace("insurance, gluc]", "insurance]")
    with pytest.raises(PolicyError, match=words):
        codec_of(parse(text, "policy.yaml"))


def test_json_needs_no_registry():
    text = POLICY.replace("FORMAT", "json").replace('registry: "URL"MORE', "brokers: b").replace("{topic}", "t")
    assert codec_of(parse(text.replace("properties: admin.properties, ", ""), "policy.yaml")) is None


def test_the_derived_schema_follows_masks_and_methods():
    text = POLICY.replace("FORMAT", "json").replace('registry: "URL"MORE', "brokers: b").replace("{topic}", "t")
    loaded = parse(text.replace("properties: admin.properties, ", ""), "policy.yaml")
    ward, research = ViewSchema(loaded, "ward"), ViewSchema(loaded, "research")
    kinds = {f["name"]: f["type"] for f in ward.avro()["fields"]}
    assert kinds["gluc"] == ["null", "double"]
    assert kinds["pid"] == kinds["diag"] == ["null", "string"]  # hidden behind a star
    assert [f["name"] for f in kinds["insurance"][1]["fields"]] == ["number", "company"]
    assert research.avro()["fields"] == [
        {"name": name, "type": ["null", "string"], "default": None} for name in ("age", "diag")
    ]
    assert research.fit({"age": 31, "diag": None}) == {"age": "31", "diag": None}
    assert msgspec.json.encode(ward.avro())


def test_destroy_takes_the_schemas_of_all_versions_and_no_others(registry, client, tmp_path):
    (tmp_path / "admin.properties").write_text("bootstrap.servers=nowhere:1\n")
    file = tmp_path / "policy.yaml"
    text = POLICY.replace("{topic}", "gone").replace("FORMAT", "avro").replace("URL", registry.url).replace("MORE", "")
    file.write_text(text)
    codec = codec_of(load(file))
    codec.register()
    codec.register({"ward": "gone.ward.v2", "research": "gone.research"})
    others = ["gone-value", "gone.wards-value", "gone.ward.v2x-value"]
    for subject in others:
        client.register_schema(subject, Schema(json.dumps(AVRO), "AVRO"))
    assert codec.forget() == ["gone.research-value", "gone.ward-value", "gone.ward.v2-value"]
    assert {s for s in client.get_subjects() if s.startswith("gone")} == set(others)
    codec.close()

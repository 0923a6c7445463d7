"""Avro and Protobuf with a schema registry, through the client's own serializers.

The worker sees JSON; this codec stands at both ends. Source records are read by the schema they were written with;
every view has a schema of its own, derived from the policy and registered as ``<view topic>-value`` before the first
record, so that nothing a role must not see has even a place in what it reads.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from shoal.connect.kafka import KafkaError, Source, looked_up, read_properties
from shoal.core.errors import InputError, PolicyError, UsageError
from shoal.policy.document import Policy
from shoal.runtime.kafka.formats.codec import Codec
from shoal.runtime.kafka.formats.view_message import fill, message_from, message_of, plain
from shoal.runtime.kafka.formats.view_schema import ViewSchema
from shoal.runtime.kafka.provision.layout import layout
from shoal.runtime.kafka.provision.served import pattern_of
from shoal.runtime.provision.change import Change

FORMATS = ("json", "avro", "protobuf")


def codec_of(policy: Policy) -> RegistryCodec | None:
    """The codec a policy's source asks for; none where records are JSON."""
    chosen = Source(policy.source, policy.path).said.get("format", "json")
    if chosen not in FORMATS:
        raise PolicyError(f"expected {', '.join(FORMATS)}, found {chosen!r}", where="source.format")
    return None if chosen == "json" else RegistryCodec(policy)


def forget_schemas(policy: Policy) -> list[Change]:
    """Delete the schemas of a policy's views, if it has some."""
    codec = codec_of(policy)
    return [] if codec is None else [Change("delete", "schema", subject) for subject in codec.forget()]


class RegistryCodec(Codec):
    """Reads source records and writes each role's, in the format of the source."""

    def __init__(self, policy: Policy) -> None:
        described = Source(policy.source, policy.path)
        source, folder = described.said, described.folder
        self._serde = _library()
        self._format = source["format"]
        self._topic = source["topic"]
        self._client = _client(source, folder)
        self._schemas = {role: ViewSchema(policy, role) for role in policy.views}
        self._topics = self._first = dict(layout(policy, 1).views)
        self._messages: dict[str, Any] = {}
        if self._format == "protobuf":
            self._messages = {r: message_of(s, f"shoal.{policy.dataset}") for r, s in self._schemas.items()}
        self._read = self._deserializer(self._source_message(source, folder))
        self._write = {role: self._serializer(role) for role in self._schemas}
        self._decoders: dict[str, Any] = {}

    def register(self, topics: Mapping[str, str] | None = None) -> dict[str, int]:
        """The schema of every view, registered for the topic it is published on; its number by role."""
        if topics is not None:  # of later versions: the cluster was asked
            self._topics = dict(topics)
        out = {}
        for role, topic in self._topics.items():
            try:
                out[role] = int(self._client.register_schema(f"{topic}-value", self._schema(role)))
            except Exception as error:
                raise KafkaError(
                    f"the registry did not take the schema of the view ({type(error).__name__})",
                    where=f"views.{role}",
                    hint="is it running, and is the view's schema compatible with the former one?",
                ) from None
        return out

    def forget(self) -> list[str]:
        """Delete the schemas of all versions of all views; answers their subjects."""
        ours = [re.compile(pattern_of(topic).removesuffix("$") + "-value$") for topic in self._first.values()]
        try:
            gone = sorted(s for s in self._client.get_subjects() if any(one.match(s) for one in ours))
            for subject in gone:
                self._client.delete_subject(subject)
                self._client.delete_subject(subject, permanent=True)  # a registry keeps what was deleted once
        except Exception as error:
            raise KafkaError(
                f"the registry does not answer ({type(error).__name__})",
                where="source",
                hint="the schemas of views are still there: run it again",
            ) from None
        return gone

    def close(self) -> None:
        """Leave the registry."""
        self._client.close()

    def decode(self, value: bytes) -> bytes:
        """See :class:`Codec`."""
        return self._plain(self._read, value, self._topic)

    def encode(self, role: str, record: bytes) -> bytes:
        """See :class:`Codec`."""
        fitted = self._schemas[role].fit(msgspec.json.decode(record))
        if self._format == "protobuf":
            fitted = fill(self._messages[role](), fitted)
        try:
            out: bytes = self._write[role](fitted, self._value_of(self._topics[role]))
        except Exception as error:  # its text may quote a value
            raise KafkaError(f"not written as {self._format} ({type(error).__name__})", where=f"views.{role}") from None
        return out

    def decode_view(self, role: str, value: bytes) -> bytes:
        """A record of a view as JSON: what a role's own consumer does."""
        if role not in self._decoders:
            self._decoders[role] = self._deserializer(self._messages.get(role))
        return self._plain(self._decoders[role], value, self._topics[role])

    def _plain(self, read: Any, value: bytes, topic: str) -> bytes:
        try:
            found = read(value, self._value_of(topic))
        except Exception as error:  # the serializers raise whatever their formats raise; its text may quote a value
            if not is_about_the_record(error):  # a registry that is down says nothing about records
                raise KafkaError(f"the registry does not answer ({type(error).__name__})", where="source") from None
            raise InputError(f"not readable as {self._format} ({type(error).__name__})", where=topic) from None
        return msgspec.json.encode(plain(found) if self._format == "protobuf" else found)

    def _value_of(self, topic: str) -> Any:
        return self._serde.SerializationContext(topic, self._serde.MessageField.VALUE)

    def _schema(self, role: str) -> Any:
        from confluent_kafka.schema_registry import Schema

        if self._format == "avro":
            return Schema(msgspec.json.encode(self._schemas[role].avro()).decode(), "AVRO")
        return self._write[role]._schema

    def _serializer(self, role: str) -> Any:
        if self._format == "avro":
            from confluent_kafka.schema_registry.avro import AvroSerializer

            return AvroSerializer(self._client, self._schema(role))
        from confluent_kafka.schema_registry.protobuf import ProtobufSerializer

        return ProtobufSerializer(self._messages[role], self._client)

    def _deserializer(self, message: Any) -> Any:
        if self._format == "avro":
            from confluent_kafka.schema_registry.avro import AvroDeserializer

            return AvroDeserializer(self._client)
        from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer

        return ProtobufDeserializer(message, {"use.deprecated.format": False}, self._client)

    def _source_message(self, source: Any, folder: Path) -> Any:
        if self._format != "protobuf":
            return None
        if not source.get("descriptor") or not source.get("message"):
            raise PolicyError(
                "a Protobuf source needs its compiled descriptor and the name of its message",
                where="source",
                hint="descriptor: made by protoc --include_imports --descriptor_set_out; message: hospital.Patient",
            )
        return message_from(folder / source["descriptor"], source["message"])


def _client(source: Any, folder: Path) -> Any:
    """A registry by its address, or by a file of the registry client's own properties."""
    from confluent_kafka.schema_registry import SchemaRegistryClient

    named = source.get("registry")
    if not isinstance(named, str):
        raise PolicyError("no schema registry is named", where="source", hint="registry: env:REGISTRY_URL")
    found = looked_up(named, folder) if named.startswith(("env:", "file:")) else named
    if found.startswith(("http://", "https://")):
        return SchemaRegistryClient({"url": found})
    properties = read_properties(folder / found)
    return SchemaRegistryClient({k: looked_up(v, folder) for k, v in properties.items()})


def _library() -> Any:
    try:
        import confluent_kafka.schema_registry  # noqa: F401
        from confluent_kafka import serialization
    except ImportError:
        raise UsageError("the registry client is not installed", hint="pip install 'shoal[registry]'") from None
    return serialization


def is_about_the_record(error: BaseException) -> bool:
    """Whether a record could not be read by its own fault: by a schema nobody registered, not by a silent registry."""
    from confluent_kafka.schema_registry.error import SchemaRegistryError

    causes = [e for e in (error, error.__cause__, error.__context__) if e is not None]
    if any(isinstance(e, OSError) or type(e).__module__.startswith(("httpx", "httpcore")) for e in causes):
        return False
    asked = next((e for e in causes if isinstance(e, SchemaRegistryError)), None)
    return asked is None or asked.http_status_code == 404

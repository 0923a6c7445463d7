"""Records of other formats that do not hold what is declared, and a registry that is down: without either."""

from __future__ import annotations

import io

import fastavro
import msgspec
import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.error import SchemaRegistryError
from hypothesis import given
from hypothesis import strategies as st

from shoal.core.errors import InputError
from shoal.policy.load import parse
from shoal.runtime.kafka.formats.registry import is_about_the_record
from shoal.runtime.kafka.formats.view_schema import ViewSchema

VIEW = ViewSchema(
    parse("""
dataset: d
columns:
  name: {role: identifier, type: str}
  age: {role: quasi, type: int}
  gluc: {role: plain, type: float}
  alive: {role: plain, type: bool}
  note: {role: plain}
  ward.bed: {role: plain, type: int}
  visits[*].day: {role: plain, type: int}
views: {all: {show: everything}}
"""),
    "all",
)
AVRO = fastavro.parse_schema(VIEW.avro())
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.just("F. Ott"),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["bed", "day", "x"]), inner, max_size=2)
    ),
    max_leaves=5,
)


@given(st.dictionaries(st.sampled_from(["name", "age", "gluc", "alive", "note", "ward", "visits"]), anything))
def test_whatever_stands_in_a_record_is_written_or_refused_without_a_value(record):
    said = []
    try:
        fitted = VIEW.fit(record)
    except InputError as error:
        said.append(str(error))
    if said:
        assert "Ott" not in said[0]
        return
    out = io.BytesIO()
    fastavro.schemaless_writer(out, AVRO, fitted)
    again = fastavro.schemaless_reader(io.BytesIO(out.getvalue()), AVRO, None)
    note = record.get("note")
    assert again["note"] == (note if not isinstance(note, dict | list) else msgspec.json.encode(note).decode()) or (
        isinstance(note, int) and again["note"] == str(note)  # too long for any number of Avro
    )


@pytest.mark.parametrize(
    ("error", "own"),
    [
        (SchemaRegistryError(404, 40403, "no such schema"), True),
        (SchemaRegistryError(503, 50301, "not now"), False),
        (SchemaRegistryError(401, 40101, "who are you"), False),
        (TimeoutError(), False),
        (ValueError("F. Ott"), True),
    ],
)
def test_a_registry_that_is_down_makes_no_dead_letters(error, own):
    assert is_about_the_record(error) is own


def test_a_registry_nobody_listens_at_is_down():
    with pytest.raises(Exception) as told:  # noqa: PT011 - whatever the client's own network library raises
        SchemaRegistryClient({"url": "http://127.0.0.1:9", "max.retries": 0}).get_schema(1)
    assert not is_about_the_record(told.value)

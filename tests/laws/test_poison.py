"""No record stops a stream: whatever stands in it, it gets an outcome or is handed back as unreadable."""

from __future__ import annotations

import json
from typing import Any

import polars as pl
from hypothesis import example, given, settings
from hypothesis import strategies as st

from shoal.connect.events import Events
from shoal.core.hierarchy import HIERARCHIES
from shoal.core.keys import KeyRing
from shoal.core.schema import Column, Schema
from shoal.policy.load import parse
from shoal.promises.k_anonymity import KAnonymity
from shoal.promises.l_diversity import LDiversity
from shoal.promises.z_anonymity import ZAnonymity
from shoal.release.stream import LocalRunner, StreamJob
from shoal.runtime.kafka.serve import stateful
from shoal.runtime.kafka.serve.output import Disguise, Record
from shoal.streams import STREAM_METHODS
from shoal.streams.z_stream import z_anonymity

KEY = bytes(range(32))
KEYS = KeyRing({"default": {1: KEY}})
TREE = {"use": "tree", "nodes": {"lungs": ["covid", "asthma"], "blood": ["diabetes"]}}
HIERARCHY: dict[str, dict[str, Any]] = {
    "prefix": {"use": "prefix", "length": 2},
    "tree": TREE,
    "range": {"use": "range", "min": 0, "max": 100},
    "wide range": {"use": "range", "min": 0, "max": 10**18, "bottom": 2.5},
    "path": {"use": "path", "depth": 3},
    "grid": {"use": "grid", "sizes": [1000, 5000]},
    "calendar": {"use": "calendar"},
    "suppress": {"use": "suppress"},
}
METHODS: dict[str, dict[str, Any]] = {
    "z-anonymity": {"use": "z-anonymity"},
    "tuned": {"use": "z-anonymity", "tune": {"goal": {"k": 2, "probability": 0.8}, "every": "10s"}},
    "noise": {"use": "z-anonymity", "noise": {"most": 0.5}, "allow_noise": True},
    **{
        name: {"use": name, "delay": 8, "delay_time": "10s", "reuse": "never"} for name in ("batches", "castle", "fads")
    },
}

odd_numbers = st.sampled_from([0, -1, 7, 1e300, -1e300, 2**60, 2**70, 5e-324, 99, 4_000_000_000, 253_402_300_800])
odd_texts = st.sampled_from(
    [
        "",
        " ",
        "covid",
        "*",
        "\u0000",
        "45.07,7.68",
        "91,181",
        "2024-02-30",
        "2024-01-05",
        "a.b.c",
        "é",
        "x" * 5000,
        "nan",
    ]
)
scalars = st.one_of(st.none(), st.booleans(), odd_numbers, odd_texts, st.integers(0, 100))
nested = st.one_of(scalars, st.lists(scalars, max_size=2), st.dictionaries(st.sampled_from("ab"), scalars, max_size=2))


def schema_of(hierarchy: str, kind: Any = None) -> Schema:
    return Schema(
        {
            "at": Column("time"),
            "who": Column("subject"),
            "value": Column("quasi", type=kind, hierarchy=HIERARCHIES.decode(HIERARCHY[hierarchy])),
            "diag": Column("sensitive"),
        }
    )


rows = st.fixed_dictionaries({"at": nested, "who": nested, "value": nested, "diag": nested})
lines = st.one_of(
    rows.map(lambda row: json.dumps(row).encode()),
    st.sampled_from([b"", b"{", b"[1]", b"null", b'"x"', b"\xff\xfe", b'{"at": 1e999}', b'{"at": "\\ud800"}', b"{}"]),
    st.integers(0, 30).map(lambda i: json.dumps({"at": i, "who": f"p{i % 5}", "value": "covid", "diag": "a"}).encode()),
)


def job(method: str, hierarchy: str) -> StreamJob:
    chosen, delayed = METHODS[method], [KAnonymity(2), LDiversity(2, column="diag")]
    return StreamJob(
        schema=schema_of(hierarchy),
        promises=[ZAnonymity(2, "1h")] if chosen["use"] == "z-anonymity" else delayed,
        method=STREAM_METHODS.decode(chosen),
    )


@given(
    st.sampled_from(list(METHODS)), st.sampled_from(list(HIERARCHY)), st.lists(lines, max_size=12), st.integers(1, 64)
)
@example("z-anonymity", "prefix", [b'{"at": 1, "who": "a", "value": null}'], 64)
@example("z-anonymity", "tree", [b'{"at": 1, "who": "a", "value": 7}'], 64)
@example("z-anonymity", "range", [b'{"at": 1, "who": "a", "value": "x"}'], 64)
@example("z-anonymity", "range", [b'{"at": 1, "who": "a", "value": 101}'], 64)
@example("z-anonymity", "wide range", [b'{"at": 1, "who": "a", "value": 7}'], 64)
@example("z-anonymity", "wide range", [b'{"at": 1, "who": "a", "value": 1152921504606846976}'], 64)
@example("z-anonymity", "range", [b'{"at": 1, "who": "a", "value": 1180591620717411303424}'], 64)
@example("tuned", "range", [b'{"at": 1, "who": "a", "value": "x"}'], 64)  # nothing known, and one that is unknown
@example("batches", "wide range", [b'{"at": 1, "who": "a", "value": 1152921504606846976}'], 64)
@settings(max_examples=60, deadline=None)
def test_the_file_runner_survives_every_line(
    tmp_path_factory: Any, method: str, hierarchy: str, poison: list[bytes], chunk: int
) -> None:
    file = tmp_path_factory.mktemp("poison") / "events.ndjson"
    file.write_bytes(b"\n".join(poison) + b"\n")
    told: list[pl.DataFrame] = []
    chosen = job(method, hierarchy)
    runner = LocalRunner(chosen, KEY, told.append)
    runner.run(Events(str(file), chosen.columns, chunk=chunk))
    counters = runner.method.counters
    assert counters["released"] + counters["withheld"] == runner.first
    again = LocalRunner(chosen, KEY, told.append, snapshot=runner.snapshot())
    again.finish()


@given(st.sampled_from(list(HIERARCHY)), st.lists(st.tuples(nested, nested, nested), max_size=8))
@example("wide range", [(1, "a", 7), (2, "b", 2**60), (3, "c", -(2**60))])
@example("range", [(None, None, 2**70)])  # whole numbers of 128 bits
@settings(max_examples=60, deadline=None)
def test_both_doors_of_a_z_stream_survive_every_value(hierarchy: str, poison: list[tuple[Any, Any, Any]]) -> None:
    chosen = HIERARCHIES.decode(HIERARCHY[hierarchy])
    one, many = (z_anonymity(2, "1h", chosen, key=KEY) for _ in range(2))
    for row in poison:
        one.push(*row)
        many.push_many(*([cell] for cell in row))
    assert one.counters["events"] == many.counters["events"] == len(poison)
    assert one.counters == many.counters


def policy(hierarchy: str) -> Any:
    return parse(f"""
dataset: visits
source: {{use: kafka, topic: visits, brokers: nowhere}}
columns:
  at: {{role: time}}
  who: {{role: subject}}
  value: {{role: quasi, hierarchy: {json.dumps(HIERARCHY[hierarchy])}}}
  diag: {{role: sensitive, type: str}}
  size: {{role: plain, type: float}}
  note: {{role: plain}}
views:
  z-anonymity:
    show: [at, value, note]
    promises: [{{use: z-anonymity, z: 2, window: 1h}}]
    method: {{use: z-anonymity}}
  batches:
    show: [value, diag]
    promises: [{{use: k-anonymity, k: 2}}]
    method: {{use: batches, delay: 8, delay_time: 10s}}
  tuned:
    show: [at, value, note]
    promises: [{{use: z-anonymity, z: 2, window: 1h}}]
    method: {{use: z-anonymity, tune: {{goal: {{k: 2, probability: 0.8}}, every: 10s}}}}
  noise:
    show: [at, who, value]
    masks: {{who: pseudonym}}
    promises: [{{use: z-anonymity, z: 2, window: 1h}}]
    method: {{use: z-anonymity, noise: {{most: 0.5}}, allow_noise: true}}
  castle:
    show: [value, diag]
    promises: [{{use: k-anonymity, k: 2}}]
    method: {{use: castle, delay: 8}}
  fads:
    show: [value, diag]
    promises: [{{use: k-anonymity, k: 2}}]
    method: {{use: fads, delay: 8}}
  window:
    show: [who, size, diag, note]
    masks:
      size: {{use: aggregate, function: mean, k: 2, window: {{use: tumbling, size: 10s}}}}
      who: {{use: pseudonym, rotate: 1h}}
""")


@given(st.sampled_from([*METHODS, "window"]), st.sampled_from(list(HIERARCHY)), st.lists(lines, max_size=12), st.data())
@settings(max_examples=60, deadline=None)
def test_a_kafka_shard_survives_every_record(
    role: str, hierarchy: str, poison: list[bytes], data: st.DataObject
) -> None:
    chosen = policy(hierarchy)
    disguise = Disguise(chosen.views[role], "visits", 1, KEYS)
    view = stateful.start(chosen, role, 0, KEYS, disguise, None)
    records = [Record(0, offset, None, line, 1000 + offset) for offset, line in enumerate(poison)]
    published, dead = 0, 0
    while records:
        size = data.draw(st.integers(1, len(records)))
        out, bad = view.push(records[:size])
        published, dead, records = published + len(out), dead + len(bad), records[size:]
    again = stateful.start(chosen, role, 0, KEYS, disguise, view.snapshot())
    assert again.held == view.held
    assert published + dead + view.withheld + view.held >= len(poison)
    published += len(view.tick(10**16))
    view.tick(2 * 10**16)

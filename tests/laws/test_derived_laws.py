"""A derived column is one column on every road: rows one by one, whole frames, JSON records, streams, Kafka."""

from __future__ import annotations

import datetime
import json

import msgspec
import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.core.derive import DERIVATIONS, Join, PartOf, Position
from shoal.core.errors import PolicyError
from shoal.core.keys import KeyRing
from shoal.core.schema import Column, Schema
from shoal.policy.load import parse
from shoal.release.job import job_of
from shoal.release.wishes import Wishes
from shoal.runtime.kafka.serve import stateful
from shoal.runtime.kafka.serve.output import Disguise, Record
from shoal.views.derived import with_derived
from shoal.views.frames import FrameGate
from shoal.views.records import RecordGate
from shoal.views.role_view import RoleView

KEYS = KeyRing({"default": {1: bytes(range(32))}})
SHOP = """
dataset: shop
source: {use: kafka, topic: shop, brokers: nowhere}
columns:
  time: {role: time, type: int}
  who: {role: subject, type: str}
  category: {role: identifier, type: str}
  product: {role: identifier, type: int}
  lat: {role: identifier, type: float}
  lon: {role: identifier, type: float}
  day: {role: identifier, type: date}
  bought: {role: quasi, derive: {use: join, of: [category, product]}, hierarchy: {use: path, depth: 3}}
  place: {role: quasi, derive: {use: position, of: [lat, lon]}, hierarchy: {use: grid, sizes: [1000, 10000, 100000]}}
  month: {role: quasi, derive: {use: part, of: day, part: month}, hierarchy: {use: range, min: 1, max: 12}}
  hour: {role: plain, derive: {use: part, of: time, part: hour}}
views:
  all: {show: [bought, place, month, hour], hidden: drop}
  clear: {show: [who, category, bought]}
  blurred: {show: [month, place], masks: {place: {use: blur, first: 2}}, hidden: "null"}
  table:
    show: [place, month]
    promises: [{use: k-anonymity, k: 3}]
    hidden: drop
  market:
    show: [time, who, bought]
    masks: {who: pseudonym}
    hidden: drop
    promises: [{use: z-anonymity, z: 3, window: 1h}]
    method: z-anonymity
  later:
    show: [place, month]
    hidden: drop
    promises: [{use: k-anonymity, k: 3}]
    method: {use: batches, delay: 50}
"""
POLICY = parse(SHOP)


def shop(rows: int = 600) -> pl.DataFrame:
    rng = np.random.default_rng(3)
    return pl.DataFrame(
        {
            "time": 1_600_000_000 + np.arange(rows),
            "who": [f"u{i}" for i in rng.integers(0, 60, rows)],
            "category": rng.choice(["toys.ball", "toys.doll", "books"], rows),
            "product": rng.integers(1, 6, rows),
            "lat": np.round(40 + rng.normal(0, 0.05, rows), 4),
            "lon": np.round(-74 + rng.normal(0, 0.05, rows), 4),
            "day": [datetime.date(2020, 1 + int(m), 3) for m in rng.integers(0, 12, rows)],
        }
    )


TEXT = st.text("ab.1 é", max_size=4)
NUMBER = st.one_of(
    st.floats(-200, 200), st.integers(-200, 200), st.sampled_from(["7", " 40.5", "x", "", "1e1", "nan", "٣", "4_0"])
)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.none() | TEXT, st.none() | st.integers(-5, 5) | st.just(10**14)), max_size=8))
def test_joining_rows_and_columns_is_the_same(rows):
    one = Join(("a", "b"), ":").one({})
    made = Join(("a", "b"), ":").many(
        {}, pl.Series([a for a, _ in rows], dtype=pl.String), pl.Series([b for _, b in rows], dtype=pl.Int64)
    )
    assert made.to_list() == [None if None in row else one(*row) for row in rows]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(NUMBER, NUMBER), min_size=1, max_size=8), st.booleans())
def test_positions_of_rows_and_columns_are_the_same(rows, as_text):
    kind = (lambda v: str(v)) if as_text else (lambda v: float(v) if isinstance(v, (int, float)) else float("nan"))
    pairs = [(kind(a), kind(b)) for a, b in rows]
    one = Position(("a", "b")).one({})
    made = Position(("a", "b")).many({}, *(pl.Series([p[at] for p in pairs]) for at in (0, 1)))
    assert made.to_list() == [one(*pair) for pair in pairs]


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.datetimes(datetime.datetime(1900, 1, 1), datetime.datetime(2100, 1, 1)), min_size=1, max_size=6),
    st.sampled_from(["year", "quarter", "month", "week", "weekday", "day", "hour", "minute"]),
)
def test_parts_of_rows_and_columns_are_the_same(moments, part):
    columns = {"at": Column("plain", type="datetime")}
    derive = PartOf("at", part)
    one = derive.one(columns)
    assert derive.many(columns, pl.Series(moments, dtype=pl.Datetime("us"))).to_list() == [one(m) for m in moments]
    if part not in ("hour", "minute"):
        days = [m.date() for m in moments]
        assert derive.many({"at": Column("plain", type="date")}, pl.Series(days)).to_list() == [one(d) for d in days]


@settings(max_examples=50, deadline=None)
@given(st.lists(st.sampled_from([0, 1.5, 10**9, -5, "2020-02-03T04:05:06", "nonsense", None]), min_size=1, max_size=5))
def test_parts_of_an_event_time_are_read_by_its_unit(values):
    columns = {"at": Column("time", unit="s")}
    derive = PartOf("at", "hour")
    one = derive.one(columns)
    texts = pl.Series([None if v is None else str(v) for v in values], dtype=pl.String)
    assert derive.many(columns, texts).to_list() == [None if t is None else one(t) for t in texts]


def test_records_and_frames_derive_alike():
    frame = shop(40).with_columns(
        pl.when(pl.col("product") > 2).then("lat"), category=pl.when(pl.col("lon") < -74).then("category")
    )
    views = [RoleView.of(POLICY, role) for role in ("all", "clear", "blurred")]
    records = [msgspec.json.encode(row) for row in frame.to_dicts()]
    by_record = RecordGate(views, KEYS).many(records)
    assert not by_record.refused
    for view, written in zip(views, by_record.views, strict=True):
        data = FrameGate(view, frame.schema, KEYS).apply(frame).data
        assert [json.loads(w) for w in written] == json.loads(data.write_json())


def test_what_the_data_call_so_is_not_read():
    frame = shop(5).with_columns(bought=pl.lit("smuggled"))
    view = RoleView.of(POLICY, "all")
    assert "smuggled" not in FrameGate(view, frame.schema, KEYS).apply(frame).data["bought"].to_list()
    record = msgspec.json.encode({**frame.to_dicts()[0]})
    assert b"smuggled" not in RecordGate([view], KEYS)(record)[0]


def _release(role: str, frame: pl.DataFrame):
    return job_of(Wishes({"policy": POLICY, "view": role, "seed": 1, "keys": KEYS})).run(frame)


def test_tables_and_streams_are_released_by_derived_columns():
    frame = shop()
    table = _release("table", frame)
    assert table.report.verified
    assert table.data.columns == ["place", "month"]
    assert not table.warnings
    market = _release("market", frame)
    assert market.report.verified
    assert market.data["bought"].str.contains(r"^(toys|books)").all()
    later = _release("later", frame)
    assert later.report.verified
    assert later.data.height > 300


def test_kafka_derives_as_a_file_does():
    frame = shop(200)
    for role in ("market", "later"):
        runner = stateful.MethodRunner(POLICY, role, 0, KEYS, Disguise(POLICY.views[role], "shop", 2, KEYS), None)
        records = [Record(0, at, None, msgspec.json.encode(row), 0) for at, row in enumerate(frame.to_dicts())]
        sent, refused = runner.push(records)
        assert not refused
        assert sent
        shown = {tuple(json.loads(out.value)) for out in sent}
        assert shown == {("time", "who", "bought") if role == "market" else ("place", "month")}


def test_a_source_in_clear_beside_its_generalization_is_refused():
    shown = SHOP.replace("show: [place, month]\n    promises", "show: [place, month, lat]\n    promises", 1)
    plain = parse(shown.replace("lat: {role: identifier", "lat: {role: plain"))
    with pytest.raises(PolicyError, match="'lat' is shown in clear"):
        job_of(Wishes({"policy": plain, "view": "table", "keys": KEYS})).run(shop(50))


@pytest.mark.parametrize(
    ("was", "becomes", "says"),
    [
        ("of: [category, product]", "of: [category, prodct]", "not declared"),
        ("of: [category, product]", "of: [category, month]", "cannot be read here"),
        ("of: [category, product]", "of: [category]", "at least two"),
        ("of: [lat, lon]", "of: [lat]", "of length 2"),
        ("of: day, part: month", "of: category, part: month", "not declared as a date"),
        ("of: day, part: month", "of: day, part: hour", "a date has no hour"),
        ("of: day, part: month", "of: day, part: moon", "part"),
        ("bought: {role: quasi,", "bought: {role: quasi, type: int,", "is of type str"),
        ("bought: {role: quasi,", "bought: {role: time,", "quasi, sensitive"),
        ("{use: join, of", "{use: glue, of", "there is no derive called"),
    ],
)
def test_mistakes_are_told_with_their_place(was, becomes, says):
    assert was in SHOP
    with pytest.raises(PolicyError, match=says) as caught:
        parse(SHOP.replace(was, becomes, 1))
    assert "line" in str(caught.value)


def test_every_derivation_is_listed_and_names_what_it_reads():
    assert DERIVATIONS.names() == ["join", "part", "position"]
    schema = Schema({"a": Column("plain"), "b": Column("quasi", derive=Join(("a", "a")))})
    assert with_derived(pl.DataFrame({"a": ["x"]}), schema)["b"].to_list() == ["x.x"]
    assert with_derived(pl.DataFrame({"c": ["x"]}), schema).columns == ["c"]

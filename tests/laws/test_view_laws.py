"""A view on JSON records and on columns is one view; an allow-list lets nothing else through; errors quote nobody."""

from __future__ import annotations

import datetime
import json
from pathlib import Path

import msgspec
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.core.errors import InputError, PolicyError
from shoal.core.hierarchy.prefix import Prefix
from shoal.core.schema import Column, Schema
from shoal.masks import MASKS
from shoal.masks.chain import Chain
from shoal.policy.paths import matching, steps, tree
from shoal.testing.masks import fixed_ring
from shoal.views.frames import FrameGate
from shoal.views.records import RecordGate
from shoal.views.role_view import RoleView
from shoal.views.stream_frames import frame_of, plain, told_in_utc
from shoal.views.types import record_type

KEYS = fixed_ring()
SCHEMA = Schema(
    {
        "pid": Column("subject", type="int"),
        "name": Column("identifier", type="str"),
        "zip": Column("quasi", type="str", hierarchy=Prefix(5)),
        "age": Column("quasi", type="int"),
        "born": Column("quasi", type="date"),
        "weight": Column("plain", type="float"),
        "ins.co": Column("quasi", type="str"),
        "ins.no": Column("identifier", type="str"),
        "ins.card.code": Column("plain", type="int"),
        "visits[*].ward": Column("plain", type="str"),
        "visits[*].cost": Column("plain", type="float"),
        "tags[*]": Column("plain", type="str"),
        "time": Column("time", type="int"),
        "seen": Column("plain", type="datetime"),
        "alive": Column("plain", type="bool"),
        "stays[*].until": Column("plain", type="datetime"),
    }
)
TEXT = [
    {"use": "blur", "first": 1, "length": 3},
    {"use": "blur", "last": 2},
    {"use": "pseudonym"},
    {"use": "pseudonym", "rotate": "24h"},
    {"use": "tokenize"},
    {"use": "substitute", "choose": "names"},
    {"use": "suppress"},
    {"use": "suppress", "to": "null"},
    {"use": "substitute", "value": "x", "nulls": True},
    {"use": "generalize", "level": 2, "hierarchy": {"use": "prefix", "length": 4}},
    {"use": "conditional", "when": {"column": "age", "between": [0, 18]}, "then": "minor"},
    {"use": "conditional", "when": {"matches": "^[A-M]"}, "mask": {"use": "pseudonym", "rotate": "1h"}},
]
NUMBER = [
    {"use": "bucket", "width": 10},
    {"use": "bucket", "edges": [0, 18, 65]},
    {"use": "noise", "spread": 3},
    {"use": "suppress", "to": "zero"},
    {"use": "blur"},
    {"use": "conditional", "when": {"not": {"column": "name", "equals": "F. Ott"}}, "then": 0},
    {"use": "conditional", "when": {"column": "ins.co", "equals": "TK"}, "then": "*"},
]
CHOICES = {
    "str": [MASKS.decode(m) for m in TEXT] + [Chain((MASKS.decode(TEXT[0]), MASKS.decode(TEXT[2])))],
    "int": [MASKS.decode(m) for m in NUMBER],
    "float": [MASKS.decode(m) for m in NUMBER],
    "date": [MASKS.decode(m) for m in ({"use": "date-shift", "days": 9}, {"use": "pseudonym"}, {"use": "blur"})],
    "datetime": [MASKS.decode(m) for m in ({"use": "date-shift", "days": 9}, {"use": "pseudonym"}, {"use": "blur"})],
    "bool": [MASKS.decode(m) for m in ("suppress", "pseudonym", {"use": "suppress", "to": "zero"}, "tokenize")],
}
words = st.text(max_size=6) | st.sampled_from(["F. Ott", "TK", "10115", "a@b.org"])
card = st.none() | st.fixed_dictionaries({"code": st.integers(0, 99)})
insurance = st.fixed_dictionaries({}, optional={"co": st.none() | words, "no": words, "card": card})
visit = st.none() | st.fixed_dictionaries({}, optional={"ward": words, "cost": st.none() | st.floats(-1e6, 1e6)})
zones = st.sampled_from([None, datetime.UTC, datetime.timezone(datetime.timedelta(hours=2))])
spans = (datetime.datetime(1900, 1, 1), datetime.datetime(2100, 1, 1))
moments = st.datetimes(*spans, timezones=zones).map(lambda d: d.isoformat())
records = st.fixed_dictionaries(
    {"pid": st.integers(1, 5), "undeclared": words},
    optional={
        "name": st.none() | words,
        "zip": words,
        "age": st.none() | st.integers(-5, 130),
        "born": st.none() | st.dates(datetime.date(1900, 1, 1), datetime.date(2100, 1, 1)).map(str),
        "weight": st.none() | st.floats(-1e6, 1e6) | st.integers(0, 300),
        "ins": st.none() | insurance,
        "visits": st.none() | st.lists(visit, max_size=3),
        "tags": st.lists(st.none() | words, max_size=3),
        "time": st.integers(0, 10**6),
        "seen": st.none() | moments,
        "alive": st.none() | st.booleans(),
        "stays": st.none() | st.lists(st.none() | st.fixed_dictionaries({}, optional={"until": moments}), max_size=2),
    },
)


@st.composite
def views(draw, role="nurse"):
    show = draw(st.lists(st.sampled_from(list(SCHEMA.columns)), min_size=1, unique=True))
    masks = {}
    for column in show:
        if draw(st.booleans()):
            masks[column] = draw(st.sampled_from(CHOICES[SCHEMA[column].type]))
    return RoleView.resolve(role, SCHEMA, show, masks, hidden=draw(st.sampled_from(["star", "null", "drop"])))


def as_json(value):
    return json.loads(msgspec.json.encode(value))


@settings(max_examples=150)
@given(st.tuples(views("nurse"), views("doctor")), st.lists(records, min_size=1, max_size=5))
def test_records_and_columns_agree(pair, rows):
    raw = [json.dumps(row).encode() for row in rows]
    decode = msgspec.json.Decoder(record_type(tree(SCHEMA.columns), SCHEMA)).decode
    frame = frame_of([told_in_utc(plain(decode(r))) for r in raw], SCHEMA)
    made = RecordGate(pair, KEYS).many(raw)
    assert not made.refused
    for view, out in zip(pair, made.views, strict=True):
        viewed = FrameGate(view, frame.schema, KEYS).apply(frame)
        assert [json.loads(r) for r in out] == [as_json(row) for row in viewed.data.to_dicts()]
        assert viewed.subjects.to_list() == [str(row["pid"]) for row in rows]


def leaves(value, path=""):
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from leaves(inner, f"{path}.{name}" if path else name)
    elif isinstance(value, list):
        for inner in value:
            yield from leaves(inner, f"{path}[*]")
    else:
        yield path, value


@given(views(), records)
def test_nothing_leaves_that_is_not_shown(view, row):
    marked = json.loads(json.dumps(row))
    (out,) = RecordGate([view], KEYS)(json.dumps(marked).encode())
    seen = dict(leaves(json.loads(out)))
    assert "undeclared" not in seen
    allowed = {*view.shown, *view.masks}
    for path, value in seen.items():
        above = any(column.startswith(path) for column in allowed)
        assert path in allowed or value in (None, "*") or above
    if view.hidden == "drop":
        assert not set(seen) & set(view.hides)


@given(views(), records)
def test_output_types_are_known_before_running(view, row):
    (out,) = RecordGate([view], KEYS)(json.dumps(row).encode())
    python = {"int": int, "float": (int, float), "str": str, "bool": bool, "date": str, "datetime": str}
    kinds = view.outputs()
    for path, value in leaves(json.loads(out)):
        if value is not None and path in kinds and not (value == "*" and path in view.hides):
            assert isinstance(value, python[kinds[path]])


JUNK = [b'{"age": "Zoe"}', b'{"pid": [1]}', b"[]", b"null", b'"Zoe"']


@given(views(), st.binary(max_size=60) | st.sampled_from(JUNK))
def test_a_bad_record_is_refused_and_nobody_is_quoted(view, junk):
    made = RecordGate([view], KEYS).many([junk, b'{"pid": 1}'])
    assert len(made.views[0]) + len(made.refused) == 2
    for position, reason in made.refused:
        assert position == 0
        assert "Zoe" not in reason


def test_the_spelling_of_a_value_is_not_handed_on():
    """Odd spelling of a number or a text would tie two roles' views of one record together."""
    view = RoleView.resolve("a", SCHEMA, ["weight", "ins"], {})
    (out,) = RecordGate([view], KEYS)(b'{"weight": 1.10e0, "ins": {"co": "T\\u004b"}}')
    assert b'"weight":1.1,' in out
    assert b'"TK"' in out


def test_a_path_that_matches_nothing_is_an_error():
    blur = MASKS.decode("blur")
    wrong = [(["nmae"], {}), (["name"], {"nam": blur}), (["ins.nothing"], {}), (["visits"], {"visits.ward": blur})]
    for show, masks in wrong:
        with pytest.raises(PolicyError, match="no column") as caught:
            RoleView.resolve("nurse", SCHEMA, show, masks)
        assert caught.value.hint
        assert "views.nurse" in caught.value.where


def test_a_masked_column_must_be_shown():
    with pytest.raises(PolicyError, match="masked but not shown"):
        RoleView.resolve("nurse", SCHEMA, ["age"], {"name": MASKS.decode("blur")})


@pytest.mark.parametrize("columns", [["a", "a.b"], ["a[*]", "a.b"], ["a[*].b", "a[*]"], ["a..b"], ["a[0].b"], [""]])
def test_paths_that_contradict_each_other(columns):
    with pytest.raises(PolicyError):
        tree(columns)


def test_steps_and_groups():
    assert steps("a[*][*].b") == ["a", "[*]", "[*]", "b"]
    assert matching("ins", SCHEMA.columns) == ["ins.co", "ins.no", "ins.card.code"]


def test_data_without_a_shown_column_is_refused():
    view = RoleView.resolve("nurse", SCHEMA, ["age"], {})
    with pytest.raises(PolicyError, match=r"no column .age."):
        FrameGate(view, pl.DataFrame({"pid": [1]}).schema, KEYS)


def test_a_column_of_another_type_is_refused_without_a_value():
    schema = Schema({"age": Column("quasi", type="int")})
    frame = pl.DataFrame({"age": ["28", "Zoe"]})
    with pytest.raises(InputError) as caught:
        FrameGate(RoleView.resolve("a", schema, ["age"]), frame.schema, KEYS).apply(frame)
    assert "Zoe" not in str(caught.value)


def test_the_same_vault_serves_records_and_columns(tmp_path):
    view = RoleView.resolve(
        "a",
        SCHEMA,
        ["name"],
        {"name": MASKS.decode({"use": "tokenize", "form": "vault", "vault": "v.db"})},
        folder=Path(tmp_path),
    )
    (out,) = RecordGate([view], KEYS)(b'{"pid": 1, "name": "F. Ott"}')
    frame = pl.DataFrame({"pid": [2, 1], "name": ["F. Ott", "L. Lieb"]})
    made = FrameGate(view, frame.schema, KEYS).apply(frame).data["name"].to_list()
    assert json.loads(out)["name"] == made[0] != made[1]

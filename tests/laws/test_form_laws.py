"""A declared form (`format:`) means the same in files, in frames, in JSON records and on Kafka, also inside objects."""

from __future__ import annotations

import datetime
import json

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shoal
from shoal.connect.types import declared, fitted
from shoal.core.errors import InputError
from shoal.core.schema import Column, Schema
from shoal.masks.aggregate import Aggregate
from shoal.masks.windows import Tumbling
from shoal.policy.load import parse
from shoal.runtime.kafka.formats.record_frames import RecordFrames
from shoal.testing.masks import fixed_ring
from shoal.views.frames import FrameGate
from shoal.views.records import RecordGate
from shoal.views.role_view import RoleView
from shoal.views.windows import WindowGate

KEYS = fixed_ring("secret")
FORMS = [
    "date:%d.%m.%Y", "date:%m/%d/%Y", "date:%Y%m%d", "datetime:%d.%m.%Y %H:%M", "datetime:s", "datetime:ms",
    "datetime:us", "float:,", "int:,",
]  # fmt: skip
dates = st.dates(datetime.date(1900, 1, 1), datetime.date(2100, 1, 1))
texts = (
    dates.map(lambda d: d.strftime("%d.%m.%Y"))
    | dates.map(lambda d: d.strftime("%m/%d/%Y"))
    | dates.map(lambda d: d.strftime("%d.%m.%Y 07:30"))
    | dates.map(str)
    | st.integers(-(10**15), 10**15).map(str)
    | st.sampled_from(["1.234,5", "1,5", "7", "", "unknown", "Meier", "31.02.2020", "2020-01-01T00:00:00Z"])
)


def schema_of(form: str, name: str) -> Schema:
    kind = declared(form)
    return Schema({"pid": Column("subject", "str"), name: Column("plain", kind.type, kind.format)})


def said(value):
    """As JSON has it."""
    return value.isoformat() if isinstance(value, datetime.date) else value


@settings(max_examples=250, deadline=None)
@given(st.sampled_from(FORMS), texts, st.booleans())
def test_records_and_columns_mean_the_same_by_a_form(form, text, inside):
    name = "a.b" if inside else "a"
    schema = schema_of(form, name)
    view = RoleView.resolve("r", schema, ["pid", name])
    meant = fitted(pl.Series([text]), declared(form)).to_list()[0]
    record = {"pid": "p", "a": {"b": text} if inside else text}
    raw = json.dumps(record).encode()
    made = RecordGate([view], KEYS).many([raw])
    frame = pl.DataFrame([record])
    frames, refused = RecordFrames(view, KEYS).read([raw])
    assert (meant is None) == bool(made.refused) == bool(refused)
    if meant is None:
        assert not text or text not in made.refused[0][1]
        with pytest.raises(InputError) as error:
            FrameGate(view, frame.schema, KEYS).apply(frame)
        assert not text or f"'{text}'" not in str(error.value)
        return
    out = json.loads(made.views[0][0])["a"]
    assert (out["b"] if inside else out) == said(meant)
    assert frames[name].to_list() == [meant]
    seen = FrameGate(view, frame.schema, KEYS).apply(frame).data["a"].to_list()[0]
    assert (seen["b"] if inside else seen) == meant


@pytest.mark.parametrize("number", [0, 7, -3, 1577836800123, 10**18])
@pytest.mark.parametrize("form", ["datetime:s", "datetime:ms", "datetime:us", "datetime:ns"])
def test_moments_as_numbers_are_what_they_are_as_texts(form, number):
    view = RoleView.resolve("r", schema_of(form, "a"), ["pid", "a"])
    made = RecordGate([view], KEYS).many([json.dumps({"pid": "p", "a": v}).encode() for v in (number, str(number))])
    assert len(made.refused) in (0, 2)
    assert len(set(made.views[0])) <= 1


@pytest.mark.parametrize("value", [True, [], {}, ["31.12.2020"], {"d": "31.12.2020"}, 20201231])
def test_what_is_no_text_of_the_form_is_refused(value):
    view = RoleView.resolve("r", schema_of("date:%d.%m.%Y", "a"), ["a"])
    assert RecordGate([view], KEYS).many([json.dumps({"a": value}).encode()]).refused


def test_windows_and_masks_read_the_form_too():
    schema = Schema(
        {
            "pid": Column("subject"),
            "at": Column("time", "datetime", "%d.%m.%Y %H:%M"),
            "price": Column("sensitive", "float", ","),
        }
    )
    mean = Aggregate(function="mean", window=Tumbling(size="1h"), k=2)
    gate = WindowGate(RoleView.resolve("lab", schema, ["at", "price"], {"price": mean}), KEYS)
    records = [{"pid": p, "at": f"31.12.2020 0{h}:15", "price": f"1,{p}"} for h in (1, 3) for p in (2, 4)]
    out = [o for r in records for o in gate.push(json.dumps(r).encode())]
    done = [json.loads(o.record) for o in [*out, *gate.flush()] if o.record is not None]
    assert [r["price"] for r in done] == pytest.approx([1.3] * 4)


def test_a_frame_in_python_has_its_days_and_months_as_declared():
    policy = parse(
        "columns: {d: {role: plain, type: date, format: '%m/%d/%Y'}}\nviews: {w: {show: [d]}}",
    )
    seen = shoal.view(pl.DataFrame({"d": ["03/04/2020"]}), policy, "w").data["d"].to_list()
    assert seen == [datetime.date(2020, 3, 4)]

"""The one gate: every value a role sees is of its declared type, on records and on columns, or it does not leave."""

from __future__ import annotations

import datetime
import io
import json

import msgspec
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.connect.events import Events
from shoal.core.errors import InputError, ShoalError
from shoal.core.schema import Column, Schema
from shoal.masks import MASKS
from shoal.runtime.kafka.formats.record_frames import RecordFrames
from shoal.testing.masks import fixed_ring
from shoal.views.fitting import FROM, admit, fit
from shoal.views.frames import FrameGate
from shoal.views.records import RecordGate
from shoal.views.role_view import RoleView
from shoal.views.windows import WindowGate

KEYS = fixed_ring("secret")
MARK = "Zoe-4711"
TYPES = ["int", "float", "str", "bool", "date", "datetime", None]
NESTED = [{"name": MARK}, [MARK], [], {}, [{"a": [MARK]}], {"age": 5, "name": MARK}]
nested = st.sampled_from(NESTED)
scalars = (
    st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.booleans()
    | st.text(max_size=5)
    | st.dates(datetime.date(1900, 1, 1)).map(str)
    | st.datetimes(datetime.datetime(1900, 1, 1), timezones=st.sampled_from([datetime.UTC, None])).map(
        lambda d: d.isoformat()
    )
    | st.sampled_from(["true", "7", "0.5", "2020-01-01T00:00:00+02:00", MARK])
)


def fits(value, kind):
    """The slow twin: is a JSON value of a declared type?"""
    if value is None:
        return True
    if kind is None:
        return isinstance(value, str | int | float)
    if kind == "int":
        return isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63
    if kind == "float":
        return isinstance(value, int | float) and not isinstance(value, bool)
    if kind in ("str", "bool"):
        return isinstance(value, {"str": str, "bool": bool}[kind])
    try:
        msgspec.convert(value, datetime.date if kind == "date" else datetime.datetime)
        return isinstance(value, str)
    except msgspec.ValidationError:
        return False


@settings(max_examples=400)
@given(st.sampled_from(TYPES), st.none() | scalars | nested, st.booleans())
def test_a_clear_value_is_of_its_declared_type_or_its_record_is_refused(kind, value, inside):
    name = "a.b" if inside else "a"
    schema = Schema({"pid": Column("subject"), name: Column("plain", type=kind)})
    record = {"pid": 1, "a": {"b": value} if inside else value}
    made = RecordGate([RoleView.resolve("r", schema, [name])], KEYS).many([json.dumps(record).encode()])
    assert (not made.refused) == fits(value, kind)
    if made.refused:
        assert MARK not in made.refused[0][1]
        return
    out = json.loads(made.views[0][0])["a"]
    out = out["b"] if inside else out
    if kind == "datetime" and value is not None:
        moment = datetime.datetime.fromisoformat(value)
        if moment.tzinfo is not None:
            moment = moment.astimezone(datetime.UTC).replace(tzinfo=None)
        assert datetime.datetime.fromisoformat(out) == moment
    elif kind == "float" and value is not None:
        assert out == float(value)  # declared so: a double, also where a whole number has more digits than it holds
    else:
        assert out == value


@settings(max_examples=200)
@given(st.sampled_from(TYPES), st.none() | scalars | nested)
def test_a_promise_view_and_a_windowed_view_refuse_the_same_records(kind, value):
    schema = Schema({"pid": Column("subject"), "a": Column("plain", type=kind), "n": Column("plain", type="int")})
    record = json.dumps({"pid": 1, "a": value, "n": 3}).encode()
    frames = RecordFrames(RoleView.resolve("r", schema, ["a"]), KEYS)
    frame, refused = frames.read([record])
    assert (not refused) == fits(value, kind)
    if not refused:
        (written,) = frames.write(frame)
        kept = json.loads(written)["a"]
        # declared a float: a double, also where a whole number has more digits than it holds
        given_ = float(value) if kind == "float" and value is not None else value
        assert kept == given_ or kind in ("date", "datetime")
    mask = MASKS.decode({"use": "aggregate", "function": "mean", "k": 2, "window": {"use": "tumbling", "size": 1}})
    window = WindowGate(RoleView.resolve("r", schema, ["a", "n"], {"n": mask}), KEYS)
    outcomes = [*window.push(record), *window.flush()]
    assert (outcomes[0].reason != "unreadable") == fits(value, kind)
    assert all(o.record is None or MARK.encode() not in o.record or value == MARK for o in outcomes)


COLUMNS = [
    pl.Series("a", [{"name": MARK}]),
    pl.Series("a", [[MARK]]),
    pl.Series("a", [[{"name": MARK}]]),
    pl.Series("a", [MARK.encode()]),
    pl.Series("a", [object()], dtype=pl.Object),
]


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("column", COLUMNS, ids=lambda c: str(c.dtype))
def test_a_column_of_more_than_single_values_is_refused_whatever_it_is_declared(kind, column):
    schema = Schema({"a": Column("plain", type=kind)})
    frame = column.to_frame()
    with pytest.raises(InputError) as caught:
        FrameGate(RoleView.resolve("r", schema, ["a"]), frame.schema, KEYS).apply(frame)
    assert MARK not in str(caught.value)
    assert "columns.a" in caught.value.where


def test_the_names_of_undeclared_fields_are_not_quoted_either():
    frame = pl.DataFrame({"a": [{MARK: 1}]})
    schema = Schema({"a": Column("plain")})
    with pytest.raises(ShoalError) as caught:
        FrameGate(RoleView.resolve("r", schema, ["a"]), frame.schema, KEYS)
    assert MARK not in str(caught.value) + str(caught.value.hint)


PYTHON = {"int": int, "float": float, "str": str, "bool": bool, "date": datetime.date, "datetime": datetime.datetime}


@settings(max_examples=200)
@given(
    st.sampled_from([k for k in TYPES if k]),
    st.sampled_from([k for k in TYPES if k]),
    st.lists(st.none() | scalars.filter(lambda v: not isinstance(v, int) or abs(v) < 2**60), min_size=1, max_size=5),
)
def test_a_column_that_leaves_is_of_its_declared_type(kind, stored, values):
    convert = {
        "int": lambda v: v if type(v) is int else 3,
        "float": lambda v: v if type(v) is float else 2.5,
        "str": str,
        "bool": bool,
        "date": lambda v: datetime.date(2020, 1, 2),
        "datetime": lambda v: datetime.datetime(2020, 1, 2, 3),
    }[stored]
    column = pl.Series("a", [None if v is None else convert(v) for v in values])
    if column.dtype == pl.Null:
        return
    schema = Schema({"a": Column("plain", type=kind)})
    view = RoleView.resolve("r", schema, ["a"])
    try:
        out = FrameGate(view, column.to_frame().schema, KEYS).apply(column.to_frame()).data["a"]
    except InputError:
        assert stored not in FROM[kind] or fit(column, kind).null_count() > column.null_count()
        return
    assert stored in FROM[kind]
    assert out.null_count() == column.null_count()
    assert all(isinstance(v, PYTHON[kind]) for v in out.drop_nulls().to_list())
    fitted = FrameGate(view, column.to_frame().schema, KEYS)
    again = fitted.fit(column.to_frame(), null_rows=True)["a"]
    assert again.equals(out, null_equal=True)


def test_a_whole_number_is_not_cut_out_of_a_fraction():
    frame = pl.DataFrame({"a": [2.0, 2.5]})
    view = FrameGate(RoleView.resolve("r", Schema({"a": Column("plain", type="int")}), ["a"]), frame.schema, KEYS)
    with pytest.raises(InputError, match="1 values are not of type int"):
        view.apply(frame)


@pytest.mark.parametrize("dtype", [pl.Enum([MARK, "E10"]), pl.Categorical()])
def test_categories_that_only_withheld_rows_have_do_not_leave(dtype):
    frame = pl.DataFrame({"a": pl.Series([MARK, "E10"], dtype=dtype)})[1:]
    schema = Schema({"a": Column("plain")})
    out = FrameGate(RoleView.resolve("r", schema, ["a"]), frame.schema, KEYS).apply(frame).data
    file = io.BytesIO()
    out.write_parquet(file)
    assert out["a"].dtype == pl.String
    assert MARK.encode() not in file.getvalue()


@settings(max_examples=100)
@given(
    st.lists(
        st.none() | st.text(max_size=4) | st.sampled_from(["[20, 29]", "{x", "[["]) | nested, min_size=1, max_size=6
    )
)
def test_a_line_with_parts_where_a_value_is_expected_is_a_line_that_cannot_be_read(tmp_path_factory, values):
    path = tmp_path_factory.mktemp("events") / "in.ndjson"
    path.write_text("".join(json.dumps({"n": 1, "a": v}) + "\n" for v in values))
    events = Events(str(path), ["n", "a"])
    rows = [row for frame in events for row in frame.rows()]
    assert rows == [(None, None) if isinstance(v, list | dict) else (1, v) for v in values]
    assert events.bad == sum(isinstance(v, list | dict) for v in values)


def test_admit_takes_an_empty_column_for_any_type():
    for kind in TYPES:
        admit("a", kind, pl.Null())

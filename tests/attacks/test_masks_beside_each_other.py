"""What one window or one second tells about others: shuffle, date shift, noise; and what is said of masks."""

from __future__ import annotations

import datetime

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.core.errors import UsageError
from shoal.core.schema import Column, Schema
from shoal.masks import MASKS
from shoal.masks.base import Context
from shoal.masks.noise import reflected
from shoal.testing.masks import fixed_ring
from shoal.views.frames import FrameGate
from shoal.views.role_view import RoleView

KEYS = fixed_ring()


def started(spec, kind, **more):
    return MASKS.decode(spec).start(Context(type=kind, keys=KEYS, subject="pid", **more))


def order(mask, values, number=0):
    people = pl.Series([f"p{i}" for i in range(len(values))])
    return [values.index(v) for v in mask.apply(pl.Series(values), people, number).to_list()]


def test_a_known_window_undoes_no_other():
    """The order of January's file, learned by someone who knows January, must not sort February's."""
    mask = started("shuffle", "int")
    january, february = list(range(1000)), list(range(5000, 6000))
    learned = order(mask, january)
    assert learned == order(mask, january)
    right = sum(a == b for a, b in zip(learned, order(mask, february), strict=True))
    assert right < 20  # one in the mean, as for two independent orders
    assert sum(a == b for a, b in zip(learned, order(mask, january, 1), strict=True)) < 20


moments = st.datetimes(datetime.datetime(1950, 1, 1), datetime.datetime(2050, 1, 1))


@given(st.integers(0, 50), moments)
def test_a_shifted_moment_keeps_days_and_no_time_of_day(person, moment):
    mask = started({"use": "date-shift", "days": 30}, "datetime")
    kept = started({"use": "date-shift", "days": 30, "time": "keep"}, "datetime")
    moved = mask.one(moment, person)
    assert moved == mask.one(moment, person)
    assert moved.microsecond == 0
    assert moved.date() == kept.one(moment, person).date()
    assert kept.one(moment, person).time() == moment.time()
    text = started({"use": "date-shift", "days": 30}, "str").one(moment.isoformat(), person)
    assert datetime.datetime.fromisoformat(text).date() == moved.date()


def test_the_second_of_an_event_no_longer_finds_it():
    mask = started({"use": "date-shift", "days": 30}, "datetime")
    events = [datetime.datetime(2024, 1, 1) + datetime.timedelta(seconds=86_400 * i // 500 * 7) for i in range(500)]
    same = sum(mask.one(e, i).time() == e.time() for i, e in enumerate(events))
    assert same <= 3


@given(st.floats(-1e6, 1e6), st.floats(-1e3, 1e3), st.floats(1, 1e3))
def test_reflection_is_that_of_mirrors(value, low, width):
    high, slow = low + width, value
    while not low <= slow <= high and abs(slow) < 1e4:
        slow = 2 * low - slow if slow < low else 2 * high - slow
    found = reflected(value, low, high)
    assert low <= found <= high or found == pytest.approx(low) or found == pytest.approx(high)
    if low <= slow <= high:
        assert found == pytest.approx(slow, abs=1e-6)


@given(st.integers(0, 10**6), st.integers(0, 99), st.sampled_from(["normal", "laplace", "uniform"]))
def test_noise_stays_within_declared_bounds(value, person, kind):
    for type_, decimals in (("int", None), ("float", None), ("float", 1)):
        spec = {"use": "noise", "spread": 50_000, "kind": kind, "min": 0, "max": 10**6, "decimals": decimals}
        found = started(spec, type_).one(value if type_ == "int" else float(value), person)
        assert 0 <= found <= 10**6
        assert isinstance(found, int if type_ == "int" else float)
        free = started({k: v for k, v in spec.items() if k not in ("min", "max")}, type_)
        without = free.one(value if type_ == "int" else float(value), person)
        assert found == without or not 0 < without < 10**6


def test_bounds_that_leave_no_room_are_refused():
    for low, high in ((5, 5), (5, 3), (float("nan"), 3)):
        with pytest.raises(UsageError, match="`min`"):
            MASKS.decode({"use": "noise", "spread": 1, "min": low, "max": high})


def test_what_masks_could_not_do_is_counted_and_said():
    schema = Schema(
        {
            "pid": Column("subject", type="str"),
            "no": Column("identifier", type="str"),
            "pay": Column("plain", type="float"),
            "born": Column("plain", type="date"),
        }
    )
    masks = {
        "no": {"use": "tokenize", "form": "ff1"},
        "pay": {"use": "noise", "spread": 2},
        "born": {"use": "date-shift", "days": 3},
    }
    view = RoleView.resolve("r", schema, list(masks), {c: MASKS.decode(m) for c, m in masks.items()})
    frame = pl.DataFrame(
        {
            "pid": ["a", None, None],
            "no": ["1234567", "12345", None],
            "pay": [1.0, 2.0, None],
            "born": [datetime.date(2000, 1, 1)] * 3,
        }
    )
    notes = FrameGate(view, frame.schema, KEYS).notes(frame)
    assert [n.split(" ")[:2] for n in notes] == [["no:", "1"], ["pay:", "1"], ["born:", "2"]]
    assert not any("12345" in n for n in notes)
    whole = frame.head(1)
    assert FrameGate(view, whole.schema, KEYS).notes(whole) == []

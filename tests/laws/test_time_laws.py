"""One reader of time and one clock: all roads read a value alike, and no single absurd time silences anybody."""

from __future__ import annotations

import datetime
import json
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from shoal.core.clock import EventClock
from shoal.core.errors import UsageError
from shoal.core.hierarchy.range import Range
from shoal.core.keys import KeyRing
from shoal.core.schema import Column, Schema
from shoal.core.time import LAST, PER_SECOND, SECOND, EventTime, duration, micros, period, scale
from shoal.kernels.shared import clock as clocks
from shoal.masks import MASKS
from shoal.masks.base import Context
from shoal.promises.k_anonymity import KAnonymity
from shoal.promises.z_anonymity import ZAnonymity
from shoal.runtime.kafka.formats.record_frames import RecordFrames
from shoal.streams import STREAM_METHODS
from shoal.streams.base import Batch
from shoal.streams.z_stream import z_anonymity
from shoal.views.frames import FOREVER, FrameGate
from shoal.views.role_view import RoleView
from shoal.views.windows import WindowGate

KEY = bytes(range(32))
KEYS = KeyRing({"default": {1: KEY}})
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
UNITS = st.sampled_from(list(PER_SECOND))

numbers = st.one_of(
    st.integers(-10, 2**64),
    st.integers(0, 2**31),
    st.floats(allow_nan=True, allow_infinity=True),
    st.floats(0, 3e9),
    st.floats(0, 2**60).map(np.floor),
)
moments = st.datetimes(datetime.datetime(1960, 1, 1), datetime.datetime(9999, 12, 31)).flatmap(
    lambda at: st.sampled_from(
        [at.isoformat(), at.isoformat(" "), at.isoformat() + "Z", at.isoformat() + "+05:30", at.date().isoformat(),
         at.isoformat(timespec="minutes"), at.isoformat(timespec="milliseconds") + "-0800", f" {at.isoformat()}Z "]
    )
)  # fmt: skip
odd = st.sampled_from(
    ["", "soon", "nan", "inf", "-5", "+5", "1e9", "1_000", "5.", ".5", "2024-02-30", "24:00", "٣", "é"]
)
texts = st.one_of(moments, odd, numbers.map(str), st.text(max_size=8).filter(lambda t: t.isprintable()))
values = st.one_of(numbers, texts, st.none(), st.booleans())


def slow(value: Any, unit: str) -> int:
    """By the definition: a whole number in its unit, a fraction to the nearest microsecond, an ISO text in UTC."""
    if isinstance(value, str):
        text = value.strip(" \t\r\n")
        try:
            value = (
                int(text)
                if text.isascii() and text.isdigit()
                else float(text.encode("ascii").replace(b"_", b"no number"))
            )
        except ValueError:
            try:
                at = datetime.datetime.fromisoformat(text)
            except ValueError:
                return -1
            at = at if at.tzinfo else at.replace(tzinfo=datetime.UTC)
            value, unit = (at - EPOCH) // datetime.timedelta(microseconds=1), "us"
    if value is None or isinstance(value, bool) or value != value or not 0 <= value < 2**63:
        return -1
    per = PER_SECOND[unit]
    if value > LAST // SECOND * per:
        return -1
    if value == int(value):
        return int(value) * SECOND // per
    return int(value * (SECOND / per) + 0.5)


@given(st.lists(values, max_size=12), UNITS)
@example(["2024-01-01T00:00:00Z", "1704067200", 1704067200, 1704067200.0], "s")
@example([1999.0, 1999, "1999.0", "1999"], "ns")
@settings(max_examples=300)
def test_every_road_reads_the_same_time(rows: list[Any], unit: Any) -> None:
    expected = [slow(v, unit) for v in rows]
    assert [scale(unit)(v) for v in rows] == expected
    assert micros(rows, unit).tolist() == expected
    words = [v if v is None else str(v).lower() if isinstance(v, bool) else str(v) for v in rows]
    by_text = [slow(w, unit) for w in words]
    assert micros(pl.Series(words, dtype=pl.String), unit).tolist() == by_text
    assert by_text == [slow(v, unit) if isinstance(v, str | None) else t for v, t in zip(rows, by_text, strict=True)]
    floats = [v for v in rows if isinstance(v, float)]
    assert micros(pl.Series(floats, dtype=pl.Float64), unit).tolist() == [slow(v, unit) for v in floats]
    for time in floats[:1]:  # the compiled door for one float at a time
        stream = z_anonymity(1, "1d", key=KEY, unit=unit, witnesses=1)
        assert (stream.push(time, "ada", "x") is None) == (slow(time, unit) < 0)
        assert stream.engine.clock[clocks.NOW] == slow(time, unit)
    whole = [v for v in rows if isinstance(v, int) and not isinstance(v, bool) and v < 2**63]
    assert micros(pl.Series(whole, dtype=pl.Int64), unit).tolist() == [slow(v, unit) for v in whole]


json_values = st.one_of(
    st.integers(0, 2**50), st.floats(0, 1e12), moments, odd, st.integers(0, 2**31).map(str), st.none()
)


@given(st.lists(json_values, min_size=1, max_size=8), UNITS)
def test_files_windows_and_kafka_records_agree_on_untyped_times(rows: list[Any], unit: Any) -> None:
    schema = Schema({"at": Column("time", unit=unit), "who": Column("subject"), "age": Column("plain", type="int")})
    expected = [slow(v, unit) for v in rows]
    view = RoleView.resolve("r", schema, ["at", "age"])
    lines = [json.dumps({"at": v, "who": str(i), "age": i}).encode() for i, v in enumerate(rows)]
    frame, refused = RecordFrames(view, KEYS).read(lines)
    assert not refused
    assert micros(frame["at"], unit).tolist() == expected
    times = FrameGate(view, frame.schema, KEYS).times(frame)
    assert [-1 if t == -FOREVER else t for t in times] == expected
    mask = MASKS.decode(
        {"use": "aggregate", "function": "mean", "k": 2, "window": {"use": "tumbling", "size": "1h30m"}}
    )
    windows = WindowGate(RoleView.resolve("r", schema, ["age"], {"age": mask}), KEYS)
    done = {o.number: o.reason for line in lines for o in windows.push(line)}
    assert [n for n, why in done.items() if why == "no time"] == [i for i, t in enumerate(expected) if t < 0]
    published = [json.loads(line) for line in RecordFrames(view, KEYS).write(frame)]
    for row, was in zip(published, rows, strict=True):  # what is shown says the same moment
        assert scale(unit)(row["at"]) == slow(was, unit)


@given(st.integers(0, 2**31), st.sampled_from(["1h30m", "90m", "5400s", "1.5h"]))
def test_a_pseudonym_rotates_alike_for_every_form_of_a_time(second: int, rotate: str) -> None:
    mask = MASKS.decode({"use": "pseudonym", "rotate": rotate})
    running = mask.start(Context(keys=KEYS, time="at"))  # type: ignore[attr-defined]
    at = datetime.datetime.fromtimestamp(second, datetime.UTC)
    forms = [second, float(second), str(second), at, at.replace(tzinfo=None), at.isoformat()]
    assert len({running.one("ada", form) for form in forms}) == 1
    assert running.one("ada", second) != running.one("ada", second + 5400)


def test_durations_are_read_alike_everywhere() -> None:
    assert duration("1h30m") == period("90m") == 5_400_000_000
    for wrong in ("", "1x", "h", "1h and", None, True, float("nan"), -1):
        with pytest.raises(UsageError, match="expected a duration"):
            duration(wrong)  # type: ignore[arg-type]
    for none in ("0s", 0):
        with pytest.raises(UsageError, match="longer than zero"):
            period(none)
    assert EventTime.of(Schema({"at": Column("time", late="1h30m", ahead="2h")})) == EventTime(
        "at", "s", 5_400_000_000, 7_200_000_000
    )


def in_order(gaps: list[int], who: list[int]) -> list[tuple[int, int]]:
    return [(int(t), w) for t, w in zip(1_700_000_000 + np.cumsum(gaps), who, strict=False)]


steps = st.lists(st.integers(0, 20), min_size=30, max_size=30)
several = st.lists(st.integers(0, 5), min_size=30, max_size=30)
absurd = st.one_of(st.integers(1_800_000_000, 253_402_300_799), st.just(4_000_000_000))


@given(steps, several, absurd, st.integers(0, 30))
@settings(max_examples=50)
def test_one_absurd_record_silences_no_window_view(gaps: list[int], who: list[int], wild: int, place: int) -> None:
    schema = Schema(
        {"at": Column("time", late="1m"), "who": Column("subject", type="int"), "age": Column("plain", type="int")}
    )
    mask = MASKS.decode({"use": "aggregate", "function": "mean", "k": 2, "window": {"use": "tumbling", "size": "1m"}})

    def released(rows: list[tuple[int, int]]) -> dict[int, Any]:
        running = WindowGate(RoleView.resolve("r", schema, ["age"], {"age": mask}), KEYS)
        lines = [json.dumps({"at": t, "who": w, "age": w}).encode() for t, w in rows]
        done = [o for line in lines for o in running.push(line)] + running.flush()
        assert sorted(o.number for o in done) == list(range(len(rows)))
        return {o.number: o.record for o in done if o.record is not None}

    rows = in_order(gaps, who)
    with_it = [*rows[:place], (wild, 77), *rows[place:]]
    moved = {n - (n > place): record for n, record in released(with_it).items() if n != place}
    assert moved == released(rows)


@given(steps, several, absurd, st.integers(0, 30))
@settings(max_examples=50)
def test_one_absurd_record_moves_no_clock(gaps: list[int], who: list[int], wild: int, place: int) -> None:
    rows = in_order(gaps, who)
    clock = EventClock(EventTime("at"))
    for at, (time, person) in enumerate([*rows[:place], (wild, 77), *rows[place:]]):
        verdict = clock.tell(time * SECOND, str(person))
        assert verdict == clocks.ON_TIME or (verdict == clocks.FUTURE and (at == place or clock.now is None))
    if len(set(who)) > 1:
        assert clock.now == rows[-1][0] * SECOND


@pytest.mark.parametrize("method", ["z-anonymity", "batches", "castle", "fads"])
@pytest.mark.parametrize("place", [0, 5])
def test_one_absurd_record_silences_no_stream(method: str, place: int) -> None:
    schema = Schema(
        {
            "at": Column("time"),
            "who": Column("subject"),
            "age": Column("quasi", type="int", hierarchy=Range(min=0, max=100)),
        }
    )
    delayed = {} if method == "z-anonymity" else {"delay": 1000, "delay_time": "30s", "reuse": "never"}
    promise = ZAnonymity(2, "1h") if method == "z-anonymity" else KAnonymity(2)
    running = STREAM_METHODS.decode({"use": method, **delayed}).start(schema, [promise], key=KEY)
    rows = in_order([3] * 60, [i % 7 for i in range(60)])
    rows.insert(place, (4_000_000_000, 77))
    released = 0
    for at, (time, who) in enumerate(rows):
        frame = pl.DataFrame({"at": [time], "age": [30]})
        out = running.push(Batch(frame, micros(frame["at"]), pl.Series([f"p{who}"]), at))
        released += len(out.events)
    assert released >= 45


def elapsed(rows: list[tuple[int, int]], ahead: int = 3600) -> list[int]:
    clock = clocks.new(0, ahead, 2)
    out = np.zeros(len(rows), np.int64)
    times, people = (np.array([r[i] for r in rows], np.int64) for i in (0, 1))
    clocks.elapse_all(clock, times, people, out)
    return out.tolist()


@given(st.lists(st.tuples(st.integers(0, 4000), st.integers(1, 2)), min_size=2, max_size=40))
def test_a_stream_in_order_lasts_as_long_as_its_times_say(rows: list[tuple[int, int]]) -> None:
    """Whoever sends, one person alone or several: at most the event before the last is not yet believed."""
    times = np.cumsum([gap for gap, _ in rows]).tolist()
    lasted = elapsed(list(zip(times, [who for _, who in rows], strict=True)))
    assert lasted == sorted(lasted)
    assert all(long <= t - times[0] for long, t in zip(lasted, times, strict=True))
    for at in range(1, len(times)):
        assert lasted[at] >= times[at - 1] - times[0]


@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(1, 3)), min_size=3, max_size=30),
    st.integers(10**6, 10**12),
    st.integers(0, 30),
)
def test_a_stream_lasts_on_after_an_absurd_time(rows: list[tuple[int, int]], wild: int, place: int) -> None:
    times = np.cumsum([gap for gap, _ in rows]).tolist()
    clean = list(zip(times, [who for _, who in rows], strict=True))
    place = min(place, len(clean))
    lasted = elapsed([*clean[:place], (wild, 1), *clean[place:]])
    rest = lasted[place + 1 :]
    assert lasted == sorted(lasted)
    if len(rest) > 2:  # the first two say that it was absurd; from there on it lasts as before
        assert rest[-1] - rest[1] == clean[-1][0] - clean[place + 1][0]

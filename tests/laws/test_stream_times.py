"""Methods with delay and time: ticks release in time, and a shown time is one more quasi column."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.core.errors import UsageError
from shoal.core.schema import Column, Schema
from shoal.promises.k_anonymity import KAnonymity
from shoal.streams import STREAM_METHODS
from shoal.streams.base import Batch
from shoal.verifier import verify
from tests.laws.delayed_streams import (
    DELAYED,
    KEY,
    QUASI,
    SCHEMA,
    Told,
    batch,
    finish,
    methods,
    streams,
)


@settings(max_examples=30)
@given(st.data())
def test_ticks_release_a_quiet_stream_in_time(data: st.DataObject) -> None:
    """Bound by time: nothing stays held at the first input at or after its due time."""
    k = data.draw(st.integers(1, 3))
    method: Any = data.draw(
        methods(30, delay_time="10us", reuse=data.draw(st.sampled_from(["never", "25us", "forever"])))
    )
    running = method.start(SCHEMA, [KAnonymity(k)], key=KEY)
    gaps = data.draw(st.lists(st.integers(0, 6), min_size=1, max_size=30))
    told, now, number, arrived = Told(), 1000, 0, {}
    frame = pl.DataFrame(
        {
            "who": [f"p{i % 7}" for i in range(len(gaps))],
            "age": [i % 20 for i in range(len(gaps))],
            "zip": "10",
            "kind": "covid",
            "diag": "a",
            "same": "x",
        }
    )
    running.tick(now)
    waited = [0]
    for gap in gaps:
        now += gap
        before = len(told.events)
        if gap == 5:
            told.hear(running.tick(now), number)
        else:
            arrived[number] = now
            told.hear(running.push(batch(frame[number : number + 1], number, np.array([now]))), number)
            number += 1
        waited += [now - arrived[event] for event in told.events[before:]]
        for event, came in arrived.items():
            if now - came >= 10:
                assert event in told.events or event in told.withheld
    assert running.held == number - len(told.events) - len(told.withheld)
    assert running.figures()["wait_most"] == max(waited) / 1e6
    assert running.figures()["wait_mean"] == pytest.approx(sum(waited) / 1e6 / max(1, len(told.events)))
    told.hear(running.tick(now + 10), number)
    assert running.held == 0
    assert sorted([*told.events, *told.withheld]) == list(range(number))


@settings(max_examples=40)
@given(st.data())
def test_a_shown_time_is_a_quasi_column(data: st.DataObject) -> None:
    """Every emission keeps k over cells and time together; its time is that of its latest tuple."""
    frame = data.draw(streams(60))
    gaps = data.draw(st.lists(st.integers(0, 50), min_size=frame.height, max_size=frame.height))
    times = np.cumsum(gaps) + 1000
    frame = frame.with_columns(at=pl.Series(times))
    k = data.draw(st.integers(1, 4))
    name = data.draw(st.sampled_from(DELAYED))
    given_: dict[str, Any] = {"use": name, "delay": data.draw(st.integers(4, 16))}
    method: Any = STREAM_METHODS.decode(given_ | ({} if name == "batches" else {"reuse": "never"}))
    assert method.judged(SCHEMA, frame.columns) == (*QUASI, "at")
    running = method.start(SCHEMA, [KAnonymity(k)], key=KEY)
    told = Told()
    for at in range(frame.height):
        told.hear(running.push(batch(frame[at : at + 1], at, times[at : at + 1])), at)
        if data.draw(st.booleans()) and at == frame.height // 2:
            running = method.start(SCHEMA, [KAnonymity(k)], key=KEY, snapshot=running.snapshot())
    finish(running, told, frame)
    assert running.figures()["again_share"] == 0
    if told.events:
        people = frame["who"].gather(told.events)
        assert verify(told.data, [*QUASI, "at"], [KAnonymity(k)], people=people).kept
        assert (told.data["at"].to_numpy() >= times[told.events]).all()
        assert set(told.data["at"].to_list()) <= set(times[told.events].tolist())


@pytest.mark.parametrize("name", DELAYED)
def test_boxes_used_again_beside_a_shown_time_are_refused(name: str) -> None:
    method = STREAM_METHODS.decode({"use": name, "reuse": "forever"})
    with pytest.raises(UsageError, match="time column 'at' is shown"):
        method.judged(SCHEMA, ["age", "at"])
    frame = pl.DataFrame({"age": [1], "zip": ["1"], "kind": ["covid"], "same": ["x"], "at": [5]})
    with pytest.raises(UsageError, match="time column 'at' is shown"):
        method.start(SCHEMA, [KAnonymity(2)], key=KEY).push(Batch(frame, np.array([5])))


@pytest.mark.parametrize("name", DELAYED)
@pytest.mark.parametrize("before", ["nothing", "a crowd, then an hour of silence", "a crowd, then a day of silence"])
def test_a_delay_in_time_is_kept_while_one_person_alone_sends(name: str, before: str) -> None:
    """Nobody confirms the clock of one person: outcomes come in time all the same, at the latest one event after.

    The event after a silence is not believed alone: it may be an absurd time. The next one is its witness.
    """
    schema = Schema({n: c for n, c in SCHEMA.columns.items() if n != "at"} | {"at": Column("time")})
    running = STREAM_METHODS.decode({"use": name, "delay": 5000, "delay_time": "5s", "reuse": "never"}).start(
        schema, [KAnonymity(2)], key=KEY
    )
    start = 1_700_000_000
    times: list[int] = []
    people: list[str] = []
    if before != "nothing":
        times += [start + i for i in range(30)]
        people += [f"p{i % 7}" for i in range(30)]
        start += 30 + (3700 if "hour" in before else 86_400)
    times += [start + i for i in range(200)]
    people += ["ada"] * 200
    micro = np.array(times, np.int64) * 1_000_000
    decided: dict[int, int] = {}
    frame = pl.DataFrame({"age": [7], "zip": "10", "kind": "covid", "same": "x", "diag": "a"})
    for at in range(len(times)):
        out = running.push(Batch(frame, micro[at : at + 1], pl.Series(people[at : at + 1]), at))
        decided |= dict.fromkeys([*out.events.tolist(), *out.withheld.tolist()], at)
    late = {e: times[decided[e]] - times[e] for e in range(len(times) - 7)}
    # all outcomes there are, and none later than the first event due and the one that vouches for it
    for event in late:
        due = next(i for i in range(event, len(times)) if times[i] - times[event] >= 5)
        assert decided[event] <= due + 1, (event, late[event])
    assert running.figures()["wait_most"] <= (5 + 1 if before == "nothing" else 86_400 + 60)

"""Laws that every method with delay keeps: one outcome each, in time, promises at every boundary, replay alike."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.core.cells import read
from shoal.core.errors import UsageError
from shoal.core.hierarchy.prefix import Prefix
from shoal.core.hierarchy.range import Range
from shoal.core.hierarchy.suppress import Suppress
from shoal.core.hierarchy.tree import Tree
from shoal.core.schema import Column, Schema
from shoal.promises.base import Promise
from shoal.promises.k_anonymity import KAnonymity
from shoal.promises.l_diversity import LDiversity
from shoal.promises.t_closeness import TCloseness
from shoal.streams import STREAM_METHODS
from shoal.streams.base import Batch, Outcomes, Reason, Running, StreamMethod
from shoal.verifier import verify

KEY = bytes(range(32))
TREE = {"lungs": ["covid", "asthma"], "blood": ["diabetes", "anaemia"]}
PARENT = {leaf: node for node, leaves in TREE.items() for leaf in leaves}
QUASI = ("age", "zip", "kind", "same")
SCHEMA = Schema(
    {
        "who": Column("subject"),
        "age": Column("quasi", hierarchy=Range(min=0, max=20), type="int"),
        "zip": Column("quasi", hierarchy=Prefix(2), weight=2.0),
        "kind": Column("quasi", hierarchy=Tree(nodes=TREE)),
        "same": Column("quasi", hierarchy=Suppress()),
        "diag": Column("sensitive"),
        "care": Column("sensitive"),
        "at": Column("time", unit="us", ahead="1d"),
    }
)
DELAYED = ("batches", "castle", "fads")


@dataclass
class Told:
    """What an observer saw, push by push."""

    events: list[int] = field(default_factory=list)
    frames: list[pl.DataFrame] = field(default_factory=list)
    pushes: list[int] = field(default_factory=list)  # the push in which each event was decided
    boundary: list[int] = field(default_factory=list)
    withheld: dict[int, int] = field(default_factory=dict)

    def hear(self, out: Outcomes, push: int) -> None:
        for event, reason in zip(out.withheld.tolist(), out.reasons.tolist(), strict=True):
            assert event not in self.withheld
            self.withheld[event] = reason
        if out.released is not None and out.released.height:
            assert out.released.height == len(out.events)
            self.frames.append(out.released)
            self.events.extend(out.events.tolist())
            self.pushes.extend([push] * len(out.events))
            self.boundary.append(len(self.events))

    @property
    def data(self) -> pl.DataFrame:
        return pl.concat(self.frames) if self.frames else pl.DataFrame()


@st.composite
def streams(draw: st.DrawFn, most: int = 45) -> pl.DataFrame:
    n = draw(st.integers(1, most))
    people = draw(st.integers(1, 12))
    one = st.fixed_dictionaries(
        {
            "who": st.one_of(
                st.integers(0, people).map(lambda i: f"p{i}"), st.none() if draw(st.booleans()) else st.just("p0")
            ),
            "age": st.one_of(st.integers(0, 20), st.none(), st.just(99)),
            "zip": st.sampled_from(["10", "11", "20", "2", None]),
            "kind": st.sampled_from([*PARENT, None]),
            "diag": st.sampled_from(["a", "b", "c"]),
            "care": st.sampled_from(["x", "y", None]),
        }
    )
    rows = draw(st.lists(one, min_size=n, max_size=n))
    types = {"who": pl.String, "age": pl.Int64} | dict.fromkeys(("zip", "kind", "diag", "care"), pl.String)
    return pl.DataFrame(rows, schema=types).with_columns(same=pl.lit("x"), number=pl.int_range(pl.len()))


@st.composite
def methods(draw: st.DrawFn, least: int, **more: Any) -> StreamMethod:
    name = draw(st.sampled_from(DELAYED))
    given_ = {"use": name, "delay": draw(st.integers(least, least + 12)), **more}
    if "reuse" not in given_:
        given_["reuse"] = draw(st.sampled_from(["never", "forever", 7, 30]))
    if name == "castle":
        given_ |= {"beta": draw(st.integers(1, 4)), "mu": 3}
    return STREAM_METHODS.decode(given_)


def batch(frame: pl.DataFrame, first: int, times: Any = None) -> Batch:
    shown = frame.drop("who", "number", strict=False)
    return Batch(shown, np.arange(first, first + frame.height) if times is None else times, frame["who"], first)


def play(running: Running, frame: pl.DataFrame, size: int = 1, first: int = 0, told: Told | None = None) -> Told:
    told = told or Told()
    for start in range(0, frame.height, size):
        part = frame[start : start + size]
        told.hear(running.push(batch(part, first + start)), first + start + part.height - 1)
    return told


def finish(running: Running, told: Told, frame: pl.DataFrame) -> Told:
    told.hear(running.flush(), frame.height - 1)
    assert running.held == 0
    return told


def usable(frame: pl.DataFrame) -> pl.Series:
    return frame["who"].is_not_null() & (frame["age"].is_null() | (frame["age"] <= 20))


def covered(column: str, value: Any, text: str | None) -> bool:
    """Whether a published cell tells the truth; written without any of the library's hierarchies."""
    if text == "*":
        return True
    if value is None or text is None:
        return value is None and text is None
    if column == "age":
        cell = read(text)
        return cell.covers(value) if cell.kind == "interval" else text == str(value)
    if column == "kind":
        return text in (value, PARENT[value])
    if column == "zip":
        return text in (value, value[:1] + "*" * (len(value) - 1)) or (
            text.endswith("*") and value.startswith(text[:1])
        )
    return bool(text == value)


def seen_within(told: Told, frame: pl.DataFrame, reuse: int | str, now: int) -> list[set[str]]:
    """For each tuple of the latest emission: the people who got the same cells then, or within the horizon."""
    count = usable(frame).cast(pl.Int64).cum_sum()
    data = told.data.select(QUASI).rows()
    current = [i for i, p in enumerate(told.pushes) if p == now]
    out = []
    for i in current:
        crowd = set()
        for j, cells in enumerate(data):
            if cells != data[i]:
                continue
            age = int(count[now] - count[told.pushes[j]])
            if told.pushes[j] == now or (reuse != "never" and (reuse == "forever" or age < int(reuse))):
                crowd.add(frame["who"][told.events[j]])
        out.append(crowd)
    return out


@settings(max_examples=60)
@given(st.data())
def test_each_event_has_one_outcome_in_time_and_every_boundary_keeps_k(data: st.DataObject) -> None:
    frame = data.draw(streams())
    k = data.draw(st.integers(1, 5))
    method: Any = data.draw(methods(max(1, k - 1)))
    running = method.start(SCHEMA, [KAnonymity(k)], key=KEY)
    told = Told()
    for at in range(frame.height):
        before = len(told.events)
        told.hear(running.push(batch(frame[at : at + 1], at)), at)
        if len(told.events) > before:
            people = frame["who"].gather(told.events)
            assert verify(told.data, QUASI, [KAnonymity(k)], people=people).kept
            assert all(len(crowd) >= k for crowd in seen_within(told, frame, method.reuse, at))
    finish(running, told, frame)
    assert sorted([*told.events, *told.withheld]) == list(range(frame.height))
    for event, push in zip(told.events, told.pushes, strict=True):
        assert 0 <= push - event <= method.delay
    fine = usable(frame)
    assert all(fine[event] for event in told.events)
    assert all((reason in (Reason.DUE, Reason.END)) == fine[event] for event, reason in told.withheld.items())
    for event, cells in zip(told.events, told.data.select(QUASI).rows() if told.frames else [], strict=True):
        assert all(covered(c, frame[c][event], text) for c, text in zip(QUASI, cells, strict=True))
    counted = running.counters
    assert (counted["events"], counted["released"], counted["withheld"]) == (
        frame.height, len(told.events), len(told.withheld),
    )  # fmt: skip
    if told.events:
        assert running.figures()["smallest_group"] >= k
        assert running.figures()["delay_most"] <= method.delay
        assert running.figures()["delay_most"] == max(p - e for e, p in zip(told.events, told.pushes, strict=True))


@settings(max_examples=30)
@given(st.data())
def test_batches_of_any_size_and_a_snapshot_anywhere_decide_alike(data: st.DataObject) -> None:
    frame = data.draw(streams())
    k = data.draw(st.integers(1, 4))
    all_promises: list[Promise] = [KAnonymity(k), LDiversity(2, "diag"), TCloseness(0.9, "diag"), LDiversity(1, "care")]
    promises = all_promises[: data.draw(st.integers(1, 4))]
    method: Any = data.draw(methods(4))
    once = method.start(SCHEMA, promises, key=KEY)
    whole = finish(once, play(once, frame), frame)
    cut = data.draw(st.integers(0, frame.height))
    size = data.draw(st.integers(1, 20))
    first = method.start(SCHEMA, promises, key=KEY)
    told = play(first, frame[:cut], size)
    snapshot = first.snapshot()
    assert snapshot == first.snapshot()
    second = method.start(SCHEMA, promises, key=KEY, snapshot=snapshot)
    assert second.held == first.held
    assert dict(second.counters) == dict(first.counters)
    finish(second, play(second, frame[cut:], size, cut, told), frame)
    assert told.events == whole.events
    assert told.withheld == whole.withheld
    if whole.frames:
        assert told.data.equals(whole.data)
    assert dict(second.counters) == dict(once.counters)


def shares(values: list[str]) -> dict[str, float]:
    return {v: values.count(v) / len(values) for v in set(values)}


@settings(max_examples=50)
@given(st.data())
def test_diversity_and_closeness_hold_when_released(data: st.DataObject) -> None:
    frame = data.draw(streams(60)).filter(
        pl.col("who").is_not_null() & (pl.col("age").is_null() | (pl.col("age") <= 20))
    )
    if not frame.height:
        return
    frame = frame.with_columns(who=pl.format("p{}", pl.int_range(pl.len())))  # each tuple a person
    kind = data.draw(st.sampled_from(["distinct", "entropy", "recursive", "frequency"]))
    diverse = LDiversity(2, "diag", kind=kind)
    t = data.draw(st.sampled_from([0.2, 0.4, 1.0]))
    method: Any = data.draw(methods(6))
    others = [LDiversity(2, "care")] if data.draw(st.booleans()) else []
    running = method.start(SCHEMA, [KAnonymity(2), diverse, TCloseness(t, "diag"), *others], key=KEY)
    told = Told()
    for at in range(frame.height):
        before = len(told.events)
        told.hear(running.push(batch(frame[at : at + 1], at)), at)
        if len(told.events) == before:
            continue
        people = frame["who"].gather(told.events)
        assert verify(told.data, QUASI, [KAnonymity(2), diverse, *others], people=people).kept
        overall = shares(frame["diag"][: at + 1].to_list())
        # fresh groups: those whose cells nobody had before
        old = set(told.data[:before].select(QUASI).rows())
        fresh: dict[Any, list[str]] = {}
        for i in range(before, len(told.events)):
            fresh.setdefault(told.data.select(QUASI).row(i), []).append(frame["diag"][told.events[i]])
        for cells, values in fresh.items():
            if cells in old:
                continue
            group = shares(values)
            far = sum(abs(group.get(v, 0) - share) for v, share in overall.items()) / 2
            assert far <= t + 1e-9


@pytest.mark.parametrize("name", DELAYED)
@pytest.mark.parametrize("kind", ["distinct", "frequency"])
def test_a_box_is_not_used_again_where_everyone_would_then_hold_one_value(name: str, kind: str) -> None:
    rows = [("p1", "cold"), ("p2", "hiv"), ("p1", "hiv")]
    frame = pl.DataFrame(rows, schema=["who", "diag"], orient="row").with_columns(
        age=pl.lit(3), zip=pl.lit("10"), kind=pl.lit("covid"), same=pl.lit("x"), care=pl.lit("x")
    )
    method: Any = STREAM_METHODS.decode({"use": name, "delay": 1, "reuse": "forever"})
    promises = [KAnonymity(2), LDiversity(2, "diag", kind=kind)]
    running = method.start(SCHEMA, promises, key=KEY)
    told = finish(running, play(running, frame), frame)
    assert sorted(told.events) == [0, 1]
    assert verify(told.data, QUASI, promises, people=frame["who"].gather(told.events)).kept


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


def test_inside_an_emission_the_order_is_not_that_of_arrival() -> None:
    frame = pl.DataFrame({"who": [f"p{i}" for i in range(200)], "age": [i % 20 for i in range(200)]}).with_columns(
        zip=pl.lit("10"), kind=pl.lit("covid"), diag=pl.lit("a"), same=pl.lit("x")
    )
    method: Any = STREAM_METHODS.decode({"use": "batches", "delay": 199})
    events = method.start(SCHEMA, [KAnonymity(2)], key=KEY).push(batch(frame, 0)).events.tolist()
    rising = sum(a < b for a, b in pairwise(events))
    assert 60 < rising < 140  # 99.5 expected of a random order, standard deviation 4.1
    other = method.start(SCHEMA, [KAnonymity(2)], key=bytes(32)).push(batch(frame, 0)).events.tolist()
    assert other != events


@pytest.mark.parametrize("name", DELAYED)
def test_what_could_never_release_is_refused_at_the_start(name: str) -> None:
    with pytest.raises(UsageError, match="nothing could ever be released"):
        STREAM_METHODS.decode({"use": name, "delay": 5}).start(SCHEMA, [KAnonymity(10)], key=KEY)


@pytest.mark.parametrize("name", DELAYED)
def test_a_crowd_that_never_reaches_k_is_withheld_to_the_last(name: str) -> None:
    frame = pl.DataFrame({"who": ["p1", "p2"] * 30, "age": [5] * 60}).with_columns(
        zip=pl.lit("10"), kind=pl.lit("covid"), diag=pl.lit("a"), same=pl.lit("x")
    )
    running = STREAM_METHODS.decode({"use": name, "delay": 10}).start(SCHEMA, [KAnonymity(3)], key=KEY)
    told = finish(running, play(running, frame, 7), frame)
    assert not told.events
    assert sorted(told.withheld) == list(range(60))


@pytest.mark.parametrize("name", ["batches", "castle"])
def test_boxes_for_ever_are_at_least_800(name: str) -> None:
    with pytest.raises(UsageError, match="at least 800"):
        STREAM_METHODS.decode({"use": name, "reuse": "forever", "boxes": 799})


@pytest.mark.parametrize("name", DELAYED)
def test_memory_is_bounded_by_delay_and_boxes(name: str) -> None:
    rng = np.random.default_rng(1)
    more = {"boxes": 800}
    running: Any = STREAM_METHODS.decode({"use": name, "delay": 20, "reuse": "forever", **more}).start(
        SCHEMA, [KAnonymity(2)], key=KEY
    )
    sizes = []
    for first in range(0, 4000, 200):
        frame = pl.DataFrame(
            {
                "who": [f"p{first + i}" for i in range(200)],
                "age": rng.integers(0, 21, 200),
                "zip": [f"{v:02}" for v in rng.integers(0, 100, 200)],
            }
        ).with_columns(kind=pl.lit("covid"), diag=pl.lit("a"), same=pl.lit("x"))
        running.push(batch(frame, first))
        assert running.held <= 21
        sizes.append(len(running.snapshot()))
    assert running.figures()["boxes"] <= 800
    assert max(sizes[10:]) <= 1.3 * max(sizes[5:10]) or running.figures()["boxes"] < 800


VOID = (
    LDiversity(1, "diag"),
    LDiversity(1, "care", kind="entropy"),
    LDiversity(1, "diag", kind="frequency"),
    TCloseness(1.0, "care"),
)


@settings(max_examples=60)
@given(st.data())
def test_a_promise_that_always_holds_changes_no_byte(data: st.DataObject) -> None:
    """Utility law: what is satisfied anyway costs nothing."""
    frame = data.draw(streams(60))
    k = data.draw(st.integers(1, 4))
    method: Any = data.draw(methods(max(1, k - 1)))
    more = data.draw(st.lists(st.sampled_from(VOID), min_size=1, max_size=3, unique=True))
    alone, both = (method.start(SCHEMA, [KAnonymity(k), *some], key=KEY) for some in ([], more))
    size = data.draw(st.integers(1, 20))
    expected = finish(alone, play(alone, frame, size), frame)
    found = finish(both, play(both, frame, size), frame)
    assert found.events == expected.events
    assert found.withheld == expected.withheld
    if expected.frames:
        assert found.data.equals(expected.data)
    assert found.boundary == expected.boundary


@pytest.mark.parametrize("name", DELAYED)
def test_a_promise_that_nearly_always_holds_costs_nearly_nothing(name: str) -> None:
    """Of five values each a fifth, k = 5 people have two at least in 999 groups of 1,000: boxes are used as before."""
    rng = np.random.default_rng(3)
    n = 3000
    frame = pl.DataFrame(
        {
            "who": [f"p{i}" for i in rng.integers(0, 900, n)],
            "age": rng.integers(0, 21, n),
            "zip": [f"{v:02}" for v in rng.integers(0, 100, n)],
            "kind": rng.choice(list(PARENT), n),
            "diag": rng.choice(["a", "b", "c", "d", "e"], n),
        }
    ).with_columns(same=pl.lit("x"))
    loss = {}
    for promise in (None, LDiversity(2, "diag"), TCloseness(0.9, "diag"), LDiversity(1.2, "diag", kind="entropy")):
        method: Any = STREAM_METHODS.decode({"use": name, "delay": 200, "reuse": "forever"})
        running = method.start(SCHEMA, [KAnonymity(5)] + ([promise] if promise else []), key=KEY)
        finish(running, play(running, frame, 500), frame)
        loss[promise] = running.figures()["loss"]
    assert max(loss.values()) <= 1.1 * loss[None]


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

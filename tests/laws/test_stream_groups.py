"""Laws that every method with delay keeps: one outcome each, promises at every boundary, replay alike."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.promises.base import Promise
from shoal.promises.k_anonymity import KAnonymity
from shoal.promises.l_diversity import LDiversity
from shoal.promises.t_closeness import TCloseness
from shoal.streams import STREAM_METHODS
from shoal.streams.base import Reason
from shoal.verifier import verify
from tests.laws.delayed_streams import (
    DELAYED,
    KEY,
    QUASI,
    SCHEMA,
    Told,
    batch,
    covered,
    finish,
    methods,
    play,
    seen_within,
    streams,
    usable,
)


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


@pytest.mark.parametrize("name", DELAYED)
def test_under_closeness_nobody_shows_two_values_with_one_box(name: str) -> None:
    rows = [("p1", "a"), ("p2", "b"), ("p1", "b")]
    frame = pl.DataFrame(rows, schema=["who", "diag"], orient="row").with_columns(
        age=pl.lit(3), zip=pl.lit("10"), kind=pl.lit("covid"), same=pl.lit("x"), care=pl.lit("x")
    )
    method: Any = STREAM_METHODS.decode({"use": name, "delay": 1, "reuse": "forever"})
    running = method.start(SCHEMA, [KAnonymity(2), TCloseness(0.5, "diag")], key=KEY)
    told = finish(running, play(running, frame), frame)
    assert sorted(told.events) == [0, 1]


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

"""Figures over time beside a slow twin that re-scans the window, and profiles beside counting by hand."""

from __future__ import annotations

from collections import Counter
from math import log2

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.core.hierarchy.path import Path as PathHierarchy
from shoal.report.stream_profile import profile_of, tables, text
from shoal.streams.z_stream import z_anonymity

KEY = b"a key for watching, of thirty-two."
rows = st.lists(
    st.tuples(st.integers(0, 40), st.sampled_from("abcdef"), st.sampled_from(["x.1", "x.2", "y.1", "y"])),
    min_size=1,
    max_size=50,
)


def slow_entropy(sets: list[frozenset[str]]) -> float:
    groups = Counter(s for s in sets if s)
    people = sum(groups.values())
    return -sum(n / people * log2(n / people) for n in groups.values()) if people else 0.0


@given(rows, st.integers(1, 3), st.integers(2, 3), st.integers(1, 80))
@settings(max_examples=25)
def test_figures_over_time_by_re_scanning(gaps: list[tuple[int, str, str]], z: int, k: int, cut: int) -> None:
    times = (np.cumsum([g for g, _, _ in gaps]) + 1).tolist()
    people, values = [u for _, u, _ in gaps], [v for _, _, v in gaps]
    stream = z_anonymity(z, 60, "path", key=KEY)
    watch = stream.watch(30, k)
    released: list[str | None] = []
    for at in range(0, len(times), cut):
        part = slice(at, at + cut)
        released += stream.push_many(times[part], people[part], values[part]).values.to_list()
    found = watch.finish()
    one = z_anonymity(z, 60, "path", key=KEY)
    other = one.watch(30, k)
    assert [one.push(*e) for e in zip(times, people, values, strict=True)] == released
    assert other.finish() == found
    for row in found:
        mark = row["time"]
        seen = [i for i, t in enumerate(times) if mark - 60 < t <= mark]
        who = sorted({people[i] for i in seen})
        before = [frozenset(values[i] for i in seen if people[i] == u) for u in who]
        after = [frozenset(released[i] or "" for i in seen if people[i] == u) - {""} for u in who]
        sizes = Counter(after)
        if who:
            assert row["p_k"] == pytest.approx(sum(sizes[s] >= k for s in after) / len(who))
        assert row["people"] == len(who)
        assert row["entropy_before"] == pytest.approx(slow_entropy(before), abs=1e-9)
        assert row["entropy_after"] == pytest.approx(slow_entropy(after), abs=1e-9)
        lately = [i for i, t in enumerate(times) if mark - 30 < t <= mark]
        assert row["events"] == len(lately)
        assert row["withheld"] == sum(released[i] is None for i in lately)
        assert row["level_0"] == sum(released[i] == values[i] for i in lately)
        assert row["z"] == z


@given(rows)
@settings(max_examples=40)
def test_a_profile_by_counting(gaps: list[tuple[int, str, str]]) -> None:
    times = np.cumsum([g for g, _, _ in gaps]).tolist()
    frame = pl.DataFrame({"time": times, "subject": [u for _, u, _ in gaps], "value": [v for _, _, v in gaps]})
    found = profile_of(frame, hierarchy=PathHierarchy(), window="1m")
    each = Counter(u for _, u, _ in gaps)
    assert (found.events, found.people.count, found.people.most) == (len(gaps), len(each), max(each.values()))
    assert sum(b.count for b in found.people.bins) == len(each)
    for b in found.people.bins:
        assert b.count == sum(b.low <= n <= b.high for n in each.values())
    values = Counter(v for _, _, v in gaps)
    assert found.levels[0].samples.count == len(values)
    shown_by = {v: {u for _, u, w in gaps if w == v} for v in values}
    assert found.levels[0].lone == sum(len(s) == 1 for s in shown_by.values())
    windows = (times[-1] - times[0]) // 60 + 1
    spots = {(v, u, int(t - times[0]) // 60) for t, (_, u, v) in zip(times, gaps, strict=True)}
    shares = sorted((sum(s[0] == v for s in spots) / (windows * len(each)) for v in values), reverse=True)
    assert found.exposed == pytest.approx(shares)
    assert tables(found)["levels"].height == len(found.levels)
    assert f"{len(gaps):,} events" in text(found)


def test_unusable_events_are_counted_apart() -> None:
    frame = pl.DataFrame(
        {"time": [1.0, None, 2.0, -1.0], "subject": ["a", "b", None, "c"], "value": ["x", "x", "x", ""]}
    )
    found = profile_of(frame)
    assert (found.events, found.unusable, found.people.count) == (1, 3, 1)


def test_every_event_lies_in_one_interval() -> None:
    stream = z_anonymity(1, 60, key=KEY)
    watch = stream.watch(30)
    stream.push_many([0, 0, 30, 31, 60, 95], list("abcdef"), ["x"] * 6)
    assert [(r["time"], r["events"]) for r in watch.finish()] == [(0, 2), (30, 1), (60, 2), (90, 0)]

"""z-anonymity beside a brute-force oracle: re-scan everything that was received, by the definition alone."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from shoal.core.hierarchy.path import Path as PathHierarchy
from shoal.promises.z_anonymity import WindowHours, ZAnonymity
from shoal.streams.base import Reason
from shoal.streams.z_stream import ZStream, z_anonymity

KEY = b"a key of thirty-two bytes, no less"
Event = tuple[float, str, str]
UNHEARD = {Reason.TOO_LATE, Reason.FUTURE}  # events that count for nobody, or not yet


def labels_of(value: str) -> list[str]:
    steps = value.split(".")
    return [".".join(steps[:n]) for n in range(len(steps), 0, -1)]


def support(seen: list[Event], time: float, label: str, window: float) -> int:
    return len({u for t, u, v in seen if label in labels_of(v) and time - window <= t <= time})


def oracle(events: list[Event], z: int, window: float) -> list[str | None]:
    """What may be released of each event, given all events received until then."""
    out: list[str | None] = []
    for at, (time, _, value) in enumerate(events):
        seen = events[: at + 1]
        fit = [label for label in labels_of(value) if support(seen, time, label, window) >= z]
        out.append(fit[0] if fit else None)
    return out


values = st.sampled_from(["a.x.1", "a.x.2", "a.y", "a", "b.x.1", "b", "ü.é.1"])
people = st.sampled_from([f"u{i}" for i in range(6)])
# whole and half seconds, ties, silences longer than the window
gaps = st.sampled_from([0, 0, 0, 0.5, 1, 2, 3, 7, 30])
in_order = st.lists(st.tuples(gaps, people, values), max_size=60).map(
    lambda rows: [(float(t), u, v) for t, (_, u, v) in zip(np.cumsum([g for g, _, _ in rows]), rows, strict=True)]
)
disordered = st.lists(st.tuples(st.integers(0, 40).map(lambda t: t / 2), people, values), max_size=60)
cuts = st.lists(st.integers(0, 60), max_size=4)


def batches(events: list[Event], at: list[int]) -> list[list[Event]]:
    edges = sorted({0, len(events), *[min(c, len(events)) for c in at]})
    return [events[a:b] for a, b in pairwise(edges)]


def columns(part: list[Event]) -> tuple[list[float], list[str], list[str]]:
    return [t for t, _, _ in part], [u for _, u, _ in part], [v for _, _, v in part]


@given(in_order, st.integers(1, 4), st.sampled_from([1, 5, 10]), cuts)
@settings(max_examples=150)
def test_in_order_both_doors_equal_the_oracle(events: list[Event], z: int, window: int, at: list[int]) -> None:
    expected = oracle(events, z, window)
    one = z_anonymity(z, window, "path", key=KEY)
    assert [one.push(*e) for e in events] == expected
    many = z_anonymity(z, window, "path", key=KEY)
    got = [v for part in batches(events, at) for v in many.push_many(*columns(part)).values.to_list()]
    assert got == expected
    assert one.counters == many.counters


@given(disordered, st.integers(1, 4), st.sampled_from([2, 5, 10]), st.sampled_from([0, 1, 3, 8, 100]), cuts)
@settings(max_examples=150)
@example([(18.5, "u0", "a"), (18.5, "u1", "a"), (18.0, "u2", "a"), (19.0, "u3", "a")], 3, 2, 1, [])
def test_disordered_never_releases_what_the_oracle_withholds(
    events: list[Event], z: int, window: int, late: int, at: list[int]
) -> None:
    expected = oracle(events, z, window)
    stream = z_anonymity(z, window, "path", late=late, key=KEY)
    one = z_anonymity(z, window, "path", late=late, key=KEY)
    pushed = [stream.push_many(*columns(part)) for part in batches(events, at)]
    got = [v for p in pushed for v in p.values.to_list()]
    reasons = [r for p in pushed for r in p.reasons.tolist()]
    assert [one.push(*e) for e in events] == got
    for i, ((time, _, value), released, allowed) in enumerate(zip(events, got, expected, strict=True)):
        if released is not None:
            assert allowed is not None
            assert released in labels_of(allowed)
            assert released in labels_of(value)
        elif allowed is not None and reasons[i] not in UNHEARD | {Reason.LATE}:
            # every miss is counted as one; who is on time is withheld only if too few were heard
            assert reasons[i] == Reason.RARE
            heard = [e for e, reason in zip(events[: i + 1], reasons, strict=False) if reason not in UNHEARD]
            assert not any(support(heard, time, label, window) >= z for label in labels_of(value))
    counters = stream.counters
    assert counters == one.counters
    assert counters.get("behind", 0) >= counters.get("late", 0)
    by_reason = {Reason[name.upper()]: counters[name] for name in counters if name.upper() in Reason.__members__}
    assert by_reason == {r: reasons.count(r) for r in Reason if r in reasons}
    assert counters["released"] == reasons.count(0) == len(events) - sum(by_reason.values())


@given(in_order, st.integers(1, 3), cuts, st.integers(0, 60), st.booleans(), st.integers(0, 3))
@settings(max_examples=80)
def test_snapshot_and_resume_equals_uninterrupted(
    events: list[Event], z: int, at: list[int], stop: int, sticky: bool, jitter: int
) -> None:
    options = {"sticky": sticky} | ({"threshold": {"jitter": jitter, "period": "5s"}} if jitter else {})
    whole = z_anonymity(z, 5, "path", key=KEY, late=2, **options)
    expected = [v for part in batches(events, at) for v in whole.push_many(*columns(part)).values.to_list()]
    first = z_anonymity(z, 5, "path", key=KEY, late=2, **options)
    head, tail = events[:stop], events[stop:]
    got = first.push_many(*columns(head)).values.to_list() if head else []
    second = z_anonymity(z, 5, "path", key=KEY, late=2, snapshot=first.snapshot(), **options)
    got += [second.push(*e) for e in tail]
    assert got == expected
    assert second.counters == whole.counters


@given(in_order, st.integers(1, 3))
@settings(max_examples=60)
@example([(0.0, "u0", "a"), (1.0, "u0", "a"), (1.0, "u1", "a"), (2.0, "u0", "a")], 2)
@example([(0.0, "u0", "a"), (0.5, "u1", "a"), (0.5, "u0", "a")], 2)
def test_sticky_never_gets_more_precise_and_never_breaks_the_promise(events: list[Event], z: int) -> None:
    plain = oracle(events, z, 5)
    stream = z_anonymity(z, 5, "path", key=KEY, sticky=True)
    last: dict[tuple[str, str], tuple[float, str | None]] = {}
    for (time, who, value), allowed in zip(events, plain, strict=True):
        released = stream.push(time, who, value)
        if released is not None:
            assert allowed is not None
            assert allowed.startswith(released)
        before = last.get((who, value))
        if before is not None and time - before[0] <= 5:
            assert released is None or (before[1] is not None and before[1].startswith(released))
        last[(who, value)] = (time, released)


@given(in_order, st.integers(1, 3), st.integers(1, 5))
@settings(max_examples=60)
def test_a_noisy_threshold_only_withholds_more(events: list[Event], z: int, jitter: int) -> None:
    stream = z_anonymity(z, 5, "path", key=KEY, threshold={"jitter": jitter, "period": "10s"})
    for event, allowed in zip(events, oracle(events, z, 5), strict=True):
        released = stream.push(*event)
        assert released is None or (allowed is not None and allowed.startswith(released))


def test_memory_is_bounded_by_the_window_and_shrinks() -> None:
    stream = z_anonymity(2, 10, key=KEY)
    sizes = []
    for block in range(60):
        n = 5000
        times = block * 100 + np.arange(n) / n
        names = pl.Series([f"u{block}-{i}" for i in range(n)])
        stream.push_many(times, names, names)  # values never seen again
        sizes.append(stream.figures()["bytes"])
    assert max(sizes[5:]) <= max(sizes[:5])
    stream.push_many([1e6, 1e6 + 1], ["a", "b"], ["x", "x"])
    assert stream.figures()["window_events"] == 2
    assert stream.figures()["window_nodes"] == 1
    assert stream.figures()["bytes"] < sizes[-1]


def test_the_memory_ceiling_fails_closed() -> None:
    n = 20_000
    names = pl.Series([f"u{i}" for i in range(n)])
    small = z_anonymity(2, "1h", key=KEY, memory="1MB")
    out = small.push_many(np.arange(n) / 10, names, pl.Series([f"v{i // 2}" for i in range(n)]))
    assert small.counters["full"] > 0
    assert small.figures()["bytes"] <= 1_300_000
    free = z_anonymity(2, "1h", key=KEY).push_many(
        np.arange(n) / 10, names, pl.Series([f"v{i // 2}" for i in range(n)])
    )
    assert all(a is None or a == b for a, b in zip(out.values.to_list(), free.values.to_list(), strict=True))
    # when the window has moved on there is room again
    later = small.push_many([50_000.0, 50_001.0], ["a", "b"], ["x", "x"])
    assert later.values.to_list() == [None, "x"]


@pytest.mark.parametrize("bad", [float("nan"), -1.0, float("inf"), 1e30, None])
def test_unusable_times_people_and_values_are_withheld_and_counted(bad: float | None) -> None:
    stream = z_anonymity(1, 10, key=KEY)
    out = stream.push_many(
        [1.0, bad, 2.0, 2.0, 2.0, 2.0], ["a", "b", None, "c", "d", "e"], ["x", "x", "x", "", None, "x" * 5000]
    )
    assert out.values.to_list() == ["x", None, None, None, None, None]
    assert stream.counters["bad"] == 5
    assert stream.push(bad, "f", "x") is None
    assert stream.push(3.0, "f", "") is None
    assert stream.counters["bad"] == 7
    assert stream.push(3.0, "g", "x") == "x"


@given(disordered, st.sampled_from([0, 3, 8]), cuts)
@settings(max_examples=60)
def test_a_window_by_schedule_decides_alike_however_it_is_cut(events: list[Event], late: int, at: list[int]) -> None:
    """Events of 200 seconds; in their second and fourth minute the window is three times as long."""
    hours = (WindowHours("00:01", "00:02", (), 120), WindowHours("00:03", "00:04", (), 120))
    promise = ZAnonymity(2, 40, hours)
    faster = [(t * 10, u, v) for t, u, v in events]

    def fresh(snapshot: bytes | None = None) -> ZStream:
        return ZStream(promise, PathHierarchy(), late=late * 10, key=KEY, snapshot=snapshot)

    whole, one, cut = fresh(), fresh(), fresh()
    expected = whole.push_many(*columns(faster)).values.to_list() if faster else []
    assert [one.push(*e) for e in faster] == expected
    got: list[str | None] = []
    for part in batches(faster, at):
        got += cut.push_many(*columns(part)).values.to_list()
        cut = fresh(cut.snapshot())
    assert got == expected
    # nothing is released that a re-scan with the window of its time would withhold
    for i, (event, released) in enumerate(zip(faster, expected, strict=True)):
        if released is not None:
            span = int(promise.spans(np.array([int(event[0] * 1e6)]))[0]) / 1e6
            assert support(faster[: i + 1], event[0], released, span) >= 2


def test_a_late_event_has_the_window_of_its_own_time() -> None:
    """The clock stands in a longer window: who was seen there, but not in that of the event, does not count for it."""
    promise = ZAnonymity(2, 40, (WindowHours("00:03", "00:04", (), 120),))
    stream = ZStream(promise, PathHierarchy(), late=80, key=KEY)
    out = stream.push_many([60.0, 180.0, 120.0], ["u1", "u0", "u0"], ["x", "x", "x"])
    assert out.values.to_list() == [None, "x", None]


@pytest.mark.parametrize("odd", [["x"], {"a": 1}, object(), "half \ud800", None, ""])
def test_odd_values_and_people_are_withheld_and_the_stream_goes_on(odd: object) -> None:
    one, many = (z_anonymity(1, 10, "path", key=KEY) for _ in range(2))
    assert one.push(1.0, "a", odd) is None
    assert one.push(2.0, "b", "x") == "x"
    assert many.push_many([1.0], ["a"], [odd]).values.to_list() == [None]
    assert many.push_many([2.0, 3.0], ["b", "c"], ["x", "y"]).values.to_list() == ["x", "y"]
    assert one.counters["bad"] == many.counters["bad"] == 1
    if odd != "":  # somebody may well be called nothing
        assert one.push(3.0, odd, "x") is None
        assert one.push(odd if odd is not None else "soon", "c", "x") is None
        assert one.counters["bad"] == 3


def by_definition(events: list[Event], z: int, window: float) -> list[str | None]:
    """The oracle for plain values and many events in order: per value, when each person showed it last."""
    last: dict[str, dict[str, float]] = {}
    out: list[str | None] = []
    for time, who, value in events:
        shown = last.setdefault(value, {})
        shown[who] = time
        out.append(value if sum(time - window <= at for at in shown.values()) >= z else None)
    return out


@pytest.mark.parametrize("seed", range(3))
def test_nothing_is_forgotten_while_one_person_alone_sends(seed: int) -> None:
    """Hundreds of events at the start, and after each silence, that nobody else confirms until the second person."""
    rng = np.random.default_rng(seed)
    events: list[Event] = []
    now = 0
    while len(events) < 5000:
        who = f"u{rng.integers(3)}"
        for _ in range(rng.integers(1, 900)):
            now += int(rng.integers(0, 3))
            events.append((now / 128, who, f"v{rng.integers(700)}"))
        now += int(rng.choice([0, 0, 128, 128 * 30]))
    expected = by_definition(events, 2, 10)
    many = z_anonymity(2, 10, key=KEY).push_many(*columns(events))
    assert many.values.to_list() == expected
    assert Reason.FUTURE in many.reasons  # longer silences than the window, and more than 256 waited
    one = z_anonymity(2, 10, key=KEY)
    half = len(events) // 2
    assert [one.push(*e) for e in events[:half]] == expected[:half]
    one = z_anonymity(2, 10, key=KEY, snapshot=one.snapshot())
    assert [one.push(*e) for e in events[half:]] == expected[half:]


def test_a_clock_years_ahead_takes_nobodys_place() -> None:
    """All places are full of events that never come true: who is first after a silence is still remembered."""
    stream = z_anonymity(2, 10, key=KEY, memory="1MB")
    stream.push_many([0.0, 0.0], ["a", "b"], ["x", "x"])
    far = [4e9 + 100 * i for i in range(6000)]
    stream.push_many(far, ["odd"] * 6000, [f"w{i}" for i in range(6000)])
    alone = [f"v{i}" for i in range(1500)]
    assert stream.push_many([1000.0] * 1500, ["a"] * 1500, alone).values.null_count() == 1500
    assert stream.push_many([1001.0] * 1500, ["b"] * 1500, alone).values.to_list() == alone
    assert stream.figures()["bytes"] <= 2_000_000


def test_sticky_holds_for_every_event_that_waited() -> None:
    stream = z_anonymity(2, 10, key=KEY, sticky=True)
    values = [f"v{i}" for i in range(1000)]
    assert stream.push_many([1.0] * 1000, ["a"] * 1000, values).values.null_count() == 1000
    assert stream.push_many([2.0] * 1000, ["b"] * 1000, values).values.to_list() == values
    # a was withheld with each of them: a session that began so goes on so
    assert stream.push_many([3.0] * 1000, ["a"] * 1000, values).values.null_count() == 1000

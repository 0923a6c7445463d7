"""Windows on streams: late events as if sorted beforehand, every record one outcome, a resumed run like the whole."""

from __future__ import annotations

import json

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.core.errors import UsageError
from shoal.core.schema import Column, Schema
from shoal.masks import MASKS
from shoal.masks.windows import Assigner, Session, Sliding, Tumbling
from shoal.testing.masks import fixed_ring
from shoal.views.frames import FrameGate
from shoal.views.role_view import RoleView
from shoal.views.windows import WindowGate

S = 1_000_000
KEYS = fixed_ring()
LATE = 6


def cut(window, events):
    """From scratch: all events sorted, and the definition of each kind of window."""
    events = sorted(events)
    out = []
    if isinstance(window, Session):
        gap = int(window.gap[:-1])
        longest = int(window.longest[:-1]) if window.longest else None
        for time, item in events:
            open_ = out and time - out[-1][-1][0] <= gap
            open_ = open_ and (longest is None or time - out[-1][0][0] < longest)
            open_ = open_ and (window.most is None or len(out[-1]) < window.most)
            if open_:
                out[-1].append((time, item))
            else:
                out.append([(time, item)])
    elif isinstance(window.size, str):
        every = int(getattr(window, "every", window.size)[:-1])
        for end in sorted({time // every * every + every for time, _ in events}):
            out.append([e for e in events if end - every <= e[0] < end])
    else:
        every = getattr(window, "every", window.size)
        out = [events[at : at + every] for at in range(0, len(events), every)]
    return [[item for _, item in group] for group in out]


windows = st.one_of(
    st.builds(Tumbling, st.integers(1, 5)),
    st.builds(lambda n: Tumbling(f"{n}s"), st.integers(1, 9)),
    st.builds(lambda a, b: Sliding(max(a, b), min(a, b)), st.integers(1, 5), st.integers(1, 5)),
    st.builds(lambda a, b: Sliding(f"{max(a, b)}s", f"{min(a, b)}s"), st.integers(1, 9), st.integers(1, 9)),
    st.builds(
        lambda g, m, w: Session(f"{g}s", m, f"{w}s" if w else None),
        st.integers(1, 6),
        st.none() | st.integers(1, 4),
        st.none() | st.integers(1, 9),
    ),
)


@st.composite
def late_streams(draw):
    """Times out of order, none later than the bound; equal times only in order of arrival."""
    times = sorted(draw(st.lists(st.integers(0, 60), max_size=25)))
    moved = sorted(range(len(times)), key=lambda i: (times[i] + draw(st.integers(0, LATE)), times[i], i))
    return [(times[i], i) for i in moved]


@given(windows, late_streams())
def test_late_events_give_what_a_sorted_stream_gives(window, stream):
    assigner = Assigner(window, late=LATE * S)
    done = [w for time, item in stream for w in assigner.push(time * S, item)] + assigner.flush()
    # equal times keep their order of arrival, which scratch must know, too
    arrived = {item: at for at, (_, item) in enumerate(stream)}
    by_arrival = sorted(stream, key=lambda e: (e[0], arrived[e[1]]))
    relabel = {item: at for at, (_, item) in enumerate(by_arrival)}
    scratch = cut(window, [(time, relabel[item]) for time, item in stream])
    assert [[relabel[e.item] for e in w.events] for w in done] == scratch
    assert not assigner.too_late
    assert [w.number for w in done] == list(range(len(done)))


@given(windows, late_streams())
def test_a_sliding_window_looks_back_exactly_its_size(window, stream):
    assigner = Assigner(window, late=LATE * S)
    done = [w for time, item in stream for w in assigner.push(time * S, item)] + assigner.flush()
    every = [e for w in done for e in w.events]
    for w in done:
        assert w.context[-len(w.events) :] == w.events
        if isinstance(window, Sliding) and window.size == window.every:
            assert w.context == w.events  # they do not overlap, so not even the last and shorter one looks back
        elif isinstance(window, Sliding) and isinstance(window.size, int):
            until = every.index(w.events[-1]) + 1
            assert w.context == every[max(0, until - window.size) : until]
        elif isinstance(window, Sliding):
            step = int(window.every[:-1]) * S
            end = (w.events[-1].time // step + 1) * step
            low = end - int(window.size[:-1]) * S
            assert w.context == [e for e in every if low <= e.time < end]
        else:
            assert w.context == w.events


def test_a_late_event_joins_extends_and_splits_sessions():
    def sessions(window, times):
        assigner = Assigner(window, late=100 * S)
        for time in times:
            assert assigner.push(time * S, time) == []
        return [[e.item for e in w.events] for w in assigner.flush()]

    assert sessions(Session("10s"), [0, 20, 10]) == [[0, 10, 20]]
    assert sessions(Session("10s"), [10, 40, 5, 48]) == [[5, 10], [40, 48]]
    assert sessions(Session("10s", most=2), [10, 20, 5]) == [[5, 10], [20]]
    assert sessions(Session("10s", longest="15s"), [10, 20, 5]) == [[5, 10], [20]]


def test_an_event_beyond_the_bound_is_in_no_window():
    assigner = Assigner(Tumbling("10s"), late=5 * S)
    assigner.push(100 * S, "a")
    assert assigner.push(94 * S, "b") == []
    assert [e.item for e in assigner.too_late] == ["b"]


SCHEMA = Schema(
    {
        "time": Column("time", type="int", late=f"{LATE}s"),
        "pid": Column("subject", type="int"),
        "age": Column("plain", type="int"),
        "ward": Column("plain", type="str"),
    }
)


def view(window, name="microaggregate", **more):
    mask = MASKS.decode({"use": name, "k": 2, "window": window, **more})
    return RoleView.resolve("nurse", SCHEMA, ["age", "ward"], {"age": mask}, hidden="drop")


specs = st.sampled_from(
    [
        ({"use": "tumbling", "size": 4}, "aggregate", {"function": "mean"}),
        ({"use": "tumbling", "size": "10s"}, "microaggregate", {}),
        ({"use": "session", "gap": "3s"}, "shuffle", {}),
        ({"use": "sliding", "size": "20s", "every": "10s"}, "aggregate", {"function": "median"}),
    ]
)
people = st.lists(st.tuples(st.integers(0, 3), st.none() | st.integers(0, 99)), min_size=25, max_size=25)


def records(stream, who):
    return [json.dumps({"time": t, "pid": who[i][0], "age": who[i][1], "ward": f"w{i}"}).encode() for t, i in stream]


@given(specs, late_streams(), people)
def test_every_record_has_one_outcome_and_small_windows_are_withheld(spec, stream, who):
    window, name, more = spec
    running = WindowGate(view(window, name, **more), KEYS)
    done = [o for r in records(stream, who) for o in running.push(r)] + running.flush()
    assert sorted(o.number for o in done) == list(range(len(stream)))
    assert running.held == 0
    assert all((o.record is None) == bool(o.reason) for o in done)


@given(specs, late_streams(), people)
def test_a_stream_and_a_file_agree(spec, stream, who):
    window, name, more = spec
    rows = records(stream, who)
    chosen = view(window, name, **more)
    running = WindowGate(chosen, KEYS)
    done = [o for r in rows for o in running.push(r)] + running.flush()
    if not rows:
        return
    kinds = {"time": pl.Int64, "pid": pl.Int64, "age": pl.Int64, "ward": pl.String}
    frame = pl.DataFrame([json.loads(r) for r in rows], schema=kinds)
    viewed = FrameGate(chosen, frame.schema, KEYS).apply(frame)
    from_file = dict(zip(viewed.rows.to_list(), viewed.data.to_dicts(), strict=True))
    assert {o.number: json.loads(o.record) for o in done if o.record is not None} == from_file


def test_records_that_waited_for_a_second_witness_keep_their_place():
    """One person alone does not start the clock: their records wait, and stand before the one that started it."""
    chosen = view({"use": "session", "gap": "3s"}, "shuffle")
    rows = records([(0, n) for n in range(4)], [(0, None), (0, None), (0, 0), (1, 0)])
    running = WindowGate(chosen, KEYS)
    done = [o for r in rows for o in running.push(r)] + running.flush()
    assert [o.number for o in done] == [0, 1, 2, 3]
    kinds = {"time": pl.Int64, "pid": pl.Int64, "age": pl.Int64, "ward": pl.String}
    viewed = FrameGate(chosen, pl.Schema(kinds), KEYS).apply(pl.DataFrame([json.loads(r) for r in rows], schema=kinds))
    from_file = dict(zip(viewed.rows.to_list(), viewed.data.to_dicts(), strict=True))
    assert {o.number: json.loads(o.record) for o in done} == from_file


@given(specs, late_streams(), people, st.integers(1, 25))
def test_many_records_at_once_are_decided_as_one_after_the_other(spec, stream, who, size):
    window, name, more = spec
    rows = [*records(stream, who), b"{"]
    one, many = WindowGate(view(window, name, **more), KEYS), WindowGate(view(window, name, **more), KEYS)
    expected = [o for r in rows for o in one.push(r)] + one.flush()
    cuts = range(0, len(rows), size)
    assert sorted([o for at in cuts for o in many.push(*rows[at : at + size])] + many.flush()) == sorted(expected)


@given(specs, late_streams(), people, st.integers(0, 25))
def test_a_resumed_stream_is_like_an_uninterrupted_one(spec, stream, who, at):
    window, name, more = spec
    rows = records(stream, who)
    whole = WindowGate(view(window, name, **more), KEYS)
    expected = [o for r in rows for o in whole.push(r)] + whole.flush()
    first = WindowGate(view(window, name, **more), KEYS)
    made = [o for r in rows[:at] for o in first.push(r)]
    second = WindowGate(view(window, name, **more), KEYS)
    second.restore(first.snapshot())
    assert made + [o for r in rows[at:] for o in second.push(r)] + second.flush() == expected


def test_bad_records_in_a_stream_are_withheld_with_a_reason():
    running = WindowGate(view({"use": "tumbling", "size": 2}), KEYS)
    out = [o for r in (b"{", b'{"time": null}', b'{"time": 5, "age": "Zoe"}') for o in running.push(r)]
    assert [o.reason for o in out] == ["unreadable", "no time", "unreadable"]
    assert all(o.record is None for o in out)


@pytest.mark.parametrize("subject", [True, False])
def test_one_absurd_time_closes_no_window_where_a_bound_is_declared(subject):
    columns = {"time": Column("time", ahead="1h"), "age": Column("plain", type="int")}
    columns |= {"pid": Column("subject")} if subject else {}
    mask = MASKS.decode({"use": "aggregate", "function": "mean", "k": 2, "window": {"use": "tumbling", "size": "10s"}})
    running = WindowGate(RoleView.resolve("r", Schema(columns), ["age"], {"age": mask}), KEYS)

    def push(time, who):
        return running.push(json.dumps({"time": time, "age": 30, "pid": who}).encode())

    assert push(1000, "a") == []
    assert push(9e9, "b") == []  # it waits aside
    assert push(1001, "c") == []  # the window is still open
    running.restore(running.snapshot())
    published = push(9e9 + 5, "d")  # two people agree
    assert [o.record is not None for o in published] == [True, True]
    for absurd in ("1e300", "-1e300", "1e308", "99999999999999999999999"):
        assert [o.reason for o in running.push(b'{"time": %s, "age": 3, "pid": "e"}' % absurd.encode())] == ["no time"]
    running.snapshot()


def test_a_window_of_fewer_people_than_k_is_not_published_as_the_mean_of_two():
    chosen = view({"use": "tumbling", "size": 4}, "aggregate", k=3)
    running = WindowGate(chosen, KEYS)
    rows = [{"time": t, "pid": t % 2, "age": 30 + t, "ward": "a"} for t in range(4)]
    done = [o for r in rows for o in running.push(json.dumps(r).encode())] + running.flush()
    assert [o.reason for o in done] == ["too few people in its window"] * 4


def test_windows_that_cannot_be():
    for wrong in (lambda: Tumbling(0), lambda: Sliding(2, 3), lambda: Sliding("2s", 1), lambda: Session("x")):
        with pytest.raises(UsageError):
            wrong()
    with pytest.raises(UsageError, match="slide"):
        MASKS.decode("shuffle").__class__(window=Sliding(4, 2))
    with pytest.raises(UsageError, match="one and the same"):
        WindowGate(RoleView.resolve("a", SCHEMA, ["age"], {"age": MASKS.decode("shuffle")}), KEYS)

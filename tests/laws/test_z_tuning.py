"""Self-tuning and noise: determinism, the floor, honest decisions, and a slow twin of p_k."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.core.errors import UsageError
from shoal.measures.entropy import entropy, group_people, k_share
from shoal.streams.noise import Noise
from shoal.streams.tuning import Evaluation, Goal, search
from shoal.streams.z_stream import ZStream, z_anonymity

KEY = b"another key of thirty-two bytes.."
rows = st.lists(
    st.tuples(st.integers(0, 5), st.integers(1, 4), st.integers(5, 6), st.integers(0, 4), st.integers(0, 6))
)


def slow_sizes(rows: list[tuple[int, int, int, int, int]], z: int, people: int) -> tuple[list[int], int]:
    sets: list[frozenset[int]] = []
    for person in range(people):
        mine = set()
        for who, leaf, parent, c0, c1 in rows:
            if who == person and c0 >= z:
                mine.add(leaf)
            elif who == person and c1 >= z:
                mine.add(parent)
        sets.append(frozenset(mine))
    return [sets.count(s) if s else 0 for s in sets], sum(not s for s in sets)


@given(rows, st.integers(1, 7), st.integers(1, 4))
def test_groups_by_exact_sets_beside_their_slow_twin(
    rows: list[tuple[int, int, int, int, int]], z: int, k: int
) -> None:
    people = np.array([r[0] for r in rows], np.int32)
    chains = np.array([[r[1], r[2]] for r in rows], np.int64).reshape(-1, 2)
    counts = np.array([[r[3], r[4]] for r in rows], np.int32).reshape(-1, 2)
    sizes, empty = group_people(people, chains, counts, z, 64, 6)
    expected, none = slow_sizes(rows, z, 6)
    assert (sizes.tolist(), empty) == (expected, none)
    hidden = sum(s >= k for s in expected) + (none if none >= k else 0)
    assert k_share(sizes, empty, k) == hidden / 6
    groups = {}
    for s in expected:
        groups[s] = groups.get(s, 0) + 1
    alive = 6 - none
    h = -sum(count / alive * np.log2(size / alive) for size, count in groups.items() if size)
    assert entropy(sizes) == pytest.approx(h)


def crowd(n: int, seed: int, users: int = 200, leaves: int = 60) -> tuple[list[float], list[str], list[str]]:
    rng = np.random.default_rng(seed)
    times = np.sort(rng.uniform(0, 20_000, n)).tolist()
    return (
        times,
        [f"u{i}" for i in rng.integers(0, users, n)],
        [f"{i % 4}.{i % 12}.{i}" for i in rng.integers(0, leaves, n)],
    )


@pytest.mark.parametrize("by", ["search", "incremental", "model"])
@pytest.mark.parametrize("seed", [0, 1])
def test_tuned_streams_decide_alike_however_they_are_cut_or_resumed(by: str, seed: int) -> None:
    times, people, values = crowd(3000, seed)
    tune = {"goal": {"k": 3, "probability": 0.7}, "every": "10m", "by": by, "start": 4, "learn": by == "search"}
    whole = z_anonymity(2, "1h", "path", key=KEY, tune=tune)
    expected = whole.push_many(times, people, values).values.to_list()
    parts = z_anonymity(2, "1h", "path", key=KEY, tune=tune)
    got: list[str | None] = []
    for at in range(0, 3000, 217):
        got += parts.push_many(times[at : at + 217], people[at : at + 217], values[at : at + 217]).values.to_list()
        if at in (217 * 4, 217 * 9):  # stop anywhere, also in the middle of an evaluation
            parts = z_anonymity(2, "1h", "path", key=KEY, tune=tune, snapshot=parts.snapshot())
    assert got == expected
    assert parts.decisions == whole.decisions
    assert len(whole.decisions) >= 5
    assert all(d.z >= 2 and 0 <= d.p <= 1 and d.effect > d.time for d in whole.decisions)
    one = z_anonymity(2, "1h", "path", key=KEY, tune=tune)
    assert [one.push(*e) for e in zip(times[:900], people[:900], values[:900], strict=True)] == expected[:900]


def test_search_returns_a_z_that_was_seen_to_reach_the_goal() -> None:
    rng = np.random.default_rng(4)
    for _ in range(20):
        m = 300
        chains = rng.integers(1, 40, (m, 1))
        counts = rng.integers(1, 30, 40).astype(np.int32)[chains]
        evaluation = Evaluation((rng.integers(1, 60, m), chains, counts), Goal(3, 0.6), True, 64)
        steps = search(evaluation, 2, 1000)
        while True:
            try:
                next(steps)
            except StopIteration as end:
                z, p, reached = end.value
                break
        assert p == evaluation.p(z)
        assert reached == (p >= 0.6)
        assert z >= 2


def test_a_profile_lifts_z_before_the_rush() -> None:
    times, people, values = crowd(1500, 3)
    profile = [{"from": "00:00", "to": "24:00", "z": 9}]
    tune = {"goal": {"k": 2, "probability": 0.1}, "every": "10m", "profile": profile}
    stream = z_anonymity(2, "1h", "path", key=KEY, tune=tune)
    stream.push_many(times, people, values)
    assert stream.z == 9
    assert min(d.z for d in stream.decisions) == 9


def test_floors_by_the_hour_hold() -> None:
    stream = z_anonymity(1, "1h", key=KEY, floors=[{"from": "01:00", "to": "02:00", "z": 3}])
    out = stream.push_many([0, 1, 3600, 3601, 3602, 7200, 7201], list("abcdefg"), ["x"] * 7)
    assert [v is not None for v in out.values] == [True, True, True, True, True, True, True]
    lonely = z_anonymity(1, "10m", key=KEY, floors=[{"from": "01:00", "to": "02:00", "z": 3}])
    out = lonely.push_many([0, 3600, 3601, 3602, 7300, 7301], list("abcdef"), ["x"] * 6)
    assert [v is not None for v in out.values] == [True, False, False, True, False, True]


def test_a_longer_window_at_night_remembers_longer() -> None:
    from shoal.promises.z_anonymity import WindowHours, ZAnonymity

    night = ZAnonymity(2, "10m", (WindowHours("22:00", "06:00", (), "2h"),))
    stream = ZStream(night, key=KEY)
    day = 12 * 3600
    late = 23 * 3600
    out = stream.push_many([day, day + 1800, late, late + 1800], list("abcd"), ["x"] * 4)
    assert [v is not None for v in out.values] == [False, False, False, True]


@given(st.integers(0, 50), st.booleans(), st.integers(2, 6))
@settings(max_examples=40)
def test_noise_invents_only_recent_people_of_the_category(seed: int, count: bool, z: int) -> None:
    times, people, values = crowd(400, seed, users=40, leaves=30)
    stream = z_anonymity(z, "1h", "path", key=KEY, noise={"most": 2, "count": count}, allow_noise=True)
    out = stream.push_many(times, people, values)
    plain = z_anonymity(z, "1h", "path", key=KEY).push_many(times, people, values)
    per_event: dict[int, list[str]] = {}
    for event, who, what in out.fakes:
        per_event.setdefault(event, []).append(who)
        assert what == values[event]
        shown = [i for i in range(event) if people[i] == who and times[i] >= times[event] - 3600]
        assert any(values[i].rsplit(".", 1)[0] == values[event].rsplit(".", 1)[0] for i in shown)
        if not count:
            assert not any(values[i] == values[event] for i in shown)
    for event, fakes in per_event.items():
        assert 1 <= len(fakes) <= 2
        assert len(set(fakes)) == len(fakes)
        assert people[event] not in fakes
        assert out.levels[event] == 0
    # without counting, real counts are the same: noise only adds detail
    if not count:
        assert all(a == b or a == 0 for a, b in zip(out.levels.tolist(), plain.levels.tolist(), strict=True))
    if out.fakes:
        assert stream.figures()["least_real"] < z
        assert stream.figures()["least_real"] >= (1 if count else z - 2)  # counted fakes may outlive real people
    again = z_anonymity(z, "1h", "path", key=KEY, noise={"most": 2, "count": count}, allow_noise=True)
    first = again.push_many(times[:200], people[:200], values[:200])
    resumed = z_anonymity(
        z, "1h", "path", key=KEY, noise={"most": 2, "count": count}, allow_noise=True, snapshot=again.snapshot()
    )
    rest = resumed.push_many(times[200:], people[200:], values[200:])
    assert first.fakes + [(e + 200, w, v) for e, w, v in rest.fakes] == out.fakes


def test_counted_noise_invents_less() -> None:
    times, people, values = crowd(4000, 9, users=150, leaves=80)
    fakes = {}
    for count in (False, True):
        stream = z_anonymity(12, "1h", "path", key=KEY, noise={"most": 0.5, "count": count}, allow_noise=True)
        fakes[count] = len(stream.push_many(times, people, values).fakes)
    assert 0 < fakes[True] < fakes[False]


def test_noise_must_be_allowed() -> None:
    with pytest.raises(Exception, match="allow_noise"):
        z_anonymity(3, "1h", noise={"most": 1})
    with pytest.raises(UsageError, match="most"):
        Noise(1.5)

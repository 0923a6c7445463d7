"""Self-tuning and noise: determinism, the floor, honest decisions, and a slow twin of p_k."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.core.errors import UsageError
from shoal.datasets.streams import day_and_night, ranked
from shoal.datasets.streams import stream as generated
from shoal.experiments.z_data import real
from shoal.measures.entropy import entropy, group_people, k_share
from shoal.streams.noise import Noise
from shoal.streams.steering import Evaluation, Goal, search
from shoal.streams.tuning import Tune
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


def released_p(times: list[float], people: list[str], released: list[str | None], now: float, k: int) -> float:
    """p_k of what was released within the hour up to ``now``, by definition."""
    sets: dict[str, set[str]] = {}
    for time, who, value in zip(times, people, released, strict=True):
        if now - 3600 < time <= now:
            sets.setdefault(who, set()).update([value] if value is not None else [])
    same = [frozenset(s) for s in sets.values()]
    return sum(same.count(s) >= k for s in same) / len(same) if same else 1.0


@pytest.mark.parametrize("by", ["search", "incremental", "model"])
@pytest.mark.parametrize("one_by_one", [False, True])
def test_a_decision_tells_the_p_of_what_was_really_released(by: str, one_by_one: bool) -> None:
    times, people, values = crowd(2500, 5)
    times = np.round(times, 3).tolist()
    tune = {"goal": {"k": 3, "probability": 0.7}, "every": "10m", "by": by, "start": 4}
    stream = z_anonymity(2, "1h", "path", key=KEY, tune=tune)
    if one_by_one:
        out = [stream.push(*event) for event in zip(times, people, values, strict=True)]
    else:
        out = stream.push_many(times, people, values).values.to_list()
    assert len(stream.decisions) > 20
    for decision in stream.decisions:
        before = decision.time / 1e6
        # what is decided at that very moment comes after the decision
        until = sum(t < before - 1e-9 for t in times)
        p = released_p(times[:until], people[:until], out[:until], before, 3)
        assert decision.p == pytest.approx(p)
        assert decision.reached == (decision.p >= 0.7)


def slow_levels(times: list[float], people: list[str], values: list[str]) -> list[list[tuple[str, int]]]:
    """Per event its labels, most specific first, and how many people of the hour show each at that moment."""
    out = []
    for at, (now, value) in enumerate(zip(times, values, strict=True)):
        steps = value.split(".")
        hour = [i for i in range(at + 1) if times[i] >= now - 3600]
        labels = [".".join(steps[:n]) for n in range(len(steps), 0, -1)]
        out.append([(w, len({people[i] for i in hour if f"{values[i]}.".startswith(f"{w}.")})) for w in labels])
    return out


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_search_as_published_beside_its_slow_twin_on_a_stream(seed: int) -> None:
    """``correct: false``: each decision is what the last hour alone asks for, whatever was missed before."""
    times, people, values = crowd(700, seed, users=60, leaves=24)
    times = np.round(times, 3).tolist()
    tune = {"goal": {"k": 3, "probability": 0.7}, "every": "20m", "correct": False}
    stream = z_anonymity(1, "1h", "path", key=KEY, tune=tune)
    stream.push_many(times, people, values)
    shown = slow_levels(times, people, values)

    def p(now: float, z: int) -> float:
        sets: dict[str, set[str]] = {}
        for at, time in enumerate(times):
            if now - 3600 <= time < now - 1e-9:
                fit = [label for label, count in shown[at] if count >= z]
                sets.setdefault(people[at], set()).update(fit[:1])
        same = [frozenset(s) for s in sets.values()]
        return sum(same.count(s) >= 3 for s in same) / len(same)

    assert len(stream.decisions) > 10
    for decision in stream.decisions:
        now = decision.time / 1e6
        assert decision.expected == pytest.approx(p(now, decision.z))
        if decision.reachable and decision.z > 1:
            assert decision.expected >= 0.7 > p(now, decision.z - 1)


def independent(events: int, people: int, values: int, categories: int) -> pl.DataFrame:
    """People without habits: who shows what and when is drawn anew for every event."""
    rng = np.random.default_rng(0)
    who, what = ranked(rng, events, people, 0.5), ranked(rng, events, values, 1.1)
    kinds = np.concatenate([np.arange(categories), ranked(rng, values - categories, categories, 0.7)])
    kind = rng.permutation(kinds)[what]
    value = [f"d{k}.{site}" for k, site in zip(kind.tolist(), what.tolist(), strict=True)]
    when = np.floor(day_and_night(rng, events, (0, 24)))
    return pl.DataFrame({"time": when, "subject": pl.Series(who).cast(pl.String), "value": value})


STREAMS = {
    "dense": (lambda: independent(330_000, 234, 824, 83), 20.0),
    "domains": (lambda: generated("domains", 0.05), 20.0),
    "sparse": (lambda: generated("ecommerce", 0.03), 20.0),
    "quiet night": (lambda: generated("positions", 0.06), 30.0),
}


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize(("k", "goal"), [(2, 0.8), (3, 0.85)])
def test_the_goal_is_held_within_two_hundredths_at_four_of_five_marks(name: str, k: int, goal: float) -> None:
    """Measured by ``watch``, beside the tuner; or the tuner says that no z can do it."""
    make, hours = STREAMS[name]
    frame = make()
    frame = frame.filter(frame["time"] < hours * 3600)
    stream = z_anonymity(1, "1h", "path", key=KEY, tune={"goal": {"k": k, "probability": goal}, "every": "30m"})
    watch = stream.watch("15m", k)
    for at in range(0, frame.height, 8192):
        part = frame[at : at + 8192]
        stream.push_many(part["time"], part["subject"], part["value"])
    marks = [row for row in watch.finish() if row["time"] >= frame["time"][0] + 1.5 * 3600]
    lost = {d.effect // 900_000_000 for d in stream.decisions if not d.reachable}
    held = [row["p_k"] >= goal - 0.02 for row in marks if row["time"] // 900 not in lost]
    assert len(held) > 40
    assert sum(held) >= 0.8 * len(held)
    released = stream.counters["released"] / stream.counters["events"]
    assert released > 0.4  # not by releasing nothing


@pytest.mark.parametrize("by", ["search", "incremental", "model"])
def test_nobody_in_the_window_changes_no_z(by: str) -> None:
    tune = {"goal": {"k": 2, "probability": 0.8}, "every": "10m", "by": by, "start": 5}
    stream = z_anonymity(1, "5m", "path", key=KEY, tune=tune)
    for at in range(6):  # each comes when all before are gone
        stream.push(at * 3600.0, f"u{at % 2}", "a.b")
    assert {d.people for d in stream.decisions} <= {0, 1}
    assert all(d.z == 5 for d in stream.decisions if d.people == 0)


def test_a_quiet_hour_does_not_wind_up_z() -> None:
    """With one person no z reaches the goal: it is said, and z stays where more would change nothing."""
    tune = {"goal": {"k": 3, "probability": 0.8}, "every": "10s", "by": "incremental", "proportional": True}
    stream = z_anonymity(2, "2m", "path", key=KEY, tune=tune)
    rng = np.random.default_rng(2)
    times = [*np.linspace(0, 600, 3000), *np.linspace(601, 4200, 600), *np.linspace(4201, 5400, 6000)]
    people = [f"u{i}" for i in [*rng.integers(0, 60, 3000), *[0] * 600, *rng.integers(0, 60, 6000)]]
    values = [f"{i}" for i in rng.integers(0, 3, len(times))]
    out = stream.push_many(times, people, values).values
    quiet = [d for d in stream.decisions if 1000e6 < d.time < 4100e6]
    assert not any(d.reachable or d.reached for d in quiet)
    assert max(d.z for d in quiet) <= 2
    assert out[-4000:].null_count() < 2000


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
                z, p, reached, lower = end.value
                break
        assert p == evaluation.p(z)
        assert lower is None or lower == evaluation.p(z - 1) < 0.6
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


def test_what_was_learned_of_an_hour_holds_when_it_returns_and_just_before() -> None:
    tuner = Tune(every="30m", learn=True).start(2)
    calm, busy = 3 * 3600, 4 * 3600
    tuner.learned[tuner._hour(busy * 1_000_000)] = 50
    day = 86400
    assert tuner._expected(calm * 1_000_000) == 0
    assert tuner._expected((calm + 1800) * 1_000_000) == 50  # the next decision comes when it is busy
    assert tuner._expected((busy + 600) * 1_000_000) == 50
    assert tuner._expected((busy + day) * 1_000_000) == 50  # another day, of which nothing is known
    tuner.learned[tuner._hour((busy + day) * 1_000_000)] = 7
    assert tuner._expected((busy + day) * 1_000_000) == 7
    rest = Tune(every="30m", learn=True).start(2)
    rest.restore(tuner.state())
    assert (rest.learned == tuner.learned).all()


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


Row = tuple[float, str, list[str], bool]  # when, who, the labels shown, whether invented


def slow_noise(
    events: list[tuple[float, str, str]], z: int, most: int, count: bool
) -> tuple[list[str | None], list[tuple[int, str, str]], int | None]:
    """Algorithm 5 by re-scanning everything: released labels, fakes in order, the fewest real people of a release."""
    rows: list[Row] = []
    released: list[str | None] = []
    fakes: list[tuple[int, str, str]] = []
    least: int | None = None
    for at, (time, who, value) in enumerate(events):
        steps = value.split(".")
        labels = [".".join(steps[:n]) for n in range(len(steps), 0, -1)]
        rows.append((time, who, labels, False))
        rows = [r for r in rows if r[0] >= time - 3600]
        shown = {label: {r[1] for r in rows if label in r[2]} for label in labels}
        real = {label: {r[1] for r in rows if label in r[2] and not r[3]} for label in labels}
        fit = [label for label in labels if len(shown[label]) >= z]
        missing = z - len(shown[value])
        chosen: list[str] = []
        if 0 < missing <= most:
            for _, other, theirs, _ in reversed(rows):
                if labels[1] in theirs and other not in shown[value] and other not in chosen:
                    chosen.append(other)
        if 0 < missing <= most and len(chosen) >= missing:
            fit = [value]
            fakes += [(at, other, value) for other in chosen[:missing]]
            if count:
                rows += [(time, other, [value], True) for other in chosen[:missing]]
        released.append(fit[0] if fit else None)
        if fit:
            least = min(len(real[fit[0]]), least if least is not None else len(events))
    return released, fakes, least


@given(st.integers(0, 10_000), st.booleans(), st.integers(2, 7), st.integers(1, 4))
@settings(max_examples=25)
def test_noise_beside_a_re_scan_by_algorithm_5(seed: int, count: bool, z: int, most: int) -> None:
    events = list(zip(*crowd(300, seed, users=40, leaves=30), strict=True))
    times, people, values = (list(c) for c in zip(*events, strict=True))
    options = {"noise": {"most": most, "count": count}, "allow_noise": True}
    stream = z_anonymity(z, "1h", "path", key=KEY, **options)
    out = stream.push_many(times, people, values)
    released, fakes, least = slow_noise(events, z, most, count)
    assert out.values.to_list() == released
    assert out.fakes == fakes
    assert stream.figures()["least_real"] == least
    again = z_anonymity(z, "1h", "path", key=KEY, **options)
    first = again.push_many(times[:150], people[:150], values[:150])
    resumed = z_anonymity(z, "1h", "path", key=KEY, snapshot=again.snapshot(), **options)
    rest = resumed.push_many(times[150:], people[150:], values[150:])
    assert first.fakes + [(e + 150, w, v) for e, w, v in rest.fakes] == fakes


@pytest.mark.shared
@pytest.mark.parametrize("count", [False, True])
def test_noise_on_the_real_shop_beside_a_re_scan(shared: Path, count: bool) -> None:
    """Every 25th event of three real hours: windows end, and values are as common as they really are."""
    frame = real(shared)["ecommerce, real"].gather_every(25)
    events = frame.select("time", "subject", "value").rows()
    stream = z_anonymity(4, "1h", "path", key=KEY, noise={"most": 2, "count": count}, allow_noise=True)
    out = stream.push_many(frame["time"], frame["subject"], frame["value"])
    released, fakes, least = slow_noise(events, 4, 2, count)
    assert len(fakes) > 20
    assert out.values.to_list() == released
    assert out.fakes == fakes
    assert stream.figures()["least_real"] == least


@given(st.integers(5, 12), st.integers(2, 8), st.integers(0, 100))
@settings(max_examples=10)
def test_noise_looks_back_over_the_whole_window(others: int, most: int, seed: int) -> None:
    """People of the category are found however many events of others came since; too few are never named."""
    rng = np.random.default_rng(seed)
    order = [f"p{i}" for i in rng.permutation(others)]
    rest = 6000
    times = np.arange(others + rest + 1) / 10
    people = [*order, *[f"q{i}" for i in rng.integers(0, 50, rest)], "me"]
    values = [*[f"a.{who}" for who in order], *[f"b.{i}" for i in rng.integers(0, 300, rest)], "a.new"]
    stream = z_anonymity(most + 1, "1h", "path", key=KEY, noise={"most": most}, allow_noise=True)
    out = stream.push_many(times, people, values)
    mine = [(event, who, value) for event, who, value in out.fakes if event == others + rest]
    expected = [(others + rest, who, "a.new") for who in reversed(order)][:most] if others >= most else []
    assert mine == expected
    assert out.values[-1] == ("a.new" if expected else "a" if others + 1 > most else None)


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

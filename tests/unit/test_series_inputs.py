"""Curves in other forms: panels, lists, unequal lengths, uneven times, time zones; DTW beside correlation."""

from __future__ import annotations

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shoal
from shoal.core.errors import InputError, UsageError
from shoal.measures.series import warped_distance
from shoal.promises.kp_anonymity import KPAnonymity, judge_curves
from shoal.series.long import from_long
from shoal.series.release import anonymize_series
from shoal.series.sax import Sax

METERS = np.random.default_rng(3).normal(size=(30, 12, 2)).cumsum(axis=1).round(2) * [1, 1000]


def long_panel(values):
    n, instants, _ = values.shape
    return pl.DataFrame(
        {
            "id": np.repeat(np.arange(n), instants),
            "at": np.tile(np.arange(instants), n),
            "kwh": values[:, :, 0].ravel(),
            "gas": values[:, :, 1].ravel(),
        }
    )


@pytest.mark.parametrize("pattern", ["sax", "auto", "shapelets"])
@pytest.mark.parametrize("method", ["kapra", "banded", "naive"])
def test_a_panel_is_released_alike_as_array_and_as_long_table(pattern, method):
    array = anonymize_series(METERS, k=6, p=3, pattern=pattern, method=method)
    long = anonymize_series(
        long_panel(METERS), k=6, p=3, id="id", time="at", value=["kwh", "gas"], pattern=pattern, method=method
    )
    assert array.data.low.shape == (len(array.rows), 12, 2)
    truth = METERS[array.rows]
    assert (array.data.low <= truth).all()
    assert (truth <= array.data.high).all()
    assert long.data.columns == [
        "series",
        "group",
        "at",
        "kwh_low",
        "kwh_high",
        "gas_low",
        "gas_high",
        "pattern",
        "level",
    ]
    assert np.array_equal(long.data["gas_low"].to_numpy().reshape(-1, 12), array.data.low[:, :, 1])
    for frame in (long.data, long.frame(), array.frame()):
        findings, records = judge_curves(frame, KPAnonymity(6, 3))
        assert all(f.kept for f in findings)
        assert records == len(array.rows)
    # envelopes that differ in one of the values are not one group
    shown = long.data.with_columns(gas_low=pl.col("gas_low") + (pl.col("series") == 0))
    assert not all(f.kept for f in judge_curves(shown.drop("group"), KPAnonymity(6, 3))[0])
    for at in (0, 5):  # the words of both values, each its own
        level = list(array.encoded.levels).index(int(array.data.level[at]))
        words = [part.encode(np.ascontiguousarray(METERS[:, :, v])) for v, part in enumerate(array.pattern.parts)]
        row = array.rows[at]
        assert array.data.pattern[at] == " ".join(w.texts(w.codes[level])[row] for w in words)
        rebuilt = array.pattern.rebuild(int(array.data.level[at]), [array.data.pattern[at]])
        assert array.pattern.stretch(rebuilt, 24).shape == (1, 24)


def test_the_unit_of_one_value_does_not_decide_the_groups_of_a_panel():
    one = anonymize_series(METERS, k=6, p=3)
    other = anonymize_series(METERS * [1000, 1], k=6, p=3)
    assert np.array_equal(one.rows, other.rows)
    assert np.array_equal(one.data.group, other.data.group)


@settings(max_examples=15)
@given(st.lists(st.integers(2, 9), min_size=8, max_size=14), st.sampled_from(["stretch", "previous", "zero", "drop"]))
def test_lists_of_unequal_lengths_are_completed_by_a_rule(lengths, rule):
    rng = np.random.default_rng(0)
    rows = [rng.integers(0, 50, n).tolist() for n in lengths]
    frame = pl.DataFrame({"who": range(len(rows)), "load": rows, "s": ["x"] * len(rows)})
    how = {"k": 2, "p": 2, "missing": rule}
    longest = max(lengths)
    full = sum(n == longest for n in lengths)
    if rule == "drop" and full < 2:
        return
    by_frame = anonymize_series(frame, id="who", value="load", sensitive=["s"], **how)
    by_rows = anonymize_series(rows, **how)
    assert by_frame.frame().drop("s").equals(by_rows.frame().select(by_frame.frame().drop("s").columns)) or (
        by_frame.curves.whole != by_rows.curves.whole
    )
    assert np.array_equal(by_frame.curves.values, by_rows.curves.values)
    assert by_frame.curves.values.shape == (full if rule == "drop" else len(rows), longest)
    if rule == "stretch":  # the ends stay, the middle is run through more slowly
        for row, curve in zip(rows, by_frame.curves.values, strict=True):
            assert (curve[0], curve[-1]) == (row[0], row[-1])
            assert curve.max() <= max(row)


def test_unequal_lengths_without_a_rule_and_wrong_lists_are_refused():
    with pytest.raises(InputError, match="found 1 in row 2") as error:
        anonymize_series([[1, 2], [1]], k=1, p=1)
    assert "stretch" in str(error.value)
    with pytest.raises(InputError, match="expected lists of numbers"):
        anonymize_series(pl.DataFrame({"v": ["a", "b"]}), k=1, p=1, value="v")
    with pytest.raises(InputError, match="three of a panel"):
        anonymize_series(np.zeros((2, 2, 2, 2)), k=1, p=1)


def test_gaps_between_uneven_times_are_filled_by_time():
    rows = [(0, 0, 0.0), (0, 1, 10.0), (0, 10, 100.0), (1, 0, 0.0), (1, 10, 100.0), (1, 1, None)]
    frame = pl.DataFrame(rows, schema=["id", "t", "v"], orient="row")
    curves = from_long(frame, id="id", time="t", value="v", missing="interpolate")
    assert curves.values.tolist() == [[0, 10, 100], [0, 10, 100]]


def test_days_of_a_zone_are_its_own_days_also_when_clocks_change():
    berlin = ZoneInfo("Europe/Berlin")
    start = datetime(2024, 3, 30, tzinfo=berlin).astimezone(ZoneInfo("UTC"))
    hours = [start + timedelta(hours=h) for h in range(71)]  # three days, the second has 23 hours
    frame = pl.DataFrame({"id": [i for i in range(4) for _ in hours], "at": hours * 4, "v": 1.0})
    curves = from_long(frame, id="id", time="at", value="v", every="1d", aggregate="count", zone="Europe/Berlin")
    assert curves.values.tolist() == [[24, 23, 24]] * 4
    text = frame.with_columns(pl.col("at").dt.strftime("%FT%T+00:00"))
    same = from_long(text, id="id", time="at", value="v", every="1d", aggregate="count", zone="Europe/Berlin")
    assert same.values.tolist() == curves.values.tolist()
    utc = from_long(text, id="id", time="at", value="v", every="1d", aggregate="count")
    assert utc.values.tolist() == [[1, 24, 24, 22]] * 4
    for zone, times in (
        ("Nowhere/Town", frame),
        ("Europe/Berlin", frame.with_columns(pl.col("at").dt.replace_time_zone(None))),
    ):
        with pytest.raises(UsageError, match="zone"):
            from_long(times, id="id", time="at", value="v", every="1d", zone=zone)


def test_hours_of_a_zone_are_told_apart_when_clocks_go_back():
    start = datetime(2024, 10, 26, 22, tzinfo=ZoneInfo("UTC"))
    times = [start + timedelta(hours=h) for h in range(6)]
    frame = pl.DataFrame({"id": [0] * 6 + [1] * 6, "at": times * 2, "v": list(range(6)) * 2})
    curves = from_long(frame, id="id", time="at", value="v", every="1h", zone="Europe/Berlin")
    assert curves.values.tolist() == [list(range(6))] * 2


@settings(max_examples=25)
@given(st.integers(2, 7), st.integers(0, 6), st.integers(0, 99))
def test_warping_is_the_best_of_all_alignments(instants, band, seed):
    rng = np.random.default_rng(seed)
    series, query = rng.normal(size=(3, instants)), rng.normal(size=instants)

    def normal(x):
        return (x - x.mean()) / x.std()

    def best(a, b, i, j):
        if abs(i - j) > band or i < 0 or j < 0:
            return np.inf
        gap = (a[i] - b[j]) ** 2
        return gap if i == j == 0 else gap + min(best(a, b, i - 1, j), best(a, b, i, j - 1), best(a, b, i - 1, j - 1))

    slow = [best(normal(row), normal(query), instants - 1, instants - 1) ** 0.5 for row in series]
    assert warped_distance(series, query, band) == pytest.approx(slow)


def test_similar_curves_may_be_shifted_if_one_allows_it():
    bump = np.exp(-((np.arange(24) - 8.0) ** 2) / 8)
    curves = np.concatenate([np.roll(np.tile(bump, (10, 1)), 3, axis=1), np.tile(bump[::-1], (10, 1))])
    release = anonymize_series(curves, k=10, p=10, pattern=Sax(word=24))
    found, _ = release.released().similar(bump, 10, warp=4)
    assert sorted(release.rows[found].tolist()) == list(range(10))


POLICY = """
columns:
  meter: subject
  name: identifier
  at: {role: time, unit: s}
  kwh: quasi
  gas: quasi
  area: sensitive
views:
  research:
    show: [at, kwh, gas, area]
    promises: [{use: kP-anonymity, k: 6, p: 3}, {use: l-diversity, l: 2, column: area}]
  wide:
    show: [kwh, area]
    promises: [{use: kP-anonymity, k: 6, p: 3}]
"""


def test_a_policy_releases_and_verifies_a_long_table(tmp_path):
    policy = tmp_path / "meters.yaml"
    policy.write_text(POLICY)
    frame = long_panel(METERS).rename({"id": "meter"})
    area = pl.Series(["n", "s", "e"] * 10).gather(frame["meter"])
    frame = frame.with_columns(pl.col("meter").cast(pl.String), name=pl.lit("x"), area=area)
    release = shoal.anonymize(frame, policy=str(policy), view="research", seed=1)
    assert release.report.verified
    assert set(release.data.columns) == {
        "series", "group", "at", "kwh_low", "kwh_high", "gas_low", "gas_high", "pattern", "level", "area",
    }  # fmt: skip
    assert shoal.verify(release.data, policy=str(policy), view="research")
    leaked = release.data.with_columns(name=pl.lit("Ott"))
    with pytest.raises(UsageError, match="expected one time column"):  # a column that nobody declared to be shown
        shoal.verify(leaked, policy=str(policy), view="research")
    broken = release.data.filter(pl.col("series") != 0)
    assert shoal.verify(broken, policy=str(policy), view="research", k=6).rows == release.data["series"].n_unique() - 1
    half = shoal.anonymize(frame, policy=str(policy), view="research", every=2, seed=1)
    assert half.data["at"].n_unique() == 6

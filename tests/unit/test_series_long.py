"""Long releases are judged like wide ones; sensitive values of any kind; times that lie far from all others."""

from __future__ import annotations

import datetime as dt

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.core.errors import InputError, UsageError
from shoal.promises.kp_anonymity import KPAnonymity, alike, from_long, judge_curves
from shoal.promises.l_diversity import LDiversity
from shoal.series.release import anonymize_series

CURVES = np.random.default_rng(4).normal(size=(40, 6)).cumsum(axis=1)


def long_table(values=CURVES):
    n, m = values.shape
    rows = {"who": np.repeat(np.arange(n), m), "at": np.tile(np.arange(m), n), "watts": values.ravel()}
    return pl.DataFrame(rows).with_columns(kind=pl.col("who") % 4).sample(fraction=1, shuffle=True, seed=3)


def long_release(**more):
    return anonymize_series(long_table(), id="who", time="at", value="watts", sensitive=["kind"], k=8, p=3, **more)


def test_a_long_release_is_judged_like_the_wide_one():
    release = long_release(l=2)
    about = [LDiversity(2, "kind", kind="frequency")]
    wide = judge_curves(release.frame(), KPAnonymity(8, 3), about, sensitive=["kind"])
    long = judge_curves(release.data, KPAnonymity(8, 3), about, sensitive=["kind"])
    assert long == wide
    assert all(finding.kept for finding in long[0])
    assert not judge_curves(release.data, KPAnonymity(30, 3), sensitive=["kind"])[0][0].kept


@pytest.mark.parametrize("column", ["watts_low", "watts_high", "at"])
def test_one_changed_row_of_a_long_release_breaks_it(column):
    data = long_release().data
    changed = data.with_columns(
        pl.when(pl.int_range(pl.len()) == 7).then(pl.col(column) + 100).otherwise(column).alias(column)
    )
    findings, _ = judge_curves(changed, KPAnonymity(8, 3), sensitive=["kind"])
    assert findings[0].reached == 1
    missing, _ = judge_curves(data[1:], KPAnonymity(8, 3), sensitive=["kind"])
    assert missing[0].reached == 1


def test_a_record_that_says_two_things_is_refused():
    data = long_release().data
    two = data.with_columns(pl.when(pl.int_range(pl.len()) == 7).then(99).otherwise("level").alias("level"))
    with pytest.raises(UsageError, match="1 records say different things"):
        from_long(two, "at", "watts")
    with pytest.raises(UsageError, match="two envelopes at one point"):
        from_long(pl.concat([data, data[:1]]), "at", "watts")
    with pytest.raises(UsageError, match="expected one time column"):
        judge_curves(data, KPAnonymity(8, 3))  # which of two columns is the time?


@given(st.lists(st.tuples(*[st.sampled_from([None, 0, 1])] * 130), max_size=12), st.integers(1, 130))
def test_rows_that_read_alike_share_a_label(rows, width):
    frame = pl.DataFrame(rows, schema={f"c{i}": pl.Int64 for i in range(130)}, orient="row")
    columns = frame.columns[:width]
    label = alike(frame, columns).tolist()
    seen = [row[:width] for row in rows]
    assert [[a == b for a in label] for b in label] == [[a == b for a in seen] for b in seen]
    assert sorted(set(label)) == list(range(len(set(label))))


KINDS = {
    "missing": [1, None] * 20,
    "all missing": [None] * 40,
    "text and missing": ["x", None, "y", "z"] * 10,
    "not a number": [1.0, float("nan"), None, 2.0] * 10,
    "objects of one kind": np.array(["a", "b"] * 20, object),
    "truth": [True, False] * 20,
    "dates": [dt.date(2026, 1, 1), dt.date(2026, 1, 2)] * 20,
    "category": pl.Series(["a", "b"] * 20, dtype=pl.Categorical),
}


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("l", [None, 1.3])
def test_sensitive_values_of_every_kind(name, l):
    values = KINDS[name]
    if name == "all missing" and l:
        l = None  # one value for all is never diverse
    release = anonymize_series(CURVES, k=8, p=3, sensitive={"s": values}, l=l)
    promised = [] if l is None else [LDiversity(l, "s", kind="frequency")]
    findings, _ = judge_curves(release.frame(), KPAnonymity(8, 3), promised, sensitive=["s"])
    assert all(finding.kept for finding in findings)


@pytest.mark.parametrize("values", [[[1], [2]] * 20, [{"a": 1}] * 40, [1, "x"] * 20, [object()] * 40])
@pytest.mark.parametrize("l", [None, 2])
def test_sensitive_values_that_cannot_be_compared_are_refused(values, l):
    with pytest.raises(InputError, match="kind"):
        anonymize_series(CURVES, k=8, p=3, sensitive={"s": values}, l=l)
    try:
        frame = pl.DataFrame(CURVES).with_columns(pl.Series("s", values))
    except TypeError:
        return
    with pytest.raises(InputError, match="found"):
        anonymize_series(frame, k=8, p=3, sensitive=["s"], l=l)


@pytest.mark.parametrize("zone", [None, "Europe/Rome"])
def test_one_wrong_date_does_not_make_a_million_instants(zone):
    start = dt.datetime(2026, 3, 20)
    times = pl.Series([start + dt.timedelta(hours=i) for i in range(240)] * 4).dt.replace_time_zone(
        zone, non_existent="null", ambiguous="earliest"
    )
    frame = pl.DataFrame({"who": np.repeat(np.arange(4), 240), "at": times, "v": np.arange(960.0)}).drop_nulls()
    how = {"k": 2, "p": 2, "id": "who", "time": "at", "value": "v", "every": "1h", "missing": "zero"}
    assert len(anonymize_series(frame, **how).curves.instants) in (239, 240)  # the clock is put forward once
    wrong = pl.Series([dt.datetime(1970, 1, 1)]).dt.replace_time_zone(zone)
    with pytest.raises(InputError, match="instants, but values at") as caught:
        anonymize_series(pl.concat([frame, pl.DataFrame({"who": [1], "at": wrong, "v": [1.0]})]), **how)
    assert "1970" not in str(caught.value)


@pytest.mark.parametrize(
    ("aggregate", "expected"), [("count", 4), ("median", 2.5), ("p75", 4.75), ("p90", 7.9), ("max", 10)]
)
def test_values_of_one_instant_are_brought_together(aggregate, expected):
    frame = pl.DataFrame({"who": [0] * 4 + [1] * 4, "at": [0, 1, 2, 3] * 2, "v": [1, 2, 3, 10] * 2})
    how = {"k": 2, "p": 2, "id": "who", "time": "at", "value": "v", "every": 5}
    assert anonymize_series(frame, aggregate=aggregate, **how).curves.values.tolist() == [
        [pytest.approx(expected)],
        [pytest.approx(expected)],
    ]

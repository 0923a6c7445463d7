"""Curves of a running stream: each window is released as a long table of its events would be, and nothing is lost."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shoal
from shoal.core.errors import PolicyError, PromiseError, UsageError
from shoal.core.keys import KeyRing
from shoal.core.schema import Column, Schema
from shoal.policy.load import parse
from shoal.promises.kp_anonymity import KPAnonymity
from shoal.promises.l_diversity import LDiversity
from shoal.promises.t_closeness import TCloseness
from shoal.release.beside import beside
from shoal.release.job import job_of
from shoal.release.stream import LocalRunner
from shoal.release.wishes import Wishes
from shoal.runtime.kafka.provision.refusals import refuse_closeness
from shoal.runtime.kafka.serve import stateful
from shoal.runtime.kafka.serve.output import Disguise, Record
from shoal.series.release import anonymize_series
from shoal.streams.base import Batch, Outcomes, Reason
from shoal.streams.curves import Curves

KEY = bytes(range(32))
KEYS = KeyRing({"default": {1: KEY}})
SECOND = 1_000_000
SCHEMA = Schema(
    {
        "at": Column("time", late="2s"),
        "home": Column("subject"),
        "watt": Column("quasi"),
        "tariff": Column("sensitive"),
    }
)
POLICY = """
dataset: meters
source: {use: kafka, topic: meters, brokers: nowhere}
columns:
  at: {role: time, type: int, late: 2s}
  home: {role: subject, type: str}
  watt: {role: quasi, type: int}
  tariff: {role: sensitive, type: str}
views:
  shapes:
    show: [at, watt, tariff]
    hidden: drop
    promises: [{use: kP-anonymity, k: 3, p: 2}]
    method: {use: curves, window: 20s, every: 5s, missing: previous}
"""


@st.composite
def meters(draw: st.DrawFn) -> pl.DataFrame:
    """Readings of a few homes, mostly in order, some of them late, a few without a value or a home."""
    count = draw(st.integers(1, 90))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    homes = draw(st.integers(2, 9))
    at = np.sort(rng.integers(0, 70, count)) + rng.integers(-3, 1, count) * (rng.random(count) < 0.2)
    home = rng.integers(0, homes, count)
    watt = [None if r < 0.03 else int(v) for r, v in zip(rng.random(count), rng.integers(0, 30, count), strict=True)]
    names = [None if r < 0.02 else f"h{h}" for r, h in zip(rng.random(count), home, strict=True)]
    columns = {"at": np.maximum(at, 0), "home": names, "watt": watt, "tariff": [f"t{h % 2}" for h in home]}
    types = {"at": pl.Int64, "home": pl.String, "watt": pl.Int64, "tariff": pl.String}
    return pl.DataFrame(columns, schema=types)


def batch(frame: pl.DataFrame, first: int) -> Batch:
    return Batch(frame.drop("home"), frame["at"].to_numpy() * SECOND, frame["home"], first)


def outcomes(method: Curves, frame: pl.DataFrame, promises: list[Any], size: int, *, again: bool = False) -> list[Any]:
    """All answers, those of the flush last; ``again`` goes on from a snapshot after every batch."""
    running = method.start(SCHEMA, promises, key=KEY)
    told = []
    for first in range(0, frame.height, size):
        told.append(running.push(batch(frame[first : first + size], first)))
        if again:
            running = method.start(SCHEMA, promises, key=KEY, snapshot=running.snapshot())
    told.append(running.flush())
    assert running.held == 0
    counted = running.counters
    assert counted["events"] == frame.height == counted["released"] + counted["withheld"]
    return told


def released(told: list[Outcomes]) -> pl.DataFrame:
    parts = [out.released for out in told if out.released is not None]
    return pl.concat(parts) if parts else pl.DataFrame()


def fate(told: list[Outcomes]) -> dict[int, int]:
    """What became of each event: 0 released, else the reason."""
    found: dict[int, int] = {}
    for out in told:
        known = [*out.events[out.events >= 0].tolist(), *out.joined.tolist()]
        for event, why in [*((e, 0) for e in known), *zip(out.withheld.tolist(), out.reasons.tolist(), strict=True)]:
            assert event not in found
            found[event] = int(why)
    return found


@settings(max_examples=25)
@given(meters(), st.sampled_from(["drop", "previous", "interpolate", "zero"]), st.sampled_from(["mean", "sum", "last"]))
def test_each_window_is_the_batch_release_of_its_events(frame, missing, aggregate):
    method = Curves(window="20s", every="5s", missing=missing, aggregate=aggregate)
    told = outcomes(method, frame, [KPAnonymity(3, 2)], 7)
    why, made = fate(told), released(told)
    late = [n for n, reason in why.items() if reason in (Reason.TOO_LATE, Reason.BAD)]
    taken = frame.with_row_index("n").filter(~pl.col("n").is_in(late))
    for (window,), part in taken.group_by(pl.col("at") // 20 * 20):
        moments = (part["at"] * SECOND).cast(pl.Datetime("us")).dt.replace_time_zone("UTC")
        table = part.drop("n").with_columns(at=moments)
        got = made.filter(pl.col("window") == window).drop("window") if made.height else made
        try:
            expected = anonymize_series(
                table, k=3, p=2, id="home", time="at", value="watt", sensitive=["tariff"], every="5s",
                missing=missing, aggregate=aggregate,
            ).data  # fmt: skip
        except PromiseError:
            assert not got.height
            assert {why[n] for n in part["n"]} == {Reason.RARE}
            continue
        assert got.height == expected.height
        if got.height:
            assert got.equals(expected.with_columns(at=expected["at"].dt.epoch("s")))
    if made.height:
        assert all(f.kept for f in KPAnonymity(3, 2).judge_curves(made, [], sensitive=["tariff"])[0])


@settings(max_examples=12)
@given(meters(), st.integers(1, 30), st.integers(5, 60))
def test_every_event_has_one_outcome_however_it_comes(frame, size, most):
    promises = [KPAnonymity(3, 2), LDiversity(2, "tariff", kind="frequency")]
    method = Curves(window="10s", every="5s", missing="previous", most=most)
    whole = outcomes(method, frame, promises, frame.height)
    assert sorted(fate(whole)) == list(range(frame.height))
    for told in (outcomes(method, frame, promises, 1), outcomes(method, frame, promises, size, again=True)):
        assert fate(told) == fate(whole)
        assert released(told).equals(released(whole))
    made = released(whole)
    if made.height:
        findings, _ = promises[0].judge_curves(made, promises[1:], sensitive=["tariff"])
        assert all(f.kept for f in findings)


def readings(homes: int, seconds: int, seed: int = 1) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    rows = [(t, f"h{h}", int(rng.integers(0, 40)), f"t{h % 3}") for t in range(0, seconds, 5) for h in range(homes)]
    return pl.DataFrame(rows, schema=["at", "home", "watt", "tariff"], orient="row")


def test_an_event_waits_for_its_window_and_the_late_ones_and_no_longer():
    method = Curves(window="20s", every="5s")
    running = method.start(SCHEMA, [KPAnonymity(3, 2)], key=KEY)
    first = readings(6, 20)
    assert running.push(batch(first, 0)).released is None
    later = pl.DataFrame({"at": [21], "home": ["h0"], "watt": [1], "tariff": ["t0"]})
    assert running.push(batch(later, first.height)).released is None  # two seconds may an event be late
    out = running.push(batch(later.with_columns(at=pl.lit(22)), first.height + 1))
    assert out.released["series"].n_unique() == 6
    assert running.held == 2
    assert running.tick(41 * SECOND).released is None
    assert sorted(running.tick(42 * SECOND).withheld) == [first.height, first.height + 1]  # one home is no company


def test_who_sends_more_often_is_not_seen_to():
    """A row per curve and instant, whatever the number of events behind it."""
    once = readings(6, 20)
    often = pl.concat([once, *[once.filter(pl.col("home") == "h0")] * 5]).sort("at", maintain_order=True)
    method, promises = Curves(window="20s", every="5s"), [KPAnonymity(3, 2)]
    few, many = (outcomes(method, frame, promises, 9) for frame in (once, often))
    assert released(few).equals(released(many))
    assert sum(len(out.joined) for out in many) == often.height - once.height


def test_one_absurd_time_neither_closes_a_window_nor_stays_for_ever():
    frame = readings(6, 40)
    absurd = pl.DataFrame({"at": [4_000_000_000], "home": ["h1"], "watt": [3], "tariff": ["t1"]})
    mixed = pl.concat([frame[:8], absurd, frame[8:]])
    schema = Schema({**SCHEMA.columns, "at": Column("time", late="2s", ahead="10s")})
    running = Curves(window="20s", every="5s").start(schema, [KPAnonymity(3, 2)], key=KEY)
    told = [running.push(batch(mixed, 0)), running.tick(60 * SECOND)]
    assert fate(told)[8] == Reason.FUTURE
    assert running.held == 0
    alone = outcomes(Curves(window="20s", every="5s"), frame, [KPAnonymity(3, 2)], 50)
    assert released(told).equals(released(alone))


def test_a_home_with_two_tariffs_is_withheld_and_the_others_are_not():
    frame = readings(7, 20).with_columns(
        tariff=pl.when((pl.col("home") == "h3") & (pl.col("at") > 9)).then(pl.lit("t9")).otherwise("tariff")
    )
    told = outcomes(Curves(window="20s", every="5s"), frame, [KPAnonymity(3, 2)], 50)
    bad = {n for n, why in fate(told).items() if why == Reason.BAD}
    assert bad == set(frame.with_row_index("n").filter(pl.col("home") == "h3")["n"])
    assert released(told)["series"].n_unique() == 6


def test_windows_are_days_of_a_time_zone():
    """The night of 31 March 2024 has an hour less in Berlin: the window is a day all the same."""
    start = 1711753200  # 2024-03-30 00:00 in Berlin
    rows = [(start + t, f"h{h}", h + t // 3600) for t in range(0, 2 * 86400, 3600) for h in range(4)]
    frame = pl.DataFrame(rows, schema=["at", "home", "watt"], orient="row").with_columns(tariff=pl.lit("t"))
    told = outcomes(Curves(window="1d", every="1h", zone="Europe/Berlin"), frame, [KPAnonymity(2, 2)], 60)
    lengths = released(told).group_by("window").agg(pl.col("at").n_unique()).sort("window")
    assert lengths.rows() == [(start, 24), (start + 86400, 23), (start + 86400 + 82800, 1)]


def test_promises_beside_are_kept_in_each_window():
    frame = readings(9, 60)
    promises = [KPAnonymity(4, 2), TCloseness(0.5, "tariff")]
    made = released(outcomes(Curves(window="20s", every="5s"), frame, promises, 50))
    assert made["window"].n_unique() == 3
    findings, records = promises[0].judge_curves(made, promises[1:], sensitive=["tariff"])
    assert all(f.kept for f in findings)
    assert records == sum(part["series"].n_unique() for part in made.partition_by("window"))
    # and what is broken in one window is broken
    worse = made.filter(~((pl.col("window") == 20) & (pl.col("series") == 0)))
    assert not all(f.kept for f in KPAnonymity(9, 2).judge_curves(worse, [], sensitive=["tariff"])[0])


def test_a_window_that_breaks_its_promise_is_not_written():
    checker = beside(SCHEMA, [KPAnonymity(4, 2)], None, 1.0, continued=True)
    made = released(outcomes(Curves(window="20s", every="5s"), readings(8, 20), [KPAnonymity(4, 2)], 50))
    checker.check(Outcomes(made, np.zeros(made.height, np.int64)))
    assert checker.checked == 1
    with pytest.raises(PromiseError, match="it was not written"):
        checker.check(Outcomes(made.filter(pl.col("series") > 0), np.zeros(made.height - 4, np.int64)))


@pytest.mark.parametrize("more", [
    {"window": "1d", "every": "7h"}, {"every": "0s"}, {"window": "1h30m"}, {"missing": "error"}, {"aggregate": "mode"},
    {"zone": "Nowhere/City"}, {"most": 0}, {"pattern": {"use": "sax", "word": 99}}, {"by": "fads"},
    {"window": "1w", "every": "1us"}, {"window": "1w", "every": "7h"},
])  # fmt: skip
def test_what_cannot_be_meant_is_refused(more):
    with pytest.raises((UsageError, PolicyError)):
        Curves(**more)


def test_a_snapshot_of_other_promises_is_refused():
    running = Curves().start(SCHEMA, [KPAnonymity(3, 2)], key=KEY)
    with pytest.raises(UsageError, match="other columns, promises"):
        Curves().start(SCHEMA, [KPAnonymity(2, 2)], key=KEY, snapshot=running.snapshot())


METERS = parse(POLICY)


def topic(values: list[bytes], size: int, partition: int = 0) -> list[bytes]:
    """What a worker publishes of the records of one partition, restarted from its snapshot after every batch."""
    disguise = Disguise(METERS.views["shapes"], "meters", 3, KEYS)
    stateful.check(METERS, "shapes")
    out, state = [], None
    for start in range(0, len(values), size):
        runner = stateful.start(METERS, "shapes", partition, KEYS, disguise, state)
        records = [Record(partition, n, None, v, 1) for n, v in enumerate(values[start : start + size], start)]
        sent, dead = runner.push(records)
        assert not dead
        out += sent
        state = runner.snapshot()
    places = {(o.partition, shoal_group(o.value)) for o in out}
    assert len(places) == len({group for _, group in places})  # a group has one place
    assert all(o.key is None and o.timestamp == 0 for o in out)
    return [o.value for o in out]


def shoal_group(value: bytes) -> tuple[int, int]:
    row = pl.read_ndjson(value).to_dicts()[0]
    return row["window"], row["group"]


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_a_topic_gets_what_a_file_gets(size):
    frame = readings(6, 70)
    values = frame.write_ndjson().encode().splitlines()
    parts: list[pl.DataFrame] = []
    job = job_of(Wishes({"policy": METERS, "view": "shapes", "keys": KEYS}))
    runner = LocalRunner(job, job.key(), parts.append, verify=1.0)
    runner.feed(frame)
    local = [line for part in parts for line in part.write_ndjson().encode().splitlines()]
    assert len(local) == 3 * 6 * 4
    assert topic(values, size) == local
    other = pl.read_ndjson(b"\n".join(topic(values, size, partition=2)))
    assert other["group"].min() == 2 << 32  # groups of two partitions are never taken for one


def test_closeness_of_curves_is_judged_by_window_and_refused_over_several_partitions():
    from shoal.cli.consume import _judge

    close = parse(POLICY.replace("[{use: kP", "[{use: t-closeness, t: 0.3, column: tariff}, {use: kP"))
    with pytest.raises(PolicyError, match="does not compose over partitions"):
        refuse_closeness(close)
    refuse_closeness(METERS)  # the other promises hold inside every partition, so over all of them, too
    frame = readings(12, 70)
    parts: list[pl.DataFrame] = []
    job = job_of(Wishes({"policy": close, "view": "shapes", "keys": KEYS}))
    LocalRunner(job, job.key(), parts.append, verify=1.0).feed(frame)
    judge = _judge(close, "shapes")
    assert judge is not None
    released = pl.concat(parts)
    assert released["window"].n_unique() > 1
    assert all(finding.kept for finding in judge(released))
    swapped = released.with_columns(pl.when(pl.col("group") == 0).then(pl.lit("x")).otherwise("tariff").alias("tariff"))
    assert [f.kept for f in judge(swapped) if f.promise.startswith("0.3-close")] == [False]


def test_the_policy_goes_all_roads(tmp_path):
    from tests.cli.in_process import call

    frame = readings(8, 60)
    (tmp_path / "meters.yaml").write_text(POLICY)
    frame.write_ndjson(tmp_path / "in.ndjson")
    made = shoal.view(frame, METERS, "shapes", keys=KEYS, seed=0)
    assert made.report.verified
    assert made.report.released == frame.height
    done = call(["stream", "in.ndjson", "--policy", "meters.yaml", "--verify", "1", "-o", "out.ndjson"], tmp_path)
    assert done.returncode == 0, done.stderr
    assert "3 checks of a share of 100%, none broken" in done.stderr
    assert pl.read_ndjson(tmp_path / "out.ndjson").equals(made.data.cast({"group": pl.Int64, "level": pl.Int64}))
    judged = call(["verify", "out.ndjson", "--policy", "meters.yaml"], tmp_path)
    assert judged.returncode == 0, judged.stdout + judged.stderr
    stronger = call(["verify", "out.ndjson", "--policy", "meters.yaml", "--k", "9"], tmp_path)
    assert stronger.returncode == 1


@pytest.mark.parametrize(("change", "words"), [
    ("show: [watt, tariff]", "a time and a value"),
    ("show: [at, tariff]", "a time and a value"),
    ("show: [at, watt, tariff, home]", "names"),
    ("show: [at, watt, tariff]\n    masks: {watt: {use: round, to: 10}}", "masked"),
    ("show: [at, watt, tariff]\n    masks: {at: {use: round, to: 10}}", "masked"),
])  # fmt: skip
def test_a_view_that_curves_cannot_be_made_of_is_refused_before_any_event(change, words):
    policy = parse(POLICY.replace("show: [at, watt, tariff]", change))
    with pytest.raises(PolicyError, match=words):
        job_of(Wishes({"policy": policy, "view": "shapes", "keys": KEYS}))
    with pytest.raises(PolicyError, match=words):
        stateful.check(policy, "shapes")

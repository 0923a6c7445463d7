"""Attacks on delay-bounded streams: those that must fail, and those that are measured and bounded in the docs."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
import pytest

from shoal.core.cells import read
from shoal.core.errors import InputError, PolicyError, UsageError
from shoal.core.hierarchy.range import Range
from shoal.core.keys import KeyRing
from shoal.core.schema import Column, Schema
from shoal.policy.document import Policy
from shoal.policy.load import parse
from shoal.promises.k_anonymity import KAnonymity
from shoal.promises.l_diversity import LDiversity
from shoal.release.job import job_of
from shoal.release.stream import LocalRunner, StreamJob, stream_job
from shoal.release.wishes import Wishes
from shoal.runtime.kafka.serve.stateful import carrying_job
from shoal.streams import STREAM_METHODS
from shoal.streams.base import Batch, StreamMethod
from tests.cli.in_process import call

KEY = bytes(range(32))
SCHEMA = Schema(
    {
        "who": Column("subject"),
        "age": Column("quasi", type="int", hierarchy=Range(min=0, max=100)),
        "pay": Column("quasi", type="int", hierarchy=Range(min=0, max=1000)),
        "diag": Column("sensitive"),
    }
)
DELAYED = ("batches", "castle", "fads")


def crowd(n: int, people: int, seed: int = 7) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "who": [f"p{i}" for i in rng.integers(0, people, n)],
            "age": np.clip(rng.normal(45, 15, n), 0, 100).astype(np.int64),
            "pay": np.clip(rng.lognormal(5, 0.7, n), 0, 1000).astype(np.int64),
            "diag": [f"d{i}" for i in rng.choice(6, n, p=[0.5, 0.2, 0.1, 0.1, 0.05, 0.05])],
        }
    )


def push(stream: Any, frame: pl.DataFrame, first: int, size: int) -> dict[int, tuple[Any, ...]]:
    told: dict[int, tuple[Any, ...]] = {}
    for start in range(0, frame.height, size):
        part = frame[start : start + size]
        out = stream.push(Batch(part.drop("who"), np.arange(part.height), part["who"], first + start))
        if out.released is not None:
            told |= dict(zip(out.events.tolist(), out.released.rows(), strict=True))
    return told


def method(name: str, **more: Any) -> StreamMethod:
    return STREAM_METHODS.decode({"use": name, "delay": 60, **more})


@pytest.mark.parametrize("name", DELAYED)
def test_replay_after_a_crash_publishes_the_same_generalization(name: str) -> None:
    """Fails: a worker that dies after publishing and starts again from its last snapshot repeats itself exactly."""
    frame = crowd(600, 300)
    stream = method(name).start(SCHEMA, [KAnonymity(5)], key=KEY)
    push(stream, frame[:200], 0, 37)
    snapshot = stream.snapshot()
    before = push(stream, frame[200:], 200, 50)  # published, then the worker dies
    again = method(name).start(SCHEMA, [KAnonymity(5)], key=KEY, snapshot=snapshot)
    after = push(again, frame[200:], 200, 11)
    assert before
    assert all(after[event] == row for event, row in before.items() if event in after)
    assert set(before) == set(after)


@pytest.mark.parametrize("name", DELAYED)
def test_a_person_repeated_does_not_fill_a_group(name: str) -> None:
    """Fails: one who floods the stream to surround a victim stays one person."""
    victim = pl.DataFrame({"who": ["victim"], "age": [50], "pay": [500], "diag": ["d1"]})
    flood = pl.DataFrame({"who": ["attacker"] * 300, "age": [50] * 300, "pay": [500] * 300, "diag": ["d0"] * 300})
    stream = method(name, reuse="forever").start(SCHEMA, [KAnonymity(3)], key=KEY)
    told = push(stream, pl.concat([flood[:100], victim, flood[100:]]), 0, 1)
    assert not told
    assert stream.counters["due"] > 200


def test_a_stolen_snapshot_cannot_be_opened_or_changed() -> None:
    """Fails: without the key nothing can be read or tested; a changed byte is noticed."""
    stream = method("batches").start(SCHEMA, [KAnonymity(5)], key=KEY)
    push(stream, crowd(50, 50).with_columns(diag=pl.lit("leprosy")), 0, 50)
    snapshot = stream.snapshot()
    assert b"leprosy" not in snapshot
    with pytest.raises(InputError, match="cannot be opened"):
        method("batches").start(SCHEMA, [KAnonymity(5)], key=bytes(32), snapshot=snapshot)
    changed = snapshot[:-5] + bytes([snapshot[-5] ^ 1]) + snapshot[-4:]
    with pytest.raises(InputError, match="cannot be opened"):
        method("batches").start(SCHEMA, [KAnonymity(5)], key=KEY, snapshot=changed)
    # boxes are judged by the people and values they were published with: other promises know nothing of them
    for promises in ([KAnonymity(4)], [KAnonymity(5), LDiversity(2, "diag")]):
        with pytest.raises(UsageError, match="other promises"):
            method("batches").start(SCHEMA, promises, key=KEY, snapshot=snapshot)
    spread = [KAnonymity(5), LDiversity(2, "diag")]
    snapshot = method("batches").start(SCHEMA, spread, key=KEY).snapshot()
    columns = {**SCHEMA.columns, "diag": Column("plain"), "drug": Column("sensitive")}
    with pytest.raises(UsageError, match="other promises"):
        method("batches").start(Schema(columns), [KAnonymity(5), LDiversity(2, "drug")], key=KEY, snapshot=snapshot)


def test_homogeneity_without_l_and_none_with_it() -> None:
    """Measured: how many people's diagnosis a k-anonymous release gives away because their whole group shares it."""
    frame = crowd(3000, 3000)

    def given_away(*promises: Any) -> float:
        stream = method("batches", reuse="never").start(SCHEMA, list(promises), key=KEY)
        told = push(stream, frame, 0, 500)
        rows = pl.DataFrame(list(told.values()), schema=["age", "pay", "diag"], orient="row")
        alike = rows.group_by("age", "pay").agg(pl.col("diag").n_unique().alias("n"), pl.len().alias("m"))
        return float(alike.filter(pl.col("n") == 1)["m"].sum()) / rows.height

    without, with_l = given_away(KAnonymity(3)), given_away(KAnonymity(3), LDiversity(2, "diag"))
    print(f"homogeneous groups: {without:.1%} of tuples with k = 3 alone, {with_l:.1%} with l = 2")
    assert without > 0.02
    assert with_l == 0.0


def test_what_reuse_gives_away_to_someone_who_knows_the_moment() -> None:
    """Measured: tuples that got their box among fewer than k people at that moment; zero without reuse."""
    frame = crowd(3000, 3000)
    shares = {}
    for reuse in ("never", 600, "forever"):
        stream = method("batches", reuse=reuse).start(SCHEMA, [KAnonymity(5)], key=KEY)
        alone = total = 0
        for first in range(0, frame.height, 61):  # one window per push
            part = frame[first : first + 61]
            out = stream.push(Batch(part.drop("who"), np.arange(part.height), part["who"], first))
            if out.released is None:
                continue
            people = part["who"].gather(out.events - first)
            sizes = out.released.select("age", "pay").with_columns(who=people)
            sizes = sizes.with_columns(n=pl.col("who").n_unique().over("age", "pay"))
            alone += int((sizes["n"] < 5).sum())
            total += sizes.height
        shares[reuse] = alone / total
    print("fewer than k at once:", {k: f"{v:.1%}" for k, v in shares.items()})
    assert shares["never"] == 0.0
    assert 0 < shares[600] < shares["forever"]


def ends(text: str) -> tuple[float, float]:
    cell = read(text)
    return (cell.low, cell.high) if cell.kind == "interval" else (float(text), float(text))


def test_what_intersecting_the_boxes_of_one_person_gives_away() -> None:
    """Measured: records of one person, linked by a pseudonym, each with its box; who of the crowd fits all of them?

    The first box alone leaves at least k. Each further one is another cut, unless it is the same box again: so here
    reuse protects, and no bound but one record per person holds.
    """
    base = crowd(2000, 2000, 3).unique("who", maintain_order=True)[:1000]
    rng = np.random.default_rng(5)
    frame = base[np.concatenate([rng.permutation(base.height) for _ in range(5)])]
    age, pay = base["age"].to_numpy(), base["pay"].to_numpy()
    narrowed: dict[str | int, list[float]] = {}
    for reuse in ("never", 600, "forever"):
        stream: Any = method("batches", reuse=reuse).start(SCHEMA, [KAnonymity(5)], key=KEY)
        left = {who: [np.ones(base.height, np.bool_)] for who in base["who"]}
        for event, row in sorted(push(stream, frame, 0, 500).items()):
            (a, b), (c, d) = ends(row[0]), ends(row[1])
            seen = left[frame["who"][event]]
            seen.append(seen[-1] & (a <= age) & (age <= b) & (c <= pay) & (pay <= d))
        for at, who in enumerate(base["who"]):
            assert all(fits[at] for fits in left[who])  # the truth is never cut away
        narrowed[reuse] = [
            float(np.mean([fits[m].sum() < 5 for fits in left.values() if len(fits) > m])) for m in range(1, 6)
        ]
    print("narrowed below k = 5 by 1 to 5 linked records:")
    for reuse, shares in narrowed.items():
        print(f"  reuse {reuse}: " + ", ".join(f"{share:.1%}" for share in shares))
    assert all(shares[0] == 0.0 for shares in narrowed.values())
    assert all(a < b for shares in narrowed.values() for a, b in pairwise(shares))
    assert narrowed["never"][4] > narrowed[600][4] > narrowed["forever"][4] > 0.2


def test_order_inside_an_emission_correlates_with_nothing() -> None:
    """Measured: rank correlation of arrival and publication inside an emission."""
    frame = crowd(2000, 2000)
    stream = STREAM_METHODS.decode({"use": "batches", "delay": 1999}).start(SCHEMA, [KAnonymity(5)], key=KEY)
    out = stream.push(Batch(frame.drop("who"), np.arange(2000), frame["who"]))
    events = out.events
    correlation = float(np.corrcoef(events, np.arange(len(events)))[0, 1])
    print(f"correlation of arrival and publication order: {correlation:+.3f}")
    assert abs(correlation) < 0.1  # 4.5 standard errors at 2,000 tuples


@pytest.mark.parametrize("name", DELAYED)
def test_two_ways_to_be_missing_are_one_value(name: str) -> None:
    """Fails: to pass off "not a number" and "missing" as two diagnoses. Both are written as null."""
    columns = {**SCHEMA.columns, "diag": Column("sensitive", type="float")}
    told = {}
    for second in (None, 7.0):  # a missing value is no diagnosis: the other one of two must be one
        ages = [50] * 200
        first = float("nan") if second is None else 3.0
        frame = pl.DataFrame({"who": range(200), "age": ages, "pay": ages, "diag": [first, second] * 100})
        stream = method(name).start(Schema(columns), [KAnonymity(2), LDiversity(2, "diag")], key=KEY)
        told[second] = push(stream, frame.cast({"who": pl.String, "diag": pl.Float64}), 0, 60)
    assert not told[None]
    assert told[7.0]


LINKED = """
dataset: visits
source: {use: kafka, topic: visits, brokers: nowhere}
columns:
  at: {role: time, unit: s}
  pid: {role: subject, type: str}
  age: {role: quasi, type: int, hierarchy: {use: range, min: 0, max: 120}}
  diag: {role: sensitive, type: str}
views:
  research:
    show: [pid, age, diag]
    masks: {pid: {use: MASK}}
    promises: [{use: k-anonymity, k: 3}]
    method: {use: METHOD, delay: 30}
"""
RING = KeyRing({"default": {1: bytes(range(32))}})


def linked(mask: str = "pseudonym", method: str = "batches", **more: str) -> Policy:
    text = LINKED.replace("MASK", mask).replace("METHOD", method)
    return parse(text + "".join(f"    {name}: {value}\n" for name, value in more.items()))


@pytest.mark.parametrize("mask", ["pseudonym", "tokenize", "hash"])
@pytest.mark.parametrize("method", ["batches", "castle", "fads"])
def test_a_pseudonym_beside_the_groups_of_a_stream_is_refused_on_every_road(mask, method):
    """Boxes of one person intersect in a stream as in a table."""
    policy = linked(mask, method)
    builds = [
        lambda: job_of(Wishes({"policy": policy, "keys": RING})),
        lambda: stream_job(policy, "research", RING),
        lambda: carrying_job(policy, "research", RING),  # of a topic
    ]
    for build in builds:
        with pytest.raises(PolicyError, match="links the records of one person"):
            build()
    job = job_of(Wishes({"policy": linked(mask, method, waive="[linked-rows]"), "keys": RING}))
    assert job.waived == ("linked-rows",)
    assert job_of(Wishes({"policy": linked("suppress", method), "keys": RING})).waived == ()


SHOWING = {  # a name leaves whole or in part, or near what it was
    "blur, first: 9": "str",
    "blur": "str",  # its length
    "replace, find: zz, by: y": "str",
    "text": "str",
    "fake, what: name": "str",
    "substitute, map: {ada: bob}": "str",
    "generalize, hierarchy: {use: prefix, length: 9}, level: 0": "str",
    "conditional, when: {column: age, equals: 200}, then: x": "str",
    "conditional, when: {column: age, equals: 200}, mask: pseudonym": "str",
    "round, to: 1": "int",
    "bucket, width: 1": "int",
    "clip, min: 0": "int",
    "noise, spread: 1": "int",
    "date-shift, days: 30": "date",
}


@pytest.mark.parametrize("mask", SHOWING)
def test_only_a_mask_that_writes_the_same_for_everyone_is_let_beside_the_groups_of_a_stream(mask):
    """What a mask leaves of a name hangs on values that nobody has seen yet."""
    text = (
        LINKED.replace("MASK", mask)
        .replace("METHOD", "batches")
        .replace("subject, type: str", f"subject, type: {SHOWING[mask]}")
    )
    for build in (stream_job, carrying_job):
        with pytest.raises(PolicyError, match="links the records of one person"):
            build(parse(text), "research", RING)
        build(parse(text + "    waive: [linked-rows]\n"), "research", RING)


@pytest.mark.parametrize("mask", ["suppress", "suppress, to: 'null'", "substitute, value: x", "blur, length: 3"])
def test_a_mask_that_writes_the_same_for_everyone_needs_no_waiver(mask):
    assert stream_job(parse(LINKED.replace("MASK", mask).replace("METHOD", "batches")), "research", RING).waived == ()


def test_what_a_waived_pseudonym_costs_is_seen_and_said():
    """The attack that is refused: who knows someone's ages of several visits finds them among their pseudonyms."""
    rng = np.random.default_rng(3)
    who = rng.integers(0, 40, 1200)
    frame = pl.DataFrame(
        {
            "at": np.arange(1200),
            "pid": [f"p{n}" for n in who],
            "age": 20 + who + rng.integers(0, 8, 1200),
            "diag": rng.choice(["a", "b"], 1200),
        }
    )
    release = job_of(Wishes({"policy": linked(waive="[linked-rows]"), "keys": RING, "seed": 1})).run(frame)
    assert "waiver: linked-rows" in release.report.notes
    boxes = release.data.with_columns(
        pl.col("age").str.extract_all(r"\d+").list.first().cast(pl.Int64).alias("low"),
        pl.col("age").str.extract_all(r"\d+").list.last().cast(pl.Int64).alias("high"),
    )
    known = frame.group_by("pid").agg(pl.col("age").sort())
    shown = boxes.group_by("pid").agg("low", "high")
    alone = 0
    for person in known.iter_rows(named=True):
        ages = np.array(person["age"])
        fits = [
            row["pid"]
            for row in shown.iter_rows(named=True)
            if len(row["low"]) == len(ages)
            and (np.sort(row["low"]) <= ages).all()
            and (ages <= np.sort(row["high"])).all()
        ]
        alone += len(fits) == 1
    assert alone > 20  # of 40, though every group has three people


def test_a_waiver_of_a_stream_that_links_nothing_is_refused():
    with pytest.raises(UsageError, match="has no effect"):
        job_of(Wishes({"policy": linked("suppress", waive="[linked-rows]"), "keys": RING}))


@pytest.mark.parametrize("method", ["batches", "castle", "fads"])
def test_a_snapshot_of_other_promises_is_refused_by_every_method(method):
    """A box of two people, published for k = 2, would be given again under k = 5; one of one value under l = 2."""
    spec: Any = STREAM_METHODS.decode({"use": method, "delay": 6, "reuse": "forever"})
    schema = Schema({"who": Column("subject"), "age": Column("quasi"), "diag": Column("sensitive")})
    two, five = KAnonymity(2), KAnonymity(5)
    runner = LocalRunner(StreamJob(schema=schema, promises=(two,), method=spec), bytes(32), lambda part: None)
    runner.feed(pl.DataFrame({"who": [str(n) for n in range(12)], "age": [30] * 12, "diag": ["p"] * 12}))
    state = runner.snapshot()
    for promises in ((five,), (two, LDiversity(2, "diag"))):
        job = StreamJob(schema=schema, promises=promises, method=spec)
        with pytest.raises(UsageError, match="other promises"):
            LocalRunner(job, bytes(32), lambda part: None, snapshot=state)


def events(folder, *, rows: int = 120) -> None:
    rng = np.random.default_rng(6)
    who = rng.integers(0, 30, rows)
    pl.DataFrame(
        {
            "at": np.arange(rows),
            "pid": [f"p{n}" for n in who],
            "age": 20 + rng.integers(0, 40, rows),
            "diag": rng.choice(["a", "b"], rows),
        }
    ).write_ndjson(folder / "e.ndjson")


@pytest.fixture
def two_views(tmp_path):
    """A folder with events and a policy: a view whose waived pseudonym links records, and one without names."""
    events(tmp_path)
    text = LINKED.replace("MASK", "pseudonym").replace("METHOD", "batches") + "    waive: [linked-rows]\n"
    other = LINKED.partition("views:")[2].replace("MASK", "suppress").replace("METHOD", "batches")
    (tmp_path / "p.yaml").write_text(text + other.replace("  research:", "  other:", 1).lstrip("\n"))
    return tmp_path


STREAM = ["stream", "e.ndjson", "--policy", "p.yaml", "--view", "research"]
SECRET = {"SHOAL_KEY": "ab" * 32}


@pytest.mark.parametrize("kind", ["html", "json", "txt"])
def test_what_was_waived_and_what_other_views_did_is_on_the_report_of_a_stream(two_views, kind):
    words = [*STREAM, "--also", "other=o.ndjson", "--verify", "1", "-o", "r.ndjson", "--report", f"r.{kind}"]
    done = call(words, two_views, None, SECRET)
    assert done.returncode == 0, done.stderr
    told = (two_views / f"r.{kind}").read_text()
    assert "waiver: linked-rows" in told
    assert "other: " in told
    assert "verified beside the run" in told


def test_two_views_do_not_leave_through_one_door(two_views):
    done = call([*STREAM, "--also", "other=-"], two_views, None, SECRET)
    assert done.returncode == 2
    assert "two outputs are standard output" in done.stderr
    assert not done.stdout


@pytest.mark.parametrize("there", [False, True])
def test_which_event_is_which_is_for_the_operators_eyes(two_views, there):
    """`--synthetic` says, line by line, which event of the input a released one is."""
    for name in ("w.ndjson", "s.txt") if there else ():
        (two_views / name).write_text("from before")
        (two_views / name).chmod(0o644)
    words = [*STREAM, "-o", "r.ndjson", "--withheld", "w.ndjson", "--synthetic", "s.txt"]
    assert call(words, two_views, None, SECRET).returncode == 0
    for name in ("w.ndjson", "s.txt"):
        assert (two_views / name).stat().st_mode & 0o777 == 0o600
        assert "from before" not in (two_views / name).read_text()
    assert call([*STREAM, "-o", "r.ndjson", "--withheld", "/dev/null"], two_views, None, SECRET).returncode == 0

"""Names that leave beside the groups of a stream, and what two views of one stream tell together."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

from shoal.core.errors import PolicyError, UsageError
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
from tests.cli.in_process import call

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
        with pytest.raises(UsageError, match="declared: promises"):
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

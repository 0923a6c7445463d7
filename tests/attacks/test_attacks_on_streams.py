"""Attacks on delay-bounded streams: those that must fail, and those that are measured and bounded in the docs."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
import pytest

from shoal.core.cells import read
from shoal.core.errors import InputError, UsageError
from shoal.core.hierarchy.range import Range
from shoal.core.schema import Column, Schema
from shoal.promises.k_anonymity import KAnonymity
from shoal.promises.l_diversity import LDiversity
from shoal.streams import STREAM_METHODS
from shoal.streams.base import Batch, StreamMethod

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

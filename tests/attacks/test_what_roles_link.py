"""Attacks of roles that pool their files, as slow twins: `check` never says less than any of them finds.

Each attack gets two released frames and nothing else; the truth (which row is which) only scores its answers.
"""

from __future__ import annotations

import datetime
import json
from collections import Counter, defaultdict

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from shoal.masks import MASKS as FAMILY
from shoal.masks.base import Context
from shoal.policy.load import parse
from shoal.release import roles
from shoal.release.collusion import ORDER, collusion
from shoal.release.roles import view
from shoal.testing.masks import fixed_ring

KEYS = fixed_ring()
COLUMNS = """
columns:
  pid: {role: subject, type: int}
  zip: quasi
  rank: quasi
  age: {role: quasi, type: int}
  pay: {role: plain, type: float}
  came: {role: plain, type: datetime}
  left: {role: plain, type: datetime}
"""
EVERY = ["pid", "zip", "rank", "age", "pay", "came", "left"]
MASKS = {
    "pid": [None, "pseudonym", {"use": "tokenize"}],
    "zip": [None, {"use": "blur", "first": 2}, {"use": "tokenize", "form": "ff1"}],
    "rank": [None, "suppress"],
    "age": [None, {"use": "bucket", "width": 10}, {"use": "bucket", "width": 7}, {"use": "noise", "spread": 3}],
    "pay": [
        None,
        {"use": "noise", "spread": 40},
        {"use": "bucket", "width": 500},
        {"use": "conditional", "when": {"column": "rank", "equals": "head"}, "then": "*"},
    ],
    "came": [None, {"use": "date-shift", "days": 40}, {"use": "date-shift", "days": 40, "time": "keep", "domain": "d"}],
    "left": [None, {"use": "date-shift", "days": 40}, {"use": "date-shift", "days": 40, "time": "keep", "domain": "d"}],
}
START = datetime.datetime(2024, 1, 1)


def patients(seed: int, people: int = 14) -> pl.DataFrame:
    draw = np.random.default_rng(seed)
    rows = []
    for pid in range(people):
        zip_, age = f"{draw.integers(10, 14)}{draw.integers(100, 110)}", int(draw.integers(20, 60))
        rank = str(draw.choice(["head", "hand"]))
        for _ in range(int(draw.integers(1, 5))):
            came = START + datetime.timedelta(minutes=int(draw.integers(0, 300_000)))
            left = came + datetime.timedelta(days=int(draw.integers(0, 9)))
            rows.append((pid, zip_, rank, age + int(draw.integers(0, 2)), float(draw.integers(900, 4000)), came, left))
    return pl.DataFrame(rows, schema=EVERY, orient="row")


role = st.fixed_dictionaries({c: st.sampled_from([*many, "hide"]) for c, many in MASKS.items()})


def policy(*chosen):
    views = {}
    for at, masks in enumerate(chosen):
        shown = [c for c, m in masks.items() if m != "hide"] or ["rank"]
        views[f"r{at}"] = {"show": shown, "masks": {c: m for c, m in masks.items() if m not in (None, "hide")}}
    return parse(COLUMNS + f"views: {json.dumps(views)}")


# what an attacker does with two files ------------------------------------------------------------------------------


def unique_pairs(mine, theirs):
    """Pairs of keys that stand once in either list: (place of mine, place of theirs)."""
    a, b = defaultdict(list), defaultdict(list)
    for at, key in enumerate(mine):
        a[key].append(at)
    for at, key in enumerate(theirs):
        b[key].append(at)
    return [(a[k][0], b[k][0]) for k in a if len(a[k]) == 1 and len(b.get(k, ())) == 1]


UNKEYED = ("blur", "bucket", "conditional")


def unkeyed(mask):
    return mask in (None, "suppress") or (isinstance(mask, dict) and mask["use"] in UNKEYED)


def equal_columns(ma, mb):
    """Columns both see in the same unkeyed form."""
    return [c for c in EVERY if ma[c] == mb[c] and unkeyed(ma[c])]


def join(a, b, ma, mb):
    """Records whose common columns are alike and nobody else's."""
    both = equal_columns(ma, mb)
    return unique_pairs(*(f.select(both).rows() for f in (a, b))) if both else []


def coarsened(a, b, ma, mb):
    """What I see exactly, recomputed into the other's form: buckets, blurred texts, conditions."""
    keys = []
    for f, own, other in ((a, ma, mb), (b, mb, ma)):
        parts = []
        for c in EVERY:
            if not (unkeyed(own[c]) and unkeyed(other[c])):
                continue
            if own[c] == other[c]:
                parts.append(f[c].cast(pl.String).to_list())
            elif own[c] is None and other[c] != "suppress" and other_can(own, other[c]):
                parts.append(recomputed(f, c, other[c], own))
            elif other[c] is None and own[c] != "suppress" and other_can(other, own[c]):
                parts.append(f[c].cast(pl.String).to_list())
        keys.append(list(zip(*parts, strict=True)) if parts else [])
    return unique_pairs(*keys) if keys[0] and len(keys[0][0]) == len(keys[1][0]) else []


def other_can(masks, mask):
    return mask["use"] != "conditional" or masks["rank"] is None


def recomputed(f, column, mask, own):
    kind = {"age": "int", "pay": "float"}.get(column, "str")
    running = FAMILY.decode(mask).start(Context(column=column, type=kind, types={"rank": "str"}))
    by = [f["rank"].to_list()] if mask["use"] == "conditional" else []
    return [running.one(*row) for row in zip(f[column].to_list(), *by, strict=True)]


def trajectories(a, b, ma, mb):
    """All records of one pseudonym beside all records of another: the same shared cells, the same number of them."""
    if "hide" in (ma["pid"], mb["pid"]):
        return []
    both = [c for c in equal_columns(ma, mb) if c != "pid"]
    signs = []
    for f in (a, b):
        groups = defaultdict(list)
        for who, *cells in f.select("pid", *both).rows():
            groups[who].append(tuple(cells))
        signs.append({who: tuple(sorted(Counter(cells).items(), key=repr)) for who, cells in groups.items()})
    return spread(a, b, unique_pairs(signs[0].values(), signs[1].values()), signs)


def spread(a, b, pairs, signs):
    """A link of two pseudonyms is a link of every record of theirs."""
    mine, theirs = list(signs[0]), list(signs[1])
    out = []
    for at, other in pairs:
        to = b["pid"].to_list().index(theirs[other])
        out += [(i, to) for i, who in enumerate(a["pid"].to_list()) if who == mine[at]]
    return out


def gaps(a, b, ma, mb):
    """A shift leaves the days between all dates of a pseudonym."""
    out = []
    for c in ("came", "left"):
        if "hide" in (ma["pid"], mb["pid"], ma[c], mb[c]):
            continue
        signs = []
        for f in (a, b):
            groups = defaultdict(list)
            for who, at in zip(f["pid"].to_list(), f[c].dt.date().to_list(), strict=True):
                groups[who].append(at)
            signs.append({who: tuple(sorted((d - min(ds)).days for d in ds)) for who, ds in groups.items()})
        out += spread(a, b, unique_pairs(signs[0].values(), signs[1].values()), signs)
    return out


def clocks(a, b, ma, mb):
    """A shift of whole days leaves the time of day, if it is kept."""

    def keeps(mask):
        return mask is None or (isinstance(mask, dict) and mask.get("time") == "keep")

    kept = [c for c in ("came", "left") if keeps(ma[c]) and keeps(mb[c])]
    times = [list(zip(*(f[c].dt.time().to_list() for c in kept), strict=True)) for f in (a, b)]
    return unique_pairs(*times)


def stays(a, b, ma, mb):
    """Two dates under one shift leave the days between them."""
    for m in (ma, mb):
        one_shift = m["came"] is None or (isinstance(m["came"], dict) and "domain" in m["came"])
        if m["came"] != m["left"] or not one_shift:
            return []
    both = equal_columns(ma, mb)
    days = [(f["left"].dt.date() - f["came"].dt.date()).alias("days") for f in (a, b)]
    return unique_pairs(*(f.select(*both, d).rows() for f, d in zip((a, b), days, strict=True)))


def nearest(a, b, ma, mb):
    """Each record with the nearest one: by one number alone, and by all of them in the mean."""
    numbers = [c for c in ("age", "pay") if all(f[c].dtype.is_numeric() for f in (a, b))]
    sets = [[c] for c in numbers] + ([numbers] if len(numbers) > 1 else [])
    out = []
    for chosen in sets:
        x, y = (f.select(chosen).to_numpy().astype(float) for f in (a, b))
        far = (((x[:, None, :] - y[None, :, :]) / x.std(axis=0)) ** 2).sum(axis=2)
        for at, row in enumerate(far):
            best = np.flatnonzero(row == row.min())
            if len(best) == 1:
                out.append((at, int(best[0])))
    return out


def nearest_means(a, b, ma, mb):
    """Noise averages out over the records of a pseudonym: the nearest mean of those with as many records."""
    out = []
    for c in ("age", "pay"):
        if "hide" in (ma["pid"], mb["pid"], ma[c], mb[c]):
            continue
        if not all(f[c].dtype.is_numeric() for f in (a, b)):
            continue
        means = [f.group_by("pid", maintain_order=True).agg(pl.col(c).mean(), pl.len()) for f in (a, b)]
        for who, mean, size in means[0].rows():
            like = [(abs(m - mean), w) for w, m, s in means[1].rows() if s == size]
            best = [w for d, w in like if d == min(like)[0]]
            if len(best) == 1:
                to = b["pid"].to_list().index(best[0])
                out += [(i, to) for i, w in enumerate(a["pid"].to_list()) if w == who]
    return out


def test_the_attacks_find_something():
    """An attack that never succeeds would hold `check` to nothing."""
    shift = {"use": "date-shift", "days": 40, "time": "keep", "domain": "d"}
    whole = dict.fromkeys(EVERY) | {"pid": "pseudonym", "came": shift, "left": shift}
    noisy = whole | {"age": {"use": "noise", "spread": 3}, "pay": {"use": "noise", "spread": 40}}
    exact = whole | {"zip": {"use": "blur", "first": 2}}
    frame, made = patients(1), policy(exact, noisy, whole)
    a, noised, c = (view(frame, made, f"r{at}", keys=KEYS, seed=0) for at in range(3))
    who = frame["pid"].to_list()
    for attack in ATTACKS:
        b, masks = (noised, noisy) if attack in (nearest, nearest_means) else (c, whole)
        found = [who[a.rows[i]] == who[b.rows[j]] for i, j in attack(a.data, b.data, exact, masks)]
        assert sum(found) >= 2, attack.__name__


ATTACKS = [join, coarsened, trajectories, gaps, clocks, stays, nearest, nearest_means]


SHIFTED = {name: {"use": "date-shift", "days": 40, "time": "keep", "domain": "d"} for name in ("came", "left")}
# two roles that share no column but the days between two dates
DAYS_ONLY = (
    {**dict.fromkeys(("pid", "zip", "age", "pay")), "rank": "suppress", **SHIFTED},
    {
        "pid": "pseudonym",
        "zip": {"use": "blur", "first": 2},
        "rank": None,
        "age": {"use": "bucket", "width": 10},
        "pay": {"use": "noise", "spread": 40},
        **SHIFTED,
    },
)


@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.integers(0, 10**6), role, role)
@example(0, *DAYS_ONLY)
def test_check_says_at_least_what_every_attack_finds(seed, one, other):
    frame, made = patients(seed), policy(one, other)
    (pool,), failed = roles.pools(frame, made, keys=KEYS)
    assert not failed
    released = [view(frame, made, f"r{at}", keys=KEYS, seed=0) for at in range(2)]
    who = frame["pid"].to_list()
    for masks in ((one, other), (other, one)):
        a, b = released if masks == (one, other) else released[::-1]
        for attack in ATTACKS:
            right = {a.rows[i] for i, j in attack(a.data, b.data, *masks) if who[a.rows[i]] == who[b.rows[j]]}
            assert len(right) <= pool.linked or not pool.new, attack.__name__


@pytest.fixture(scope="module")
def four():
    chosen = [
        {c: None if c in shown else "hide" for c in EVERY} | more
        for shown, more in (
            (["zip", "age"], {"pid": "pseudonym"}),
            (["age", "pay"], {"pid": "pseudonym"}),
            (["rank"], {"pay": {"use": "noise", "spread": 40}}),
            (["zip"], {"came": {"use": "date-shift", "days": 40}}),
        )
    ]
    frame = patients(3, 30)
    return frame, policy(*chosen)


def test_a_pool_never_says_less_than_one_inside_it(four):
    found, _ = roles.pools(*four, keys=KEYS, most=4)
    linked = {frozenset(p.roles): p for p in found}
    for inside, less in linked.items():
        for outside, more in linked.items():
            if inside < outside:
                assert less.linked <= more.linked
                assert less.share <= more.share
                assert less.linked_people <= more.linked_people
                assert less.smallest >= more.smallest
                assert less.median >= more.median


def test_the_lines_of_two_files_do_not_match(four):
    frame, made = four
    for seed in (None, 0, 5):
        a, b = (view(frame, made, r, keys=KEYS, seed=seed) for r in ("r0", "r1"))
        assert sum(i == j for i, j in zip(a.rows, b.rows, strict=True)) < frame.height // 4


def test_files_in_the_same_order_are_linked_whole(four):
    frame, made = four
    seen = [roles.seen(view(frame, made, r, keys=KEYS, seed=0, keep_order=True), made, frame) for r in ("r2", "r3")]
    (pool,) = collusion(seen, made.schema, subjects=frame["pid"])
    assert pool.share == 1
    assert pool.worst.column == ORDER


def test_what_is_said_names_columns_and_never_values(four):
    frame, made = four
    said = " ".join(str(p) for p in roles.pools(frame, made, keys=KEYS, most=3)[0])
    assert "'pid'" in said or "'zip'" in said
    assert not any(z in said for z in frame["zip"].unique())


def test_a_figure_of_what_removing_a_column_gains_is_true(four):
    frame, made = four
    pool = roles.pools(frame, made, keys=KEYS, roles=["r0", "r1"])[0][0]
    (cause,) = (c for c in pool.causes if c.column == "age")
    hidden = dict.fromkeys(EVERY, "hide") | {"pid": "pseudonym"}
    chosen = policy(hidden | {"zip": None}, hidden | {"pay": None})
    assert roles.pools(frame, chosen, keys=KEYS)[0][0].share == pytest.approx(cause.without)

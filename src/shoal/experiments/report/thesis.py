"""Bacconi 2021: every table, and every figure whose picture or sentence says something that can be checked."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from statistics import mean, median
from typing import Any

import numpy as np
import polars as pl

from shoal.datasets.streams import stream
from shoal.experiments import calibration, z_data
from shoal.experiments.report.claim import BACCONI as PAPER
from shoal.experiments.report.claim import Claim, nothing, number, ratio, shape
from shoal.experiments.z_data import AFTERNOON, NAMES, afternoon, play, played
from shoal.experiments.z_streams import hidden
from shoal.experiments.z_time import FIXED, START
from shoal.streams.z_stream import Pushed

MARK = "15m"
# what is kept of people on whole days: with a twentieth of them z is 2, and p_k much lower than with everyone
DAYS = {"ecommerce": 1.0, "domains": 0.03, "positions": 1.0}
PART = {"domains": 0.2}  # of every domain ten would be invented: two in ten people are enough to see it
LEAD = 1.0  # hours before an afternoon whose outcomes are not counted: the first z is found when a window is full
# Tables 6.1 and 6.2, by diff max 0, z/4, z/3, z/2: anonymized and volume, without generalization, in percent
ALONE = {
    "ecommerce": ((84, 81, 79.8, 76.6), (-84, -57, -35.3, 50)),
    "domains": ((46.3, 39.9, 38.8, 36.7), (-46.3, 494, 704, 1313)),
    "positions": ((85, 80.8, 78.9, 73.9), (-85, -34.6, 12.8, 192)),
}
# Tables 6.3 to 6.5, by diff max 0, z/6, z/5, z/4: anonymized, volume, residual information, with generalization
BESIDE = {
    "ecommerce": ("6.3", (11.9,) * 4, (-11.9, -3.6, 0.1, 9.2), (61.3, 63.2, 63.6, 64.4)),
    "domains": ("6.4", (31.0,) * 4, (-31, 177, 296, 558), (89.2, 92.5, 93.3, 94.1)),
    "positions": ("6.5", (0.3,) * 4, (-0.3, 18.6, 28.3, 48), (81.9, 84.4, 84.9, 85.8)),
}
# hours of a day with many people: with few of them the same k weighs more, and another order of the streams comes out
LARGE = {"ecommerce": 0.5, "domains": 0.3, "positions": 1.0}
SHARES, KS = (0.3, 0.5, 0.7, 0.9), (2, 4, 6, 9)


def data_sets() -> Iterator[Claim]:
    """Tables 3.4 and 3.5, 4.1 to 4.3, and the exposure that the paper of 2020 measured."""
    for row in calibration.shape():
        yield ratio(PAPER, row["item"], f"{row['stream']}: {row['what']}", row["published"], row["ours"], 0.05)
    for row in calibration.levels():
        yield number(PAPER, row["item"], f"{row['stream']}: {row['what']}", row["published"], row["ours"], 3.0)


def by_z() -> Iterator[Claim]:
    """Figures 4.1 and 4.2."""
    zs = {"ecommerce": (1, 5, 20), "domains": (5, 100, 900), "positions": (2, 50, 150)}
    for name, frame in afternoon().items():
        scaled = [max(1, round(z * z_data.SHRINK)) for z in zs[name]]
        alone, general = (
            [hidden(frame, _values(play(frame, z, generalize=g)[1]))[0] for z in scaled] for g in (False, True)
        )
        ours = ", ".join(
            f"z {z}: {a:.2f} (generalized {b:.2f})" for z, a, b in zip(zs[name], alone, general, strict=True)
        )
        rises = all(a <= b for a, b in pairwise(alone))
        yield shape(PAPER, "Figure 4.1", f"{name}: p_k rises with z", "rises", rises, ours)
        slower = all(b <= a + 1e-9 for a, b in zip(alone, general, strict=True))
        yield shape(PAPER, "Figure 4.2", f"{name}: generalized, the same z hides fewer", "fewer", slower, ours)


def over_time() -> Iterator[Claim]:
    """Figures 4.4, 5.1 to 5.6 and 5.8, on whole days: shop and positions with everyone, domains thinned."""
    entropy: dict[str, tuple[float, float]] = {}
    for name in NAMES:
        thin = DAYS[name] * z_data.SHRINK
        frame = stream(name, thin)
        fixed = _marks(play(frame, max(2, round(FIXED[name] * thin)), every=MARK, k=2)[2])
        p, traffic = fixed["p_k"].to_numpy(), fixed["events"].to_numpy()
        if name == "domains":
            falls = float(np.corrcoef(p, traffic)[0, 1])
            yield shape(
                PAPER, "Figure 4.4", f"{name}: p_k collapses as traffic rises", "falls", falls < -0.3, f"r {falls:.2f}"
            )
        else:
            yield number(PAPER, "Figure 4.4", f"{name}: p_k around", 0.6, float(p.mean()), 0.15)
        yield from _incremental(name, frame, thin)
        found: dict[str, pl.DataFrame] = {}
        for figure, k, goal in (("5.5", 2, 0.8), ("5.6", 3, 0.9), ("5.8", 3, 0.8)):
            tune: dict[str, Any] = {"goal": {"k": k, "probability": goal}, "every": "30m"}
            found[figure] = _marks(play(frame, 1, every=MARK, k=k, tune=tune)[2])
            if figure != "5.8":
                got = float(found[figure]["p_k"].mean())  # type: ignore[arg-type]
                yield number(PAPER, f"Figure {figure}", f"{name}: p_k around its goal", goal, got, 0.1)
        # asked of the search as published: ours, which corrects itself by what came out, drives z up on a new stream
        tune = {"goal": {"k": 3, "probability": 0.9}, "every": "30m", "correct": False}
        search = _marks(play(frame, 1, every=MARK, k=3, tune=tune)[2])
        follows = float(np.corrcoef(search["z"].to_numpy(), search["events"].to_numpy())[0, 1])
        what = f"{name}: z of the search as published follows the traffic"
        yield shape(PAPER, "Figure 5.6", what, "follows", follows > 0.3, f"r {follows:.2f}")
        low, high = (float(np.median(found[figure]["z"].to_numpy())) for figure in ("5.5", "5.6"))
        ours = f"{low:g} to {high:g} (thinned)"
        yield shape(PAPER, "Figure 5.6", f"{name}: a higher goal takes a higher z", "higher", high > low, ours)
        kept = found["5.8"]
        entropy[name] = (float(kept["entropy_before"].mean()), float(kept["residual"].mean()))  # type: ignore[arg-type]
    yield from _entropy(entropy)
    yield nothing(
        PAPER, "Figure 5.7", "positions as cells of a grid", "drawn by `shoal experiment z-time`", "a picture alone"
    )


def _incremental(name: str, frame: pl.DataFrame, thin: float) -> Iterator[Claim]:
    """Figures 5.1 to 5.4: the incremental tuner moves towards the goal, the faster the more often it is asked."""
    far = {}
    for every in ("30m", "5m"):
        start = max(2, round(START[name] * thin))
        tune = {"goal": {"k": 2, "probability": 0.8}, "by": "incremental", "every": every, "start": start}
        p = _marks(play(frame, 1, every=MARK, k=2, tune=tune)[2])["p_k"].to_numpy()
        far[every] = float(np.abs(p - 0.8).mean())
    item = {"ecommerce": "Figures 5.1, 5.2", "domains": "Figure 5.3", "positions": "Figure 5.4"}[name]
    ours = f"mean distance {far['30m']:.3f} every 30 m, {far['5m']:.3f} every 5 m"
    yield shape(
        PAPER, item, f"{name}: asked more often, nearer to the goal", "nearer", far["5m"] <= far["30m"] + 0.005, ours
    )


def _entropy(found: dict[str, tuple[float, float]]) -> Iterator[Claim]:
    ours = ", ".join(f"{n} {h:.1f} bits, {left:.0%} left" for n, (h, left) in found.items())
    least = min(found, key=lambda n: found[n][0])
    yield shape(PAPER, "Figure 5.8", "domains have the lowest entropy before", "domains", least == "domains", ours)


def goals() -> Iterator[Claim]:
    """Figures 5.9 to 5.12: median z and residual information by goal."""
    left: dict[str, dict[str, list[float]]] = {"p": {}, "k": {}}
    for name in NAMES:
        thin = LARGE[name] * z_data.SHRINK
        frame = stream(name, thin, hours=(12.0, 16.0))
        for by, values in (("p", SHARES), ("k", KS)):
            zs: list[float] = []
            for value in values:
                k, p = (3, value) if by == "p" else (int(value), 0.8)
                tune = {"goal": {"k": k, "probability": p}, "every": "30m"}
                made, _, rows = play(frame, 1, every="30m", k=k, tune=tune)
                # while the first hour fills, its window tells nothing of later ones
                zs.append(median(d.z for d in list(made.decisions)[2:] or made.decisions) / thin)
                left[by].setdefault(name, []).append(mean(r["residual"] for r in rows[2:] or rows))
            item = "Figure 5.9" if by == "p" else "Figure 5.10"
            ours = ", ".join(f"{v:g}: {z:,.0f}" for v, z in zip(values, zs, strict=True))
            rises = all(a <= b for a, b in pairwise(zs))
            yield shape(PAPER, item, f"{name}: the median of z rises with the goal's {by}", "rises", rises, ours)
            if by == "p" and name == "domains":
                yield shape(
                    PAPER, item, "domains: a median above 1,000 at a goal of 0.9", "> 1,000", zs[-1] > 1000, ours
                )
    for by, item in (("p", "Figure 5.11"), ("k", "Figure 5.12")):
        ours = "; ".join(f"{n} " + ", ".join(f"{v:.2f}" for v in got) for n, got in left[by].items())
        low = min(left[by], key=lambda n: left[by][n][-1])
        high = max(left[by], key=lambda n: left[by][n][-1])
        order = f"most is left of domains, least of ecommerce, by {by}"
        yield shape(PAPER, item, order, "domains, ecommerce", (high, low) == ("domains", "ecommerce"), ours)
    ours = ", ".join(f"{name} {got[1]:.0%}" for name, got in left["k"].items())
    most = max(left["k"], key=lambda n: left["k"][n][1])
    yield shape(PAPER, "Figure 5.8", "domains keep most of their information", "domains", most == "domains", ours)
    moved = max(max(got) - min(got) for got in left["k"].values())
    yield shape(PAPER, "Figure 5.12", "k has no particular impact", "below 0.2", moved < 0.2, f"at most {moved:.2f}")


def noise() -> Iterator[Claim]:
    """Tables 6.1 to 6.5: the search of Algorithm 4 finds z every hour; the hour before is not counted."""
    for name in NAMES:
        frame = with_lead(name)
        before = hidden(frame, frame["value"])[1]
        part = z_data.SHRINK * PART.get(name, 1.0)
        alone = noisy(frame, False, (0.0, 1 / 4, 1 / 3, 1 / 2), before, part=part)
        for at, label in enumerate(("0", "z/4", "z/3", "z/2")):
            published = ALONE[name]
            yield number(
                PAPER, "Table 6.1", f"{name}, diff max {label}: anonymized, %", published[0][at], alone[at][0], 5
            )
            yield number(PAPER, "Table 6.2", f"{name}, diff max {label}: volume, %", published[1][at], alone[at][1], 20)
        less = all(a[0] >= b[0] for a, b in pairwise(alone))
        more = all(a[1] <= b[1] for a, b in pairwise(alone))
        yield shape(PAPER, "Table 6.1", f"{name}: wider, less is anonymized", "falls", less, "")
        yield shape(PAPER, "Table 6.2", f"{name}: wider, the volume grows", "grows", more, "")
        table, *columns = BESIDE[name]
        beside = noisy(frame, True, (0.0, 1 / 6, 1 / 5, 1 / 4), before, part=part)
        for at, label in enumerate(("0", "z/6", "z/5", "z/4")):
            for column, (what, within) in enumerate((("anonymized", 5.0), ("volume", 20.0), ("residual", 5.0))):
                words = f"{name}, diff max {label}: {what}, %"
                yield number(PAPER, f"Table {table}", words, columns[column][at], beside[at][column], within)
        same = max(b[0] for b in beside) - min(b[0] for b in beside) < 1e-9
        yield shape(PAPER, f"Table {table}", f"{name}: noise changes nothing of what is anonymized", "same", same, "")
        kept = all(a[2] <= b[2] + 1e-9 for a, b in pairwise(beside))
        yield shape(PAPER, f"Table {table}", f"{name}: wider, more information is left", "grows", kept, "")


def with_lead(name: str) -> pl.DataFrame:
    """An afternoon, and an hour before it: the first z is found when the first window is full."""
    first, last = AFTERNOON[name]
    return stream(name, z_data.SHRINK * PART.get(name, 1.0), hours=(first - LEAD, last))


def noisy(
    frame: pl.DataFrame,
    generalize: bool,
    widths: tuple[float, ...],
    before: float,
    z: int | None = None,
    part: float = 1.0,
) -> list[tuple[float, float, float]]:
    """Anonymized, volume and residual information, in percent, after the lead; z found every hour, or given.

    As in the thesis, z is what the binary search finds on the last hour, and who has nothing released is not counted:
    its p_k is taken over what was put out. An event lacks as many people as z has more than it, so that fewer are
    invented where people and z are thinned alike: ``part`` of the people is made up for.
    """
    counted = (frame["time"] >= frame["time"][0] + LEAD * 3600).to_numpy()
    total = int(counted.sum())
    out = []
    for most in widths:
        more: dict[str, Any] = {"noise": {"most": most}, "allow_noise": True} if most else {}
        if z is None:
            goal = {"k": 3, "probability": 0.8}
            more["tune"] = {"goal": goal, "every": "1h", "settle": "0s", "empty": "ignore", "correct": False}
        fakes = 0

        def count(first: int, pushed: Pushed, counted: Any = counted) -> None:
            nonlocal fakes
            fakes += int(counted[first + np.array([fake[0] for fake in pushed.fakes], np.int64)].sum())

        values = played(frame, z or 1, count, generalize=generalize, **more)
        withheld = int((values.is_null().to_numpy() & counted).sum())
        after = hidden(frame, values)[1]
        out.append((100 * withheld / total, 100 * (fakes / part - withheld) / total, 100 * after / before))
    return out


def _values(parts: list[Any]) -> pl.Series:
    released: pl.Series = pl.concat([part.values for part in parts])
    return released


def _marks(rows: list[dict[str, Any]]) -> pl.DataFrame:
    """What was measured, without the first hours: nothing fills a window yet."""
    table = pl.DataFrame(rows, infer_schema_length=None)
    return table.filter(pl.col("time") >= table["time"][0] + 2 * 3600)


assert set(ALONE) == set(NAMES)

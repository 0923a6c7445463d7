"""The other four papers: Jha et al. 2020, Minutoli et al. 2021, Allgöwer 2023, Garai 2019."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from statistics import mean

import numpy as np
import polars as pl

from shoal.core.errors import UsageError
from shoal.core.hierarchy.prefix import Prefix
from shoal.core.hierarchy.tree import Tree
from shoal.datasets.streams import web_visits
from shoal.experiments import calibration, graph, kp, published_curves
from shoal.experiments.report.claim import ALLGOEWER, GARAI, JHA, MINUTOLI, Claim, nothing, number, ratio, shape
from shoal.masks import MASKS
from shoal.masks.base import Context
from shoal.masks.window_mask import RunningWindow
from shoal.measures.zk_model import Model
from shoal.series.release import SeriesRelease
from shoal.streams.z_stream import z_anonymity

# figure, what, published, tolerance, z, k, model: numbers that the text gives
MODEL: tuple[tuple[str, str, float, float, int, int, Model], ...] = (
    ("Figure 3a", "A = 5,000, z = 20, k = 2", 0.9, 0.05, 20, 2, Model()),
    ("Figure 4", "z = 20, k = 2", 0.8, 0.1, 20, 2, Model()),
    ("Figure 4", "z = 36, k = 2", 1.0, 0.02, 36, 2, Model()),
    ("Figure 4", "z = 36, k = 4", 1.0, 0.02, 36, 4, Model()),
    ("Figure 5", "U = 22,000, z = 9, k = 2", 0.5, 0.05, 9, 2, Model(users=22_000)),
    ("Figure 6a", "N = 20, z = 20, k = 2", 1.0, 0.02, 20, 2, Model(windows=20)),
    ("Figure 6a", "N = 45, z = 20, k = 2", 0.0, 0.02, 20, 2, Model(windows=45)),
    ("Figure 6b", "N = 70, z = 120, k = 2", 1.0, 0.05, 120, 2, Model(windows=70)),
    ("Figure 6b", "N = 400, z = 120, k = 2", 1.0, 0.05, 120, 2, Model(windows=400)),
    ("Figure 6b", "N = 10, z = 1, k = 2", 0.0, 0.05, 1, 2, Model(windows=10)),
)
# instant value loss of the sales set, PAA 6: by P at k = 16, then by k at P = 6
VALUE = {
    (16, 3): (11.55, 16.68), (16, 6): (11.66, 16.32), (16, 9): (12.11, 17.23), (16, 12): (11.49, 17.96),
    (32, 6): (15.17, 18.92), (64, 6): (20.04, 20.80), (128, 6): (25.12, 40.00),
}  # fmt: skip
PATTERN = {(16, 3): (0.849, 0.726), (16, 6): (0.899, 0.730), (16, 9): (0.910, 0.754), (16, 12): (0.924, 0.761)}
FIGURE_12 = {"sum": 180.0, "median": 32.0, "mean": 30.0, "max": 45.0, "min": 23.0, "count": 6.0, "mode": 26.0}


def z_model() -> Iterator[Claim]:
    """Jha et al. 2020: the example, Figures 2 to 8 by the paper's formula, and beside each the exact model."""
    stream = z_anonymity(3, 10.0, key=b"k" * 32)
    events = ((0, "u0"), (1, "u1"), (2, "u0"), (3, "u2"), (13, "u3"))
    said = [stream.push(float(t), who, "a0") is not None for t, who in events]
    right = said == [False, False, False, True, False]
    yield shape(
        JHA, "Figure 1", "only u2's event at t3 is released", "t3", right, str(said.index(True) if any(said) else None)
    )
    rare = float(Model().p_y(20)[0][299])
    yield shape(JHA, "Figure 2", "z = 20: rank 300 below 1e-6", "< 1e-6", rare < 1e-6, f"{rare:.1e}")
    for figure, what, published, within, z, k, model in MODEL:
        yield number(JHA, figure, f"{what}, by the formula", published, model.p_k(z, k, "paper2020").value, within)
        yield number(JHA, figure, f"{what}, exact", published, model.p_k(z, k).value, within)
    visits = web_visits()
    measured = Model(users=visits.users, exposed=visits.exposed)
    seen = {z: measured.p_k(z, 2, "paper2020").value for z in (100, 200, 350, 600)}
    ours = ", ".join(f"z {z}: {p:.2f}" for z, p in seen.items())
    yield shape(JHA, "Figure 8", "p_k is 0 until z about 200", "0", seen[200] < 0.05, ours)
    yield shape(JHA, "Figure 8", "p_k is 1 at z about 350", "1", seen[350] > 0.95, ours)
    for row in calibration.exposure():
        within = {"most exposed site": 0.05, "sites above 0.1": 3, "sites above 0.01": 20}[row["what"]]
        yield number(JHA, "Figure 7", f"an hour of domains: {row['what']}", row["published"], row["ours"], within)


def curves(shared: Path | None) -> Iterator[Claim]:
    """Minutoli et al. 2021: loss against P and k on the sales set, and the order of the methods on all three."""
    sets = kp.sets(shared)
    name, source, frame, key = sets[0]
    for (k, p), published in VALUE.items():
        at = f"sales ({source}), k = {k}, P = {p}"
        own = {m: kp.release(frame, key, m, k, p) for m in ("naive", "kapra as published", "kapra")}
        yield from _value_loss(at, k, published, own)
        if (k, p) in PATTERN:
            yield from _pattern_loss(at, PATTERN[k, p], own)
    for name, source, frame, key in sets:
        one, other = (kp.release(frame, key, m, 16, 6).loss for m in ("naive", "kapra as published"))
        ours = (
            f"{one.pattern:.3f} and {other.pattern:.3f}; totals {one.pattern_total:,.0f} and {other.pattern_total:,.0f}"
        )
        yield shape(
            MINUTOLI, "pattern loss", f"{name} ({source}): KAPRA loses less pattern than Naive", "less",
            other.pattern < one.pattern, ours,
        )  # fmt: skip
        ours = f"{one.value:.2f} and {other.value:.2f}; totals {one.value_total:,.0f} and {other.value_total:,.0f}"
        yield shape(
            MINUTOLI, "value loss", f"{name} ({source}): KAPRA loses more value than Naive", "more",
            other.value > one.value, ours,
        )  # fmt: skip


def _value_loss(at: str, k: int, published: tuple[float, float], own: dict[str, SeriesRelease]) -> Iterator[Claim]:
    """Both methods as they were run, beside what was measured; and ours, which must not lose more."""
    values = own["naive"].curves.values
    run = [published_curves.top_down(values, k, np.random.default_rng(seed)) for seed in range(3)]
    naive = mean(sum(published_curves.loss_of(values, g) for g in groups) / len(values) for groups in run)
    kapra = own["kapra as published"].loss.value
    yield ratio(MINUTOLI, "value loss", f"{at}: Naive as published", published[0], naive, 0.15)
    yield ratio(MINUTOLI, "value loss", f"{at}: KAPRA as published", published[1], kapra, 0.15)
    for method, theirs in (("naive", naive), ("kapra", kapra)):
        ours = own[method].loss.value
        words = f"{at}: our {'Naive' if method == 'naive' else 'KAPRA'} loses no more"
        yield shape(MINUTOLI, "value loss", words, f"{theirs:.2f}", ours <= theirs * 1.02, f"{ours:.2f}")


def _pattern_loss(at: str, published: tuple[float, float], own: dict[str, SeriesRelease]) -> Iterator[Claim]:
    """As it was measured, and as it is defined."""
    for method, words, value in (
        ("naive", "Naive", published[0]), ("kapra as published", "KAPRA as published", published[1])
    ):  # fmt: skip
        made = own[method]
        texts = made.encoded.texts(made.grouping.word[made.records])
        measured = published_curves.measured_pattern_loss(made.curves.values[made.records], texts).mean()
        yield number(MINUTOLI, "pattern loss", f"{at}: {words}, as it was measured", value, float(measured), 0.03)
        yield number(MINUTOLI, "pattern loss", f"{at}: {words}, as it is defined", value, made.loss.pattern, 0.1)


def role_views() -> Iterator[Claim]:
    """Allgöwer 2023: the numbers of Figure 12; its chapter 5 has headings only."""
    ages = pl.Series([23, 45, 26, 32, 26, 27])
    for function, published in FIGURE_12.items():
        running = MASKS.decode({"use": "aggregate", "function": function}).start(Context(type="int"))
        assert isinstance(running, RunningWindow)
        made = running.apply(ages, None, 0)
        assert made is not None
        yield number(ALLGOEWER, "Figure 12", function, published, float(made[0]), 0.5)
    yield nothing(
        ALLGOEWER, "chapter 5", "throughput, waiting and loss by scope, window, k and delay",
        "measured by `shoal experiment views`", "the chapter has headings and no numbers",
    )  # fmt: skip


def graph_approximation(out: Path) -> Iterator[Claim]:
    """Garai 2019: what generalizers cost. Its pictures came without their numbers."""
    table = graph.run(out / "graph")
    for (figure,), part in table.group_by("figure", maintain_order=True):
        x, ms = part["x"].to_list(), part["ms"].to_list()
        ours = ", ".join(f"{a:,}: {b:.1f} ms" for a, b in zip(x, ms, strict=True))
        yield nothing(GARAI, f"Figure {figure}", graph.TITLES[str(figure)][0], ours, "a picture without numbers")
    try:
        codes = Prefix(3).compile(pl.Series(["abcd"]))[1]
        ours = "withheld and counted" if (codes < 0).all() else "cut"
    except UsageError:
        ours = "refused"
    yield shape(GARAI, "3.4.6", "a text longer than the prefix allows is refused", "refused", ours != "cut", ours)
    try:
        Tree(children=9).compile(pl.Series(["a", "b", "c"]))
        ours = "all under one node"
    except UsageError:
        ours = "refused"
    yield shape(GARAI, "3.4.4", "more children than items are refused", "refused", ours == "refused", ours)

"""The scales on which the loss of numbers is measured, beside their definitions; and that methods obey them."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shoal
from shoal.core.domain import Domain, counted
from shoal.core.errors import UsageError
from shoal.core.hierarchy.range import Range
from shoal.core.release import boxes_of
from shoal.core.scale import FEWEST_CODED, NARROW, ends_that_help, middle
from shoal.core.schema import Column, LossScale, Schema
from shoal.core.table import code
from shoal.kernels.shared.boxes import box_cost
from shoal.measures.loss import loss

Numbers = list[int | None]
columns = st.lists(st.one_of(st.none(), st.integers(-50, 50), st.integers(-(10**6), 10**6)), min_size=2, max_size=30)


def slow(values: Numbers, low: int, high: int, scale: str) -> float:
    """The loss of the interval from ``low`` to ``high``, by the definition."""
    known = sorted(v for v in values if v is not None)

    def place(number: float) -> float:
        if scale == "rank":
            return sum(v < number for v in known) + sum(v == number for v in known) / 2
        if scale == "log":
            return math.log(number) if known[0] > 0 else math.copysign(math.log(1 + abs(number)), number)
        return number

    whole = place(known[-1]) - place(known[0])
    return (place(high) - place(low)) / whole if whole else 0.0


def coded(values: Numbers, scale: LossScale | None):
    frame = pl.DataFrame({"pay": pl.Series(values, dtype=pl.Int64)})
    return code(frame, Schema({"pay": Column("quasi", loss=scale)}))


@given(columns, st.sampled_from(["linear", "rank", "log"]))
def test_an_interval_loses_what_its_scale_says(values: Numbers, scale: LossScale) -> None:
    table = coded(values, scale)
    levels = table.levels[0]
    known = sorted({v for v in values if v is not None})
    pairs = [(a, b) for a in range(len(known)) for b in range(a, len(known))]
    low, high = (np.array([p[at] for p in pairs], np.int32) for at in (0, 1))
    wanted = [slow(values, known[a], known[b], scale) for a, b in pairs]
    assert levels.ncp(low, high) == pytest.approx(wanted)
    shape = table.shape()  # what the compiled methods minimize is what is reported
    assert [box_cost(shape, low[i : i + 1], high[i : i + 1]) for i in range(len(pairs))] == pytest.approx(wanted)


@given(columns, st.sampled_from(["rank", "log"]))
def test_a_node_loses_from_its_first_to_its_last_number_and_no_hull_more(values: Numbers, scale: LossScale) -> None:
    levels = coded(values, scale).levels[0]
    every = np.arange(levels.size if levels.missing < 0 else levels.missing, dtype=np.int32)
    for level in range(1, levels.depth):
        low = np.array([every[levels.codes[every, level] == levels.codes[at, level]][0] for at in every], np.int32)
        published_at_level = levels.ncp(every, every, level)
        assert (levels.ncp(low, every) <= published_at_level + 1e-12).all()
        assert ((published_at_level >= 0) & (published_at_level <= 1 + 1e-12)).all()


@given(columns)
def test_a_part_of_a_table_is_measured_on_the_scale_of_the_whole(values: Numbers) -> None:
    series = pl.Series("pay", values, dtype=pl.Int64)
    found, rows = counted(series, pl.Series([1] * len(values)))
    schema = Schema({"pay": Column("quasi", loss="rank")})
    part = code(series.to_frame()[:1], schema, domain=Domain({"pay": found}, {"pay": rows}))
    whole = coded(values, "rank")
    assert part.levels[0].scale is not None
    assert whole.levels[0].scale is not None
    assert np.array_equal(part.levels[0].scale.places, whole.levels[0].scale.places, equal_nan=True)


@given(st.lists(st.integers(0, 10**7), min_size=100, max_size=300), st.integers(0, 5), st.integers(0, 10**12))
def test_ends_that_help_are_round_and_have_people_beyond(values: list[int], few: int, far: int) -> None:
    values = sorted([*values, *[far] * few])
    distinct, often = np.unique(np.array(values, np.float64), return_counts=True)
    ends = ends_that_help(distinct, often.astype(np.float64), whole=True)
    assert not ends or middle(distinct, often.astype(np.float64)) < NARROW
    for name, end in ends.items():
        assert sum(v >= end if name == "top" else v <= end for v in values) >= FEWEST_CODED
        assert f"{end:.1e}" == f"{end:e}".replace("00000e", "e")  # two digits say it all


def incomes(rows: int = 400) -> pl.DataFrame:
    rng = np.random.default_rng(5)
    pay = np.round(rng.lognormal(10, 0.4, rows)).astype(np.int64)
    pay[:3] = [4_000_000, 9_000_000, 20_000_000]
    return pl.DataFrame({"pay": pay, "age": rng.integers(20, 70, rows)})


def test_heavy_tails_are_measured_by_rank_with_the_reason_and_the_end_that_helps() -> None:
    made = shoal.anonymize(incomes(), quasi=["pay", "age"], k=5, seed=1, effort="low")
    on = made.report.loss.scales
    assert (on["pay"].by, on["age"].by) == ("rank", "linear")
    assert made.report.loss.columns["pay"] == on["pay"].rank
    assert on["pay"].why.startswith("98 % of its rows lie in")
    assert on["pay"].why in made.report.text()
    told = [w for w in made.warnings if "'pay'" in w]
    assert len(told) == 1
    assert "`top: " in told[0]
    end = float(told[0].partition("`top: ")[2].partition("`")[0])
    helped = shoal.anonymize(incomes(), quasi={"pay": Range(top=end), "age": None}, k=5, seed=1, effort="low")
    assert helped.report.loss.scales["pay"].by == "linear"
    assert not helped.warnings


def test_methods_lose_less_by_the_scale_they_are_asked_to_mind() -> None:
    by = {
        scale: shoal.anonymize(incomes(), quasi=["pay", "age"], k=5, seed=1, losses={"pay": scale}).report.loss.scales
        for scale in ("linear", "rank")
    }
    assert by["rank"]["pay"].rank < 0.6 * by["linear"]["pay"].rank
    assert by["linear"]["pay"].by == "linear"  # asked for, so it stays, whatever the tails


def test_a_small_table_and_light_tails_stay_linear() -> None:
    small = coded([1, 2, 3, 10**6], None)
    light = coded(list(range(500)), None)
    assert small.levels[0].scale is None
    assert light.levels[0].scale is None


def test_the_three_scales_of_one_release_by_hand() -> None:
    table = coded([1, 2, 3, 4, 100], "linear")
    labels = np.array([0, 0, 1, 1, 1], np.int32)  # [1, 2] and [3, 100]
    on = loss(table, labels, boxes_of(table, labels)).scales["pay"]
    assert on.linear == pytest.approx((2 * 1 / 99 + 3 * 97 / 99) / 5)
    assert on.rank == pytest.approx((2 * 1 / 4 + 3 * 2 / 4) / 5)
    assert on.log == pytest.approx((2 * math.log(2) + 3 * math.log(100 / 3)) / math.log(100) / 5)


def test_a_scale_that_would_have_no_effect_is_refused() -> None:
    towns = pl.DataFrame({"town": ["a", "b"]})
    with pytest.raises(UsageError, match="published as intervals"):
        shoal.anonymize(towns, quasi=["town"], k=2, losses={"town": "rank"})
    with pytest.raises(UsageError, match="expected linear, rank or log for column 'town'"):
        shoal.anonymize(towns, quasi=["town"], k=2, losses={"town": "square"})
    with pytest.raises(UsageError, match="not quasi"):
        shoal.anonymize(towns, quasi=["town"], k=2, losses={"age": "rank"})

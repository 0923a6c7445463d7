"""Windows one after the other get what each gets by itself."""

from __future__ import annotations

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from shoal.masks.aggregate import Aggregate
from shoal.masks.base import Context
from shoal.masks.window_mask import RunningWindow, Stretch

NUMBERS = {
    "int": st.integers(-1000, 1000),
    "float": st.floats(-1e6, 1e6, allow_nan=False) | st.sampled_from([None, float("nan"), float("inf")]),
    "whole": st.floats(-1e6, 1e6, allow_nan=False),
}


@st.composite
def windows(draw: st.DrawFn):
    kind = draw(st.sampled_from(list(NUMBERS)))
    sizes = draw(st.lists(st.integers(1, 9), max_size=5))
    values = draw(st.lists(NUMBERS[kind], min_size=sum(sizes), max_size=sum(sizes)))
    people = draw(st.none() | st.lists(st.sampled_from([*"abcde", None]), min_size=len(values), max_size=len(values)))
    series = pl.Series("x", values, dtype=pl.Int64 if kind == "int" else pl.Float64)
    return series, None if people is None else pl.Series(people, dtype=pl.String), list(enumerate(sizes))


def rows(stretches: list[Stretch]) -> list[str]:
    """Texts, because NaN is not itself; withheld rows are none of them."""
    return [
        str(value) for s in stretches for value in (["withheld"] * s.rows if s.values is None else s.values.to_list())
    ]


@given(windows(), st.sampled_from(["sum", "median", "mean", "max", "min", "count", "mode"]), st.integers(2, 4))
def test_many_windows_are_masked_as_each(given_windows, function, k):
    values, people, cut = given_windows
    running = Aggregate(function=function, k=k).start(Context(type="int" if values.dtype == pl.Int64 else "float"))
    together = list(running.apply_all(values, people, cut))
    alone = list(RunningWindow.apply_all(running, values, people, cut))
    assert rows(together) == rows(alone)
    assert sum(s.windows for s in together) == len(cut)

"""Rows at a rate, under a clock moved by hand; data without end, the same for everyone."""

from __future__ import annotations

import itertools

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.core.errors import UsageError
from shoal.datasets.rounds import rounds
from shoal.runtime.pace import paced


class Clock:
    """Time that passes only while someone sleeps, or works."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        assert seconds > 0
        self.now += seconds


@given(
    sizes=st.lists(st.integers(0, 300), max_size=6),
    rate=st.floats(0.5, 1e6),
    rows=st.none() | st.integers(0, 1000),
    work=st.floats(0, 0.5),
)
def test_all_rows_come_in_order_and_never_ahead_of_their_time(sizes, rate, rows, work):
    clock = Clock()
    frames, first = [], 0
    for size in sizes:
        frames.append(pl.DataFrame({"n": range(first, first + size)}, schema={"n": pl.Int64}))
        first += size
    seen: list[int] = []
    for part in paced(frames, rate=rate, rows=rows, clock=clock, sleep=clock.sleep):
        # the rows handed out before this slice took their time
        assert clock.now - 100.0 >= len(seen) / rate - 1e-6
        seen += part["n"].to_list()
        clock.now += work
    assert seen == list(range(first if rows is None else min(first, rows)))


def test_who_falls_behind_catches_up():
    clock, at = Clock(), []
    for number, _ in enumerate(paced([pl.DataFrame({"n": range(100)})], rate=10, clock=clock, sleep=clock.sleep)):
        at.append(clock.now - 100.0)
        clock.now += 2.0 if number == 0 else 0.0
    assert at[1] == 2.0  # twenty rows are due by now
    assert at[20] == 2.0
    assert at[-1] == pytest.approx(9.9)


def test_a_rate_of_nothing_is_refused():
    with pytest.raises(UsageError, match="rate"):
        next(paced([], rate=0))


@pytest.mark.parametrize("name", ["hospital", "domains"])
def test_rounds_repeat_by_seed_and_go_on_in_time(name):
    one, two = (list(itertools.islice(rounds(name, seed=4, scale=0.0001), 2)) for _ in range(2))
    assert all(a.equals(b) for a, b in zip(one, two, strict=True))
    assert not one[0].equals(one[1])
    if name == "domains":
        assert one[1]["time"].min() >= one[0]["time"].max()
        assert set(one[1]["subject"]) & set(one[0]["subject"])


def test_an_unknown_name_is_told_at_once():
    with pytest.raises(UsageError, match="no data set"):
        rounds("people")

"""The tuples that wait beside a slow twin, a list: nothing is lost or exchanged, nor moved without need."""

from __future__ import annotations

import numpy as np
import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from shoal.streams import waiting
from shoal.streams.coder import Coded
from shoal.streams.waiting import BUSY, COLUMNS, IDLE, Waiting

DELAY = 60
steps = st.lists(
    st.tuples(st.integers(0, 12), st.integers(0, 2**30), st.sampled_from([None, 0, IDLE, BUSY])), max_size=12
)


def coded(numbers: np.ndarray) -> Coded:
    n = len(numbers)
    paths = np.repeat(numbers, 6).reshape(n, 1, 6)
    cells = numbers[:, None].astype(np.float64)
    return Coded(cells, cells + 1, paths, paths + 0.5, np.zeros(n, np.uint8), numbers[:, None].astype(np.int32), 0)


@given(steps, st.integers(1, 5))
def test_rows_come_and_go_as_in_a_list(plan: list[tuple[int, int, int | None]], block: int) -> None:
    waiting.BLOCK, before = block, waiting.BLOCK
    try:
        held, twin, came = Waiting(coded(np.zeros(0, np.int64)), 1, DELAY), [], 0
        for more, seed, share in plan:
            new = np.arange(came, came + more)
            came += more
            held.add(pl.DataFrame({"x": new}), coded(new), new[None].astype(np.int32), dict.fromkeys(COLUMNS, new * 3))
            twin += new.tolist()
            going = [at for at, row in enumerate(held.rows) if (seed >> (at % 30)) & 1]
            rows = held.rows
            held.leave(rows[going])
            twin = [number for at, number in enumerate(twin) if at not in going]
            if share is not None:
                held.sweep(share=share)
            rows = held.rows
            assert held.left == len(rows) == len(twin)
            assert share != 0 or held.size == held.left
            assert (held.column("event")[rows] // 3).tolist() == twin
            assert held.coded.take(rows).node[:, 0, 5].tolist() == twin
            assert held.codes(rows)[0].tolist() == twin
            assert (held.frame(rows)["x"].to_list() if twin else []) == twin
    finally:
        waiting.BLOCK = before


def test_a_whole_delay_comes_without_moving_what_waits() -> None:
    """Copies of all that waits would be the longest pause: none is made while a delay fills up."""
    held = Waiting(coded(np.zeros(0, np.int64)), 1, DELAY)
    places = {id(array) for array in held._arrays.values()}
    for at in range(0, 2 * DELAY, 4):
        new = np.arange(at, at + 4)
        held.add(pl.DataFrame({"x": new}), coded(new), new[None].astype(np.int32), dict.fromkeys(COLUMNS, new))
        if held.left > DELAY:
            held.leave(held.rows[:4])
        held.sweep(share=IDLE)
    assert places == {id(array) for array in held._arrays.values()}

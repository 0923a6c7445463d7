"""A window too large to be planned at once is decided block by block, and every law of delayed streams still holds."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl
import pytest

from shoal.core.hierarchy.range import Range
from shoal.core.schema import Column, Schema
from shoal.promises.k_anonymity import KAnonymity
from shoal.streams import castle, spread
from shoal.streams.base import Batch
from shoal.streams.batches import Batches
from tests.laws import test_stream_bounds, test_stream_groups, test_stream_times, test_stream_utility

LAWS = [
    test_stream_groups.test_each_event_has_one_outcome_in_time_and_every_boundary_keeps_k,
    test_stream_groups.test_batches_of_any_size_and_a_snapshot_anywhere_decide_alike,
    test_stream_groups.test_diversity_and_closeness_hold_when_released,
    test_stream_times.test_ticks_release_a_quiet_stream_in_time,
    test_stream_times.test_a_shown_time_is_a_quasi_column,
    test_stream_utility.test_a_promise_that_always_holds_changes_no_byte,
]
SCHEMA = Schema(
    {
        "who": Column("subject"),
        "age": Column("quasi", hierarchy=Range(min=0, max=1000), type="int"),
        "pay": Column("quasi", hierarchy=Range(min=0, max=1000), type="int"),
    }
)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Windows of six tuples are large, and clusters of five."""
    monkeypatch.setattr(spread, "PIECE", 6)
    monkeypatch.setattr(spread, "PEOPLE", 1)
    for name, value in (("SMALL", 0), ("LARGE", 5), ("PIECE", 4), ("PEOPLE", 0)):
        monkeypatch.setattr(castle, name, value)
    return


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
def test_the_laws_of_delayed_streams_hold_in_blocks(law: object) -> None:
    law()  # type: ignore[operator]


@pytest.mark.usefixtures("small")
def test_memory_is_bounded_in_blocks() -> None:
    test_stream_bounds.test_memory_is_bounded_by_delay_and_boxes("batches")


def played(size: int, *, delay: int = 400, count: int = 3000) -> tuple[list[int], list[int], list[tuple[str, str]]]:
    rng = np.random.default_rng(5)
    frame = pl.DataFrame({"age": rng.integers(0, 1000, count), "pay": rng.integers(0, 1000, count)})
    people = pl.Series([f"p{i}" for i in rng.integers(0, 900, count)])
    running = Batches(delay=delay, reuse="never").start(SCHEMA, [KAnonymity(5)], key=bytes(32))
    events, when, cells = [], [], []
    for start in range(0, count, size):
        part = slice(start, start + size)
        out = running.push(Batch(frame[part], np.arange(start, start + len(frame[part])), people[part], start))
        if out.released is not None:
            events += out.events.tolist()
            when += [start + size - 1] * len(out.events)
            cells += out.released.rows()
        assert not len(out.withheld)
    return events, when, cells


def test_a_large_window_leaves_block_by_block_and_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spread, "PIECE", 64)
    events, when, cells = played(1)
    assert max(now - event for event, now in zip(events, when, strict=True)) <= 400
    at_once = np.bincount(when)
    assert at_once.max() <= 2 * 64  # never the whole window
    assert played(250)[0::2] == (events, cells)
    assert played(3000)[0::2] == (events, cells)
    widths = [int(c.strip("[]").split(", ")[-1]) - int(c.strip("[]").split(", ")[0]) for c, _ in cells]
    monkeypatch.setattr(spread, "PIECE", 10_000)
    whole = [int(c.strip("[]").split(", ")[-1]) - int(c.strip("[]").split(", ")[0]) for c, _ in played(250)[2]]
    assert np.mean(widths) < 1.5 * np.mean(whole)

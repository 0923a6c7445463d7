"""Bounds of methods with delay: what could never be released is refused, and memory stays bounded."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

from shoal.core.errors import UsageError
from shoal.promises.k_anonymity import KAnonymity
from shoal.streams import STREAM_METHODS
from tests.laws.delayed_streams import (
    DELAYED,
    KEY,
    SCHEMA,
    batch,
    finish,
    play,
)


@pytest.mark.parametrize("name", DELAYED)
def test_what_could_never_release_is_refused_at_the_start(name: str) -> None:
    with pytest.raises(UsageError, match="nothing could ever be released"):
        STREAM_METHODS.decode({"use": name, "delay": 5}).start(SCHEMA, [KAnonymity(10)], key=KEY)


@pytest.mark.parametrize("name", DELAYED)
def test_a_crowd_that_never_reaches_k_is_withheld_to_the_last(name: str) -> None:
    frame = pl.DataFrame({"who": ["p1", "p2"] * 30, "age": [5] * 60}).with_columns(
        zip=pl.lit("10"), kind=pl.lit("covid"), diag=pl.lit("a"), same=pl.lit("x")
    )
    running = STREAM_METHODS.decode({"use": name, "delay": 10}).start(SCHEMA, [KAnonymity(3)], key=KEY)
    told = finish(running, play(running, frame, 7), frame)
    assert not told.events
    assert sorted(told.withheld) == list(range(60))


@pytest.mark.parametrize("name", ["batches", "castle"])
def test_boxes_for_ever_are_at_least_800(name: str) -> None:
    with pytest.raises(UsageError, match="at least 800"):
        STREAM_METHODS.decode({"use": name, "reuse": "forever", "boxes": 799})


@pytest.mark.parametrize("name", DELAYED)
def test_memory_is_bounded_by_delay_and_boxes(name: str) -> None:
    rng = np.random.default_rng(1)
    more = {"boxes": 800}
    running: Any = STREAM_METHODS.decode({"use": name, "delay": 20, "reuse": "forever", **more}).start(
        SCHEMA, [KAnonymity(2)], key=KEY
    )
    sizes = []
    for first in range(0, 4000, 200):
        frame = pl.DataFrame(
            {
                "who": [f"p{first + i}" for i in range(200)],
                "age": rng.integers(0, 21, 200),
                "zip": [f"{v:02}" for v in rng.integers(0, 100, 200)],
            }
        ).with_columns(kind=pl.lit("covid"), diag=pl.lit("a"), same=pl.lit("x"))
        running.push(batch(frame, first))
        assert running.held <= 21
        sizes.append(len(running.snapshot()))
    assert running.figures()["boxes"] <= 800
    assert max(sizes[10:]) <= 1.3 * max(sizes[5:10]) or running.figures()["boxes"] < 800

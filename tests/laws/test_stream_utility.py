"""A promise that holds anyway costs a stream nothing, or nearly nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.promises.k_anonymity import KAnonymity
from shoal.promises.l_diversity import LDiversity
from shoal.promises.t_closeness import TCloseness
from shoal.streams import STREAM_METHODS
from tests.laws.delayed_streams import (
    DELAYED,
    KEY,
    PARENT,
    SCHEMA,
    finish,
    methods,
    play,
    streams,
)

VOID = (
    LDiversity(1, "diag"),
    LDiversity(1, "care", kind="entropy"),
    LDiversity(1, "diag", kind="frequency"),
    TCloseness(1.0, "care"),
)


@settings(max_examples=60)
@given(st.data())
def test_a_promise_that_always_holds_changes_no_byte(data: st.DataObject) -> None:
    """Utility law: what is satisfied anyway costs nothing."""
    frame = data.draw(streams(60))
    k = data.draw(st.integers(1, 4))
    method: Any = data.draw(methods(max(1, k - 1)))
    more = data.draw(st.lists(st.sampled_from(VOID), min_size=1, max_size=3, unique=True))
    alone, both = (method.start(SCHEMA, [KAnonymity(k), *some], key=KEY) for some in ([], more))
    size = data.draw(st.integers(1, 20))
    expected = finish(alone, play(alone, frame, size), frame)
    found = finish(both, play(both, frame, size), frame)
    assert found.events == expected.events
    assert found.withheld == expected.withheld
    if expected.frames:
        assert found.data.equals(expected.data)
    assert found.boundary == expected.boundary


@pytest.mark.parametrize("name", DELAYED)
def test_a_promise_that_nearly_always_holds_costs_nearly_nothing(name: str) -> None:
    """Of five values each a fifth, k = 5 people have two at least in 999 groups of 1,000: boxes are used as before."""
    rng = np.random.default_rng(3)
    n = 3000
    frame = pl.DataFrame(
        {
            "who": [f"p{i}" for i in rng.integers(0, 900, n)],
            "age": rng.integers(0, 21, n),
            "zip": [f"{v:02}" for v in rng.integers(0, 100, n)],
            "kind": rng.choice(list(PARENT), n),
            "diag": rng.choice(["a", "b", "c", "d", "e"], n),
        }
    ).with_columns(same=pl.lit("x"))
    loss = {}
    for promise in (None, LDiversity(2, "diag"), TCloseness(0.9, "diag"), LDiversity(1.2, "diag", kind="entropy")):
        method: Any = STREAM_METHODS.decode({"use": name, "delay": 200, "reuse": "forever"})
        running = method.start(SCHEMA, [KAnonymity(5)] + ([promise] if promise else []), key=KEY)
        finish(running, play(running, frame, 500), frame)
        loss[promise] = running.figures()["loss"]
    assert max(loss.values()) <= 1.1 * loss[None]


def test_a_box_given_to_a_hundred_people_costs_no_more_with_a_promise_that_holds() -> None:
    """People who come once each: few places, so that boxes are given again to many."""
    rng = np.random.default_rng(4)
    n = 3000
    frame = pl.DataFrame(
        {
            "who": [f"p{i}" for i in range(n)],
            "age": rng.integers(0, 10, n),
            "zip": rng.choice(["10", "11", "20"], n),
            "kind": "covid",
            "diag": rng.choice(["a", "b", "c", "d", "e"], n),
        }
    ).with_columns(same=pl.lit("x"))
    loss = {}
    for promise in (None, LDiversity(2, "diag"), TCloseness(0.9, "diag")):
        method: Any = STREAM_METHODS.decode({"use": "batches", "delay": 200, "reuse": "forever"})
        running = method.start(SCHEMA, [KAnonymity(5)] + ([promise] if promise else []), key=KEY)
        finish(running, play(running, frame, 500), frame)
        loss[promise] = running.figures()["loss"]
    assert running.figures()["again_share"] > 0.5
    assert max(loss.values()) <= 1.05 * loss[None]

"""Zero has one value: its sign parts no group, makes no diversity, and stands in no cell."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import shoal
from shoal.core.errors import UsageError
from shoal.core.hierarchy import HIERARCHIES
from shoal.core.hierarchy.range import Range
from shoal.core.schema import Column, Schema
from shoal.promises.k_anonymity import KAnonymity
from shoal.promises.l_diversity import LDiversity
from shoal.release.stream import LocalRunner, StreamJob
from shoal.streams import STREAM_METHODS
from shoal.streams.z_stream import z_anonymity

KEY = bytes(range(32))
HIERARCHY: dict[str, Any] = {
    "range": {"use": "range", "min": -1, "max": 1},
    "nodes": {"use": "range", "min": -1, "max": 1, "snap": True},
    "prefix": {"use": "prefix", "length": 4},
    "suppress": "suppress",
    "tree": {"use": "tree", "nodes": {"none": ["0"], "some": ["0.5", "1"]}},
}
ZEROS = st.lists(st.sampled_from([0.0, -0.0, 0.5, None]), min_size=1, max_size=12)


@settings(max_examples=60)
@given(st.sampled_from(list(HIERARCHY)), ZEROS, st.sampled_from([pl.Float64, pl.Float32]))
@example("prefix", [-0.0, 0.0], pl.Float64)
@example("suppress", [-0.0, 0.0], pl.Float64)
@example("nodes", [-0.0, 0.0], pl.Float64)
def test_a_table_with_signed_zeros_is_released_as_without(hierarchy, values, kind):
    signed = pl.Series("x", values, dtype=kind)
    shown = [
        shoal.anonymize(pl.DataFrame({"x": series}), quasi={"x": HIERARCHY[hierarchy]}, k=1, seed=0, keep_order=True)
        for series in (signed, signed.abs())
    ]
    assert shown[0].data.equals(shown[1].data)
    assert shoal.verify(pl.DataFrame({"x": signed}), quasi=["x"], k=2) == shoal.verify(
        pl.DataFrame({"x": signed.abs()}), quasi=["x"], k=2
    )


@settings(max_examples=60)
@given(st.sampled_from(list(HIERARCHY)), ZEROS)
@example("prefix", [-0.0, 0.0])
def test_a_z_stream_counts_both_zeros_as_one_value(hierarchy, values):
    told = []
    for column in (pl.Series(values, dtype=pl.Float64), pl.Series(values, dtype=pl.Float64).abs()):
        stream = z_anonymity(2, "1h", HIERARCHIES.decode(HIERARCHY[hierarchy]), key=KEY)
        told.append(stream.push_many(range(len(values)), [f"p{i}" for i in range(len(values))], column))
    assert told[0].values.equals(told[1].values)


@pytest.mark.parametrize("method", ["batches", "castle", "fads"])
@pytest.mark.parametrize("hierarchy", list(HIERARCHY))
def test_group_streams_take_both_zeros_as_one_value(method, hierarchy):
    schema = Schema(
        {
            "at": Column("time"),
            "who": Column("subject"),
            "x": Column("quasi", hierarchy=HIERARCHIES.decode(HIERARCHY[hierarchy])),
            "s": Column("sensitive"),
        }
    )
    promises = [KAnonymity(2), LDiversity(2, column="s")]
    chosen = STREAM_METHODS.decode({"use": method, "delay": 4, "reuse": "never"})
    told: list[pl.DataFrame] = []
    runner = LocalRunner(StreamJob(schema=schema, promises=promises, method=chosen), KEY, told.append)
    who = [f"p{i}" for i in range(8)]
    runner.feed(pl.DataFrame({"at": range(8), "who": who, "x": [0.0, -0.0] * 4, "s": [0.0, -0.0] * 4}))
    runner.finish()
    assert runner.method.counters["released"] == 0, "everyone has the same sensitive value"
    assert not sum(part.height for part in told)


@pytest.mark.parametrize(
    ("kind", "hierarchy"),
    [
        (pl.Float64, Range(min=0, max=1, smallest=1e-60)),
        (pl.Float64, Range(min=0, max=1e300, smallest=1e-300)),
        (pl.Int64, Range(min=0, max=1e300)),
    ],
)
def test_a_range_of_too_many_levels_is_a_located_error(kind, hierarchy):
    frame = pl.DataFrame({"x": pl.Series([0, 0, 1, 1], dtype=kind)})
    with pytest.raises(UsageError, match="column 'x': halving this range needs more than 127 levels"):
        shoal.anonymize(frame, quasi={"x": hierarchy}, k=2)


def test_a_stream_says_at_its_start_that_a_range_has_too_many_levels():
    with pytest.raises(UsageError, match="more than 127 levels"):
        z_anonymity(2, "1h", Range(min=0, max=1, smallest=1e-60), key=KEY)
    wide = z_anonymity(1, "1h", Range(min=0, max=1e300), key=KEY)
    assert wide.push(1, "a", 7) is not None, "whole numbers of a wide range are halved as floats"


def test_a_range_of_the_most_levels_works():
    frame = pl.DataFrame({"x": [0.0, 0.0, 2.0**-130, 1.0]})
    made = shoal.anonymize(frame, quasi={"x": Range(min=0, max=1, smallest=2.0**-125, snap=True)}, k=2)
    assert made.report.verified

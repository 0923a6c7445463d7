"""Every defect found in the only other package (zanon 0.3.4), as behaviour of ours."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from shoal.core.hierarchy.grid import Grid
from shoal.measures.entropy import k_share, released_sets
from shoal.streams.tuning import Goal, Tune
from shoal.streams.z_stream import z_anonymity


def test_1_attributes_never_seen_again_are_evicted() -> None:
    stream = z_anonymity(2, 10)
    for i in range(3000):
        stream.push(1000 + i * 100, f"u{i}", f"once{i}")
    assert stream.figures()["window_events"] <= 2
    assert stream.figures()["window_nodes"] <= 2


def test_2_an_unreachable_goal_moves_z_to_the_safe_side_and_says_so() -> None:
    stream = z_anonymity(2, "1h", tune={"goal": {"k": 50, "probability": 0.99}, "every": "10m", "highest": 40})
    n = 4000
    rng = np.random.default_rng(0)
    stream.push_many(
        np.arange(n) * 2.0, [f"u{i}" for i in rng.integers(0, 30, n)], [f"v{i}" for i in rng.integers(0, 5, n)]
    )
    assert stream.decisions
    assert not stream.decisions[-1].reached
    assert stream.z == max(d.z for d in stream.decisions) > 2


def test_3_equal_sets_are_one_group_in_whatever_order_they_came() -> None:
    rng = np.random.default_rng(1)
    people, nodes = [], []
    for person in range(200):
        items = rng.choice(2000, 5, replace=False) if person % 2 == 0 else items[::-1]  # noqa: F821
        people += [person] * 5
        nodes += items.tolist()
    sizes, empty = released_sets(np.array(people, np.int32), np.array(nodes, np.int64) + 1)
    assert empty == 0
    assert (sizes == 2).all()


def test_4_k_is_the_k_that_was_asked_for() -> None:
    sizes, empty = released_sets(np.array([0, 1, 2, 3], np.int32), np.array([1, 1, 2, 2], np.int64))
    assert k_share(sizes, empty, 2) == 1.0
    assert k_share(sizes, empty, 5) == 0.0


def test_5_a_late_event_never_rewinds_nor_keeps_anyone() -> None:
    stream = z_anonymity(4, 10, late=10)
    for time, who in ((100, "u1"), (109, "u2"), (100.5, "u3"), (118, "u4")):
        stream.push(time, who, "x")
    # at 118 only u2 (109) and u4 remain: u1 and u3 were last seen before 108
    assert stream.push(118, "u5", "x") is None
    assert stream.push(118, "u6", "x") == "x"


def test_6_one_absurd_timestamp_evicts_nobody_and_supports_nobody() -> None:
    stream = z_anonymity(3, 10)
    for i in range(3):
        stream.push(100 + i, f"u{i}", "x")
    assert stream.push(1e9, "liar", "x") is None
    assert stream.push(104, "u4", "x") == "x"
    assert stream.push(113.5, "u5", "x") is None  # u4 and u5: the liar is no supporter
    assert stream.counters["future"] == 1


def test_8_people_with_nothing_released_count_if_asked() -> None:
    sizes, empty = released_sets(np.array([0, 1], np.int32), np.array([7, 7], np.int64), count=5)
    assert (k_share(sizes, empty, 2), k_share(sizes, empty, 4)) == (1.0, 0.0)
    assert k_share(sizes, empty, 2, count_empty=False) == 1.0


def test_9_nothing_is_written_and_state_holds_no_names(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(str(tmp_path))
    stream = z_anonymity(2, 10, "path", key=b"k" * 32)
    stream.push_many([1, 2], ["SECRET-PERSON", "OTHER-PERSON"], ["SECRET.VALUE", "SECRET.VALUE"])
    assert not list(__import__("pathlib").Path.cwd().iterdir())
    snapshot = stream.snapshot()
    for word in (b"SECRET", b"PERSON", b"VALUE", b"k" * 32):
        assert word not in snapshot


def test_12_grid_cells_are_metres_anywhere_and_levels_count_for_themselves() -> None:
    stream = z_anonymity(2, "1h", Grid((3000, 5000, 10_000)))  # sizes that do not nest are fine here
    out = stream.push_many([0, 1], ["a", "b"], ["45.0703,7.6869", "45.0710,7.6875"])
    assert out.values[0] is None
    assert out.values[1] is not None
    assert out.values[1].endswith("+3000m")


def test_7_10_11_figures_two_instances_separator_noise_and_incremental_exist_and_run() -> None:
    one = z_anonymity(1, 10, {"use": "path", "separator": "*"})
    two = z_anonymity(1, 10, {"use": "path", "separator": "/"})
    assert one.push(1, "u", "a*b") == "a*b"
    assert two.push(1, "u", "c/d") == "c/d"
    assert one.counters["events"] == two.counters["events"] == 1
    assert one.figures()["z"] == 1
    assert Tune(goal=Goal(2, 0.5), by="incremental").start(3).z == 3
    noisy = z_anonymity(3, 10, "path", noise={"most": 1}, allow_noise=True)
    out = noisy.push_many([1, 2, 3], ["a", "b", "c"], ["x.1", "x.1", "x.2"])
    assert isinstance(out.values, pl.Series)

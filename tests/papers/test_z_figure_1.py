"""Jha et al. 2020, Figure 1, and the shape of Bacconi 2021's Tables 4.1 to 4.3."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from shoal.streams.z_stream import z_anonymity

FIGURE_1 = [(0, "u0"), (3, "u1"), (5, "u0"), (8, "u2"), (15.5, "u3")]


def test_figure_1_only_the_third_person_is_released() -> None:
    stream = z_anonymity(3, 10)
    assert [stream.push(t, u, "a0") for t, u in FIGURE_1] == [None, None, None, "a0", None]


def test_the_window_is_closed() -> None:
    stream = z_anonymity(2, 10)
    assert [stream.push(t, u, "a") for t, u in ((0, "x"), (10, "y"), (20.000001, "z"))] == [None, "a", None]


@pytest.mark.parametrize("seed", range(3))
def test_tables_4_shares_move_as_published_when_z_grows(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = 20_000
    leaf = np.minimum(rng.zipf(1.3, n), 500)
    values = [f"{i % 3}.{i % 20}.{i}" for i in leaf.tolist()]
    people = [f"u{i}" for i in rng.integers(0, 3000, n).tolist()]
    rows = []
    for z in (1, 3, 10, 50, 200):
        stream = z_anonymity(z, "1h", "path")
        stream.push_many(np.sort(rng.uniform(0, 14_400, n)), people, values)
        c = stream.counters
        rows.append((c.get("level_0", 0), c["withheld"], c["released"]))
    assert rows[0][0] == n  # z = 1: everything at level 0
    assert all(a[0] >= b[0] and a[1] <= b[1] for a, b in pairwise(rows))
    assert all(withheld + released == n for _, withheld, released in rows)

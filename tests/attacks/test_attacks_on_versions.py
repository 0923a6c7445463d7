"""Attacks on successive releases of a growing table: what an observer of all versions learns, in both modes."""

from __future__ import annotations

import numpy as np
import polars as pl

from shoal.core.cells import read
from shoal.core.hierarchy.prefix import Prefix
from shoal.core.hierarchy.range import Range
from shoal.core.schema import Column, Schema
from shoal.promises.k_anonymity import KAnonymity
from shoal.tables.continuous import Continuous

QUASI = ["age", "zip"]
SCHEMA = Schema(
    {
        "age": Column("quasi", hierarchy=Range(min=0, max=127)),
        "zip": Column("quasi", hierarchy=Prefix(3)),
        "ill": Column("sensitive"),
    }
)
K = 4


def chunk(seed: int, n: int) -> pl.DataFrame:
    random = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "age": random.integers(18, 90, n),
            "zip": random.choice(["101", "102", "119", "201", "209"], n),
            "ill": random.choice(["flu", "cold", "gout", "measles"], n),
        }
    )


def sizes_of(frame: pl.DataFrame) -> pl.Series:
    return frame.group_by(QUASI).len()["len"]


def fits(cell: str, value: object) -> bool:
    """Whether someone with this value could be behind the cell."""
    if cell == "*":
        return True
    if cell.startswith("["):
        return read(cell).covers(float(str(value)))
    return str(value).startswith(cell.rstrip("*"))


def test_intersecting_versions_of_the_whole_tells_nothing_new_of_old_rows():
    """The attacker knows someone's exact values and that they were there from the start, and reads all versions."""
    growing = Continuous(SCHEMA, [KAnonymity(K)])
    versions = []
    for seed, n in enumerate((40, 13, 1, 25)):
        data = growing.push(chunk(seed, n)).data
        assert data is not None
        versions.append(data.head(40))
    for victim in chunk(0, 40).iter_rows(named=True):
        candidates = [
            row
            for row in range(40)
            if all(fits(version[name][row], victim[name]) for version in versions for name in QUASI)
        ]
        assert len(candidates) >= K


def test_the_difference_of_two_whole_versions_singles_out_a_new_row():
    """What is documented: k holds of each version, not of their difference. This is why `publish="new"` exists."""
    growing = Continuous(SCHEMA, [KAnonymity(K)])
    before = growing.push(chunk(0, 40)).data
    after = growing.push(chunk(7, 1)).data
    assert before is not None
    assert after is not None
    new = after.tail(1)
    assert after.height - before.height == 1
    # the observer strikes out the old rows and reads the illness of the one person who joined
    assert new["ill"].to_list() == chunk(7, 1)["ill"].to_list()


def test_the_same_attack_finds_k_people_in_every_increment():
    growing = Continuous(SCHEMA, [KAnonymity(K)], publish="new")
    published: list[pl.DataFrame] = []
    for seed, n in enumerate((40, 1, 2, 1, 30, 3)):
        out = growing.push(chunk(seed, n))
        if out.data is None:
            assert out.held < K
            continue
        assert sizes_of(out.data).min() >= K, "whoever is new hides among k who are new"
        published.append(out.data)
    assert len(published) == 3
    assert sizes_of(pl.concat(published)).min() >= K

"""Garai 2019, sections 3.6 and 3.7: the example and continuous mode, Listings 3.10 and 3.11, Figures 3.8 to 3.11."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from shoal.core.hierarchy.prefix import Prefix
from shoal.core.hierarchy.range import Range
from shoal.core.hierarchy.suppress import Suppress
from shoal.core.hierarchy.tree import Tree
from shoal.core.release import boxes_of, recode
from shoal.core.schema import Column, Schema
from shoal.core.table import code
from shoal.promises.k_anonymity import KAnonymity
from shoal.tables.continuous import Continuous
from shoal.tables.forest import Forest

NAMES = ["Name", "Age", "Pet"]
PETS = Schema.build(quasi={"Name": Suppress(), "Age": Range(min=0, max=50), "Pet": Prefix(10, words=True)})
FIRST = [("John", 27, "cats"), ("Susan", 38, "dogs"), ("Sarah", 30, "cats"), ("Mark", 40, "dogs")]
SECOND = [("Jack", 38, "dogs"), ("Jill", 40, "dogs"), ("Lilly", 27, "cats")]  # Jack as in the listing, not the figure
CATS, DOGS = ("*", "[25, 30]", "cats"), ("*", "[38, 40]", "dogs")


def pets(*rows: tuple[str, int, str]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=NAMES, orient="row")


@pytest.mark.parametrize("seed", range(5))
def test_the_first_chunk_is_figure_3_9(seed):
    """The left half of Figure 3.10 shows other intervals; Figure 3.9 and the listing agree with each other."""
    out = Continuous(PETS, [KAnonymity(2)]).push(pets(*FIRST), seed=seed)
    assert out.data is not None
    assert out.data.rows() == [CATS, DOGS, CATS, DOGS]


@pytest.mark.parametrize("seed", range(5))
def test_listing_3_11_gives_the_right_half_of_figure_3_10(seed):
    growing = Continuous(PETS, [KAnonymity(2)])
    growing.push(pets(*FIRST), seed=seed)
    out = growing.push(pets(*SECOND), seed=seed)
    assert out.data is not None
    assert out.data.rows() == [CATS, DOGS, CATS, DOGS, DOGS, DOGS, CATS]
    assert out.released == 3


@pytest.mark.parametrize("seed", range(5))
def test_all_rows_at_once_give_figure_3_11(seed):
    out = Continuous(PETS, [KAnonymity(2)]).push(pets(*FIRST, *SECOND), seed=seed)
    assert out.data is not None
    at_38, at_40 = ("*", "38", "dogs"), ("*", "40", "dogs")
    assert out.data.rows() == [CATS, at_38, CATS, at_40, at_38, at_40, CATS]


STAFF = pl.DataFrame(
    {
        "Name": ["Joe", "Jane", "Jack", "Jill"],
        "Status": ["employee", "employee", "client", "client"],
        "Age": [25, 29, 35, 47],
        "Grade": ["A", "A+", "A-", "A"],
        "Motto": ["cats are wild", "cats are wild", "dogs are loyal", "cats and dogs are pets"],
    }
)
RUN = Schema(
    {
        "Name": Column("quasi", hierarchy=Suppress()),
        "Status": Column("plain"),
        "Age": Column("quasi", hierarchy=Range(min=0, max=150, snap=True)),
        "Grade": Column("quasi", hierarchy=Tree(nodes={"[A, A+, A-]": ["A", "A+", "A-"], "[B]": ["B", "B+"]})),
        "Motto": Column("quasi", hierarchy=Prefix(10, words=True), weight=0.1),
    }
)


def test_the_groups_of_figure_3_8_are_published_as_it_shows():
    table = code(STAFF, RUN)
    labels = np.array([0, 1, 1, 0], np.int32)[table.rows]
    data, _ = recode(STAFF, RUN, table, labels, boxes_of(table, labels))
    assert data.rows() == [
        ("*", "employee", "[0, 74]", "A", "cats"),
        ("*", "employee", "[27, 36]", "[A, A+, A-]", "*"),
        ("*", "client", "[27, 36]", "[A, A+, A-]", "*"),
        ("*", "client", "[0, 74]", "A", "cats"),
    ]


def test_listing_3_10_runs_and_costs_no_more_than_its_figure():
    """The published result hangs on chance; ours, whatever the seed, is 2-anonymous and leaves the status alone."""
    table = code(STAFF, RUN)
    for seed in range(10):
        labels = Forest().group(table, [KAnonymity(2)], seed=seed).labels
        assert np.bincount(labels).tolist() in ([2, 2], [4])
        data, _ = recode(STAFF, RUN, table, labels, boxes_of(table, labels))
        assert data["Status"].equals(STAFF["Status"])


def test_a_first_chunk_smaller_than_k_is_held_back_with_a_clear_word():
    """Section 3.7.1 only demands that the first chunk has k rows."""
    growing = Continuous(PETS, [KAnonymity(3)])
    held = growing.push(pets(*FIRST[:2]))
    assert held.data is None
    assert held.held == 2
    assert "held back 2 rows" in held.word
    assert "asked 3, the whole table as one group reaches 2" in held.word
    out = growing.push(pets(*FIRST[2:]))
    assert out.data is not None
    assert out.data.height == 4

"""Promises beside k, l and t by the definitions of their papers, on tables small enough to recompute by hand.

The table of the first test is published, as it says; the tables of the others are ours, and only the definition is the
paper's.
"""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import shoal
from shoal.core.groups import Groups
from shoal.measures.special_uniques import special_uniques
from shoal.promises.alpha_k_anonymity import AlphaKAnonymity
from shoal.promises.beta_likeness import BetaLikeness
from shoal.promises.delta_presence import DeltaPresence
from shoal.promises.k_map import KMap
from shoal.promises.t_closeness import TCloseness
from shoal.promises.trajectory_anonymity import TrajectoryAnonymity

# Desfontaines, "k-map, the weird cousin of k-anonymity" and "delta-presence, for when being in the dataset is
# sensitive": one ZIP code with 5 people of 10-19, 5 of 20-29, 10 of 30-39, 10 of 40-49 and 20 of 50 or more years
AGES = [*range(10, 20, 2), *range(20, 30, 2), *range(30, 40), *range(40, 50), *range(50, 90, 2)]
ZIP_CODE = pl.DataFrame({"zip": ["85535"] * 50, "age": AGES})


def test_desfontaines_a_5_map_of_ages_tells_that_all_ten_to_nineteen_are_in_the_table():
    """Published: ages 10-19 five times and 40-49 once are 5-map; all five of 10-19 are then known to be in it."""
    published = pl.DataFrame({"zip": ["85535"] * 6, "age": ["[10, 19]"] * 5 + ["[40, 49]"]})
    asked = {"quasi": ["zip", "age"], "register": ZIP_CODE}
    found = shoal.verify(published, promises=[KMap(5)], **asked)
    assert found.kept
    assert found.findings[0].reached == 5
    assert not shoal.verify(published, promises=[KMap(6)], **asked).kept
    measured = shoal.measure(published, **asked).register
    assert measured is not None
    assert (measured.people, measured.k, measured.highest, measured.belief, measured.strange) == (50, 5, 0.2, 1.0, 0)
    assert measured.mean == pytest.approx((5 / 5 + 1 / 10) / 6), "five may be five people, one ten"
    presence = shoal.verify(published, promises=[DeltaPresence(0.9)], **asked).findings[0]
    assert (presence.kept, presence.reached) == (False, 1.0)
    wider = published.with_columns(age=pl.Series(["[10, 39]"] * 5 + ["[40, 49]"]))
    assert shoal.verify(wider, promises=[DeltaPresence(0.25)], **asked).findings[0].reached == 0.25, "5 of 20, 1 of 10"


def test_nergiz_2007_presence_is_the_share_of_the_register_behind_a_cell_that_was_released():
    """(δ_min, δ_max)-presence of Nergiz et al. 2007: δ_min <= P(a person of the register is in the table) <= δ_max.

    By hand: of six people in America three are in the table, 3/6; of three in Europe two, 2/3.
    """
    register = pl.DataFrame({"place": ["America"] * 6 + ["Europe"] * 3})
    released = pl.DataFrame({"place": ["America"] * 3 + ["Europe"] * 2})
    asked = {"quasi": ["place"], "register": register}
    assert shoal.verify(released, promises=[DeltaPresence(2 / 3, 1 / 2)], **asked).kept
    assert not shoal.verify(released, promises=[DeltaPresence(0.66, 1 / 2)], **asked).kept
    assert not shoal.verify(released, promises=[DeltaPresence(2 / 3, 0.51)], **asked).kept


@pytest.mark.parametrize(("whole", "group", "gain"), [((40, 60), (5, 5), 0.25), ((1, 99), (11, 89), 10.0)])
def test_cao_and_karras_2012_the_same_distance_and_another_gain(whole, group, gain):
    """Basic β-likeness of Cao and Karras 2012 bounds (q - p) / p, where t-closeness looks at q - p alone.

    By hand: .4 to .5 and .01 to .11 are .1 apart; (.5 - .4) / .4 is a quarter, (.11 - .01) / .01 is ten.
    """
    # so many groups of the whole's shares beside it that one group does not move them
    sick, well = group
    n = sick + well
    rest = 10_000
    others = [rest * n * whole[0] // 100 - sick, rest * n * whole[1] // 100 - well]
    values = ["HIV"] * sick + ["none"] * well + ["HIV"] * others[0] + ["none"] * others[1]
    groups = Groups(np.repeat([0, 1], [n, sum(others)]).astype(np.int32), {"s": pl.Series(values)})
    assert BetaLikeness(1, "s", kind="basic").measure(groups)[0][0] == pytest.approx(gain)
    assert TCloseness(1, "s").measure(groups)[0][0] == pytest.approx(0.1, abs=1e-4)


def test_wong_2006_a_half_of_a_group_may_have_a_named_value():
    """(α,k)-anonymity of Wong et al. 2006: k rows in a group, and a named value in at most a share α of them.

    By hand: HIV stands in one of two rows of Cat1 and in one of four of Cat2; the most is 1/2. Moved, in both of Cat1.
    """
    table = pl.DataFrame(
        {
            "job": ["Cat1", "Cat1", "Cat2", "Cat2", "Cat2", "Cat2"],
            "illness": ["HIV", "flu", "fever", "HIV", "flu", "fever"],
        }
    )
    asked = {"quasi": ["job"], "sensitive": ["illness"]}
    promise = AlphaKAnonymity(0.5, 2, "illness", values=("HIV",))
    assert shoal.verify(table, promises=[promise], **asked).findings[0].reached == 0.5
    both = table.with_columns(illness=pl.Series(["HIV", "HIV", "flu", "fever", "flu", "fever"]))
    broken = shoal.verify(both, promises=[promise], **asked).findings[0]
    assert (broken.kept, broken.reached, broken.broken) == (False, 1.0, 1)


def test_nergiz_2009_what_is_released_of_a_trajectory_refers_to_k_of_them():
    """Trajectory k-anonymity of Nergiz et al. 2009: all that is released of a trajectory refers to k trajectories.

    By hand: each of the three boxes is shared by at least two people, so single rows are 2-anonymous; but only one
    person went from the first to the third. If another goes the same way, each way is that of two.
    """
    way = {"ann": [1, 2], "bob": [1, 2], "cyd": [1, 3], "dan": [3, 3]}
    boxes = {1: ("[0, 4]", "[8, 9]"), 2: ("[5, 9]", "[10, 12]"), 3: ("[5, 9]", "[13, 18]")}

    def released(ways: dict[str, list[int]]) -> pl.DataFrame:
        rows = [(who, *boxes[box]) for who, points in ways.items() for box in points]
        return pl.DataFrame(rows, schema=["who", "place", "hour"], orient="row")

    asked = {"quasi": ["place", "hour"], "subject": "who"}
    assert shoal.verify(released(way), k=2, **asked).kept
    found = shoal.verify(released(way), promises=[TrajectoryAnonymity(2)], **asked).findings[0]
    assert (found.kept, found.reached) == (False, 1)
    alike = released({**way, "cyd": [3, 1], "dan": [1, 3]})
    assert shoal.verify(alike, promises=[TrajectoryAnonymity(2)], **asked).findings[0].reached == 2
    assert not shoal.verify(alike, promises=[TrajectoryAnonymity(3)], **asked).kept


# Benschop, Machingauta and Welch, "Statistical Disclosure Control: A Practice Guide" (World Bank, IHSN), tables 4.4 and
# 4.5: ten people, four key variables, and the scores for sets of up to three (after Elliot, Manning and Ford 2002)
LABOUR = pl.DataFrame(
    [
        ("Urban", "Female", "Secondary incomplete", "Employed"),
        ("Urban", "Female", "Secondary incomplete", "Employed"),
        ("Urban", "Female", "Primary incomplete", "Non-LF"),
        ("Urban", "Male", "Secondary complete", "Employed"),
        ("Rural", "Female", "Secondary complete", "Unemployed"),
        ("Urban", "Male", "Secondary complete", "Employed"),
        ("Urban", "Female", "Primary complete", "Non-LF"),
        ("Urban", "Male", "Post-secondary", "Unemployed"),
        ("Urban", "Female", "Secondary incomplete", "Non-LF"),
        ("Urban", "Female", "Secondary incomplete", "Non-LF"),
    ],
    schema=["residence", "gender", "education", "labor"],
    orient="row",
)


def test_benschop_special_uniques_have_the_scores_of_the_practice_guide():
    """Published: records 3, 5, 7 and 8 score 6, 12, 6 and 10; record 5 is alone by one column, and by three pairs."""
    found = special_uniques(LABOUR, LABOUR.columns, most=3)
    assert dict(found.riskiest) == {2: 6, 4: 12, 6: 6, 7: 10}
    assert found.rows == 4
    assert found.sizes == {1: 4, 2: 5}, (
        "{Rural} and three pairs of record 5, one value of each other, two pairs of record 8"
    )

"""The attacker knows the register and the method, and reruns it in every world the release leaves open.

The attack is ``scripts/known_method.py``. Blind groups (``shoal.tables.blind``) bound what it tells by a proof, which
is tested here on tables that were never used while the mechanism was made; of the other methods nothing is promised.
"""

from __future__ import annotations

import numpy as np
import pytest

import shoal
from scripts import known_method as attack
from shoal.promises.k_anonymity import KAnonymity
from shoal.promises.rules import compile_rules
from shoal.tables.blind import stop
from shoal.tables.stir import stir

FRESH = 81_377_025  # drawn by chance when this test was written, and used for nothing else
MOST = 1 / stop(3)  # six people have at most three blind groups of two


@pytest.mark.parametrize("name", ["mondrian", "topdown"])
def test_odds_grow_by_no_more_than_the_bound_of_blind_groups(name: str) -> None:
    """By counting: 30 runs per world estimate the odds; twice the bound is many standard deviations off."""
    found = attack.measured({"use": name, "blind": True}, count=3, people=6, runs=30, seed=FRESH)
    assert max(f.gain for f in found) <= 2 * MOST
    assert max(f.after for f in found) < 1


def test_with_a_known_seed_the_attack_works() -> None:
    """So a secret seed is the default, and an explicit one is told in the report."""
    found = [
        attack.attacked({"use": name}, table, world, 0, [0])
        for name in ("topdown", "microaggregation")
        for table, world in attack.tables(6, 6, 17)
    ]
    assert any(f.after == 1 > f.before for f in found)


def test_a_small_table_is_made_blindly_and_a_large_one_is_not() -> None:
    asked = {"quasi": ["age"], "sensitive": ["ill"], "k": 2, "l": 2, "method": "mondrian"}
    random = np.random.default_rng(1)

    def made(rows: int, **more: object):
        frame = {"age": random.integers(0, 90, rows).tolist(), "ill": random.choice(["a", "b", "c"], rows).tolist()}
        return shoal.anonymize(attack.pl.DataFrame(frame), **asked, **more).report.method["blind"]

    assert made(24)
    assert not made(24, seed=1), "a seed that is known protects nothing: nothing is spent on it"
    assert not made(200)


def test_promises_that_count_people_only_are_not_stirred() -> None:
    """Their groups tell nothing about sensitive values: the choice never looks at them."""
    table = next(attack.tables(1, 6, 17))[0]
    labels = np.array([0, 0, 0, 1, 1, 1], np.int32)
    assert stir(table, compile_rules(table, [KAnonymity(2)]), labels, 5) is labels
    rules = compile_rules(table, attack.PROMISES)
    assert len({stir(table, rules, labels, seed).tobytes() for seed in range(20)}) > 1

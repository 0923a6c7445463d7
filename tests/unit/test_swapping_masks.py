"""PRAM and rank swapping keep what they promise to statistics; a vault forgets what it kept in memory."""

from __future__ import annotations

from collections import Counter

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.core.errors import UsageError
from shoal.core.vault import Vault
from shoal.masks import MASKS
from shoal.masks.base import Context
from shoal.masks.rank_swap import rank_shift
from shoal.testing.masks import fixed_ring

KEYS = fixed_ring()


def test_counts_come_back_from_randomized_ones():
    pram = MASKS.decode({"use": "pram", "values": ["a", "b", "c"], "keep": 0.7})
    mask = pram.start(Context(type="str", keys=KEYS, subject="pid"))
    truth = ["a"] * 6000 + ["b"] * 3000 + ["c"] * 1000
    made = Counter(mask.one(v, at) for at, v in enumerate(truth))
    found = pram.estimate(made)
    # the error of a count of n with these probabilities has a deviation below √(n/4)/(0.7-0.15) = 91; five of them
    assert all(abs(found[v] - n) < 455 for v, n in (("a", 6000), ("b", 3000), ("c", 1000)))
    assert sum(found.values()) == pytest.approx(10_000)
    assert mask.one("other", 1) == "*"


def test_chance_is_no_probability_to_keep():
    for keep in (0.5, 1.0, 0.2):
        with pytest.raises(UsageError, match="`keep`"):
            MASKS.decode({"use": "pram", "values": ["a", "b"], "keep": keep})


@settings(max_examples=30)
@given(st.lists(st.integers(0, 1000), min_size=4, max_size=60, unique=True), st.sampled_from([0.05, 0.2, 0.5]))
def test_swapped_numbers_stay_within_their_ranks(values, within):
    mask = MASKS.decode({"use": "rank-swap", "k": 2, "within": within}).start(Context("pay", "int", keys=KEYS))
    before = pl.Series(values)
    after = mask.apply(before, None)
    assert sorted(after) == sorted(values)
    reach = max(1, int(within * len(values)))
    assert (before.rank() - after.rank()).abs().max() <= reach
    assert rank_shift(before, after) <= reach / len(values)


def test_a_vault_forgets_what_it_remembers(tmp_path):
    spec = MASKS.decode({"use": "tokenize", "form": "vault", "vault": "v.db"})
    mask = spec.start(Context("no", "str", "r", KEYS, subject="pid", folder=tmp_path))
    first = mask.one("K1", "p7")
    mask.settle()
    assert mask.one("K1", "p7") == first
    mask.settle()
    other = Vault(tmp_path / "v.db")  # another process forgets the person
    other.forget(spec.person(Context(keys=KEYS), "p7"))
    other.close()
    assert mask.one("K1", "p7") != first
    mask.settle()
    again = mask.one("K1", "p7")
    Vault.at(tmp_path / "v.db").forget(spec.person(Context(keys=KEYS), "p7"))
    assert mask.one("K1", "p7") != again
    assert mask.one(1, "p7") == mask.one(1.0, "p7") != mask.one(True, "p7")

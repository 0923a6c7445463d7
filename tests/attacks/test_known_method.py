"""The attacker knows the register and the method, and reruns it in every world the release leaves open.

Six people whose quasi values are known; the release says which of them form a group and which values each group has.
A *world* gives every person a value that fits. The attacker runs the method in every world, and counts how often it
gives the very release they see: a world in which it never does is ruled out (the minimality attack of Wong, Fu, Wang
and Pei 2007). If all worlds left give someone the same value, the attacker is certain.

With a seed they know, attackers become certain in a good part of the releases. With a secret one they must not.
The bound that is stated in SECURITY.md is the one of ``test_with_a_secret_seed_nobody_is_certain``.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections import Counter
from collections.abc import Iterator

import numpy as np
import polars as pl
import pytest

from shoal.core.errors import PromiseError
from shoal.core.hierarchy.range import Range
from shoal.core.schema import Schema
from shoal.core.table import Table, code
from shoal.promises.k_anonymity import KAnonymity
from shoal.promises.l_diversity import LDiversity
from shoal.promises.rules import compile_rules
from shoal.tables import TABLE_METHODS
from shoal.tables.stir import stir

SCHEMA = Schema.build(quasi={"age": Range(min=0, max=63), "zip": Range(min=0, max=63)}, sensitive=["ill"])
PROMISES = [KAnonymity(2), LDiversity(2, "ill")]
PEOPLE, TABLES, RUNS = 6, 6, 40
World = tuple[int, ...]
Parts = tuple[int, ...]


def in_world(table: Table, world: World) -> Table:
    sensitive = dataclasses.replace(table.sensitive["ill"], codes=np.array(world, np.int32))
    return dataclasses.replace(table, sensitive={"ill": sensitive})


def release(name: str, table: Table, world: World, seed: int) -> Parts:
    """Who is with whom: groups numbered by their first member."""
    labels = TABLE_METHODS.decode({"use": name}).group(in_world(table, world), PROMISES, seed=seed).labels
    first: dict[int, int] = {}
    return tuple(first.setdefault(int(label), len(first)) for label in labels)


def worlds(world: World, seen: Parts) -> Iterator[World]:
    """All ways to give the values of each group to its members."""
    groups = [[i for i, g in enumerate(seen) if g == h] for h in range(max(seen) + 1)]
    ways = [sorted(set(itertools.permutations([world[i] for i in members]))) for members in groups]
    for chosen in itertools.product(*ways):
        found = list(world)
        for members, values in zip(groups, chosen, strict=True):
            for i, value in zip(members, values, strict=True):
                found[i] = value
        yield tuple(found)


def tables() -> Iterator[tuple[Table, World]]:
    random = np.random.default_rng(17)
    made = 0
    while made < TABLES:
        data = {"age": random.integers(0, 64, PEOPLE), "zip": random.integers(0, 64, PEOPLE)}
        ill = random.choice(["cold", "flu", "hiv"], PEOPLE, p=[0.5, 0.3, 0.2])
        table = code(pl.DataFrame({**data, "ill": ill}), SCHEMA)
        world = tuple(int(c) for c in table.sensitive["ill"].codes)
        try:
            release("mondrian", table, world, 0)
        except PromiseError:
            continue
        made += 1
        yield table, world


def certainty(name: str, table: Table, world: World, secret: int, tried: list[int]) -> float:
    """The attacker's belief in the value they are surest of, every world being as likely as the next."""
    seen = release(name, table, world, secret)
    weight = Counter({w: sum(release(name, table, w, seed) == seen for seed in tried) for w in worlds(world, seen)})
    weight[world] = max(weight[world], 1)  # it happened
    whole = weight.total()
    beliefs = [Counter() for _ in range(PEOPLE)]
    for w, times in weight.items():
        for person, value in enumerate(w):
            beliefs[person][value] += times
    return max(max(belief.values()) for belief in beliefs) / whole


def test_with_a_known_seed_the_attack_works() -> None:
    """So a secret seed is the default, and an explicit one is told in the report."""
    found = [
        certainty(name, table, world, 0, [0]) for name in ("topdown", "microaggregation") for table, world in tables()
    ]
    assert any(belief == 1 for belief in found)


@pytest.mark.parametrize("name", ["local", "topdown", "mondrian"])
def test_with_a_secret_seed_nobody_is_certain(name: str) -> None:
    """Nobody is certain of anyone's value, nor surer than 95 %."""
    random = np.random.default_rng(3)
    found = []
    for table, world in tables():
        secret, *tried = (int(s) for s in random.integers(0, 2**62, RUNS + 1))
        found.append(certainty(name, table, world, secret, tried))
    assert max(found) <= 0.95


def test_promises_that_count_people_only_are_not_stirred() -> None:
    """Their groups tell nothing about sensitive values: the choice never looks at them."""
    table = next(tables())[0]
    labels = np.array([0, 0, 0, 1, 1, 1], np.int32)
    assert stir(table, compile_rules(table, [KAnonymity(2)]), labels, 5) is labels
    rules = compile_rules(table, PROMISES)
    assert len({stir(table, rules, labels, seed).tobytes() for seed in range(20)}) > 1

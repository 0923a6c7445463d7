"""What a rerun of the method tells: the attacker knows the register and the method, and tries all worlds.

    python scripts/known_method.py --tables 40 --runs 200 --seed 20261117

Small tables whose quasi values the attacker knows; the release says who is with whom and which values each group has. A
*world* gives every person a value that fits. The attacker runs the method in every world with many seeds of their own,
and weighs it by how often it gives the very release they see (the minimality attack of Wong, Fu, Wang and Pei 2007).

Printed per method: in how many releases the attacker is surer than they would be by counting the values of the group
(and by how much the odds grew at most), the surest belief, and how many releases made them certain. ``--seed`` draws
the tables: give one that nobody has looked at yet.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import polars as pl

from shoal.core.errors import PromiseError
from shoal.core.hierarchy.range import Range
from shoal.core.schema import Schema
from shoal.core.table import Table, code
from shoal.promises.k_anonymity import KAnonymity
from shoal.promises.l_diversity import LDiversity
from shoal.tables import TABLE_METHODS

SCHEMA = Schema.build(quasi={"age": Range(min=0, max=63), "zip": Range(min=0, max=63)}, sensitive=["ill"])
PROMISES = [KAnonymity(2), LDiversity(2, "ill")]
DRAWING = ("local", "topdown", "mondrian", "forest", "microaggregation")
METHODS = (
    *({"use": name, "blind": True} for name in DRAWING),
    *({"use": name} for name in (*DRAWING, "datafly", "lattice")),
)
World = tuple[int, ...]
Parts = tuple[int, ...]


class Found(NamedTuple):
    """The attacker's belief in the value they are surest of, before and after the rerun, and by how much odds grew."""

    before: float
    after: float
    gain: float


def release(method: dict, table: Table, world: World, seed: int) -> Parts:
    """Who is with whom: groups numbered by their first member; -1 for who is withheld."""
    sensitive = dataclasses.replace(table.sensitive["ill"], codes=np.array(world, np.int32))
    known = dataclasses.replace(table, sensitive={"ill": sensitive})
    labels = TABLE_METHODS.decode(method).group(known, PROMISES, seed=seed).labels
    first: dict[int, int] = {-1: -1}
    return tuple(first.setdefault(int(label), len(first) - 1) for label in labels)


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


def tables(count: int, people: int, seed: int) -> Iterator[tuple[Table, World]]:
    """Random tables that can keep the promises."""
    random = np.random.default_rng(seed)
    made = 0
    while made < count:
        data = {"age": random.integers(0, 64, people), "zip": random.integers(0, 64, people)}
        ill = random.choice(["cold", "flu", "hiv"], people, p=[0.5, 0.3, 0.2])
        table = code(pl.DataFrame({**data, "ill": ill}), SCHEMA)
        world = tuple(int(c) for c in table.sensitive["ill"].codes)
        try:
            release({"use": "mondrian"}, table, world, 0)
        except PromiseError:
            continue
        made += 1
        yield table, world


def attacked(method: dict, table: Table, world: World, secret: int, tried: list[int]) -> Found:
    """What the attacker believes of the release made with ``secret``; before, every world is as likely as the next."""
    seen = release(method, table, world, secret)
    possible = list(worlds(world, seen))
    times = {w: sum(release(method, table, w, seed) == seen for seed in tried) for w in possible}
    times[world] += 1  # it happened
    before, after = _beliefs(dict.fromkeys(possible, 1)), _beliefs(times)
    gain = 1.0
    for known, belief in zip(before, after, strict=True):
        gain = max([gain, *(_odds(share) / _odds(known[v]) for v, share in belief.items() if known[v] < 1)])
    return Found(max(max(b.values()) for b in before), max(max(b.values()) for b in after), gain)


def _beliefs(weight: dict[World, int]) -> list[dict[int, float]]:
    whole = sum(weight.values())
    out: list[Counter] = [Counter() for _ in next(iter(weight))]
    for world, times in weight.items():
        for person, value in enumerate(world):
            out[person][value] += times
    return [{value: times / whole for value, times in belief.items()} for belief in out]


def _odds(share: float) -> float:
    return share / (1 - share) if share < 1 else float("inf")


def measured(method: dict, count: int, people: int, runs: int, seed: int) -> list[Found]:
    """The attack on so many fresh tables."""
    random = np.random.default_rng([seed, 1])
    found = []
    for table, world in tables(count, people, seed):
        secret, *tried = (int(s) for s in random.integers(0, 2**62, runs + 1))
        found.append(attacked(method, table, world, secret, tried))
    return found


def main() -> None:
    """Print a line per method."""
    asked = argparse.ArgumentParser(description="Measure what a rerun of the method tells.")
    asked.add_argument("--tables", type=int, default=40)
    asked.add_argument("--people", type=int, default=6)
    asked.add_argument("--runs", type=int, default=200)
    asked.add_argument("--seed", type=int, required=True)
    asked.add_argument("--method", action="append", help="only these, as printed; may be given several times")
    given = asked.parse_args()
    print(f"{'method':24} {'surer':>9} {'certain':>9} {'belief, most':>13} {'odds x, most':>13} {'odds x, mean':>13}")
    for method in METHODS:
        name = method["use"] + (", blind" if method.get("blind") else "")
        if given.method and name not in given.method:
            continue
        found = measured(method, given.tables, given.people, given.runs, given.seed)
        finite = [f.gain for f in found if np.isfinite(f.gain)]
        print(
            f"{name:24} {sum(f.after > f.before + 1e-9 for f in found):5d}/{len(found):<3d} "
            f"{sum(f.after == 1 > f.before for f in found):5d}/{len(found):<3d} {max(f.after for f in found):13.2f} "
            f"{max(f.gain for f in found):13.2f} {float(np.mean(finite)) if finite else float('nan'):13.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()

"""Phase 1 of `local`: groups from a rising price over the lattice of level vectors."""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.kernels.shared.promises import Rules, workspace
from shoal.kernels.tables import local_lattice as lattice
from shoal.kernels.tables.local_hooks import grows, only_counts_rows
from shoal.kernels.tables.local_pairs import Pairs
from shoal.tables.base import Progress, silent

Codes = NDArray[np.int32]
Labels = NDArray[np.int32]
WHOLE = 1 << 15  # lattices up to this size are enumerated
STEP = 1.05  # each round's price over the last one's
COARSE = 1.2  # the same where promises are about shares of values: a round costs more, and finer ones find no more
EARLY = 0.8  # a level vector is looked at from this share of its mean cost on
LARGE, EARLIER = 20, 0.75  # and from this share on where k is at least so large


class Schedule(NamedTuple):
    """How the price rises: each round's over the last one's, and the share of its mean cost a vector is looked at from.

    >>> Schedule(1.05, 0.8).step
    1.05
    """

    step: float
    early: float


def usual(rules: Rules) -> Schedule:
    """The schedule that promises like these fare best with."""
    return Schedule(STEP if grows(rules) else COARSE, EARLIER if rules.k >= LARGE else EARLY)


def open_tuples(
    matrix: Codes, pairs: Pairs, rules: Rules, progress: Progress = silent, schedule: Schedule | None = None
) -> Labels:
    """A label per row, -1 for rows that found no tuple; every group keeps the promises. All level vectors are tried."""
    schedule = schedule or usual(rules)
    units, unit = _units(matrix, bool(grows(rules)))
    chosen, depth = _levels(pairs)
    tree = lattice.make_tree(pairs, chosen, depth)
    mean = lattice.mean_costs(tree, units)
    level = every_vector(depth)
    gate = schedule.early * mean[np.arange(len(depth)), level].sum(1)
    order = np.argsort(gate, kind="stable")
    blocks = _blocks(depth)
    keys = np.vstack(
        [lattice.block_keys(tree, units.codes, a, b, int(np.prod(depth[a:b]))) for a, b in itertools.pairwise(blocks)]
    )
    vectors = lattice.Vectors(level[order], _parts(level[order], depth, blocks), gate[order], np.zeros(len(order)))
    label = _rise(keys, tree, units, vectors, rules, float(pairs.shape.weight.sum()), schedule.step, progress)
    return label[unit]


def lattice_size(pairs: Pairs) -> float:
    """Number of level vectors."""
    return float(np.prod(_levels(pairs)[1].astype(np.float64)))


def every_vector(depth: NDArray[np.int64]) -> NDArray[np.int8]:
    """All level vectors."""
    return np.stack(np.unravel_index(np.arange(int(np.prod(depth))), tuple(depth)), 1).astype(np.int8)


def _rise(
    keys: NDArray[np.int64],
    tree: lattice.Tree,
    units: lattice.Units,
    vectors: lattice.Vectors,
    rules: Rules,
    weight: float,
    step: float,
    progress: Progress,
) -> Labels:
    n = len(units.count)
    size = 1024
    while size < 2 * n:
        size *= 2
    table = lattice.Table(np.empty(size, np.int64), np.zeros(size, np.int64), np.zeros(1, np.int64))
    state = lattice.State(
        np.full(n, -1, np.int32),
        np.arange(n, dtype=np.int32),
        np.empty(n, np.int32),
        np.array([0, n, len(vectors.gate)], np.int64),
    )
    alive = np.arange(len(vectors.gate))
    plain, growing, work = bool(only_counts_rows(rules)), bool(grows(rules)), workspace(rules)
    price = 0.005 * weight
    while state.sizes[1] and state.sizes[2]:
        following = lattice.raise_price(
            keys, tree, units, vectors, alive, price, rules, plain, growing, table, work, state
        )
        progress(0.5 * (1 - state.sizes[1] / n), "opening groups")
        price = max(price * step, following)
    return state.label


def _units(matrix: Codes, merge: bool) -> tuple[lattice.Units, NDArray[np.int64]]:
    """Equal neighbouring rows as one unit, and the unit of each row; every row by itself without ``merge``."""
    change = np.ones(len(matrix), np.bool_)
    if merge and len(matrix):
        change[1:] = (matrix[1:] != matrix[:-1]).any(1)
    first = np.append(np.flatnonzero(change), len(matrix))
    codes = np.ascontiguousarray(matrix[first[:-1]])
    return lattice.Units(codes, np.diff(first), first), np.cumsum(change) - 1


def _levels(pairs: Pairs) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The levels of each column that differ from the level below, and how many they are."""
    shape = pairs.shape
    out: list[list[int]] = []
    for j in range(len(shape.size)):
        begin, size, levels = int(shape.offset[j]), int(shape.size[j]), int(shape.depth[j])
        nodes = shape.codes[begin + (size - 1) * levels : begin + size * levels] if size else np.zeros(levels)
        out.append([at for at in range(levels) if at == 0 or nodes[at] < nodes[at - 1]])
    depth = np.array([len(x) for x in out], np.int64)
    chosen = np.zeros((len(out), int(depth.max(initial=1))), np.int64)
    for j, used in enumerate(out):
        chosen[j, : len(used)] = used
    return chosen, depth


def _blocks(depth: NDArray[np.int64]) -> list[int]:
    """Borders of at most three blocks of columns with about equally many level vectors."""
    total = np.cumsum(np.log(np.maximum(depth, 2)))
    cuts = [int(np.searchsorted(total, total[-1] * share)) + 1 for share in (1 / 3, 2 / 3)]
    return sorted({0, *(min(c, len(depth)) for c in cuts), len(depth)})


def _parts(level: NDArray[np.int8], depth: NDArray[np.int64], blocks: list[int]) -> NDArray[np.int32]:
    part = np.zeros((len(level), len(blocks) - 1), np.int32)
    base = 0
    for b, (first, stop) in enumerate(itertools.pairwise(blocks)):
        for j in range(first, stop):
            part[:, b] = part[:, b] * depth[j] + level[:, j]
        part[:, b] += base
        base += int(np.prod(depth[first:stop]))
    return part

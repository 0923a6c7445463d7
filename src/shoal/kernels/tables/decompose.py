"""Decomposition of oversized components (Garai 2019, section 2.3.4): cut in two while both parts keep the promises."""

from typing import NamedTuple

import numpy as np

from shoal.kernels.compile import kernel
from shoal.kernels.shared.promises import holds, workspace
from shoal.kernels.tables.forest import (
    CUT_A,
    NONE,
    OTHER,
    _all_but,
    _branch,
    _rows_behind,
    _survey,
    apply_cut,
    choose_cut,
)

TRIES = 32  # edges tested where a promise beyond k refuses the cut of the paper


@kernel
def _fair(forest, vertex, chosen, count, order, vertices, s, rules, plain, scratch, work):
    """Whether both parts of a cut keep the promises: real rows are counted, a Steiner vertex is none."""
    if count == 0:
        return False
    scratch.stamp[0] += 1
    stamp = scratch.stamp[0]
    part = _rows_behind(forest, vertex, chosen, count, scratch.mark, stamp, scratch.stack)
    if part < rules.k or s - part < rules.k:
        return False
    if plain:
        return True
    left, right = 0, part
    for at in range(vertices):
        v = order[at]
        if v < forest.rows:
            if scratch.mark[v] == stamp:
                scratch.rows[left] = v
                left += 1
            else:
                scratch.rows[right] = v
                right += 1
    return holds(rules, scratch.rows, 0, part, work) and holds(rules, scratch.rows, part, s, work)


class Scratch(NamedTuple):
    """Room that all cuts share."""

    stamp: np.ndarray  # int64[1]
    mark: np.ndarray  # int64[vertices]
    stack: np.ndarray  # int64[half-edges]
    rows: np.ndarray  # int32[rows]


@kernel
def decompose(forest, rules, limit):
    """Cut every component with more than ``limit`` rows in two while both parts keep the promises; a label per row.

    The cut of the paper is tested on real rows; where it fails (the moved vertex is a Steiner vertex, or a promise
    beyond k is broken) any other cut is taken, and without one the component stays as it is.
    """
    vertices = forest.head.shape[0]
    labels = np.full(forest.rows, -1, np.int32)
    order = np.empty(vertices, np.int64)
    parent = np.full(vertices, -1, np.int64)
    below = np.zeros(vertices, np.int64)
    chosen = np.empty(forest.to.shape[0], np.int64)
    scratch = Scratch(
        np.zeros(1, np.int64),
        np.zeros(vertices, np.int64),
        np.empty(forest.to.shape[0], np.int64),
        np.empty(forest.rows, np.int32),
    )
    work = workspace(rules)
    plain = rules.people == 0 and rules.kind.shape[0] == 0
    pending = np.empty(vertices, np.int64)
    groups = 0
    for row in range(forest.rows):
        if labels[row] >= 0:
            continue
        pending[0] = row
        waiting = 1
        while waiting:
            start = pending[waiting - 1]
            waiting -= 1
            count, s = _survey(forest, start, order, parent, below)
            kind = NONE
            if s > limit:
                kind, vertex, edges = choose_cut(forest, start, parent, below, s, rules.k, chosen)
                if not _fair(forest, vertex, chosen, edges, order, count, s, rules, plain, scratch, work):
                    kind, vertex, edges = _any_cut(
                        forest, order, count, parent, below, s, rules, plain, chosen, scratch, work
                    )
            if kind == NONE:
                for at in range(count):
                    if order[at] < forest.rows:
                        labels[order[at]] = groups
                groups += 1
                continue
            pending[waiting] = vertex
            pending[waiting + 1] = apply_cut(forest, kind, vertex, chosen, edges)
            waiting += 2
    return labels, groups


@kernel
def _any_cut(forest, order, count, parent, below, s, rules, plain, chosen, scratch, work):
    """Some other cut that both parts survive: edges first, the most even ones; for k alone, then any vertex split."""
    last, last_at = -1, 0
    for _ in range(min(TRIES, count - 1)):
        least, least_at = 2 * s + 1, 0  # the most even edge not yet tried
        for at in range(1, count):
            uneven = abs(2 * below[order[at]] - s)
            if (uneven > last or (uneven == last and at > last_at)) and uneven < least:
                least, least_at = uneven, at
        last, last_at = least, least_at
        v = order[least_at]
        chosen[0] = _edge_between(forest, parent[v], v)
        if _fair(forest, parent[v], chosen, 1, order, count, s, rules, plain, scratch, work):
            return CUT_A, parent[v], 1
    if plain:
        for at in range(count):
            edges = _split_vertex(forest, order[at], parent, below, s, rules.k, chosen)
            if edges:
                return OTHER, order[at], edges
    return NONE, -1, 0


@kernel
def _edge_between(forest, u, v):
    e = forest.head[u]
    while forest.to[e] != v:
        e = forest.following[e]
    return e


@kernel
def _split_vertex(forest, u, parent, below, s, k, chosen):
    """Branches of u that make a part of k rows without u and leave k with it (subset sum); how many, or 0."""
    degree = _all_but(forest, u, -1, chosen)
    reached = np.full(s + 1, -1, np.int64)  # the last branch with which a sum is made
    reached[0] = degree
    for at in range(degree):
        size = _branch(forest, parent, below, s, u, chosen[at])
        if size == 0:
            continue
        for total in range(s, size - 1, -1):
            if reached[total] < 0 and reached[total - size] >= 0:
                reached[total] = at
    for total in range(k, s - k + 1):
        if reached[total] < 0:
            continue
        taken = np.empty(degree, np.int64)
        count = 0
        while total > 0:
            edge = chosen[reached[total]]
            taken[count] = edge
            count += 1
            total -= _branch(forest, parent, below, s, u, edge)
        chosen[:count] = taken[:count]
        return count
    return 0

"""Forest building and decomposition of Aggarwal et al. (Garai 2019, chapter 2), without ever holding the cost graph.

A tree is held as half-edges: edge e runs from ``to[e ^ 1]`` to ``to[e]``. Vertices below ``rows`` are rows of the
table, those above are Steiner vertices, which hold a component together and count nothing.
"""

from typing import NamedTuple

import numpy as np

from shoal.kernels.compile import kernel
from shoal.kernels.shared.promises import holds, workspace
from shoal.kernels.tables.neighbours import nearest_outside, pair_costs

NONE, CUT_A, CUT_B, CUT_C, CUT_D, OTHER = range(6)


class Forest(NamedTuple):
    """Trees as half-edges; ``used`` counts vertices and half-edges."""

    rows: int
    head: np.ndarray  # int64[vertices]: first half-edge that leaves a vertex, or -1
    following: np.ndarray  # int64[half-edges]
    to: np.ndarray  # int64[half-edges]
    used: np.ndarray  # int64[2]


@kernel
def empty_forest(rows, k):
    """A forest without edges, with room for the edges and Steiner vertices that may come."""
    # every cut but A adds a Steiner vertex, and no part has fewer than k - 1 rows
    most = rows + rows // max(1, k) + 2
    used = np.zeros(2, np.int64)
    used[0] = rows
    return Forest(
        rows,
        np.full(most, -1, np.int64),
        np.full(2 * rows + 2, -1, np.int64),
        np.full(2 * rows + 2, -1, np.int64),
        used,
    )


@kernel
def connect(forest, u, v):
    """Add the edge between u and v."""
    e = forest.used[1]
    forest.to[e], forest.to[e + 1] = v, u
    forest.following[e], forest.head[u] = forest.head[u], e
    forest.following[e + 1], forest.head[v] = forest.head[v], e + 1
    forest.used[1] += 2


@kernel
def plant(target, k):
    """The forest with an edge from each row to its target (-1: none)."""
    forest = empty_forest(target.shape[0], k)
    for row in range(target.shape[0]):
        if target[row] >= 0:
            connect(forest, row, target[row])
    return forest


@kernel
def _unhook(forest, vertex, edge):
    at = forest.head[vertex]
    if at == edge:
        forest.head[vertex] = forest.following[edge]
        return
    while forest.following[at] != edge:
        at = forest.following[at]
    forest.following[at] = forest.following[edge]


@kernel
def build(crowd, shape, rules, order):
    """The forest: an edge target and cost per row (-1 and 0: none), and the component of each row.

    Rows are taken in ``order``; the component of each grows, by the nearest row outside it to its vertex without an
    outgoing edge, until it keeps the promises. Costs one nearest-neighbour search per edge; components are relabelled
    smaller into larger.
    """
    n = order.shape[0]
    start, cost = pair_costs(shape)
    work = workspace(rules)
    target = np.full(n, -1, np.int64)
    length = np.zeros(n)
    component = np.arange(n)
    root = np.arange(n)
    size = np.ones(n, np.int64)
    head = np.arange(n)
    tail = np.arange(n)
    following = np.full(n, -1, np.int64)
    rows = np.empty(n, np.int32)
    plain = rules.people == 0 and rules.kind.shape[0] == 0
    for row in order:
        while True:
            own = component[row]
            # k rows are asked first; the promises look at all members
            if size[own] >= rules.k:
                if plain:
                    break
                count = _collect(head[own], following, rows)
                if holds(rules, rows, 0, count, work):
                    break
            u = root[own]
            v, distance = nearest_outside(crowd, shape, start, cost, component, u)
            if v < 0:
                break  # everything is one component
            target[u], length[u] = v, distance
            other = component[v]
            big, small = (own, other) if size[own] >= size[other] else (other, own)
            # the only vertex of the union without an outgoing edge is the other one's
            last = root[other]
            # the smaller is relabelled: a row changes its component at most log n times
            at = head[small]
            while at >= 0:
                component[at] = big
                at = following[at]
            following[tail[big]] = head[small]
            tail[big] = tail[small]
            size[big] += size[small]
            root[big] = last
    return target, length, component


@kernel
def _collect(at, following, rows):
    count = 0
    while at >= 0:
        rows[count] = at
        count += 1
        at = following[at]
    return count


@kernel
def _survey(forest, start, order, parent, below):
    """Vertices of the tree around ``start`` in breadth-first order; parents; rows below each; and the rows in all."""
    count = 1
    order[0] = start
    parent[start] = -1
    at = 0
    while at < count:
        v = order[at]
        below[v] = 1 if v < forest.rows else 0
        e = forest.head[v]
        while e >= 0:
            w = forest.to[e]
            # a tree: the only neighbour seen before is the parent
            if w != parent[v]:
                parent[w] = v
                order[count] = w
                count += 1
            e = forest.following[e]
        at += 1
    for at in range(count - 1, 0, -1):
        below[parent[order[at]]] += below[order[at]]
    return count, below[start]


@kernel
def choose_cut(forest, start, parent, below, s, k, chosen):
    """The cut of DECOMPOSE COMPONENT, starting from candidate ``start``: its kind, the vertex that is split, and in
    ``chosen`` the half-edges that go to the part without it (for A, the one edge that is removed).
    """
    u = start
    while True:
        phi, branch = _largest(forest, parent, below, s, u)
        # walk toward the heaviest branch until the rest can stand beside it: the balanced vertex of the paper
        if s - phi >= k - 1 or phi == 0:
            break
        u = forest.to[branch]
    v = forest.to[branch]
    if phi >= k and s - phi >= k:
        chosen[0] = branch
        return CUT_A, u, 1
    if s - phi == k - 1:
        return CUT_B, v, _all_but(forest, v, branch ^ 1, chosen)
    if phi == k - 1:
        return CUT_C, u, _all_but(forest, u, branch, chosen)
    return CUT_D, u, _gather(forest, parent, below, s, u, k, chosen)


@kernel
def _branch(forest, parent, below, s, u, edge):
    """Rows of the branch of u behind ``edge``."""
    w = forest.to[edge]
    return s - below[u] if parent[u] == w else below[w]


@kernel
def _largest(forest, parent, below, s, u):
    phi, branch = 0, -1
    e = forest.head[u]
    while e >= 0:
        size = _branch(forest, parent, below, s, u, e)
        if size > phi or branch < 0:
            phi, branch = size, e
        e = forest.following[e]
    return phi, branch


@kernel
def _all_but(forest, vertex, edge, chosen):
    count = 0
    e = forest.head[vertex]
    while e >= 0:
        if e != edge:
            chosen[count] = e
            count += 1
        e = forest.following[e]
    return count


@kernel
def _gather(forest, parent, below, s, u, k, chosen):
    """Cut D: subtrees of u are added to a first part until it has k - 1 rows; ``chosen`` is the part without u."""
    own = 1 if u < forest.rows else 0
    first, count = 0, 0
    e = forest.head[u]
    while e >= 0 and first < k - 1:
        first += _branch(forest, parent, below, s, u, e)
        chosen[count] = e
        count += 1
        e = forest.following[e]
    rest = s - own - first
    if first != k - 1 and rest == k - 1:
        return count  # u completes the second part: the first goes without it
    count = 0
    while e >= 0:
        chosen[count] = e
        count += 1
        e = forest.following[e]
    return count


@kernel
def apply_cut(forest, kind, vertex, chosen, count):
    """Cut: remove the edge (A), or hang the chosen edges on a new Steiner vertex. Returns a vertex of the cut part."""
    away = forest.to[chosen[0]]
    if kind == CUT_A:
        _unhook(forest, vertex, chosen[0])
        _unhook(forest, away, chosen[0] ^ 1)
        return away
    steiner = forest.used[0]
    forest.used[0] += 1
    for at in range(count):
        e = chosen[at]
        _unhook(forest, vertex, e)
        forest.following[e], forest.head[steiner] = forest.head[steiner], e
        forest.to[e ^ 1] = steiner
    return steiner


@kernel
def _rows_behind(forest, vertex, chosen, count, mark, stamp, stack):
    """Mark the rows behind the chosen half-edges of ``vertex``; how many."""
    found = 0
    for at in range(count):
        top = 0
        stack[0] = chosen[at]
        while top >= 0:
            edge = stack[top]
            top -= 1
            w = forest.to[edge]
            mark[w] = stamp
            if w < forest.rows:
                found += 1
            e = forest.head[w]
            while e >= 0:
                if e != edge ^ 1:
                    top += 1
                    stack[top] = e
                e = forest.following[e]
    return found

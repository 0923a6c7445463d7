"""Coarse cuts of quasi space: regions that can be worked on one by one, in threads, from files or on other machines.

Cuts are found in a sample and are a small tree, so that whoever holds a row, anywhere, can say which region it is in.
They run along hierarchies: of the cuts that part the people about evenly, one between two high nodes is taken. Whether
a region can keep the promises alone is known only with all its rows at hand: :meth:`Regions.joined` unites regions
that cannot with the one beside them in the tree, until each can.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shoal.kernels.shared.boxes import Shape, box_cost

Codes = NDArray[np.int32]
EVEN = 0.3  # the smaller side of a cut has at least this share of the rows, if any cut does
SAMPLE = 1 << 16  # rows that show where to cut


@dataclass(frozen=True)
class Regions:
    """A tree of cuts. Entry i cuts ``column[i]``: codes up to ``last[i]`` go to ``left[i]``, others to ``right[i]``.

    A child below 0 is a region: -1 is region 0, -2 is region 1, and so on. Without cuts there is region 0 only.

    >>> halves = Regions(np.array([0]), np.array([4]), np.array([-1]), np.array([-2]))
    >>> halves.of(np.array([[3], [5], [4]], np.int32)).tolist(), halves.count
    ([0, 1, 0], 2)
    """

    column: NDArray[np.int64]
    last: NDArray[np.int64]
    left: NDArray[np.int64]
    right: NDArray[np.int64]

    @property
    def count(self) -> int:
        """Number of regions."""
        return -int(min(self.left.min(initial=-1), self.right.min(initial=-1)))

    def of(self, matrix: Codes) -> NDArray[np.int32]:
        """The region of each row. O(rows x depth of the tree)."""
        if not len(self.column):
            return np.zeros(len(matrix), np.int32)
        at = np.zeros(len(matrix), np.int64)
        while len(inner := np.flatnonzero(at >= 0)):
            cut = at[inner]
            low = matrix[inner, self.column[cut]] <= self.last[cut]
            at[inner] = np.where(low, self.left[cut], self.right[cut])
        return (-1 - at).astype(np.int32)

    def joined(self, alone: Callable[[NDArray[np.bool_]], bool]) -> Regions:
        """Regions united along the tree until ``alone`` (asked with the regions of one part) holds of each part.

        A part that cannot stand alone joins the part beside it; the whole is not asked.
        """
        children = {i: (int(self.left[i]), int(self.right[i])) for i in range(len(self.column))}

        def under(node: int) -> list[int]:
            if node < 0:
                return [-1 - node]
            return [*under(children[node][0]), *under(children[node][1])]

        kept: dict[int, tuple[int, int]] = {}

        def settle(node: int) -> bool:
            """Whether the part under a node can stand alone; cuts that can stay are noted."""
            chosen = np.zeros(self.count, np.bool_)
            chosen[under(node)] = True
            if not alone(chosen):
                return False
            if node >= 0:
                left, right = children[node]
                before = dict(kept)
                if settle(left) and settle(right):
                    kept[node] = (left, right)
                else:
                    kept.clear()
                    kept.update(before)
            return True

        if children:
            left, right = children[0]
            if settle(left) and settle(right):
                kept[0] = (left, right)
        return _numbered(self, kept)

    def parted(self, alone: Callable[[list[int]], bool], size: Callable[[list[int]], int]) -> list[list[int]]:
        """Regions in parts that can each stand ``alone``, as small as that allows; if none can, all are one part.

        A region that cannot stand alone joins the smallest part beside it in the tree, then the next, until the union
        can; other cuts stay. So parts need not be trees: who tags rows uses the regions, and then says which are one.

        >>> thirds = Regions(np.array([0, 0]), np.array([4, 8]), np.array([-1, -2]), np.array([1, -3]))
        >>> thirds.parted(lambda many: many != [1], len)
        [[0], [1, 2]]
        """

        def settle(node: int) -> tuple[list[list[int]], list[int]]:
            """The parts under a node, and the regions that found none."""
            if node < 0:
                leaf = [-1 - node]
                return ([leaf], []) if alone(leaf) else ([], leaf)
            parts, needy = settle(int(self.left[node]))
            others, more = settle(int(self.right[node]))
            parts, needy = parts + others, needy + more
            beside = sorted(parts, key=size)
            while needy and not (found := alone(needy)) and beside:
                nearest = beside.pop(0)
                parts.remove(nearest)
                needy = sorted(needy + nearest)
            return ([*parts, needy], []) if needy and found else (parts, needy)

        parts, needy = settle(0 if len(self.column) else -1)
        return sorted(parts) if not needy else [list(range(self.count))]


def _numbered(regions: Regions, kept: dict[int, tuple[int, int]]) -> Regions:
    order, found = [], -1
    columns: list[tuple[int, int, int, int]] = []
    if 0 in kept:
        order.append(0)
    place = {0: 0}
    for node in order:
        ends = []
        for child in kept[node]:
            if child in kept:
                place[child] = len(order)
                order.append(child)
                ends.append(place[child])
            else:
                ends.append(found)
                found -= 1
        columns.append((int(regions.column[node]), int(regions.last[node]), ends[0], ends[1]))
    return Regions(*np.array(columns, np.int64).reshape(-1, 4).T)


def cut(matrix: Codes, shape: Shape, most: int, *, rows: int | None = None) -> Regions:
    """Regions of at most about ``most`` of the ``rows`` (those of ``matrix``, if it is no sample).

    Each cut is the one of all columns that leaves the least loss. No cut is found between equal rows: a region of
    these may be larger. Costs O(sample x columns x logarithm of the regions).

    >>> import polars as pl
    >>> from shoal.core.schema import Schema
    >>> from shoal.core.table import code
    >>> table = code(pl.DataFrame({"age": [20, 21, 50, 52]}), Schema.build(quasi={"age": None}))
    >>> cut(table.matrix, table.shape(), 2).of(table.matrix).tolist()
    [0, 0, 1, 1]
    """
    step = max(1, len(matrix) // SAMPLE)
    sample = matrix[::step]  # rows are sorted, so that every step-th row is an even sample
    share = len(sample) / max(1, rows or len(matrix))
    nodes: list[tuple[int, int, int, int]] = []
    regions = 0
    waiting: list[tuple[NDArray[np.int64], int, bool]] = [(np.arange(len(sample)), -1, True)]
    for at, parent, is_left in waiting:
        found = _best_cut(sample[at], shape) if len(at) > most * share else None
        if found is None:
            name = -1 - regions
            regions += 1
        else:
            name = len(nodes)
            column, last = found
            nodes.append((column, last, 0, 0))
            low = sample[at, column] <= last
            waiting += [(at[low], name, True), (at[~low], name, False)]
        if parent >= 0:
            c, l, a, b = nodes[parent]
            nodes[parent] = (c, l, name, b) if is_left else (c, l, a, name)
    return Regions(*np.array(nodes, np.int64).reshape(-1, 4).T)


def _best_cut(codes: Codes, shape: Shape) -> tuple[int, int] | None:
    best, found = np.inf, None
    for column in range(codes.shape[1]):
        last = _middle(codes[:, column], shape, column)
        if last is None:
            continue
        low = codes[:, column] <= last
        loss = sum(len(side) * float(box_cost(shape, side.min(0), side.max(0))) for side in (codes[low], codes[~low]))
        if loss < best:
            best, found = loss, (column, last)
    return found


def _middle(codes: Codes, shape: Shape, column: int) -> int | None:
    """The code after which to cut: between two high nodes, then as evenly as possible."""
    values, counts = np.unique(codes, return_counts=True)
    if len(values) < 2:
        return None
    before = np.cumsum(counts)[:-1] / len(codes)
    smaller = np.minimum(before, 1 - before)
    fair = np.flatnonzero(smaller >= min(EVEN, float(smaller.max())))
    depth, start = int(shape.depth[column]), int(shape.offset[column])
    nodes = shape.codes[start : start + depth * int(shape.size[column])].reshape(-1, depth)
    height = (nodes[values[fair]] != nodes[values[fair + 1]]).sum(1)
    chosen = fair[np.lexsort([-smaller[fair], -height])[0]]
    return int(values[chosen])

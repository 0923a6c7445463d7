"""P-subgroups: records that publish one word, at least P of them (first two phases of KAPRA)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shoal.series.pattern import Encoded, Floats, Ids

PASSES = 12  # of refinement; later passes move next to nothing


def own_words(
    encoded: Encoded, rows: NDArray[np.int64], p: int, *, least: int, refine: float, losses: Floats | None
) -> Ids:
    """The word each of ``rows`` publishes, shared by at least ``p`` of them; -1 for fewer than ``p`` rows.

    If so many stay alone that fewer than ``least`` are published, finer levels are given up until it is enough.
    """
    from shoal.kernels.series.pattern_tree import create_tree, recycle

    codes = np.ascontiguousarray(encoded.codes[:, rows])
    size = len(rows)
    everyone = np.arange(size)
    leaf = np.empty(size, np.int64)
    leaf_level = np.empty(size, np.int64)
    leaf_good = np.empty(size, np.bool_)
    for levels in range(len(codes), 0, -1):
        create_tree(codes[:levels], everyone, p, leaf, leaf_level, leaf_good)
        level, good = leaf_level[leaf], leaf_good[leaf]
        alone = recycle(codes[:levels], level, good, p, encoded.words)
        if size - alone >= least:
            break
    if refine > 0 and losses is not None:
        _refine(codes[:levels], losses[:levels, rows], level, good, p, refine, encoded.words)
    return np.where(good, codes[level, everyone], -1).astype(np.int32)


def _refine(
    codes: Ids,
    losses: Floats,
    level: NDArray[np.int64],
    good: NDArray[np.bool_],
    p: int,
    share: float,
    words: int,
) -> None:
    from shoal.kernels.series.pattern_tree import refine

    order = np.argsort(codes, axis=1, kind="stable").astype(np.int32)
    refine(codes, np.ascontiguousarray(losses), order, level, good, p, share, words, PASSES)


def split_by_total(values: Floats, word: Ids, p: int) -> NDArray[np.int64]:
    """Parts of P to 2P - 1 records with one word: runs of the records ordered by their total; -1 where no word is.

    >>> split_by_total(np.array([[1.0], [2.0], [8.0], [9.0]]), np.zeros(4, np.int32), 2).tolist()
    [0, 0, 1, 1]
    """
    total = values.sum(axis=1)
    kept = np.flatnonzero(word >= 0)
    order = kept[np.lexsort((kept, total[kept], word[kept]))]
    start = np.flatnonzero(np.diff(word[order], prepend=-1))
    size = np.diff(start, append=len(order))
    parts = np.maximum(size // p, 1)
    run = np.repeat(np.arange(len(start)), size)
    at = np.arange(len(order)) - start[run]
    part = np.full(len(word), -1, np.int64)
    # pos * parts // size deals parts whose sizes differ by one at most
    part[order] = (np.cumsum(parts) - parts)[run] + at * parts[run] // size[run]
    return part


def split_top_down(values: Floats, word: Ids, p: int, seed: int) -> NDArray[np.int64]:
    """The same by top-down clustering, as in the paper."""
    from shoal.kernels.shared.topdown import top_down

    weight = per_width(values)
    part = np.full(len(word), -1, np.int64)
    count = 0
    for one in np.unique(word[word >= 0]):
        rows = np.flatnonzero(word == one)
        box = np.ascontiguousarray(values[rows])
        label = top_down(box, box, weight, np.random.default_rng([seed, int(one)]).permutation(len(rows)), p, 6)
        part[rows] = label + count
        count += int(label.max()) + 1
    return part


def per_width(values: Floats) -> Floats:
    """The weight of each instant in a normalized certainty penalty: one over its width, 0 where all agree.

    >>> per_width(np.array([[0.0, 5.0], [4.0, 5.0]])).tolist()
    [0.25, 0.0]
    """
    width = values.max(axis=0) - values.min(axis=0)
    # a width so small that its inverse is infinite is as good as none
    out: Floats = np.divide(1.0, width, out=np.zeros_like(width), where=width > np.finfo(np.float64).tiny)
    return out

"""Naive: envelopes first, patterns second (Shou et al. 2013, after Xu et al. 2006)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shoal.core.errors import UsageError
from shoal.series.envelopes import number_by_height
from shoal.series.method import Progress, SeriesGrouping, SeriesMethod, check_sizes, silent
from shoal.series.pattern import Encoded, Floats, Ids
from shoal.series.subgroups import per_width


class Naive(SeriesMethod, frozen=True, tag="naive"):
    """Every curve shares its envelope with k, and its published pattern with P; nobody is suppressed.

    Protects against finding a curve by values known at some instants (k), and by its published shape (P). Does not
    protect against learning a sensitive value that a whole P-subgroup shares (add l), nor against two releases of
    the same curves. Offered for fidelity: `banded` loses less of both values and patterns.

    How it works: top-down greedy clustering by normalized certainty penalty makes groups of k (``rounds`` looks for
    two records far apart before each split); create-tree splits each group by words; in the post-processing a leaf
    of fewer than P joins the leaf of the same group whose rebuilt shape is nearest (the smaller one of two), and
    publishes *its* word: the pattern of such a record is not its own.

    Cost: O(records x instants) per round of splits, about log(records / k) rounds, at worst as many as records if
    every split peels off one outlier; small groups look at all groups.

    >>> import numpy as np
    >>> from shoal.series.sax import Sax
    >>> curves = np.add.outer(np.arange(8.0), [0, 1, 2, 3]); curves[::2] = curves[::2, ::-1]
    >>> grouping = Naive().group(curves, Sax().encode(curves), k=4, p=2)
    >>> np.bincount(grouping.group).tolist(), grouping.suppressed
    ([4, 4], 0)

    Reference: Xu, Wang, Pei, Wang, Shi, Fu: Utility-Based Anonymization Using Local Recoding (KDD 2006); Shou et
    al. (TKDE 25(4), 2013), section 4.1.
    """

    rounds: int = 6

    def __post_init__(self) -> None:
        if self.rounds < 1:
            raise UsageError(f"`rounds` must be at least 1, found {self.rounds}", where="naive")

    def group(
        self, values: Floats, encoded: Encoded, k: int, p: int, *, seed: int = 0, progress: Progress = silent
    ) -> SeriesGrouping:
        """See :class:`SeriesMethod`."""
        check_sizes(len(values), k, p)
        progress(0.1, "groups")
        group = self._clusters(values, k, seed)
        progress(0.7, "patterns")
        word = np.empty(len(values), np.int32)
        by_group = np.argsort(group, kind="stable")
        for rows in np.split(by_group, np.flatnonzero(np.diff(group[by_group])) + 1):
            word[rows] = _words(encoded, rows, p)
        return number_by_height(values, group, word)

    def _clusters(self, values: Floats, k: int, seed: int) -> NDArray[np.int32]:
        from shoal.kernels.shared.topdown import top_down

        order = np.random.default_rng(seed).permutation(len(values))
        return np.asarray(top_down(values, values, per_width(values), order, k, self.rounds), np.int32)

    def bands(self, values: Floats, k: int, seed: int) -> list[NDArray[np.int64]]:
        """See :class:`SeriesMethod`: its clusters, the low ones first."""
        ranked = number_by_height(values, group := self._clusters(values, k, seed), group).group
        order = np.argsort(ranked, kind="stable")
        return np.split(order, np.flatnonzero(np.diff(ranked[order])) + 1)


def _words(encoded: Encoded, rows: NDArray[np.int64], p: int) -> Ids:
    """The words one group publishes: create-tree, then bad leaves into good ones."""
    from shoal.kernels.series.pattern_tree import create_tree

    codes = np.ascontiguousarray(encoded.codes[:, rows])
    everyone = np.arange(len(rows))
    leaf = np.empty(len(rows), np.int64)
    level = np.empty(len(rows), np.int64)
    good = np.empty(len(rows), np.bool_)
    leaves = create_tree(codes, everyone, p, leaf, level, good)
    word = codes[level[leaf], everyone]
    if good[:leaves].all():
        return word
    size = np.bincount(leaf, minlength=leaves)
    first = np.array([int(np.argmax(leaf == at)) for at in range(leaves)])
    word_of = word[first]
    shapes = encoded.shapes(word_of)
    hosts = np.flatnonzero(good[:leaves])
    # the smallest first, ties by number: the same outcome on every machine
    for bad in sorted(np.flatnonzero(~good[:leaves]), key=lambda at: (size[at], at)):
        far = ((shapes[hosts] - shapes[bad]) ** 2).sum(axis=1)
        host = hosts[np.lexsort((hosts, size[hosts], far))[0]]
        word[leaf == bad] = word_of[host]
        size[host] += size[bad]
    return word

"""KAPRA: patterns first, envelopes second (Shou et al. 2013)."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from shoal.core.errors import UsageError
from shoal.series.envelopes import exchange, number_by_height, unite
from shoal.series.method import Progress, SeriesGrouping, SeriesMethod, check_sizes, silent
from shoal.series.pattern import Encoded, Floats, Ids
from shoal.series.subgroups import own_words, split_by_total, split_top_down


class Kapra(SeriesMethod, frozen=True, tag="kapra"):
    """Every curve shares its pattern with P, and its envelope with k; patterns stay as fine as P allows.

    Protects against finding a curve by values known at some instants (k), and by its known shape (P). Does not
    protect against learning a sensitive value that a whole P-subgroup shares (add l), nor against whoever knows how
    a record chose its level, nor against two releases of the same curves.

    How it works: *create-tree* splits all records by their words, level by level, while parts of P remain;
    *recycle* brings back those left alone at the finest level where they find company, so that fewer than P are
    suppressed; *group formation* cuts large subgroups into runs of the ordered totals (``split: topdown`` as in the
    paper) and unites the nearest until k. Two steps are ours: a record changes to the word of another level if its
    pattern loss falls to ``refine`` of what it was (0: never), and ``passes`` rounds let records of one word change
    places between near groups if envelopes get narrower (0: none; from 50,000 records on at most one, from 100,000
    on two by bands).

    Cost: O(records x levels) for patterns; group formation looks at pairs of subgroups, at worst their square times
    the instants, less the boxes too far away in mean.

    >>> import numpy as np
    >>> from shoal.series.sax import Sax
    >>> curves = np.add.outer(np.arange(8.0), [0, 1, 2, 3]); curves[::2] = curves[::2, ::-1]
    >>> grouping = Kapra().group(curves, Sax().encode(curves), k=4, p=2)
    >>> np.bincount(grouping.group).tolist(), grouping.suppressed
    ([4, 4], 0)

    Reference: Shou, Shang, Chen, Chen, Zhang: Supporting Pattern-Preserving Anonymization for Time-Series Data
    (TKDE 25(4), 2013), algorithms 1 to 3.
    """

    split: Literal["total", "topdown"] = "total"
    refine: float = 0.3
    passes: int = 3

    def __post_init__(self) -> None:
        if not 0 <= self.refine <= 1:
            raise UsageError(f"`refine` must be 0 to 1, found {self.refine:g}", where=self.use)
        if self.passes < 0:
            raise UsageError(f"`passes` must not be negative, found {self.passes}", where=self.use)

    def group(
        self, values: Floats, encoded: Encoded, k: int, p: int, *, seed: int = 0, progress: Progress = silent
    ) -> SeriesGrouping:
        """See :class:`SeriesMethod`."""
        check_sizes(len(values), k, p)
        losses = encoded.losses() if self.refine else None
        progress(0.2, "patterns")
        everyone = np.arange(len(values))
        word = own_words(encoded, everyone, p, least=k, refine=self.refine, losses=losses)
        progress(0.4, "groups")
        group = unite(values, self.parts(values, word, p, seed), k)
        progress(0.7, "exchange")
        found = exchange(values, SeriesGrouping(group, word), k, p, self.passes)
        return number_by_height(values, found.group, word)

    def parts(self, values: Floats, word: Ids, p: int, seed: int) -> NDArray[np.int64]:
        """P-subgroups of 2P and more, cut."""
        if self.split == "topdown":
            return split_top_down(values, word, p, seed)
        return split_by_total(values, word, p)

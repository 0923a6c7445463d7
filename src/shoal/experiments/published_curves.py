"""What Minutoli et al. 2021 ran, written plainly from its description: top-down clustering, group formation, and the
pattern loss that it measured. Slow, and kept apart from the methods: it is here to be compared with them."""

from __future__ import annotations

from functools import lru_cache
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from shoal.series.envelopes import number_by_height
from shoal.series.kapra import Kapra
from shoal.series.method import Progress, SeriesGrouping, check_sizes, silent
from shoal.series.pattern import Encoded, Floats
from shoal.series.subgroups import own_words, split_top_down

Rows = NDArray[np.int64]
ROUNDS = 6


class PublishedKapra(Kapra, frozen=True, tag="kapra as published"):
    """Algorithms 1 to 3 and nothing else: no record changes its word or its place, every subgroup is looked at."""

    def group(
        self, values: Floats, encoded: Encoded, k: int, p: int, *, seed: int = 0, progress: Progress = silent
    ) -> SeriesGrouping:
        """See :class:`shoal.series.method.SeriesMethod`."""
        check_sizes(len(values), k, p)
        word = own_words(encoded, np.arange(len(values)), p, least=k, refine=0, losses=None)
        part = split_top_down(values, word, p, seed)
        group = np.full(len(values), -1, np.int32)
        for at, rows in enumerate(form_groups(values, part, k)):
            group[rows] = at
        return number_by_height(values, group, word)


def loss_of(values: Floats, rows: Rows) -> float:
    """VL(G): the size of a group times the root mean square of its widths."""
    return len(rows) * float(np.sqrt(((values[rows].max(axis=0) - values[rows].min(axis=0)) ** 2).mean()))


def form_groups(values: Floats, part: Rows, k: int) -> list[Rows]:
    """Algorithm 3: from the subgroup of least loss, always the one that gives the least loss together, until k.

    Those that are left join the group whose loss together is least.
    """
    parts = [np.flatnonzero(part == at) for at in np.unique(part[part >= 0])]
    groups = [rows for rows in parts if len(rows) >= k]
    free = Boxes(values, [rows for rows in parts if len(rows) < k])
    while free.records() >= k:
        group = free.pop(int(np.argmin(free.size * _width(free.low, free.high))))
        while len(group) < k:
            group = np.concatenate([group, free.pop(free.nearest(values[group]))])
        groups.append(group)
    made = Boxes(values, groups)
    for rows in free.rows:
        made.join(made.nearest(values[rows]), values, rows)
    return made.rows


class Boxes:
    """Groups of records with their envelopes."""

    def __init__(self, values: Floats, rows: list[Rows]) -> None:
        self.rows = rows
        self.size = np.array([len(own) for own in rows])
        self.low = np.array([values[own].min(axis=0) for own in rows]).reshape(len(rows), values.shape[1])
        self.high = np.array([values[own].max(axis=0) for own in rows]).reshape(len(rows), values.shape[1])

    def records(self) -> int:
        """How many records they have together."""
        return int(self.size.sum())

    def nearest(self, more: Floats) -> int:
        """Which has the least loss together with ``more``."""
        low, high = np.minimum(self.low, more.min(axis=0)), np.maximum(self.high, more.max(axis=0))
        return int(np.argmin((self.size + len(more)) * _width(low, high)))

    def pop(self, at: int) -> Rows:
        """Take one away."""
        self.size, self.low, self.high = (np.delete(a, at, axis=0) for a in (self.size, self.low, self.high))
        return self.rows.pop(at)

    def join(self, at: int, values: Floats, rows: Rows) -> None:
        """More records in one of them."""
        self.rows[at] = np.concatenate([self.rows[at], rows])
        self.size[at] += len(rows)
        self.low[at] = np.minimum(self.low[at], values[rows].min(axis=0))
        self.high[at] = np.maximum(self.high[at], values[rows].max(axis=0))


def _width(low: Floats, high: Floats) -> Floats:
    wide: Floats = np.sqrt(((high - low) ** 2).mean(axis=1))
    return wide


def top_down(values: Floats, k: int, rng: np.random.Generator) -> list[Rows]:
    """The clustering of Naive (Xu et al. 2006) as it was run: greedy, in random order; groups below k stay.

    Six times the record farthest from the last one is taken, by turns for either side; all of them stay there.
    """
    span = values.max(axis=0) - values.min(axis=0)
    scaled = values / np.where(span == 0, 1, span)

    def cut(rows: list[int]) -> list[list[int]]:
        if len(rows) < 2 * k:
            return [rows]
        left = list(rows)
        sides = _far_apart(scaled, left, rng)
        rng.shuffle(left)
        low = [scaled[side].min(axis=0) for side in sides]
        high = [scaled[side].max(axis=0) for side in sides]
        for row in left:
            wide = [
                (len(side) + 1) * float((np.maximum(h, scaled[row]) - np.minimum(l, scaled[row])).sum())
                for side, l, h in zip(sides, low, high, strict=True)
            ]
            at = int(wide[1] < wide[0])
            sides[at].append(row)
            low[at], high[at] = np.minimum(low[at], scaled[row]), np.maximum(high[at], scaled[row])
        return [group for side in sides for group in (cut(side) if len(side) > k else [side])]

    return [np.array(rows) for rows in cut(list(range(len(values))))]


def _far_apart(scaled: Floats, left: list[int], rng: np.random.Generator) -> tuple[list[int], list[int]]:
    """The first records of both sides, taken out of ``left``."""
    last = left.pop(int(rng.integers(len(left))))
    sides: tuple[list[int], list[int]] = ([last], [])
    for turn in range(ROUNDS):
        last = left.pop(int(np.argmax(np.abs(scaled[left] - scaled[last]).sum(axis=1))))
        sides[(turn + 1) % 2].append(last)
    return sides


def measured_pattern_loss(curves: Floats, words: list[str]) -> Floats:
    """The pattern loss of every record as it was measured: a cosine only where both vectors have a positive sum.

    A curve with mean 0 has the sum 0, so rounding decides which; any other is said to lose everything. The level of a
    word is taken from its largest letter, and what a letter stands for from a million random numbers: a word with as
    many high as low letters has the sum 0, and there their mean decides.
    """
    out = np.ones(len(words))
    for at, (curve, word) in enumerate(zip(curves, words, strict=True)):
        own = _segments(curve, len(word))
        letters = np.array([ord(letter) - ord("a") for letter in word])
        level = int(letters.max()) + 1
        shape = _medians(level)[letters] if level > 1 else 0.0 * letters
        if own.sum() > 0 and shape.sum() > 0:
            out[at] = 1 - own @ shape / np.sqrt((own @ own) * (shape @ shape))
        elif own.sum() == 0 and shape.sum() == 0:
            out[at] = 0.0
    return out


@lru_cache
def _medians(level: int) -> Floats:
    """The median of those of a million normal numbers that lie in each interval of a level."""
    drawn = np.random.RandomState(23).normal(size=1_000_000)
    inside = np.searchsorted([NormalDist().inv_cdf(j / level) for j in range(1, level)], drawn, "right")
    return np.array([np.median(drawn[inside == letter]) for letter in range(level)])


def _segments(curve: Floats, word: int) -> Floats:
    """Means of segments, added up one by one: here rounding matters."""
    spread = float(curve.std())
    normal = (curve - curve.mean()) / spread if spread > 0.01 else curve
    parts: Floats = np.cumsum(np.repeat(normal, word).reshape(word, -1), axis=1)[:, -1] / len(curve)
    return parts

"""Queries on a release: ranges answered from envelopes, similarity from patterns (what Shou et al. publish for).

A query sees only what is published. :func:`query_errors` is for the operator, who knows the truth.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.core.cells import read
from shoal.core.errors import InputError, UsageError
from shoal.core.frames import require
from shoal.measures.series import pattern_loss
from shoal.series.pattern import Floats, Pattern
from shoal.series.publish import LEVEL, PATTERN
from shoal.series.representatives import Representatives


class Count(NamedTuple):
    """How many records a range query finds: surely, probably, possibly."""

    at_least: int
    expected: float
    at_most: int


@dataclass(frozen=True)
class Released:
    """A wide release read back: envelopes per record, and the curve its pattern stands for (mean 0, no unit)."""

    low: Floats
    high: Floats
    shapes: Floats  # per distinct (level, word)
    which: NDArray[np.int64]
    means: Representatives | None = None  # if they are published, too

    def count(self, low: float, high: float, instants: Sequence[int]) -> Count:
        """How many records lie in ``[low, high]`` at all of the instants.

        Expected: a value is as likely anywhere in its envelope, and a curve that is inside at its least likely
        instant is inside at the others, because neighbours in time are alike. With representatives a value is
        as likely as a normal law with their mean and spread says.
        """
        at = list(instants)
        if not at or not low <= high:
            raise UsageError("expected an ordered range and at least one instant", where="range query")
        bottom, top = self.low[:, at], self.high[:, at]
        overlap = np.minimum(top, high) - np.maximum(bottom, low)
        width = top - bottom
        share = np.divide(overlap, width, out=np.ones_like(width), where=width > 0)
        share = np.where(overlap < 0, 0.0, share)
        inside = ((bottom >= low) & (top <= high)).all(axis=1)
        touched = ((bottom <= high) & (top >= low)).all(axis=1)
        if self.means is not None:
            bounds = [np.asarray(sure, np.float64)[:, None] for sure in (inside, touched)]
            share = np.clip(self._likely(low, high, at), *bounds)
        return Count(int(inside.sum()), float(share.min(axis=1).sum()), int(touched.sum()))

    def _likely(self, low: float, high: float, at: list[int]) -> Floats:
        """How likely a record lies in a range at each instant, from the mean and spread of its subgroup."""
        assert self.means is not None
        mean, spread = self.means.mean[:, at], self.means.spread[:, at]
        wide = np.where(spread > 0, spread, 1.0)
        with np.errstate(over="ignore"):  # infinitely many deviations away is far enough
            ends = [np.clip((end - mean) / wide, -9, 9) for end in (low, high)]
        normal = np.vectorize(NormalDist().cdf, otypes=[np.float64])
        share = np.where(spread > 0, normal(ends[1]) - normal(ends[0]), (mean >= low) & (mean <= high))
        out: Floats = share[self.means.which]
        return out

    def similar(self, curve: Floats, most: int) -> tuple[NDArray[np.int64], Floats]:
        """The records whose pattern is most like a curve, best first, and their distance (1 - correlation).

        Among records with one pattern those come first whose envelope is nearest to the curve.
        """
        query = np.asarray(curve, np.float64)
        if query.shape != self.low.shape[1:]:
            raise UsageError(f"expected {self.low.shape[1]} instants, found {query.size}", where="similarity query")
        one = np.ascontiguousarray(query[None, :])
        shapes, which = (self.shapes, self.which) if self.means is None else (self.means.mean, self.means.which)
        far = pattern_loss(shapes, one, np.zeros(len(shapes), np.int64))
        outside = np.maximum(self.low - query, 0) + np.maximum(query - self.high, 0)
        order = np.lexsort((np.arange(len(which)), (outside**2).sum(axis=1), far[which]))[:most]
        return order, far[which[order]]


def read_released(frame: pl.DataFrame, instants: Sequence[str], pattern: Pattern) -> Released:
    """A release from its wide frame, with envelopes as text or as structs."""
    require(frame, (*instants, PATTERN, LEVEL), "queries")
    ends = [_ends(frame[name]) for name in instants]
    words = frame.select(LEVEL, PATTERN).unique(maintain_order=True)
    shapes = [pattern.rebuild(int(level), [word])[0] for level, word in words.iter_rows()]
    which = frame.select(LEVEL, PATTERN).join(words.with_row_index("at"), on=[LEVEL, PATTERN], maintain_order="left")
    features = np.array(shapes).reshape(len(shapes), -1)
    return Released(
        np.column_stack([low for low, _ in ends]),
        np.column_stack([high for _, high in ends]),
        np.ascontiguousarray(pattern.stretch(features, len(instants))),
        which["at"].to_numpy().astype(np.int64),
    )


def _ends(column: pl.Series) -> tuple[Floats, Floats]:
    if column.dtype == pl.Struct:
        return tuple(column.struct.field(end).cast(pl.Float64).to_numpy() for end in ("low", "high"))  # type: ignore[return-value]
    if column.dtype.is_numeric():
        return (column.cast(pl.Float64).to_numpy(),) * 2
    texts = column.unique()
    cells = [_cell(text, column.name) for text in texts.to_list()]
    low = column.replace_strict(texts, pl.Series([low for low, _ in cells]), return_dtype=pl.Float64)
    high = column.replace_strict(texts, pl.Series([high for _, high in cells]), return_dtype=pl.Float64)
    return low.to_numpy(), high.to_numpy()


def _cell(text: str | None, name: str) -> tuple[float, float]:
    cell = read(text)
    if cell.kind == "interval":
        return cell.low, cell.high
    try:
        return float(cell.text), float(cell.text)
    except ValueError:
        raise InputError("expected an envelope such as [1, 2] or a number", where=f"column {name!r}") from None


def query_errors(
    released: Released, truth: Floats, records: NDArray[np.int64], *, queries: int = 200, most: int = 10, seed: int = 0
) -> dict[str, float]:
    """How wrong answers from a release are, over seeded queries.

    ``truth`` are all curves, ``records`` the curve of each released record. ``range`` is the mean relative error of
    counts over one to four neighbouring instants (relative to at least 1 % of the records); ``range_bounds`` the mean
    distance of the bounds as a share of the records; ``similarity`` the share of the truly most similar ``most``
    curves that are not among as many answers; ``similarity_chance`` what a random answer would miss. ``_spread`` is
    the standard error of a mean over that many queries.
    """
    rng = np.random.default_rng([seed, 0x9])
    n, instants = truth.shape
    most = min(most, n)
    wrong, loose, missed = [], [], []
    for _ in range(queries):
        length = int(rng.integers(1, min(4, instants) + 1))
        start = int(rng.integers(0, instants - length + 1))
        at = np.arange(start, start + length)
        ends = np.sort(rng.choice(truth[:, at].ravel(), 2))
        true = int(((truth[:, at] >= ends[0]) & (truth[:, at] <= ends[1])).all(axis=1).sum())
        answer = released.count(float(ends[0]), float(ends[1]), at.tolist())
        wrong.append(abs(answer.expected - true) / max(true, n / 100))
        loose.append((answer.at_most - answer.at_least) / n)
        query = truth[int(rng.integers(n))]
        found, _ = released.similar(query, most)
        far = pattern_loss(np.ascontiguousarray(truth), np.ascontiguousarray(query[None, :]), np.zeros(n, np.int64))
        nearest = np.lexsort((np.arange(n), far))[:most]
        missed.append(1 - len(np.intersect1d(records[found], nearest)) / most)
    return {
        "range": float(np.mean(wrong)),
        "range_spread": float(np.std(wrong) / np.sqrt(queries)),
        "range_bounds": float(np.mean(loose)),
        "similarity": float(np.mean(missed)),
        "similarity_spread": float(np.std(missed) / np.sqrt(queries)),
        "similarity_chance": 1 - most / n,
    }

"""Queries on a release: ranges answered from envelopes, similarity from patterns (what Shou et al. publish for).

A query sees only what is published. :func:`query_errors` is for the operator, who knows the truth.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.core.cells import read
from shoal.core.errors import InputError, UsageError
from shoal.core.frames import require
from shoal.measures.series import pattern_loss, warped_distance
from shoal.promises.compact import expand, is_compact
from shoal.series.pattern import Floats, Pattern
from shoal.series.publish import GROUP, LEVEL, PATTERN
from shoal.series.representatives import INERTIA, SIZE, TOGETHER, Representatives

NODES = 9  # points at which the common factor of a curve's instants is taken


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
    whole: bool = False  # all values are whole numbers

    def count(self, low: float, high: float, instants: Sequence[int]) -> Count:
        """How many records lie in ``[low, high]`` at all of the instants.

        Expected: a value is as likely anywhere in its envelope, and a curve that is inside at its least likely
        instant is inside at the others, because neighbours in time are alike. With representatives each value
        follows a normal law with their mean and spread inside its envelope, and instants agree as they say.
        """
        at = list(instants)
        if not at or not low <= high:
            raise UsageError("expected an ordered range and at least one instant", where="range query")
        bottom, top = self.low[:, at], self.high[:, at]
        inside = ((bottom >= low) & (top <= high)).all(axis=1)
        touched = ((bottom <= high) & (top >= low)).all(axis=1)
        if self.means is not None:
            expected = float((self._likely(low, high, at) * self.means.size).sum())
        else:
            with np.errstate(over="ignore"):  # of ends that far apart it is enough to know the sign
                overlap, width = np.minimum(top, high) - np.maximum(bottom, low), top - bottom
            # the part that is inside is at most the whole: no division of a large gap by a narrow envelope
            share = np.divide(np.maximum(overlap, 0.0), width, out=np.ones_like(width), where=width > 0)
            expected = float(np.where(overlap < 0, 0.0, share).min(axis=1).sum())
        least, most = int(inside.sum()), int(touched.sum())
        return Count(least, min(max(expected, least), most), most)

    def _likely(self, low: float, high: float, at: list[int]) -> Floats:
        """How likely a record of each subgroup lies in a range at all of the instants."""
        from shoal.kernels.series.likely import likely

        assert self.means is not None
        first = self.means.first()
        spot = np.ix_(first, np.array(at))
        bottom, top = self.low[spot], self.high[spot]
        told = self.means.spread[:, at]
        spread = np.where(np.isnan(told), (top - bottom) / np.sqrt(12), told)  # not told: as likely anywhere
        gap = np.abs(np.subtract.outer(at, at)).sum() / max(1, len(at) * (len(at) - 1))
        together = np.minimum(self.means.together, INERTIA) ** max(1.0, gap)
        nodes, weights = _nodes()
        out = np.empty(len(first))
        mean = np.ascontiguousarray(self.means.mean[:, at])
        likely(mean, spread, bottom, top, together, low, high, 0.5 if self.whole else 0.0, nodes, weights, out)
        return out

    def similar(self, curve: Floats, most: int, *, warp: int | None = None) -> tuple[NDArray[np.int64], Floats]:
        """The records whose pattern is most like a curve, best first, and their distance (1 - correlation).

        With representatives it is the correlation expected of a curve of the subgroup: the mean of unlike curves is
        smooth and correlates better than any of them. With ``warp`` it is the distance of dynamic time warping, where
        instants may be so far off. Among records with one pattern those come first whose envelope is nearest.
        """
        query = np.asarray(curve, np.float64)
        if query.shape != self.low.shape[1:]:
            raise UsageError(f"expected {self.low.shape[1]} instants, found {query.size}", where="similarity query")
        one = np.ascontiguousarray(query[None, :])
        shapes, which = (self.shapes, self.which) if self.means is None else (self.means.mean, self.means.which)
        if warp is None:
            far = pattern_loss(shapes, one, np.zeros(len(shapes), np.int64))
            if self.means is not None:
                far = 1 - (1 - far) * self.means.faithful
        else:
            far = warped_distance(shapes, query, warp)
        away = far[which]
        last = np.partition(away, most - 1)[most - 1] if 0 < most < len(away) else np.inf
        near = np.flatnonzero(away <= last)  # envelopes decide between few: only theirs are looked at
        outside = np.maximum(self.low[near] - query, 0) + np.maximum(query - self.high[near], 0)
        order = near[np.lexsort((near, (outside**2).sum(axis=1), away[near]))[:most]]
        return order, away[order]


@lru_cache
def _nodes() -> tuple[Floats, Floats]:
    """Where a standard normal factor is taken, and how much each point weighs (Gauss and Hermite)."""
    at, weight = np.polynomial.hermite_e.hermegauss(NODES)
    return at, weight / weight.sum()


def read_released(
    frame: pl.DataFrame, instants: Sequence[str], pattern: Pattern, representatives: pl.DataFrame | None = None
) -> Released:
    """A release from its wide frame, with envelopes as text or as structs; and its representatives, if at hand.

    >>> import shoal
    >>> made, _ = shoal.anonymize_series(np.add.outer(np.arange(8), [0, 1, 2, 3]), k=4, p=2)
    >>> read_released(made.frame(), made.instants, made.pattern).low.shape
    (8, 4)
    """
    frame = expand(frame) if is_compact(frame) else frame
    require(frame, (*instants, PATTERN, LEVEL), "queries")
    ends = [envelope_ends(frame[name]) for name in instants]
    words = frame.select(LEVEL, PATTERN).unique(maintain_order=True)
    shapes = [pattern.rebuild(int(level), [word])[0] for level, word in words.iter_rows()]
    which = frame.select(LEVEL, PATTERN).join(words.with_row_index("at"), on=[LEVEL, PATTERN], maintain_order="left")
    features = np.array(shapes).reshape(len(shapes), -1)
    return Released(
        np.column_stack([low for low, _ in ends]),
        np.column_stack([high for _, high in ends]),
        np.ascontiguousarray(pattern.stretch(features, len(instants))),
        which["at"].to_numpy().astype(np.int64),
        None if representatives is None else read_representatives(representatives, frame, instants),
        whole=all(_is_whole(low) and _is_whole(high) for low, high in ends),
    )


def read_representatives(means: pl.DataFrame, frame: pl.DataFrame, instants: Sequence[str]) -> Representatives:
    """The table of representatives beside a wide release, row by row what its records have in common."""
    about = (GROUP, PATTERN, LEVEL)
    parts = [[f"{name}_{part}" for name in instants] for part in ("mean", "spread")]
    require(means, (*about, SIZE, TOGETHER, *parts[0], *parts[1]), "representatives")
    require(frame, about, "queries")
    rows = means.select(about).with_row_index("at").with_columns(pl.col(LEVEL).cast(frame[LEVEL].dtype))
    rows = rows.with_columns(pl.col(GROUP).cast(frame[GROUP].dtype))
    which = frame.select(about).join(rows, on=about, how="left", maintain_order="left")["at"]
    counted = np.bincount(which.drop_nulls().to_numpy(), minlength=means.height) if means.height else np.zeros(0)
    # sizes must fit, too: numbers of groups are the same in every release
    if which.null_count() or not np.array_equal(counted, means[SIZE].to_numpy()):
        raise InputError("these representatives are not of this release", where="representatives")
    mean, spread = (means.select(pl.col(names).cast(pl.Float64).fill_null(np.nan)).to_numpy() for names in parts)
    together = means[TOGETHER].cast(pl.Float64).to_numpy()
    return Representatives(mean, spread, together, means[SIZE].to_numpy(), which.to_numpy().astype(np.int64))


def _is_whole(ends: Floats) -> bool:
    return bool((ends == np.floor(ends)).all())


def envelope_ends(column: pl.Series) -> tuple[Floats, Floats]:
    """The least and the greatest value of each cell of a released instant."""
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


class Questions(NamedTuple):
    """Seeded queries on curves and their true answers: several releases of the same curves are asked the same."""

    ranges: list[tuple[float, float, range, int]]  # lowest, highest, instants, how many curves lie inside
    curves: NDArray[np.int64]  # whose like is sought, each once: in a small table one is drawn several times
    which: NDArray[np.int64]  # per query, which of them
    nearest: list[NDArray[np.int64]]  # per curve, those that are truly most like it
    best: list[float]  # and how far they are on average


def questions(truth: Floats, queries: int = 200, *, most: int = 10, seed: int = 0) -> Questions:
    """Draw queries: a range over one to four neighbouring instants, and a curve whose like is sought.

    >>> asked = questions(np.add.outer(np.arange(8.0), [0, 1, 2, 3]), 5, most=2)
    >>> len(asked.ranges), [len(found) for found in asked.nearest[:2]]
    (5, [2, 2])
    """
    rng = np.random.default_rng([seed, 0x9])
    n, instants = truth.shape
    ranges, drawn = [], np.empty(queries, np.int64)
    for asked in range(queries):
        length = int(rng.integers(1, min(4, instants) + 1))
        start = int(rng.integers(0, instants - length + 1))
        window = truth[:, start : start + length]
        low, high = np.sort(rng.choice(window.ravel(), 2))
        inside = int(((window >= low) & (window <= high)).all(axis=1).sum())
        ranges.append((float(low), float(high), range(start, start + length), inside))
        drawn[asked] = rng.integers(n)
    curves, which = np.unique(drawn, return_inverse=True)
    nearest, best = [], []
    for one in curves:
        far = _far(truth, truth[one])
        found = np.lexsort((np.arange(n), far))[: min(most, n)]
        nearest.append(found)
        best.append(float(far[found].mean()))
    return Questions(ranges, curves, which, nearest, best)


def query_errors(
    released: Released,
    truth: Floats,
    records: NDArray[np.int64],
    *,
    queries: int = 200,
    most: int = 10,
    seed: int = 0,
    asked: Questions | None = None,
) -> dict[str, float]:
    """How wrong answers from a release are, over seeded queries: those of :func:`questions`, if they are not given.

    ``truth`` are all curves, ``records`` the curve of each released record. ``range`` is the mean relative error of
    counts over one to four neighbouring instants (relative to at least 1 % of the records); ``range_bounds`` the mean
    distance of the bounds as a share of the records; ``similarity`` the share of the truly most similar ``most``
    curves that are not among as many answers, ``similarity_regret`` how much farther (1 - correlation) the answers are
    than those; ``similarity_chance`` what a random answer would miss. ``_spread`` is the standard error of a mean over
    that many queries.

    >>> import shoal
    >>> curves = np.add.outer(np.arange(8.0), [0, 1, 2, 3])
    >>> made, _ = shoal.anonymize_series(curves, k=4, p=2, seed=1)
    >>> released = read_released(made.frame(), made.instants, made.pattern)
    >>> sorted(query_errors(released, curves, made.records, queries=5))[:2]
    ['range', 'range_bounds']
    """
    if asked is None:
        asked = questions(truth, queries, most=most, seed=seed)
    most = len(asked.nearest[0])
    wrong, loose = [], []
    for low, high, at, inside in asked.ranges:
        answer = released.count(low, high, at)
        # of a handful of curves a relative error says little
        wrong.append(abs(answer.expected - inside) / max(inside, len(truth) / 100))
        loose.append((answer.at_most - answer.at_least) / len(truth))
    errors = []
    for one, nearest, best in zip(asked.curves, asked.nearest, asked.best, strict=True):
        found = records[released.similar(truth[one], most)[0]]
        shared = len(set(found.tolist()) & set(nearest.tolist()))
        errors.append((1 - shared / most, float(_far(truth[found], truth[one]).mean()) - best))
    missed, regret = np.array(errors)[asked.which].T
    return {
        "range": float(np.mean(wrong)),
        "range_spread": float(np.std(wrong) / np.sqrt(len(wrong))),
        "range_bounds": float(np.mean(loose)),
        "similarity": float(np.mean(missed)),
        "similarity_spread": float(np.std(missed) / np.sqrt(len(wrong))),
        "similarity_regret": float(np.mean(regret)),
        "similarity_chance": 1 - most / len(truth),
    }


def _far(curves: Floats, one: Floats) -> Floats:
    """How unlike one curve each of these is (1 - correlation)."""
    same = np.zeros(len(curves), np.int64)
    return pattern_loss(np.ascontiguousarray(curves), np.ascontiguousarray(one[None, :]), same)

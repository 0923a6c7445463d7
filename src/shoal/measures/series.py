"""How much a release of curves loses: of their values (envelopes) and of their shapes (patterns)."""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

from shoal.core.errors import UsageError

Floats = NDArray[np.float64]


class SeriesLoss(msgspec.Struct, frozen=True):
    """Totals over all records, and averages per record.

    ``value`` is the instant value loss, ``ncp`` the normalized certainty penalty, ``pattern`` the pattern loss on
    the word's own segments, ``shape`` the same on the full series: the one to compare word lengths by. A suppressed
    record counts 1 in ``ncp``, ``pattern`` and ``shape``, and the full width of every instant in ``value``.

    >>> SeriesLoss(4, 1, 8.0, 2.0, 1.0, 1.0).ncp
    0.5
    """

    records: int
    suppressed: int
    value_total: float
    ncp_total: float
    pattern_total: float
    shape_total: float

    @property
    def value(self) -> float:
        """Instant value loss of the average record."""
        return self.value_total / max(1, self.records)

    @property
    def ncp(self) -> float:
        """Normalized certainty penalty of the average record, 0 to 1."""
        return self.ncp_total / max(1, self.records)

    @property
    def pattern(self) -> float:
        """Pattern loss of the average record, on the word."""
        return self.pattern_total / max(1, self.records)

    @property
    def shape(self) -> float:
        """Pattern loss of the average record, on the full series."""
        return self.shape_total / max(1, self.records)

    def figures(self) -> dict[str, float]:
        """All of them by name."""
        totals = msgspec.structs.asdict(self)
        return totals | {"value": self.value, "ncp": self.ncp, "pattern": self.pattern, "shape": self.shape}


def value_loss(low: Floats, high: Floats) -> Floats:
    """Instant value loss of a record under each envelope: the root mean square of its widths.

    >>> value_loss(np.array([[0.0, 0.0]]), np.array([[3.0, 4.0]])).round(4).tolist()
    [3.5355]
    """
    out: Floats = np.sqrt(np.mean((high - low) ** 2, axis=1))
    return out


def certainty_penalty(low: Floats, high: Floats, width: Floats, weights: Floats | None = None) -> Floats:
    """Normalized certainty penalty of a record under each envelope, 0 to 1.

    The share of each instant's ``width`` (of all records; 0 counts nothing) that the envelope covers, averaged
    with ``weights`` per instant.

    >>> certainty_penalty(np.zeros((1, 2)), np.array([[5.0, 5.0]]), np.array([10.0, 20.0])).tolist()
    [0.375]
    """
    # an instant at which all are equal has nothing to lose
    share = np.divide(high - low, width, out=np.zeros_like(low), where=width > 0)
    weight = np.ones(len(width)) if weights is None else np.asarray(weights, np.float64)
    if weight.shape != width.shape or not (np.isfinite(weight).all() and (weight >= 0).all() and weight.sum() > 0):
        raise UsageError(
            f"expected {len(width)} weights, none negative and not all 0, found {weight.size}", where="weights"
        )
    out: Floats = (share * (weight / weight.sum())).sum(axis=1)
    return out


def pattern_loss(series: Floats, shapes: Floats, which: NDArray[np.int64]) -> Floats:
    """1 - correlation of each row with the shape published for it, ``shapes[which]``; 1 if just one is constant.

    >>> pattern_loss(np.array([[1.0, 2, 3], [3, 2, 1]]), np.array([[0.0, 1, 2]]), np.array([0, 0])).round(9).tolist()
    [0.0, 2.0]
    """
    from shoal.kernels.series.shape import correlation_loss

    out = np.empty(len(series))
    correlation_loss(series, shapes, which, out)
    return out


def warped_distance(series: Floats, query: Floats, band: int) -> Floats:
    """The dynamic time warping distance of each row from ``query``, both with mean 0 and deviation 1.

    An instant may be aligned with others at most ``band`` away. O(rows x instants x band).

    >>> late = np.array([[0.0, 0, 1, 0, 0, 0], [0, 1, 0, 0, 0, 0], [1, 1, 0, 1, 1, 1]])
    >>> warped_distance(late, np.array([0.0, 1, 0, 0, 0, 0]), band=1).round(3).tolist()
    [0.0, 0.0, 3.098]

    Reference: Sakoe, Chiba: Dynamic Programming Algorithm Optimization for Spoken Word Recognition (1978).
    """
    from shoal.kernels.series.sax import normalize
    from shoal.kernels.series.warping import warped

    if band < 0:
        raise UsageError(f"`band` must not be negative, found {band}", where="dtw")
    normal, one = np.empty_like(series), np.empty((1, len(query)))
    normalize(np.ascontiguousarray(series), normal)
    normalize(np.ascontiguousarray(query[None, :]), one)
    out = np.empty(len(series))
    warped(normal, one[0], band, out)
    return out


def series_loss(
    values: Floats,
    features: Floats,
    envelopes: tuple[Floats, Floats],
    group: NDArray[np.int32],
    shapes: tuple[Floats, Floats],
    which: NDArray[np.int64],
    weights: Floats | None = None,
) -> SeriesLoss:
    """The loss of publishing ``envelopes[group]`` and the shape ``which`` of every record (group -1: suppressed).

    ``shapes`` are given twice: as features (compared with ``features``) and as full series (with ``values``).

    >>> curves, flat = np.array([[0.0, 1.0], [1.0, 2.0]]), np.zeros((1, 2))
    >>> envelope = (curves.min(axis=0)[None], curves.max(axis=0)[None])
    >>> series_loss(curves, flat[[0, 0]], envelope, np.zeros(2, np.int32), (flat, flat), np.zeros(2, np.int64)).value
    1.0
    """
    kept = group >= 0
    low, high = envelopes
    suppressed = int((~kept).sum())
    width = values.max(axis=0) - values.min(axis=0) if len(values) else np.zeros(values.shape[1])
    here = group[kept]
    penalty = certainty_penalty(low, high, width, weights)
    return SeriesLoss(
        records=len(values),
        suppressed=suppressed,
        value_total=float(value_loss(low, high)[here].sum() + suppressed * np.sqrt(np.mean(width**2))),
        ncp_total=float(penalty[here].sum()) + suppressed,
        pattern_total=float(pattern_loss(features[kept], shapes[0], which[kept]).sum()) + suppressed,
        shape_total=float(pattern_loss(values[kept], shapes[1], which[kept]).sum()) + suppressed,
    )

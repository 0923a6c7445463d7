"""Time series: curves in, envelopes and patterns out. A file per algorithm of (k,P)-anonymity, as in its paper."""

from shoal.core.spec import Family
from shoal.series.method import SeriesGrouping, SeriesMethod
from shoal.series.pattern import Encoded, Pattern

SERIES_METHODS: Family[SeriesMethod] = Family(
    "series_method",
    __name__,
    {
        "naive": "naive:Naive",
        "kapra": "kapra:Kapra",
        "banded": "banded:Banded",
    },
)

PATTERNS: Family[Pattern] = Family(
    "pattern",
    __name__,
    {
        "sax": "sax:Sax",
        "seasonal": "seasonal:Seasonal",
        "slope": "slope:Slope",
        "shapelets": "shapelets:Shapelets",
        "auto": "auto:Auto",
    },
)

__all__ = ["PATTERNS", "SERIES_METHODS", "Encoded", "Pattern", "SeriesGrouping", "SeriesMethod"]

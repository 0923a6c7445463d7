"""Stream methods: how a release is made while the data still flows. The protocol is in :mod:`shoal.streams.base`."""

from shoal.core.spec import Family
from shoal.streams.base import Batch, Outcomes, Running, StreamMethod

STREAM_METHODS: Family[StreamMethod] = Family(
    "stream_method",
    __name__,
    {
        "z-anonymity": "z_anonymity:ZAnon",
        "batches": "batches:Batches",
        "castle": "castle:Castle",
        "fads": "fads:Fads",
        "curves": "curves:Curves",
    },
)

__all__ = ["STREAM_METHODS", "Batch", "Outcomes", "Running", "StreamMethod"]

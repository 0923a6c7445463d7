"""Masks: value in, value out; or a tuple, or a window of values. One small file each."""

from shoal.core.spec import Family
from shoal.masks.base import Mask

MASKS: Family[Mask] = Family(
    "mask",
    __name__,
    {
        "suppress": "suppress:Suppress",
        "blur": "blur:Blur",
        "substitute": "substitute:Substitute",
        "tokenize": "tokenize:Tokenize",
        "pseudonym": "pseudonym:Pseudonym",
        "address": "address:Address",
        "generalize": "generalize:Generalize",
        "bucket": "bucket:Bucket",
        "noise": "noise:Noise",
        "date-shift": "date_shift:DateShift",
        "round": "rounding:Round",
        "clip": "clip:Clip",
        "time-part": "time_part:TimePart",
        "hash": "hashed:Hash",
        "number": "hashed:Number",
        "fake": "fake:Fake",
        "replace": "replace:Replace",
        "text": "text:Text",
        "pram": "pram:Pram",
        "conditional": "conditional:Conditional",
        "aggregate": "aggregate:Aggregate",
        "microaggregate": "microaggregate:Microaggregate",
        "rank-swap": "rank_swap:RankSwap",
        "shuffle": "shuffle:Shuffle",
    },
)

__all__ = ["MASKS", "Mask"]

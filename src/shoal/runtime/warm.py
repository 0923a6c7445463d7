"""Compile what a view's method needs before it is needed.

The kernels are compiled at their first use, once per machine. That can take longer than a consumer group waits for a
member, so a worker does it before it joins: with invented events, whose outcome nobody sees.
"""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.core.errors import ShoalError
from shoal.core.hierarchy.range import Range
from shoal.core.schema import Column, Schema
from shoal.policy.document import View
from shoal.streams.base import Batch, StreamMethod

EVENTS = 400
SECOND = 1_000_000


def warm(view: View) -> bool:
    """Run the view's method over invented events and throw everything away; False if it refuses them."""
    if not isinstance(view.method, StreamMethod):
        return True
    numbers = np.arange(EVENTS)
    sensitive = sorted({p.sensitive for p in view.promises if p.sensitive is not None})
    schema = Schema(
        {
            "when": Column("time", unit="us"),
            "who": Column("subject"),
            "what": Column("quasi", type="int", hierarchy=Range(min=0, max=100)),
            **{name: Column("sensitive", type="str") for name in sensitive},
        }
    )
    frame = pl.DataFrame({"what": numbers % 100})
    frame = frame.with_columns(pl.Series(name, [f"v{n % 7}" for n in numbers]) for name in sensitive)
    times = numbers * SECOND
    # a shown time would keep a method from using boxes again; curves need it
    return _runs(view.method, view, schema, frame, times) or _runs(
        view.method, view, schema, frame.with_columns(pl.Series("when", times)), times
    )


def _runs(method: StreamMethod, view: View, schema: Schema, frame: pl.DataFrame, times: NDArray[np.int64]) -> bool:
    people = pl.Series("who", [f"p{n}" for n in range(EVENTS)])
    try:
        running = method.start(schema, view.promises, key=bytes(32))
        running.push(Batch(frame, times, people))
        running.tick(EVENTS * SECOND)
        running.flush()
        running.snapshot()
    except ShoalError:
        return False
    return True

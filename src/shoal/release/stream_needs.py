"""What a stream does with values that are not of their column's type: see :class:`shoal.connect.typed_lines.Needs`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.connect.typed_lines import Needs
from shoal.core.schema import Schema

if TYPE_CHECKING:
    from shoal.release.stream import StreamJob

FREE = ("plain", "identifier")  # nobody counts or groups them


def needed(job: StreamJob) -> Needs:
    """What a job sees, counts or reads, and how.

    A declared type holds, and so does what a mask or a derived column was made for; a time is of one kind. What else
    nobody declared may be any single value. What nobody sees or reads may be anything.

    >>> from shoal.policy.load import parse
    >>> from shoal.core.keys import KeyRing
    >>> from shoal.release.stream import stream_job
    >>> policy = parse('''
    ... columns: {at: time, who: subject, age: {role: quasi, type: int, hierarchy: suppress}, note: plain, more: plain}
    ... views: {m: {show: [age, note], promises: [{use: z-anonymity, z: 2, window: 1h}], method: z-anonymity}}''')
    >>> [sorted(part) for part in needed(stream_job(policy, "m", KeyRing()))]
    [['age', 'at'], ['note', 'who'], ['note']]
    """
    view = job.view
    schema = job.schema if view is None else view.schema
    read = {source for derive in schema.derived.values() for source in derive.sources}
    seen = set(schema.given)
    if view is not None:
        read |= {name for mask in view.start(job.keys).values() for name in mask.by} | set(view.masks)
        seen = {*view.shown, *read, *schema.of("subject", "time")} & seen
    held = {name for name in seen if schema[name].type is not None or name in read or schema[name].role == "time"}
    loose = seen - held
    free = set() if view is None else {n for n in loose if schema[n].role in FREE}
    return Needs(held, loose, free)


def unreadable(frame: pl.DataFrame, schema: Schema) -> NDArray[np.bool_] | None:
    """Which events nothing could be read of; nothing where a missing subject says it already.

    >>> from shoal.core.schema import Column
    >>> unreadable(pl.DataFrame({"age": [30, None]}), Schema({"age": Column("quasi")})).tolist()
    [False, True]
    """
    given = [frame[name] for name in schema.given if name in frame.columns]
    if schema.subject is not None or not all(column.null_count() for column in given):
        return None
    lost: NDArray[np.bool_] = np.logical_and.reduce([column.is_null().to_numpy() for column in given])
    return lost

"""Which region a record belongs to: the branch of its value, or the cell of quasi space that its values lie in.

Where a record goes decides only how much detail is left: a region that lacks some people of a value counts too few,
and withholds more. So every worker may decide by itself, a cut may change at any time, and no promise hangs on either.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import polars as pl

from shoal.core.keys import DEFAULT, KeyRing
from shoal.core.schema import Schema
from shoal.core.time import Micros
from shoal.policy.document import Policy
from shoal.runtime.kafka.regions.cells import ByCell, Cuts, Hold, RegionNumbers
from shoal.runtime.kafka.regions.wish import counted, regions_of
from shoal.streams.base import StreamMethod
from shoal.streams.chains import Coder
from shoal.streams.sensitive import Sensitive


class Partitioner(Protocol):
    """Regions of the records of one view."""

    columns: tuple[str, ...]  # what must be read of a record

    def of(self, frame: pl.DataFrame, times: Micros) -> RegionNumbers:
        """The region of each row."""

    def wish(self) -> Cuts | None:
        """Cuts that would share the load better, if it has become uneven."""

    def take(self, cuts: Cuts) -> None:
        """From now on by these cuts."""


def partitioner_of(policy: Policy, role: str, keys: KeyRing) -> Partitioner:
    """How the records of a view find their regions."""
    view = policy.views[role]
    count = regions_of(view)
    if count == 1:
        return Together()
    assert isinstance(view.method, StreamMethod)
    names = counted(policy, role)
    key = keys.derive(DEFAULT, "regions", role=role)
    if view.method.meets == "value":
        return ByValue(policy.schema, names[0], key, count, whole=not getattr(view.method, "generalize", True))
    who = [n for n in (policy.schema.subject,) if n is not None and policy.schema[n].derive is None]
    schema = Schema({name: policy.schema[name] for name in (*names, *who)})
    bounds = view.method.bounds()  # type: ignore[attr-defined]
    hold = Hold(bounds.delay, bounds.delay_time, Sensitive(view.promises, policy.schema, key).crowd)
    return ByCell(schema, key, count, hold)


class Together:
    """One region for everything."""

    columns: tuple[str, ...] = ()

    def of(self, frame: pl.DataFrame, times: Micros) -> RegionNumbers:
        """See :class:`Partitioner`."""
        return np.zeros(frame.height, np.int64)

    def wish(self) -> Cuts | None:
        """See :class:`Partitioner`."""
        return None

    def take(self, cuts: Cuts) -> None:
        """See :class:`Partitioner`."""


class ByValue(Together):
    """All who support a value or anything it may be generalized to: the most general node below the root draws.

    ``whole``: nothing is generalized, so the value itself draws.
    """

    def __init__(self, schema: Schema, column: str, key: bytes, count: int, *, whole: bool) -> None:
        self.columns = (column,)
        self._coder = Coder(schema[column].hierarchy, key, column)
        self._count, self._whole = count, whole

    def of(self, frame: pl.DataFrame, times: Micros) -> RegionNumbers:
        """See :class:`Partitioner`; what cannot be counted goes to the first."""
        coded = self._coder.code(frame[self.columns[0]])
        if not len(coded.chains):
            return np.zeros(frame.height, np.int64)
        top = coded.chains[:, 0].copy()
        for level in range(1, 1 if self._whole else coded.chains.shape[1]):
            top = np.where(coded.chains[:, level] != 0, coded.chains[:, level], top)
        drawn = (top.view(np.uint64) % np.uint64(self._count)).astype(np.int64)
        return np.where(coded.codes >= 0, drawn[np.maximum(coded.codes, 0)], 0)

"""The different texts of a column, by fingerprints of theirs: a join on the texts costs several times as much."""

from __future__ import annotations

import secrets

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.core.arrow import FEW, Views
from shoal.kernels.shared.fingerprint import distinct
from shoal.kernels.shared.views import view_prints

# nobody can look for texts that share a print under a key which each process draws for itself
KEY = np.array([secrets.randbits(64), secrets.randbits(64)], np.uint64)
Codes = NDArray[np.int32]


def different(values: pl.Series) -> tuple[pl.Series, Codes]:
    """The different values of a column, and which of them each row has, -1 where it has none. O(bytes).

    >>> some, codes = different(pl.Series(["b", None, "a", "b"]))
    >>> some.to_list(), codes.tolist()
    (['b', 'a'], [0, -1, 1, 0])
    """
    views = Views.of(values) if values.dtype == pl.String and len(values) >= FEW else None
    if views is None:
        some = values.unique(maintain_order=True).drop_nulls()
        table = pl.DataFrame({"value": some, "code": np.arange(len(some), dtype=np.int32)})
        found = pl.DataFrame({"value": values}).join(table, on="value", how="left", maintain_order="left")
        return some, found["code"].fill_null(-1).to_numpy()
    prints = np.empty(len(values), np.int64)
    view_prints(views.handle, views.lengths, KEY[0], KEY[1], prints)
    codes, first = np.empty(len(values), np.int32), np.empty(len(values), np.int32)
    return values[first[: distinct(prints, codes, first)]], codes

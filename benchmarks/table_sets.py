"""Texts without a hierarchy as small sets: what the same groups lose when a cell is all or nothing, and as a set."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from benchmarks import table
from benchmarks.table_data import STAYS, stays
from shoal.core.hierarchy.sets import Sets
from shoal.core.release import boxes_of
from shoal.promises.k_anonymity import KAnonymity
from shoal.tables.local import Local


def sets() -> None:
    """Hospital stays, k=5, by the most values of a set; 0: none."""
    if not STAYS.is_file():
        print("sets: the shared data is not beside the repository\n")
        return
    rows = []
    for columns, many in ((8, None), (20, 20_000)):
        data = stays(columns, many)
        labels = Local().group(data, [KAnonymity(5)]).labels
        size = np.bincount(labels)
        texts = [x.numbers is None for x in data.levels]
        for most in (0, 3, 5, Sets().most):
            levels = tuple(replace(x, most=most if text else 0) for x, text in zip(data.levels, texts, strict=True))
            boxes = boxes_of(replace(data, levels=levels), labels)
            lost = sum(float(size @ x.ncp(*boxes.column(j))) for j, x in enumerate(levels)) / data.matrix.size
            rows.append([data.size, columns, sum(texts), most, 100 * lost])
    table("local, k=5, same groups as small sets", ["rows", "columns", "of texts", "most values", "GCP %"], rows)

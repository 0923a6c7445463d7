"""Tables on Spark: ``shoal.spark.anonymize(df, quasi=[...], k=5)``. Needs the extra ``spark`` and Java 17."""

from __future__ import annotations

from typing import Any

from shoal.core.errors import UsageError
from shoal.core.release import Release
from shoal.release.job import job_of
from shoal.release.regional.choose import LARGEST
from shoal.release.table import TableJob
from shoal.release.wishes import Wishes
from shoal.runtime.spark.session import require_spark
from shoal.runtime.spark.table import released


def anonymize(df: Any, policy: Any = None, *, rows_per_region: int = LARGEST, **asked: Any) -> Release:
    """A verified release of a Spark DataFrame; its ``data`` is a DataFrame, its ``report`` the ordinary report.

    ``policy`` and ``view``, or ``quasi``, ``sensitive``, ``k`` and the other options of :func:`shoal.anonymize`. Cuts
    are made on the driver from a sample, each region is released on an executor by the ordinary method, and the whole
    is judged before anything is handed out; what is handed out is read from the checkpoint that was judged.
    ``rows_per_region``: an executor needs about 1,200 bytes for each.

    >>> anonymize(None, k=5)  # doctest: +SKIP
    """
    require_spark()
    job = job_of(Wishes({**asked, "policy": policy} if policy is not None else asked))
    if not isinstance(job, TableJob):
        raise UsageError(
            "only tables are released on Spark", where="spark", hint="curves and streams run on one machine"
        )
    return released(job, df, most=rows_per_region)

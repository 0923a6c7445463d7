"""Tables and curves on Spark: ``shoal.spark.anonymize(df, quasi=[...], k=5)``; views of streams: ``shoal.spark.view``.

Needs the extra ``spark`` and Java 17.
"""

from __future__ import annotations

from typing import Any

from shoal.core.errors import UsageError
from shoal.core.release import Release
from shoal.release.curves import CurvesJob
from shoal.release.job import job_of
from shoal.release.regional.choose import LARGEST
from shoal.release.roles import MasksJob
from shoal.release.stream import StreamJob
from shoal.release.table import TableJob
from shoal.release.wishes import Wishes
from shoal.runtime.spark import curves
from shoal.runtime.spark.session import require_spark
from shoal.runtime.spark.streaming import counted, masked
from shoal.runtime.spark.table import released


def anonymize(df: Any, policy: Any = None, *, rows_per_region: int = LARGEST, **asked: Any) -> Release:
    """A verified release of a Spark DataFrame; its ``data`` is a DataFrame, its ``report`` the ordinary report.

    ``policy`` and ``view``, or ``quasi``, ``sensitive``, ``k`` and the other options of :func:`shoal.anonymize`. Cuts
    are made on the driver from a sample, each region is released on an executor by the ordinary method, and the whole
    is judged before anything is handed out; what is handed out is read from the checkpoint that was judged.
    ``rows_per_region``: an executor needs about 1,200 bytes for each. Curves (``series=True``, or a view that promises
    kP-anonymity) are the rows of a wide table; their regions are cut by the mean of a curve.

    >>> anonymize(None, k=5)  # doctest: +SKIP
    """
    require_spark()
    job = job_of(Wishes({**asked, "policy": policy} if policy is not None else asked))
    if isinstance(job, CurvesJob):
        return curves.released(job, df, most=rows_per_region)
    if not isinstance(job, TableJob):
        raise UsageError(
            "only tables and curves are released on Spark", where="spark", hint="streams: shoal.spark.view"
        )
    return released(job, df, most=rows_per_region)


def view(df: Any, policy: Any, role: str, **asked: Any) -> Any:
    """What one role sees, as a DataFrame; of a stream (``spark.readStream``), too.

    Masks work row by row. A view that promises z-anonymity keeps its state with Spark and needs a key that outlives
    the query (``SHOAL_KEY``). Nothing is judged here: rows leave as they come. Views that group the rows of a table
    are made by :func:`anonymize`.

    >>> view(None, "policy.yaml", "market")  # doctest: +SKIP
    """
    require_spark()
    job = job_of(Wishes({**asked, "policy": policy, "view": role}))
    if isinstance(job, StreamJob):
        return counted(job, df)
    if isinstance(job, MasksJob):
        return masked(job, df)
    raise UsageError(
        "the view promises groups of a table",
        where=f"views.{role}",
        hint=f"shoal.spark.anonymize(df, policy, view={role!r}) releases it as a whole",
    )

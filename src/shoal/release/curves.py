"""The face for curves: group them, verify what would be published, and say what it cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from shoal.connect.files import read
from shoal.core.errors import PolicyError, PromiseError, UsageError
from shoal.policy.document import Policy, View
from shoal.promises.kp_anonymity import KPAnonymity, judge_curves
from shoal.promises.l_diversity import LDiversity
from shoal.report.series_report import SeriesReport
from shoal.series.release import SeriesRelease
from shoal.series.release import anonymize_series as group_series
from shoal.verifier import Verdict


def anonymize_series(
    data: Any,
    *,
    k: int,
    p: int,
    l: float | None = None,
    sensitive: Sequence[str] | Mapping[str, Any] = (),
    title: str = "curves",
    **more: Any,
) -> tuple[SeriesRelease, SeriesReport]:
    """Curves made (k,P)-anonymous and verified; see :func:`shoal.series.release.anonymize_series` for all parameters.

    >>> import numpy as np
    >>> curves = np.add.outer(np.arange(8), [0, 1, 2, 3])
    >>> release, report = anonymize_series(curves, k=4, p=2)
    >>> report.verified
    True
    """
    release = group_series(data, k=k, p=p, l=l, sensitive=sensitive, **more)
    frame = release.frame()
    columns = release.published.sensitive.columns
    findings = list(verify_series(frame, k=k, p=p, l=l, sensitive=columns, instants=release.instants).findings)
    broken = next((f for f in findings if not f.kept), None)
    if broken is not None:
        raise PromiseError(f"the release was not made: {broken}", where="verify")
    report = SeriesReport(
        title=title,
        method=release.method.use,
        rows=len(release.curves.values) + release.curves.dropped,
        released=frame.height,
        withheld=dict(release.withheld),
        altered=dict(release.altered),
        findings=findings,
        verified=True,
        figures=release.figures(),
    )
    return release, report


def verify_series(
    released: pl.DataFrame,
    *,
    k: int,
    p: int,
    l: float | None = None,
    sensitive: Sequence[str] = (),
    instants: Sequence[str] | None = None,
) -> Verdict:
    """Judge a release of curves, wide or long, by what it shows. Without ``instants`` every other column is one.

    ``l``: no sensitive value in more than 1/l of the records that read alike.
    """
    about = [LDiversity(l, column, kind="frequency") for column in sensitive] if l is not None and l > 1 else []
    if l is not None and l > 1 and not about:
        raise UsageError("l needs a sensitive column", where="l-diversity", hint="name it by `sensitive`")
    findings, records = judge_curves(released, KPAnonymity(k, p), about, sensitive=sensitive, instants=instants)
    return Verdict(tuple(findings), records, findings[0].groups, "rows")


def verify_series_view(released: str, policy: Policy, view: View, *, separator: str | None = None) -> Verdict:
    """Judge a released file of curves against what a view of a policy promises."""
    promise = series_promise(view)
    assert promise is not None
    return verify_series(
        read(released, separator=separator),
        k=promise.k,
        p=promise.p,
        l=max((d.l for d in view.promises if isinstance(d, LDiversity)), default=None),
        sensitive=[c for c in policy.schema.sensitive if view.shows(c)],
        instants=[c for c in policy.schema.quasi if view.shows(c)],
    )


def series_promise(view: View) -> KPAnonymity | None:
    """The promise about curves that a view makes, if it does."""
    return next((p for p in view.promises if isinstance(p, KPAnonymity)), None)


def anonymize_series_view(
    data: str, policy: Policy, view: View, *, separator: str | None = None, **more: Any
) -> tuple[SeriesRelease, SeriesReport]:
    """Curves of a file as a view of a policy says: quasi columns are the instants, the subject names the curve."""
    promise = series_promise(view)
    if promise is None:
        raise PolicyError("this view promises nothing about curves", where=policy.path)
    schema = policy.schema
    diversity = [p for p in view.promises if isinstance(p, LDiversity)]
    if any(p.kind != "frequency" for p in diversity) or len(diversity) + 1 < len(view.promises):
        raise PolicyError(
            "curves keep kP-anonymity and frequency l-diversity, and nothing else",
            where=f"{policy.path}: views.{view.name}.promises",
            hint="{use: l-diversity, kind: frequency, l: 2, column: …}",
        )
    names = schema.subject or next(iter(schema.of("identifier")), None)
    if view.method is not None:
        more["method"] = view.method
    return anonymize_series(
        read(data, separator=separator, types=policy.types()),
        k=promise.k,
        p=promise.p,
        l=max((d.l for d in diversity), default=None),
        id=names,
        sensitive=[c for c in schema.sensitive if view.shows(c)],
        instants=[c for c in schema.quasi if view.shows(c)],
        title=policy.dataset,
        **more,
    )

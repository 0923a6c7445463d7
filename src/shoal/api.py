"""The short calls: what ``shoal.<name>`` is. Each makes a job or a judge, runs it, and hands back the result."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypedDict, Unpack

import polars as pl

from shoal.core.errors import UsageError
from shoal.core.frames import from_any, require
from shoal.core.hierarchy import Hierarchy
from shoal.core.keys import KeyRing
from shoal.core.release import Release
from shoal.core.schema import Schema
from shoal.core.table import hierarchy_for
from shoal.measures.attack import Attack, join, members
from shoal.policy.document import Policy
from shoal.promises.base import Promise
from shoal.release.arguments import Argument, column_names, stated_names
from shoal.release.job import job_of, judge_of
from shoal.release.wishes import Wishes
from shoal.report.measured import Measured, measured
from shoal.report.series_report import SeriesReport
from shoal.series.narrowing import narrow
from shoal.series.release import SeriesRelease
from shoal.tables.base import Progress, TableMethod
from shoal.verifier import Verdict
from shoal.verifier import intersection as intersect

Quasi = str | Sequence[str] | Mapping[str, Hierarchy | str | Mapping[str, Any] | None]


class Asked(TypedDict, total=False):
    """What may be asked of a release of a table; see :func:`anonymize`."""

    policy: str | Path | Policy
    view: str
    quasi: Quasi
    sensitive: str | Sequence[str]
    plain: str | Sequence[str]
    subject: str | None
    schema: Schema | None
    weights: Mapping[str, float] | None
    k: int | None
    l: float | None
    t: float | None
    promises: Sequence[Promise]
    method: TableMethod | str | Mapping[str, Any] | None
    effort: str | int | None
    seed: int | None
    cells: Literal["text", "struct"]
    title: str
    keep_order: bool
    waive: str | Sequence[str]
    keys: KeyRing | None
    progress: Progress


def anonymize(data: Any, **asked: Unpack[Asked]) -> Release:
    """A verified release of a table, the same kind of frame that came in, in an order that tells nothing.

    ``quasi``: the columns an outsider may know; with hierarchies if you give a mapping (a name, a file of a tree, a
    spec). ``sensitive``: columns an outsider must not learn. ``plain``: further columns to show unchanged. A column
    you do not declare is left out. ``subject`` says whose row it is: people are counted, not rows. ``k`` people share
    each combination of quasi values; ``l`` and ``t`` speak about each sensitive column; ``promises`` takes any others.
    ``method``, ``effort``: how groups are found. ``weights``: what a column's detail is worth. ``policy`` and
    ``view`` instead of columns: a policy file says it all, and ``k``, ``l``, ``t`` may only make it stronger.
    ``seed``: without one it is drawn in secret; with one the same call gives the same release. ``keep_order`` leaves
    rows as they came, and ``waive`` accepts a risk by name: the report says so. ``positions`` of the release tells,
    in memory only, which input row each released row is.

    Raises :class:`PromiseError` if a promise cannot be kept; nothing unverified is ever returned.

    >>> import polars as pl, shoal
    >>> patients = pl.DataFrame({"age": [21, 25, 58, 53], "zip": ["10115", "10117", "20095", "20097"],
    ...                          "diag": ["flu", "cold", "flu", "asthma"]})
    >>> release = shoal.anonymize(patients, quasi={"age": "range", "zip": {"use": "prefix", "length": 5}},
    ...                           sensitive=["diag"], k=2)
    >>> sorted(release.data.rows())[:2]
    [('[21, 25]', '1011*', 'cold'), ('[21, 25]', '1011*', 'flu')]
    """
    return _run(data, dict(asked), "anonymize")


def view(data: Any, policy: str | Path | Policy, role: str, **asked: Any) -> Release:
    """What one role sees of a table: masks, then the method if the view promises something.

    >>> import polars as pl, shoal
    >>> from shoal.policy.load import parse
    >>> policy = parse('''
    ... columns: {name: identifier, diag: sensitive}
    ... views: {ward: {show: [diag]}}''')
    >>> shoal.view(pl.DataFrame({"name": ["F. Ott"], "diag": ["E10"]}), policy, "ward").data.rows()
    [('*', 'E10')]
    """
    return _run(data, {**asked, "policy": policy, "view": role}, None)


def anonymize_series(data: Any, *, k: int, p: int, **asked: Any) -> tuple[SeriesRelease, SeriesReport]:
    """Curves made (k,P)-anonymous and verified; see :func:`shoal.series.release.anonymize_series` for all parameters.

    >>> import numpy as np, shoal
    >>> curves = np.add.outer(np.arange(8), [0, 1, 2, 3])
    >>> release, report = shoal.anonymize_series(curves, k=4, p=2)
    >>> report.verified
    True
    """
    made = _run(data, {**asked, "series": True, "k": k, "p": p}, "anonymize_series")
    return made.curves, made.report


def _run(data: Any, asked: dict[str, Any], promising: str | None) -> Release:
    progress: Callable[[float, str], None] | None = asked.pop("progress", None)
    job = job_of(Wishes(asked))
    if promising is not None and not job.promises:
        raise UsageError("this view promises nothing", where=promising, hint="shoal.view makes it")
    return job.run(data) if progress is None else job.run(data, progress=progress)


def verify(
    data: Any,
    *,
    people: Any = None,
    original: Any = None,
    **asked: Any,
) -> Verdict:
    """Judge released data against promises, by code that knows no method. True if every promise is kept.

    ``quasi``, ``sensitive``, ``k``, ``l``, ``t``, ``promises``, ``schema``: as for :func:`anonymize`; or a ``policy``
    and a ``view``. People are counted if the release shows a ``subject`` column or ``people`` (one entry per row) is
    handed in. A stream (``z``, ``window``) is judged beside its ``original`` events.

    >>> import polars as pl, shoal
    >>> bool(shoal.verify(pl.DataFrame({"age": ["[20, 29]", "[20, 29]", "31"]}), quasi=["age"], k=2))
    False
    """
    judge = judge_of(Wishes(asked))
    frame = from_any(data)[0]
    events = None if original is None else from_any(original)[0]
    return judge.judge(frame, people=None if people is None else pl.Series(people), original=events)


def measure(
    data: Any, *, quasi: str | Sequence[str], sensitive: str | Sequence[str] = (), subject: str | None = None
) -> Measured:
    """The k, l and t a table reaches as it stands, and the risk of being found again in it.

    >>> import polars as pl, shoal
    >>> table = pl.DataFrame({"age": [30, 30, 41], "diag": ["flu", "cold", "flu"]})
    >>> found = shoal.measure(table, quasi=["age"], sensitive=["diag"])
    >>> found.k, found.sensitive["diag"].distinct, found.risk.unique
    (1, 1, 1)
    """
    frame, _ = from_any(data)
    known = stated_names("quasi", quasi)
    about = column_names(Argument("sensitive", "sensitive"), sensitive)
    require(frame, [*known, *about, *([subject] if subject else [])], "table")
    return measured(frame, known, about, None if subject is None else frame[subject])


def attack(
    released: Any,
    register: Any,
    on: str | Sequence[str],
    *,
    schema: Schema | None = None,
    representatives: Any = None,
) -> Attack:
    """Join a release with a register on columns both have; with a ``schema`` the attacker knows its hierarchies.

    ``on`` may be instants of released curves; with their ``representatives`` the attacker knows the means, too.

    >>> import polars as pl, shoal
    >>> register = pl.DataFrame({"age": [21, 25]})
    >>> shoal.attack(pl.DataFrame({"age": ["[20, 29]"]}), register, on=["age"]).unique
    0
    """
    shown, known = from_any(released)[0], from_any(register)[0]
    names = stated_names("on", on)
    for frame, where in ((shown, "release"), (known, "register")):
        require(frame, names, where)
    if representatives is not None:
        shown = narrow(shown, from_any(representatives)[0], names)
    nodes = {}
    if schema is not None:
        for name in names:
            if name in schema.columns:
                hierarchy = hierarchy_for(known[name], schema[name])
                nodes[name] = members(hierarchy.compile(known[name].unique())[0])
    return join(shown, known, names, nodes)


def intersection(before: Any, after: Any, quasi: Sequence[str], subject: str) -> dict[str, float]:
    """What two releases of the same people reveal together; both show the ``subject`` (a pseudonym will do).

    >>> import polars as pl
    >>> before = pl.DataFrame({"who": [1, 2], "age": ["[20, 29]"] * 2})
    >>> intersection(before, before.with_columns(age=pl.Series(["a", "b"])), ["age"], "who")["unique"]
    2
    """
    first, second = from_any(before)[0], from_any(after)[0]
    for frame, where in ((first, "previous"), (second, "release")):
        require(frame, [*quasi, subject], where)
    return intersect(first, second, quasi, [first[subject], second[subject]])

"""The short calls: what ``shoal.<name>`` is. Each makes a job or a judge, runs it, and hands back the result."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack

import polars as pl

from shoal.core.errors import UsageError
from shoal.core.frames import from_any, require
from shoal.core.hierarchy import Hierarchy
from shoal.core.keys import KeyRing
from shoal.core.release import Release
from shoal.core.schema import Schema, one_role_each
from shoal.policy.document import Policy
from shoal.promises.base import Promise
from shoal.release.arguments import Argument, column_names, several, share, stated_names, whole
from shoal.release.wishes import Wishes

# the rest is loaded by the call that needs it: who verifies needs no method, and who releases a table no stream
if TYPE_CHECKING:
    from shoal.measures.attack import Attack
    from shoal.measures.z_plan import Plan
    from shoal.release.checked import Checked
    from shoal.release.compare import Comparison
    from shoal.release.tuned import Tuning
    from shoal.report.measured import Measured
    from shoal.report.series_report import SeriesReport
    from shoal.series.release import SeriesRelease
    from shoal.tables.base import Progress, TableMethod
    from shoal.verifier import Verdict

Quasi = str | Sequence[str] | Mapping[str, Hierarchy | str | Mapping[str, Any] | None]


class Asked(TypedDict, total=False):
    """What may be asked of a release of a table; see :func:`anonymize`.

    >>> asked: Asked = {"quasi": ["age"], "k": 2, "method": "mondrian"}
    >>> anonymize(pl.DataFrame({"age": [20, 22, 50, 52]}), **asked).report.verified
    True
    """

    policy: str | Path | Policy
    view: str
    quasi: Quasi
    sensitive: str | Sequence[str]
    plain: str | Sequence[str]
    subject: str | None
    schema: Schema | None
    weights: Mapping[str, float] | None
    losses: Mapping[str, str] | None
    at_most: Mapping[str, int] | None
    k: int | None
    l: float | None
    t: float | None
    promises: Sequence[Promise]
    method: TableMethod | str | Mapping[str, Any] | None
    effort: str | int | None
    seed: int | None
    cells: Literal["text", "struct", "bounds"]
    title: str
    keep_order: bool
    waive: str | Sequence[str]
    previous: Any
    save_model: str | Path
    model: str | Path
    append: str | Path
    keys: KeyRing | None
    progress: Progress


def anonymize(data: Any, **asked: Unpack[Asked]) -> Release:
    """A verified release of a table, the same kind of frame that came in, in an order that tells nothing.

    ``quasi``: the columns an outsider may know; in a mapping, with hierarchies (a name, a file of a tree, a spec).
    ``sensitive``: columns an outsider must not learn. ``plain``: further ones to show. What you do not declare is left
    out. ``subject`` says whose row it is: people are counted, not rows. ``k`` people share each combination of quasi
    values; ``l`` and ``t`` speak about each sensitive column; ``promises`` takes any others. ``cells="bounds"``: two
    typed columns per number (``age_low``, ``age_high``), for models; ``"struct"``: typed cells. ``method``, ``effort``:
    how groups are found. ``weights``, ``losses``, ``at_most``: what a column's detail is worth, how that of numbers is
    measured, how high a level it may have. ``policy`` and ``view`` instead of columns: the policy says it all; ``k``,
    ``l``, ``t`` may only make it stronger. ``seed``: drawn in secret; with one the same call gives the same release.
    ``keep_order``: rows as they came; ``waive`` accepts a risk by name: the report says so. ``previous``: earlier
    releases of the same people (frames or files); the promises must also hold for who has them. ``save_model``: a file
    that later rows join the groups by, with ``model`` instead of everything else; ``append``: the state of a growing
    table. These files are written before the call returns: rows that were handed out count. ``positions`` of the
    release: which input row each row is, in memory only.

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
    from shoal.release.job import job_of

    progress: Callable[[float, str], None] | None = asked.pop("progress", None)
    job = job_of(Wishes(asked))
    if promising is not None and not job.promises:
        raise UsageError("this view promises nothing", where=promising, hint="shoal.view makes it")
    release = job.run(data) if progress is None else job.run(data, progress=progress)
    release.settle()  # whoever gets these rows has them: from here on they count
    return release


def verify(data: Any, *, people: Any = None, original: Any = None, **asked: Any) -> Verdict:
    """Judge released data against promises, by code that knows no method. True if every promise is kept.

    ``quasi``, ``sensitive``, ``k``, ``l``, ``t``, ``promises``, ``schema``: as for :func:`anonymize`; or a ``policy``
    and a ``view``. People are counted if the release shows a ``subject`` column or ``people`` (one entry per row) is
    handed in. A stream (``z``, ``window``) is judged beside its ``original`` events.

    >>> import polars as pl, shoal
    >>> bool(shoal.verify(pl.DataFrame({"age": ["[20, 29]", "[20, 29]", "31"]}), quasi=["age"], k=2))
    False
    """
    from shoal.release.judges import judge_of

    judge = judge_of(Wishes(asked))
    frame = from_any(data)[0]
    events = None if original is None else from_any(original)[0]
    return judge.judge(frame, people=None if people is None else pl.Series(people), original=events)


def measure(
    data: Any,
    *,
    quasi: str | Sequence[str],
    sensitive: str | Sequence[str] = (),
    subject: str | None = None,
    sampling_weight: str | None = None,
    special: int | None = None,
    register: Any = None,
) -> Measured:
    """The k, l and t a table reaches as it stands, and the risk of being found again in it.

    ``sampling_weight`` names a column that says how many people of the population each row stands for: then also the
    risk against a register of the population. ``special``: list the rows that sets of at most so many columns single
    out. ``register`` has a row per person of the population: how many of them each group may stand for.

    >>> import polars as pl, shoal
    >>> table = pl.DataFrame({"age": [30, 30, 41], "diag": ["flu", "cold", "flu"]})
    >>> found = shoal.measure(table, quasi=["age"], sensitive=["diag"])
    >>> found.k, found.sensitive["diag"].distinct, found.risk.unique
    (1, 1, 1)
    """
    from shoal.release.register import beside
    from shoal.report.measured import measured

    frame, _ = from_any(data)
    known = stated_names("quasi", quasi)
    about = column_names(Argument("sensitive", "sensitive"), sensitive)
    single = (("subject", subject), ("sampling_weight", sampling_weight))
    singles = {role: [name] for role, name in single if name}
    one_role_each({"quasi": known, "sensitive": about, **singles}, "measure")
    require(frame, [*known, *about, *[name for names in singles.values() for name in names]], "table")
    most = None if special is None else whole(Argument("special", "special"), special)
    people, weights = (None if name is None else frame[name] for name in (subject, sampling_weight))
    cover = None if register is None else beside(frame, known, from_any(register)[0])
    return measured(frame, known, about, people, weights=weights, special=most, beside=cover)


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
    from shoal.release.attacking import attacked

    shown, known = from_any(released)[0], from_any(register)[0]
    means = None if representatives is None else from_any(representatives)[0]
    return attacked(shown, known, stated_names("on", on), schema, means)


def compare(
    data: Any,
    *,
    methods: str | Sequence[TableMethod | str] = (),
    k: int | Sequence[int] = (2, 5, 10, 50),
    seed: int = 0,
    learn: str | None = None,
    sampling_weight: str | None = None,
    **asked: Any,
) -> Comparison:
    """Methods and parameters side by side: what each loses against the risk it leaves.

    Columns and promises are named as for :func:`anonymize`; all ``methods`` are tried unless named. ``learn`` names one
    that a model is to predict (extra ``learn``), ``sampling_weight`` one with how many people each row stands for.

    >>> import shoal
    >>> people = shoal.hospital(60, seed=1)
    >>> shoal.compare(people, quasi=["age", "sex"], methods="datafly", k=[2, 5])
    <Comparison of 2 releases, 2 on the frontier>
    """
    from shoal.release.columns import schema_of
    from shoal.release.compare import compare as compared
    from shoal.release.promised import tightened
    from shoal.release.register import register_of

    wishes = Wishes(asked)
    chosen = schema_of(wishes)
    promises, _ = tightened((), chosen, wishes)
    register = register_of(wishes, promises, chosen)
    wishes.done("a comparison")
    if not chosen.quasi:
        raise UsageError("no quasi column is declared", where="quasi", hint="name what an outsider may know")
    ks = [whole(Argument("k", "k"), each) for each in ([k] if isinstance(k, int) else k)]
    named = [methods] if isinstance(methods, str) else list(methods)
    more: dict[str, Any] = {"seed": seed, "learn": learn, "register": register, "weight": sampling_weight}
    return compared(from_any(data)[0], chosen, methods=named, ks=ks, promises=promises, **more)


def tune(
    data: Any,
    *,
    max_loss: float | None = None,
    max_risk: float | None = None,
    max_delay: int | None = None,
    methods: str | Sequence[str] = (),
    rows: int = 10_000,
    **asked: Any,
) -> Tuning:
    """Propose parameters for a goal: each combination is released, verified and measured.

    ``k``, ``z``, ``window`` and ``delay`` may be lists of values to try; without them the ones asked for (or a
    policy's) and stronger ones are tried, and all ``methods`` that fit. All other arguments are those of
    :func:`anonymize` and :func:`stream`. ``max_loss``, ``max_risk`` (the mean chance of being found again) and
    ``max_delay`` (in events) bound what is proposed: ``best`` of the result, whose ``settings`` are arguments for
    the release. At most ``rows`` rows are used.

    >>> import shoal
    >>> people = shoal.hospital(60, seed=1)
    >>> found = shoal.tune(people, quasi=["age", "sex"], methods="mondrian", k=[2, 5], max_risk=0.2, seed=1)
    >>> found.best.settings
    {'k': 5}
    >>> shoal.anonymize(people, quasi=["age", "sex"], method="mondrian", seed=1, **found.best.settings).report.verified
    True
    """
    from shoal.release.tune import Varied
    from shoal.release.tune import tune as tuned
    from shoal.release.tuned import Goal

    listed = {name: several(asked.pop(name, ())) for name in ("k", "z", "window", "delay")}
    counted = {n: [whole(Argument(n, n), v) for v in values] for n, values in listed.items() if n != "window"}
    shares = {
        n: None if v is None else share(Argument(n, n), v) for n, v in (("max_loss", max_loss), ("max_risk", max_risk))
    }
    longest = None if max_delay is None else whole(Argument("max_delay", "max_delay"), max_delay)
    goal = Goal(shares["max_loss"], shares["max_risk"], longest)
    varied = Varied(methods=several(methods), window=listed["window"], **counted)
    return tuned(data, asked, varied, goal, rows=whole(Argument("rows", "rows"), rows))


def check(policy: str | Path | Policy, data: Any = None, *, together: int = 2, keys: KeyRing | None = None) -> Checked:
    """Is a policy complete and safe? With a sample of the data: a dry run of every view, and what roles learn together.

    >>> import polars as pl, shoal
    >>> from shoal.policy.load import parse
    >>> policy = parse("columns: {name: identifier, diag: sensitive}\\nviews: {ward: {show: [diag]}}")
    >>> shoal.check(policy, pl.DataFrame({"name": ["F. Ott"], "diag": ["E10"]}))
    <Checked: 1 views, 0 failed, 0 sets of roles compared>
    """
    from shoal.policy.load import load
    from shoal.release.arguments import policy as checked_policy
    from shoal.release.checked import checked

    found = policy if isinstance(policy, Policy) else load(checked_policy(Argument("policy", "policy"), policy))
    frame = None if data is None else from_any(data)[0]
    return checked(found, frame, keys=keys, together=whole(Argument("together", "together"), together))


def stream(events: Any, **asked: Any) -> Release:
    """A table of events released as a stream, in the order of its rows; see also :func:`shoal.z_anonymity` for a
    stream that is fed event by event.

    A ``policy`` and a ``view``, or ``z`` and ``window``, and which columns are ``time``, ``subject`` and ``value`` (so
    called if not given), with the ``unit`` of time, its ``hierarchy``, how ``late`` events may come. The report says
    how many were withheld and why, and what looks wrong in the events.

    >>> import polars as pl, shoal
    >>> visits = pl.DataFrame({"time": [0, 1, 2], "subject": ["a", "b", "c"], "value": ["x", "x", "y"]})
    >>> shoal.stream(visits, z=2, window="1h").data["value"].to_list()
    ['x']
    """
    from shoal.release.job import job_of
    from shoal.release.stream import StreamJob

    job = job_of(Wishes(asked))
    if not isinstance(job, StreamJob):
        raise UsageError("this is no stream", where="stream", hint="give z and window, or a view with a stream method")
    return job.run(events)


def plan(
    *,
    z: int = 20,
    k: int = 2,
    goal: float | None = None,
    method: Literal["exact", "paper2020"] = "exact",
    samples: int = 20_000,
    **people: Any,
) -> Plan:
    """What z buys: the probability that a person shares everything released of them with at least k - 1 others.

    ``people`` are the parameters of :class:`shoal.measures.zk_model.Model`: ``users``, ``attributes``, ``rate``,
    ``exponent``, ``windows``, ``exposed`` (the measured probability of every value), ``seed``. With a ``goal``, also
    the smallest z that reaches it.

    >>> import shoal
    >>> shoal.plan(z=20, k=2, method="paper2020")
    <Plan: z = 20 makes 86.9% of the people 2-anonymous>
    """
    from shoal.measures.z_plan import planned
    from shoal.measures.zk_model import Model

    known = [f.name for f in fields(Model) if f.init]
    wrong = next((name for name in people if name not in known), None)
    if wrong is not None:
        raise UsageError(f"there is no option {wrong}", where="plan", hint=f"one of: {', '.join(known)}")
    counts = {name: whole(Argument(name, name), value) for name, value in (("z", z), ("k", k), ("samples", samples))}
    return planned(Model(**people), counts["z"], counts["k"], goal=goal, method=method, samples=counts["samples"])


def intersection(before: Any, after: Any, quasi: Sequence[str], subject: str) -> dict[str, float]:
    """What two releases of the same people reveal together; both show the ``subject`` (a pseudonym will do).

    >>> import polars as pl
    >>> before = pl.DataFrame({"who": [1, 2], "age": ["[20, 29]"] * 2})
    >>> intersection(before, before.with_columns(age=pl.Series(["a", "b"])), ["age"], "who")["unique"]
    2
    """
    from shoal.verifier import intersection as intersect

    first, second = from_any(before)[0], from_any(after)[0]
    for frame, where in ((first, "previous"), (second, "release")):
        require(frame, [*quasi, subject], where)
    return intersect(first, second, quasi, [first[subject], second[subject]])

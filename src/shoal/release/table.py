"""The face: make a release (method, then verify, then report), verify one, measure one, attack one."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import polars as pl

from shoal import __version__
from shoal.connect.files import read, read_released
from shoal.connect.types import Tell, quiet
from shoal.core.errors import PromiseError, UsageError
from shoal.core.frames import from_any, require
from shoal.core.groups import Finding
from shoal.core.hierarchy import HIERARCHIES, Hierarchy
from shoal.core.hierarchy.tree import Tree
from shoal.core.keys import KeyRing
from shoal.core.release import Release, read_alike, recode
from shoal.core.schema import Schema
from shoal.core.table import Table, by_value, code, hierarchy_for
from shoal.measures.attack import Attack, join, members
from shoal.measures.loss import loss
from shoal.measures.utility import utility
from shoal.policy.document import Policy, View
from shoal.policy.load import load
from shoal.promises import Promise
from shoal.promises.k_anonymity import KAnonymity
from shoal.promises.l_diversity import LDiversity
from shoal.promises.rescan import rescan
from shoal.promises.t_closeness import TCloseness
from shoal.promises.z_anonymity import ZAnonymity
from shoal.report.columns import masked as with_masks
from shoal.report.columns import published
from shoal.report.measured import Measured, measured, table_risk
from shoal.report.model import Report
from shoal.tables import TABLE_METHODS, TableMethod
from shoal.tables.base import Progress, silent
from shoal.tables.model import Model
from shoal.verifier import Verdict
from shoal.verifier import intersection as intersect
from shoal.verifier import verify as verify_frame
from shoal.views.table import table_view

DEFAULT_METHOD = "local"

Quasi = Sequence[str] | Mapping[str, Hierarchy | str | Mapping[str, Any] | None]


def anonymize(
    data: Any,
    *,
    quasi: Quasi = (),
    sensitive: Sequence[str] = (),
    plain: Sequence[str] = (),
    subject: str | None = None,
    schema: Schema | None = None,
    k: int | None = None,
    l: float | None = None,
    t: float | None = None,
    promises: Sequence[Promise] = (),
    method: TableMethod | str | None = None,
    weights: Mapping[str, float] | None = None,
    effort: str | int | None = None,
    seed: int = 0,
    cells: str = "text",
    title: str = "release",
    progress: Progress = silent,
) -> Release:
    """A verified release of a table: rows in their order, the same kind of frame that came in.

    ``quasi`` are the columns an outsider may know, with hierarchies if you give a mapping (a name, a file of a
    tree, a spec). ``k`` people share each combination of them; ``l`` and ``t`` speak about each ``sensitive`` column.
    ``subject`` says whose row it is: people are counted, not rows. Columns you do not declare are left out.
    Raises :class:`PromiseError` if the promises cannot be reached; nothing unverified is ever returned.

    >>> import polars as pl, shoal
    >>> patients = pl.DataFrame({"age": [21, 25, 58, 53], "zip": ["10115", "10117", "20095", "20097"],
    ...                          "diag": ["flu", "cold", "flu", "asthma"]})
    >>> shoal.anonymize(patients, quasi={"age": "range", "zip": {"use": "prefix", "length": 5}},
    ...                 sensitive=["diag"], k=2, l=2).data.rows()[:2]
    [('[21, 25]', '1011*', 'flu'), ('[21, 25]', '1011*', 'cold')]
    """
    start = time.perf_counter()
    frame, back = from_any(data)
    schema = schema or build_schema(quasi, sensitive=sensitive, plain=plain, subject=subject, weights=weights)
    asked = [*promises, *short_promises(schema, k=k, l=l, t=t)]
    if not asked:
        raise UsageError("no promise was asked for", where="anonymize", hint="give k, for example k=5")
    if not schema.quasi:
        raise UsageError("no quasi column is declared", where="anonymize", hint="name what an outsider may know")
    if cells not in ("text", "struct"):
        raise UsageError(f"expected text or struct, found {cells!r}", where="cells")
    chosen = choose_method(method, effort)
    table = code(frame, schema)
    progress(0.1, "grouping")
    grouping = chosen.group(table, asked, seed=seed, progress=progress)
    labels, boxes = read_alike(table, grouping.labels, grouping.floor)
    progress(0.9, "verifying")
    released, groups = recode(frame, schema, table, labels, boxes, typed=cells == "struct")
    verdict = _verify_release(frame, schema, table, groups, released, asked)
    withheld = dict(table.withheld)
    if (labels < 0).any():
        withheld["suppressed by the method"] = int((labels < 0).sum())
    left_out = [c for c in frame.columns if c not in schema.columns]
    sizes = np.bincount(groups[groups >= 0])
    report = Report(
        title=title,
        method={"use": chosen.use, **msgspec.structs.asdict(chosen)},
        seed=seed,
        rows=frame.height,
        released=released.height,
        withheld=withheld,
        left_out=left_out,
        findings=list(verdict.findings),
        verified=verdict.kept,
        loss=loss(table, labels, boxes, k=_k(asked), rows=frame.height),
        risk_before=table_risk(frame, schema.quasi, _subjects(frame, schema.subject)),
        risk_after=table_risk(released, schema.quasi, _subjects(frame, schema.subject, groups)),
        utility=utility(table, labels, boxes).told(),
        size_counts=[(int(s), int(n)) for s, n in zip(*np.unique(sizes[sizes > 0], return_counts=True), strict=True)],
        seconds=time.perf_counter() - start,
        notes=_notes(schema),
        version=__version__,
    )
    report = msgspec.structs.replace(report, columns=published(frame, released, schema, report.loss))
    model = Model(schema, table, labels, boxes, asked, _subjects(frame, schema.subject))
    kept = np.flatnonzero(groups >= 0)
    untouched = [c for c in released.columns if c not in schema.quasi]
    return Release(
        back(released, kept, untouched), groups, withheld, schema, left_out, report, model, list(report.notes)
    )


def verify(
    data: Any,
    *,
    quasi: Sequence[str],
    sensitive: Sequence[str] = (),
    subject: str | None = None,
    people: Any = None,
    k: int | None = None,
    l: float | None = None,
    t: float | None = None,
    promises: Sequence[Promise] = (),
    schema: Schema | None = None,
) -> Verdict:
    """Judge released data against promises, by code that knows no method.

    People are counted if the release shows a ``subject`` column or ``people`` (one entry per row) is handed in.
    """
    frame, _ = from_any(data)
    quasi = [quasi] if isinstance(quasi, str) else list(quasi)
    schema = schema or build_schema(quasi, sensitive=sensitive)
    asked = [*promises, *short_promises(schema, k=k, l=l, t=t)]
    if not asked:
        raise UsageError("no promise to judge", where="verify", hint="give k, for example k=5")
    require(frame, [subject] if subject else [], "release")
    whose = pl.Series(people) if people is not None else _subjects(frame, subject)
    levels = {}
    for name in schema.sensitive:
        hierarchy = schema[name].hierarchy
        if hierarchy is not None and name in frame.columns:
            values = frame[name].fill_nan(None) if frame[name].dtype.is_float() else frame[name]
            levels[name] = by_value(hierarchy, values.unique().sort(nulls_last=True), f"column {name!r}")
    return verify_frame(frame, quasi, asked, people=whose, levels=levels)


def measure(data: Any, *, quasi: Sequence[str], sensitive: Sequence[str] = (), subject: str | None = None) -> Measured:
    """The k, l and t a table reaches as it stands, and the risk of being found again in it.

    >>> import polars as pl, shoal
    >>> table = pl.DataFrame({"age": [30, 30, 41], "diag": ["flu", "cold", "flu"]})
    >>> found = shoal.measure(table, quasi=["age"], sensitive=["diag"])
    >>> found.k, found.sensitive["diag"].distinct, found.risk.unique
    (1, 1, 1)
    """
    frame, _ = from_any(data)
    quasi = [quasi] if isinstance(quasi, str) else list(quasi)
    sensitive = [sensitive] if isinstance(sensitive, str) else list(sensitive)
    require(frame, [*quasi, *sensitive, *([subject] if subject else [])], "table")
    return measured(frame, quasi, sensitive, _subjects(frame, subject))


def _subjects(
    frame: pl.DataFrame, subject: str | None, groups: np.ndarray[Any, np.dtype[np.int32]] | None = None
) -> pl.Series | None:
    """Whose rows these are; of the released ones, if ``groups`` tells which."""
    if subject is None:
        return None
    return frame[subject] if groups is None else frame[subject].gather(np.flatnonzero(groups >= 0))


def build_schema(
    quasi: Quasi,
    *,
    sensitive: Sequence[str] = (),
    plain: Sequence[str] = (),
    subject: str | None = None,
    weights: Mapping[str, float] | None = None,
) -> Schema:
    """A schema from the short forms of the face."""
    named = quasi if isinstance(quasi, Mapping) else dict.fromkeys([quasi] if isinstance(quasi, str) else quasi)
    hierarchies = {name: as_hierarchy(value, f"column {name!r}") for name, value in named.items()}
    return Schema.build(
        quasi=hierarchies, sensitive=list(sensitive), plain=list(plain), subject=subject, weights=weights
    )


def as_hierarchy(value: Hierarchy | str | Mapping[str, Any] | None, where: str) -> Hierarchy | None:
    """A hierarchy from a spec, a name, a mapping, or the path of a tree's file."""
    if value is None or isinstance(value, Hierarchy):
        return value
    known = isinstance(value, str) and value in HIERARCHIES.names()
    if isinstance(value, str) and not known and (value.endswith(".csv") or Path(value).is_file()):
        return Tree(file=value)
    return HIERARCHIES.decode(value, where)


def short_promises(
    schema: Schema,
    *,
    k: int | None = None,
    l: float | None = None,
    t: float | None = None,
) -> list[Promise]:
    """The promises behind ``k=5, l=2, t=0.2``: l and t speak about every sensitive column."""
    out: list[Promise] = [] if k is None else [KAnonymity(k)]
    if (l is not None or t is not None) and not schema.sensitive:
        raise UsageError("l and t speak about sensitive columns, and none is declared", where="promises")
    for column in schema.sensitive:
        if l is not None:
            out.append(LDiversity(l, column))
        if t is not None:
            out.append(TCloseness(t, column))
    return out


def choose_method(method: TableMethod | str | None, effort: str | int | None = None) -> TableMethod:
    """The method, by name or as it is, with its ``effort`` set where it has one."""
    chosen = TABLE_METHODS.decode(method or DEFAULT_METHOD, "method")
    if effort is None:
        return chosen
    if not hasattr(chosen, "effort"):
        raise UsageError(f"{chosen.use} has no effort to set", where="method")
    return msgspec.structs.replace(chosen, effort=effort)


def _verify_release(
    frame: pl.DataFrame,
    schema: Schema,
    table: Table,
    groups: np.ndarray[Any, np.dtype[np.int32]],
    released: pl.DataFrame,
    asked: Sequence[Promise],
) -> Verdict:
    people = _subjects(frame, schema.subject, groups)
    levels = {name: s.levels for name, s in table.sensitive.items() if s.levels is not None}
    verdict = verify_frame(released, schema.quasi, asked, people=people, levels=levels, every_row=True)
    if not verdict.kept:
        broken = next(f for f in verdict.findings if not f.kept)
        raise PromiseError(
            f"the release was not made: {broken}",
            where="verify",
            hint="this is a defect of the method: please report the method, its parameters and the promises",
        )
    return verdict


def _k(promises: Sequence[Promise]) -> int:
    return max((p.k for p in promises if isinstance(p, KAnonymity)), default=1)


def _notes(schema: Schema) -> list[str]:
    notes = []
    for name, column in schema.columns.items():
        if isinstance(column.hierarchy, Tree):
            notes += [f"column {name!r}, {doubt}" for doubt in column.hierarchy.doubts()]
    return notes


def intersection(before: Any, after: Any, quasi: Sequence[str], subject: str) -> dict[str, float]:
    """What two releases of the same people reveal together; both show the ``subject`` (a pseudonym will do)."""
    first, second = from_any(before)[0], from_any(after)[0]
    return intersect(first, second, quasi, [first[subject], second[subject]])


def attack(released: Any, register: Any, on: Sequence[str], *, schema: Schema | None = None) -> Attack:
    """Join a release with a register on columns both have; with a ``schema`` the attacker knows its hierarchies."""
    shown, known = from_any(released)[0], from_any(register)[0]
    for frame, where in ((shown, "release"), (known, "register")):
        require(frame, on, where)
    nodes = {}
    if schema is not None:
        for name in on:
            if name in schema.columns:
                hierarchy = hierarchy_for(known[name], schema[name])
                nodes[name] = members(hierarchy.compile(known[name].unique())[0])
    return join(shown, known, on, nodes)


def anonymize_view(
    data: str,
    policy: str,
    view: str | None = None,
    *,
    method: TableMethod | str | None = None,
    effort: str | int | None = None,
    seed: int = 0,
    cells: str = "text",
    separator: str | None = None,
    types: Mapping[str, str] | None = None,
    tell: Tell = quiet,
    keys: KeyRing | None = None,
    progress: Progress = silent,
) -> Release:
    """Release a file as a view of a policy says: its masks first, then its method."""
    loaded = load(policy)
    chosen = loaded.view(view)
    about = {**loaded.types(), **(types or {})}
    declared = loaded.schema.columns  # of others nothing is told: without a header line their names are values
    known: Tell = lambda column, words: tell(column, words) if column in declared else None  # noqa: E731
    frame = read(data, separator=separator, types=about, exact=loaded.exact(chosen), tell=known)
    masked = table_view(loaded, chosen.name, frame, keys)
    using = method or chosen.method
    if using is not None and not isinstance(using, str | TableMethod):
        raise UsageError(f"{using.use} is not a method for tables", where=policy, hint="give --method")
    release = anonymize(
        masked.frame,
        schema=masked.schema,
        promises=chosen.promises,
        method=using,
        effort=effort,
        seed=seed,
        cells=cells,
        title=loaded.dataset,
        progress=progress,
    )
    masks = {name: ", ".join(m.use for m in many) for name, many in chosen.masks.items()}
    report = msgspec.structs.replace(release.report, columns=with_masks(release.report.columns, masks))
    return dataclasses.replace(release, data=masked.finish(release.data), report=report)


def verify_view(
    released: str, policy: str, view: str | None = None, *, original: str | None = None, separator: str | None = None
) -> Verdict:
    """Judge a released file against what a view of a policy promises; z-anonymity needs the ``original`` events.

    A column the role does not see breaks the release, too, whatever its groups.
    """
    loaded = load(policy)
    chosen = loaded.view(view)
    quasi = [n for n in loaded.schema.quasi if chosen.shows(n)]
    frame = read_released(released, quasi, separator=separator)
    if original is not None and any(isinstance(p, ZAnonymity) for p in chosen.promises):
        events = read(original, separator=separator, types=loaded.types())
        found = verify_stream(frame, events, schema=loaded.schema, quasi=quasi, promises=chosen.promises)
    else:
        subject = loaded.schema.subject
        shown = subject if subject is not None and chosen.shows(subject) and subject in frame.columns else None
        found = verify(frame, quasi=quasi, promises=chosen.promises, subject=shown, schema=loaded.schema)
    foreign = _foreign(frame, loaded, chosen)
    return msgspec.structs.replace(found, findings=(*found.findings, *foreign))


def _foreign(frame: pl.DataFrame, policy: Policy, view: View) -> list[Finding]:
    """A finding if columns show something that the role must not see: hidden ones in clear, or undeclared ones."""
    seen = {step.split("[")[0] for n in policy.schema.columns if view.shows(n) for step in (n, n.split(".")[0])}
    shown = [c for c in frame.columns if c not in seen and not _is_hidden(frame[c])]
    if not shown:
        return []
    note = f"{', '.join(shown[:5])}{', …' if len(shown) > 5 else ''}"
    return [Finding(f"only what {view.name} sees", False, 0, len(shown), frame.width, len(shown), "columns", note)]


def _is_hidden(cells: pl.Series) -> bool:
    return not cells.len() or cells.is_null().all() or (cells.dtype == pl.String and set(cells.unique()) <= {"*", None})


def verify_stream(
    released: pl.DataFrame, original: pl.DataFrame, *, schema: Schema, quasi: Sequence[str], promises: Sequence[Promise]
) -> Verdict:
    """Judge a released stream beside its original events: z by scanning them again, the rest from the release alone."""
    time = next(iter(schema.of("time")), None)
    if time is None:
        raise UsageError("z-anonymity is judged by event time, and no time column is declared", where="verify")
    hierarchies = {name: schema[name].hierarchy for name in quasi}
    about: dict[str, Any] = {"time": time, "subject": schema.subject, "quasi": hierarchies, "unit": schema[time].unit}
    z = [p for p in promises if isinstance(p, ZAnonymity)]
    found = [finding for promise in z for finding in rescan(original, released, promise, **about)]
    if rest := [p for p in promises if p not in z]:
        found += verify(released, quasi=quasi, promises=rest, schema=schema).findings
    return Verdict(tuple(found), released.height, 0, "people" if schema.subject else "rows")

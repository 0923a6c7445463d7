"""``shoal anonymize``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from shoal.cli.curves import asked_of_curves, curves_of, release_curves, release_curves_view
from shoal.cli.terminal import (
    File,
    Json,
    Names,
    Output,
    Separator,
    Types,
    answer,
    declared_types,
    names,
    pairs,
    progress,
    say,
    telling,
)
from shoal.core.errors import UsageError

if TYPE_CHECKING:
    import polars as pl

    from shoal.core.schema import Schema
    from shoal.promises.base import Promise
    from shoal.tables.base import TableMethod


def anonymize(
    data: File,
    *,
    output: Output = None,
    policy: str | None = None,
    view: str | None = None,
    quasi: Names = None,
    hierarchy: Names = None,
    sensitive: Names = None,
    plain: Names = None,
    subject: str | None = None,
    weight: Names = None,
    k: int | None = None,
    l: float | None = None,
    t: float | None = None,
    series: Annotated[bool, Parameter(negative=())] = False,
    curve: Annotated[str | None, Parameter(name="--id")] = None,
    p: int | None = None,
    time: str | None = None,
    value: str | None = None,
    every: str | None = None,
    missing: str | None = None,
    perturb: Annotated[bool, Parameter(negative=())] = False,
    append: str | None = None,
    publish: Literal["whole", "new"] = "whole",
    method: str | None = None,
    effort: str | None = None,
    set_: Annotated[Names, Parameter(name="--set")] = None,
    report: str | None = None,
    cells: str = "text",
    type_: Types = None,
    separator: Separator = None,
    seed: int = 0,
    dry_run: Annotated[bool, Parameter(negative=())] = False,
    json: Json = False,
) -> None:
    """Release a table: what is promised is verified before a byte is written.

    Examples: `shoal anonymize patients.csv --quasi zip,sex,age --sensitive diag --k 5 --l 2 -o released.csv`;
    `shoal anonymize patients.csv --policy policy.yaml --view research -o released.parquet --report report.html`.

    Parameters
    ----------
    data
        CSV (also .gz), Parquet or NDJSON; `-` is standard input.
    output
        Where the release goes; by its name CSV, Parquet or NDJSON. `-` (the default) is standard output.
    policy
        A policy file; its view says what is shown and promised.
    view
        Which view of the policy; needed if several promise something.
    quasi
        Columns an outsider may know.
    hierarchy
        How a quasi column becomes less precise: `zip=prefix:5`, `country=countries.csv`, `age=range:0:120`.
    sensitive
        Columns an outsider must not learn; shown unchanged.
    plain
        Further columns to show unchanged. A column that is not declared is left out.
    subject
        The column that says whose row it is: people are counted, not rows.
    weight
        What a column's detail is worth: `age=2`. Of curves, in the certainty penalty: `W0=2`.
    k
        Every released combination is shared by at least k people.
    l
        Every group has at least l different values of each sensitive column.
    t
        Every group's sensitive values are spread like the whole table's, within t.
    series
        The table holds curves: a row each, a column per instant (or long, with --time and --value).
    curve
        Of curves: the column that names them; never released.
    p
        Of curves: at least p of the k under one envelope share their pattern.
    time
        Of a long table of curves: the column of the instants.
    value
        Of a long table of curves: the column of the values.
    every
        Of a long table of curves: make instants this far apart, for example 1h (or 5, of numbers); values between two
        are averaged, or as `--set aggregate=sum` says.
    missing
        Of curves: what to do where an instant is missing: error (the default), drop, previous, interpolate, zero.
    perturb
        Of curves with l: change sensitive numbers instead of merging or suppressing. It falsifies data; how many are
        altered stands in the report. `--set step=…` and `--set most=…` bound the change.
    append
        Continuous mode: a state file. Each call takes one more chunk; what was published only becomes more general.
    publish
        In continuous mode: the whole table so far, or only the new rows.
    method
        How groups are found, for example `mondrian`; of curves `kapra`, `naive` or `banded`.
    effort
        How long a method may search: low, normal, high, or a number of steps.
    set_
        Another parameter of the method: `suppress=0.05`; for `local` also `interrupted=best`, so that Ctrl-C releases
        the best groups found so far. Of curves: `band=128`, and of their patterns `word=6`, `levels=5`.
    report
        Also write a report: .html with pictures, .json or .txt.
    cells
        `text`, or `struct` for typed cells in Parquet.
    type_
        What a column holds, if it does not tell by itself: `birth=date:%d.%m.%Y`, `code=str`, `price=float:,` (a
        decimal comma), `at=datetime:ms` (since 1970). What is not of the type is counted and located, and nothing is
        released.
    separator
        The CSV separator, if it is not a comma.
    seed
        The same seed gives the same release.
    dry_run
        Do everything, write nothing.
    json
        Print the report as JSON instead of text (on stderr, or on stdout if the data go elsewhere).
    """
    from shoal.connect import files
    from shoal.core.originals import keep_apart
    from shoal.release import table as api
    from shoal.report.model import ending

    keep_apart([output, report, append], [data, policy])
    ending(report)
    separator = "\t" if separator == "TAB" else separator
    if cells not in ("text", "struct"):
        raise UsageError(f"expected text or struct, found {cells!r}", where="--cells")
    types = declared_types(type_)
    named = [*names(quasi), *names(sensitive), *names(plain), *([subject] if subject else [])]

    def read() -> pl.DataFrame:
        tell = telling(named)
        return files.read(data, separator=separator, types=types, exact=names(plain), tell=tell)

    title = "standard input" if data == "-" else Path(data).name
    how = method if series or not set_ else _with(method, set_, policy)
    to: dict[str, Any] = {"output": output or "-", "report": report, "cells": cells, "dry_run": dry_run, "json": json}
    if policy is not None and (about := curves_of(policy, view)) is not None:
        release_curves_view(data, about, separator, seed, **to)
        return
    if series:
        if k is None or p is None:
            raise UsageError("curves need k and p", where="--series", hint="for example --k 16 --p 6")
        asked = {"id": curve, "sensitive": names(sensitive), "time": time, "value": value, "k": k, "p": p, "l": l}
        asked |= asked_of_curves(method, set_ or [], every, missing, perturb=perturb)
        weights = {n: _number(v, "--weight") for n, v in pairs(weight, "--weight").items()}
        release_curves(data, title, separator, weights, {**asked, "seed": seed}, **to)
        return
    if perturb or every is not None or missing is not None:
        raise UsageError("--every, --missing and --perturb are about curves", hint="give --series, too")
    if append is not None:
        if policy is not None or not quasi:
            raise UsageError("continuous mode takes its columns from --quasi", where="--append")
        columns = dict.fromkeys(names(quasi)) | hierarchies(hierarchy, names(quasi))
        schema = api.build_schema(columns, sensitive=names(sensitive), plain=names(plain), subject=subject)
        promises = api.short_promises(schema, k=k, l=l, t=t)
        chosen = api.choose_method(how, _effort(effort)) if how else None
        frame = read()
        _chunk(frame, Path(append), schema, promises, chosen, publish, output or "-", separator or ",", seed, dry_run)
        return
    with progress("anonymizing") as tell:
        if policy is not None:
            release = api.anonymize_view(
                data,
                policy,
                view,
                method=how,
                effort=_effort(effort),
                seed=seed,
                cells=cells,
                separator=separator,
                types=types,
                tell=lambda column, words: say(f"column {column!r}: {words}"),
                progress=tell,
            )
        else:
            if not quasi:
                raise UsageError(
                    "no quasi columns",
                    where="--quasi",
                    hint="name the columns an outsider may know, or give a --policy",
                )
            frame = read()
            release = api.anonymize(
                frame,
                quasi=dict.fromkeys(names(quasi)) | hierarchies(hierarchy, names(quasi)),
                sensitive=names(sensitive),
                plain=names(plain),
                subject=subject,
                weights={n: _number(v, "--weight") for n, v in pairs(weight, "--weight").items()},
                k=k,
                l=l,
                t=t,
                method=how,
                effort=_effort(effort),
                seed=seed,
                cells=cells,
                title=title,
                progress=tell,
            )
    target = output or "-"
    text = release.report.json() if json else release.report.text()
    page = None if report is None else release.report.page(report)  # made before anything is written
    if not dry_run:
        if report is not None and page is not None:
            files.write_text(page, report)
        files.write(release.data, target, separator=separator or ",")
    (answer if json and (target != "-" or dry_run) else say)(text)
    if dry_run:
        say("dry run: nothing was written")
    elif report is not None:
        say(f"report: {report}")


def _chunk(
    frame: pl.DataFrame,
    state: Path,
    schema: Schema,
    promises: list[Promise],
    method: TableMethod | None,
    publish: Literal["whole", "new"],
    output: str,
    separator: str,
    seed: int,
    dry_run: bool,
) -> None:
    from shoal.connect import files
    from shoal.core.keys import KeyRing
    from shoal.release.chunks import Chunks

    if not promises:
        raise UsageError("no promise was asked for", where="--append", hint="give --k, for example --k 5")
    growing = Chunks(state, schema, promises, method, publish=publish, keys=KeyRing.load())
    increment, verdict = growing.push(frame, seed=seed)
    say(increment.word if verdict is None else f"{increment.word}\n{verdict}")
    if dry_run:
        return
    if increment.data is not None:
        files.write(increment.data, output, separator=separator)
    growing.settle()


def hierarchies(values: list[str] | None, quasi: list[str]) -> dict[str, object]:
    """``zip=prefix:5`` words as hierarchies."""
    out: dict[str, object] = {}
    for name, value in pairs(values, "--hierarchy").items():
        if name not in quasi:
            raise UsageError(f"column {name!r} is not in --quasi", where="--hierarchy")
        kind, _, number = value.partition(":")
        if kind == "prefix":
            out[name] = {"use": "prefix", "length": int(_number(number or "0", "--hierarchy"))}
        elif kind == "range" and number:
            low, _, high = number.partition(":")
            out[name] = {"use": "range", "min": _number(low, "--hierarchy"), "max": _number(high, "--hierarchy")}
        elif kind == "tree" and number:
            out[name] = {"use": "tree", "children": int(_number(number, "--hierarchy"))}
        else:
            out[name] = value
    return out


def _with(method: str | None, settings: list[str], policy: str | None) -> TableMethod:
    """A method with parameters from ``name=value`` words."""
    import yaml

    from shoal.release.table import DEFAULT_METHOD
    from shoal.tables import TABLE_METHODS

    if method is None and policy is not None:
        raise UsageError("say whose parameter it is", where="--set", hint="also give --method")
    given = {name: yaml.safe_load(value) for name, value in pairs(settings, "--set").items()}
    return TABLE_METHODS.decode({"use": method or DEFAULT_METHOD, **given}, "--set")


def _effort(value: str | None) -> str | int | None:
    return int(value) if value is not None and value.isdigit() else value


def _number(text: str, option: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise UsageError("expected a number", where=option) from None

"""``shoal measure``."""

from __future__ import annotations

from typing import Annotated, Literal

from cyclopts import Parameter

from shoal.cli.terminal import File, Json, Names, Separator, answer, as_json, names, say
from shoal.core.errors import UsageError


def measure(
    data: File,
    *,
    quasi: Names = None,
    sensitive: Names = None,
    subject: str | None = None,
    stream: Annotated[bool, Parameter(negative=())] = False,
    time: str = "time",
    value: str = "value",
    hierarchy: str | None = None,
    unit: Literal["s", "ms", "us", "ns"] = "s",
    window: str = "1h",
    out: Annotated[str | None, Parameter(alias="-o")] = None,
    separator: Separator = None,
    json: Json = False,
) -> None:
    """How risky a table is as it stands: the k, l and t it reaches, and who could be found again.

    With `--stream`, the profile of a stream of events instead: how events are spread over people and over values at
    every level, what only one person ever showed, when traffic is high, and how often each value is shown.

    Examples: `shoal measure patients.csv --quasi zip,sex,age --sensitive diag`;
    `shoal measure visits.ndjson --stream --subject client --value domain --hierarchy path --out profile`.

    Parameters
    ----------
    data
        A table, raw or released; or events.
    quasi
        Columns an outsider may know.
    sensitive
        Columns an outsider must not learn.
    subject
        The column that says whose row it is: people are counted, not rows.
    stream
        The data are events.
    time
        Of a stream: the time column.
    value
        Of a stream: the column that would be released.
    hierarchy
        Of a stream: how the value may be generalized, by name: path, suppress.
    unit
        Of a stream: the unit of time, if it is a number.
    window
        Of a stream: the window z would be counted in.
    out
        Of a stream: a folder for the profile as CSV and pictures. `exposed.csv` is what `shoal plan --exposed` takes.
    separator
        The CSV separator, if it is not a comma.
    json
        Figures as JSON.
    """
    from shoal.connect import files

    split = "\t" if separator == "TAB" else separator
    if stream:
        from pathlib import Path

        from shoal.core.hierarchy import HIERARCHIES
        from shoal.report import stream_profile

        chosen = HIERARCHIES.decode(hierarchy, where="--hierarchy") if hierarchy else None
        found = stream_profile.profile_of(
            files.read(data, separator=split),
            time=time,
            subject=subject or "subject",
            value=value,
            hierarchy=chosen,
            unit=unit,
            window=window,
        )
        answer(as_json(found) if json else stream_profile.text(found))
        if out is not None:
            say(f"written: {len(stream_profile.save(found, Path(out)))} files in {out}")
        return
    from shoal.release import table as api

    if not quasi:
        raise UsageError("no quasi columns", where="--quasi", hint="name the columns an outsider may know, or --stream")
    result = api.measure(
        files.read(data, separator=split), quasi=names(quasi), sensitive=names(sensitive), subject=subject
    )
    answer(as_json(result) if json else str(result))

"""``shoal measure``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from shoal.cli.options import Flag, Reading, only_with, read_table
from shoal.cli.terminal import File, Json, Names, answer, as_json, names, say
from shoal.cli.words import hierarchy_word
from shoal.core.errors import UsageError

if TYPE_CHECKING:
    import polars as pl


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class OfEvents:
    """The profile of a stream.

    Parameters
    ----------
    stream
        The data are events.
    time
        Of a stream: the time column; `time` if not given.
    value
        Of a stream: the column that would be released; `value` if not given.
    hierarchy
        Of a stream: how the value may be generalized: `path`, `prefix:5`, `tree.csv`.
    unit
        Of a stream: the unit of time, if it is a number: s (the default), ms, us, ns.
    window
        Of a stream: the window z would be counted in; 1h if not given.
    out
        Of a stream: a folder for the profile as a page, CSV and pictures. `exposed.csv` is what `shoal plan --exposed`
        takes.
    """

    stream: Flag = False
    time: str | None = None
    value: str | None = None
    hierarchy: str | None = None
    unit: Literal["s", "ms", "us", "ns"] | None = None
    window: str | None = None
    out: Annotated[str | None, Parameter(alias="-o")] = None


def measure(
    data: File,
    *,
    quasi: Names = None,
    sensitive: Names = None,
    subject: str | None = None,
    sampling_weight: str | None = None,
    special: int | None = None,
    register: str | None = None,
    events: OfEvents = OfEvents(),
    reading: Reading = Reading(),
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
    sampling_weight
        The column that says how many people of the population a row stands for: also the risk against a register of it.
    special
        Also list the rows that at most this many columns tell from all others: 3 is a good start.
    register
        A table with the quasi columns and a row per person of the population: how many each group may stand for.
    json
        Figures as JSON.
    """
    from shoal.api import measure as measured

    if events.stream:
        from shoal.core.originals import Folder, keep_apart
        from shoal.report.stream_profile import PROFILE

        table = {"quasi": quasi, "sensitive": sensitive, "sampling_weight": sampling_weight, "special": special}
        table["register"] = register
        only_with(False, "a table: leave out --stream", **table)
        named = [events.time or "time", subject or "subject", events.value or "value"]
        if events.out is not None:
            keep_apart([Folder(events.out, PROFILE)], [data])
        _profile(read_table(data, reading, named), subject, events, json)
        return
    about = {name: getattr(events, name) for name in ("time", "value", "hierarchy", "unit", "window", "out")}
    only_with(False, "--stream", **about)
    if not quasi:
        raise UsageError("no quasi columns", where="--quasi", hint="name the columns an outsider may know, or --stream")
    more = [name for name in (subject, sampling_weight) if name]
    frame = read_table(data, reading, [*names(quasi), *names(sensitive), *more])
    known = None if register is None else _register(register, reading, names(quasi))
    result = measured(
        frame,
        quasi=names(quasi),
        sensitive=names(sensitive),
        subject=subject,
        sampling_weight=sampling_weight,
        special=special,
        register=known,
    )
    answer(as_json(result) if json else str(result))


def _register(path: str, reading: Reading, quasi: list[str]) -> pl.DataFrame:
    from shoal.connect import files

    types = {name: kind for name, kind in reading.types.items() if name in quasi}
    return files.read(path, separator=reading.split, types=types)


def _profile(frame: pl.DataFrame, subject: str | None, events: OfEvents, json: bool) -> None:
    from pathlib import Path

    from shoal.connect.files import write_text
    from shoal.release.columns import as_hierarchy
    from shoal.report import stream_profile
    from shoal.report.stream_page import profile_page

    word = events.hierarchy
    found = stream_profile.profile_of(
        frame,
        time=events.time or "time",
        subject=subject or "subject",
        value=events.value or "value",
        hierarchy=None if word is None else as_hierarchy(hierarchy_word(word), "--hierarchy"),
        unit=events.unit or "s",
        window=events.window or "1h",
    )
    answer(as_json(found) if json else stream_profile.text(found))
    if events.out is not None:
        made = stream_profile.save(found, Path(events.out))
        write_text(profile_page(found), str(Path(events.out) / "page.html"))
        say(f"written: {len(made) + 1} files in {events.out}")

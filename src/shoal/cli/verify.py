"""``shoal verify``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from shoal.cli.curves import curves_of
from shoal.cli.terminal import File, Json, Names, Separator, answer, as_json, names, say
from shoal.core.errors import UsageError

if TYPE_CHECKING:
    import polars as pl

    from shoal.verifier import Verdict


def verify(
    released: File,
    *,
    quasi: Names = None,
    sensitive: Names = None,
    subject: str | None = None,
    k: int | None = None,
    l: float | None = None,
    t: float | None = None,
    p: int | None = None,
    z: int | None = None,
    window: str | None = None,
    hierarchy: Names = None,
    time: str = "time",
    unit: Literal["s", "ms", "us", "ns"] = "s",
    policy: str | None = None,
    view: str | None = None,
    previous: str | None = None,
    original: str | None = None,
    separator: Separator = None,
    json: Json = False,
) -> int:
    """Judge released data against promises, by code that knows no method. Exit code 1 if a promise is broken.

    Examples: `shoal verify released.csv --quasi zip,sex,age --sensitive diag --k 5 --l 2`;
    `shoal verify curves.csv --sensitive W51 --k 16 --p 6`;
    `shoal verify out.ndjson --original visits.ndjson --quasi domain --subject client --z 20 --window 1h`.

    Parameters
    ----------
    released
        The released file, as others would read it.
    quasi
        Columns an outsider may know.
    sensitive
        Columns that l and t speak about.
    subject
        A column of the release that says whose row it is (a pseudonym will do): people are counted, not rows.
    k
        At least this many people share each combination.
    l
        At least this many different sensitive values in each group.
    t
        Each group's sensitive values are spread like the whole release's, within t.
    p
        Of released curves: at least k share each envelope, and p of them each pattern; l then says that no sensitive
        value stands in more than 1/l of those. Without --quasi every other column is an instant.
    z
        Of a released stream: every event was released at a level that at least z people had shown. Needs --original.
    window
        Of a released stream: within which time before it, for example 1h.
    hierarchy
        Of a released stream: how its values were generalized: `domain=path`.
    time
        Of a released stream: the time column.
    unit
        Of a released stream: the unit of time: s, ms, us, ns.
    policy
        A policy instead: its view says what was promised.
    view
        Which view of the policy.
    previous
        An earlier release of the same people: what do both reveal together? Needs --subject in both.
    original
        The original events beside a released stream: z-anonymity cannot be judged without them.
    separator
        The CSV separator, if it is not a comma.
    json
        Findings as JSON.
    """
    from shoal.connect import files
    from shoal.release import table as api

    separator = "\t" if separator == "TAB" else separator
    if policy is not None and (about := curves_of(policy, view)) is not None:
        from shoal.release.curves import verify_series_view

        verdict = verify_series_view(released, *about, separator=separator)
    elif p is not None:
        from shoal.release.curves import verify_series

        if k is None:
            raise UsageError("curves need k and p", where="--p", hint="for example --k 16 --p 6")
        frame = files.read(released, separator=separator)
        instants = names(quasi) or None
        verdict = verify_series(frame, k=k, p=p, l=l, sensitive=names(sensitive), instants=instants)
    elif policy is not None:
        verdict = api.verify_view(released, policy, view, original=original, separator=separator)
    else:
        if not quasi:
            raise UsageError("no quasi columns", where="--quasi", hint="name them, or give a --policy")
        frame = files.read_released(released, names(quasi), separator=separator)
        if z is not None:
            verdict = _stream(frame, original, names(quasi), hierarchy, subject, time, unit, z, window, separator)
        else:
            promised: dict[str, Any] = {"k": k, "l": l, "t": t}
            verdict = api.verify(frame, quasi=names(quasi), sensitive=names(sensitive), subject=subject, **promised)
    together = None
    if previous is not None:
        if subject is None:
            raise UsageError("two releases are compared by their people", where="--previous", hint="give --subject")
        together = api.intersection(
            files.read(previous, separator=separator), files.read(released, separator=separator), names(quasi), subject
        )
    if json:
        answer(as_json({"kept": verdict.kept, "verdict": verdict, "together_with_previous": together}))
    else:
        answer(str(verdict))
        if together is not None:
            answer(
                f"together with the previous release: {together['people']:,} people are in both, the smallest "
                f"intersection holds {together['smallest']:,}, {together['unique']:,} are alone in theirs"
            )
    if not verdict.kept:
        say("the release breaks its promise")
    return 0 if verdict.kept else 1


def _stream(
    released: pl.DataFrame,
    original: str | None,
    quasi: list[str],
    hierarchy: list[str] | None,
    subject: str | None,
    time: str,
    unit: Literal["s", "ms", "us", "ns"],
    z: int,
    window: str | None,
    separator: str | None,
) -> Verdict:
    """A released stream beside its original events."""
    from shoal.cli.anonymize import hierarchies
    from shoal.connect import files
    from shoal.core.schema import Column, Schema
    from shoal.promises.z_anonymity import ZAnonymity
    from shoal.release import table as api

    if window is None or subject is None:
        raise UsageError("z-anonymity needs a window and a subject", where="--z", hint="give --window and --subject")
    promise = ZAnonymity(z, window)
    if original is None:  # says that it cannot be judged
        return api.verify(released, quasi=quasi, promises=[promise])
    given = api.build_schema(dict.fromkeys(quasi) | hierarchies(hierarchy, quasi), subject=subject)
    schema = Schema({**given.columns, time: Column("time", unit=unit)})
    events = files.read(original, separator=separator)
    return api.verify_stream(released, events, schema=schema, quasi=quasi, promises=[promise])

"""``shoal verify``."""

from __future__ import annotations

from shoal.cli.curves import curves_of
from shoal.cli.terminal import File, Json, Names, Separator, answer, as_json, names, say
from shoal.core.errors import UsageError


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
    policy: str | None = None,
    view: str | None = None,
    previous: str | None = None,
    original: str | None = None,
    separator: Separator = None,
    json: Json = False,
) -> int:
    """Judge released data against promises, by code that knows no method. Exit code 1 if a promise is broken.

    Examples: `shoal verify released.csv --quasi zip,sex,age --sensitive diag --k 5 --l 2`;
    `shoal verify curves.csv --sensitive W51 --k 16 --p 6`.

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
    from shoal import api
    from shoal.connect import files

    separator = "\t" if separator == "TAB" else separator
    if policy is not None and (about := curves_of(policy, view)) is not None:
        from shoal.curves import verify_series_view

        verdict = verify_series_view(released, *about, separator=separator)
    elif p is not None:
        from shoal.curves import verify_series

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
        frame = files.read(released, separator=separator)
        verdict = api.verify(frame, quasi=names(quasi), sensitive=names(sensitive), subject=subject, k=k, l=l, t=t)
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

"""``shoal measure``."""

from __future__ import annotations

from shoal.cli.terminal import File, Json, Names, Separator, answer, as_json, names
from shoal.core.errors import UsageError


def measure(
    data: File,
    *,
    quasi: Names = None,
    sensitive: Names = None,
    subject: str | None = None,
    separator: Separator = None,
    json: Json = False,
) -> None:
    """How risky a table is as it stands: the k, l and t it reaches, and who could be found again.

    Example: `shoal measure patients.csv --quasi zip,sex,age --sensitive diag`.

    Parameters
    ----------
    data
        A table, raw or released.
    quasi
        Columns an outsider may know.
    sensitive
        Columns an outsider must not learn.
    subject
        The column that says whose row it is: people are counted, not rows.
    separator
        The CSV separator, if it is not a comma.
    json
        Figures as JSON.
    """
    from shoal import api
    from shoal.connect import files

    if not quasi:
        raise UsageError("no quasi columns", where="--quasi", hint="name the columns an outsider may know")
    frame = files.read(data, separator="\t" if separator == "TAB" else separator)
    result = api.measure(frame, quasi=names(quasi), sensitive=names(sensitive), subject=subject)
    answer(as_json(result) if json else str(result))

"""Every message about the columns of a file. None lists them: without a header line they are a person's values."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from difflib import get_close_matches

from shoal.core.errors import InputError, ShoalError, UsageError

CARRIED = "\x00"  # names that begin so travel with a record and are never published
NEAR = 0.8  # as close as a slip of the pen: a value in a file without a header is hardly ever so near to a name


def require_columns(
    names: Iterable[str],
    found: Collection[str],
    where: str,
    *,
    error: type[ShoalError] = UsageError,
    hint: str = "does the file have a header line with the names?",
) -> None:
    """Every named column is there, or an error says which is not, without saying which are.

    >>> require_columns(["age", "diag"], ["age", "Meier"], "in.csv")
    Traceback (most recent call last):
        ...
    shoal.core.errors.UsageError: in.csv: there is no column 'diag' among 2
    <BLANKLINE>
    hint: does the file have a header line with the names?
    """
    known = set(found)
    for name in names:
        if name not in known:
            close = get_close_matches(name, known, 1, NEAR)
            said = f"did you mean {close[0]!r}?" if close else hint
            raise error(f"there is no column {name!r} among {len(known)}", where=where, hint=said)


def require_once(names: Sequence[str], where: str) -> None:
    """No two columns have the same name; the error says where they stand, not what they are called.

    >>> require_once(["age", "Meier", "Meier"], "in.csv")
    Traceback (most recent call last):
        ...
    shoal.core.errors.InputError: in.csv: columns 2 and 3 have the same name
    <BLANKLINE>
    hint: rename one of them; does the file have a header line with the names?
    """
    seen: dict[str, int] = {}
    for at, name in enumerate(names, 1):
        if name in seen:
            raise InputError(
                f"columns {seen[name]} and {at} have the same name",
                where=where,
                hint="rename one of them; does the file have a header line with the names?",
            )
        seen[name] = at

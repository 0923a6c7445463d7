"""Errors of drivers in our words: their messages quote cells, queries and passwords, ours never do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from shoal.core.errors import InputError, OutputError, ShoalError, UsageError

# by the first characters of SQLSTATE, the longest first
STATES = {
    "28": ("the user or the password was refused", "check user, password and pg_hba.conf"),
    "3D": ("there is no such database", "check its name"),
    "3F": ("there is no such schema", "check its name"),
    "42P01": ("there is no such table", "check its name; write schema.table if it is not on the search path"),
    "42501": ("the user has no right to do this", "reading needs SELECT, writing CREATE on the schema"),
    "53100": ("the database has no space left", "make room; nothing was written"),
    "53": ("the database is out of resources", "try again later"),
    "57": ("the database ended the connection", "is it shutting down?"),
    "40": ("the database gave up because others change the same rows", "try again"),
    "55P03": ("somebody else holds the table", "try again"),
    "08": ("the connection was lost", "is the database up?"),
}
# of a failed connection there is no state, and of files never: what the message is about
# (the first that fits counts: SQLite says "database is locked")
WORDS = {
    "locked": STATES["55P03"],
    "lock on file": STATES["55P03"],
    "disk is full": STATES["53100"],
    "no space left": STATES["53100"],
    "not a database": ("the file is no database of this kind", "check the address"),
    "not a valid duckdb": ("the file is no database of this kind", "check the address"),
    "malformed": ("the file is no database of this kind", "check the address"),
    "password authentication failed": STATES["28"],
    "no password supplied": STATES["28"],
    "fe_sendauth": STATES["28"],
    "role ": STATES["28"],
    "no pg_hba.conf entry": STATES["28"],
    "readonly": STATES["42501"],
    "read-only": STATES["42501"],
    'database "': STATES["3D"],
    "no such table": STATES["42P01"],
    "does not exist": STATES["42P01"],
    "refused": ("the database cannot be reached", "is it running, and is host and port right?"),
    "could not translate host": ("the database cannot be reached", "is the host's name right?"),
    "timeout": ("the database cannot be reached", "is it running, and is host and port right?"),
}


@contextmanager
def told(where: str, *, writing: bool = False) -> Iterator[None]:
    """Turn whatever a driver raises into an error that says what to do, and quotes nothing."""
    try:
        yield
    except ShoalError:
        raise
    except Exception as error:
        state = getattr(error, "sqlstate", None) or ""
        known = next((words for start, words in sorted(STATES.items(), reverse=True) if state.startswith(start)), None)
        if known is None:
            text = str(error).lower()
            known = next((words for word, words in WORDS.items() if word in text), None)
        kind = OutputError if writing else InputError
        if known is None:
            code = f", SQLSTATE {state}" if state else ""
            known = (f"the database said no ({type(error).__name__}{code})", "its own log says why")
        raise kind(known[0], where=where, hint=known[1]) from None


def not_installed(kind: str) -> UsageError:
    """A driver that is not there."""
    return UsageError(
        f"reading {kind} needs a driver that is not installed", where=kind, hint="pip install 'shoal[sql]'"
    )

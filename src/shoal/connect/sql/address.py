"""Where a table of a database is, and how to speak of it without its password."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

from shoal.core.errors import UsageError
from shoal.core.passwords import is_secret, without_passwords

SCHEMES = {"postgresql": "postgresql", "postgres": "postgresql", "sqlite": "sqlite", "duckdb": "duckdb"}
FROM_ENVIRONMENT = "env:"
EXAMPLE = "for example postgresql://user@host/database#table, sqlite:clinic.db#table or env:VARIABLE#table"


def is_address(path: str) -> bool:
    """Whether this names a table of a database rather than a file.

    >>> is_address("postgresql://host/clinic#patients"), is_address("patients.csv"), is_address("env:CLINIC#patients")
    (True, False, True)
    """
    scheme = path.partition(":")[0].lower()
    return path.startswith(FROM_ENVIRONMENT) or (":" in path and scheme in SCHEMES and not Path(path).exists())


@dataclass(frozen=True)
class Address:
    """A table of a database. ``repr`` and messages show ``shown``, which has no password.

    >>> Address.of("postgresql://ana@db.example/clinic#ward.visits").parts
    ('ward', 'visits')
    >>> Address.of("postgresql://ana:secret@db.example/clinic#visits")
    Traceback (most recent call last):
    ...
    shoal.core.errors.UsageError: postgresql://ana@db.example/clinic#visits: a password on the command line is seen by everyone on this machine
    ...
    """  # noqa: E501 - the message is one line

    kind: str
    url: str = field(repr=False)
    table: str
    shown: str

    @classmethod
    def of(cls, text: str, *, secret_allowed: bool = False) -> Address:
        """The address a person wrote; a password may stand in an environment variable only."""
        place, mark, table = text.partition("#") if text.startswith(FROM_ENVIRONMENT) else text.rpartition("#")
        if not mark:
            place, table = table, ""
        if place.startswith(FROM_ENVIRONMENT):
            name = place.removeprefix(FROM_ENVIRONMENT)
            url = os.environ.get(name)
            if not url:
                raise UsageError(f"the variable {name!r} is not set", where=place, hint="export the address there")
            found = cls.of(f"{url.partition('#')[0]}#{table or url.partition('#')[2]}", secret_allowed=True)
            return cls(found.kind, found.url, found.table, f"{place}#{found.table}")
        scheme, colon, rest = place.partition(":")
        kind = SCHEMES.get(scheme.lower())
        if kind is None:
            # what the variable holds may be a secret in any form: nothing of it is shown
            shown = "the address" if secret_allowed else place.partition("@")[2] or place
            raise UsageError("expected the address of a database", where=shown, hint=EXAMPLE)
        place = scheme.lower() + colon + rest  # drivers know it in lower case only
        shown = f"{_without_password(place)}#{table}"
        if not secret_allowed and shown != f"{place}#{table}":
            raise UsageError(
                "a password on the command line is seen by everyone on this machine",
                where=shown,
                hint="put the address into a variable and write env:VARIABLE#table, or use PGPASSWORD or ~/.pgpass",
            )
        if not table:
            raise UsageError("no table is named", where=shown.rstrip("#"), hint=f"write it behind a #: {EXAMPLE}")
        return cls(kind, place, table, shown)

    @property
    def parts(self) -> tuple[str, ...]:
        """The table's name, with its schema before it if one is given."""
        return tuple(self.table.split(".", 1))

    @property
    def name(self) -> str:
        """The table's own name."""
        return self.parts[-1]

    @property
    def file(self) -> Path | None:
        """The file of a database that is one."""
        if self.kind == "postgresql":
            return None
        rest = self.url.partition(":")[2]
        # sqlite:///clinic.db is relative and sqlite:////data/clinic.db absolute, as elsewhere
        return Path(unquote(rest.removeprefix("///") if rest.startswith("///") else rest))

    def beside(self, table: str) -> Address:
        """Another table of the same database."""
        return Address(self.kind, self.url, table, f"{self.shown.rpartition('#')[0]}#{table}")


def _without_password(url: str) -> str:
    try:
        parts = urlsplit(url)
    except ValueError:
        raise UsageError("the address cannot be read", where=url.partition(":")[0], hint=EXAMPLE) from None
    if parts.scheme in ("sqlite", "duckdb"):
        return url
    plain = without_passwords(url)
    # a # or a blank in a password ends what is read as its value
    secret = any(is_secret(name) for name, _ in parse_qsl(parts.query, keep_blank_values=True))
    return plain.partition("?")[0] if secret else plain

"""What a policy means in a database: a table per role, users, and one right for each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from shoal.connect.sql import Address
from shoal.connect.sql.address import FROM_ENVIRONMENT
from shoal.core.errors import PolicyError
from shoal.policy.document import Policy

KEYS = ("use", "url", "table")
SERVICE = ("table",)
LONGEST = 63  # characters of a name in PostgreSQL: longer ones are cut, and two may become one


@dataclass(frozen=True)
class Layout:
    """The tables and users of a policy."""

    source: Address
    tables: Mapping[str, Address]  # by role
    users: Mapping[str, str]  # the role of each
    folder: Path

    @property
    def audit(self) -> Address:
        """Where every apply is written down."""
        return self.source.beside(_beside(self.source, f"{self.source.name}_shoal_audit"))


def layout(policy: Policy) -> Layout:
    """The layout of a policy whose source is a table of PostgreSQL; whatever it cannot mean is refused."""
    source = _source(policy)
    tables: dict[str, Address] = {}
    users: dict[str, str] = {}
    for role, view in policy.views.items():
        for key in view.service:
            if key not in SERVICE:
                raise PolicyError(
                    f"{key!r} is not known in a database", where=f"views.{role}.service", hint=f"only {SERVICE[0]}"
                )
        name = str(view.service.get("table", f"{source.name}_{role}"))
        address = source.beside(name if "." in name else _beside(source, name))
        if len(address.name) > LONGEST:
            raise PolicyError(f"the table's name is longer than {LONGEST} characters", where=f"views.{role}.service")
        taken = [source.table, f"{source.name}_shoal_audit", *(a.table for a in tables.values())]
        if address.table in (*taken, _beside(source, taken[1])):
            raise PolicyError(f"two things want the table {address.table!r}", where=f"views.{role}.service.table")
        tables[role] = address
        for user in view.users:
            if user in users:
                raise PolicyError(
                    f"the user {user!r} belongs to more than one view",
                    where="views",
                    hint="two views of one record intersect",
                )
            if user in ("*", "public") or not user.strip():
                raise PolicyError("a user is one user, by name", where="views", hint=f"{user!r} would let everyone in")
            users[user] = role
    return Layout(source, tables, users, Path(policy.path).parent)


def _source(policy: Policy) -> Address:
    said, where = policy.source, policy.path or "source"
    for key in said:
        if key not in KEYS:
            raise PolicyError(
                f"{key!r} is not known in a source of SQL", where=where, hint=f"one of: {', '.join(KEYS)}"
            )
    url, table = said.get("url"), said.get("table")
    if not isinstance(url, str) or not isinstance(table, str):
        hint = "source: {use: sql, url: env:CLINIC_URL, table: patients}"
        raise PolicyError("a source of SQL needs its url and its table", where=where, hint=hint)
    address = Address.of(f"{url}#{table}")
    if address.kind != "postgresql":
        raise PolicyError(
            f"{address.kind} has no users: nobody could be kept from the source",
            where=where,
            hint=f"PostgreSQL has: {FROM_ENVIRONMENT}VARIABLE with its address",
        )
    return address


def _beside(source: Address, name: str) -> str:
    return ".".join([*source.parts[:-1], name])

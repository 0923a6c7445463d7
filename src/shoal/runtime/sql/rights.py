"""Users and rights of PostgreSQL: who may read what, also by membership, ownership or for everyone."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from collections.abc import Collection, Iterable
from typing import Any, NamedTuple

from shoal.connect.sql import Address
from shoal.connect.sql.dialects import catalogue, quoted

ROUNDS = 4096  # of SCRAM, as PostgreSQL makes them


class Grant(NamedTuple):
    """A right on a table, as the table's own list of rights has it; ``who`` is empty for everyone."""

    who: str
    right: str


def verifier(password: str) -> str:
    """What PostgreSQL stores of a password (SCRAM-SHA-256), so that no log of the server ever holds the password."""
    salt = secrets.token_bytes(16)
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), salt, ROUNDS)
    client = hmac.digest(salted, b"Client Key", "sha256")
    parts = (hashlib.sha256(client).digest(), hmac.digest(salted, b"Server Key", "sha256"))
    stored, server = (base64.b64encode(part).decode() for part in parts)
    return f"SCRAM-SHA-256${ROUNDS}:{base64.b64encode(salt).decode()}${stored}:{server}"


def existing(cursor: Any, users: Iterable[str]) -> set[str]:
    """Those of the users that the database knows."""
    cursor.execute("select rolname from pg_roles")
    return {str(row[0]) for row in cursor.fetchall()} & set(users)


def is_there(cursor: Any, table: Address) -> bool:
    """Whether a table, or anything else of its name, exists."""
    cursor.execute(catalogue("select to_regclass('{table}') is not null", table))
    return bool(cursor.fetchone()[0])


def grants(cursor: Any, table: Address) -> set[Grant]:
    """The rights that others than its owner have on a table or on columns of it."""
    found: set[Grant] = set()
    of_table = "pg_class c, aclexplode(c.relacl) a where c.oid = to_regclass('{table}')"
    of_columns = "pg_class c join pg_attribute t on c.oid = t.attrelid, aclexplode(t.attacl) a"
    for listed in (of_table, f"{of_columns} where c.oid = to_regclass('{{table}}')"):
        name = "case when a.grantee = 0 then '' else pg_get_userbyid(a.grantee)::text end"
        cursor.execute(
            catalogue(f"select {name}, a.privilege_type::text from {listed} and a.grantee <> c.relowner", table)
        )
        found |= {Grant(str(who), str(right)) for who, right in cursor.fetchall()}
    return found


def may_read(cursor: Any, user: str, table: Address) -> bool:
    """Whether a user reads a table or a column of it: by a right, by everyone's right, or as a role they can become."""
    query = (
        "select exists (select 1 from pg_roles r where pg_has_role(u.oid, r.oid, 'member') "
        "and has_any_column_privilege(r.oid, to_regclass('{table}'), 'select')) "
        # braces are doubled because the text goes through `format`
        f"from pg_roles u where u.rolname = '{_text(user).replace('{', '{{').replace('}', '}}')}'"
    )
    cursor.execute(catalogue(query, table))
    found = cursor.fetchone()
    return bool(found and found[0])


def everyone_reads(cursor: Any, table: Address) -> bool:
    """Whether everyone who can connect reads a table or a column of it."""
    return any(not grant.who and grant.right == "SELECT" for grant in grants(cursor, table))


def makes_roles(cursor: Any, user: str) -> bool:
    """Whether a user can give themselves rights: by making roles, or as a superuser."""
    cursor.execute(f"select rolcreaterole or rolsuper from pg_roles where rolname = '{_text(user)}'")
    found = cursor.fetchone()
    return bool(found and found[0])


def create(cursor: Any, user: str, password: str) -> None:
    """A user who can log in, and nothing else."""
    cursor.execute(f"create role {quoted(user)} login password '{verifier(password)}'")


def drop_idle(cursor: Any, users: Collection[str]) -> list[str]:
    """Drop the users that own nothing and may do nothing elsewhere; who is at home in other tables stays."""
    gone = []
    for user in sorted(existing(cursor, users)):
        cursor.execute(
            "select count(*) from pg_shdepend d join pg_roles r on r.oid = d.refobjid "
            f"where d.refclassid = 'pg_authid'::regclass and r.rolname = '{_text(user)}'"
        )
        if not cursor.fetchone()[0]:
            cursor.execute(f"drop role {quoted(user)}")
            gone.append(user)
    return gone


def _text(name: str) -> str:
    return name.replace("'", "''")

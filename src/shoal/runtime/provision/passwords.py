"""Passwords of users: from the environment or a file beside the policy, never from the policy, and none for two."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from shoal.core.errors import PolicyError, UsageError


def variable_of(user: str) -> str:
    """The environment variable of a user's password."""
    return "SHOAL_PASSWORD_" + "".join(c if c.isalnum() else "_" for c in user).upper()


def refuse_shared_variables(users: Sequence[str]) -> None:
    """Two users whose password would come from one variable could log in as each other.

    >>> refuse_shared_variables(["ward1", "ward2"])
    """
    found: dict[str, str] = {}
    for user in users:
        other = found.setdefault(variable_of(user), user)
        # only where the variable is set: files have a name per user
        if other != user and variable_of(user) in os.environ:
            raise PolicyError(
                f"the users {other!r} and {user!r} would share the password in {variable_of(user)}",
                where="views",
                hint="rename one, or write their passwords into files",
            )


def password_of(user: str, folder: Path) -> str:
    """A user's password from the environment or from a file beside the policy; never from the policy."""
    variable = variable_of(user)
    file = folder / "passwords" / user
    if variable in os.environ:
        return os.environ[variable]
    if file.is_file():
        return file.read_text(encoding="utf-8").strip()
    raise UsageError(f"no password for the new user {user!r}", where="users", hint=f"set {variable}, or write {file}")

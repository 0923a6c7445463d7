"""A small database of what must be forgettable: random tokens with their sealed values, and salts per person.

Whoever is forgotten loses rows, and rows are overwritten with zeros when deleted: nothing in the file, not even
together with every key, brings the person back.
"""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Callable
from pathlib import Path

from shoal.core.errors import InputError

_TABLES = """
CREATE TABLE IF NOT EXISTS tokens (
    domain TEXT NOT NULL, print BLOB NOT NULL, token TEXT NOT NULL, sealed BLOB NOT NULL, person BLOB,
    PRIMARY KEY (domain, print)) WITHOUT ROWID;
CREATE UNIQUE INDEX IF NOT EXISTS by_token ON tokens (domain, token);
CREATE INDEX IF NOT EXISTS by_person ON tokens (person);
CREATE TABLE IF NOT EXISTS salts (person BLOB PRIMARY KEY, salt BLOB NOT NULL) WITHOUT ROWID;
"""


class Vault:
    """Tokens and salts in one SQLite file. People and values enter as keyed fingerprints, never in clear."""

    def __init__(self, path: Path) -> None:
        try:
            self._base = sqlite3.connect(path, isolation_level=None)
            # a deleted row must not survive on a free page, and a rollback journal must not survive at all
            self._base.execute("PRAGMA secure_delete=ON")
            self._base.execute("PRAGMA journal_mode=DELETE")
            self._base.execute("PRAGMA synchronous=FULL")
            self._base.executescript(_TABLES)
        except sqlite3.Error as error:
            raise InputError(f"cannot open the vault ({type(error).__name__})", where=str(path)) from None
        self.path = path

    def token(self, domain: str, fingerprint: bytes, person: bytes | None, seal: Callable[[str], bytes]) -> str:
        """The token of a value: the stored one, or a new random one, stored before it is told to anyone."""
        row = self._base.execute(
            "SELECT token FROM tokens WHERE domain = ? AND print = ?", (domain, fingerprint)
        ).fetchone()
        if row:
            return str(row[0])
        token = secrets.token_hex(16)
        self._base.execute(
            "INSERT INTO tokens VALUES (?, ?, ?, ?, ?)", (domain, fingerprint, token, seal(token), person)
        )
        return token

    def sealed(self, domain: str, token: str) -> bytes | None:
        """The sealed value behind a token, or nothing."""
        row = self._base.execute("SELECT sealed FROM tokens WHERE domain = ? AND token = ?", (domain, token)).fetchone()
        return bytes(row[0]) if row else None

    def salt(self, person: bytes) -> bytes:
        """The random salt of a person; made at the first question."""
        row = self._base.execute("SELECT salt FROM salts WHERE person = ?", (person,)).fetchone()
        if row:
            return bytes(row[0])
        salt = secrets.token_bytes(16)
        self._base.execute("INSERT INTO salts VALUES (?, ?)", (person, salt))
        return salt

    def forget(self, person: bytes) -> int:
        """Delete everything about a person; how many rows that were."""
        gone = self._base.execute("DELETE FROM tokens WHERE person = ?", (person,)).rowcount
        gone += self._base.execute("DELETE FROM salts WHERE person = ?", (person,)).rowcount
        return int(gone)

    def begin(self) -> None:
        """Collect the writes of a batch into one transaction."""
        if not self._base.in_transaction:
            self._base.execute("BEGIN IMMEDIATE")

    def commit(self) -> None:
        """Make the batch durable; only then may its tokens be published."""
        if self._base.in_transaction:
            self._base.execute("COMMIT")

    def close(self) -> None:
        """Commit and close."""
        self.commit()
        self._base.close()

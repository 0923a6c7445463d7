"""A small database of what must be forgettable: random tokens with their sealed values, and salts per person.

Whoever is forgotten loses rows, and rows are overwritten with zeros when deleted: nothing in the file, not even
together with every key, brings the person back.
"""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Callable, Hashable
from pathlib import Path
from threading import RLock

from shoal.core.errors import InputError
from shoal.core.private_file import create_private

MOST_KNOWN = 1_000_000  # answers kept in memory

_TABLES = """
CREATE TABLE IF NOT EXISTS tokens (
    domain TEXT NOT NULL, print BLOB NOT NULL, token TEXT NOT NULL, sealed BLOB NOT NULL,
    PRIMARY KEY (domain, print)) WITHOUT ROWID;
CREATE UNIQUE INDEX IF NOT EXISTS by_token ON tokens (domain, token);
CREATE TABLE IF NOT EXISTS owners (
    person BLOB NOT NULL, domain TEXT NOT NULL, print BLOB NOT NULL,
    PRIMARY KEY (person, domain, print)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS by_print ON owners (domain, print);
CREATE TABLE IF NOT EXISTS salts (person BLOB PRIMARY KEY, salt BLOB NOT NULL) WITHOUT ROWID;
"""


class Vault:
    """Tokens and salts in one SQLite file. People and values enter as keyed fingerprints, never in clear.

    Writes of a batch are one transaction: call :meth:`commit` before a token leaves the process.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     vault = Vault(Path(folder, "vault"))
    ...     vault.path.name
    ...     vault.close()
    'vault'
    """

    _open: dict[Path, Vault] = {}  # noqa: RUF012 - one connection per file and process, or masks would lock each other out

    def __init__(self, path: Path) -> None:
        if path.parent.is_dir():  # otherwise the database says what is wrong
            create_private(path, "the vault")
        try:
            # columns are masked in the threads of polars; the lock makes their turns
            self._base = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
            # a deleted row must not survive on a free page, and a rollback journal must not survive at all
            self._base.execute("PRAGMA secure_delete=ON")
            self._base.execute("PRAGMA journal_mode=DELETE")
            self._base.execute("PRAGMA synchronous=FULL")
            self._base.executescript(_TABLES)
        except sqlite3.Error as error:
            raise InputError(f"cannot open the vault ({type(error).__name__})", where=str(path)) from None
        self.path = path
        self._lock = RLock()
        self._known: dict[Hashable, str] = {}
        self._version = -1

    @classmethod
    def at(cls, path: Path) -> Vault:
        """The vault of a file, shared by all masks of this process."""
        key = path.resolve()
        if key not in cls._open or not key.exists():
            cls._open[key] = cls(key)
        return cls._open[key]

    def token(self, domain: str, fingerprint: bytes, person: bytes | None, seal: Callable[[str], bytes]) -> str:
        """The token of a value: the stored one, or a new random one. It belongs to everyone who has the value."""
        with self._lock:
            self._begin()
            row = self._base.execute(
                "SELECT token FROM tokens WHERE domain = ? AND print = ?", (domain, fingerprint)
            ).fetchone()
            token = str(row[0]) if row else secrets.token_hex(16)
            if not row:
                self._base.execute("INSERT INTO tokens VALUES (?, ?, ?, ?)", (domain, fingerprint, token, seal(token)))
            if person is not None:
                self._base.execute("INSERT OR IGNORE INTO owners VALUES (?, ?, ?)", (person, domain, fingerprint))
            return token

    def sealed(self, domain: str, token: str) -> bytes | None:
        """The sealed value behind a token, or nothing."""
        found = self._base.execute("SELECT sealed FROM tokens WHERE domain = ? AND token = ?", (domain, token))
        row = found.fetchone()
        return bytes(row[0]) if row else None

    def salt(self, person: bytes) -> bytes:
        """The random salt of a person; made at the first question."""
        with self._lock:
            self._begin()
            row = self._base.execute("SELECT salt FROM salts WHERE person = ?", (person,)).fetchone()
            if row:
                return bytes(row[0])
            salt = secrets.token_bytes(16)
            self._base.execute("INSERT INTO salts VALUES (?, ?)", (person, salt))
            return salt

    def forget(self, person: bytes) -> int:
        """Delete everything that is this person's alone; how many rows that were."""
        with self._lock:
            self._begin()
            self._base.execute("CREATE TEMP TABLE gone AS SELECT domain, print FROM owners WHERE person = ?", (person,))
            count = self._base.execute("DELETE FROM owners WHERE person = ?", (person,)).rowcount
            count += self._base.execute(
                "DELETE FROM tokens WHERE (domain, print) IN (SELECT domain, print FROM gone)"
                " AND NOT EXISTS (SELECT 1 FROM owners o WHERE o.domain = tokens.domain AND o.print = tokens.print)"
            ).rowcount
            count += self._base.execute("DELETE FROM salts WHERE person = ?", (person,)).rowcount
            self._base.execute("DROP TABLE gone")
            self._known.clear()
            self.commit()
            return int(count)

    def recall(self, question: Hashable, answer: Callable[[], str]) -> str:
        """What was answered before, without asking the database; as long as nobody else has written to it."""
        with self._lock:
            self._begin()
            known = self._known.get(question)
            if known is None:
                if len(self._known) >= MOST_KNOWN:
                    self._known.clear()
                known = self._known[question] = answer()
            return known

    def _begin(self) -> None:
        if not self._base.in_transaction:
            self._base.execute("BEGIN IMMEDIATE")
            # another process may have forgotten someone: under the lock nobody can any more
            (version,) = self._base.execute("PRAGMA data_version").fetchone()
            if version != self._version:
                self._known.clear()
                self._version = version

    def commit(self) -> None:
        """Make the batch durable; only then may its tokens be published."""
        with self._lock:
            if self._base.in_transaction:
                self._base.execute("COMMIT")

    def close(self) -> None:
        """Commit and close."""
        self.commit()
        self._base.close()
        if self._open.get(self.path) is self:
            del self._open[self.path]

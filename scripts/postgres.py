"""A real PostgreSQL on loopback for tests and examples: its own folder, gone when it stops."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
from pathlib import Path

USER = "shoal"


def programs() -> Path | None:
    """Where the server's programs are; Debian does not put them on the path."""
    found = shutil.which("initdb")
    if found:
        return Path(found).resolve().parent
    return max(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda p: int(p.parent.name), default=None)


def available() -> str | None:
    """Why there is no PostgreSQL here; nothing if there is."""
    if programs() is None:
        return "PostgreSQL is not installed (make system)"
    if os.getuid() == 0 and shutil.which("runuser") is None:
        return "PostgreSQL does not run as root, and there is no runuser"
    return None


class Postgres:
    """One server."""

    def __init__(self) -> None:
        # a folder of its own: what lies in pytest's is closed to the server's account whenever another run begins
        self.folder, self.password = Path(tempfile.mkdtemp(prefix="postgres-")), secrets.token_urlsafe(12)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = int(free.getsockname()[1])

    def start(self) -> Postgres:
        if os.getuid() == 0:
            shutil.chown(self.folder, "postgres")
        secret = self.folder / "password"
        secret.write_text(self.password)
        secret.chmod(0o644)
        data = str(self.folder / "data")
        self._run("initdb", "--no-sync", "-D", data, "-U", USER, "-A", "scram-sha-256", f"--pwfile={secret}")
        options = f"-p {self.port} -k {self.folder} -c listen_addresses=127.0.0.1 -c fsync=off -c full_page_writes=off"
        log = str(self.folder / "log")
        self._run("pg_ctl", "-D", data, "-w", "-l", log, "-o", options, "start")
        return self

    def stop(self) -> None:
        """At once: nobody needs the data any more, so nobody waits for the server to tidy up."""
        try:
            pid = int((self.folder / "data" / "postmaster.pid").read_text().split()[0])
            os.kill(pid, signal.SIGQUIT)  # what `pg_ctl -m immediate stop` sends
        except (FileNotFoundError, ProcessLookupError):
            pass  # it has gone
        shutil.rmtree(self.folder, ignore_errors=True)

    def url(self, user: str = USER, password: str | None = None, database: str = "postgres") -> str:
        return f"postgresql://{user}:{password or self.password}@127.0.0.1:{self.port}/{database}"

    def _run(self, program: str, *words: str) -> None:
        where = programs()
        assert where is not None
        before = ["runuser", "-u", "postgres", "--"] if os.getuid() == 0 else []
        ended = subprocess.run(
            [*before, str(where / program), *words], check=False, capture_output=True, text=True, cwd=self.folder
        )
        if ended.returncode:
            raise RuntimeError(f"{program} failed: {ended.stderr or ended.stdout}")

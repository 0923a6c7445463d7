"""Files only their owner may read, written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from shoal.core.errors import OutputError, UsageError


def write_private(path: Path, data: bytes, what: str) -> None:
    """Replace ``path`` by ``data``, readable by its owner only; when this returns, it is on the disk.

    The new content is written to a file of a name nobody can guess, made by us: a file or link that somebody prepared
    beside ``path`` is never written to.

    >>> path = Path(tempfile.mkdtemp()) / "state"
    >>> write_private(path, b"content", "the state")
    >>> path.read_bytes(), oct(path.stat().st_mode & 0o777)
    (b'content', '0o600')
    """
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
        part = Path(name)
        try:
            with os.fdopen(handle, "wb") as out:
                out.write(data)
                out.flush()
                os.fsync(out.fileno())
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise OutputError(
            f"cannot write {what} ({error.strerror})", where=str(path), hint="does the folder exist?"
        ) from None


def refuse_readable(path: Path, what: str) -> None:
    """Raise if others than the owner may read or change a file that holds secrets; a missing file is no concern here.

    >>> path = Path(tempfile.mkdtemp()) / "key"
    >>> write_private(path, b"secret", "the key")
    >>> refuse_readable(path, "the key")
    >>> path.chmod(0o644)
    >>> refuse_readable(path, "the key")
    Traceback (most recent call last):
    ...
    shoal.core.errors.UsageError: ...: others than its owner may read the key
    ...
    """
    if os.name != "posix":
        return
    try:
        mode = path.stat().st_mode
    except OSError:
        return  # reading it says what is wrong
    if mode & 0o077:
        raise UsageError(
            f"others than its owner may {'read' if mode & 0o044 else 'change'} {what}",
            where=str(path),
            hint=f"chmod 600 {path}; if somebody may have read it, rotate the keys",
        )


def create_private(path: Path, what: str) -> None:
    """An empty file for its owner only, unless there is one already; that one must be its owner's alone, too."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        refuse_readable(path, what)
    except OSError as error:
        raise OutputError(f"cannot make {what} ({error.strerror})", where=str(path)) from None

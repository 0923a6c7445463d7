"""Files only their owner may read, written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from shoal.core.errors import OutputError


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

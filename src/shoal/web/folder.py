"""The private folder of a run: only its owner may look into it, and nothing of it is left afterwards."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PREFIX = "shoal-studio-"


@contextmanager
def private_folder() -> Iterator[Path]:
    """A folder for uploads, wiped when the block ends; those of runs that were killed are wiped now.

    >>> with private_folder() as folder:
    ...     oct(folder.stat().st_mode & 0o777)
    '0o700'
    >>> folder.exists()
    False
    """
    place = Path(tempfile.gettempdir())
    wipe_abandoned(place)
    folder = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-", dir=place))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def wipe_abandoned(place: Path) -> list[str]:
    """Remove folders of our own whose process is gone; the names of those that were removed."""
    gone = []
    for found in place.glob(f"{PREFIX}*"):
        number = re.match(rf"{PREFIX}(\d+)-", found.name)
        if number is None or _runs(int(number[1])):
            continue
        mine = not hasattr(os, "getuid") or found.lstat().st_uid == os.getuid()
        if mine and found.is_dir() and not found.is_symlink():
            shutil.rmtree(found, ignore_errors=True)
            gone.append(found.name)
    return gone


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True

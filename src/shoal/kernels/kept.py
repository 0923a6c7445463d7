"""Where compiled kernels are kept between runs: in folders named by the content they were made of."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from numba.core import caching

ROOM = Path(__file__).parent.resolve()
_KERNEL = re.compile(r"^\s*from shoal\.kernels\.?([\w.]*) import (.+)$", re.M)


@cache
def stamp(file: Path) -> str:
    """A digest of a kernel's source and of all kernels it imports.

    The compiler's own stamp is the path and the age of a function's own file: after a change in a kernel that others
    call, they would go on running the old code, and the same code in another folder would be compiled again.
    """
    digest = hashlib.blake2b(digest_size=8)
    for part in sorted(_with_imports(file)):
        digest.update(part.relative_to(ROOM).as_posix().encode() + b"\0" + part.read_bytes())
    return digest.hexdigest()


def _with_imports(file: Path) -> set[Path]:
    found: set[Path] = set()
    left = [file]
    while left:
        part = left.pop()
        if part not in found:
            found.add(part)
            for module, names in _KERNEL.findall(part.read_text()):
                folder = ROOM / module.replace(".", "/") if module else ROOM
                named = [folder / f"{name.split(' as ')[0].strip()}.py" for name in names.split(",")]
                left += [f for f in (folder.with_suffix(".py"), *named) if f.exists()]
    return found


class ByContent(caching._CacheLocator):
    """Where compiled kernels lie: in a folder named by what they were made of."""

    def __init__(self, function: Callable[..., Any], file: Path) -> None:
        self._stamp, self._line = stamp(file), function.__code__.co_firstlineno
        base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")  # noqa: PTH111, PTH118
        self._folder = str(Path(base) / "shoal" / f"{file.stem}-{self._stamp}")

    def get_cache_path(self) -> str:
        """The folder."""
        return self._folder

    def get_source_stamp(self) -> str:
        """What the compiler compares; the folder's name says it already."""
        return self._stamp

    def get_disambiguator(self) -> str:
        """Tells functions of one name apart."""
        return str(self._line)

    @classmethod
    def from_function(cls, function: Callable[..., Any], file: str) -> Any:
        """A place for a kernel; other people's functions, and NUMBA_CACHE_DIR where somebody set it, are not ours."""
        path = Path(file).resolve()
        if ROOM not in path.parents or os.environ.get("NUMBA_CACHE_DIR"):
            return None
        locator = cls(function, path)
        try:
            locator.ensure_cache_path()
        except OSError:  # nowhere to write: the compiler looks for another place, or compiles each time
            return None
        return locator


caching.CacheImpl._locator_classes.insert(0, ByContent)

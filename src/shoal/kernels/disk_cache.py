"""The compiler's own files of compiled kernels, in the folders of :mod:`shoal.kernels.stamps`."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numba.core import caching

from shoal.kernels.stamps import ROOM, folder, stamp


class ByContent(caching._CacheLocator):
    """Where compiled kernels lie: in a folder named by what they were made of."""

    def __init__(self, function: Callable[..., Any], file: Path) -> None:
        self._stamp, self._line = stamp(file), function.__code__.co_firstlineno
        self._folder = str(folder(file))

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

"""The originals of a running command: files that it reads, and therefore never writes onto.

The file handed in is often the only copy of the data. While a command runs, every reader registers its file here and
every writer asks before it replaces one; links and other names of the same file are seen through.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from shoal.core.errors import UsageError

_registered: set[str] | None = None  # None: no command is running, so nothing is registered


@contextmanager
def guarded() -> Iterator[None]:
    """While the block runs, what is read is registered and refused as a place to write.

    >>> with guarded():
    ...     register("patients.csv")
    ...     refuse("patients.csv")
    Traceback (most recent call last):
    shoal.core.errors.UsageError: patients.csv: ...
    """
    global _registered
    before, _registered = _registered, set()
    try:
        yield
    finally:
        _registered = before


def register(path: str | Path) -> None:
    """A file that is about to be read.

    >>> register("patients.csv")  # outside a command nothing is remembered
    """
    if _registered is not None and str(path) != "-":
        _registered.add(str(path))


def refuse(output: str | Path) -> None:
    """Raise if ``output`` is a file that this command has read.

    >>> refuse("released.csv")  # nothing was read: any place will do
    """
    keep_apart([str(output)], _registered or ())


def keep_apart(outputs: Iterable[str | None], inputs: Iterable[str | None]) -> None:
    """Raise if an output is one of the inputs, or another output: also through a link, or by another path.

    >>> keep_apart(["out.csv"], ["in.csv"])
    >>> keep_apart(["./in.csv"], ["in.csv"])
    Traceback (most recent call last):
    ...
    shoal.core.errors.UsageError: ./in.csv: the output would replace a file that is read
    ...
    """
    originals = [path for path in inputs if path not in (None, "-")]
    written: list[str] = []
    for output in outputs:
        if output is None:
            continue
        if output == "-":
            if "-" in written:
                raise UsageError(
                    "two outputs are standard output", where="-", hint="their readers differ: give each its own place"
                )
            written.append("-")
            continue
        if any(_same(output, str(original)) for original in originals):
            raise UsageError(
                "the output would replace a file that is read",
                where=output,
                hint="it may be the only copy of the data: give the output another name",
            )
        if any(_inside(output, str(original)) for original in originals):
            raise UsageError(
                "the output would stand among the files that are read",
                where=output,
                hint="the next run would read it, too: write it into another folder",
            )
        if any(other != "-" and _same(output, other) for other in written):
            raise UsageError("two outputs have the same name", where=output, hint="give each its own")
        written.append(output)


def _inside(output: str, original: str) -> bool:
    """Whether the output lies in a folder that is read as one table."""
    place = Path(original)
    return place.is_dir() and _same(str(Path(output).parent), original)


def _same(one: str, other: str) -> bool:
    """One file: the same inode (hard links, and links to it), or the same place if it does not exist yet."""
    try:
        return os.path.samefile(one, other)  # noqa: PTH121 - either may be missing
    except OSError:
        return os.path.realpath(one) == os.path.realpath(other)

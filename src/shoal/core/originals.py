"""The originals of a running command: files that it reads, and therefore never writes onto.

The file handed in is often the only copy of the data. While a command runs, every reader registers its file here and
every writer asks before it replaces one; links and other names of the same file are seen through. A command says all
of its outputs at once, by :func:`keep_apart`, before it opens one.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from glob import glob
from pathlib import Path

from shoal.core.errors import UsageError

_registered: set[str] | None = None  # None: no command is running, so nothing is registered


@dataclass(frozen=True)
class Folder:
    """An output that is a folder: into it go files of these ``names`` (`*` stands for any text), and no others.

    >>> Folder("run", ("page.html", "*.svg")).holds("run/z.svg"), Folder("run", ("page.html",)).holds("run/out.csv")
    (True, False)
    """

    path: str
    names: tuple[str, ...]

    def holds(self, file: str) -> bool:
        """Whether this file is one of those that go into it, by whatever name."""
        target = Path(os.path.realpath(file))
        inside = _same(str(target.parent), self.path) and self._named(target.name)
        # what stands there already may be a link to a file elsewhere
        return inside or any(_same(str(one), file) for one in self._there())

    def _there(self) -> Iterator[Path]:
        place = Path(self.path)
        return (one for one in (place.iterdir() if place.is_dir() else ()) if self._named(one.name))

    def _named(self, name: str) -> bool:
        return any(fnmatchcase(name, pattern) for pattern in self.names)

    def require(self) -> None:
        """Raise if a file stands where the folder would be, before any work is done for it."""
        for place in (Path(self.path), *Path(self.path).parents):
            if place.exists():
                if place.is_dir():
                    return
                raise UsageError("expected a folder, found a file", where=self.path, hint="name another place")


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


def keep_apart(outputs: Iterable[str | Folder | None], inputs: Iterable[str | None]) -> None:
    """Raise if an output is one of the inputs, or another output: also through a link, or by another path.

    What the command has registered until now is an input, too: so it is called when the job is made, which reads its
    policy, trees and keys, and before anything is opened for writing.

    >>> keep_apart(["out.csv"], ["in.csv"])
    >>> keep_apart(["./in.csv"], ["in.csv"])
    Traceback (most recent call last):
    ...
    shoal.core.errors.UsageError: ./in.csv: the output would replace a file that is read
    ...
    """
    named = [path for path in (*inputs, *(_registered or ())) if path is not None and path != "-"]
    originals = [file for path in named for file in (path, *_matching(path))]
    everything = list(outputs)
    files = [output for output in everything if isinstance(output, str)]
    _files_apart(files, originals)
    for folder in (output for output in everything if isinstance(output, Folder)):
        folder.require()
        for files_of, why in ((originals, "a file that is read"), (files, "another output")):
            if any(folder.holds(file) for file in files_of):
                raise UsageError(
                    f"{why} stands in this folder under a name that is written there",
                    where=folder.path,
                    hint="name another folder",
                )


def _files_apart(outputs: Iterable[str], originals: Iterable[str]) -> None:
    originals, written = list(originals), list[str]()
    for output in outputs:
        if output == os.devnull:
            continue
        if output == "-":
            if "-" in written:
                raise UsageError(
                    "two outputs are standard output", where="-", hint="their readers differ: give each its own place"
                )
            written.append("-")
            continue
        if any(_same(output, original) for original in originals):
            raise UsageError(
                "the output would replace a file that is read",
                where=output,
                hint="it may be the only copy of the data: give the output another name",
            )
        if any(_inside(output, original) for original in originals):
            raise UsageError(
                "the output would stand among the files that are read",
                where=output,
                hint="the next run would read it, too: write it into another folder",
            )
        if any(other != "-" and _same(output, other) for other in written):
            raise UsageError("two outputs have the same name", where=output, hint="give each its own")
        written.append(output)


def _matching(path: str) -> list[str]:
    """The files that a pattern names; of other paths none."""
    if not any(mark in path for mark in "*?["):
        return []
    return glob(path, recursive=True)  # noqa: PTH207 - the pattern may be absolute


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

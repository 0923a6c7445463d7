"""Where compiled kernels are kept between runs: in folders named by the content they were made of."""

from __future__ import annotations

import hashlib
import os
import re
from functools import cache
from pathlib import Path

ROOM = Path(__file__).parent.resolve()
ASIDE = ("talk.py", "waiting.py", "interpreted.py")  # when to compile, and what is said then, is no part of kernels
_KERNEL = re.compile(r"^\s*from shoal\.kernels\.?([\w.]*) import (.+)$", re.M)


@cache
def stamp(file: Path) -> str:
    """A digest of a kernel's source and of all kernels it imports.

    The compiler's own stamp is the path and the age of a function's own file: after a change in a kernel that others
    call, they would go on running the old code, and the same code in another folder would be compiled again.
    """
    digest = hashlib.blake2b(digest_size=8)
    for part in sorted(_with_imports(file)):
        digest.update(part.relative_to(ROOM).as_posix().encode() + b"\0" + _source(part))
    return digest.hexdigest()


def folder(file: Path) -> Path:
    """The folder of the compiled kernels of a file."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")  # noqa: PTH111, PTH118
    return Path(base) / "shoal" / f"{file.stem}-{stamp(file)}"


def _with_imports(file: Path) -> set[Path]:
    found: set[Path] = set()
    left = [file]
    while left:
        part = left.pop()
        if part not in found and part.name not in ASIDE:
            found.add(part)
            left += _imports(part)
    return found


@cache
def _source(file: Path) -> bytes:
    return file.read_bytes()


@cache  # most kernels import the same few files
def _imports(file: Path) -> list[Path]:
    found: list[Path] = []
    for module, names in _KERNEL.findall(_source(file).decode()):
        place = ROOM / module.replace(".", "/") if module else ROOM
        named = [place / f"{name.split(' as ')[0].strip()}.py" for name in names.split(",")]
        found += [f for f in (place.with_suffix(".py"), *named) if f.exists()]
    return found

"""What was declared, as plain values that two versions of it can be compared by: what stands in files counts, too."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import msgspec

from shoal.core.errors import InputError
from shoal.core.hierarchy import HIERARCHIES, Hierarchy
from shoal.core.schema import Column, declared

FILES = ("file", "register")  # fields that name a file whose content decides what is published


def said(value: Any, folder: Path | None = None) -> Any:
    """What a policy says, as plain values; a file is told by what stands in it, not by its name.

    >>> from shoal.core.hierarchy.prefix import Prefix
    >>> said(Prefix(5))
    {'use': 'prefix', 'length': 5, 'words': False}
    """
    plain = declared(value) if isinstance(value, Column) else msgspec.to_builtins(value, enc_hook=repr)
    return _read(plain, folder or Path())


def meant(column: Column) -> dict[str, Any]:
    """All that is declared of a column, and what its hierarchy means: of a tree its paths, not how they are written.

    >>> meant(Column("quasi", type="int"))["role"]
    'quasi'
    """
    plain = declared(column)
    if column.hierarchy is not None:
        try:
            # another tree in the same file would move published cells to other nodes, not to higher ones
            plain["hierarchy"] = column.hierarchy.declared()
        except OSError as error:
            raise _unreadable(error, Path(column.hierarchy.files[0])) from None
    return plain


def meaning(hierarchy: Hierarchy | None) -> str:
    """A short name of what a hierarchy makes of values.

    >>> from shoal.core.hierarchy.prefix import Prefix
    >>> meaning(Prefix(5)) == meaning(Prefix(4))
    False
    """
    return fingerprint(meant(Column("quasi", hierarchy=hierarchy)).get("hierarchy"))


def fingerprint(value: Any) -> str:
    """A short name of plain values.

    >>> fingerprint({"a": 1, "b": 2}) == fingerprint({"b": 2, "a": 1})
    True
    """
    text = msgspec.json.encode(value, order="sorted", enc_hook=repr)
    return hashlib.blake2b(text, digest_size=16, person=b"shoal.definition").hexdigest()


def _read(plain: Any, folder: Path) -> Any:
    if isinstance(plain, list | tuple):
        return [_read(part, folder) for part in plain]
    if not isinstance(plain, dict):
        return plain
    out = {name: _read(part, folder) for name, part in plain.items()}
    for name in _named(out.get("use")):
        if isinstance(out.get(name), str) and out[name]:
            path = folder / out[name]
            try:
                out[name] = hashlib.sha256(path.read_bytes()).hexdigest()[:16]
            except OSError as error:
                raise _unreadable(error, path) from None
    return out


def _named(use: Any) -> tuple[str, ...]:
    """The fields of a spec that name files."""
    if not isinstance(use, str):
        return ()
    own = HIERARCHIES.get(use).file_fields if use in HIERARCHIES.names() else ()
    return tuple(dict.fromkeys((*FILES, *own)))  # each once: a name is replaced by what stands in the file


def _unreadable(error: OSError, path: Path) -> InputError:
    return InputError(f"cannot be read ({error.strerror})", where=str(path))

"""What a policy says, as plain values that two versions of it can be compared by."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import msgspec

from shoal.core.errors import InputError
from shoal.core.schema import Column, declared


def said(value: Any, folder: Path | None = None) -> Any:
    """What a policy says, as plain values; a tree's file is told by what stands in it, not by its name."""
    plain = declared(value) if isinstance(value, Column) else msgspec.to_builtins(value)
    return _read(plain, folder or Path())


def _read(plain: Any, folder: Path) -> Any:
    if isinstance(plain, list | tuple):
        return [_read(part, folder) for part in plain]
    if not isinstance(plain, dict):
        return plain
    out = {name: _read(part, folder) for name, part in plain.items()}
    if out.get("use") == "tree" and out.get("file") is not None:
        try:
            out["file"] = hashlib.sha256((folder / out["file"]).read_bytes()).hexdigest()[:16]
        except OSError as error:
            raise InputError(f"cannot read the tree ({error.strerror})", where=str(folder / out["file"])) from None
    return out

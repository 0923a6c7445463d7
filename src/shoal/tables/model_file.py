"""A model in a file: sealed, numbered, and without a value that was not published (``core/sealed_state.py``)."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import polars as pl

from shoal.core.errors import InputError, UsageError
from shoal.core.hierarchy import HIERARCHIES
from shoal.core.keys import DEFAULT, KeyRing
from shoal.core.schema import Column, Schema
from shoal.core.sealed_state import StateFile
from shoal.promises import PROMISES
from shoal.tables.model import Model

KIND = "model of a release"


class Content(msgspec.Struct, frozen=True):
    """What a model knows."""

    columns: dict[str, Any]
    promises: list[Any]
    types: dict[str, str]
    cells: bytes  # Arrow IPC
    cost: bytes  # float64
    rows: bytes  # Arrow IPC
    key: bytes


def model_file(path: Path, keys: KeyRing) -> StateFile:
    """The sealed file of a model.

    >>> model_file(Path("staff.model"), KeyRing({"default": {1: bytes(32)}})).path.name
    'staff.model'
    """
    if DEFAULT not in keys.keys:
        raise UsageError(
            "a model is kept sealed, and there is no key", where="model", hint="set SHOAL_KEY, see shoal keys"
        )
    return StateFile(path, KIND, keys.derive(DEFAULT, KIND))


def save(model: Model, file: StateFile) -> None:
    """Write a model. Who joined since it was read is in it, too.

    >>> import tempfile, shoal
    >>> release = shoal.anonymize(pl.DataFrame({"age": [20, 29, 50, 58]}), quasi=["age"], k=2, method="mondrian")
    >>> file = model_file(Path(tempfile.mkdtemp()) / "staff.model", KeyRing({"default": {1: bytes(32)}}))
    >>> save(release.model, file)
    >>> load(file).apply(pl.DataFrame({"age": [25]}))[0].rows()
    [('[20, 29]',)]
    """
    columns = {name: _plain(name, column) for name, column in model.schema.columns.items()}
    content = Content(
        columns,
        [msgspec.to_builtins(promise) for promise in model.promises],
        dict(model.types),
        _ipc(model.cells),
        model.cost.astype(np.float64).tobytes(),
        _ipc(model.rows),
        model.key,
    )
    file.write(msgspec.msgpack.encode(content))


def load(file: StateFile) -> Model:
    """Read a model; see :func:`save`."""
    found = file.read()
    if found is None:
        raise InputError("there is no such model", where=str(file.path), hint="shoal anonymize --save-model writes one")
    try:
        content = msgspec.msgpack.decode(found, type=Content)
    except (msgspec.MsgspecError, ValueError):
        raise InputError("this is not a model, or it was cut off", where=str(file.path)) from None
    columns = {}
    for name, plain in content.columns.items():
        hierarchy = plain.pop("hierarchy", None)
        made = msgspec.convert(plain, Column)
        decoded = None if hierarchy is None else HIERARCHIES.decode(hierarchy, f"column {name!r}")
        columns[name] = msgspec.structs.replace(made, hierarchy=decoded)
    return Model(
        Schema(columns),
        pl.read_ipc(io.BytesIO(content.cells)),
        np.frombuffer(content.cost, np.float64),
        tuple(PROMISES.decode(promise) for promise in content.promises),
        pl.read_ipc(io.BytesIO(content.rows)),
        content.types,
        content.key,
    )


def _plain(name: str, column: Column) -> dict[str, Any]:
    try:
        plain: dict[str, Any] = msgspec.to_builtins(column)
    except (TypeError, NotImplementedError):
        raise UsageError(
            "a function cannot be written down", where=f"column {name!r}", hint="declare the hierarchy by its name"
        ) from None
    return {key: value for key, value in plain.items() if value is not None}


def _ipc(frame: pl.DataFrame) -> bytes:
    out = io.BytesIO()
    frame.write_ipc(out)
    return out.getvalue()

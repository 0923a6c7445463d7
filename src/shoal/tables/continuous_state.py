"""The state of continuous mode in a file: MessagePack, sealed wherever there is a key (``core/sealed_state.py``)."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import msgspec
import numpy as np
import polars as pl

from shoal.core.errors import InputError, UsageError
from shoal.core.said import meant
from shoal.core.schema import Schema
from shoal.core.sealed_state import StateFile
from shoal.promises.base import Promise
from shoal.tables.base import TableMethod
from shoal.tables.continuous import Continuous
from shoal.tables.growing import Cells, Growing

KIND = "continuous mode"
VERSION = 2


class Column(msgspec.Struct, frozen=True):
    """The published cells of one column."""

    values: bytes  # Arrow IPC
    leaf: bytes  # int32
    level: bytes  # int8


class Content(msgspec.Struct, frozen=True):
    """Everything that is needed to go on, and the declarations it was made for."""

    declared: str  # fingerprint of schema, promises and mode
    chunks: int
    pending: bytes | None
    released: bytes | None
    rest: bytes | None
    columns: dict[str, Column]


def state_file(path: Path, key: bytes | None = None) -> StateFile:
    """The file a growing table is kept in; with a key it is sealed, and refused if it is not.

    >>> state_file(Path("staff.state"), None).path.name
    'staff.state'
    """
    return StateFile(path, KIND, key, version=VERSION)


def save(continuous: Continuous, file: StateFile) -> None:
    """Write the state. Held rows and subjects are kept whole, so with them a file under a key is needed.

    >>> from tempfile import TemporaryDirectory
    >>> from shoal.promises.k_anonymity import KAnonymity
    >>> schema, promises = Schema.build(quasi={"age": None}), [KAnonymity(2)]
    >>> with TemporaryDirectory() as folder:
    ...     file = state_file(Path(folder, "staff.state"), bytes(32))
    ...     save(Continuous(schema, promises), file)
    ...     load(file, schema, promises).chunks
    0
    """
    whole = continuous.growing
    if not file.seals and (continuous.pending is not None or continuous.schema.subject is not None):
        raise UsageError(
            "this state holds rows or people that were not published: it is written only under a key",
            where=str(file.path),
            hint="set SHOAL_KEY, or make one: shoal keys new default --ring keys.json",
        )
    content = Content(
        _declared(continuous),
        continuous.chunks,
        _bytes(continuous.pending),
        _bytes(continuous.released),
        None if whole is None else _bytes(whole.rest),
        {}
        if whole is None
        else {
            name: Column(_bytes(c.values.to_frame("v")) or b"", c.leaf.astype("<i4").tobytes(), c.level.tobytes())
            for name, c in whole.cells.items()
        },
    )
    file.write(msgspec.msgpack.encode(content))


def load(
    file: StateFile,
    schema: Schema,
    promises: Sequence[Promise],
    method: TableMethod | None = None,
    *,
    publish: Literal["whole", "new"] = "whole",
) -> Continuous:
    """Go on where the state was written, or begin; schema, promises and mode must be the same.

    >>> from shoal.promises.k_anonymity import KAnonymity
    >>> load(state_file(Path("no/such.state"), None), Schema.build(quasi={"age": None}), [KAnonymity(2)]).chunks
    0
    """
    continuous = Continuous(schema, promises, method, publish=publish)
    inside = file.read()
    if inside is None:
        return continuous
    try:
        content = msgspec.msgpack.decode(inside, type=Content)
    except (msgspec.MsgspecError, ValueError):  # without a seal anything may stand there
        raise InputError("this is not a state of continuous mode", where=str(file.path)) from None
    if content.declared != _declared(continuous):
        raise UsageError(
            "the state was made with another schema, other promises or another mode",
            where=str(file.path),
            hint="use what it was made with, or start anew with another file",
        )
    continuous.chunks = content.chunks
    continuous.pending = _frame(content.pending)
    continuous.released = _frame(content.released)
    if content.rest is not None:
        cells = {
            name: Cells(
                pl.read_ipc(io.BytesIO(c.values))["v"],
                np.frombuffer(c.leaf, "<i4").astype(np.int32),
                np.frombuffer(c.level, np.int8).copy(),
            )
            for name, c in content.columns.items()
        }
        continuous.growing = Growing(schema, cells, _frame(content.rest))
    return continuous


def _declared(continuous: Continuous) -> str:
    columns = {n: meant(c) for n, c in continuous.schema.columns.items()}
    asked = [msgspec.to_builtins(p) for p in continuous.promises]
    text = msgspec.json.encode([columns, asked, continuous.publish], order="deterministic")
    return hashlib.blake2b(text, digest_size=16).hexdigest()


def _bytes(frame: pl.DataFrame | None) -> bytes | None:
    if frame is None:
        return None
    out = io.BytesIO()
    frame.write_ipc(out)
    return out.getvalue()


def _frame(data: bytes | None) -> pl.DataFrame | None:
    return None if data is None else pl.read_ipc(io.BytesIO(data))

"""The state of continuous mode in a file: MessagePack, sealed wherever it holds what must not be read."""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np
import polars as pl

from shoal.core.errors import InputError, OutputError, UsageError
from shoal.core.hierarchy.tree import Tree
from shoal.core.schema import Schema
from shoal.promises.base import Promise
from shoal.tables.base import TableMethod
from shoal.tables.continuous import Continuous
from shoal.tables.growing import Cells, Growing

VERSION = 1
FORMAT = "shoal-continuous"


class Column(msgspec.Struct, frozen=True):
    """The published cells of one column."""

    values: bytes  # Arrow IPC
    leaf: bytes  # int32
    level: bytes  # int8


class Content(msgspec.Struct, frozen=True):
    """Everything that is needed to go on."""

    chunks: int
    pending: bytes | None
    released: bytes | None
    rest: bytes | None
    columns: dict[str, Column]


class State(msgspec.Struct, frozen=True):
    """The outside: what it is, for which declarations it was made, and the content, sealed or not."""

    format: str
    version: int
    declared: str  # fingerprint of schema, promises and mode
    sealed: bool
    content: bytes


def save(continuous: Continuous, path: Path, key: bytes | None = None) -> None:
    """Write the state beside and rename. Held rows and subjects are kept whole, so with them a ``key`` is needed."""
    whole = continuous.growing
    if key is None and (continuous.pending is not None or continuous.schema.subject is not None):
        raise UsageError(
            "this state holds rows or people that were not published: it is written only under a key",
            where=str(path),
            hint="set SHOAL_KEY, or make one: shoal keys new default --ring keys.json",
        )
    content = Content(
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
    inside = msgspec.msgpack.encode(content)
    declared = _declared(continuous)
    sealed = inside if key is None else _cipher(key).encrypt(inside, [declared.encode()])
    state = State(FORMAT, VERSION, declared, key is not None, sealed)
    beside = path.with_name(path.name + ".new")
    try:
        with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as out:
            out.write(msgspec.msgpack.encode(state))
            out.flush()
            os.fsync(out.fileno())
        beside.replace(path)
    except OSError as error:
        raise OutputError(f"cannot write the state ({error.strerror})", where=str(path)) from None


def load(
    path: Path,
    schema: Schema,
    promises: Sequence[Promise],
    method: TableMethod | None = None,
    *,
    publish: Literal["whole", "new"] = "whole",
    key: bytes | None = None,
) -> Continuous:
    """Go on where the state was written; schema, promises and mode must be the same."""
    continuous = Continuous(schema, promises, method, publish=publish)
    try:
        state = msgspec.msgpack.decode(path.read_bytes(), type=State)
    except OSError as error:
        raise InputError(f"cannot read the state ({error.strerror})", where=str(path)) from None
    except msgspec.MsgspecError:
        raise InputError("this is not a state of continuous mode, or it was cut off", where=str(path)) from None
    if (state.format, state.version) != (FORMAT, VERSION):
        raise InputError(f"expected version {VERSION} of {FORMAT}, found another", where=str(path))
    if state.declared != _declared(continuous):
        raise UsageError(
            "the state was made with another schema, other promises or another mode",
            where=str(path),
            hint="use what it was made with, or start anew with another file",
        )
    content = msgspec.msgpack.decode(_open(state, key, path), type=Content)
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


def _open(state: State, key: bytes | None, path: Path) -> bytes:
    from cryptography.exceptions import InvalidTag

    if not state.sealed:
        return state.content
    if key is None:
        raise UsageError("the state is sealed", where=str(path), hint="give the key it was written with")
    try:
        opened: bytes = _cipher(key).decrypt(state.content, [state.declared.encode()])
    except InvalidTag:
        raise InputError("the state cannot be opened with this key, or was changed", where=str(path)) from None
    return opened


def _declared(continuous: Continuous) -> str:
    columns = {n: msgspec.to_builtins(c, enc_hook=repr) for n, c in continuous.schema.columns.items()}
    for name, column in continuous.schema.columns.items():
        if isinstance(column.hierarchy, Tree) and column.hierarchy.file is not None:
            # another tree in the same file would move published cells to other nodes, not to higher ones
            columns[name]["hierarchy"]["file"] = list(column.hierarchy.paths().items())
    asked = [msgspec.to_builtins(p) for p in continuous.promises]
    text = msgspec.json.encode([columns, asked, continuous.publish], order="deterministic")
    return hashlib.blake2b(text, digest_size=16).hexdigest()


def _cipher(key: bytes) -> Any:
    from cryptography.hazmat.primitives.ciphers.aead import AESSIV

    return AESSIV(hashlib.blake2b(b"continuous", key=key[:64], digest_size=64, person=b"shoal.seal").digest())


def _bytes(frame: pl.DataFrame | None) -> bytes | None:
    if frame is None:
        return None
    out = io.BytesIO()
    frame.write_ipc(out)
    return out.getvalue()


def _frame(data: bytes | None) -> pl.DataFrame | None:
    return None if data is None else pl.read_ipc(io.BytesIO(data))

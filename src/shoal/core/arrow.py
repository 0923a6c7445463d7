"""Columns of texts handed to polars, and read from it, as they lie in memory, by the Arrow C interfaces.

Made one by one, texts cost more than reading the lines they stand in; asked by an expression, polars plans for longer
than it takes to read a few thousand of them. Nothing is checked here: the bytes must be UTF-8.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.kernels.compile import PLAIN
from shoal.kernels.shared.address import handle_at
from shoal.kernels.shared.gather import gathered
from shoal.kernels.shared.views import SHORT, SLACK, from_views, to_views

LARGE_TEXT = b"U"  # UTF-8 with 64-bit offsets
VIEWS = b"vu"  # UTF-8 behind views of 16 bytes
VIEW = 16  # bytes of a view
FEW = 256  # fewer texts are read by expressions, so that nothing is compiled for them
MOST = 1 << 30  # bytes behind views, whose places have 32 bits
NULLABLE = 2


class _Schema(ctypes.Structure):
    pass


class _Array(ctypes.Structure):
    pass


class _Stream(ctypes.Structure):
    pass


_ReleaseSchema = ctypes.CFUNCTYPE(None, ctypes.POINTER(_Schema))
_ReleaseArray = ctypes.CFUNCTYPE(None, ctypes.POINTER(_Array))
_Schema._fields_ = [
    ("format", ctypes.c_char_p),
    ("name", ctypes.c_char_p),
    ("metadata", ctypes.c_char_p),
    ("flags", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("children", ctypes.c_void_p),
    ("dictionary", ctypes.c_void_p),
    ("release", _ReleaseSchema),
    ("private_data", ctypes.c_void_p),
]
_Array._fields_ = [
    ("length", ctypes.c_int64),
    ("null_count", ctypes.c_int64),
    ("offset", ctypes.c_int64),
    ("n_buffers", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.c_void_p),
    ("dictionary", ctypes.c_void_p),
    ("release", _ReleaseArray),
    ("private_data", ctypes.c_void_p),
]
_Stream._fields_ = [
    ("get_schema", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(_Stream), ctypes.POINTER(_Schema))),
    ("get_next", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(_Stream), ctypes.POINTER(_Array))),
    ("get_last_error", ctypes.c_void_p),
    ("release", ctypes.c_void_p),  # by the capsule, when nobody has it any more
    ("private_data", ctypes.c_void_p),
]
_content = ctypes.pythonapi.PyCapsule_GetPointer
_content.restype = ctypes.c_void_p
_content.argtypes = [ctypes.py_object, ctypes.c_char_p]
_capsule = ctypes.pythonapi.PyCapsule_New
_capsule.restype = ctypes.py_object
_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_held: dict[int, tuple[Any, ...]] = {}  # what polars still reads, by the address of its array


_NO_SCHEMA, _NO_ARRAY = _ReleaseSchema(0), _ReleaseArray(0)


# what they need is bound to them: when Python ends, the names of a module are gone before its last series
@_ReleaseSchema  # type: ignore[untyped-decorator]
def _release_schema(schema: Any, ended: Any = _NO_SCHEMA) -> None:
    schema.contents.release = ended


@_ReleaseArray  # type: ignore[untyped-decorator]
def _release_array(array: Any, held: dict[int, tuple[Any, ...]] = _held, ended: Any = _NO_ARRAY) -> None:
    array.contents.release = ended
    held.pop(array.contents.private_data, None)


# and they themselves stay
for _lasting in (_release_schema, _release_array, _held):
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(_lasting))


class _Texts:
    """One column, for whoever asks for it by the protocol. A part that is None is a buffer that is not there."""

    def __init__(self, form: bytes, size: int, valid: NDArray[np.uint8] | None, *parts: NDArray[Any]) -> None:
        self._form, self._size, self._parts = form, size, (valid, *parts)

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        schema = _Schema(self._form, b"", None, NULLABLE, 0, None, None, _release_schema, None)
        buffers = (ctypes.c_void_p * len(self._parts))(
            *(part.ctypes.data if part is not None else None for part in self._parts)
        )
        array = _Array()
        array.length, array.null_count, array.offset = self._size, -1 if self._parts[0] is not None else 0, 0
        array.n_buffers, array.n_children, array.buffers = len(self._parts), 0, buffers
        array.release, array.private_data = _release_array, ctypes.addressof(array)
        _held[ctypes.addressof(array)] = (*self._parts, buffers, array)
        self._schema = schema  # it is read at once
        return (
            _capsule(ctypes.addressof(schema), b"arrow_schema", None),
            _capsule(ctypes.addressof(array), b"arrow_array", None),
        )


def texts(data: NDArray[np.uint8], offsets: NDArray[np.int64], valid: NDArray[np.bool_] | None = None) -> pl.Series:
    """The texts ``data[offsets[i] : offsets[i + 1]]``, null where not ``valid``.

    >>> texts(np.frombuffer(b"adabob", np.uint8), np.array([0, 3, 6])).to_list()
    ['ada', 'bob']
    """
    bits = None if valid is None else np.packbits(valid, bitorder="little")
    return pl.Series(_Texts(LARGE_TEXT, len(offsets) - 1, bits, offsets, data))


def pieces(data: NDArray[np.uint8], starts: NDArray[np.int64], lengths: NDArray[np.int64]) -> pl.Series:
    """The texts ``data[starts[i] : starts[i] + lengths[i]]`` in memory of their own, null where a length is below 0.

    >>> pieces(np.frombuffer(b"a.b.c", np.uint8), np.array([0, 2, 0]), np.array([1, 3, -1])).to_list()
    ['a', 'b.c', None]
    """
    valid = lengths >= 0
    whole = bool(valid.all())
    longer = lengths[lengths > SHORT]
    room = int(longer.sum())
    if PLAIN or room > MOST:
        offsets = np.zeros(len(starts) + 1, np.int64)
        out = np.empty(max(int((lengths if whole else lengths[valid]).sum()), 1), np.uint8)
        gathered(data, starts, lengths, offsets, out)
        return texts(out, offsets, None if whole else valid)
    views, behind = np.empty(2 * len(starts), np.int64), np.empty(max(room, 1), np.uint8)
    to_views(data, starts, lengths, views, behind)
    bits = None if whole else np.packbits(valid, bitorder="little")
    long = (behind, np.array([room], np.int64)) if room else (np.zeros(1, np.int64),)
    return pl.Series(_Texts(VIEWS, len(starts), bits, views, *long))


class Views:
    """The texts of a column where polars keeps them, for kernels that read them there; valid while this lives.

    >>> Views.of(pl.Series(["ab", None])).lengths.tolist()
    [2, -1]
    """

    def __init__(self, array: Any) -> None:
        self._array = array
        size, offset, behind = array.length, array.offset, array.n_buffers - 3  # buffers that long texts stand in
        address = array.buffers[1] + VIEW * offset
        views = np.frombuffer((ctypes.c_char * (VIEW * size)).from_address(address), np.int32).reshape(size, 4)
        self.lengths = views[:, 0].astype(np.int64)
        if array.buffers[0]:
            bits = (ctypes.c_char * ((offset + size + 7) // 8)).from_address(array.buffers[0])
            valid = np.unpackbits(np.frombuffer(bits, np.uint8), count=offset + size, bitorder="little")[offset:]
            self.lengths[valid == 0] = -1
        sizes = (ctypes.c_int64 * behind).from_address(array.buffers[behind + 2]) if behind else ()
        places = [(address, VIEW * size), *((array.buffers[2 + at] or 0, sizes[at]) for at in range(behind))]
        self._handle = handle_at(places)
        self.handle: int = self._handle.ctypes.data

    def __del__(self) -> None:
        self._array.release(ctypes.byref(self._array))

    @staticmethod
    def of(series: pl.Series) -> Views | None:
        """The views of a column; nothing where it has none, or where kernels are not compiled."""
        if PLAIN or not len(series):
            return None
        series = series.rechunk()
        capsule = series.__arrow_c_stream__()
        stream = _Stream.from_address(_content(capsule, b"arrow_array_stream"))
        schema, array = _Schema(), _Array()
        if stream.get_schema(ctypes.byref(stream), ctypes.byref(schema)):
            return None
        form = schema.format
        schema.release(ctypes.byref(schema))
        if form != VIEWS or stream.get_next(ctypes.byref(stream), ctypes.byref(array)) or not array.release:
            return None
        found = Views(array)
        return found if array.length == len(series) else None


def raw_texts(series: pl.Series) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]:
    """The bytes of a column of texts, where each begins, and how long it is, -1 where it is missing.

    >>> data, starts, lengths = raw_texts(pl.Series(["ab", None, "c"]))
    >>> data[:3].tobytes(), starts.tolist(), lengths.tolist()
    (b'abc', [0, 2, 2], [2, -1, 1])
    """
    views = Views.of(series) if len(series) >= FEW else None
    if views is not None:
        there = np.maximum(views.lengths, 0)
        starts = np.cumsum(there)
        out = np.empty(int(starts[-1]) + SLACK, np.uint8)
        starts -= there
        from_views(views.handle, starts, views.lengths, out)
        return out, starts, views.lengths
    missing = series.is_null() if series.null_count() else None
    sizes = series.str.len_bytes()
    lengths = (sizes if missing is None else sizes.fill_null(0)).to_numpy().astype(np.int64)
    joined = series.str.join("").cast(pl.Binary).item() if len(series) else b""  # as bytes: nothing is decoded
    data = np.frombuffer(joined or b"\0", np.uint8)
    starts = np.cumsum(lengths) - lengths
    return data, starts, lengths if missing is None else np.where(missing.to_numpy(), -1, lengths)

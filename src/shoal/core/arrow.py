"""Columns of texts handed to polars as they lie in memory, by the Arrow C data interface.

Made one by one, texts cost more than reading the lines they stand in. Nothing is copied here, and nothing is checked:
the bytes must be UTF-8.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.kernels.shared.gather import gathered

LARGE_TEXT = b"U"  # UTF-8 with 64-bit offsets
NULLABLE = 2


class _Schema(ctypes.Structure):
    pass


class _Array(ctypes.Structure):
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
    """One column, for whoever asks for it by the protocol."""

    def __init__(self, data: NDArray[np.uint8], offsets: NDArray[np.int64], valid: NDArray[np.uint8] | None) -> None:
        self._parts = (data, offsets, valid)

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        data, offsets, valid = self._parts
        schema = _Schema(LARGE_TEXT, b"", None, NULLABLE, 0, None, None, _release_schema, None)
        buffers = (ctypes.c_void_p * 3)(
            valid.ctypes.data if valid is not None else None, offsets.ctypes.data, data.ctypes.data
        )
        array = _Array()
        array.length, array.null_count, array.offset = len(offsets) - 1, -1 if valid is not None else 0, 0
        array.n_buffers, array.n_children, array.buffers = 3, 0, buffers
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
    return pl.Series(_Texts(data, offsets, bits))


def pieces(data: NDArray[np.uint8], starts: NDArray[np.int64], lengths: NDArray[np.int64]) -> pl.Series:
    """The texts ``data[starts[i] : starts[i] + lengths[i]]`` in memory of their own, null where a length is below 0.

    >>> pieces(np.frombuffer(b"a.b.c", np.uint8), np.array([0, 2, 0]), np.array([1, 3, -1])).to_list()
    ['a', 'b.c', None]
    """
    valid = lengths >= 0
    whole = bool(valid.all())
    offsets = np.zeros(len(starts) + 1, np.int64)
    out = np.empty(max(int((lengths if whole else lengths[valid]).sum()), 1), np.uint8)
    gathered(data, starts, lengths, offsets, out)
    return texts(out, offsets, None if whole else valid)

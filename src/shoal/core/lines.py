"""Values of many records in one buffer: chosen and put in order without an object for each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.kernels.shared.gather import gathered

Bytes = NDArray[np.uint8]
Numbers = NDArray[np.int64]
FEW = 32  # values that are copied one by one, so that nothing is compiled for them
LARGE = 4096  # bytes of a value: the whole buffer is not copied to cut such from it
NEWLINE = 10
NONE = -1  # the length of a value that is none: it takes no room


class Lines(Sequence[Any]):
    """Values in one buffer, each with a line end behind it; they may have line ends inside, too, or be none.

    >>> some = Lines.of([b"ab", b"", None, b"c"])
    >>> some.take(np.array([3, 2, 0])).packed().data.tobytes(), list(some)
    (b'c\\nab\\n', [b'ab', b'', None, b'c'])
    """

    __slots__ = ("data", "lengths", "starts", "whole")

    def __init__(self, data: Bytes, starts: Numbers, lengths: Numbers, *, whole: bool = False) -> None:
        self.data, self.starts, self.lengths = data, starts, lengths
        self.whole = whole  # the buffer holds these alone, in this order

    @classmethod
    def of(cls, values: Sequence[bytes | None]) -> Lines:
        """Values in a buffer, if they are not yet."""
        if isinstance(values, Lines):
            return values
        lengths = np.fromiter((NONE if v is None else len(v) for v in values), np.int64, len(values))
        return cls.behind(np.frombuffer(b"\n".join([*(v for v in values if v is not None), b""]), np.uint8), lengths)

    @classmethod
    def nothing(cls, count: int) -> Lines:
        """So many that are none.

        >>> list(Lines.nothing(2))
        [None, None]
        """
        return cls(NO_BYTES, np.zeros(count, np.int64), np.full(count, NONE), whole=True)

    @classmethod
    def parted(cls, buffer: Bytes, lengths: Numbers) -> Lines:
        """The values of these lengths in a buffer; ``ValueError`` if they do not fit it."""
        ends = np.cumsum(lengths + 1)
        fits = (lengths >= 0).all() and (int(ends[-1]) if len(ends) else 0) == len(buffer)
        if not fits or (buffer[ends - 1] != NEWLINE).any():
            raise ValueError("lengths and values do not agree")
        return cls.behind(buffer, lengths)

    @classmethod
    def split(cls, text: bytes) -> Lines:
        """The lines of a text, all of which have their ends.

        >>> list(Lines.split(b"ab\\n\\nc\\n"))
        [b'ab', b'', b'c']
        """
        buffer = np.frombuffer(text, np.uint8)
        return cls.behind(buffer, np.diff(np.flatnonzero(buffer == NEWLINE), prepend=-1) - 1)

    @classmethod
    def joined(cls, parts: Sequence[Lines]) -> Lines:
        """One after the other."""
        if len(parts) == 1:
            return parts[0]
        lengths = np.concatenate([NOTHING, *(part.lengths for part in parts)])
        data, begin = np.empty(int(lengths.sum()) + len(lengths), np.uint8), 0
        for part in parts:
            begin += part.copy_to(data[begin:])
        return cls.behind(data, lengths)

    @classmethod
    def behind(cls, buffer: Bytes, lengths: Numbers) -> Lines:
        """Values of these lengths, one behind the other."""
        return cls(buffer, np.cumsum(lengths + 1) - lengths - 1, lengths, whole=True)

    def __len__(self) -> int:
        return len(self.starts)

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice):
            return self.take(at)
        start, length = int(self.starts[at]), int(self.lengths[at])
        return None if length < 0 else self.data[start : start + length].tobytes()

    def __iter__(self) -> Iterator[Any]:
        if len(self) < FEW or len(self.data) > LARGE * len(self):
            return map(self.__getitem__, range(len(self)))
        raw = self.data.tobytes()
        places = zip(self.starts.tolist(), (self.starts + self.lengths).tolist(), strict=True)
        return (raw[start:end] if end >= start else None for start, end in places)

    def __eq__(self, other: object) -> bool:
        return list(self) == list(other) if isinstance(other, (Lines, list)) else NotImplemented

    __hash__ = None  # type: ignore[assignment]  # as of a list

    @property
    def full(self) -> NDArray[np.bool_]:
        """Which of them are values."""
        return self.lengths >= 0

    @property
    def longest(self) -> int:
        """The length of the longest value.

        >>> Lines.of([b"ab", b"c"]).longest, Lines.of([]).longest
        (2, 0)
        """
        return int(self.lengths.max(initial=0))

    def take(self, at: slice | Numbers) -> Lines:
        """Some of them, in the same buffer."""
        return Lines(self.data, self.starts[at], self.lengths[at])

    def packed(self) -> Lines:
        """In a buffer that holds these alone, in this order."""
        if self.whole:
            return self
        data = np.empty(int(self.lengths.sum()) + len(self), np.uint8)
        self.copy_to(data)
        return Lines.behind(data, self.lengths)

    def copy_to(self, data: Bytes) -> int:
        """Write them to the begin of a buffer, in this order; how many bytes that are."""
        size = int(self.lengths.sum()) + len(self)
        if self.whole:
            data[:size] = self.data
        elif len(self) < FEW:
            data[:size] = Lines.of(list(self)).data
        else:
            gathered(self.data, self.starts, self.lengths + 1, np.zeros(len(self) + 1, np.int64), data)
        return size


NOTHING = np.zeros(0, np.int64)
NO_BYTES = np.zeros(0, np.uint8)

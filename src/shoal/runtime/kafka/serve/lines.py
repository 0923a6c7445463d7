"""Values of many records in one buffer: chosen and put in order without an object for each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.kernels.shared.gather import gathered

Numbers = NDArray[np.int64]
FEW = 32  # values that are copied one by one, so that nothing is compiled for them
NEWLINE = 10


class Lines(Sequence[bytes]):
    """Values in one buffer, each with a line end behind it; they may have line ends inside, too.

    >>> some = Lines.of([b"ab", b"", b"c"])
    >>> some.take(np.array([2, 0])).packed().data.tobytes(), list(some)
    (b'c\\nab\\n', [b'ab', b'', b'c'])
    """

    __slots__ = ("data", "lengths", "starts", "whole")

    def __init__(self, data: NDArray[np.uint8], starts: Numbers, lengths: Numbers, *, whole: bool = False) -> None:
        self.data, self.starts, self.lengths = data, starts, lengths
        self.whole = whole  # the buffer holds these alone, in this order

    @classmethod
    def of(cls, values: Sequence[bytes]) -> Lines:
        """Values in a buffer, if they are not yet."""
        if isinstance(values, Lines):
            return values
        return cls.parted(joined_lines(values), np.fromiter(map(len, values), np.int64, len(values)))

    @classmethod
    def parted(cls, buffer: NDArray[np.uint8], lengths: Numbers) -> Lines:
        """The values of these lengths in a buffer; ``ValueError`` if they do not fit it."""
        ends = np.cumsum(lengths + 1)
        fits = (lengths >= 0).all() and (int(ends[-1]) if len(ends) else 0) == len(buffer)
        if not fits or (buffer[ends - 1] != NEWLINE).any():
            raise ValueError("lengths and values do not agree")
        return cls(buffer, ends - lengths - 1, lengths, whole=True)

    @classmethod
    def joined(cls, parts: Sequence[Lines]) -> Lines:
        """One after the other."""
        if len(parts) == 1:
            return parts[0]
        lengths = np.concatenate([NOTHING, *(part.lengths for part in parts)])
        data = np.concatenate([NOTHING.astype(np.uint8), *(part.packed().data for part in parts)])
        return cls(data, np.cumsum(lengths + 1) - lengths - 1, lengths, whole=True)

    def __len__(self) -> int:
        return len(self.starts)

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice):
            return self.take(at)
        start = int(self.starts[at])
        return self.data[start : start + int(self.lengths[at])].tobytes()

    def __iter__(self) -> Iterator[bytes]:
        raw = self.data.tobytes()
        places = zip(self.starts.tolist(), (self.starts + self.lengths).tolist(), strict=True)
        return (raw[start:end] for start, end in places)

    def take(self, at: slice | Numbers) -> Lines:
        """Some of them, in the same buffer."""
        return Lines(self.data, self.starts[at], self.lengths[at])

    def packed(self) -> Lines:
        """In a buffer that holds these alone, in this order."""
        if self.whole:
            return self
        ends = np.zeros(len(self) + 1, np.int64)
        if len(self) < FEW:
            data = np.frombuffer(b"".join(value + b"\n" for value in self), np.uint8)
            ends[1:] = np.cumsum(self.lengths + 1)
        else:
            data = np.empty(int(self.lengths.sum()) + len(self), np.uint8)
            gathered(self.data, self.starts, self.lengths + 1, ends, data)
        return Lines(data, ends[:-1], self.lengths, whole=True)


def longest(values: Sequence[bytes]) -> int:
    """The length of the longest value.

    >>> longest(Lines.of([b"ab", b"c"])), longest([])
    (2, 0)
    """
    return int(values.lengths.max(initial=0)) if isinstance(values, Lines) else max(map(len, values), default=0)


def joined_lines(values: Sequence[bytes]) -> NDArray[np.uint8]:
    """Values in a buffer, each with a line end behind it.

    >>> joined_lines([b"ab", b"c"]).tobytes()
    b'ab\\nc\\n'
    """
    return np.frombuffer(b"\n".join([*values, b""]), np.uint8)


NOTHING = np.zeros(0, np.int64)

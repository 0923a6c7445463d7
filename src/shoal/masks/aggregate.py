"""One number for all tuples of a window (Allgöwer 2023, Figure 12)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from shoal.core.schema import Type
from shoal.masks.base import Context, dtype_of, need_number
from shoal.masks.window_mask import RunningWindow, Stretch, WindowMask, finite

if TYPE_CHECKING:
    import polars as pl


class Aggregate(WindowMask, frozen=True, tag="aggregate"):
    """Every value of the window becomes its sum, median, mean, max, min, count or mode.

    Protects against: reading a single value.
    Does not protect against: differences. Two windows that differ by one person (sliding windows do) give away that
    person's value in their sums; ``max`` and ``min`` are always somebody's own value.
    Cost: one pass.

    >>> import polars as pl
    >>> ages = pl.Series([23, 45, 26, 32, 26, 27])
    >>> Aggregate(function="median").start(Context(type="int")).apply(ages, None).to_list()
    [26.5, 26.5, 26.5, 26.5, 26.5, 26.5]
    """

    attack: ClassVar[str] = "differences between overlapping windows; the extreme is one person's value"

    function: Literal["sum", "median", "mean", "max", "min", "count", "mode"] = "mean"

    def output(self, kind: Type | None) -> Type | None:
        """See :class:`Mask`."""
        if self.function == "count":
            return "int"
        if self.function == "mode":
            return kind
        need_number(kind, "aggregate")
        return "float" if self.function in ("mean", "median") else kind or "float"

    def start(self, context: Context) -> RunningWindow:
        """See :class:`Mask`."""
        return _Aggregate(self.output(context.type), self)

    def describe(self) -> str:
        """See :class:`Mask`."""
        return f"{self.function} of the window"


class _Aggregate(RunningWindow):
    def __init__(self, kind: Type | None, spec: Aggregate) -> None:
        super().__init__(kind, spec.k)
        self._function = spec.function

    def apply_all(
        self, values: pl.Series, people: pl.Series | None, windows: Sequence[tuple[int, int]]
    ) -> Iterator[Stretch]:
        """See :class:`RunningWindow`. Where nothing is missing, a window costs its own figure and no query."""
        if values.null_count() or self._function == "mode" or (values.dtype.is_float() and not finite(values).all()):
            yield from super().apply_all(values, people, windows)
            return
        names = people.to_list() if people is not None else None
        at, ones, sizes = 0, [], []
        for _, size in windows:
            if names is None:
                enough = size >= self.k
            else:  # the first few nearly always are enough people
                few = {one for one in names[at : at + min(size, 4 * self.k)] if one is not None}
                enough = len(few) >= self.k or len({*names[at : at + size]} - {None}) >= self.k
            if enough:
                ones.append(size if self._function == "count" else getattr(values.slice(at, size), self._function)())
                sizes.append(size)
            else:
                yield from self._filled(values.name, ones, sizes)
                ones, sizes = [], []
                yield Stretch(1, size, None)
            at += size
        yield from self._filled(values.name, ones, sizes)

    def _filled(self, name: str, ones: list[Any], sizes: list[int]) -> Iterator[Stretch]:
        """Windows, every row with the figure of its own."""
        import numpy as np
        import polars as pl

        if sizes:
            every = pl.Series(name, ones, dtype=dtype_of(self.type))
            yield Stretch(len(sizes), sum(sizes), every.gather(np.repeat(np.arange(len(sizes)), sizes)))

    def mask(self, values: pl.Series, people: pl.Series | None, number: int) -> pl.Series:
        import polars as pl

        # a single infinity or NaN would be the sum or the mean of all
        if values.dtype.is_float():
            known = values.filter(finite(values))
        else:
            known = values.drop_nulls() if values.null_count() else values
        one: Any
        if self._function == "count":
            one = len(known)
        elif self._function == "mode":
            one = known.mode().sort().first()  # of several, the smallest: the same on every machine
        else:
            one = getattr(known, self._function)()
        filled = pl.Series(values.name, [one], dtype=dtype_of(self.type)).new_from_index(0, len(values))
        # what is missing stays missing: a number there would say that something was measured
        return filled if not values.null_count() else filled.set(values.is_null(), None)

"""The mean of k neighbours instead of the value (Allgöwer 2023, Algorithm 1; Hansen and Mukherjee 2003)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from shoal.core.schema import Type
from shoal.masks.base import Context, need_number
from shoal.masks.window_mask import RunningWindow, WindowMask

if TYPE_CHECKING:
    import polars as pl


class Microaggregate(WindowMask, frozen=True, tag="microaggregate"):
    """Groups of at least ``k`` neighbouring values, published as their mean (or median); least squared error.

    Where a person appears more than once, groups are merged until each has ``k`` people.

    Protects against: reading a value closer than its group says; each published number is shared by k people.
    Does not protect against: linking by other columns (only this one is grouped); groups whose values are all equal;
    a person who knows the k-1 others of the group.
    Cost: a sort, then O(kn) at worst; measured in benchmarks/bench_masks.py.
    Reference: Hansen, Mukherjee: A polynomial algorithm for optimal univariate microaggregation, TKDE 2003.

    >>> import polars as pl
    >>> running = Microaggregate(k=2).start(Context(type="float"))
    >>> running.apply(pl.Series([1.0, 9.0, 2.0, 10.0]), None).to_list()
    [1.5, 9.5, 1.5, 9.5]
    """

    attack: ClassVar[str] = "the k-1 others of a group know the last one; equal values stay what they are"

    publish: Literal["mean", "median"] = "mean"

    def output(self, kind: Type | None) -> Type | None:
        """See :class:`Mask`."""
        need_number(kind, "microaggregate")
        return "float"

    def start(self, context: Context) -> RunningWindow:
        """See :class:`Mask`."""
        return _Microaggregate(self.output(context.type), self)

    def describe(self) -> str:
        """See :class:`Mask`."""
        return f"{self.publish} of {self.k} or more neighbours"


class _Microaggregate(RunningWindow):
    def __init__(self, kind: Type | None, spec: Microaggregate) -> None:
        super().__init__(kind, spec.k)
        self._publish = spec.publish

    def mask(self, values: pl.Series, people: pl.Series | None, number: int) -> pl.Series:
        import polars as pl

        from shoal.kernels.shared.microaggregation import microaggregate

        numbers = values.cast(pl.Float64).to_numpy()
        usable = np.isfinite(numbers)
        # stable, so that rows with equal values are grouped alike on every machine
        order = np.flatnonzero(usable)[np.argsort(numbers[usable], kind="stable")]
        labels = microaggregate(np.ascontiguousarray(numbers[order]), self.k)
        # k rows may be fewer than k people
        if people is not None and (people.n_unique() < len(people) or people.null_count()):
            labels = merge_until(labels, people.gather(order).rank("dense").fill_null(0).to_numpy(), self.k)
        grouped = pl.DataFrame({"row": order, "value": numbers[order], "group": labels})
        made = grouped.with_columns(getattr(pl.col("value"), self._publish)().over("group"))
        out = np.full(len(numbers), np.nan)
        out[order] = made["value"].to_numpy()
        return pl.Series(values.name, out, nan_to_null=True)


def merge_until(labels: NDArray[np.int32], people: NDArray[np.uint32], k: int) -> NDArray[np.int32]:
    """Neighbouring groups merged, from the lowest on, until each has k people; what is left joins the last.

    >>> merge_until(np.array([0, 0, 1, 2, 2], np.int32), np.array([1, 2, 3, 4, 5], np.uint32), 2).tolist()
    [0, 0, 1, 1, 1]
    """
    out = np.empty_like(labels)
    start, group = 0, 0
    ends = [*(np.flatnonzero(np.diff(labels)) + 1).tolist(), len(labels)]
    who: set[int] = set()
    begin = 0
    for end in ends:
        who.update(people[begin:end].tolist())
        begin = end
        # 0 is nobody: a row without a subject belongs to a group and does not count
        if len(who - {0}) >= k:
            out[start:end] = group
            start, group, who = end, group + 1, set()
    # the rest is too few to stand alone
    out[start:] = max(group - 1, 0)
    return out

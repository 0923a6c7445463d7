"""What masks of a window share: how many people it needs, and what happens to a smaller one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from shoal.core.errors import UsageError
from shoal.core.schema import Type
from shoal.masks.base import Context, Running, Scope
from shoal.masks.keyed import Keyed
from shoal.masks.windows import AnyWindow, Sliding

if TYPE_CHECKING:
    import polars as pl


class WindowMask(Keyed, frozen=True, kw_only=True):
    """A mask of one attribute over many tuples: over a whole file, or over each ``window`` of a stream.

    A window with fewer than ``k`` people who have a value is withheld: the mean of two is known to both of them.

    >>> from shoal.masks.aggregate import Aggregate
    >>> Aggregate(function="mean", k=3).scope
    'window'
    """

    scope: ClassVar[Scope] = "window"
    repeatable: ClassVar[bool] = False
    slides: ClassVar[bool] = True

    window: AnyWindow | None = None
    k: int = 3

    def __post_init__(self) -> None:
        if self.k < 2:
            raise UsageError("`k` must be at least 2: a window of one hides nobody", where=self.use)
        if isinstance(self.window, Sliding) and not self.slides:
            raise UsageError("this mask cannot slide: a value would be published twice", where=self.use)

    @property
    def keyed(self) -> bool:
        """See :class:`Mask`."""
        return False

    def start(self, context: Context) -> RunningWindow:
        """See :class:`Mask`."""
        raise NotImplementedError


def finite(values: pl.Series) -> pl.Series:
    """Which of some floats are numbers: not null, not infinite, not NaN. By numpy: a window is small, a query is not.

    >>> import polars as pl
    >>> finite(pl.Series([1.0, None, float("nan")])).to_list()
    [True, False, False]
    """
    import numpy as np
    import polars as pl

    return pl.Series(values.name, np.isfinite(values.to_numpy()))


class Stretch(NamedTuple):
    """So many windows with so many rows together, and their masked values, or nothing: withheld.

    >>> Stretch(1, 3, None).rows
    3
    """

    windows: int
    rows: int
    values: pl.Series | None


class RunningWindow(Running):
    """A window mask at work.

    >>> import polars as pl
    >>> class First(RunningWindow):
    ...     def mask(self, values, people, number):
    ...         return pl.repeat(values[0], len(values), eager=True)
    >>> First("float", k=2).apply(pl.Series([4.0, 6.0]), pl.Series(["ada", "ada"])) is None  # one person only
    True
    """

    def __init__(self, kind: Type | None, k: int) -> None:
        super().__init__(kind)
        self.k = k

    def apply(self, values: pl.Series, people: pl.Series | None, number: int = 0) -> pl.Series | None:
        """The masked values of window ``number``, or nothing: withheld. ``people`` says whose values they are."""
        # what is no number is no value: the mean of one number and two that are none is somebody's own
        present = finite(values) if values.dtype.is_float() else values.is_not_null()
        return self.mask(values, people, number) if self._enough(present, people) else None

    def apply_all(
        self, values: pl.Series, people: pl.Series | None, windows: Sequence[tuple[int, int]]
    ) -> Iterator[Stretch]:
        """:meth:`apply` of windows (number, rows) that stand one after the other."""
        at = 0
        for number, size in windows:
            mine = people.slice(at, size) if people is not None else None
            yield Stretch(1, size, self.apply(values.slice(at, size), mine, number))
            at += size

    def _enough(self, present: pl.Series, people: pl.Series | None) -> bool:
        if people is None:
            return int(present.sum()) >= self.k
        who = people.filter(present)
        # the first few nearly always are enough people, and counting all of a small window costs more than masking it
        few = {one for one in who.slice(0, 4 * self.k).to_list() if one is not None}
        return len(few) >= self.k or who.drop_nulls().n_unique() >= self.k

    def mask(self, values: pl.Series, people: pl.Series | None, number: int) -> pl.Series:
        """The masked values of a window with enough people."""
        raise NotImplementedError

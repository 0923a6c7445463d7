"""Numbers change places with others of a near rank (Moore 1996)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from shoal.core.errors import UsageError
from shoal.core.schema import Type
from shoal.masks.base import Context, need_number
from shoal.masks.keyed import digest, fingerprint
from shoal.masks.window_mask import RunningWindow, WindowMask

if TYPE_CHECKING:
    import polars as pl


class RankSwap(WindowMask, frozen=True, tag="rank-swap"):
    """Each number of a window is swapped with one whose rank differs by at most ``within`` (a share of the window).

    All numbers stay, so sums and distributions do; what belongs to whom moves a little. Drawn with the key from what
    stands in the window. :func:`rank_shift` measures how far numbers moved.

    Protects against: reading whose number it is.
    Does not protect against: the numbers themselves; whoever knows a number within a few ranks learns nothing new but
    loses little, and the largest stays among the largest.
    Cost: a sort and one BLAKE2b per number.
    Reference: Moore: Controlled data-swapping techniques for masking public use microdata sets, 1996.

    >>> import polars as pl
    >>> from shoal.core.keys import KeyRing
    >>> mask = RankSwap(k=2, within=0.5).start(Context("pay", "int", keys=KeyRing({"default": {1: bytes(32)}})))
    >>> sorted(mask.apply(pl.Series([1, 2, 3, 4]), None))
    [1, 2, 3, 4]
    """

    slides: ClassVar[bool] = False
    attack: ClassVar[str] = "nearness: the swapped number is still within a few ranks of the true one"

    within: float = 0.05

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.within <= 1:
            raise UsageError("`within` must lie between 0 and 1", where="rank-swap")

    @property
    def keyed(self) -> bool:
        """See :class:`Mask`."""
        return True

    @property
    def near(self) -> bool:
        """See :class:`Mask`."""
        return True

    def output(self, kind: Type | None) -> Type | None:
        """See :class:`Mask`."""
        return need_number(kind, "rank-swap") or "float"

    def start(self, context: Context) -> RunningWindow:
        """See :class:`Mask`."""
        return _RankSwap(self.output(context.type), self, self.derive(context))

    def describe(self) -> str:
        """See :class:`Mask`."""
        return f"swapped within {self.within:.0%} of the ranks"


class _RankSwap(RunningWindow):
    def __init__(self, kind: Type | None, spec: RankSwap, key: bytes) -> None:
        super().__init__(kind, spec.k)
        self._key, self._within = key, spec.within

    def mask(self, values: pl.Series, people: pl.Series | None, number: int) -> pl.Series:
        import polars as pl

        from shoal.masks.base import dtype_of

        numbers = values.to_list()
        whose = people.to_list() if people is not None else []
        # from the content, as in `shuffle`: a replay swaps alike, and no two windows share an order
        content = digest(self._key, [number, len(numbers), *numbers, *whose], 32)
        # ties by their place: the same on every machine
        ranked = sorted((at for at, v in enumerate(numbers) if v is not None), key=lambda at: (numbers[at], at))
        reach = max(1, int(self._within * len(ranked)))
        of = fingerprint(content, 8)
        after = list(range(len(ranked) + 1))  # the next rank that is free, from each on
        for rank, at in enumerate(ranked):
            if after[rank] != rank:
                continue
            after[rank] = rank + 1
            last = min(rank + reach, len(ranked) - 1)
            drawn = rank + 1 + int.from_bytes(of(rank), "big") % max(1, last - rank)
            chosen = _free(after, drawn)
            # all from the drawn one on have been swapped: any other within reach will do
            if chosen > last:
                chosen = _free(after, rank + 1)
            if chosen <= last:
                after[chosen] = chosen + 1
                other = ranked[chosen]
                numbers[at], numbers[other] = numbers[other], numbers[at]
        return pl.Series(values.name, numbers, dtype=dtype_of(self.type))


def _free(after: list[int], rank: int) -> int:
    """The first free rank from one on; the way there is made shorter for who comes next."""
    while after[rank] != rank:
        after[rank] = rank = after[after[rank]]
    return rank


def rank_shift(before: pl.Series, after: pl.Series) -> float:
    """How far numbers moved, in the mean, as a share of all ranks: 0 not at all, a third if shuffled.

    >>> import polars as pl
    >>> rank_shift(pl.Series([1, 2, 3, 4]), pl.Series([2, 1, 4, 3]))
    0.25
    """
    moved = (before.rank() - after.rank()).abs().mean()
    return float(moved or 0.0) / max(1, len(before))  # type: ignore[arg-type]

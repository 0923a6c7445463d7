"""Values change places within a window (Allgöwer 2023, Figure 13)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from shoal.core.schema import Type
from shoal.masks.base import Context
from shoal.masks.keyed import digest, fingerprint
from shoal.masks.window_mask import RunningWindow, WindowMask

if TYPE_CHECKING:
    import polars as pl


class Shuffle(WindowMask, frozen=True, tag="shuffle"):
    """The values of a window in another order, drawn with the key; every column by itself.

    A value may land where it was: an order that forbids this would tell who has which value *not*. The order is drawn
    from what stands in the window, so the same window shuffles the same way whenever it is replayed, and whoever knows
    the order of one window knows nothing of any other, in this file or another.

    Protects against: reading which value belongs to which tuple.
    Does not protect against: the values themselves, which all stay; a value that fits only one tuple finds its way
    home.
    Cost: one BLAKE2b over the window, one per tuple, and a sort.

    >>> import polars as pl
    >>> from shoal.core.keys import KeyRing
    >>> ring = KeyRing({"default": {1: bytes(32)}})
    >>> mask = Shuffle(k=2).start(Context("pay", "int", keys=ring))
    >>> sorted(mask.apply(pl.Series([1, 2, 3]), pl.Series(["a", "b", "c"])))
    [1, 2, 3]
    """

    slides: ClassVar[bool] = False
    attack: ClassVar[str] = "plausibility: a value that fits only one tuple is linked to it again"

    @property
    def keyed(self) -> bool:
        """See :class:`Mask`."""
        return True

    def output(self, kind: Type | None) -> Type | None:
        """See :class:`Mask`."""
        return kind

    def start(self, context: Context) -> RunningWindow:
        """See :class:`Mask`."""
        return _Shuffle(self.output(context.type), self, self.derive(context))

    def describe(self) -> str:
        """See :class:`Mask`."""
        return "shuffled"


class _Shuffle(RunningWindow):
    def __init__(self, kind: Type | None, spec: Shuffle, key: bytes) -> None:
        super().__init__(kind, spec.k)
        self._key = key

    def mask(self, values: pl.Series, people: pl.Series | None, number: int) -> pl.Series:
        # the order comes from the content: a replay shuffles alike, and no two windows share an order
        whose = people.to_list() if people is not None else []
        content = digest(self._key, [number, len(values), *values.to_list(), *whose], 32)
        of = fingerprint(content, 8)
        drawn = [of(at) for at in range(len(values))]
        return values.gather(sorted(range(len(values)), key=drawn.__getitem__))

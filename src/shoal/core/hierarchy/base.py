"""The seam of all hierarchies."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import msgspec

from shoal.core.spec import Spec

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    import polars as pl
    from numpy.typing import NDArray

    from shoal.core.levels import Codes, Levels


Labeller = Callable[[str], "list[str] | None"]


class LabelBytes(NamedTuple):
    """Labels of many values as bytes of one buffer: where each of [value, level] begins and how long it is.

    A size of -1 is no label; -2 in the first level: the value is of an unusual form, ask the labeller.

    >>> LabelBytes._fields
    ('data', 'begins', 'sizes')
    """

    data: NDArray[np.uint8]
    begins: NDArray[np.int64]
    sizes: NDArray[np.int64]


class Hierarchy(Spec, frozen=True):
    """How a value becomes less precise, level by level, until nothing is left of it.

    A subclass says what the distinct values present become: :meth:`compile` returns the levels and the code of
    each value, -1 for a value the hierarchy does not know (its rows are withheld and counted).

    What others need to know about it, it says itself: whether its levels change as values come (:attr:`grows`), which
    of its fields name files (``file_fields``), and, if they are fixed, its :attr:`ends` or its :meth:`leaves`.

    >>> import polars as pl
    >>> from shoal.core.hierarchy.prefix import Prefix
    >>> Prefix(length=5).preview(pl.Series(["10115"])).row(0)
    ('10115', '1011*', '101**', '10***', '1****', '*')
    """

    file_fields: ClassVar[tuple[str, ...]] = ()

    @property
    def grows(self) -> tuple[str, str] | None:
        """Why its levels change when new values come, and what would fix them; nothing if they stay as they are.

        Streams, continuous mode and masks need fixed levels: a value's node must not depend on who else is there.

        >>> from shoal.core.hierarchy.path import Path
        >>> Path().grows
        ('a path as deep as its data has no fixed levels', 'give `depth`')
        >>> Path(depth=3).grows is None
        True
        """
        return None

    def fixed(self, where: str) -> Hierarchy:
        """The hierarchy as it serves values that are still to come; an error if its levels would change with them."""
        if self.grows is not None:
            from shoal.core.errors import UsageError

            why, hint = self.grows
            raise UsageError(why, where=where, hint=hint)
        return self

    @property
    def files(self) -> tuple[str, ...]:
        """The files it reads."""
        named = (getattr(self, name) for name in self.file_fields)
        return tuple(file for file in named if file is not None)

    def beside(self, folder: Path) -> Self:
        """The same with its files named as seen from ``folder``: a policy names them as seen from itself."""
        changed = {name: str(folder / file) for name in self.file_fields if (file := getattr(self, name)) is not None}
        return msgspec.structs.replace(self, **changed) if changed else self

    def declared(self) -> Any:
        """Everything its levels depend on, as plain data: parameters, and what its files say."""
        from pathlib import Path

        plain = msgspec.to_builtins(self, enc_hook=repr)
        return {**plain, **{f: Path(getattr(self, f)).read_text() for f in self.file_fields if plain[f] is not None}}

    @property
    def ends(self) -> tuple[float, float] | None:
        """The lowest and the highest number of its domain, if it is one of numbers and declared."""
        return None

    def leaves(self) -> pl.Series | None:
        """All values it knows, if they are known beforehand."""
        return None

    def doubts(self) -> list[str]:
        """What is allowed but looks wrong."""
        return []

    @property
    def nests(self) -> bool:
        """Whether every node of a level lies in one node of the next. Only z-anonymity can do without."""
        return True

    def called(self, level: int) -> str | None:
        """What a level is called beside its number; nothing where it has no name of its own."""
        return None

    def wider(self, factor: int) -> Hierarchy | None:
        """A hierarchy with one level, so many times as wide as its own widest; nothing where levels have no width."""
        return None

    def readable(self, values: pl.Series) -> pl.Series:
        """The values in the form :meth:`compile` takes, null where one cannot be read: for streams, which go on.

        >>> import polars as pl
        >>> from shoal.core.hierarchy.range import Range
        >>> Range(min=0, max=9).readable(pl.Series(["7", "x", "99"])).to_list()
        [7.0, None, None]
        """
        return values

    def compile(self, values: pl.Series, *, where: str = "hierarchy") -> tuple[Levels, Codes]:
        """Levels over distinct ``values`` (a null may be among them), and each value's code."""
        raise NotImplementedError

    def compile_levels(self, values: pl.Series, *, where: str = "hierarchy") -> tuple[Levels, Codes]:
        """As :meth:`compile`, for z-anonymity, which counts every level for itself: levels need not nest."""
        return self.compile(values, where=where)

    def labeller(self, *, where: str = "hierarchy") -> Labeller | None:
        """A function from a text to its labels at every level below the root, nothing for a value it does not know.

        For values that come one by one: their labels must not depend on other values, and what its files say is read
        now and never again. Nothing if values must be compiled together; the labels are those of
        :meth:`compile_levels`.

        >>> from shoal.core.hierarchy.prefix import Prefix
        >>> Prefix(3).labeller()("101")
        ['101', '10*', '1**']
        """
        return None

    def label_bytes(
        self, data: NDArray[np.uint8], starts: NDArray[np.int64], lengths: NDArray[np.int64], most: int
    ) -> LabelBytes | None:
        """The labeller's first ``most`` labels of many texts, ``data[start : start + length]``, by compiled code.

        Nothing if there is no such code: then the labeller is asked for each.

        >>> import numpy as np
        >>> from shoal.core.hierarchy.prefix import Prefix
        >>> made = Prefix(3).label_bytes(np.frombuffer(b"101", np.uint8), np.array([0]), np.array([3]), 2)
        >>> [bytes(made.data[b : b + n]) for b, n in zip(made.begins[0], made.sizes[0])]
        [b'101', b'10*']
        """
        return None

    def preview(self, values: pl.Series, *, where: str = "hierarchy") -> pl.DataFrame:
        """The label of each value at each level: how it reads when published.

        >>> import polars as pl
        >>> from shoal.core.hierarchy.prefix import Prefix
        >>> Prefix(3).preview(pl.Series(["101", "102", "210"])).rows()
        [('101', '10*', '1**', '*'), ('102', '10*', '1**', '*'), ('210', '21*', '2**', '*')]
        """
        import polars as pl

        levels, _ = self.compile(values.unique(), where=where)
        columns = {f"{at}": levels.labels(at).gather(levels.codes[:, at]) for at in range(levels.depth)}
        return pl.DataFrame(columns)

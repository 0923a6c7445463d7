"""The seam of all promises."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import msgspec

from shoal.core.errors import UsageError
from shoal.core.spec import Spec

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    import polars as pl
    from numpy.typing import NDArray

    from shoal.core.groups import Finding, Groups


About = Literal["groups", "register", "events", "curves"]
Check = Literal[
    "",
    "distinct",
    "entropy",
    "recursive",
    "frequency",
    "alpha",
    "equal",
    "ordered",
    "hierarchical",
    "beta",
    "enhanced-beta",
]


class Rule(msgspec.Struct, frozen=True):
    """What compiled methods check of a group on behalf of a promise.

    At least ``k`` people, and, if there is a ``check``, that one about the sensitive ``column``: a kind of l-diversity
    (``bound`` is l, ``c`` the c of the recursive kind), the share of a value (``bound`` is alpha, ``values`` are those
    it speaks about, all if empty), a distance of t-closeness (``bound`` is t) or the gain of a value (``bound`` is
    beta). A ``complete`` rule says everything the promise asks. One that is not complete says what is necessary:
    methods start from it, and the promise's own :meth:`Promise.measure` decides. What is ``tables_only`` is not kept by
    methods of streams and curves.

    >>> Rule(k=5).complete
    True
    """

    k: int = 1
    check: Check = ""
    column: str = ""
    bound: float = 0.0
    c: float = 0.0
    complete: bool = True
    values: tuple[Any, ...] = ()
    tables_only: bool = False


class Promise(Spec, frozen=True):
    """Something that must hold of every group of a release.

    A subclass defines :meth:`measure`, the definition, and :attr:`asked`. If a higher level is worse (a distance), it
    sets ``higher_is_worse``. A :meth:`rule` is worth writing where the compiled checks can say the same or a part of
    it: table methods then find smaller groups, and stream methods, which accept complete rules only, can keep it.
    Without one, a table method forms its groups for the other promises, and those that break this one are merged with
    their cheapest neighbours until :meth:`measure` accepts all.

    Where every row is a person, promises about groups are closed under union: two groups that keep one also keep it
    together. So a method may always merge, and groups that happen to read alike do no harm. Someone whose rows lie in
    both groups counts once in their union, which may tilt entropy, frequency and distance: there the union is judged.
    A promise of one's own should be closed under union, too (``closed_under_union``): of one that is not, every union
    is judged again, and methods reach it by chance, or with all rows as one group.

    >>> import numpy as np
    >>> from shoal.core.groups import Groups
    >>> class AtMost(Promise, frozen=True, tag="at-most"):
    ...     most: int = 3
    ...     asked = property(lambda self: self.most)
    ...     def measure(self, groups):
    ...         return groups.sizes().astype(float), groups.sizes() <= self.most
    >>> AtMost().judge(Groups(np.array([0, 0, 1], np.int32))).kept
    True
    """

    higher_is_worse: ClassVar[bool] = False
    # what it judges: groups of rows, alone or beside a register of people (k-map, delta-presence), or (z) events beside
    # their original, or (k, P) curves and their patterns
    about: ClassVar[About] = "groups"
    # whether a group is compared with all released rows: then no part of a release can be judged by itself
    compares_with_all: ClassVar[bool] = False
    closed_under_union: ClassVar[bool] = True  # two groups that keep it keep it together
    # whether it speaks about all rows of a person together: then it cannot be judged unless rows say whose they are
    follows_people: ClassVar[bool] = False

    @property
    def title(self) -> str:
        """As a person says it."""
        return self.use

    @property
    def asked(self) -> float:
        """The level that is promised."""
        raise NotImplementedError

    @property
    def sensitive(self) -> str | None:
        """The sensitive column it speaks about, if any."""
        return None

    def rule(self) -> Rule:
        """What compiled methods check; by default nothing but that a group is not empty."""
        return Rule(complete=False)

    def measure(self, groups: Groups) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """The level each group reaches, and whether that is enough: by the definition alone."""
        raise NotImplementedError

    def beside(self, folder: Path) -> Self:
        """The same with its files named as seen from ``folder``: a policy names them as seen from itself."""
        file = getattr(self, "register", "")
        return msgspec.structs.replace(self, register=str(folder / file)) if file else self

    def judge(self, groups: Groups) -> Finding:
        """Judge released groups: the worst of them against what was asked."""
        from shoal.core.groups import Finding

        reached, kept = self.measure(groups)
        broken = int((~kept).sum())
        # the worst group is one that breaks the promise, or else the one nearest to breaking it
        worst = float(reached.max() if self.higher_is_worse else reached.min()) if len(reached) else 0.0
        note = "" if len(reached) else "nothing was released"
        return Finding(self.title, broken == 0, self.asked, worst, groups.count, broken, groups.unit, note)

    def judge_events(self, original: pl.DataFrame, released: pl.DataFrame, **known: Any) -> list[Finding]:
        """Judge a stream beside its original events, if that is what the promise is about."""
        raise NotImplementedError

    def judge_curves(
        self, released: pl.DataFrame, others: Iterable[Promise], **known: Any
    ) -> tuple[list[Finding], int]:
        """Judge curves, and what ``others`` say of them, if the promise is about curves; of how many records it is."""
        raise NotImplementedError


def among(values: pl.Series, named: Iterable[Any]) -> NDArray[np.bool_]:
    """Which of the values are named, however a policy writes them: 1, 1.0 and "1" are the same, and true and "true".

    >>> import polars as pl
    >>> among(pl.Series(["HIV", "flu", None]), ["HIV"]).tolist()
    [True, False, False]
    >>> among(pl.Series([0, 1]), [1.0]).tolist(), among(pl.Series([False, True]), ["true"]).tolist()
    ([False, True], [False, True])
    """
    import numpy as np
    import polars as pl

    whole = values.cast(pl.Int8) if values.dtype == pl.Boolean else values
    if not whole.dtype.is_numeric():
        spelled = {text for value in named for text in _spellings(value)}
        return values.cast(pl.String).is_in(sorted(spelled)).fill_null(False).to_numpy()
    numbers = {number for value in named if (number := _number(value)) is not None}
    there = [value in numbers for value in whole.unique().to_list()]
    if not any(there):
        return np.zeros(len(values), np.bool_)
    return whole.is_in(whole.unique().filter(pl.Series(there)).implode()).fill_null(False).to_numpy()


def unnamed(promises: Iterable[Promise], values: Mapping[str, pl.Series]) -> list[str]:
    """A warning per promise that names values which nobody has, or an error where it names no others.

    >>> import polars as pl
    >>> from shoal.promises.alpha_k_anonymity import AlphaKAnonymity
    >>> unnamed([AlphaKAnonymity(0.5, 2, "diag", values=("HIV", "hiv"))], {"diag": pl.Series(["HIV", "flu"])})
    ['(0.5, 2)-anonymity of diag: the value that is named at place 2 does not occur, so it protects nobody']
    """
    told = []
    for promise in promises:
        named = promise.rule().values
        there = values.get(promise.sensitive or "")
        if not named or there is None:
            continue
        absent = [at for at, value in enumerate(named, 1) if not among(there, [value]).any()]
        if len(absent) == len(named):
            raise UsageError(
                "none of the values that are named occurs in the column: nobody would be protected",
                where=promise.title,
                hint="write them as the column does; leave the promise out if nobody has them",
            )
        told += [
            f"{promise.title}: the value that is named at place {at} does not occur, so it protects nobody"
            for at in absent
        ]
    return told


def _number(value: Any) -> float | int | None:
    """The number that is meant, if one is: true is 1, as tables write it."""
    text = str(value).strip()
    if text.lower() in ("true", "false"):
        return int(text.lower() == "true")
    for kind in (int, float):  # whole numbers first: large ones are no floats
        try:
            return kind(text)
        except ValueError:
            continue
    return None


def _spellings(value: Any) -> set[str]:
    """How a text column may write a value: a file has 1 for the 1.0 of a policy, and true for its True."""
    if isinstance(value, bool):
        return {str(value), str(value).lower()}
    if isinstance(value, float) and value.is_integer():
        return {str(value), str(int(value))}
    return {str(value)}


def lacks_register(promise: Promise) -> UsageError:
    """The error of a promise that speaks about a register where none is at hand.

    >>> from shoal.promises.k_map import KMap
    >>> print(lacks_register(KMap(5)))
    k-map: speaks about a register of people, and none was given
    <BLANKLINE>
    hint: give `register`: a table with the quasi columns and a row per person
    """
    return UsageError(
        "speaks about a register of people, and none was given",
        where=promise.use,
        hint="give `register`: a table with the quasi columns and a row per person",
    )


def those_about(promises: Iterable[Promise], what: About) -> list[Promise]:
    """The promises about groups, a register, events or curves, in their order.

    >>> from shoal.promises.k_anonymity import KAnonymity
    >>> those_about([KAnonymity(5)], "groups"), those_about([KAnonymity(5)], "events")
    ([KAnonymity(k=5)], [])
    """
    return [promise for promise in promises if promise.about == what]

"""Another value in its place: always the same, by a dictionary, or a realistic surrogate (Allgöwer 2023, Figure 4)."""

from __future__ import annotations

from typing import Any, ClassVar

from shoal.core.cells import SUPPRESSED
from shoal.core.errors import UsageError
from shoal.core.schema import Type
from shoal.masks.base import Context, Plain, Running, text_of
from shoal.masks.keyed import Keyed, fingerprint
from shoal.masks.names import NAMES
from shoal.masks.suppress import Constant

Scalar = str | int | float | bool


class Substitute(Keyed, frozen=True, tag="substitute"):
    """Replace a value by another one.

    One of three: ``value`` (a constant), ``map`` (a dictionary; what it lacks becomes ``default``, which is ``*``
    unless you say otherwise), or ``choose`` (a list, or ``names`` for the invented names that ship with Shoal): a
    surrogate picked by a keyed hash, the same one for equal values of a role.

    Protects against: reading the value, while the data stay easy to work with.
    Does not protect against: counting. A dictionary maps frequent values to frequent values, and a small dictionary
    can be read backwards; several people share a surrogate, so it identifies nobody and joins nothing reliably.
    Cost: a look-up; one keyed hash per new value for ``choose``.

    >>> Substitute(map={"E10": "type 1", "E11": "type 2"}).start(Context()).one("E11")
    'type 2'
    """

    attack: ClassVar[str] = "frequency: the commonest substitute stands for the commonest value"

    value: Scalar | None = None
    map: dict[str, Scalar] | None = None
    choose: tuple[str, ...] | str | None = None
    default: Scalar = SUPPRESSED
    nulls: bool = False

    def __post_init__(self) -> None:
        if sum(part is not None for part in (self.value, self.map, self.choose)) != 1:
            raise UsageError("expected exactly one of `value`, `map`, `choose`", where="substitute")
        if isinstance(self.choose, str) and self.choose != "names":
            raise UsageError("`choose` must be a list or `names`", where="substitute")
        if self.choose is not None and len(self._surrogates()) < 2:
            raise UsageError("`choose` needs at least two surrogates", where="substitute")
        if self.nulls and self.value is None:
            raise UsageError("`nulls` needs a constant `value`", where="substitute")
        # the type of a masked column is known before any value is seen
        if self.map is not None and len({kind_of(v) for v in (*self.map.values(), self.default)}) > 1:
            raise UsageError(
                "the substitutes in `map` and the `default` must be of one type",
                where="substitute",
                hint=f"`default` is the text {SUPPRESSED!r} unless you set it",
            )

    @property
    def keyed(self) -> bool:
        """See :class:`Mask`."""
        return self.choose is not None

    @property
    def constant(self) -> bool:
        """See :class:`Mask`."""
        return self.value is not None

    def output(self, kind: Type | None) -> Type | None:
        """See :class:`Mask`."""
        if self.value is not None:
            return kind_of(self.value)
        return kind_of(self.default) if self.map is not None else "str"

    def start(self, context: Context) -> Running:
        """See :class:`Mask`."""
        kind = self.output(context.type)
        if self.value is not None:
            return Constant(kind, self.value, nulls=self.nulls)
        if self.map is not None:
            known, default = dict(self.map), self.default
            return Plain(kind, lambda v: known.get(text_of(v), default))
        of, surrogates = fingerprint(self.derive(context), 8), self._surrogates()

        def choose(value: Any) -> str:
            return surrogates[int.from_bytes(of(value), "big") % len(surrogates)]

        return Plain(kind, choose)

    def _surrogates(self) -> tuple[str, ...]:
        return NAMES if self.choose == "names" else tuple(self.choose or ())

    def describe(self) -> str:
        """See :class:`Mask`."""
        if self.value is not None:
            return f"always {self.value}"
        return "by a dictionary" if self.map is not None else "an invented one"


def kind_of(value: Scalar) -> Type:
    """The declared type of a constant.

    >>> kind_of("x"), kind_of(3), kind_of(True)
    ('str', 'int', 'bool')
    """
    # bool first: True is an int to Python
    for kind, name in ((bool, "bool"), (int, "int"), (float, "float")):
        if isinstance(value, kind):
            return name  # type: ignore[return-value]
    return "str"

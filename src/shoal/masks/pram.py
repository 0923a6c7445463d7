"""Post-randomization: a category stays with a known probability, or becomes another one (Gouweleeuw 1998)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from shoal.core.cells import SUPPRESSED
from shoal.core.errors import UsageError
from shoal.core.schema import Type
from shoal.masks.base import Context, Running, text_of
from shoal.masks.keyed import Keyed, fingerprint


class Pram(Keyed, frozen=True, tag="pram"):
    """One of the declared ``values`` stays with probability ``keep``; otherwise it becomes one of the others, each as
    likely. Drawn with the key from (person, value), so a replay gives the same. :meth:`estimate` takes the known
    probabilities out of counts again.

    Protects against: being sure of any single cell; everyone can deny theirs.
    Does not protect against: rare values, as most of those who show one may still have it. Equal values of one person
    get equal answers: many records of a person tell no more than one.
    Cost: one BLAKE2b.
    Reference: Gouweleeuw, Kooiman, Willenborg, de Wolf: Post randomisation for statistical disclosure control, 1998.

    >>> Pram(values=("yes", "no"), keep=0.8).estimate({"yes": 38, "no": 62})
    {'yes': 30.0, 'no': 70.0}
    """

    repeatable: ClassVar[bool] = False
    attack: ClassVar[str] = "likelihood: most values are still the true ones, `keep` says how many"

    values: tuple[str, ...]
    keep: float = 0.8

    def __post_init__(self) -> None:
        if len(set(self.values)) != len(self.values) or len(self.values) < 2:
            raise UsageError("`values` must be at least two different categories", where="pram")
        # at chance an answer says nothing, and `estimate` would divide by 0
        if not 1 / len(self.values) < self.keep < 1:
            raise UsageError("`keep` must lie between chance (one of the categories) and 1", where="pram")

    @property
    def near(self) -> bool:
        """See :class:`Mask`."""
        return True

    def output(self, kind: Type | None) -> Type | None:
        """See :class:`Mask`."""
        return "str"

    def start(self, context: Context) -> Running:
        """See :class:`Mask`."""
        return _Pram(self, context)

    def estimate(self, counts: Mapping[str, float]) -> dict[str, float]:
        """Unbiased counts of the true categories, from the masked ones."""
        total = sum(counts.get(v, 0) for v in self.values)
        other = (1 - self.keep) / (len(self.values) - 1)
        return {v: round((counts.get(v, 0) - other * total) / (self.keep - other), 9) for v in self.values}

    def describe(self) -> str:
        """See :class:`Mask`."""
        return f"true with probability {self.keep:g}"


class _Pram(Running):
    needs_by = True

    def __init__(self, spec: Pram, context: Context) -> None:
        super().__init__("str", by=(context.need_subject("pram"),))
        self._values, self._below, key = spec.values, spec.keep * 2.0**64, spec.derive(context)
        self._place = {v: (at, fingerprint(key, 16, v)) for at, v in enumerate(spec.values)}

    def one(self, value: Any, *by: Any) -> Any:
        text = value if type(value) is str else text_of(value)
        known, person = self._place.get(text), by[0]
        # of a value outside the declared ones no probability is known
        if known is None or person is None:
            return SUPPRESSED
        place, of = known
        raw = of(person)
        # half of the bits say whether it stays, the other half what it becomes
        if int.from_bytes(raw[:8], "big") < self._below:
            return text
        # never 0: whether it stays is decided already
        step = 1 + int.from_bytes(raw[8:], "big") % (len(self._values) - 1)
        return self._values[(place + step) % len(self._values)]

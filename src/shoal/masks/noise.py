"""A little more or less: random, but the same whenever the same record comes again (Allgöwer 2023, Figure 8)."""

from __future__ import annotations

import math
import struct
from typing import Any, ClassVar, Literal

from shoal.core.errors import UsageError
from shoal.core.schema import Type
from shoal.masks.base import Context, Running, is_number, need_number
from shoal.masks.keyed import Keyed, fingerprint

_STEP = 2.0**-53
_HALVES = struct.Struct(">QQ").unpack


class Noise(Keyed, frozen=True, tag="noise"):
    """Add noise of mean zero and standard deviation ``spread``: normal, Laplace or uniform.

    The noise is drawn from a keyed hash of (person, value), so a replay, a second reader or the same value reported
    again tomorrow gets the same noise and nothing averages out. ``by`` names other columns than the subject to draw
    it from. ``decimals`` rounds; whole numbers stay whole. ``min`` and ``max`` say what the column can be: noise that
    would lead beyond is reflected there, so that no price becomes negative. Only bounds you declare are kept: bounds
    learned from the data would tell its extremes.

    Protects against: reading the exact number, also from many copies of it.
    Does not protect against: outliers (noise of 2 does not hide a salary of a million); a value that changes a little
    every day, whose noises do average out; roles that pool their views: each has noise of its own, and n of them
    shrink it by √n. It is not differential privacy: nothing bounds what one person's presence changes.
    Cost: one BLAKE2b and a logarithm.

    >>> from shoal.core.keys import KeyRing
    >>> ring = KeyRing({"default": {1: bytes(32)}})
    >>> mask = Noise(spread=2.0, decimals=1).start(Context("gluc", "float", keys=ring, subject="pid"))
    >>> mask.one(5.0, "p7") == mask.one(5.0, "p7"), Noise(spread=2.0).describe()
    (True, '± noise, spread 2')
    """

    repeatable: ClassVar[bool] = False
    attack: ClassVar[str] = "averaging over values that drift, or over n colluding roles: √n; outliers stand out"

    spread: float
    kind: Literal["normal", "laplace", "uniform"] = "normal"
    by: tuple[str, ...] = ()
    decimals: int | None = None
    min: float | None = None
    max: float | None = None

    def __post_init__(self) -> None:
        if not 0 < self.spread < math.inf:
            raise UsageError("`spread` must be positive and finite", where="noise")
        if self.decimals is not None and not 0 <= self.decimals <= 15:
            raise UsageError("`decimals` must lie between 0 and 15", where="noise")
        low, high = self.bounds()
        if not low < high:
            raise UsageError("`min` must lie below `max`", where="noise")

    def bounds(self) -> tuple[float, float]:
        """What the masked values stay between."""
        return -math.inf if self.min is None else self.min, math.inf if self.max is None else self.max

    @property
    def near(self) -> bool:
        """See :class:`Mask`."""
        return True

    def output(self, kind: Type | None) -> Type | None:
        """See :class:`Mask`."""
        return need_number(kind, "noise") or "float"

    def start(self, context: Context) -> Running:
        """See :class:`Mask`."""
        return _Noise(self, context)

    def describe(self) -> str:
        """See :class:`Mask`."""
        return f"± noise, spread {self.spread:g}"


class _Noise(Running):
    needs_by = True

    def __init__(self, spec: Noise, context: Context) -> None:
        kind = spec.output(context.type)
        super().__init__(kind, by=spec.by or (context.need_subject("noise"),))
        self._of = fingerprint(spec.derive(context))
        self._spread, self._decimals = spec.spread, spec.decimals
        self._low, self._high = spec.bounds()
        # whole bounds for whole numbers, so that a reflected one needs no rounding across them
        if kind == "int":
            self._low = math.ceil(self._low) if math.isfinite(self._low) else self._low
            self._high = math.floor(self._high) if math.isfinite(self._high) else self._high
            if not self._low < self._high:
                raise UsageError("there are not two whole numbers between `min` and `max`", where="noise")
        self._draw = {"normal": normal, "laplace": laplace, "uniform": uniform}[spec.kind]

    def one(self, value: Any, *by: Any) -> Any:
        # without a person all rows with this value would share one noise
        if not is_number(value) or None in by:
            return None
        # from the record itself: reading it again gives the same noise, so there is nothing to average
        raw = self._of(value, *by)
        # two uniforms in the open interval (0, 1), from 53 bits each
        high, low = _HALVES(raw)
        noise = self._draw(((high >> 11) + 0.5) * _STEP, ((low >> 11) + 0.5) * _STEP) * self._spread
        if self.type == "int":
            # whole numbers stay exact: a float would lose the last digits of large ones
            out = value + round(noise)
            return int(reflected(out, self._low, self._high))
        try:
            moved = float(value) + noise
        # no float is so large: withheld, rather than shown without noise
        except OverflowError:
            return None
        if not self._low <= moved <= self._high:
            moved = reflected(moved, self._low, self._high)
        return moved if self._decimals is None else self._rounded(moved, self._decimals)

    def _rounded(self, value: float, decimals: int) -> float:
        # rounding may lead across a bound again
        return min(max(round(value, decimals), self._low), self._high)


def normal(first: float, second: float) -> float:
    """Standard normal (Box and Muller)."""
    return math.sqrt(-2.0 * math.log(first)) * math.cos(math.tau * second)


def laplace(first: float, second: float) -> float:
    """Laplace of standard deviation one."""
    size = -math.log(first) / math.sqrt(2.0)
    return size if second < 0.5 else -size


def uniform(first: float, second: float) -> float:
    """Uniform of standard deviation one."""
    return (2.0 * first - 1.0) * math.sqrt(3.0)


def reflected(value: float, low: float, high: float) -> float:
    """A value folded back into its bounds, as by mirrors there.

    >>> reflected(-3, 0, math.inf), reflected(27, 0, 10), reflected(4, 0, 10)
    (3, 7, 4)
    """
    if low <= value <= high:
        return value
    if math.isinf(high):
        return low + (low - value)
    if math.isinf(low):
        return high - (value - high)
    within = (value - low) % (2 * (high - low))
    return low + min(within, 2 * (high - low) - within)

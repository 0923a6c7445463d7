"""A little more or less: random, but the same whenever the same record comes again (seed 003, Figure 8)."""

from __future__ import annotations

import math
from typing import Any, ClassVar, Literal

from shoal.core.errors import UsageError
from shoal.core.schema import Type
from shoal.masks.base import Context, Running, is_number, need_number
from shoal.masks.keyed import Keyed, digest

_STEP = 2.0**-53


class Noise(Keyed, frozen=True, tag="noise"):
    """Add noise of mean zero and standard deviation ``spread``: normal, Laplace or uniform.

    The noise is drawn from a keyed hash of (person, value), so a replay, a second reader or the same value reported
    again tomorrow gets the same noise and nothing averages out. ``by`` names other columns than the subject to draw
    it from. ``decimals`` rounds; whole numbers stay whole.

    Protects against: reading the exact number, also from many copies of it.
    Does not protect against: outliers (noise of 2 does not hide a salary of a million); a value that changes a little
    every day, whose noises do average out; roles that pool their views: each has noise of its own, and n of them
    shrink it by √n. It is not differential privacy: nothing bounds what one person's presence changes.
    Cost: one BLAKE2b and a logarithm.
    """

    repeatable: ClassVar[bool] = False
    attack: ClassVar[str] = "averaging over values that drift, or over n colluding roles: √n; outliers stand out"

    spread: float
    kind: Literal["normal", "laplace", "uniform"] = "normal"
    by: tuple[str, ...] = ()
    decimals: int | None = None

    def __post_init__(self) -> None:
        if not 0 < self.spread < math.inf:
            raise UsageError("`spread` must be positive and finite", where="noise")
        if self.decimals is not None and not 0 <= self.decimals <= 15:
            raise UsageError("`decimals` must lie between 0 and 15", where="noise")

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
    def __init__(self, spec: Noise, context: Context) -> None:
        kind = spec.output(context.type)
        super().__init__(kind, by=spec.by or (context.need_subject("noise"),))
        self._key = spec.derive(context)
        self._spec = spec
        self._draw = {"normal": normal, "laplace": laplace, "uniform": uniform}[spec.kind]

    def one(self, value: Any, *by: Any) -> Any:
        if not is_number(value) or None in by:
            return None
        raw = digest(self._key, [value, *by])
        # two uniforms in the open interval (0, 1), from 53 bits each
        first = ((int.from_bytes(raw[:8], "big") >> 11) + 0.5) * _STEP
        second = ((int.from_bytes(raw[8:], "big") >> 11) + 0.5) * _STEP
        noise = self._draw(first, second) * self._spec.spread
        if self.type == "int":
            return value + round(noise)
        try:
            out = float(value) + noise
        except OverflowError:
            return None
        return out if self._spec.decimals is None else round(out, self._spec.decimals)


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

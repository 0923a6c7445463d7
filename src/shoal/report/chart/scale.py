"""From values to pixels, and where the ticks go."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from shoal.report.chart.model import Axis

_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
_CLOCK = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400)
_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")

FAR = 1e100  # no axis reads further: what lies beyond is not drawn, so that arithmetic stays finite

Ticks = list[tuple[float, str]]


def drawable(value: float, log: bool) -> bool:
    """Whether a value can be drawn: a number, and above zero on a logarithmic axis."""
    return abs(value) <= FAR and (value >= 1 / FAR or not log)


@dataclass(frozen=True)
class Scale:
    """A stretch of values laid over a stretch of pixels."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        """The pixel of a value; values outside are held at the ends."""
        a, b = (math.log(self.low), math.log(self.high)) if self.log else (self.low, self.high)
        at = math.log(max(value, self.low)) if self.log else value
        share = min(1.0, max(0.0, (at - a) / (b - a)))
        return self.start + share * (self.end - self.start)

    def shows(self, value: float) -> bool:
        """See :func:`drawable`."""
        return drawable(value, self.log)


def domain(axis: Axis, values: Iterable[float], *, zero: bool = False, loose: bool = True) -> tuple[float, float]:
    """The ends of an axis: as asked, else around the data; ``loose`` widens to the next ticks."""
    fit = [float(v) for v in values if drawable(v, axis.log)]
    low, high = (min(fit), max(fit)) if fit else (1.0, 10.0) if axis.log else (0.0, 1.0)
    if axis.log:
        if loose or low == high:
            low, high = _decade(low, down=True), _decade(high * (1 + 1e-9), down=False)
    else:
        if zero or (loose and 0 < low < 0.5 * high):
            low, high = min(low, 0.0), max(high, 0.0)
        if high - low <= max(1e-12 * max(abs(low), abs(high)), 1 / FAR):
            low, high = (0.0, 1.0) if abs(high) <= 1 / FAR else (min(low, 0.0), max(high, 0.0))
        if loose:
            step = _step(high - low, 5, axis)
            low, high = math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step
    low = low if axis.low is None else axis.low
    high = high if axis.high is None else axis.high
    return (low, high) if high > low else (low, low * 10 if axis.log and low > 0 else low + 1.0)


def _decade(value: float, *, down: bool) -> float:
    """The next 1, 2 or 5 times a power of ten."""
    base = 10.0 ** math.floor(math.log10(value) + 1e-12)
    steps = [m * base for m in (1, 2, 5, 10)]
    return max(s for s in steps if s <= value * (1 + 1e-9)) if down else min(s for s in steps if s >= value)


def _step(span: float, most: int, axis: Axis) -> float:
    rough = span / max(1, most)
    if axis.form == "time":
        days = math.ceil(rough / 86400)
        return float(next((s for s in _CLOCK if s >= rough), days * 86400))
    base = 10.0 ** math.floor(math.log10(rough))
    step = next(m * base for m in _STEPS if m * base >= rough * (1 - 1e-9))
    return max(1.0, math.ceil(step)) if axis.form == "whole" else step


def ticks(axis: Axis, low: float, high: float, most: int = 5) -> Ticks:
    """Round values between the ends, with their labels."""
    if axis.ticks:
        return [(v, label) for v, label in axis.ticks if low <= v <= high]
    if axis.log:
        return _log_ticks(axis, low, high, most)
    step = _step(high - low, most, axis)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [(i * step, _label(axis, i * step, step)) for i in range(first, last + 1)]


def _log_ticks(axis: Axis, low: float, high: float, most: int) -> Ticks:
    first, last = math.floor(math.log10(low) + 1e-9), math.ceil(math.log10(high) - 1e-9)
    digits: Sequence[int] = (1, 2, 5) if 3 * math.log10(high / low) <= 1.7 * most else (1,)
    skip = max(1, math.ceil((last - first) / max(2, most)))
    found = [m * 10.0**e for e in range(first, last + 1, skip) for m in digits]
    inside = [v for v in found if low * (1 - 1e-9) <= v <= high * (1 + 1e-9)]
    return [(v, show(v, axis.form) if axis.form == "percent" else _power(v)) for v in inside]


def _power(value: float) -> str:
    exponent = math.floor(math.log10(value) + 1e-9)
    if -3 <= exponent <= 13:
        return short(value)
    digit = round(value / 10.0**exponent)
    ten = f"10{str(exponent).translate(_SUPERSCRIPT)}"
    return ten if digit == 1 else f"{digit}·{ten}"


def _label(axis: Axis, value: float, step: float) -> str:
    if axis.form == "time":
        return _moment(value, step)
    scaled, unit = (step * 100, " %") if axis.form == "percent" else (step, "")
    shown = value * 100 if axis.form == "percent" else value
    if abs(shown) >= 1e15 or scaled < 1e-6:
        return f"{shown:.3g}{unit}"
    if abs(shown) >= 10_000 and scaled >= 100:
        return short(shown) + unit
    places = max(0, -math.floor(math.log10(scaled) + 1e-9))
    places += abs(scaled * 10**places - round(scaled * 10**places)) > 1e-9  # a step of 2.5 needs one more
    return f"{shown:,.{places}f}{unit}".replace("-0", "0") if shown == 0 else f"{shown:,.{places}f}{unit}"


def _moment(value: float, step: float) -> str:
    at = datetime.fromtimestamp(value, UTC)
    if step >= 86400:
        return at.strftime("%d %b")
    return at.strftime("%H:%M:%S" if step < 60 else "%H:%M")


def short(value: float) -> str:
    """A number as a person writes it: 1,234 and 12.3k, 0.0123 and 3.1M.

    >>> short(1234), short(12_300.0), short(0.01234), short(3_100_000)
    ('1,234', '12.3k', '0.0123', '3.1M')
    """
    if not math.isfinite(value):
        return "–"
    size = abs(value)
    for unit, name in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e4, "k")):
        if size >= unit:
            scaled = value / (1e3 if name == "k" else unit)
            return f"{scaled:.4g}{name}" if abs(scaled) < 9999.5 else f"{value:.3g}"
    if value == int(value) or size >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def show(value: float, form: str = "number") -> str:
    """A value as its axis would name it.

    >>> show(0.25, "percent"), show(1234.5)
    ('25 %', '1,234')
    """
    if not math.isfinite(value):
        return "–"
    if form == "percent":
        shown = value * 100
        return f"{shown:.3g} %" if abs(shown) < 99.95 else f"{short(round(shown))} %"
    if form == "time":
        return datetime.fromtimestamp(value, UTC).strftime("%Y-%m-%d %H:%M:%S")
    if form == "whole" and abs(value) < 1e7:
        return f"{value:,.0f}"
    return short(value)

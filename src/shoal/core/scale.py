"""On which scale the loss of an interval of numbers is measured.

By their own distance (linear), three outliers among thousands of incomes make every other interval look narrow, though
half of all people may lie inside. By rank an interval loses the share of the rows that lie between its two ends, those
at an end counted half; by logarithm, how far its ends are apart in order of magnitude. All three are shares of what the
whole column has: an exact value loses 0, the whole column 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

FEWEST_ROWS = 100  # below, no tail is told from chance
TAIL = 0.01  # of the rows, on either side
NARROW = 0.2  # of the width: where all but the tails lie in less, tails are heavy
CODED = 0.005  # of the rows would be coded as one end
FEWEST_CODED = 10  # rows, so that the end is nobody's value
SCALES = ("linear", "rank", "log")


@dataclass(frozen=True)
class Scale:
    """Where each number of a column lies on the scale of its loss; ``why`` it was chosen, if nobody asked for it.

    >>> Scale("rank", np.array([0.5, 1.5, 2.5]), 2.0).width
    2.0
    """

    name: str
    places: Floats  # one per code, not a number for a missing value
    width: float
    why: str = ""


def scale_for(numbers: Floats, often: Floats, asked: str | None) -> Scale | None:
    """The scale of a column of sorted numbers, ``often`` as frequent; nothing for the linear one.

    A missing value, if any, is the last and not a number. Unless one is asked for, the scale is rank where tails are
    heavy: all but 1 % of the rows on either side lie in less than a fifth of the width. O(numbers).

    >>> incomes = np.append(np.arange(1.0, 200.0), 1e6)
    >>> scale_for(incomes, np.ones(200), None).why
    '98 % of its rows lie in 0.0 % of its width'
    >>> scale_for(np.arange(200.0), np.ones(200), None) is None
    True
    >>> scale_for(np.array([1.0, 10.0, 100.0]), np.ones(3), "log").places.round(1).tolist()
    [0.0, 2.3, 4.6]
    """
    share = middle(numbers, often)
    name = asked or ("rank" if share < NARROW else "linear")
    if name == "linear":
        return None
    known = numbers[~np.isnan(numbers)]
    places = _ranks(often[: len(known)]) if name == "rank" else _logarithms(known)
    width = float(places[-1] - places[0]) if len(places) else 0.0
    why = "" if asked else f"98 % of its rows lie in {100 * share:.1f} % of its width"
    return Scale(name, np.append(places, [np.nan] * (len(numbers) - len(known))), width or 1.0, why)


def middle(numbers: Floats, often: Floats) -> float:
    """The share of the width in which all but the tails lie; 1 where rows are too few to tell.

    >>> middle(np.array([0.0, 1.0, 100.0]), np.array([500.0, 499.0, 1.0]))
    0.01
    """
    found = _quantiles(numbers, often, TAIL)
    if found is None:
        return 1.0
    least, low, high, most = found
    return (high - low) / (most - least)


def ends_that_help(numbers: Floats, often: Floats, *, whole: bool) -> dict[str, float]:
    """``bottom`` and ``top`` that would code heavy tails as one end; rounded, with ten rows or more beyond them.

    >>> incomes = np.append(np.arange(1001.0, 2001.0), [5e6, 8e6, 9e6])
    >>> ends_that_help(incomes, np.ones(1003), whole=True)
    {'top': 1900}
    """
    found = _quantiles(numbers, often, TAIL)
    if found is None or middle(numbers, often) >= NARROW:
        return {}
    least, low, high, most = found
    rows = float(often[: np.sum(~np.isnan(numbers))].sum())
    coded = _quantiles(numbers, often, max(CODED, FEWEST_CODED / rows))
    assert coded is not None
    out: dict[str, float] = {}
    if low - least > high - low and (end := _rounded(coded[1], up=True, whole=whole)) < high:
        out["bottom"] = end
    if most - high > high - low and (end := _rounded(coded[2], up=False, whole=whole)) > low:
        out["top"] = end
    return out


def _quantiles(numbers: Floats, often: Floats, tail: float) -> tuple[float, float, float, float] | None:
    """The least number, those with a tail of the rows below and above, and the most."""
    here = ~np.isnan(numbers) & (often > 0)
    known, running = numbers[here], np.cumsum(often[here])
    if not len(known) or running[-1] < FEWEST_ROWS or known[0] == known[-1]:
        return None
    beyond = math.ceil(tail * running[-1])
    low = np.searchsorted(running, beyond, side="left")
    high = np.searchsorted(running, running[-1] - beyond, side="right")
    return float(known[0]), float(known[low]), float(known[high]), float(known[-1])


def _ranks(often: Floats) -> Floats:
    return np.asarray(np.cumsum(often) - often / 2)


def _logarithms(known: Floats) -> Floats:
    """Signed, and from 1 on where zero or less is among them: what is smaller than 1 is then nearly linear."""
    if not len(known) or known[0] > 0:
        return np.log(known)
    return np.asarray(np.sign(known) * np.log1p(np.abs(known)))


def _rounded(number: float, *, up: bool, whole: bool) -> float:
    """Two digits of a number, away from the tail."""
    if number == 0:
        return 0
    step = 10.0 ** (math.floor(math.log10(abs(number))) - 1)
    step = max(step, 1.0) if whole else step
    found = (math.ceil if up else math.floor)(number / step) * step
    return int(found) if whole else float(f"{found:.12g}")

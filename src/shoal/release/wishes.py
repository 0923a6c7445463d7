"""What a caller asked for. Whoever builds a job takes the wishes it uses; a wish that nobody took is an error.

This is how no stated option is ever ignored: a new option that no job takes is refused from its first day.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from numbers import Integral, Real
from typing import Any, NoReturn

from shoal.core.errors import UsageError

# every wish a job can have, and how its value is checked (see the functions below)
KNOWN: dict[str, str] = {
    **dict.fromkeys(("k", "p", "z"), "whole"),
    **dict.fromkeys(("l", "t", "noise"), "number"),
    **dict.fromkeys(("sensitive", "plain"), "names"),
    **dict.fromkeys(("subject", "view", "title", "effort", "append", "publish"), "as it is"),
    **dict.fromkeys(("quasi", "schema", "weights", "promises", "method", "set", "policy", "keys"), "as it is"),
    **dict.fromkeys(("cells", "report", "id", "time", "value", "every", "missing", "perturb", "instants"), "as it is"),
    **dict.fromkeys(("aggregate", "pattern", "hierarchy", "unit", "late", "window", "tune", "json"), "as it is"),
    **dict.fromkeys(("series", "keep_order", "exact"), "flag"),
    **dict.fromkeys(("waive",), "names"),
    "seed": "seed",
}


class Wishes:
    """Stated wishes by name. ``None``, ``False`` and empty lists mean: not stated.

    ``spell`` writes a wish as its caller does (``--k`` on the command line), so that errors name what was typed.

    >>> wishes = Wishes({"k": 5, "t": None})
    >>> wishes.take("k"), wishes.take("t")
    (5, None)
    >>> Wishes({"k": 5, "every": "1h"}).done("a table")
    Traceback (most recent call last):
    shoal.core.errors.UsageError: k: has no effect on a table
    <BLANKLINE>
    hint: leave it out
    """

    def __init__(self, stated: Mapping[str, Any], *, spell: Callable[[str], str] = str) -> None:
        self._spell = spell
        for name in stated:
            if name not in KNOWN:
                close = get_close_matches(name, KNOWN, 1)
                hint = f"did you mean {close[0]}?" if close else f"one of: {', '.join(KNOWN)}"
                raise UsageError(f"there is no option {name}", where="options", hint=hint)
        self._left = {name: self._checked(name, value) for name, value in stated.items() if _is_stated(value)}

    def has(self, name: str) -> bool:
        """Whether a wish is stated and was not taken yet."""
        return name in self._left

    def take(self, name: str, default: Any = None) -> Any:
        """A wish, which is then taken care of; the default if it was not stated."""
        return self._left.pop(name, default)

    def one_of(self, name: str, *choices: str) -> str:
        """A wish that is one of a few words; the first is the default."""
        found = self.take(name, choices[0])
        if found not in choices:
            self.refuse(name, f"expected {' or '.join(choices)}")
        return str(found)

    def spelled(self, name: str) -> str:
        """A wish as its caller writes it."""
        return self._spell(name)

    def refuse(self, name: str, why: str, hint: str | None = None) -> NoReturn:
        """An error about one wish."""
        raise UsageError(why, where=self._spell(name), hint=hint)

    def done(self, what: str, hint: str = "leave it out") -> None:
        """Every wish must have been taken: the first that was not is an error that names it."""
        for name in self._left:
            self.refuse(name, f"has no effect on {what}", hint)

    def _checked(self, name: str, value: Any) -> Any:
        kind = KNOWN[name]
        if kind == "whole":
            return self._whole(name, value)
        if kind == "seed":
            if not isinstance(value, Integral) or isinstance(value, bool) or value < 0:
                self.refuse(name, f"expected a whole number from 0 on, found {_kind(value)}")
            return int(value)
        if kind == "number":
            if not isinstance(value, Real) or isinstance(value, bool) or not math.isfinite(value):
                self.refuse(name, f"expected a number, found {_kind(value)}", f"for example {name}=2")
            return value if isinstance(value, Integral) else float(value)
        if kind == "names":
            return self._names(name, value)
        if kind == "flag" and not isinstance(value, bool):
            self.refuse(name, f"expected true or false, found {_kind(value)}")
        return value

    def _whole(self, name: str, value: Any) -> int:
        if not isinstance(value, Integral) or isinstance(value, bool):
            self.refuse(name, f"expected a whole number, found {_kind(value)}", f"for example {name}=5")
        if value < 1:
            self.refuse(name, f"{name} must be at least 1, found {int(value)}")
        return int(value)

    def _names(self, name: str, value: Any) -> Any:
        """Names of columns: one name may stand alone. A mapping is for curves given as arrays."""
        if isinstance(value, str):
            return [value]
        if isinstance(value, Mapping):
            return value
        if not isinstance(value, Sequence) or not all(isinstance(v, str) for v in value):
            self.refuse(name, f"expected names of columns, found {_kind(value)}", f'for example {name}=["diag"]')
        return list(value)


def _is_stated(value: Any) -> bool:
    if value is None or value is False:
        return False
    return not (isinstance(value, str | list | tuple | dict) and len(value) == 0)


def _kind(value: Any) -> str:
    return f"{type(value).__name__} {value!r}" if isinstance(value, bool | int | float) else type(value).__name__

"""What a caller asked for. Whoever builds a job takes the wishes it uses; a wish that nobody took is an error.

This is how no stated option is ever ignored: a new option that no job takes is refused from the start.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Any, NoReturn

from shoal.core.errors import UsageError
from shoal.release import arguments
from shoal.release.arguments import Argument, Check

# every wish a job can have, and how its value is checked
KNOWN: dict[str, Check] = {
    **dict.fromkeys(("k", "p", "z"), arguments.whole),
    **dict.fromkeys(("l", "t", "noise"), arguments.number),
    **dict.fromkeys(("sensitive", "plain", "waive"), arguments.names),
    **dict.fromkeys(("subject", "view", "id", "time"), arguments.name),
    **dict.fromkeys(("series", "keep_order", "exact", "compact"), arguments.flag),
    **dict.fromkeys(("title", "append", "publish", "set", "cells", "report", "json"), arguments.anything),
    **dict.fromkeys(("every", "missing", "perturb", "instants", "aggregate", "pattern"), arguments.anything),
    **dict.fromkeys(("hierarchy", "unit", "late", "window", "tune"), arguments.anything),
    **dict.fromkeys(("representatives", "zone", "previous", "register", "model", "save_model"), arguments.anything),
    "value": arguments.name_or_names,
    "quasi": arguments.quasi,
    "schema": arguments.schema,
    "weights": arguments.weights,
    "losses": arguments.losses,
    "at_most": arguments.at_most,
    "promises": arguments.promises,
    "method": arguments.method,
    "effort": arguments.effort,
    "policy": arguments.policy,
    "keys": arguments.keys,
    "seed": arguments.seed,
    "memory": arguments.memory,
    "engine": arguments.anything,
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
        # checked when stated: a value of the wrong kind is told whatever job it would go to
        self._left = {
            name: KNOWN[name](Argument(name, spell(name)), value) for name, value in stated.items() if _is_stated(value)
        }

    def has(self, name: str) -> bool:
        """Whether a wish is stated and was not taken yet."""
        return name in self._left

    def take(self, name: str, default: Any = None) -> Any:
        """A wish, which is then taken care of; the default if it was not stated."""
        # taken out: what is left in the end was used by nobody
        return self._left.pop(name, default)

    def one_of(self, name: str, *choices: str) -> str:
        """A wish that is one of a few words; the first is the default."""
        found = self.take(name, choices[0])
        if found not in choices:
            self.refuse(name, f"expected {' or '.join(choices)}", f"for example {choices[0]}")
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


def _is_stated(value: Any) -> bool:
    if value is None or value is False:
        return False
    return not (isinstance(value, str | list | tuple | dict) and len(value) == 0)

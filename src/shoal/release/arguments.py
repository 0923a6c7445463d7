"""Every argument of Python and every option of the command line is checked here, in the same words.

A kind of argument is a function that takes the argument and its value and gives the value as it is used, or refuses it:
what was expected, what was found (a type or a number, never a cell of a table), and an example.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Mapping, Sequence
from numbers import Integral, Real
from typing import Any, NamedTuple, NoReturn, get_args

from shoal.core.errors import UsageError
from shoal.core.keys import KeyRing
from shoal.core.schema import LossScale, Schema
from shoal.core.spec import Spec
from shoal.policy.document import Policy
from shoal.promises.base import Promise

OTHER_WORD = "another word"  # not quoted: a text handed in by mistake may be a person's
EFFORTS = ("low", "normal", "high")
# what the interpreter and its libraries take before the first row is read
LEAST_MEMORY = 300_000_000


class Argument(NamedTuple):
    """An argument by its name, and as its caller writes it: ``k``, ``--k``.

    >>> Argument("k", "--k").refuse("a whole number", 5.5)
    Traceback (most recent call last):
    shoal.core.errors.UsageError: --k: expected a whole number, found float 5.5
    """

    name: str
    spelled: str

    def refuse(self, expected: str, value: Any, hint: str | None = None, *, found: str | None = None) -> NoReturn:
        """The error of a value of another kind, or of the right kind, and then ``found`` says what it is."""
        raise UsageError(f"expected {expected}, found {found or kind_of(value)}", where=self.spelled, hint=hint)


def whole(argument: Argument, value: Any) -> int:
    """A whole number from 1 on.

    >>> whole(Argument("k", "k"), 5)
    5
    """
    # True is an int in Python: `k=True` would promise 1-anonymity
    if not isinstance(value, Integral) or isinstance(value, bool):
        argument.refuse("a whole number", value, f"for example {argument.name}=5")
    if value < 1:
        raise UsageError(
            f"{argument.name} must be at least 1, found {int(value)}",
            where=argument.spelled,
            hint=f"for example {argument.name}=5",
        )
    return int(value)


def seed(argument: Argument, value: Any) -> int:
    """A whole number from 0 on.

    >>> seed(Argument("seed", "seed"), 0)
    0
    """
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 0:
        argument.refuse("a whole number from 0 on", value, "for example seed=1; leave it out to draw one in secret")
    return int(value)


def memory(argument: Argument, value: Any) -> int:
    """An amount of memory in bytes: ``2GB``, ``500MB``, or a number of bytes.

    >>> memory(Argument("memory", "memory"), "2GB")
    2000000000
    """
    units = {"KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "": 1}
    # all in capitals, so that 2gb is understood
    found = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*(|[KMGT]B)\s*", str(value).upper())
    if isinstance(value, bool) or found is None:
        argument.refuse("an amount of memory", value, "for example 2GB")
    amount = int(float(found[1]) * units[found[2]])
    if amount < LEAST_MEMORY:
        raise UsageError(
            f"expected at least {LEAST_MEMORY // 10**6} MB, which the program itself needs",
            where=argument.spelled,
            hint="for example 2GB",
        )
    return amount


def number(argument: Argument, value: Any) -> float:
    """A finite number; a whole one stays whole.

    >>> number(Argument("t", "t"), 0.2)
    0.2
    """
    if not isinstance(value, Real) or isinstance(value, bool) or not math.isfinite(value):
        argument.refuse("a number", value, f"for example {argument.name}=2")
    return int(value) if isinstance(value, Integral) else float(value)


def share(argument: Argument, value: Any) -> float:
    """A number from 0 to 1.

    >>> share(Argument("max_risk", "max_risk"), 0.1)
    0.1
    """
    found = number(argument, value)
    if not 0 <= found <= 1:
        name = argument.name
        raise UsageError(f"expected a share from 0 to 1, found {found:g}", where=name, hint=f"for example {name}=0.1")
    return found


def several(value: Any) -> list[Any]:
    """One or several values as a list.

    >>> several(2), several((2, 5))
    ([2], [2, 5])
    """
    return list(value) if isinstance(value, list | tuple | range) else [value]


def flag(argument: Argument, value: Any) -> bool:
    """True or false.

    >>> flag(Argument("exact", "exact"), True)
    True
    """
    if not isinstance(value, bool):
        argument.refuse("true or false", value, f"for example {argument.name}=True")
    return value


def name(argument: Argument, value: Any) -> str:
    """The name of one column.

    >>> name(Argument("subject", "subject"), "pid")
    'pid'
    """
    if not isinstance(value, str):
        argument.refuse("the name of a column", value, f'for example {argument.name}="age"')
    return value


def name_or_names(argument: Argument, value: Any) -> str | list[str]:
    """The name of one column; of a panel of curves several."""
    return value if isinstance(value, str) else column_names(argument, value)


def names(argument: Argument, value: Any) -> Any:
    """Names of columns: one name may stand alone. A mapping is for curves given as arrays.

    >>> names(Argument("plain", "plain"), "city")
    ['city']
    """
    if isinstance(value, Mapping):
        return value
    return column_names(argument, value)


def column_names(argument: Argument, value: Any) -> list[str]:
    """Names of columns: one name may stand alone.

    >>> column_names(Argument("quasi", "quasi"), "age")
    ['age']
    """
    if isinstance(value, str):
        return [value]
    if not isinstance(value, Sequence) or not all(isinstance(v, str) for v in value):
        argument.refuse("names of columns", value, f'for example {argument.name}=["age"]')
    return list(value)


def quasi(argument: Argument, value: Any) -> Any:
    """Names of columns, or a mapping of names to hierarchies.

    >>> quasi(Argument("quasi", "quasi"), {"age": "range"})
    {'age': 'range'}
    """
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return value
    return column_names(argument, value)


def weights(argument: Argument, value: Any) -> Mapping[str, float]:
    """What the detail of columns is worth.

    >>> weights(Argument("weights", "weights"), {"age": 2})
    {'age': 2}
    """
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        argument.refuse("a weight per column", value, 'for example weights={"age": 2}')
    return {key: number(Argument(f"{argument.name}[{key!r}]", argument.spelled), v) for key, v in value.items()}


def losses(argument: Argument, value: Any) -> Mapping[str, str]:
    """How the loss of columns of numbers is measured.

    >>> losses(Argument("losses", "losses"), {"income": "rank"})
    {'income': 'rank'}
    """
    scales = get_args(LossScale)
    words, hint = f"{', '.join(scales[:-1])} or {scales[-1]}", 'for example losses={"income": "rank"}'
    if not isinstance(value, Mapping) or not all(isinstance(k, str) for k in value):
        argument.refuse(f"{words} per column", value, hint)
    for name, scale in value.items():
        if scale not in scales:
            argument.refuse(f"{words} for column {name!r}", scale, hint, found=OTHER_WORD * isinstance(scale, str))
    return dict(value)


def at_most(argument: Argument, value: Any) -> Mapping[str, int]:
    """The highest level that columns may be published at.

    >>> at_most(Argument("at_most", "at_most"), {"zip": 2})
    {'zip': 2}
    """
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        argument.refuse("a level per column", value, 'for example at_most={"zip": 2}')
    if any(isinstance(v, bool) or not isinstance(v, int) or v < 0 for v in value.values()):
        argument.refuse("levels from 0 on, as whole numbers", value, 'for example at_most={"zip": 2}')
    return dict(value)


def promises(argument: Argument, value: Any) -> list[Promise]:
    """Promises as values."""
    many = [value] if isinstance(value, Promise) else value
    if isinstance(many, str) or not isinstance(many, Sequence) or not all(isinstance(p, Promise) for p in many):
        argument.refuse("promises", value, "for example promises=[shoal.KAnonymity(5)]")
    return list(many)


def schema(argument: Argument, value: Any) -> Schema:
    """A schema."""
    if not isinstance(value, Schema):
        argument.refuse("a shoal.Schema", value, 'for example shoal.Schema({"age": shoal.Column("quasi")})')
    return value


def policy(argument: Argument, value: Any) -> Any:
    """A policy, or the path of its file.

    >>> policy(Argument("policy", "policy"), "policy.yaml")
    'policy.yaml'
    """
    if not isinstance(value, str | os.PathLike | Policy):
        argument.refuse("the path of a policy", value, 'for example policy="policy.yaml"')
    return value


def keys(argument: Argument, value: Any) -> KeyRing:
    """A key ring."""
    if not isinstance(value, KeyRing):
        argument.refuse("a key ring", value, "for example KeyRing.load(Path('keys.json')); never a key itself")
    return value


def method(argument: Argument, value: Any) -> Any:
    """A method by name, as a mapping with its parameters, or as a value."""
    if not isinstance(value, str | Mapping | Spec):
        argument.refuse("a method", value, 'for example method="mondrian"')
    return value


def effort(argument: Argument, value: Any) -> str | int:
    """How long a method may search: a word, or a number of steps.

    >>> effort(Argument("effort", "effort"), "low")
    'low'
    """
    if isinstance(value, str) and value in EFFORTS:
        return value
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 0:
        expected, found = f"{', '.join(EFFORTS)}, or a number of steps", OTHER_WORD * isinstance(value, str)
        argument.refuse(expected, value, f"for example {argument.name}=high", found=found)
    return int(value)


def anything(argument: Argument, value: Any) -> Any:
    """What its own reader checks."""
    return value


Check = Callable[[Argument, Any], Any]


def kind_of(value: Any) -> str:
    """What a value is, without saying it unless it is a number.

    >>> kind_of(5.5), kind_of("F. Ott")
    ('float 5.5', 'str')
    """
    # numbers are parameters; a text handed in by mistake may be a person's
    return f"{type(value).__name__} {value!r}" if isinstance(value, bool | int | float) else type(value).__name__


def stated_names(name: str, value: Any) -> list[str]:
    """Names of columns that a call must give.

    >>> stated_names("on", "age")
    ['age']
    """
    found = column_names(Argument(name, name), value)
    if not found:
        raise UsageError("expected at least one column", where=name, hint=f'for example {name}=["age"]')
    return found

"""Words of the command line that say more than one thing: ``zip=prefix:5``, ``k-map:k=5``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from shoal.cli.terminal import pairs
from shoal.core.errors import UsageError

if TYPE_CHECKING:
    from shoal.promises import Promise


def hierarchies(values: list[str] | None, quasi: list[str]) -> dict[str, str | Mapping[str, Any]]:
    """``zip=prefix:5`` words as hierarchies."""
    out: dict[str, str | Mapping[str, Any]] = {}
    for name, value in pairs(values, "--hierarchy").items():
        if name not in quasi:
            raise UsageError(f"column {name!r} is not in --quasi", where="--hierarchy", hint="add it there")
        out[name] = hierarchy_word(value)
    return out


def hierarchy_word(value: str) -> str | Mapping[str, Any]:
    """``prefix:5`` as a hierarchy: its name, then its parameters."""
    kind, _, rest = value.partition(":")
    if kind == "prefix":
        return {"use": "prefix", "length": int(number(rest or "0", "--hierarchy"))}
    if kind == "range" and rest:
        low, _, high = rest.partition(":")
        return {"use": "range", "min": number(low, "--hierarchy"), "max": number(high, "--hierarchy")}
    if kind == "tree" and rest:
        return {"use": "tree", "children": int(number(rest, "--hierarchy"))}
    if kind == "grid" and rest:
        return {"use": "grid", "sizes": [number(size, "--hierarchy") for size in rest.split(":")]}
    if kind == "path" and rest:
        separator, _, depth = rest.partition(":")
        return {
            "use": "path",
            "separator": separator,
            **({"depth": int(number(depth, "--hierarchy"))} if depth else {}),
        }
    return value


def promise_word(value: str) -> Promise:
    """``k-map:k=5`` as a promise: its name, then its parameters."""
    import yaml

    from shoal.promises import PROMISES

    use, *parts = value.split(":")
    given: dict[str, Any] = {}
    for part in parts:
        name, sign, text = part.partition("=")
        try:
            given[name] = yaml.safe_load(text)
        except yaml.YAMLError:
            sign = ""
        if not sign:
            raise UsageError("expected parameters like k=5", where="--promise", hint="for example k-map:k=5")
    return PROMISES.decode({"use": use, **given}, "--promise")


def level(text: str, option: str) -> int:
    """A level of a word like ``zip=2``."""
    if not text.isdecimal():
        raise UsageError("expected a level, a whole number from 0 on", where=option, hint="for example zip=2")
    return int(text)


def number(text: str, option: str) -> float:
    """A number of a word like ``age=2``."""
    try:
        return float(text)
    except ValueError:
        raise UsageError("expected a number", where=option, hint="for example range:0:120, age=2") from None

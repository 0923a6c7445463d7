"""The method of a job: the one that was asked for, the policy's, or the default."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from shoal.core.spec import Family, Spec
from shoal.promises.base import Promise
from shoal.release.wishes import Wishes
from shoal.series import PATTERNS, SERIES_METHODS

DEFAULT_METHOD = "local"
ALTERING = ("step", "most")  # words of `set` that belong to perturbation
PATTERN = ("word", "levels", "nested", "period")  # and to patterns


def method_of(
    wishes: Wishes, families: tuple[Family[Any], ...], promised: Spec | None, default: str | None = DEFAULT_METHOD
) -> Any:
    """The method that was asked for, or else the policy's, or else the default.

    >>> from shoal.tables import TABLE_METHODS
    >>> method_of(Wishes({"method": "mondrian"}), (TABLE_METHODS,), None).use
    'mondrian'
    """
    asked, settings = wishes.take("method"), wishes.take("set")
    if asked is None and settings is None:
        return promised if promised is not None else None if default is None else families[0].decode(default, "method")
    if isinstance(asked, Spec):
        if settings is not None:
            wishes.refuse("set", "the method has its parameters already")
        return asked
    if asked is None and promised is not None:
        wishes.refuse("set", "say which method the parameter belongs to", f"also give {wishes.spelled('method')}")
    given = dict(asked) if isinstance(asked, Mapping) else {"use": asked or DEFAULT_METHOD}
    where = wishes.spelled("set" if settings else "method")
    # an unknown name is refused by the first family, which lists what it has
    family = next((f for f in families if given.get("use") in f.names()), families[0])
    return family.decode({**given, **(settings or {})}, where)


def with_effort(method: Any, wishes: Wishes) -> Any:
    """The method with its effort set, where it has one.

    >>> from shoal.tables.local import Local
    >>> with_effort(Local(), Wishes({"effort": "low"})).effort
    'low'
    """
    effort = wishes.take("effort")
    if effort is None:
        return method
    if not hasattr(method, "effort"):
        wishes.refuse("effort", f"{method.use} has no effort to set", "leave it out, or choose another method")
    return msgspec.structs.replace(method, effort=effort)


def series_words(wishes: Wishes, promised: Spec | None, *, others: Sequence[Promise]) -> dict[str, Any]:
    """How curves are grouped: the method, and what ``set`` says about patterns, reading and altering."""
    from shoal.series.perturb import Perturb

    out: dict[str, Any] = {}
    settings = dict(wishes.take("set", {}))
    out |= {name: settings.pop(name) for name in ("aggregate", "zone") if name in settings}
    # words of `set` are told apart by who uses them; what is left belongs to the method
    kind = settings.pop("pattern", None)
    pattern = {name: settings.pop(name) for name in PATTERN if name in settings}
    altering = {name: settings.pop(name) for name in ALTERING if name in settings}
    perturb = wishes.take("perturb")
    if altering and not perturb:
        wishes.refuse("set", "nothing is altered", f"`step` and `most` belong to {wishes.spelled('perturb')}")
    if pattern or kind is not None:
        out["pattern"] = PATTERNS.decode({"use": kind or "sax", **pattern}, wishes.spelled("set"))
    if perturb and not others:
        wishes.refuse("perturb", "has no effect without l: values are changed so that they differ", "give l, too")
    if perturb and any(getattr(p, "kind", None) != "frequency" for p in others):
        wishes.refuse(
            "perturb", "values are changed for frequency l-diversity only", "{use: l-diversity, kind: frequency}"
        )
    if perturb:
        out["perturb"] = perturb if isinstance(perturb, Perturb) else _spec(Perturb, altering, wishes)
    asked = wishes.take("method")
    if asked is None and settings and promised is not None:
        wishes.refuse("set", "say which method the parameter belongs to", f"also give {wishes.spelled('method')}")
    if asked is not None or settings:
        use = asked if isinstance(asked, str | None) else None
        out["method"] = asked if use is None and asked is not None else {"use": use or "kapra", **settings}
        if not isinstance(out["method"], Spec):
            out["method"] = SERIES_METHODS.decode(out["method"], wishes.spelled("method"))
    elif promised is not None:
        out["method"] = promised
    return out


def _spec(kind: Any, given: dict[str, Any], wishes: Wishes) -> Any:
    try:
        return msgspec.convert(given, kind)
    except msgspec.ValidationError as error:
        wishes.refuse("set", str(error))

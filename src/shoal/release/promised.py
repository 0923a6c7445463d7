"""The promises of a job: those of a policy, tightened by options, or those that options alone ask for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec

from shoal.core.errors import PolicyError
from shoal.core.schema import Schema
from shoal.core.time import duration
from shoal.policy.document import Policy, View
from shoal.policy.load import load
from shoal.promises.base import Promise, those_about
from shoal.promises.k_anonymity import KAnonymity
from shoal.promises.kp_anonymity import KPAnonymity
from shoal.promises.l_diversity import LDiversity
from shoal.promises.t_closeness import TCloseness
from shoal.promises.z_anonymity import ZAnonymity
from shoal.release.wishes import Wishes
from shoal.views.role_view import RoleView


class _Short(NamedTuple):
    """A short option: which promises have it as a field, whether more of it is stricter, and a promise made of it."""

    kinds: tuple[type[Promise], ...]
    more: bool
    make: Callable[[float, Schema, bool], list[Promise]] | None
    size: Callable[[Any], float] = float  # what is compared


def _about(kind: type[Promise], **more: str) -> Callable[[float, Schema, bool], list[Promise]]:
    return lambda value, schema, curves: [kind(value, column, **more) for column in schema.sensitive]


def _diversity(value: float, schema: Schema, curves: bool) -> list[Promise]:
    # of curves, l says how frequent a value may be (Shou et al. 2013)
    return [LDiversity(value, column, kind="frequency" if curves else "distinct") for column in schema.sensitive]


SHORT: dict[str, _Short] = {
    "k": _Short((KAnonymity, KPAnonymity), True, lambda value, schema, curves: [KAnonymity(int(value))]),
    "p": _Short((KPAnonymity,), True, None),
    "l": _Short((LDiversity,), True, _diversity),
    "t": _Short((TCloseness,), False, _about(TCloseness)),
    "z": _Short((ZAnonymity,), True, None),
    # z people within a shorter time are z people within the longer one, too
    "window": _Short((ZAnonymity,), False, None, duration),
}


class PromisedView(NamedTuple):
    """A view of a policy with its promises, and a note on each one that an option changed."""

    policy: Policy
    chosen: View
    view: RoleView
    promises: tuple[Promise, ...]
    notes: list[str]


def promised_view(wishes: Wishes) -> PromisedView:
    """The view that the wishes name, for the job that makes a release and for the judge of one alike.

    >>> from shoal.policy.load import parse
    >>> text = "columns: {age: quasi}\\nviews: {research: {show: [age], promises: [{use: k-anonymity, k: 3}]}}"
    >>> promised_view(Wishes({"policy": parse(text), "k": 5})).promises
    (KAnonymity(k=5),)
    """
    given = wishes.take("policy")
    policy: Policy = given if isinstance(given, Policy) else load(given)
    chosen = policy.view(wishes.take("view"))
    view = RoleView.of(policy, chosen.name)
    # l and t speak about sensitive columns that this role sees; of others it learns nothing
    shown = Schema({n: c for n, c in policy.schema.columns.items() if n not in view.hides})
    promises, notes = tightened(chosen.promises, shown, wishes)
    return PromisedView(policy, chosen, view, promises, notes)


def tightened(promised: Sequence[Promise], schema: Schema, wishes: Wishes) -> tuple[tuple[Promise, ...], list[str]]:
    """Promises with the short options taken into account, and a note on each change.

    A policy's promise may be tightened by an option, never loosened; a promise the policy does not make is added.
    ``schema`` has the columns as shown: l and t speak about every sensitive one of them.

    >>> from shoal.core.schema import Column
    >>> tightened([KAnonymity(3)], Schema({"age": Column("quasi")}), Wishes({"k": 20}))
    ((KAnonymity(k=20),), ['k of k-anonymity was changed from 3 to 20 by an option'])
    """
    # further promises come beside those of the policy and replace none
    out = [*promised, *wishes.take("promises", ())]
    notes: list[str] = []
    curves = bool(those_about(out, "curves"))
    for name, short in SHORT.items():
        # p, z and a window alone make no promise: left over, they are refused by name
        if not wishes.has(name) or (short.make is None and not any(isinstance(p, short.kinds) for p in out)):
            continue
        value = wishes.take(name)
        had = [at for at, p in enumerate(out) if isinstance(p, short.kinds)]
        for at in had:
            before = getattr(out[at], name)
            asked, had_before = short.size(value), short.size(before)
            if (asked < had_before) if short.more else (asked > had_before):
                wishes.refuse(
                    name,
                    f"the policy promises {name} = {_said(before)}, and {_said(value)} is weaker",
                    "an option may make a policy's promise stronger, not weaker; to weaken it, change the policy",
                )
            if asked != had_before:
                out[at] = msgspec.structs.replace(out[at], **{name: value})
                notes.append(f"{name} of {out[at].use} was changed from {_said(before)} to {_said(value)} by an option")
        if not had and short.make is not None:
            if name != "k" and not schema.sensitive:
                wishes.refuse(name, "speaks about sensitive columns, and none is declared", "declare one as sensitive")
            added = short.make(value, schema, curves)
            out += added
            if promised:
                notes += [f"{p.title} was added by an option" for p in added]
    return tuple(out), notes


def _said(value: Any) -> str:
    return f"{value:g}" if isinstance(value, int | float) else str(value)


def refuse_nothing(policy: Policy, view: RoleView, promises: Sequence[Promise]) -> None:
    """A promise about nothing cannot be what was meant: a draft leaves out what nobody decided on."""
    if promises and not (view.shown or view.masks):
        raise PolicyError(
            "the view shows no column",
            where=f"{policy.path}: views.{view.role}.show",
            hint="list those that may be seen; `shoal init --ask` goes through what is undecided",
        )

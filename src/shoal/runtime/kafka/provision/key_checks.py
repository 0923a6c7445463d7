"""Which keys a service was applied with, told by check values: another key would give one person two names.

A check value is a short digest of a key that says nothing about it. A key that was rotated has a new epoch beside the
old ones and is welcome; the same epoch with another secret, or an older ring, is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from shoal.core.errors import UsageError
from shoal.core.keys import DEFAULT, KeyRing
from shoal.policy.document import Policy

Checks = Mapping[str, Mapping[str, str]]  # by key and epoch


def checks_of(policy: Policy, keys: KeyRing) -> dict[str, dict[str, str]]:
    """The check values of the keys a policy uses, as far as the ring holds them."""
    names = {DEFAULT, *_named([msgspec.to_builtins(m) for v in policy.views.values() for m in v.masks.values()])}
    return {n: {str(e): keys.check(n, e) for e in keys.keys[n]} for n in sorted(names) if keys.keys.get(n)}


def refuse_other_keys(known: Checks, mine: Checks, where: str) -> None:
    """Stop if a key is not the one that was used before.

    >>> refuse_other_keys({"default": {"1": "aa"}}, {"default": {"1": "aa", "2": "bb"}}, "serve run")
    """
    for name, epochs in known.items():
        held = mine.get(name)
        if held is None:  # if the policy needs it, whoever needs it says so
            continue
        other = [e for e, check in epochs.items() if e in held and held[e] != check]
        if other:
            raise UsageError(
                f"the key {name!r} (epoch {other[0]}) is not the one the views were made with: check value "
                f"{held[other[0]]}, expected {epochs[other[0]]}",
                where=where,
                hint="start with that key; a new one is a new epoch of it: `shoal keys rotate`",
            )
        if max(map(int, held)) < max(map(int, epochs)):
            raise UsageError(
                f"the key {name!r} has no epoch {max(map(int, epochs))}, which the views were made with",
                where=where,
                hint="start with the newest key ring",
            )


def together(known: Checks, mine: Checks) -> dict[str, dict[str, str]]:
    """What is known from now on."""
    return {name: {**known.get(name, {}), **mine.get(name, {})} for name in sorted({*known, *mine})}


def _named(said: Any) -> Iterator[str]:
    if isinstance(said, dict):
        if isinstance(said.get("key"), str):
            yield said["key"]
        for part in said.values():
            yield from _named(part)
    elif isinstance(said, list | tuple):
        for part in said:
            yield from _named(part)

"""What each role sees under a policy, and whether another policy lets a role see more: then a word is needed.

An applied policy is read back from the audit topic, as JSON. Both sides are brought into that form before they are
compared, so that an unchanged file is never wider than itself, whatever types its values have in memory.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec

from shoal.core.said import said
from shoal.core.schema import Column
from shoal.policy.document import Policy
from shoal.views.role_view import RoleView

# the number by which a promise is stricter, and in which direction
STRICTER = {"k-anonymity": ("k", 1), "l-diversity": ("l", 1), "t-closeness": ("t", -1), "z-anonymity": ("z", 1)}


def seen_by_role(policy: Policy) -> dict[str, Any]:
    """What each role may see, column by column, in a form two versions of a policy can be compared by."""
    out = {}
    for role, view in sorted(policy.views.items()):
        resolved = RoleView.of(policy, role)
        # a mask or a method sees a column by what is declared of it; in clear it goes through as it came
        works = bool(view.masks or view.promises)
        out[role] = {
            "show": sorted({*resolved.shown, *resolved.masks}),
            "masks": {c: said(m, resolved.folder) for c, m in sorted(resolved.masks.items())},
            "columns": {n: _brief(c) for n, c in policy.schema.columns.items()} if works else {},
            "promises": [msgspec.to_builtins(p) for p in view.promises],
            "method": None if view.method is None else msgspec.to_builtins(view.method),
            "key": view.service.get("key", "drop"),
            "users": sorted(view.users),
        }
    return out


def fingerprint(policy: Policy) -> str:
    """A short name of what a policy says."""
    return hashlib.sha256(msgspec.json.encode(seen_by_role(policy), order="sorted")).hexdigest()[:16]


def widened(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """In which ways roles would see more than before; anything that cannot be compared counts as more."""
    out = []
    former, wanted = _as_written(before), _as_written(after)
    for role, now in wanted.items():
        then = former.get(role)
        if then is None:
            out.append(f"the view {role!r} is new")
            continue
        more = sorted(set(now["show"]) - set(then["show"]))
        if more:
            out.append(f"{role} would see {', '.join(more)}")
        unmasked = sorted(c for c in then["masks"] if c in now["show"] and now["masks"].get(c) != then["masks"][c])
        if unmasked:
            out.append(f"{role}: other masks on {', '.join(unmasked)}")
        otherwise = _declared_otherwise(then.get("columns"), now)
        if otherwise:
            out.append(f"{role}: declared otherwise: {', '.join(otherwise)}")
        if now["method"] != then["method"] and now["promises"] and then["promises"]:
            out.append(f"{role}: another method, or other parameters of it")
        if now["key"] not in (then.get("key"), "drop"):
            out.append(f"{role}: other keys of records")
        if not all(any(keeps(new, old) for new in now["promises"]) for old in then["promises"]):
            out.append(f"{role}: a promise is dropped or changed")
        joined = sorted(set(now["users"]) - set(then["users"]))
        if joined:
            out.append(f"{role}: {len(joined)} more users")
    return out


def keeps(new: Mapping[str, Any], old: Mapping[str, Any]) -> bool:
    """Whether whoever keeps the new promise keeps the old one, too: the same, or the same with a stricter number.

    >>> five, two = {"use": "k-anonymity", "k": 5}, {"use": "k-anonymity", "k": 2}
    >>> keeps(five, two), keeps(two, five)
    (True, False)
    """
    number, sign = STRICTER.get(str(old.get("use")), ("", 1))
    alike = {n: v for n, v in new.items() if n != number} == {n: v for n, v in old.items() if n != number}
    return alike and sign * new.get(number, 0) >= sign * old.get(number, 0)


def _as_written(seen: Mapping[str, Any]) -> dict[str, Any]:
    """As the audit topic gives it back: lists instead of tuples, texts as keys."""
    plain: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(seen))
    return plain


def _declared_otherwise(then: Mapping[str, Any] | None, now: Mapping[str, Any]) -> list[str]:
    """Columns whose declaration changed under a mask or a method; one that is gone, and not seen, is no matter."""
    if then is None:  # applied by an older version
        return ["columns"]
    if not now["columns"]:
        return []
    gone = {n for n, c in then.items() if n not in now["columns"] and (n in now["show"] or c.startswith("subject "))}
    changed = {n for n, c in then.items() if n in now["columns"] and now["columns"][n] != c}
    return sorted(gone | changed)


def _brief(column: Column) -> str:
    """A column's role and a digest of all that is declared of it: a tree may be large, and an audit entry must not."""
    return f"{column.role} {hashlib.sha256(msgspec.json.encode(said(column), order='sorted')).hexdigest()[:16]}"

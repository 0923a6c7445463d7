"""Where each view is published, in which version, and from where on; the audit topic remembers it.

A view whose definition changes gets a topic of its own version: two generalizations of the same people on one topic
would intersect. Its state has a name of its own, too, so that nothing of an older one is ever mistaken for it.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Container, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from shoal.connect.kafka import Source
from shoal.core.errors import PolicyError
from shoal.core.said import said
from shoal.policy.document import Policy
from shoal.runtime.kafka.provision.audit import Applying, Audit
from shoal.runtime.kafka.regions.wish import regions_of


class Served(msgspec.Struct, frozen=True):
    """A view on the cluster: its topic and version, the name of its state, and per partition its first record."""

    topic: str
    name: str
    definition: str
    version: int = 1
    starts: dict[int, int] = {}

    def begun(self, partition: int, offset: int) -> bool:
        """Whether a record of the source belongs to this view."""
        return offset >= self.starts.get(partition, 0)


class Fill(NamedTuple):
    """Views to be filled from the log: only these, in a group of their own, up to these offsets."""

    served: Mapping[str, Served]
    group: str
    upto: Mapping[int, int]


def definition(policy: Policy, role: str) -> str:
    """A short name of all that decides what a view publishes."""
    view = policy.views[role]
    folder = Path(policy.path).parent if policy.path else Path()
    # everything that changes what readers get, and nothing else: a comment in the policy must not make a new version
    whole = {
        "show": "everything" if view.show == "everything" else sorted(view.show),
        "masks": {c: [said(m, folder) for m in many] for c, many in sorted(view.masks.items())},
        "promises": [msgspec.to_builtins(p) for p in view.promises],
        "method": None if view.method is None else msgspec.to_builtins(view.method),
        "hidden": view.hidden,
        "key": view.service.get("key", "drop"),
        "topic": view.service.get("topic"),
        "columns": {n: said(c) for n, c in policy.schema.columns.items()},
    }
    if count := regions_of(view):  # where its state lives: a view that is parted otherwise begins anew
        whole["regions"] = count
    return hashlib.sha256(msgspec.json.encode(whole, order="sorted")).hexdigest()[:16]


def first_topic(policy: Policy, role: str) -> str:
    """The topic of a view's first version."""
    return str(policy.views[role].service.get("topic", f"{policy.source['topic']}.{role}"))


def served_by(policy: Policy, entry: Mapping[str, Any] | None) -> dict[str, Served]:
    """What the audit topic says about this policy's views; one that was not applied, or changed since, is refused."""
    known = served_of(entry)
    for role in policy.views:
        if role not in known or known[role].definition != definition(policy, role):
            raise PolicyError(
                "the view is not what was applied last", where=f"views.{role}", hint="run `shoal serve apply` first"
            )
    return {role: known[role] for role in policy.views}


def served_now(policy: Policy) -> dict[str, Served]:
    """Where the views of this policy are published, as the cluster says."""
    source = Source(policy.source, policy.path)
    return served_by(policy, Audit(source.properties, source.topic).newest())


def served_next(
    policy: Policy,
    entry: Mapping[str, Any] | None,
    left: Applying | None = None,
    there: Container[str] | None = None,
    *,
    anew: bool = False,
) -> dict[str, Served]:
    """What an apply makes of it: views that changed get the next version; one whose topic is gone begins anew.

    ``anew``: the source is another one, and what was published of the former must not stand beside what comes.
    ``left`` is an apply that did not end: what it had begun to publish under a version never appears there otherwise.
    """
    known, begun = served_of(entry), served_of({"served": left.served} if left is not None else None)
    out: dict[str, Served] = {}
    for role in policy.views:
        wanted, former = definition(policy, role), known.get(role)
        if former is not None and former.definition == wanted and not anew:
            # a topic somebody deleted is filled from the start: state of the old one would skip what was published
            # before
            gone = there is not None and former.topic not in there
            out[role] = msgspec.structs.replace(former, name=_fresh(former.topic), starts={}) if gone else former
            continue
        version = 1 if former is None else former.version + 1
        tried = begun.get(role)
        # an apply that was killed may have published under its version already: never two definitions under one name
        if tried is not None and tried.version >= version:
            version = tried.version if tried.definition == wanted else tried.version + 1
        topic = first_topic(policy, role) + _suffix(version)
        out[role] = Served(topic, _fresh(topic), wanted, version)
    return out


def first_name(served: Served) -> str:
    """The topic of the first version of a view that is served.

    >>> first_name(Served("patients.ward.v3", "", "", version=3))
    'patients.ward'
    """
    return served.topic.removesuffix(_suffix(served.version))


def _suffix(version: int) -> str:
    return f".v{version}" if version > 1 else ""


def pattern_of(topic: str) -> str:
    r"""What readers subscribe to once and for all, by the first topic of a view: every version of it.

    Clients take a name that begins with ``^`` as a regular expression.

    >>> print(pattern_of("patients.ward"))
    ^patients\.ward(\.v[0-9]+)?$
    """
    named = topic.replace(".", r"\.")
    return rf"^{named}(\.v[0-9]+)?$"


def _fresh(topic: str) -> str:
    """A name for the state of a view that begins now."""
    return f"{topic}@{time.time_ns() // 1_000_000}"


def former_topics(entry: Mapping[str, Any] | None) -> dict[str, str]:
    """The topics of the views applied last, by role."""
    return {role: served.topic for role, served in served_of(entry).items()}


def begun_topics(left: Applying | None) -> dict[str, str]:
    """The topics that an apply which did not end was filling, by role."""
    begun = served_of({"served": left.served} if left is not None else None)
    return {role: begun[role].topic for role in (left.new if left is not None else ()) if role in begun}


def served_of(entry: Mapping[str, Any] | None) -> dict[str, Served]:
    """The views of an audit entry."""
    found = (entry or {}).get("served", {})
    return msgspec.convert(found, dict[str, Served], strict=False)

"""Where each view is published, in which version, from where on; and the audit topic, which remembers it.

A view whose definition changes gets a topic of its own version: two generalizations of the same people on one topic
would intersect. Its state has a name of its own, too, so that nothing of an older one is ever mistaken for it.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from shoal.connect.kafka import TIMEOUT, KafkaError, Source, internal, library, told
from shoal.core.errors import InputError, PolicyError
from shoal.policy.document import Policy


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


def definition(policy: Policy, role: str) -> str:
    """A short name of all that decides what a view publishes."""
    view = policy.views[role]
    folder = Path(policy.path).parent if policy.path else Path()
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
    return hashlib.sha256(msgspec.json.encode(whole, order="sorted")).hexdigest()[:16]


def said(value: Any, folder: Path | None = None) -> Any:
    """What a policy says, as plain values; a tree's file is told by what stands in it, not by its name."""
    plain = msgspec.to_builtins(value)
    return _read(plain, folder or Path())


def _read(plain: Any, folder: Path) -> Any:
    if isinstance(plain, list | tuple):
        return [_read(part, folder) for part in plain]
    if not isinstance(plain, dict):
        return plain
    out = {name: _read(part, folder) for name, part in plain.items()}
    if out.get("use") == "tree" and out.get("file") is not None:
        try:
            out["file"] = hashlib.sha256((folder / out["file"]).read_bytes()).hexdigest()[:16]
        except OSError as error:
            raise InputError(f"cannot read the tree ({error.strerror})", where=str(folder / out["file"])) from None
    return out


def first_topic(policy: Policy, role: str) -> str:
    """The topic of a view's first version."""
    return str(policy.views[role].service.get("topic", f"{policy.source['topic']}.{role}"))


def served_by(policy: Policy, entry: Mapping[str, Any] | None) -> dict[str, Served]:
    """What the audit topic says about this policy's views; one that was not applied, or changed since, is refused."""
    known = _served(entry)
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


def served_next(policy: Policy, entry: Mapping[str, Any] | None) -> dict[str, Served]:
    """What an apply makes of it: views that changed get the next version."""
    known = _served(entry)
    out: dict[str, Served] = {}
    for role in policy.views:
        wanted, former = definition(policy, role), known.get(role)
        if former is not None and former.definition == wanted:
            out[role] = former
            continue
        version = 1 if former is None else former.version + 1
        topic = first_topic(policy, role) + (f".v{version}" if version > 1 else "")
        out[role] = Served(topic, f"{topic}@{time.time_ns() // 1_000_000}", wanted, version)
    return out


def former_topics(entry: Mapping[str, Any] | None) -> dict[str, str]:
    """The topics of the views applied last, by role."""
    return {role: served.topic for role, served in _served(entry).items()}


def _served(entry: Mapping[str, Any] | None) -> dict[str, Served]:
    found = (entry or {}).get("served", {})
    return msgspec.convert(found, dict[str, Served], strict=False)


class Audit:
    """The audit topic of a source: who applied what; the newest entry says how the cluster should look."""

    def __init__(self, properties: Mapping[str, Any], source: str) -> None:
        self._kafka = library()
        self._properties, self._source, self._topic = {**properties, "log_level": 0}, source, internal(source, "audit")

    def newest(self) -> dict[str, Any] | None:
        """The newest entry; none if there is no topic yet, or nothing on it."""
        settings = {"group.id": f"shoal-{self._source}", "enable.auto.commit": False}
        reader = self._kafka.Consumer({**self._properties, **settings})
        try:
            listed = reader.list_topics(self._topic, timeout=TIMEOUT).topics.get(self._topic)
            if listed is None or (listed.error is not None and listed.error.name() == "UNKNOWN_TOPIC_OR_PART"):
                return None
            if listed.error is not None:  # that we may not read it does not mean that nothing was applied
                raise told(listed.error, "reading the audit topic")
            place = self._kafka.TopicPartition(self._topic, 0)
            low, high = reader.get_watermark_offsets(place, timeout=TIMEOUT)
            if high <= low:
                return None
            reader.assign([self._kafka.TopicPartition(self._topic, 0, high - 1)])
            message = reader.poll(TIMEOUT)
            if message is None or message.error():
                raise KafkaError("the audit topic cannot be read", where=self._topic)
            entry: dict[str, Any] = msgspec.json.decode(message.value())
            return entry
        except self._kafka.KafkaException as error:
            raise told(error.args[0], "reading the audit topic") from None
        finally:
            reader.close()

    def write(self, entry: Mapping[str, Any]) -> None:
        """One more entry."""
        writer = self._kafka.Producer({**self._properties, "acks": "all"})
        writer.produce(self._topic, msgspec.json.encode(entry))
        if writer.flush(TIMEOUT):
            raise PolicyError("the audit topic did not take the entry", where="serve apply")

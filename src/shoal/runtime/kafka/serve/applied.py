"""The views of a policy as they were applied: to which source, and with which keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shoal.connect.kafka import library, topic_id
from shoal.core.keys import KeyRing
from shoal.policy.document import Policy
from shoal.runtime.kafka.provision.audit import Audit
from shoal.runtime.kafka.provision.key_checks import checks_of, refuse_other_keys
from shoal.runtime.kafka.provision.served import Served, served_by
from shoal.runtime.kafka.serve.binding import Binding
from shoal.runtime.kafka.serve.counters import Counters
from shoal.runtime.kafka.state.changelog import Seal


class Applied:
    """What the audit topic says of a policy. Refuses one that was not applied, other keys, and another source.

    ``topic`` is what the worker reads: the source, or the topic of its regions, which each apply may make anew.
    """

    def __init__(self, policy: Policy, keys: KeyRing, properties: Mapping[str, Any], source: str, topic: str) -> None:
        entry = Audit(properties, source).newest()
        self.served: dict[str, Served] = served_by(policy, entry)
        held = checks_of(policy, keys)
        refuse_other_keys((entry or {}).get("keys", {}), held, "serve run")
        self._epochs = {name: max(map(int, epochs)) for name, epochs in held.items()}
        self._topic = topic
        self._admin: Any = library().admin.AdminClient({**properties, "log_level": 0})
        try:
            now = topic_id(self._admin, topic)
            self.binding = Binding(topic, now, Seal(keys))
            self.binding.check(entry if topic == source else None, now)
        except BaseException:
            self._admin = None  # or the error's traceback would hold it, and its threads would go on asking brokers
            raise

    def tell(self, counters: Counters) -> None:
        """Key epochs and versions of views, for whoever looks at the worker."""
        counters.epochs = self._epochs
        counters.versions = {role: one.version for role, one in self.served.items()}

    def check(self) -> None:
        """The source is still the one it was."""
        self.binding.check(None, topic_id(self._admin, self._topic))

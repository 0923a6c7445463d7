"""One step of a plan."""

from __future__ import annotations

import msgspec


class Change(msgspec.Struct, frozen=True):
    """One step: what is done to what."""

    action: str  # create, change, delete, grant, revoke
    kind: str  # topic, table, user, right
    name: str
    detail: str = ""

    def __str__(self) -> str:
        sign = {"create": "+", "grant": "+", "delete": "-", "revoke": "-"}.get(self.action, "~")
        return f"{sign} {self.kind} {self.name}" + (f" ({self.detail})" if self.detail else "")

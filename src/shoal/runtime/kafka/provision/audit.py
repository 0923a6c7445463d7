"""The audit topic: who applied what, and a journal of every apply, so that one that was interrupted is known.

The newest whole entry says how the cluster should look. Around it an apply writes its steps: ``begun``, what it has
done so far, ``ended``. One that has begun and not ended may have left workers paused, topics half filled and rights
half switched; whoever applies next takes its topics away, does the work again and lets the workers go on.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from shoal.connect.kafka import TIMEOUT, internal, library, told
from shoal.core.account import account
from shoal.core.errors import PolicyError
from shoal.runtime.kafka.state.changelog import Reader

TAIL = 64  # entries read first: the newest whole one is nearly always among them


class Applying(msgspec.Struct, frozen=True):
    """An apply that has begun and not ended: what it was making, what it had done, and whether workers had stood still.

    ``served`` are the views it was making, as they stand in an audit entry; ``new`` those that had to be filled.
    """

    apply: str
    at: int = 0
    by: str = ""
    was_paused: bool = False
    served: dict[str, Any] = {}
    new: tuple[str, ...] = ()
    done: tuple[str, ...] = ()

    @property
    def reached(self) -> str:
        """Whose it is, and how far it came."""
        return f"an apply of {self.by}, last step: {self.done[-1] if self.done else 'begun'}"

    def __str__(self) -> str:
        return f"{self.reached}, did not end; `shoal serve apply` takes it back and goes on"


class History(msgspec.Struct, frozen=True):
    """What the audit topic says: the newest whole entry, and the apply that did not end."""

    newest: dict[str, Any] | None = None
    left: Applying | None = None


def history_of(entries: Iterable[Mapping[str, Any]]) -> History:
    """What entries say, oldest first.

    >>> begun = {"apply": "a", "step": "begun", "new": ["ward"]}
    >>> history_of([begun, {"apply": "a", "step": "filled"}]).left.done
    ('filled',)
    >>> history_of([begun, {"policy": "f00"}, {"apply": "a", "step": "ended"}])
    History(newest={'policy': 'f00'}, left=None)
    >>> history_of([{"policy": "f00"}, {"destroyed": True}]).newest is None
    True
    """
    newest: dict[str, Any] | None = None
    left: Applying | None = None
    for entry in entries:
        step = entry.get("step")
        if step is None:
            # what was taken away says nothing about what comes after it, nor does what it found half done
            newest, left = (None, None) if entry.get("destroyed") else (dict(entry), left)
        elif step == "begun":
            left = msgspec.convert({k: v for k, v in entry.items() if k != "step"}, Applying)
        elif step == "ended":
            left = None
        elif left is not None:
            left = msgspec.structs.replace(left, done=(*left.done, str(step)))
    return History(newest, left)


class Audit:
    """The audit topic of a source."""

    def __init__(self, properties: Mapping[str, Any], source: str) -> None:
        self._kafka = library()
        self._properties, self._topic = {**properties, "log_level": 0}, internal(source, "audit")

    @property
    def by(self) -> str:
        """Who writes: the user the broker knows, or else the account on this machine."""
        return str(self._properties.get("sasl.username") or account())

    def newest(self) -> dict[str, Any] | None:
        """The newest whole entry; none if there is no topic yet, or nothing on it."""
        return self.history().newest

    def history(self) -> History:
        """The newest whole entry, and what was left by an apply that did not end."""
        with Reader(self._properties, self._topic) as reader:
            if not reader.partitions():
                return History()
            low, high = reader.ends([0])[0]
            start = max(low, high - TAIL)
            while True:
                found = history_of(msgspec.json.decode(m.value()) for m in reader.read({0: start}))
                if found.newest is not None or start == low:
                    return found
                start = max(low, high - (high - start) * 16)

    def write(self, entry: Mapping[str, Any]) -> None:
        """One more entry."""
        failed: list[Any] = []
        writer = self._kafka.Producer({**self._properties, "acks": "all"})
        writer.produce(self._topic, msgspec.json.encode(entry), on_delivery=lambda e, _: failed.append(e))
        if writer.flush(TIMEOUT):
            raise PolicyError("the audit topic did not take the entry", where="serve apply")
        if failed[0] is not None:
            raise told(failed[0], "writing the audit topic")


class Steps:
    """The journal of one apply."""

    def __init__(self, audit: Audit) -> None:
        self._audit, self._apply, self._begun = audit, uuid.uuid4().hex, False

    def begin(self, *, was_paused: bool, served: Mapping[str, Any], new: Iterable[str]) -> None:
        """The first entry: from here on the next apply knows what to take back."""
        self._write("begun", was_paused=was_paused, served=served, new=list(new))
        self._begun = True

    def did(self, step: str) -> None:
        """A step is done."""
        if self._begun:
            self._write(step)

    def _write(self, step: str, **more: Any) -> None:
        self._audit.write({"apply": self._apply, "step": step, "at": int(time.time()), "by": self._audit.by, **more})

"""What the commands around a topic share: a client from a file of properties, and an orderly stop."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any


def client(properties: str | None, brokers: str | None) -> dict[str, Any]:
    """Client properties as the user named them."""
    from shoal.connect.kafka import client_properties

    path = Path(properties) if properties else None
    source = {"properties": path.name if path else None, "brokers": brokers}
    return client_properties(source, path.parent if path else Path(), log_level=0)


def until_asked() -> Callable[[], bool]:
    """Whether someone asked us to stop (Ctrl-C or SIGTERM): what has begun is finished first."""
    import signal
    from types import FrameType

    asked: list[int] = []

    def stop(number: int, frame: FrameType | None) -> None:
        asked.append(number)

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    return lambda: bool(asked)

"""The C library under the client: its functions, and the handle of a client that Python made.

A client is made, joins its group and commits by its Python interface. Only the two loops over records go past it: there
an object for every record, made and taken apart again, costs more than everything else together.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

from shoal.connect.kafka import library
from shoal.kernels.compile import PLAIN

KNOWN = "2."  # versions of the client whose objects begin with the handle, as they have since the first one
PROBE = "shoal-probe"  # the name of a client that is only looked at
WORD, NUMBER, SIZE, TEXT = ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t, ctypes.c_char_p
FUNCTIONS: dict[str, tuple[Any, list[Any]]] = {
    "error_code": (NUMBER, [WORD]),
    "error_destroy": (None, [WORD]),
    "event_destroy": (None, [WORD]),
    "event_error": (NUMBER, [WORD]),
    "event_message_next": (WORD, [WORD]),
    "event_topic_partition": (WORD, [WORD]),
    "event_type": (NUMBER, [WORD]),
    "message_timestamp": (ctypes.c_int64, [WORD, WORD]),
    "name": (TEXT, [WORD]),
    "produceva": (WORD, [WORD, WORD, SIZE]),
    "queue_destroy": (None, [WORD]),
    "queue_forward": (None, [WORD, WORD]),
    "queue_get_partition": (WORD, [WORD, TEXT, ctypes.c_int32]),
    "queue_new": (WORD, [WORD]),
    "queue_poll": (WORD, [WORD, NUMBER]),
    "topic_destroy": (None, [WORD]),
    "topic_new": (WORD, [WORD, TEXT, WORD]),
    "topic_partition_destroy": (None, [WORD]),
    "version": (NUMBER, []),
}


class Native:
    """Functions of the library by their names without ``rd_kafka_``; ``address`` has where they lie."""

    def __init__(self, loaded: Any) -> None:
        self.address: dict[str, int] = {}
        for name, (answer, arguments) in FUNCTIONS.items():
            function = getattr(loaded, f"rd_kafka_{name}")
            function.restype, function.argtypes = answer, arguments
            self.address[name] = ctypes.cast(function, WORD).value or 0
            setattr(self, name, function)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)

    def handle_of(self, client: Any) -> int:
        """The library's own name for a client. Only while the client lives, and is not closed."""
        found = WORD.from_address(id(client) + object.__basicsize__).value
        if not found:
            raise RuntimeError("the client is closed")
        return found


@cache
def native() -> Native | None:
    """The library, where it can be called past Python: an unknown client, or no compiler, leaves the slower road."""
    kafka = library()
    if PLAIN or not kafka.__version__.startswith(KNOWN):
        return None
    try:
        found = Native(ctypes.CDLL(kafka.cimpl.__file__))
    except (OSError, AttributeError):
        return None
    # another library of the same functions would not know the client's handles
    return found if found.version() == kafka.libversion()[1] and _knows_handles(found) else None


def _knows_handles(found: Native) -> bool:
    """Whether a client's handle stands where it is looked for: a newer client may begin with something else."""
    client = library().Producer({"client.id": PROBE, "log_level": 0})
    handle = found.handle_of(client)
    # asked for its name, the library only adds to the handle: what then stands there need not be a text of ours
    aligned = handle > 1 << 16 and handle % ctypes.sizeof(WORD) == 0
    return aligned and found.name(handle).startswith(f"{PROBE}#".encode())

"""Who runs this process, for audit lines: as the operating system knows it, never as the environment claims."""

from __future__ import annotations

import os


def account() -> str:
    """The account of this process by its user id; ``LOGNAME``, ``USER`` and their like can say anything.

    >>> account() != ""
    True
    """
    try:
        import pwd

        return pwd.getpwuid(os.getuid()).pw_name
    except (ImportError, KeyError):  # no such database here, or a container whose user has no entry in it
        return f"uid {os.getuid()}" if hasattr(os, "getuid") else "unknown"

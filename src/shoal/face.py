"""The short calls: what ``shoal.<name>`` is."""

from __future__ import annotations

from shoal.release.table import anonymize, measure, verify

__all__ = ["anonymize", "measure", "verify"]

"""Shoal: anonymize tables, time series and event streams, and prove every release before anyone reads it."""

__version__ = "0.1.0"

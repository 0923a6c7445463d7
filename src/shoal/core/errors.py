"""Errors: what was expected, what was found, where; then a hint. Never a person's value.

    ShoalError
    ├── PromiseError   1  the promise cannot be met, or a release breaks it
    ├── UsageError     2  the call or the command line is wrong
    │   └── PolicyError   the policy is wrong
    └── InputError     3  a file, a column or a record cannot be read
        └── OutputError   a result cannot be written

The number is the exit code of the command line.
"""

from __future__ import annotations


class ShoalError(Exception):
    """An error a person can act on: ``where`` it happened, what was wrong, and a ``hint``."""

    exit_code = 3

    def __init__(self, message: str, *, where: str | None = None, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.where = where
        self.hint = hint

    def __str__(self) -> str:
        text = f"{self.where}: {self.message}" if self.where else self.message
        return f"{text}\n\nhint: {self.hint}" if self.hint else text


class PromiseError(ShoalError):
    """A promise cannot be met, or data breaks it."""

    exit_code = 1


class UsageError(ShoalError, ValueError):
    """The call is wrong: a parameter out of range, a column that does not exist.

    A ``ValueError`` too, so that a spec may raise it and a policy can say where it happened.
    """

    exit_code = 2


class PolicyError(UsageError):
    """The policy is wrong; ``where`` is its line and path."""


class InputError(ShoalError):
    """Something that should be read cannot be read."""

    exit_code = 3


class OutputError(InputError):
    """Something that should be written cannot be written."""

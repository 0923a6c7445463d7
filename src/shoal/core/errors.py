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

from shoal.core.passwords import without_passwords


class ShoalError(Exception):
    """An error a person can act on: ``where`` it happened, what was wrong, and a ``hint``. It never has a password.

    >>> print(UsageError("k must be at least 1, found 0", where="k-anonymity", hint="k=5 is usual"))
    k-anonymity: k must be at least 1, found 0
    <BLANKLINE>
    hint: k=5 is usual
    """

    exit_code = 3

    def __init__(self, message: str, *, where: str | None = None, hint: str | None = None) -> None:
        self.message = without_passwords(message)
        self.where = None if where is None else without_passwords(where)
        self.hint = None if hint is None else without_passwords(hint)
        super().__init__(self.message)

    def __str__(self) -> str:
        text = f"{self.where}: {self.message}" if self.where else self.message
        return f"{text}\n\nhint: {self.hint}" if self.hint else text


class PromiseError(ShoalError):
    """A promise cannot be met, or data breaks it.

    >>> print(PromiseError("the table has 3 rows, and 5 must be alike", where="k-anonymity"))
    k-anonymity: the table has 3 rows, and 5 must be alike
    """

    exit_code = 1


class UsageError(ShoalError, ValueError):
    """The call is wrong: a parameter out of range, a column that does not exist.

    A ``ValueError`` too, so that a spec may raise it and a policy can say where it happened.

    >>> isinstance(UsageError("no such column", where="quasi"), ValueError)
    True
    """

    exit_code = 2


class PolicyError(UsageError):
    """The policy is wrong; ``where`` is its line and path.

    >>> PolicyError("there is no column 'agee'", where="line 7: views.ward.show", hint="did you mean 'age'?").where
    'line 7: views.ward.show'
    """


class InputError(ShoalError):
    """Something that should be read cannot be read.

    >>> InputError("expected a number", where="row 12, column 'age'").message
    'expected a number'
    """

    exit_code = 3


class OutputError(InputError):
    """Something that should be written cannot be written.

    >>> issubclass(OutputError, InputError)
    True
    """

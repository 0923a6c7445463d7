"""A keyed hash, as text or as a whole number: equal values stay equal, and nothing else is left."""

from __future__ import annotations

from typing import Any, ClassVar

from shoal.core.errors import UsageError
from shoal.core.schema import Type
from shoal.masks.base import Context, Plain, Running
from shoal.masks.keyed import Keyed, fingerprint


class Hash(Keyed, frozen=True, tag="hash"):
    """The first ``length`` hex digits of a hash salted with the key (BLAKE2b with a key, not a salt beside the data).

    Like a pseudonym without its epoch and its vault, for systems that expect so many hex digits and nothing else.

    Protects against: reading the value; trying all values, for everyone without the key.
    Does not protect against: counting (equal values have equal hashes); a stolen key, with which all values are tried.
    Cost: one BLAKE2b.

    >>> from shoal.core.keys import KeyRing
    >>> len(Hash(length=12).start(Context(keys=KeyRing().new("default"))).one("F. Ott"))
    12
    """

    attack: ClassVar[str] = "frequency: the commonest hash is the commonest value; with the key, trying all values"

    length: int = 32

    def __post_init__(self) -> None:
        # 128 hex digits are the 64 bytes that BLAKE2b has at most
        if not 8 <= self.length <= 128:
            raise UsageError("`length` must lie between 8 and 128", where="hash")

    def start(self, context: Context) -> Running:
        """See :class:`Mask`."""
        length = self.length
        of = fingerprint(self.derive(context), (length + 1) // 2)
        return Plain("str", lambda v: of(v).hex()[:length])

    def describe(self) -> str:
        """See :class:`Mask`."""
        return "keyed hash"


class Number(Keyed, frozen=True, tag="number"):
    """A pseudonym that is a whole number of at most ``digits`` digits.

    Protects against: reading or recomputing the value without the key.
    Does not protect against: counting. Two of n people share a number with probability about n²/(2·10^digits): with 15
    digits one in two million for thirty thousand people. It is a name, not a key to join on.
    Cost: one BLAKE2b.

    >>> from shoal.core.keys import KeyRing
    >>> 0 <= Number(digits=6).start(Context(keys=KeyRing().new("default"))).one("F. Ott") < 10**6
    True
    """

    attack: ClassVar[str] = "frequency and behaviour, as for pseudonyms; few digits make two people one"

    digits: int = 15

    def __post_init__(self) -> None:
        if not 4 <= self.digits <= 15:  # more would not survive JSON readers that have only doubles
            raise UsageError("`digits` must lie between 4 and 15", where="number")

    def output(self, kind: Type | None) -> Type | None:
        """See :class:`Mask`."""
        return "int"

    def start(self, context: Context) -> Running:
        """See :class:`Mask`."""
        of, most = fingerprint(self.derive(context)), 10**self.digits

        def number(value: Any) -> int:
            return int.from_bytes(of(value), "big") % most  # type: ignore[no-any-return]

        return Plain("int", number)

    def describe(self) -> str:
        """See :class:`Mask`."""
        return "pseudonym, a number"

"""What keyed masks share: which key, which domain, whose eyes."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

from shoal.core.keys import DEFAULT
from shoal.core.vault import Vault
from shoal.masks.base import Context, Mask, text_of


class Keyed(Mask, frozen=True, kw_only=True):
    """A mask with a secret.

    ``key`` is its name in the key ring. ``domain`` says what may be compared: equal values of two columns (or data
    sets) read alike only under the same domain, by default the column's own. Roles never share keys, unless
    ``linkable`` says that this column may join their views.
    """

    key: str = DEFAULT
    domain: str | None = None
    linkable: bool = False

    @property
    def keyed(self) -> bool:
        """See :class:`Mask`."""
        return True

    def derive(self, context: Context, *, epoch: int | None = None, size: int = 32) -> bytes:
        """This mask's own key for a column and a role."""
        return context.keys.derive(
            self.key,
            self.use,
            role="" if self.linkable else context.role,
            domain=self.domain or context.column,
            epoch=epoch,
            size=size,
        )

    def person(self, context: Context, subject: Any) -> bytes:
        """The fingerprint under which a vault knows a person: the same for every role, so that one word forgets all."""
        # of the first epoch: after a rotation a vault must still know who is in it
        key = context.keys.derive(self.key, "person", epoch=context.keys.epochs(self.key)[0])
        return digest(key, [subject])

    def salt(self, vault: Vault, context: Context, subject: Any) -> str:
        """The salt of a person, as text."""
        # the key's check value, because one vault may serve several keys; the type, because 1 equals True
        question = ("salt", context.keys.check(self.key, context.keys.epochs(self.key)[0]), type(subject), subject)
        return vault.recall(question, lambda: vault.salt(self.person(context, subject)).hex())


def digest(key: bytes, parts: Sequence[Any], size: int = 16) -> bytes:
    """A keyed fingerprint of values; each with its length, a missing one unlike any text.

    >>> digest(bytes(32), ["ab", "c"]) == digest(bytes(32), ["a", "bc"])
    False
    """
    return fingerprint(key, size)(*parts)


def fingerprint(key: bytes, size: int = 16, *first: Any) -> Callable[..., bytes]:
    """The same for many values that may all begin with the ``first``: those and the key are hashed once.

    >>> fingerprint(bytes(32), 16, "ab")("c") == digest(bytes(32), ["ab", "c"])
    True
    """
    start = hashlib.blake2b(_framed(first), key=key, digest_size=size).copy

    def of(part: Any, *more: Any) -> bytes:
        hashed = start()
        hashed.update(_frame(part) if not more else _frame(part) + _framed(more))
        return hashed.digest()

    return of


_SIZES = [size.to_bytes(4, "big") for size in range(256)]  # at hand: a third of the time of a frame


def _framed(parts: Sequence[Any]) -> bytes:
    return _frame(parts[0]) if len(parts) == 1 else b"".join([_frame(part) for part in parts])


def _frame(part: Any) -> bytes:
    if type(part) is str:
        text = part
    elif part is None:
        # no text is as long as this says, so none has this frame
        return b"\xff\xff\xff\xff"
    else:
        text = text_of(part)
    # the common case without the dearer handler of errors: one in ten of the time of a keyed mask
    # two texts that differ in a lone surrogate are two values, too
    raw = text.encode() if text.isascii() else text.encode("utf-8", "surrogatepass")
    size = len(raw)
    return (_SIZES[size] if size < 256 else size.to_bytes(4, "big")) + raw

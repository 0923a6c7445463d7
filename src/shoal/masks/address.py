"""Internet addresses that keep who neighbours whom: prefix-preserving and keyed (Xu, Fan, Ammar, Moon: Crypto-PAn)."""

from __future__ import annotations

import ipaddress
from typing import Any, ClassVar

from shoal.core.cells import SUPPRESSED
from shoal.core.errors import UsageError
from shoal.core.time import period, scale
from shoal.masks.base import Context, Running
from shoal.masks.keyed import Keyed


class Address(Keyed, frozen=True, tag="address"):
    """Map IPv4 and IPv6 addresses one to one; two that share their first n bits still share exactly n bits.

    ``rotate`` draws a new mapping every period of event time. What is no address becomes ``*``.

    Protects against: reading addresses without the key.
    Does not protect against: known neighbours. Each known pair (address, masked) gives away the first bits of all
    addresses near it; who can send traffic through the observed network learns the map bit by bit. Rotate, and treat
    masked addresses as quasi columns.
    Cost: 32 AES blocks for IPv4, 128 for IPv6, in one call.

    >>> from shoal.core.keys import KeyRing
    >>> running = Address().start(Context(keys=KeyRing().new("default")))
    >>> a, b = running.one("192.0.2.1"), running.one("192.0.2.7")
    >>> a.rpartition(".")[0] == b.rpartition(".")[0], a == "192.0.2.1"
    (True, False)
    """

    attack: ClassVar[str] = "known pairs: one known address gives away the prefixes of its neighbours"

    rotate: str | None = None

    def __post_init__(self) -> None:
        if self.rotate is not None:
            period(self.rotate, where="address")

    def start(self, context: Context) -> Running:
        """See :class:`Mask`."""
        if self.rotate is not None and context.time is None:
            raise UsageError(
                "`rotate` needs event time", where=context.column, hint="declare a column with `role: time`"
            )
        return _Address(self, context)

    def describe(self) -> str:
        """See :class:`Mask`."""
        return f"masked address{f', new every {self.rotate}' if self.rotate else ''}"


class _Address(Running):
    def __init__(self, spec: Address, context: Context) -> None:
        super().__init__("str", by=(context.time,) if spec.rotate and context.time else ())
        self._spec, self._context = spec, context
        self._key = spec.derive(context)
        self._period = period(spec.rotate, where="address") if spec.rotate else 0
        self._read = scale(context.unit)
        self._now: tuple[int, PrefixPreserving] | None = None
        self.alike = not self._period

    def one(self, value: Any, *by: Any) -> str:
        try:
            # texts only: a number would be taken for an address, 1 for 0.0.0.1
            address = ipaddress.ip_address(value.strip() if isinstance(value, str) else "")
        except ValueError:
            return SUPPRESSED
        cipher = self._cipher(*by)
        if cipher is None:
            return SUPPRESSED
        size = 4 if address.version == 4 else 16
        masked = cipher.mask(int(address), size)
        return str(ipaddress.IPv4Address(masked) if size == 4 else ipaddress.IPv6Address(masked))

    def _cipher(self, *by: Any) -> PrefixPreserving | None:
        period = 0
        if self._period:
            at = self._read(by[0])
            # without a time there is no period, and a key for all of them would never rotate
            if at < 0:
                return None
            period = at // self._period
        if self._now is None or self._now[0] != period:
            import hmac

            # a key of its own per period: pairs known from one tell nothing about the next
            key = hmac.digest(self._key, str(period).encode(), "sha256") if self._period else self._key
            self._now = (period, PrefixPreserving(key))
        return self._now[1]


class PrefixPreserving:
    """Crypto-PAn for one key of 32 bytes: 16 for AES, 16 for the pad.

    >>> cipher = PrefixPreserving(bytes(range(32)))
    >>> a, b = (cipher.mask(int.from_bytes(bytes([10, 0, 0, n]), "big"), 4) for n in (1, 2))
    >>> a >> 8 == b >> 8, a == b
    (True, False)
    """

    def __init__(self, key: bytes) -> None:
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

        # single blocks, none chained to another: that is how Crypto-PAn asks for its bits
        self._aes = Cipher(algorithms.AES(key[:16]), modes.ECB()).encryptor()
        self._pad = int.from_bytes(self._aes.update(key[16:32]), "big")
        # bit n hangs on the n bits before it alone, so that addresses with a common prefix keep one
        self._keep = [((1 << 128) - 1) ^ ((1 << (128 - bit)) - 1) for bit in range(128)]
        self._pads = [self._pad & ~keep for keep in self._keep]

    def mask(self, address: int, size: int) -> int:
        """The address with each bit flipped or not by what precedes it."""
        bits = size * 8
        high = address << (128 - bits)
        # no block depends on another's result: all go through AES in one call
        blocks = b"".join(
            ((high & keep) | pad).to_bytes(16, "big")
            for keep, pad in zip(self._keep[:bits], self._pads[:bits], strict=True)
        )
        out = self._aes.update(blocks)
        flips = 0
        for at in range(0, len(out), 16):
            # of each block one bit is used, as published
            flips = flips << 1 | out[at] >> 7
        return address ^ flips

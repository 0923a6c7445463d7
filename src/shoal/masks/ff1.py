"""Format-preserving encryption FF1 (NIST SP 800-38G): numerals in, as many numerals out.

Written here because no maintained package offers it: the `ff3` package is of a withdrawn mode, others predate the
standard. Tested with the published vectors. Only AES itself comes from elsewhere (`cryptography`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

SMALLEST_DOMAIN = 1_000_000  # the draft of revision 1: below this, guessing the whole table is too easy
ROUNDS = 10


class FF1:
    """The cipher for one key and radix. Numerals are integers below ``radix``, most significant first.

    >>> cipher = FF1(bytes(16), radix=10)
    >>> hidden = cipher.encrypt([4, 1, 1, 1, 2, 3])
    >>> len(hidden), cipher.decrypt(hidden)
    (6, [4, 1, 1, 1, 2, 3])
    """

    def __init__(self, key: bytes, radix: int) -> None:
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

        self.radix = radix
        self._block: Any = Cipher(algorithms.AES(key), modes.ECB()).encryptor().update  # single blocks only
        self._first: dict[tuple[int, int], bytes] = {}

    @staticmethod
    def shortest(radix: int) -> int:
        """The fewest numerals that make a domain large enough."""
        length = 2
        while radix**length < SMALLEST_DOMAIN:
            length += 1
        return length

    def encrypt(self, numerals: Sequence[int], tweak: bytes = b"") -> list[int]:
        """As many numerals that only the key brings back."""
        # a Feistel network: each round adds a keyed function of one half to the other, so that the key undoes it
        u = len(numerals) // 2
        a, b = list(numerals[:u]), list(numerals[u:])
        for i in range(ROUNDS):
            # the halves of an odd length differ by one numeral, and they change places every round
            m = u if i % 2 == 0 else len(numerals) - u
            c = (self._number(a) + self._round(i, b, len(numerals), tweak)) % self.radix**m
            a, b = b, self._numerals(c, m)
        return a + b

    def decrypt(self, numerals: Sequence[int], tweak: bytes = b"") -> list[int]:
        """The numerals that were encrypted."""
        u = len(numerals) // 2
        a, b = list(numerals[:u]), list(numerals[u:])
        # the rounds of `encrypt` backwards, with what was added taken away
        for i in range(ROUNDS - 1, -1, -1):
            m = u if i % 2 == 0 else len(numerals) - u
            c = (self._number(b) - self._round(i, a, len(numerals), tweak)) % self.radix**m
            a, b = self._numerals(c, m), a
        return a + b

    def _round(self, i: int, half: Sequence[int], n: int, tweak: bytes) -> int:
        u, t = n // 2, len(tweak)
        v = n - u
        size = math.ceil(_bits(self.radix, v) / 8)
        # more bytes than the half needs: the remainder by radix**m is then all but uniform
        d = 4 * math.ceil(size / 4) + 4
        q = tweak + bytes((-t - size - 1) % 16) + bytes([i]) + self._number(half).to_bytes(size, "big")
        r = self._start(n, t)
        # CBC-MAC over the tweak, the number of the round and the half
        for at in range(0, len(q), 16):
            r = self._block(_xor(r, q[at : at + 16]))
        s = r
        # where one block is not enough, more are made from it by counting
        for j in range(1, math.ceil(d / 16)):
            s += self._block(_xor(r, j.to_bytes(16, "big")))
        return int.from_bytes(s[:d], "big")

    def _start(self, n: int, t: int) -> bytes:
        """The encrypted first block P, the same for all values of one length."""
        if (n, t) not in self._first:
            # the length is part of it: 007 and 7 have nothing in common
            sizes = bytes([ROUNDS, n // 2 % 256]) + n.to_bytes(4, "big") + t.to_bytes(4, "big")
            self._first[n, t] = self._block(bytes([1, 2, 1]) + self.radix.to_bytes(3, "big") + sizes)
        return self._first[n, t]

    def _number(self, numerals: Sequence[int]) -> int:
        out = 0
        for numeral in numerals:
            out = out * self.radix + numeral
        return out

    def _numerals(self, number: int, length: int) -> list[int]:
        out = [0] * length
        for at in range(length - 1, -1, -1):
            number, out[at] = divmod(number, self.radix)
        return out


def _xor(a: bytes, b: bytes) -> bytes:
    return (int.from_bytes(a, "big") ^ int.from_bytes(b, "big")).to_bytes(16, "big")


def _bits(radix: int, length: int) -> int:
    """⌈length · log2(radix)⌉, exactly."""
    return int(radix**length - 1).bit_length()

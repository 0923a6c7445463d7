"""Numbers that carry check digits: cards, bank accounts, tax and insurance numbers."""

from __future__ import annotations

from collections.abc import Sequence


def luhn(digits: Sequence[int]) -> bool:
    """Whether the digits of a card pass Luhn's check.

    >>> luhn([int(c) for c in "4111111111111111"]), luhn([int(c) for c in "4111111111111112"])
    (True, False)
    """
    doubled = [d * 2 - 9 * (d > 4) if at % 2 else d for at, d in enumerate(reversed(digits))]
    return len(digits) > 1 and sum(doubled) % 10 == 0


def with_luhn(digits: Sequence[int]) -> list[int]:
    """The digits and the one that makes them pass Luhn's check."""
    return next([*digits, last] for last in range(10) if luhn([*digits, last]))


def iban(text: str) -> bool:
    """Whether a text without blanks has the check digits of an account number (ISO 13616).

    >>> iban("DE89370400440532013000"), iban("DE89370400440532013001")
    (True, False)
    """
    moved = text[4:] + text[:4]
    is_plain = text.isascii() and text.isalnum() and 15 <= len(text) <= 34
    return is_plain and int("".join(str(int(c, 36)) for c in moved)) % 97 == 1


def with_iban(country: str, account: str) -> str:
    """An account number of a country with its check digits."""
    rest = int("".join(str(int(c, 36)) for c in f"{account}{country}00")) % 97
    return f"{country}{98 - rest:02d}{account}"


def national(digits: str) -> bool:
    """Whether digits are a German tax number (ISO 7064, 11 digits) or a French insurance number (15, modulo 97).

    >>> national("86095742719"), national("86095742718"), national("255081416802538")
    (True, False, True)
    """
    if len(digits) == 15:
        return 97 - int(digits[:13]) % 97 == int(digits[13:])
    if len(digits) != 11 or digits[0] == "0":
        return False
    product = 10
    for digit in digits[:10]:
        product = 2 * ((int(digit) + product) % 10 or 10) % 11
    # a check digit of 10 is written as 0
    return (11 - product) % 10 == int(digits[10])

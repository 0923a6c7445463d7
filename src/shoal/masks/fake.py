"""Something invented that looks real: a name, an address, a card that passes its check."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, Literal, TypeVar

from shoal.core.schema import Type
from shoal.masks.base import Context, Plain, Running
from shoal.masks.check_digits import with_iban, with_luhn
from shoal.masks.keyed import Keyed, fingerprint
from shoal.masks.locales import LOCALES, Language

What = Literal["name", "given", "family", "mail", "phone", "address", "city", "company", "iban", "card"]
T = TypeVar("T")
# characters behind the country and the check digits
ACCOUNT = {"DE": 18, "GB": 18, "FR": 23}


class Fake(Keyed, frozen=True, tag="fake"):
    """An invented ``what`` of a ``locale``, drawn with the key: equal values of a role get equal fakes.

    Mail addresses end in ``example.org`` and telephone numbers lie in ranges kept for fiction; cards and accounts have
    right check digits and no bank behind them.

    Protects against: reading the value, while forms and tests that check formats still work.
    Does not protect against: counting; several people share a fake, so it identifies nobody and joins nothing. A fake
    may by chance be somebody's real name.
    Cost: one BLAKE2b and a few look-ups.

    >>> from shoal.core.keys import KeyRing
    >>> Fake(what="card").start(Context(keys=KeyRing({"default": {1: bytes(32)}}))).one("4556 1234")[:4]
    '9999'
    """

    attack: ClassVar[str] = "frequency: the commonest fake stands for the commonest value"

    what: What = "name"
    locale: Language = "en"

    def output(self, kind: Type | None) -> Type | None:
        """See :class:`Mask`."""
        return "str"

    def start(self, context: Context) -> Running:
        """See :class:`Mask`."""
        of = fingerprint(self.derive(context))
        make, locale = MAKERS[self.what], self.locale

        return Plain("str", lambda value: make(Draw(of(value)), locale))

    def describe(self) -> str:
        """See :class:`Mask`."""
        return f"an invented {self.what}"


class Draw:
    """Choices out of a fingerprint.

    >>> Draw(bytes(32)).of("abc")
    'a'
    """

    __slots__ = ("_left",)  # one is made per value

    def __init__(self, raw: bytes) -> None:
        # one large number, of which each choice takes its share away
        self._left = int.from_bytes(raw, "big")

    def below(self, limit: int) -> int:
        """A whole number."""
        self._left, found = divmod(self._left, limit)
        return found

    def of(self, many: Sequence[T]) -> T:
        """One of many."""
        self._left, found = divmod(self._left, len(many))
        return many[found]

    def digits(self, form: str) -> str:
        """A form with its ``#`` filled in."""
        return "".join(str(self.below(10)) if c == "#" else c for c in form)


def _name(draw: Draw, at: Language) -> str:
    place = LOCALES[at]
    return f"{draw.of(place.given)} {draw.of(place.family)}"


def _mail(draw: Draw, at: Language) -> str:
    given, family = draw.of(LOCALES[at].given), draw.of(LOCALES[at].family)
    plain = "".join(PLAIN.get(c, c) for c in f"{given}.{family}".lower())
    return f"{plain}{draw.below(100)}@example.org"


PLAIN = {"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss", "é": "e", "è": "e", "ç": "c", "ë": "e"}


def _address(draw: Draw, at: Language) -> str:
    place = LOCALES[at]
    number, street, city = 1 + draw.below(120), draw.of(place.streets), draw.of(place.cities)
    return place.address.format(number=number, street=street, city=city)


def _company(draw: Draw, at: Language) -> str:
    end = {"en": "Ltd", "de": "GmbH", "fr": "SARL"}[at]
    return f"{draw.of(LOCALES[at].companies)} {draw.of(LOCALES[at].family)} {end}"


def _iban(draw: Draw, at: Language) -> str:
    bank = LOCALES[at].bank
    account = "".join(str(draw.below(10)) for _ in range(ACCOUNT[bank]))
    # British accounts begin with four letters for the bank
    return with_iban(bank, f"SHOL{account[4:]}" if bank == "GB" else account)


def _card(draw: Draw, at: Language) -> str:
    # no network hands out numbers that begin with 9999
    return "".join(map(str, with_luhn([9, 9, 9, 9, *(draw.below(10) for _ in range(11))])))


MAKERS: dict[What, Callable[[Draw, Language], str]] = {
    "name": _name,
    "given": lambda draw, at: draw.of(LOCALES[at].given),
    "family": lambda draw, at: draw.of(LOCALES[at].family),
    "mail": _mail,
    "phone": lambda draw, at: draw.digits(LOCALES[at].phone),
    "address": _address,
    "city": lambda draw, at: draw.of(LOCALES[at].cities),
    "company": _company,
    "iban": _iban,
    "card": _card,
}

"""A token that only the key, or the vault, turns back (Allgöwer 2023, Figure 5)."""

from __future__ import annotations

import string
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import msgspec

from shoal.core.errors import UsageError
from shoal.core.vault import Vault
from shoal.masks.base import Context, Running, text_of
from shoal.masks.ff1 import FF1
from shoal.masks.keyed import Keyed, fingerprint

if TYPE_CHECKING:
    import polars as pl

ALPHABETS = {
    "digits": string.digits,
    "upper": string.digits + string.ascii_uppercase,
    "lower": string.digits + string.ascii_lowercase,
    "letters": string.digits + string.ascii_uppercase + string.ascii_lowercase,
}
# they stay where they are, so they cannot be letters of an alphabet
SEPARATORS = frozenset(" -./:+()")
PAD = 16


class Tokenize(Keyed, frozen=True, tag="tokenize"):
    """Replace a value by a token; `shoal reveal` with the key brings the value back.

    ``form: siv`` (the default) is AES-SIV: ``t<epoch>.<hex digits>``, its length rounded up so that short values look
    alike. ``form: ff1`` keeps the format: as many characters of ``alphabet`` as before, separators where they were; a
    value that does not fit it (too short for a domain of a million, other characters) gets an AES-SIV token. ``form:
    vault`` draws a random token and stores the value, sealed, in the SQLite file ``vault``; its row can be forgotten.
    ``check`` is the key check value (`shoal keys list`): a wrong key is then refused before anything is written, and
    FF1 keeps using that epoch of the key after a rotation.

    Protects against: everyone without the key; across roles, against comparing tokens.
    Does not protect against: counting within one role (equal values have equal tokens), or a stolen key.
    Cost: one AES-SIV of a few blocks; ten rounds of AES for FF1; a database row per new value for the vault.

    >>> from shoal.core.keys import KeyRing
    >>> at = Context(keys=KeyRing().new("billing"), role="billing")
    >>> running = Tokenize(key="billing").start(at)
    >>> running.reveal(running.one("K15489"))
    'K15489'
    """

    reversible: ClassVar[bool] = True
    attack: ClassVar[str] = "frequency: equal values have equal tokens, so the commonest token is the commonest value"

    form: Literal["siv", "ff1", "vault"] = "siv"
    alphabet: str = "digits"
    vault: str | None = None
    check: str | None = None

    def __post_init__(self) -> None:
        if (self.form == "vault") != (self.vault is not None):
            raise UsageError("`vault` (a file) belongs to `form: vault`, and only there", where="tokenize")
        letters = ALPHABETS.get(self.alphabet, self.alphabet)
        if len(set(letters)) != len(letters) or len(letters) < 2 or SEPARATORS & set(letters):
            raise UsageError(
                "`alphabet` must be a name or at least two different characters that are no separators",
                where="tokenize",
                hint=f"names: {', '.join(ALPHABETS)}",
            )

    def start(self, context: Context) -> Running:
        """See :class:`Mask`."""
        if self.check is not None and self.checked(context) is None:
            raise UsageError(
                f"the key {self.key!r} is not the one this policy was written for (its check value differs)",
                where=context.column,
                hint="load the right key ring; `shoal keys list` shows check values",
            )
        form: dict[str, Callable[[Tokenize, Context], Running]] = {
            "siv": Siv,
            "ff1": FormatPreserving,
            "vault": Vaulted,
        }
        return form[self.form](self, context)

    def checked(self, context: Context) -> int | None:
        """The epoch whose check value this is."""
        epochs = context.keys.epochs(self.key)
        return next((at for at in epochs if context.keys.check(self.key, at) == self.check), None)

    def describe(self) -> str:
        """See :class:`Mask`."""
        return f"token ({self.key}{'' if self.form == 'siv' else f', {self.form}'})"


class Siv(Running):
    """AES-SIV: deterministic, authenticated; the epoch stands in the token."""

    alike = True

    def __init__(self, spec: Tokenize, context: Context) -> None:
        super().__init__("str")
        self._spec, self._context = spec, context
        self._epoch = context.keys.current(spec.key)
        self._ciphers: dict[int, Any] = {}
        # at once: a missing key is told at the start, not in the middle of a stream
        self._cipher(self._epoch)

    def _cipher(self, epoch: int) -> Any:
        from cryptography.hazmat.primitives.ciphers.aead import AESSIV

        if epoch not in self._ciphers:
            # 64 bytes: AES-SIV has one key for its tag and one for the text
            self._ciphers[epoch] = AESSIV(self._spec.derive(self._context, epoch=epoch, size=64))
        return self._ciphers[epoch]

    def one(self, value: Any, *by: Any) -> str:
        """See :class:`Running`."""
        return f"t{self._epoch}.{self._ciphers[self._epoch].encrypt(_pack(value), None).hex()}"

    def reveal(self, text: str) -> Any:
        """See :class:`Running`."""
        from cryptography.exceptions import InvalidTag

        head, dot, tail = text.partition(".")
        if not dot or not head.startswith("t") or not head[1:].isdigit():
            raise UsageError("this is not a token", where=self._context.column)
        try:
            return msgspec.json.decode(self._cipher(int(head[1:])).decrypt(bytes.fromhex(tail), None))
        except (InvalidTag, ValueError) as error:
            # the ring says itself which epoch it lacks
            if isinstance(error, UsageError):
                raise
            raise UsageError(
                "the token does not open: another key, role or column made it, or it was damaged",
                where=self._context.column,
            ) from None


class FormatPreserving(Running):
    """FF1 over the characters of an alphabet; what does not fit gets an AES-SIV token."""

    alike = True

    def __init__(self, spec: Tokenize, context: Context) -> None:
        super().__init__("str")
        letters = ALPHABETS.get(spec.alphabet, spec.alphabet)
        self._letters, self._number_of = letters, {c: i for i, c in enumerate(letters)}
        self._shortest = FF1.shortest(len(letters))
        # the epoch cannot stand in a token that keeps its format: the check value names it
        self._cipher = FF1(spec.derive(context, epoch=spec.checked(context)), len(letters))
        self._siv = Siv(spec, context)
        self._checked, self._column = spec.check is not None, context.column

    def one(self, value: Any, *by: Any) -> str:
        """See :class:`Running`."""
        text = text_of(value)
        return self._apply(text, self._cipher.encrypt) or self._siv.one(value)

    def reveal(self, text: str) -> Any:
        """See :class:`Running`. FF1 cannot notice a wrong key by itself, so ``check`` is demanded."""
        if not self._checked:
            raise UsageError(
                "a format-preserving token cannot tell a wrong key from the right one",
                where=self._column,
                hint="put the key's check value (shoal keys list) into the mask: check: …",
            )
        return self._apply(text, self._cipher.decrypt) or self._siv.reveal(text)

    def notes(self, values: pl.Series, *by: pl.Series) -> list[str]:
        """See :class:`Running`."""
        known = values.drop_nulls()
        count = sum(self._numerals(text_of(v)) is None for v in known.to_list())
        if not count:
            return []
        need = f"{self._shortest} or more characters of the alphabet"
        return [f"{count:,} of {len(known):,} values do not fit ff1 (it needs {need}) and become long tokens"]

    def _numerals(self, text: str) -> list[int] | None:
        """The characters that are encrypted; none if the text does not fit."""
        numerals = [self._number_of[c] for c in text if c in self._number_of]
        fits = len(numerals) >= self._shortest and all(c in self._number_of or c in SEPARATORS for c in text)
        return numerals if fits else None

    def _apply(self, text: str, cipher: Callable[[list[int]], list[int]]) -> str | None:
        numerals = self._numerals(text)
        if numerals is None:
            return None
        out = iter(cipher(numerals))
        return "".join(self._letters[next(out)] if c in self._number_of else c for c in text)


class Vaulted(Running):
    """Random tokens, whose sealed values a vault keeps until they are forgotten."""

    def __init__(self, spec: Tokenize, context: Context) -> None:
        super().__init__("str", by=(context.subject,) if context.subject else ())
        from cryptography.hazmat.primitives.ciphers.aead import AESSIV

        # the first epoch: a vault's tokens are random, so a rotated key has nothing to renew
        key = spec.derive(context, epoch=context.keys.epochs(spec.key)[0], size=96)
        # one key opens values, another only recognises them: who has the prints alone opens nothing
        self._seal, self._print = AESSIV(key[:64]), fingerprint(key[64:])
        self._spec, self._context = spec, context
        # tokens of two roles must not be comparable, unless the policy says so
        self._domain = f"{'' if spec.linkable else context.role}\x1f{spec.domain or context.column}"
        self._question = (self._domain, key)
        self._vault = Vault.at(context.folder / str(spec.vault))

    def one(self, value: Any, *by: Any) -> str:
        """See :class:`Running`."""
        # types beside values: 1, 1.0 and True are equal to a dictionary
        return self._vault.recall((self._question, type(value), value, by), lambda: self._token(value, *by))

    def many(self, values: pl.Series, *by: pl.Series) -> pl.Series:
        """See :class:`Running`: each value of each person is asked for once."""
        import polars as pl

        rows = pl.DataFrame([values.alias("0"), *(s.alias(str(at)) for at, s in enumerate(by, 1))])
        distinct = rows.unique()
        made = super().many(*distinct.get_columns())
        return rows.join(
            distinct.with_columns(made.alias("made")),
            on=rows.columns,
            how="left",
            nulls_equal=True,
            maintain_order="left",
        )["made"].alias(values.name)

    def _token(self, value: Any, *by: Any) -> str:
        person = self._spec.person(self._context, by[0]) if by and by[0] is not None else None
        # sealed for this token: put beside another one, it does not open
        return self._vault.token(
            self._domain, self._print(value), person, lambda t: self._seal.encrypt(_pack(value), [t.encode()])
        )

    def settle(self) -> None:
        """See :class:`Running`."""
        self._vault.commit()

    def reveal(self, text: str) -> Any:
        """See :class:`Running`."""
        from cryptography.exceptions import InvalidTag

        sealed = self._vault.sealed(self._domain, text)
        if sealed is None:
            raise UsageError("the vault does not know this token (any more)", where=self._context.column)
        try:
            return msgspec.json.decode(self._seal.decrypt(sealed, [text.encode()]))
        except InvalidTag:
            raise UsageError("the token does not open: this is another key", where=self._context.column) from None


def _pack(value: Any) -> bytes:
    """The value with its type, padded: trailing blanks are no part of JSON, and hide the length up to 16 bytes."""
    raw = msgspec.json.encode(value)
    return raw + b" " * (-len(raw) % PAD)

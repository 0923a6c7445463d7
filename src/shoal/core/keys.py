"""Secrets by name: from the environment, a file or a key ring; never from a policy.

One secret serves many purposes: every use derives its own key by HKDF from (secret, purpose, role, domain, epoch), so
two roles that see tokens of one column share nothing they could compare. Rotation adds an *epoch*: new tokens carry
the new number, old ones stay revealable until their epoch is forgotten.

    SHOAL_KEY            the key called `default`
    SHOAL_KEY_BILLING    the key called `billing`; `2:…,1:…` for several epochs
    SHOAL_KEYS           path of a key ring (JSON, made by `shoal keys new`)
"""

from __future__ import annotations

import base64
import binascii
import json
import os
import re
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from shoal.core.errors import InputError, UsageError
from shoal.core.originals import register
from shoal.core.private_file import refuse_readable, write_private

DEFAULT = "default"
SHORTEST = 32  # bytes: what AES-256 and BLAKE2b deserve
_NAME = re.compile(r"^[a-z][a-z0-9_-]{0,63}$")


@dataclass(frozen=True, repr=False)
class KeyRing:
    """Secrets by name and epoch. Its text never shows a secret.

    >>> ring = KeyRing().new("billing")
    >>> ring.current("billing"), ring.rotate("billing").epochs("billing")
    (1, [1, 2])
    >>> ring
    KeyRing(billing: 1)
    """

    keys: Mapping[str, Mapping[int, bytes]] = field(default_factory=dict)

    def __repr__(self) -> str:
        listed = ", ".join(f"{name}: {' '.join(map(str, sorted(epochs)))}" for name, epochs in self.keys.items())
        return f"KeyRing({listed})"

    def epochs(self, name: str) -> list[int]:
        """The epochs of a key, oldest first."""
        if not self.keys.get(name):
            variable = variable_of(name)
            raise UsageError(
                f"there is no key called {name!r}",
                where="keys",
                hint=f"set {variable}, or make one: shoal keys new {name} --ring keys.json",
            )
        return sorted(self.keys[name])

    def current(self, name: str) -> int:
        """The newest epoch of a key: the one new tokens are made with."""
        return self.epochs(name)[-1]

    def derive(
        self, name: str, purpose: str, *, role: str = "", domain: str = "", epoch: int | None = None, size: int = 32
    ) -> bytes:
        """The key for one purpose, role and domain, at the current or a given epoch."""
        from cryptography.hazmat.primitives.hashes import SHA256
        from cryptography.hazmat.primitives.kdf.hkdf import HKDF

        at = self.current(name) if epoch is None else epoch
        if at not in self.epochs(name):
            raise UsageError(
                f"epoch {at} of the key {name!r} is not in the ring (it was forgotten, or this is another ring)",
                where="keys",
            )
        # every part with its length: ("ab", "c") must never meet ("a", "bc")
        info = b"".join(len(p).to_bytes(4, "big") + p for p in (s.encode() for s in ("shoal", purpose, role, domain)))
        return HKDF(SHA256(), size, salt=None, info=info).derive(self.keys[name][at])

    def every(self, name: str, purpose: str, *, role: str = "", domain: str = "") -> Iterator[bytes]:
        """The keys for one purpose, newest epoch first: what an older one sealed can still be opened.

        >>> ring = KeyRing().new("billing").rotate("billing")
        >>> newest, older = ring.every("billing", "state")
        >>> newest == ring.derive("billing", "state"), older == ring.derive("billing", "state", epoch=1)
        (True, True)
        """
        for epoch in reversed(self.epochs(name)):
            yield self.derive(name, purpose, role=role, domain=domain, epoch=epoch)

    def check(self, name: str, epoch: int | None = None) -> str:
        """Eight digits that tell two secrets apart and say nothing about them: the key check value."""
        return self.derive(name, "check", epoch=epoch, size=4).hex()

    def new(self, name: str) -> KeyRing:
        """This ring with one more key."""
        if not _NAME.match(name):
            raise UsageError(
                "the name of a key is a lower-case letter, then letters, digits, `-` or `_` (64 at most)", where="keys"
            )
        if self.keys.get(name):
            raise UsageError(
                f"there is already a key called {name!r}",
                where="keys",
                hint=f"for a new epoch of it: shoal keys rotate {name}",
            )
        return KeyRing({**self.keys, name: {1: secrets.token_bytes(SHORTEST)}})

    def rotate(self, name: str) -> KeyRing:
        """This ring with a new epoch of a key; older epochs still reveal what they made."""
        fresh = {self.current(name) + 1: secrets.token_bytes(SHORTEST)}
        return KeyRing({**self.keys, name: {**self.keys[name], **fresh}})

    def forget(self, name: str, epoch: int) -> KeyRing:
        """This ring without an epoch: nothing made with it can be revealed or recomputed any more."""
        if epoch == self.current(name):
            raise UsageError(f"epoch {epoch} is the current one of {name!r}", where="keys", hint="rotate first")
        return KeyRing({**self.keys, name: {at: s for at, s in self.keys[name].items() if at != epoch}})

    def save(self, path: Path) -> None:
        """Write the ring for its owner only, all or nothing."""
        text = {
            name: [{"epoch": at, "secret": base64.b64encode(secret).decode()} for at, secret in sorted(epochs.items())]
            for name, epochs in self.keys.items()
        }
        write_private(path, json.dumps({"shoal-keys": 1, "keys": text}, indent=1).encode(), "the key ring")

    @classmethod
    def open(cls, path: Path) -> KeyRing:
        """A ring from its file, which only its owner may read."""
        refuse_readable(path, "the key ring")
        register(path)
        try:
            content = json.loads(path.read_text())
            entries = content["keys"].items() if content["shoal-keys"] == 1 else None
        except OSError as error:
            raise InputError(f"cannot read the key ring ({error.strerror})", where=str(path)) from None
        except (ValueError, KeyError, TypeError, AttributeError):
            entries = None
        if entries is None:
            raise UsageError(
                "this is not a key ring", where=str(path), hint="shoal keys new NAME --ring PATH makes one"
            )
        try:
            return cls({n: {int(e["epoch"]): _secret(e["secret"], f"{path}: {n}") for e in es} for n, es in entries})
        except (KeyError, TypeError):
            raise UsageError("a key needs `epoch` and `secret`", where=str(path)) from None

    @classmethod
    def load(cls, path: Path | None = None, environ: Mapping[str, str] | None = None) -> KeyRing:
        """All keys at hand: the ring named (or by ``SHOAL_KEYS``), then the environment, which wins."""
        environ = os.environ if environ is None else environ
        at = path or (Path(environ["SHOAL_KEYS"]) if environ.get("SHOAL_KEYS") else None)
        found: dict[str, Mapping[int, bytes]] = dict(cls.open(at).keys) if at else {}
        for variable, text in environ.items():
            if variable == "SHOAL_KEY" or variable.startswith("SHOAL_KEY_"):
                name = variable[len("SHOAL_KEY_") :].lower().replace("_", "-") or DEFAULT
                found[name] = _epochs(text, variable)
        return cls(found)


def variable_of(name: str) -> str:
    """The environment variable a key may come from.

    >>> variable_of("billing")
    'SHOAL_KEY_BILLING'
    """
    return "SHOAL_KEY" if name == DEFAULT else "SHOAL_KEY_" + name.upper().replace("-", "_")


def _epochs(text: str, where: str) -> dict[int, bytes]:
    """``secret``, ``file:path`` or ``2:secret,1:secret``."""
    if text.startswith("file:"):
        path = Path(text[len("file:") :])
        refuse_readable(path, f"the key of {where}")
        register(path)
        try:
            text = path.read_text().strip()
        except OSError as error:
            raise InputError(f"cannot read the key file ({error.strerror})", where=where) from None
    out: dict[int, bytes] = {}
    for part in text.split(","):
        epoch, colon, secret = part.strip().partition(":")
        if colon and epoch.isdigit():
            out[int(epoch)] = _secret(secret, where)
        else:
            out[1] = _secret(part.strip(), where)
    return out


def _secret(text: str, where: str) -> bytes:
    hint = f"at least {SHORTEST} random bytes as base64 or hex: shoal keys new, or openssl rand -base64 32"
    try:
        if re.fullmatch(r"(?:[0-9a-fA-F]{2})+", text):
            secret = bytes.fromhex(text)
        else:
            secret = base64.b64decode(
                text + "=" * (-len(text) % 4), altchars=b"-_" if set(text) & set("-_") else None, validate=True
            )
    except (binascii.Error, ValueError, TypeError):
        raise UsageError("expected a key in base64 or hex", where=where, hint=hint) from None
    if len(secret) < SHORTEST:
        raise UsageError(f"the key is too short: {len(secret)} bytes", where=where, hint=hint)
    return secret

"""State that survives a run: versioned, sealed, and never older than the last one written.

*Sealed* has one meaning here: encrypted and authenticated with a key of the ring (AES-SIV; for much that passes by,
AES-GCM under a key drawn for each content, in a tenth of the time). Who has no key can neither read a state, nor change
it, nor use it in another place: the seal covers what kind of state it is, its version and the context it belongs to.
Where a key is given, a state without a seal is refused.

A seal cannot tell an old state from the newest one, both are genuine. So a :class:`StateFile` numbers what it writes
and keeps the newest number in ``FILE.counter`` beside; an older file put back is refused. Kafka keeps the number in the
note of the committed offset instead (``runtime/kafka/state/changelog.py``).

>>> key = bytes(range(32))
>>> unseal(seal(b"counts", "example", key), "example", key)
b'counts'
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from shoal.core.errors import InputError, UsageError
from shoal.core.originals import refuse
from shoal.core.private_file import write_private

Opened = TypeVar("Opened")
FORMAT = "shoal-state"
ANEW_FORMAT = b"shoal-anew1"  # no envelope begins so
SALT = 32  # bytes
NONCE = bytes(12)
HINT = "was a key rotated? give the newest key ring, which opens what older epochs sealed, too"
ANEW = "continue with the program that wrote it, or start anew"


class Envelope(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The outside of a state."""

    format: str
    kind: str
    version: int
    sealed: bool
    content: bytes


class Numbered(msgspec.Struct, frozen=True, array_like=True):
    """The inside of a state file, or of its counter: which file, the how-manieth writing, and what was written."""

    name: bytes
    number: int
    content: bytes


def seal(content: bytes, kind: str, key: bytes | None, *, version: int = 1, context: str = "") -> bytes:
    """A state as bytes. The same content gives the same bytes. Without a key it is written open, for all to see.

    >>> state = seal(b"counts", "stream", bytes(32), context="window 7")
    >>> unseal(state, "stream", bytes(32), context="window 7"), b"counts" in state
    (b'counts', False)
    """
    inside = content if key is None else _cipher(kind, key).encrypt(content, _about(kind, version, context))
    return msgspec.msgpack.encode(Envelope(FORMAT, kind, version, key is not None, inside))


def unseal(
    state: bytes, kind: str, key: bytes | None, *, version: int = 1, context: str = "", where: str = "snapshot"
) -> bytes:
    """The content of a state, or an error that says why not.

    >>> unseal(seal(b"state", "windows", bytes(32)), "windows", bytes(32))
    b'state'
    """
    from cryptography.exceptions import InvalidTag

    try:
        outside = msgspec.msgpack.decode(state, type=Envelope)
    except (msgspec.MsgspecError, ValueError):  # ValueError: a text that is not UTF-8
        outside = None
    if outside is None or outside.format != FORMAT:
        raise InputError(f"this is not a state of {kind}, or it was cut off", where=where)
    if outside.kind != kind:
        raise UsageError(f"expected a state of {kind}, found another kind", where=where)
    if outside.version != version:
        raise InputError(f"expected version {version} of the state, found another", where=where, hint=ANEW)
    if key is None:
        if outside.sealed:
            raise UsageError("the state is sealed", where=where, hint="give the key it was written with")
        return outside.content
    if not outside.sealed:
        raise InputError(
            "the state has no seal, though a key is given: anyone could have written it",
            where=where,
            hint="start anew; states are sealed from their first writing on if the key is there",
        )
    try:
        opened: bytes = _cipher(kind, key).decrypt(outside.content, _about(kind, version, context))
    except InvalidTag:
        raise InputError(
            "the state cannot be opened with this key, or was changed, or belongs elsewhere", where=where, hint=HINT
        ) from None
    return opened


def seal_anew(content: bytes, kind: str, key: bytes) -> bytes:
    """Like :func:`seal`, for much that passes by: other bytes each time, in a tenth of the time.

    Each content has a key of its own, drawn by a salt, so a nonce is never used twice under one.

    >>> one, other = (seal_anew(b"records", "example", bytes(32)) for _ in range(2))
    >>> one == other, unseal_anew(one, "example", bytes(32))
    (False, b'records')
    """
    salt = secrets.token_bytes(SALT)
    sealed: bytes = _cipher_of(kind, key, salt).encrypt(NONCE, content, kind.encode())
    return ANEW_FORMAT + salt + sealed


def is_anew(state: bytes) -> bool:
    """Whether a state was written by :func:`seal_anew`; if it is one at all.

    >>> is_anew(seal_anew(b"", "example", bytes(32))), is_anew(seal(b"", "example", bytes(32)))
    (True, False)
    """
    return state.startswith(ANEW_FORMAT)


def unseal_anew(state: bytes, kind: str, key: bytes, *, where: str = "snapshot") -> bytes:
    """The content of what :func:`seal_anew` wrote, or an error that says why not.

    >>> unseal_anew(seal_anew(b"records", "example", bytes(32)), "example", bytes(32))
    b'records'
    """
    from cryptography.exceptions import InvalidTag

    begin = len(ANEW_FORMAT) + SALT
    try:
        if not is_anew(state):
            raise InvalidTag
        content: bytes = _cipher_of(kind, key, state[begin - SALT : begin]).decrypt(NONCE, state[begin:], kind.encode())
    except InvalidTag:
        raise InputError(
            "the state cannot be opened with this key, or was changed, or belongs elsewhere", where=where, hint=HINT
        ) from None
    return content


def opened(attempt: Callable[[bytes], Opened], keys: Iterable[bytes]) -> Opened:
    """What the first key that opens a state gives; without one, why the first (the newest) does not.

    >>> old, new = bytes(32), bytes(range(32))
    >>> opened(lambda key: unseal(seal(b"counts", "example", old), "example", key), [new, old])
    b'counts'
    """
    first: InputError | None = None
    for key in keys:
        try:
            return attempt(key)
        except InputError as error:
            first = first or error
    raise first or UsageError("there is no key to open a state with", where="keys")


def state_files(path: str | None) -> list[str]:
    """All files of a state: it and its counter; none if there is no state.

    >>> state_files("run/state"), state_files(None)
    (['run/state', 'run/state.counter'], [])
    """
    return [] if path is None else [path, str(counter_of(Path(path)))]


def counter_of(path: Path) -> Path:
    """The counter beside a state."""
    return path.with_name(path.name + ".counter")


class StateFile:
    """A state in a file, and the counter beside it that tells an older one.

    The state is written first and its counter then: after a crash in between, the state is newer than the counter,
    which is fine. A state that is older than its counter was put back, and is refused; so is a state without a counter,
    and a counter whose state is gone.

    The counter helps only against who cannot put back both: protect ``FILE.counter``, or keep the folder where only
    the service may write.

    >>> import tempfile
    >>> file = StateFile(Path(tempfile.mkdtemp()) / "state", "stream", bytes(32))
    >>> file.write(b"counts")
    >>> file.read()
    b'counts'
    """

    def __init__(self, path: Path, kind: str, key: bytes | None, *, version: int = 1) -> None:
        self.path, self.kind, self.version = path, kind, version
        self.counter = counter_of(path)
        self._key = key
        self._name = b""
        self.number = 0  # of the state that was read or written last

    @property
    def seals(self) -> bool:
        """Whether there is a key, so that nothing is written or believed without a seal."""
        return self._key is not None

    def read(self) -> bytes | None:
        """The newest content; nothing if none was ever written."""
        known = self._counted()
        if not self.path.exists():
            if known is not None and known.number:
                raise InputError(
                    "the state is gone, but its counter is there: it was written before",
                    where=str(self.path),
                    hint=f"bring it back; or delete {self.counter.name} if everything must start over",
                )
            self._name, self.number = (known.name, known.number) if known is not None else (b"", 0)
            return None
        held = _numbered(unseal(_bytes(self.path), self.kind, self._key, version=self.version, where=str(self.path)))
        if known is None or known.name != held.name:
            raise InputError(
                "the state has no counter beside it, or one of another state: it may be an old one put back",
                where=str(self.path),
                hint=f"a state moves together with {self.counter.name}",
            )
        if held.number < known.number:
            raise InputError(
                f"this is an older state: expected writing {known.number:,}, found {held.number:,}",
                where=str(self.path),
                hint="bring back the newest one; going on from an older one would publish people again in other groups",
            )
        self._name, self.number = held.name, held.number
        if held.number > known.number:  # a crash came between the two: from now on the older state is refused
            self._count(held.number)
        return held.content

    def write(self, content: bytes) -> None:
        """Write the next state. It is refused if another run has written since this one read."""
        for place in (self.path, self.counter):
            refuse(place)
        known = self._counted()
        if known is not None and (known.name != (self._name or known.name) or known.number > self.number):
            raise InputError(
                "another run has written this state meanwhile, or it was not read first",
                where=str(self.path),
                hint="one run at a time",
            )
        if known is None:  # before the first state, so that a state without a counter is never right
            self._name = self._name or secrets.token_bytes(16)
            self._count(0)
        self._name = self._name or (known.name if known is not None else b"")
        inside = msgspec.msgpack.encode(Numbered(self._name, self.number + 1, content))
        write_private(self.path, seal(inside, self.kind, self._key, version=self.version), "the state")
        self.number += 1
        self._count(self.number)

    def _count(self, number: int) -> None:
        inside = msgspec.msgpack.encode(Numbered(self._name, number, b""))
        write_private(self.counter, seal(inside, "counter", self._key), "the state's counter")

    def _counted(self) -> Numbered | None:
        if not self.counter.exists():
            return None
        return _numbered(unseal(_bytes(self.counter), "counter", self._key, where=str(self.counter)))


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read the state ({error.strerror})", where=str(path)) from None


def _numbered(content: bytes) -> Numbered:
    try:
        return msgspec.msgpack.decode(content, type=Numbered)
    except (msgspec.MsgspecError, ValueError):
        raise InputError("this is not a state file, or it was cut off", where="state") from None


def _about(kind: str, version: int, context: str) -> list[bytes]:
    return [kind.encode(), str(version).encode(), b"at " + context.encode()]  # AES-SIV takes no empty part


def _cipher(kind: str, key: bytes) -> Any:
    from cryptography.hazmat.primitives.ciphers.aead import AESSIV

    return AESSIV(hashlib.blake2b(kind.encode(), key=key[:64], digest_size=64, person=b"shoal.seal").digest())


def _cipher_of(kind: str, key: bytes, salt: bytes) -> Any:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    return AESGCM(hashlib.blake2b(kind.encode() + salt, key=key[:64], digest_size=32, person=b"shoal.anew").digest())

"""A certificate beside a release: what was read, what was written, what was promised and found, signed.

It says in one file which input, policy and output belong together (SHA-256 digests), what was promised, the verifier's
findings, the options and the version, signed with Ed25519. The signing key is derived from a key of the ring; the
public key stands in the certificate and must be compared with the one the publisher told (:func:`public_key`).
``scripts/check_certificate.py`` checks one with the standard library and ``cryptography`` alone.

It proves who says so and that the files are unchanged. It does not prove that the verdict is right: run
``shoal verify`` on the output for that.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from shoal.core.errors import InputError
from shoal.core.keys import KeyRing

FORMAT = "shoal-certificate"
VERSION = 1
KEY = "certificate"  # the key's name in the ring


class File(msgspec.Struct, frozen=True):
    """A file by its digest; ``part`` is input, policy, output or report.

    >>> File(part="input", name="p.csv", size=3, sha256="ab" * 32).part
    'input'
    """

    part: str
    name: str
    size: int
    sha256: str

    @classmethod
    def of(cls, part: str, path: Path) -> File:
        """The digest of a file as it is on the disk."""
        digest, size = hashlib.sha256(), 0
        try:
            with path.open("rb") as content:
                # in blocks: a release may not fit in memory
                while block := content.read(1 << 20):
                    digest.update(block)
                    size += len(block)
        except OSError as error:
            raise InputError(f"cannot be read ({error.strerror})", where=str(path)) from None
        return cls(part, path.name, size, digest.hexdigest())


class Certificate(msgspec.Struct, frozen=True, kw_only=True):
    """What is certified. ``findings`` are one line of the verifier per promise."""

    format: str = FORMAT
    version: int = VERSION
    program: str
    made: str  # UTC, ISO 8601
    files: list[File]
    promises: list[dict[str, Any]]
    findings: list[str]
    kept: bool
    options: dict[str, Any]
    public_key: str


class Signed(msgspec.Struct, frozen=True):
    """The file: the certificate as the very text that was signed, and the signature (hex)."""

    certificate: str
    signature: str


def certify(
    files: Mapping[str, Sequence[Path | File]],
    keys: KeyRing,
    *,
    promises: Sequence[Mapping[str, Any]],
    findings: Sequence[str],
    kept: bool,
    options: Mapping[str, Any] | None = None,
    key: str = KEY,
) -> bytes:
    """A signed certificate, as the bytes of its file. ``files`` are paths by part: input, policy, output, report.

    A path is read now; who must be sure that nobody exchanged it since hands over the digest of what was verified.

    >>> import tempfile
    >>> from shoal.core.keys import KeyRing
    >>> file = Path(tempfile.mkdtemp()) / "out.csv"
    >>> _ = file.write_text("age")
    >>> ring = KeyRing({KEY: {1: bytes(32)}})
    >>> made = certify({"output": [file]}, ring, promises=[], findings=["2-anonymity: kept"], kept=True)
    >>> check(made, files=[file]).kept
    True
    """
    from shoal import __version__

    private = _private(keys, key)
    certificate = Certificate(
        program=f"shoal {__version__}",
        made=datetime.now(UTC).isoformat(timespec="seconds"),
        files=[f if isinstance(f, File) else File.of(part, f) for part, named in files.items() for f in named],
        promises=[dict(p) for p in promises],
        findings=list(findings),
        kept=kept,
        options=dict(options or {}),
        public_key=private.public_key().public_bytes_raw().hex(),
    )
    # one order of fields, so that `check` can demand the very bytes we write
    text = msgspec.json.encode(certificate, order="deterministic")
    signed = Signed(text.decode(), private.sign(text).hex())
    return msgspec.json.format(msgspec.json.encode(signed), indent=1)


def check(data: bytes, *, public_key: str | None = None, files: Sequence[Path] = ()) -> Certificate:
    """The certificate, if its signature is right, its key the expected one and every file named in it by digest.

    It must be written as we write it, so that no two readers take it for different things: a field twice, one that we
    do not know, or a text where a number belongs.

    >>> from shoal.core.keys import KeyRing
    >>> made = certify({}, KeyRing({KEY: {1: bytes(32)}}), promises=[], findings=[], kept=False)
    >>> check(made).kept
    False
    """
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        signed = msgspec.json.decode(data, type=Signed)
        certificate = msgspec.json.decode(signed.certificate, type=Certificate)
        known = Ed25519PublicKey.from_public_bytes(bytes.fromhex(certificate.public_key))
        signature = bytes.fromhex(signed.signature)
        datetime.fromisoformat(certificate.made)  # it is shown: no other text may stand here, nor in the key
        # capital hex digits would be a second spelling of the same key
        plain = certificate.public_key == known.public_bytes_raw().hex()
        if not plain or msgspec.json.encode(certificate, order="deterministic") != signed.certificate.encode():
            raise ValueError
    # brackets by the thousand end a decoder by its recursion
    except (msgspec.MsgspecError, ValueError, RecursionError):
        raise InputError("this is not a certificate", where="certificate") from None
    if (certificate.format, certificate.version) != (FORMAT, VERSION):
        raise InputError(f"expected version {VERSION} of {FORMAT}, found another", where="certificate")
    try:
        known.verify(signature, signed.certificate.encode())
    except InvalidSignature:
        raise InputError("the signature is not right: the certificate was changed", where="certificate") from None
    # without it the certificate says only that somebody signed
    if public_key is not None and public_key.strip().lower() != certificate.public_key:
        raise InputError("it was signed with another key than the publisher's", where="certificate")
    digests = {file.sha256 for file in certificate.files}
    for path in files:
        # by digest, not by name: a certified file may be renamed
        if File.of("", path).sha256 not in digests:
            raise InputError("this file is not the certified one", where=str(path))
    return certificate


def public_key(keys: KeyRing, key: str = KEY) -> str:
    """What a publisher tells auditors once, by a way they trust.

    >>> len(public_key(KeyRing().new("certificate")))
    64
    """
    return str(_private(keys, key).public_key().public_bytes_raw().hex())


def _private(keys: KeyRing, key: str) -> Any:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    return Ed25519PrivateKey.from_private_bytes(keys.derive(key, "certificate"))

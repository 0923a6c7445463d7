"""Check a certificate of a release without the program that made it: standard library and `cryptography` only.

    python check_certificate.py release.certificate.json --key PUBLIC_KEY_IN_HEX released.csv policy.yaml …

Says what is certified and exits with 0 if the signature is right, the key is the given one, the first file is the
certified release and every further one is one of the certified files, unchanged; with 1 otherwise. Get the publisher's
public key by a way you trust: without --key the certificate only shows that somebody signed it.
"""

import argparse
import hashlib
import json
import sys
from pathlib import Path

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

TYPES = {
    "format": str, "version": int, "program": str, "made": str, "files": list, "promises": list, "findings": list,
    "kept": bool, "options": dict, "public_key": str,
}  # fmt: skip


def main() -> int:
    asked = argparse.ArgumentParser(description="Check a certificate of a release.")
    asked.add_argument("certificate", type=Path)
    asked.add_argument("files", type=Path, nargs="*", help="the release, then other certified files")
    asked.add_argument("--key", help="the publisher's public key, 64 hexadecimal digits")
    given = asked.parse_intermixed_args()  # files may follow --key
    try:
        outside = once(given.certificate.read_text(encoding="utf-8"))
        text = outside["certificate"]
        inside = once(text)
        known = Ed25519PublicKey.from_public_bytes(bytes.fromhex(inside["public_key"]))
        known.verify(bytes.fromhex(outside["signature"]), text.encode())
        right = set(inside) == set(TYPES) and all(type(inside[name]) is kind for name, kind in TYPES.items())
        right = right and inside["public_key"] == known.public_bytes_raw().hex()
        right = right and (inside["format"], inside["version"]) == ("shoal-certificate", 1)
        parts = [(file["sha256"], file["part"]) for file in inside["files"]]
    except InvalidSignature:
        return no("the signature is not right: the certificate was changed")
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return no("this is not a certificate, or it cannot be read")
    if not right:
        return no("the certificate is of another version")
    if given.key is not None and given.key.strip().lower() != inside["public_key"]:
        return no("it was signed with another key than the given one")
    for at, path in enumerate(given.files):
        try:
            digest = digest_of(path)
        except OSError:
            return no(f"{path} cannot be read")
        found = [part for sha256, part in parts if sha256 == digest]
        if not found:
            return no(f"{path} is not one of the certified files, or was changed")
        if at == 0 and "output" not in found:
            return no(f"{path} is certified, but not as a release (name the release first)")
        print(f"{path}: certified as {plain('output' if at == 0 else found[0])}")
    print(f"made by {plain(inside['program'])} at {plain(inside['made'])}, public key {plain(inside['public_key'])}")
    for finding in inside["findings"]:
        print(plain(finding))
    print("promises kept, says the publisher" if inside["kept"] else "PROMISES BROKEN, says the publisher")
    if given.key is None:
        print("no --key was given: this shows that somebody signed it, not who")
    return 0 if inside["kept"] else 1


def once(text: str) -> dict[str, object]:
    """JSON in which no field stands twice: two readers could take it for different things."""

    def pairs(found: list[tuple[str, object]]) -> dict[str, object]:
        if len({name for name, _ in found}) < len(found):
            raise ValueError
        return dict(found)

    read = json.loads(text, object_pairs_hook=pairs)
    if not isinstance(read, dict):
        raise TypeError
    return read


def digest_of(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as content:
        while block := content.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def plain(text: object) -> str:
    """One line of letters: whoever signed may have written what a terminal obeys."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in str(text))


def no(why: str) -> int:
    print(f"not certified: {why}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())

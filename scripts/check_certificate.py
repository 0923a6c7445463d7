"""Check a certificate of a release without the program that made it: standard library and `cryptography` only.

    python check_certificate.py release.certificate.json --key PUBLIC_KEY_IN_HEX released.csv policy.yaml …

Says what is certified and exits with 0 if the signature is right, the key is the given one and every file named on the
command line is one of the certified files, unchanged; with 1 otherwise. Get the publisher's public key by a way you
trust: without --key the certificate only shows that somebody signed it.
"""

import argparse
import hashlib
import json
import sys
from pathlib import Path

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey


def main() -> int:
    asked = argparse.ArgumentParser(description="Check a certificate of a release.")
    asked.add_argument("certificate", type=Path)
    asked.add_argument("files", type=Path, nargs="*")
    asked.add_argument("--key", help="the publisher's public key, 64 hexadecimal digits")
    given = asked.parse_intermixed_args()  # files may follow --key
    try:
        outside = json.loads(given.certificate.read_text(encoding="utf-8"))
        text = outside["certificate"]
        inside = json.loads(text)
        known = Ed25519PublicKey.from_public_bytes(bytes.fromhex(inside["public_key"]))
        known.verify(bytes.fromhex(outside["signature"]), text.encode())
        certified = {file["sha256"]: file for file in inside["files"]}
        right = (inside["format"], inside["version"]) == ("shoal-certificate", 1)
    except InvalidSignature:
        return no("the signature is not right: the certificate was changed")
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return no("this is not a certificate, or it cannot be read")
    if not right:
        return no("the certificate is of another version")
    if given.key is not None and given.key.lower() != inside["public_key"]:
        return no("it was signed with another key than the given one")
    for path in given.files:
        try:
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
        except OSError:
            return no(f"{path} cannot be read")
        if digest not in certified:
            return no(f"{path} is not one of the certified files, or was changed")
        print(f"{path}: certified as {certified[digest]['part']}")
    print(f"made by {inside['program']} at {inside['made']}, public key {inside['public_key']}")
    for finding in inside["findings"]:
        print(finding)
    print("promises kept, says the publisher" if inside["kept"] else "PROMISES BROKEN, says the publisher")
    if given.key is None:
        print("no --key was given: this shows that somebody signed it, not who")
    return 0 if inside["kept"] else 1


def no(why: str) -> int:
    print(f"not certified: {why}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())

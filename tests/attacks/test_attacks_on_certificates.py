"""Certificates under attack: swapped, forged, exchanged while they are made, written to be read in two ways."""

from __future__ import annotations

import io
import json
import runpy
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from shoal.core.errors import InputError
from shoal.core.keys import KeyRing
from shoal.release.certificate import KEY, certify, check, public_key

CHECKER = Path(__file__).resolve().parents[2] / "scripts" / "check_certificate.py"
KEYS = KeyRing({KEY: {1: bytes(range(32))}})
THEIRS = KeyRing({KEY: {1: bytes(range(1, 33))}})


class Told(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


def checker(*words: object) -> Told:
    """The file as it stands, in this process: `tests/unit/test_certificate.py` starts it by itself."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.setattr(sys, "argv", [str(CHECKER), *map(str, words)])
        code = runpy.run_path(str(CHECKER))["main"]()
    return Told(code, out.getvalue(), err.getvalue())


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """A release and its input, certified by us."""
    found = {part: tmp_path / f"{part}.csv" for part in ("input", "output")}
    found["input"].write_text("age,ill\n21,flu\n")
    found["output"].write_text("age,ill\n[20 29],flu\n")
    signed = certify({part: [path] for part, path in found.items()}, KEYS, promises=[], findings=["kept"], kept=True)
    found["certificate"] = tmp_path / "c.json"
    found["certificate"].write_bytes(signed)
    return found


def signed_by_hand(text: str, keys: KeyRing = THEIRS) -> str:
    """Whoever signs for themselves may sign any text."""
    private = Ed25519PrivateKey.from_private_bytes(keys.derive(KEY, "certificate"))
    return json.dumps({"certificate": text, "signature": private.sign(text.encode()).hex()})


def refused_by_both(path: Path, text: str) -> None:
    path.write_text(text)
    with pytest.raises(InputError):
        check(path.read_bytes())
    assert checker(path).returncode == 1


def test_the_original_is_not_taken_for_the_release(files):
    """Its digest stands in the certificate, too: who hands it over as the release must be found out."""
    key = public_key(KEYS)
    told = checker(files["certificate"], "--key", key, files["input"])
    assert told.returncode == 1
    assert "not as a release" in told.stderr
    assert checker(files["certificate"], "--key", key, files["output"], files["input"]).returncode == 0


def test_a_certificate_of_another_release_or_signer_is_refused(files, tmp_path):
    """Replayed beside another file, or signed by somebody else under our name."""
    newer = tmp_path / "newer.csv"
    newer.write_text("age,ill\n[20 29],hiv\n")
    assert checker(files["certificate"], "--key", public_key(KEYS), newer).returncode == 1
    forged = tmp_path / "forged.json"
    forged.write_bytes(certify({"output": [newer]}, THEIRS, promises=[], findings=["kept"], kept=True))
    assert checker(forged, "--key", public_key(KEYS), newer).returncode == 1
    # our public key in a text that they signed
    inside = json.loads(json.loads(forged.read_text())["certificate"]) | {"public_key": public_key(KEYS)}
    refused_by_both(forged, signed_by_hand(json.dumps(inside, separators=(",", ":"))))


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace('"kept":false', '"kept":false,"kept":true'),
        lambda text: text.replace('"kept":false', '"kept":"false"'),
        lambda text: text.replace('"kept":false', '"kept":1'),
        lambda text: text.replace('"kept":false', '"kept":true,"note":"checked by the ministry"'),
        lambda text: text.replace('"version":1', '"version":2').replace('"kept":false', '"kept":true'),
        lambda text: text.replace('"version":1', '"version":true').replace('"kept":false', '"kept":true'),
        lambda text: text.replace('"public_key":"', '"public_key":" '),
        lambda text: "[" * 100_000,
        lambda text: "[]",
    ],
    ids=["twice", "a text", "a number", "more fields", "version", "a true version", "blanks", "nested", "a list"],
)
def test_what_two_readers_could_take_for_different_things_is_refused(files, change):
    """The signer is the attacker: promises broken for one reader, kept for the other."""
    data = certify({"output": [files["output"]]}, THEIRS, promises=[], findings=["broken"], kept=False)
    text = json.loads(data)["certificate"]
    changed = change(text)
    assert changed != text
    refused_by_both(files["certificate"], signed_by_hand(changed))


def test_two_certificates_in_one_file_are_refused(files):
    whole = files["certificate"].read_text()
    other = signed_by_hand(json.loads(whole)["certificate"].replace("kept", "sold"))
    twice = whole.rstrip().rstrip("}") + "," + other.lstrip("{")
    refused_by_both(files["certificate"], twice)


def test_a_certificate_writes_nothing_but_letters_on_a_terminal(files):
    """Else a stranger's certificate could hide the line that says that nobody knows who signed it."""
    hidden = "kept\x1b[8m\rsigned by the ministry\n\u202e"
    data = certify({"output": [files["output"]]}, THEIRS, promises=[], findings=[hidden], kept=True)
    files["certificate"].write_bytes(data)
    told = checker(files["certificate"], files["output"])
    assert told.returncode == 0
    assert all(c == "\n" or c.isprintable() for c in told.stdout)
    assert told.stdout.count("\n") == 5
    assert "not who" in told.stdout
    text = json.loads(data)["certificate"]
    made = json.loads(text)["made"]
    refused_by_us = signed_by_hand(text.replace(made, "today\\u001b[8m"))
    with pytest.raises(InputError, match="not a certificate"):
        check(refused_by_us.encode())

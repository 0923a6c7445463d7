"""A certificate: changed in any byte it is refused, by us and by the checker that does not know us."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.core.errors import InputError
from shoal.core.keys import KeyRing
from shoal.release.certificate import certify, check, public_key

CHECKER = Path(__file__).resolve().parents[2] / "scripts" / "check_certificate.py"
KEYS = KeyRing({"certificate": {1: bytes(range(32))}})


def made(folder: Path, *, kept: bool = True) -> tuple[Path, Path]:
    released = folder / "released.csv"
    released.write_text("age,ill\n[20 29],flu\n")
    data = certify(
        {"output": [released]}, KEYS, promises=[{"use": "k-anonymity", "k": 2}], findings=["2-anonymity: kept"],
        kept=kept, options={"seed": None},
    )  # fmt: skip
    path = folder / "certificate.json"
    path.write_bytes(data)
    return path, released


def checker(*words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-I", str(CHECKER), *map(str, words)], capture_output=True, text=True)


def test_what_was_certified_is_recognised_by_both(tmp_path: Path) -> None:
    path, released = made(tmp_path)
    found = check(path.read_bytes(), public_key=public_key(KEYS), files=[released])
    assert found.kept
    assert found.promises == [{"use": "k-anonymity", "k": 2}]
    told = checker(path, released, "--key", public_key(KEYS))
    assert told.returncode == 0, told.stderr
    assert "certified as output" in told.stdout
    assert bytes(range(32)).hex() not in path.read_text()


def test_other_files_other_keys_and_broken_promises_are_told(tmp_path: Path) -> None:
    path, released = made(tmp_path)
    other = public_key(KeyRing().new("certificate"))
    with pytest.raises(InputError, match="another key"):
        check(path.read_bytes(), public_key=other)
    assert checker(path, "--key", other).returncode == 1
    released.write_text("age,ill\n[20 29],hiv\n")
    with pytest.raises(InputError, match="not the certified one"):
        check(path.read_bytes(), files=[released])
    assert checker(path, released).returncode == 1
    broken, _ = made(tmp_path, kept=False)
    assert checker(broken).returncode == 1


@given(at=st.integers(0, 10_000), change=st.integers(1, 255))
def test_no_changed_byte_is_believed(tmp_path_factory: pytest.TempPathFactory, at: int, change: int) -> None:
    data = bytearray(made(tmp_path_factory.mktemp("c"))[0].read_bytes())
    before = check(bytes(data))
    data[at % len(data)] ^= change
    with contextlib.suppress(InputError):  # else: white space outside the signed text, or the case of a hex digit
        assert check(bytes(data)) == before

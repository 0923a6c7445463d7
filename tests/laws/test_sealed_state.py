"""State that survives a run: nobody without the key reads, changes, moves or rolls it back unnoticed."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.core.errors import InputError, ShoalError, UsageError
from shoal.core.keys import KeyRing
from shoal.core.private_file import write_private
from shoal.core.sealed_state import Envelope, StateFile, seal, unseal
from shoal.streams.z_stream import z_anonymity

KEY = bytes(range(32))
CONTENT = st.binary(max_size=60)


@given(content=CONTENT, kind=st.text(max_size=5), context=st.text(max_size=5), version=st.integers(0, 9))
def test_what_is_sealed_opens_in_its_place_only_and_gives_the_same_bytes(
    content: bytes, kind: str, context: str, version: int
) -> None:
    sealed = seal(content, kind, KEY, version=version, context=context)
    assert sealed == seal(content, kind, KEY, version=version, context=context)
    assert unseal(sealed, kind, KEY, version=version, context=context) == content
    others: list[dict[str, Any]] = [
        {"kind": kind + "x"},
        {"context": context + "x"},
        {"version": version + 1},
        {"key": bytes(32)},
        {"key": None},
    ]
    for other in others:
        asked = {"kind": kind, "context": context, "version": version, "key": KEY} | other
        with pytest.raises((InputError, UsageError)):
            unseal(sealed, **asked)


@given(content=CONTENT, data=st.data())
def test_no_changed_byte_is_believed(content: bytes, data: st.DataObject) -> None:
    sealed = bytearray(seal(content, "kind", KEY))
    sealed[data.draw(st.integers(0, len(sealed) - 1))] ^= data.draw(st.integers(1, 255))
    upto = data.draw(st.integers(0, len(sealed)))
    for changed in (bytes(sealed), bytes(sealed)[:upto]):
        with pytest.raises((InputError, UsageError)):
            unseal(changed, "kind", KEY)


@given(content=CONTENT)
def test_with_a_key_nothing_is_believed_without_its_seal(content: bytes) -> None:
    with pytest.raises(InputError, match="no seal, though a key is given"):
        unseal(seal(content, "kind", None), "kind", KEY)
    forged = msgspec.msgpack.encode(Envelope("shoal-state", "kind", 1, True, content))
    with pytest.raises(InputError, match="cannot be opened"):
        unseal(forged, "kind", KEY)


@settings(max_examples=60)
@given(st.data())
def test_a_file_gives_its_newest_state_or_nothing(tmp_path_factory: Any, data: st.DataObject) -> None:
    """Any older state, or the state of another file, is refused, whatever was written since."""
    folder = tmp_path_factory.mktemp("state")
    key = data.draw(st.sampled_from([KEY, None]))
    writings = data.draw(st.lists(CONTENT, min_size=1, max_size=5))
    for number, content in enumerate(writings):
        file = StateFile(folder / "state", "kind", key)
        assert file.read() == (writings[number - 1] if number else None)
        file.write(content)
        shutil.copy(file.path, folder / f"old {number}")
    for number in range(len(writings) - 1):
        shutil.copy(folder / f"old {number}", folder / "state")
        with pytest.raises(InputError, match="older state"):
            StateFile(folder / "state", "kind", key).read()
    shutil.copy(folder / f"old {len(writings) - 1}", folder / "state")
    assert StateFile(folder / "state", "kind", key).read() == writings[-1]
    other = StateFile(folder / "other", "kind", key)
    for content in writings:
        other.write(content)
    shutil.copy(other.path, folder / "state")
    with pytest.raises(InputError, match="one of another state"):
        StateFile(folder / "state", "kind", key).read()


def test_a_state_needs_its_counter_and_a_counter_its_state(tmp_path: Path) -> None:
    file = StateFile(tmp_path / "state", "kind", KEY)
    file.write(b"one")
    counter = file.counter.read_bytes()
    file.counter.unlink()
    with pytest.raises(InputError, match="no counter beside it"):
        StateFile(tmp_path / "state", "kind", KEY).read()
    file.counter.write_bytes(counter)
    file.path.unlink()
    with pytest.raises(InputError, match="the state is gone"):
        StateFile(tmp_path / "state", "kind", KEY).read()
    file.counter.unlink()
    assert StateFile(tmp_path / "state", "kind", KEY).read() is None


def test_after_a_crash_between_state_and_counter_the_newer_state_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = StateFile(tmp_path / "state", "kind", KEY)
    file.write(b"one")
    older = file.path.read_bytes()

    def dies(number: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(file, "_count", dies)
    with pytest.raises(KeyboardInterrupt):
        file.write(b"two")
    assert StateFile(tmp_path / "state", "kind", KEY).read() == b"two"
    file.path.write_bytes(older)  # once the newer one was read, the older is refused
    with pytest.raises(InputError, match="older state"):
        StateFile(tmp_path / "state", "kind", KEY).read()


def test_two_runs_do_not_write_over_each_other(tmp_path: Path) -> None:
    one, two = (StateFile(tmp_path / "state", "kind", KEY) for _ in range(2))
    one.write(b"first")
    assert two.read() == b"first"
    one.write(b"second")
    with pytest.raises(InputError, match="another run"):
        two.write(b"third")


def test_raised_counts_release_nothing_of_one_person() -> None:
    """A forged z snapshot made one person look like z: without its seal, or changed, it is not taken."""
    stream = z_anonymity(3, "1h", key=KEY)
    for at, who in enumerate(["ada", "bob"]):
        assert stream.push(at, who, "rare") is None
    snapshot = stream.snapshot()
    outside = msgspec.msgpack.decode(snapshot)
    for changed in (
        msgspec.msgpack.encode([*outside[:3], False, outside[4]]),
        msgspec.msgpack.encode([*outside[:4], outside[4][:-1] + bytes([outside[4][-1] ^ 1])]),
    ):
        with pytest.raises(ShoalError):
            z_anonymity(3, "1h", key=KEY, snapshot=changed)
    again = z_anonymity(3, "1h", key=KEY, snapshot=snapshot)
    assert again.push(2, "ada", "rare") is None
    assert again.push(3, "eve", "rare") == "rare"


@pytest.mark.skipif(os.name != "posix", reason="links and modes of POSIX")
def test_private_files_are_for_their_owner_and_follow_no_prepared_link(tmp_path: Path) -> None:
    stolen = tmp_path / "stolen"
    stolen.write_text("")
    stolen.chmod(0o666)
    ring = tmp_path / "keys.json"
    (tmp_path / "keys.json.new").symlink_to(stolen)
    KeyRing().new("default").save(ring)
    assert stolen.read_text() == ""
    write_private(tmp_path / "state", b"x", "the state")
    for path in (ring, tmp_path / "state"):
        assert path.stat().st_mode & 0o777 == 0o600
    assert not list(tmp_path.glob(".*.part"))

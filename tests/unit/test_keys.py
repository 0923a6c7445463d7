"""The key ring: where keys come from, what each use derives, and what is refused."""

from __future__ import annotations

import base64
import stat

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.core.errors import InputError, UsageError
from shoal.core.keys import KeyRing, variable_of
from shoal.core.vault import Vault

SECRET = base64.b64encode(bytes(range(32))).decode()
OTHER = bytes(range(1, 33)).hex()


def test_keys_come_from_the_environment_by_name():
    ring = KeyRing.load(environ={"SHOAL_KEY": SECRET, "SHOAL_KEY_BILLING": f"2:{OTHER},1:{SECRET}", "HOME": "/"})
    assert ring.epochs("billing") == [1, 2]
    assert ring.current("default") == 1
    assert variable_of("billing") == "SHOAL_KEY_BILLING"


def test_keys_come_from_a_file(tmp_path):
    (tmp_path / "key").write_text(SECRET + "\n")
    (tmp_path / "key").chmod(0o600)
    ring = KeyRing.load(environ={"SHOAL_KEY_A": f"file:{tmp_path / 'key'}"})
    assert ring.check("a") == KeyRing.load(environ={"SHOAL_KEY": SECRET}).check("default")


def test_a_ring_survives_its_file_and_only_its_owner_reads_it(tmp_path):
    ring = KeyRing().new("billing").rotate("billing").new("research")
    path = tmp_path / "keys.json"
    ring.save(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    again = KeyRing.load(path, {})
    assert again.keys == ring.keys
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o660, 0o622])
def test_secrets_that_others_may_read_or_change_are_refused(tmp_path, mode):
    path, key, vault = (tmp_path / name for name in ("keys.json", "key", "vault.db"))
    KeyRing().new("billing").save(path)
    key.write_text(SECRET)
    Vault(vault).close()
    assert stat.S_IMODE(vault.stat().st_mode) == 0o600
    for file in (path, key, vault):
        file.chmod(mode)
    for reading in (
        lambda: KeyRing.load(path, {}),
        lambda: KeyRing.load(environ={"SHOAL_KEY": f"file:{key}"}),
        lambda: Vault(vault),
    ):
        with pytest.raises(UsageError, match="others than its owner may") as caught:
            reading()
        assert "chmod 600" in str(caught.value)
        assert SECRET not in str(caught.value)


def test_a_prepared_file_or_link_gets_no_secret(tmp_path):
    prepared = tmp_path / "stolen"
    prepared.write_text("")
    (tmp_path / "keys.json.new").symlink_to(prepared)
    KeyRing().new("billing").save(tmp_path / "keys.json")
    assert prepared.read_text() == ""


def test_the_environment_wins_over_the_ring(tmp_path):
    KeyRing().new("billing").save(tmp_path / "k.json")
    ring = KeyRing.load(environ={"SHOAL_KEYS": str(tmp_path / "k.json"), "SHOAL_KEY_BILLING": SECRET})
    assert ring.check("billing") == KeyRing({"billing": {1: bytes(range(32))}}).check("billing")


def test_a_ring_never_shows_a_secret():
    ring = KeyRing.load(environ={"SHOAL_KEY": SECRET})
    assert SECRET not in repr(ring)
    assert str(bytes(range(32))) not in repr(ring)


part = st.text(alphabet="abc", max_size=3)


@given(st.tuples(part, part, part), st.tuples(part, part, part))
def test_every_use_has_a_key_of_its_own(one, other):
    ring = KeyRing({"default": {1: bytes(range(32)), 2: bytes(range(32))}})
    made = [ring.derive("default", p, role=r, domain=d) for p, r, d in (one, other)]
    assert (made[0] == made[1]) == (one == other)
    assert all(len(k) == 32 for k in made)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("c2hvcnQ=", "too short"),
        ("00" * 31, "too short"),
        ("correct horse battery staple", "base64 or hex"),
        ("", "too short"),
        ("1:" + "00" * 8, "too short"),
    ],
)
def test_a_weak_key_is_refused_without_being_quoted(text, word):
    with pytest.raises(UsageError, match=word) as caught:
        KeyRing.load(environ={"SHOAL_KEY_BILLING": text})
    assert caught.value.where == "SHOAL_KEY_BILLING"
    assert caught.value.hint
    assert not text or text not in str(caught.value)


def test_a_missing_key_says_how_to_make_it():
    with pytest.raises(UsageError, match="no key called 'billing'") as caught:
        KeyRing().derive("billing", "tokenize")
    assert "SHOAL_KEY_BILLING" in str(caught.value)


def test_what_is_no_ring_is_refused(tmp_path):
    for content in ("", "[]", '{"keys": {}}', '{"shoal-keys": 1, "keys": {"a": [{"epoch": 1}]}}', "\x00"):
        (tmp_path / "ring").write_text(content)
        (tmp_path / "ring").chmod(0o600)
        with pytest.raises(UsageError, match=r"not a key ring|epoch"):
            KeyRing.open(tmp_path / "ring")
    with pytest.raises(InputError):
        KeyRing.open(tmp_path / "nothing")


def test_names_and_epochs_are_checked():
    ring = KeyRing().new("billing")
    for wrong in (lambda: ring.new("billing"), lambda: ring.new("Bad Name"), lambda: ring.forget("billing", 1)):
        with pytest.raises(UsageError):
            wrong()
    with pytest.raises(UsageError, match="epoch 7"):
        ring.derive("billing", "x", epoch=7)

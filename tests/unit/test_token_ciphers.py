"""FF1 against the vectors of NIST SP 800-38G, Crypto-PAn against the sample of its authors."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.core.errors import UsageError
from shoal.masks.address import PrefixPreserving
from shoal.masks.base import Context
from shoal.masks.ff1 import FF1, SMALLEST_DOMAIN
from shoal.masks.tokenize import Tokenize
from shoal.testing.masks import fixed_ring

LETTERS = "0123456789abcdefghijklmnopqrstuvwxyz"
KEY_128 = "2B7E151628AED2A6ABF7158809CF4F3C"
KEY_192 = KEY_128 + "EF4359D8D580AA4F"
KEY_256 = KEY_192 + "7F036D6F04FC6A94"
TEN, ALNUM = "39383736353433323130", "3737373770717273373737"
# samples 1 to 9 of the standard's example values
NIST = [
    (KEY_128, 10, "", "0123456789", "2433477484"),
    (KEY_128, 10, TEN, "0123456789", "6124200773"),
    (KEY_128, 36, ALNUM, "0123456789abcdefghi", "a9tv40mll9kdu509eum"),
    (KEY_192, 10, "", "0123456789", "2830668132"),
    (KEY_192, 10, TEN, "0123456789", "2496655549"),
    (KEY_192, 36, ALNUM, "0123456789abcdefghi", "xbj3kv35jrawxv32ysr"),
    (KEY_256, 10, "", "0123456789", "6657667009"),
    (KEY_256, 10, TEN, "0123456789", "1001623463"),
    (KEY_256, 36, ALNUM, "0123456789abcdefghi", "xs8a0azh2avyalyzuwd"),
]
# key and pad of the sample trace published with Crypto-PAn
PAN = bytes.fromhex("1522178d33a4cf80130a5b1649907d10d8988f8379796527 62574c2d2a842202")
TRACE = [
    ("128.11.68.132", "135.242.180.132"),
    ("129.118.74.4", "134.136.186.123"),
    ("130.132.252.244", "133.68.164.234"),
    ("24.0.250.221", "100.15.198.226"),
]


@pytest.mark.parametrize(("key", "radix", "tweak", "plain", "cipher"), NIST)
def test_ff1_published_vectors(key, radix, tweak, plain, cipher):
    ff1 = FF1(bytes.fromhex(key), radix)
    numerals = [LETTERS.index(c) for c in plain]
    made = ff1.encrypt(numerals, bytes.fromhex(tweak))
    assert "".join(LETTERS[n] for n in made) == cipher
    assert ff1.decrypt(made, bytes.fromhex(tweak)) == numerals


@given(st.integers(2, 300), st.data())
def test_ff1_turns_back_what_it_made(radix, data):
    length = data.draw(st.integers(FF1.shortest(radix), 40))
    numerals = data.draw(st.lists(st.integers(0, radix - 1), min_size=length, max_size=length))
    ff1 = FF1(bytes(range(32)), radix)
    assert ff1.decrypt(ff1.encrypt(numerals)) == numerals


@given(st.integers(2, 65536))
def test_the_domain_is_never_below_a_million(radix):
    shortest = FF1.shortest(radix)
    assert radix**shortest >= SMALLEST_DOMAIN
    assert shortest == 2 or radix ** (shortest - 1) < SMALLEST_DOMAIN


@pytest.mark.parametrize(("address", "masked"), TRACE)
def test_crypto_pan_published_trace(address, masked):
    made = PrefixPreserving(PAN).mask(int(ipaddress.ip_address(address)), 4)
    assert str(ipaddress.IPv4Address(made)) == masked


@given(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1))
def test_addresses_share_exactly_the_bits_they_shared(a, b):
    cipher = PrefixPreserving(PAN)
    common = 32 - (a ^ b).bit_length()
    assert 32 - (cipher.mask(a, 4) ^ cipher.mask(b, 4)).bit_length() == common


RING = fixed_ring("billing")


@given(st.text(alphabet="0123456789-/ ", min_size=6, max_size=25))
def test_a_format_preserving_token_keeps_the_format(value):
    spec = Tokenize(form="ff1", key="billing", check=RING.check("billing", 1))
    running = spec.start(Context(keys=RING))
    token = running.one(value)
    if sum(c.isdigit() for c in value) >= 6:
        assert [c.isdigit() for c in token] == [c.isdigit() for c in value]
    assert running.reveal(token) == value


def test_a_format_preserving_token_is_not_revealed_without_a_check_value():
    running = Tokenize(form="ff1", key="billing").start(Context(keys=RING))
    with pytest.raises(UsageError, match="wrong key"):
        running.reveal(running.one("12345678"))


def test_a_wrong_key_is_an_error_for_every_form(tmp_path):
    from shoal.core.keys import KeyRing

    other = KeyRing({"billing": {1: b"\7" * 32, 2: b"\10" * 32}})
    for form, more in (("siv", {}), ("vault", {"vault": "v.db"})):
        spec = Tokenize(form=form, key="billing", **more)
        token = spec.start(Context(keys=RING, folder=tmp_path)).one("K15489")
        with pytest.raises(UsageError, match="does not open"):
            spec.start(Context(keys=other, folder=tmp_path)).reveal(token)
    with pytest.raises(UsageError, match="check value"):
        Tokenize(form="ff1", key="billing", check=RING.check("billing", 1)).start(Context(keys=other))


def test_a_rotated_key_still_reveals_old_tokens_until_the_epoch_is_forgotten():
    from shoal.core.keys import KeyRing

    ring = KeyRing().new("billing")
    old = Tokenize(key="billing").start(Context(keys=ring)).one("K15489")
    turned = ring.rotate("billing")
    running = Tokenize(key="billing").start(Context(keys=turned))
    assert old.startswith("t1.")
    assert running.one("K15489").startswith("t2.")
    assert running.reveal(old) == "K15489"
    forgotten = Tokenize(key="billing").start(Context(keys=turned.forget("billing", 1)))
    with pytest.raises(UsageError, match="epoch 1"):
        forgotten.reveal(old)

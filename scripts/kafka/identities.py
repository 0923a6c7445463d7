"""Who is who without passwords, for brokers of tests: certificates of an authority of our own, and signed tokens.

The tokens are those of OpenID Connect: a page that gives one to whoever has a client's secret, and a file with the key
that brokers check signatures by.
"""

from __future__ import annotations

import base64
import datetime
import ipaddress
import json
import threading
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.x509.oid import NameOID

COMPANY = "Hospital"
ISSUER = "shoal-tests"


class Authority:
    """Gives out certificates: in its folder ``ca.pem``, and per name a key, a certificate, and both in one file."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self._key = folder, ec.generate_private_key(ec.SECP256R1())
        self._name = _named("Authority")
        self._write("ca", self._signed(self._name, self._key.public_key(), is_authority=True))

    def certify(self, name: str) -> Path:
        """The folder, with ``name.key``, ``name.pem`` and ``name.both``."""
        if not (self.folder / f"{name}.pem").exists():
            key = ec.generate_private_key(ec.SECP256R1())
            made = self._signed(_named(name), key.public_key())
            pem, pkcs8 = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
            secret = key.private_bytes(pem, pkcs8, serialization.NoEncryption())
            (self.folder / f"{name}.key").write_bytes(secret)
            (self.folder / f"{name}.both").write_bytes(secret + self._write(name, made))
        return self.folder

    def _write(self, name: str, certificate: x509.Certificate) -> bytes:
        text = certificate.public_bytes(serialization.Encoding.PEM)
        (self.folder / f"{name}.pem").write_bytes(text)
        return text

    def _signed(self, name: x509.Name, key: Any, *, is_authority: bool = False) -> x509.Certificate:
        now = datetime.datetime.now(datetime.UTC)
        here = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
        return (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(hours=1))
            .not_valid_after(now + datetime.timedelta(days=30))
            .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
            .add_extension(here, critical=False)
            .sign(self._key, hashes.SHA256())
        )


def principal(name: str) -> str:
    """A certificate's name as brokers say it.

    >>> principal("ward1")
    'CN=ward1,O=Hospital'
    """
    return f"CN={name},O={COMPANY}"


def _named(name: str) -> x509.Name:
    parts = ((NameOID.ORGANIZATION_NAME, COMPANY), (NameOID.COMMON_NAME, name))
    return x509.Name([x509.NameAttribute(kind, text) for kind, text in parts])


class Issuer:
    """A page that gives tokens: who asks as client ``ada`` with the secret ``ada-secret`` is ``ada`` for an hour."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.keys = folder / "jwks.json"
        numbers = self._key.public_key().public_numbers()
        parts = {"n": _number(numbers.n), "e": _number(numbers.e)}
        self.keys.write_text(json.dumps({"keys": [{"kty": "RSA", "kid": "1", "alg": "RS256", "use": "sig", **parts}]}))
        issuer = self

        class Page(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                words = base64.b64decode(self.headers["Authorization"].removeprefix("Basic ")).decode()
                client, secret = map(urllib.parse.unquote, words.split(":", 1))
                good = secret == f"{client}-secret"
                body = json.dumps({"access_token": issuer.token(client), "expires_in": 3600} if good else {}).encode()
                self.send_response(200 if good else 401)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Page)
        self.address = f"http://127.0.0.1:{self._server.server_address[1]}/token"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def token(self, name: str) -> str:
        """A signed token that says who somebody is."""
        now = int(time.time())
        head = {"alg": "RS256", "typ": "JWT", "kid": "1"}
        claims = {"sub": name, "iss": ISSUER, "aud": ISSUER, "iat": now, "exp": now + 3600, "scope": "kafka"}
        text = ".".join(_text(json.dumps(part).encode()) for part in (head, claims))
        return f"{text}.{_text(self._key.sign(text.encode(), padding.PKCS1v15(), hashes.SHA256()))}"

    def close(self) -> None:
        """Give no more."""
        self._server.shutdown()
        self._server.server_close()


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _number(value: int) -> str:
    return _text(value.to_bytes((value.bit_length() + 7) // 8, "big"))

"""Who may speak with the server: one person, with the token it printed, from the page it served.

Checked for every request: ``Host`` (another name that leads here is a rebinding attack), ``Origin`` of everything that
changes something (another page in the same browser), the cookie that the one-time token was exchanged for. Every
answer forbids the browser to load anything from elsewhere, to be framed, and to be kept.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import parse_qs

from shoal.web.html import el, join

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",  # without any, a form would not say where it came from
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
}
ENTRY = "/enter"
SAFE = ("GET", "HEAD")


class Gate:
    """Stands before an app. ``names`` are the hosts it answers to, with their ports.

    >>> gate = Gate(None, ["127.0.0.1:8000"])
    >>> gate.link().startswith("http://127.0.0.1:8000/enter?token=")
    True
    """

    def __init__(self, app: App | None, names: list[str], *, read_only: bool = False) -> None:
        self._app, self._names, self._read_only = app, names, read_only
        self._token: str | None = secrets.token_urlsafe(24)
        self._secret = secrets.token_urlsafe(32)
        # ports of one host share their cookies: two studios must not
        self._cookie = f"shoal-{names[0].rpartition(':')[2]}"

    def link(self) -> str:
        """The address that opens the door, once."""
        return f"http://{self._names[0]}{ENTRY}?token={self._token}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or say why not."""
        if scope["type"] == "lifespan":
            assert self._app is not None
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        refusal = self._refusal(scope, headers)
        if refusal is not None:
            await answer(send, *refusal)
        elif scope["path"] == ENTRY:
            await self._enter(scope, headers, send)
        elif not self._known(headers):
            await answer(send, 403, "You need the link that shoal printed", LOST)
        else:
            assert self._app is not None
            await self._app(scope, receive, _with_headers(send))

    def _refusal(self, scope: Scope, headers: dict[str, str]) -> tuple[int, str, str] | None:
        host, method = headers.get("host", ""), scope["method"]
        if host not in self._names:
            return 421, "This is not the address of this page", "Open it by the link that shoal printed."
        origin, site = headers.get("origin"), headers.get("sec-fetch-site", "none")
        if origin is not None and origin != f"http://{host}":
            return 403, "The request came from another page", "Only pages of this server may ask for something."
        if method not in SAFE and (origin is None or self._read_only):
            return 403, "The request does not say which page it came from", "Only pages of this server may change it."
        if site not in ("none", "same-origin") and scope["path"] != ENTRY:
            return 403, "The request came from another page", "Open it by the link that shoal printed."
        return None

    def _known(self, headers: dict[str, str]) -> bool:
        found = [part.strip().partition("=") for part in headers.get("cookie", "").split(";")]
        return any(n == self._cookie and hmac.compare_digest(v.encode(), self._secret.encode()) for n, _, v in found)

    async def _enter(self, scope: Scope, headers: dict[str, str], send: Send) -> None:
        """Exchange the token for a cookie. A page of our own goes on: a strict cookie is not sent after a redirect
        that began on another site."""
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        if self._token is not None and hmac.compare_digest(given.encode(), self._token.encode()):
            self._token = None
            kept = f"{self._cookie}={self._secret}; HttpOnly; SameSite=Strict; Path=/"
            await answer(send, 200, "Welcome", "", head='<meta http-equiv="refresh" content="0; url=/">', cookie=kept)
        elif self._known(headers):
            await answer(send, 200, "Welcome", "", head='<meta http-equiv="refresh" content="0; url=/">')
        else:
            await answer(send, 403, "This link was used before", LOST)


LOST = (
    "The link works once, in one browser. Look at the terminal where it was started; if the page is already open "
    "in another window, go on there, or stop the command and start it again."
)


async def answer(send: Send, status: int, title: str, words: str, *, head: str = "", cookie: str | None = None) -> None:
    """A page of its own that needs nothing else."""
    body = join([el("h1", title), el("p", words)])
    text = (
        f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" '
        f'content="light dark"><link rel="icon" href="data:,">{head}</head><body>{body}</body></html>'
    ).encode()
    headers = {**HEADERS, "content-type": "text/html; charset=utf-8", "content-length": str(len(text))}
    pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
    if cookie is not None:
        pairs.append((b"set-cookie", cookie.encode()))
    await send({"type": "http.response.start", "status": status, "headers": pairs})
    await send({"type": "http.response.body", "body": text})


def _with_headers(send: Send) -> Send:
    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            given = {name.lower() for name, _ in message["headers"]}
            more = [(n.encode(), v.encode()) for n, v in HEADERS.items() if n.encode() not in given]
            message = {**message, "headers": [*message["headers"], *more]}
        await send(message)

    return sent

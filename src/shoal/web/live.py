"""The server of a live page: a thread of its own beside a run, read-only, behind the same gate as the studio."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response, StreamingResponse
from starlette.routing import Route

from shoal.web import static
from shoal.web.board import Board
from shoal.web.gate import Gate
from shoal.web.pages.live import live, parts_of
from shoal.web.server import library, listening, names_of

TELL = 1.0  # seconds between two messages to a page, at least
AT_MOST = 0.005  # of a run's time, to draw the page
PAUSE = 0.25  # seconds between two looks of the server's thread: each takes time from the run, and an end is told soon
LAST_WORDS = 3.0  # seconds for open pages to hear that it has ended


def live_app(board: Board) -> Starlette:
    """One page, and its events."""

    told = Told(board)

    async def page(request: Request) -> Response:
        return HTMLResponse(live(board))

    async def events(request: Request) -> Response:
        return StreamingResponse(_told(board, told, request), media_type="text/event-stream")

    return Starlette(routes=[Route("/", page), Route("/events", events), Route("/static/{name}", static.serve)])


class Told:
    """What every open page is told: drawn once for all of them, and so seldom that it costs the run one two-hundredth.

    >>> told = Told(Board("visits", lambda: None))
    >>> told.look(), told.look(), told.words[:5]
    (1, 1, b'data:')
    """

    def __init__(self, board: Board) -> None:
        self.words, self.version, self.ended = b"", 0, False
        self._board, self._seen, self._next = board, -1, 0.0

    def look(self) -> int:
        """Draw the page again if something changed and it is time to; the version of what is told."""
        ended, began = self._board.ended, time.perf_counter()
        if self._board.changed != self._seen and (ended or began >= self._next):
            self._seen = self._board.changed
            parts = {"parts": parts_of(self._board), "ended": ended}
            self.words, self.ended = b"data: " + msgspec.json.encode(parts) + b"\n\n", ended
            self._next = began + max(TELL, (time.perf_counter() - began) / AT_MOST)
            self.version += 1
        return self.version


async def _told(board: Board, told: Told, request: Request) -> AsyncIterator[bytes]:
    """All parts whenever something changed; a page that comes back gets the whole history at once."""
    seen = 0
    board.listeners += 1
    try:
        yield b"retry: 1000\n\n"
        while not await request.is_disconnected():
            if told.look() != seen:
                seen = told.version
                yield told.words
            if told.ended:
                return
            await asyncio.sleep(PAUSE)
    finally:
        board.listeners -= 1


class LivePage:
    """A page beside a run: ``close`` when the run has ended."""

    def __init__(self, board: Board, tell: Callable[[str], None], host: str = "127.0.0.1", port: int = 0) -> None:
        uvicorn = library()
        self.board = board
        self._socket = listening(host, port)
        gate = Gate(live_app(board), names_of(host, int(self._socket.getsockname()[1])), read_only=True)
        config = uvicorn.Config(
            gate,
            log_level="critical",
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=1,
            lifespan="off",
        )

        class Server(uvicorn.Server):  # type: ignore[misc,name-defined]
            async def on_tick(self, counter: int) -> bool:
                await asyncio.sleep(PAUSE)
                return bool(await super().on_tick(counter))

        self._server: Any = Server(config)
        self._thread = threading.Thread(target=self._serve, daemon=True, name="shoal-live")
        self._thread.start()
        tell(f"live page, the link works once: {gate.link()}")

    def _serve(self) -> None:
        self._server.run(sockets=[self._socket])

    def close(self) -> None:
        """Tell open pages that it has ended, then stop answering."""
        if self._thread.is_alive():
            self.board.end()
            until = time.monotonic() + LAST_WORDS
            while self.board.listeners and time.monotonic() < until:
                time.sleep(0.05)
            self._server.should_exit = True
            self._thread.join()
        self._socket.close()

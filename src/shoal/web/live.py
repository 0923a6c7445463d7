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

TELL = 1.0  # seconds between two messages to a page
LAST_WORDS = 3.0  # seconds for open pages to hear that it has ended


def live_app(board: Board) -> Starlette:
    """One page, and its events."""

    async def page(request: Request) -> Response:
        return HTMLResponse(live(board))

    async def events(request: Request) -> Response:
        return StreamingResponse(_told(board, request), media_type="text/event-stream")

    return Starlette(routes=[Route("/", page), Route("/events", events), Route("/static/{name}", static.serve)])


async def _told(board: Board, request: Request) -> AsyncIterator[bytes]:
    """All parts whenever something changed; a page that comes back gets the whole history at once."""
    seen = -1
    board.listeners += 1
    try:
        yield b"retry: 1000\n\n"
        while not await request.is_disconnected():
            ended = board.ended
            if board.changed != seen:
                seen = board.changed
                yield b"data: " + msgspec.json.encode({"parts": parts_of(board), "ended": ended}) + b"\n\n"
            if ended:
                return
            for _ in range(10):  # an end is told soon
                await asyncio.sleep(TELL / 10)
                if board.ended:
                    break
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
        self._server: Any = uvicorn.Server(config)
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
